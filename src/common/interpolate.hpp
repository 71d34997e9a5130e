// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
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
  const double ahead = x - at[i - 1], gap = at[i] - at[i - 1], rise = value[i] - value[i - 1];
  const double slope = rise / gap;  // infinite over a gap near 0
  const double between = value[i - 1] + (std::isfinite(slope) ? ahead * slope : ahead / gap * rise);
  const auto [least, most] = std::minmax(value[i - 1], value[i]);
  return std::clamp(between, least, most);  // a rise of 1e300 leaves no digits of a small end
}

}  // namespace glidepath::detail
