// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace glidepath::detail {

/// Of a normal distribution: standard deviation per median absolute deviation, and the inverse,
/// each as it is quoted.
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

}  // namespace glidepath::detail
