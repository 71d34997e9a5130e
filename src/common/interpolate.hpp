// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace glidepath::detail {

/// Value at `x` of the line through the points (at, value), constant beyond its ends. `at` is
/// increasing and not empty.
[[nodiscard]] inline double interpolate(double x, std::span<const double> at,
                                        std::span<const double> value) {
  if (x <= at.front()) return value.front();
  if (x >= at.back()) return value[at.size() - 1];
  const auto above = std::upper_bound(at.begin(), at.end(), x);
  const std::size_t i = above - at.begin();
  return value[i - 1] + (x - at[i - 1]) * ((value[i] - value[i - 1]) / (at[i] - at[i - 1]));
}

}  // namespace glidepath::detail
