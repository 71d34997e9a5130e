// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "common/statistics.hpp"

namespace glidepath::detail {

inline constexpr double kMinSpread = 0.3;  // in standard deviations

/// The value below which half of the weight lies.
[[nodiscard]] inline double weighted_median(std::span<const double> value,
                                            std::span<const double> weight) {
  std::vector<std::size_t> order(value.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return value[a] != value[b] ? value[a] < value[b] : a < b;
  });
  const double half = 0.5 * std::accumulate(weight.begin(), weight.end(), 0.0);
  double sum = 0;
  for (const std::size_t i : order) {
    sum += weight[i];
    if (sum >= half) return value[i];
  }
  return value[order.back()];
}

/// From the median distance to the median, no less than 0.3 of the standard deviation.
[[nodiscard]] inline double spread(std::vector<double> values) {
  const std::vector<double> even(values.size(), 1.0);
  const double middle = weighted_median(values, even);
  double square = 0;
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (double& v : values) {
    square += (v - mean) * (v - mean) / static_cast<double>(values.size());
    v = std::abs(v - middle);
  }
  return std::max(
      {kDeviationPerMad * weighted_median(values, even), kMinSpread * std::sqrt(square), 1e-6});
}

}  // namespace glidepath::detail
