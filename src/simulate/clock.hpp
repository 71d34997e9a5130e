// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "common/require.hpp"

namespace glidepath::detail {

/// Integer time: one tick is a second, a millisecond or a microsecond, see ticks_per_second().
using Tick = std::int64_t;
inline constexpr Tick kNever = std::numeric_limits<Tick>::max();
/// No job ends later: what is added to a time up to here is still a Tick.
inline constexpr Tick kLastTick = 4'000'000'000'000'000'000;
/// The longest time that may be given, in seconds; a million ticks each, it adds to kLastTick.
inline constexpr double kMaxSeconds = 1e12;
inline constexpr double kJoulesPerKwh = 3.6e6;
inline constexpr std::string_view kMaxSecondsText = "1e12";  ///< in sentences

/// Refuses a time above kMaxSeconds.
inline void refuse_above_max_seconds(std::string_view function, std::string_view what,
                                     double value) {
  if (value <= kMaxSeconds) return;
  refuse(function, ": ", what, " is ", value, ", expected at most ", kMaxSecondsText);
}

/// A stretch of time in seconds, and in seconds x carbon intensity.
struct Stretch {
  double s = 0, carbon = 0;
  Stretch& operator+=(const Stretch& o) {
    s += o.s;
    carbon += o.carbon;
    return *this;
  }
  friend Stretch operator*(double k, const Stretch& a) { return {k * a.s, k * a.carbon}; }
  friend Stretch operator-(const Stretch& a, const Stretch& b) {
    return {a.s - b.s, a.carbon - b.carbon};
  }
};

/// Ticks, seconds, and the carbon intensity of each hour.
class Clock {
 public:
  Clock(std::int64_t per_second, std::vector<double> carbon_g_per_kwh)
      : per_second_(per_second), hourly_(std::move(carbon_g_per_kwh)) {
    before_.push_back(0);
    for (const double grams : hourly_) before_.push_back(before_.back() + 3600 * grams);
  }
  [[nodiscard]] std::int64_t per_second() const { return per_second_; }
  [[nodiscard]] double seconds(Tick tick) const {
    return static_cast<double>(tick) / static_cast<double>(per_second_);
  }
  /// The nearest whole tick; kNever for infinity.
  [[nodiscard]] Tick ticks(double seconds) const {
    const double ticks = seconds * static_cast<double>(per_second_);
    return ticks < 9e18 ? static_cast<Tick>(std::nearbyint(ticks)) : kNever;
  }
  [[nodiscard]] Stretch between(Tick from, Tick to) const {
    return {seconds(to - from), hourly_.empty() ? 0 : carbon(seconds(to)) - carbon(seconds(from))};
  }

 private:
  /// Integral of the intensity from 0 to `s`; the hours repeat.
  [[nodiscard]] double carbon(double s) const {
    const double period = 3600 * static_cast<double>(hourly_.size());
    const double whole = std::floor(s / period);
    const double rest = s - whole * period;
    const auto hour = std::min(static_cast<std::size_t>(rest / 3600), hourly_.size() - 1);
    return whole * before_.back() + before_[hour] +
           (rest - 3600 * static_cast<double>(hour)) * hourly_[hour];
  }
  std::int64_t per_second_;
  std::vector<double> hourly_, before_;
};

}  // namespace glidepath::detail
