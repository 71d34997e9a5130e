// SPDX-License-Identifier: Apache-2.0
#include "forecast/level.hpp"

#include <algorithm>

#include "common/names.hpp"
#include "trace/metric_name.hpp"

namespace glidepath {
namespace {

constexpr std::size_t kMinLevel = 5, kMaxLevel = 63;  // values in a level, where there are enough
constexpr std::size_t kLevelsOfLog = 10, kMinLevelsOfLog = 4;
constexpr detail::Names<2> kReadings{"curve", "point"};

}  // namespace

std::string_view name(ReachedBy reached_by) noexcept {
  return detail::name_in(kReadings, reached_by);
}

void detail::refuse_unknown(ReachedBy reached_by, std::string_view what) {
  refuse_unnamed(kReadings, reached_by, what);
}

ReachedBy reached_by_named(std::string_view text) {
  return detail::value_named<ReachedBy>(kReadings, text, "reached_by is '",
                                        "', expected curve or point");
}

ForecastOptions detail::read_by(std::string_view metric, const ForecastOptions& options) {
  ForecastOptions read = options;
  if (!read.reached_by) read.reached_by = reached_by_named(reached_by_name(metric));
  return read;
}

std::size_t level_window(ReachedBy reached_by, std::size_t points) noexcept {
  if (reached_by == ReachedBy::point) return 1;
  const std::size_t part = std::clamp(points / kLevelsOfLog, kMinLevel, kMaxLevel);
  const std::size_t window = std::min(part, points / kMinLevelsOfLog);
  return window > 0 ? window - (window + 1) % 2 : 1;
}

}  // namespace glidepath
