// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace glidepath::detail {

/// Standard deviation per median absolute deviation in a normal distribution, and the inverse, each
/// as it is quoted.
inline constexpr double kDeviationPerMad = 1.4826;
inline constexpr double kMadPerDeviation = 0.6745;

/// By four sums, which do not wait for each other.
[[nodiscard]] inline double sum_of(std::span<const double> values) {
  std::array<double, 4> sums{};
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += values[i + k];
  }
  for (; i < values.size(); ++i) sums[0] += values[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// The middle value, of an even number of them the upper of the two. Reorders `values`, of which
/// there is at least one.
[[nodiscard]] inline double upper_median(std::span<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The middle value, of an even number of them the mean of the two. Reorders `values`, of which
/// there is at least one.
[[nodiscard]] inline double median(std::span<double> values) {
  const double upper = upper_median(values);
  if (values.size() % 2 == 1) return upper;
  const auto middle = values.begin() + values.size() / 2;
  return 0.5 * (*std::max_element(values.begin(), middle) + upper);
}

/// Index, among `count` sorted samples, of the least that at least a share `level` of them does not
/// exceed. There is at least one sample.
[[nodiscard]] inline std::size_t quantile_index(std::size_t count, double level) {
  const auto n = static_cast<double>(count);
  const double rounding = 1e-9;  // .1 of 30 samples is 3 of them
  return static_cast<std::size_t>(std::clamp(std::ceil(level * n - rounding) - 1, 0.0, n - 1));
}

/// A quantile by linear interpolation between order statistics, as numpy does. Reorders `values`,
/// of which there is at least one.
[[nodiscard]] inline double interpolated_quantile(std::span<double> values, double level) {
  const double place = level * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(values.begin(), at, values.end());
  if (low + 1 == values.size()) return *at;
  const double next = *std::min_element(at + 1, values.end());
  return *at + (place - static_cast<double>(low)) * (next - *at);
}

}  // namespace glidepath::detail
