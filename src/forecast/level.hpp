// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace glidepath::detail {

/// Refuses a number that is no reading; `what` is said to have it.
void refuse_unknown(ReachedBy reached_by, std::string_view what);

/// How reach() reads the log.
[[nodiscard]] inline ReachedBy reading(const ForecastOptions& options) {
  return options.reached_by.value_or(ReachedBy::curve);
}
/// The options for a run of this metric, whose name says how it is read where they do not.
[[nodiscard]] ForecastOptions read_by(std::string_view metric, const ForecastOptions& options);

/// Takes what a run logs, value by value, and says when it has reached its target.
struct Level {
  double target = 0;
  Direction direction = Direction::min;
  ReachedBy reached_by = ReachedBy::curve;
  std::size_t points = 0;       ///< finite values so far
  std::uint64_t at_target = 0;  ///< a bit for each of the newest, the newest in the lowest

  /// Whether the median of the newest values is at or beyond the target: more than half of them
  /// are.
  bool add(double value) {
    if (!std::isfinite(value)) return false;
    const bool there = direction == Direction::max ? value >= target : value <= target;
    at_target = at_target << 1U | static_cast<std::uint64_t>(there);
    const std::size_t window = level_window(reached_by, ++points);
    const std::uint64_t newest = at_target & ((std::uint64_t{1} << window) - 1);
    return 2 * static_cast<std::size_t>(std::popcount(newest)) > window;
  }
};

}  // namespace glidepath::detail
