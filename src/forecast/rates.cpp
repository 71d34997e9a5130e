// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/annealing.hpp"

namespace glidepath::detail {
namespace {

// How far a log may lie from its schedule: rates that were rounded or averaged, and the wrong side
// of a logging interval. Schedules of another peak or shape differ by more at more points; see
// tests/python/test_schedule.py.
constexpr double kRateTolerance = 0.05;    // of the highest rate so far
constexpr double kOutlierTolerance = 0.1;  // of the points with a rate, and one of four or more

// Of the points, past a schedule that has ended in 0. So high that a run may train on for several
// times its plan: a watch must not refuse in the middle of a training.
constexpr double kMaxBeyondShare = 0.9;

bool is_rate(double lr) { return std::isfinite(lr) && lr >= 0; }

/// Lowest and highest rate of the schedule between two steps.
std::pair<double, double> range_of(const Schedule& schedule, double from, double to) {
  const double first = interpolate(from, schedule.step, schedule.lr);
  const double last = interpolate(to, schedule.step, schedule.lr);
  double low = std::min(first, last), high = std::max(first, last);
  const auto begin = std::ranges::upper_bound(schedule.step, from);
  for (auto at = begin; at != schedule.step.end() && *at < to; ++at) {
    const double lr = schedule.lr[at - schedule.step.begin()];
    low = std::min(low, lr);
    high = std::max(high, lr);
  }
  return {low, high};
}

void refuse_contradiction(TraceView trace, std::span<const double> scheduled,
                          const Schedule& schedule) {
  const std::size_t n = trace.step.size();
  double peak = 0, known = 0, outside = 0, worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_rate(trace.lr[i])) continue;
    peak = std::max({peak, trace.lr[i], scheduled[i]});
    known += 1;
  }
  std::size_t worst_at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_rate(trace.lr[i])) continue;
    const double before = i > 0 ? trace.step[i] - trace.step[i - 1] : 0.0;
    const double after = i + 1 < n ? trace.step[i + 1] - trace.step[i] : 0.0;
    const auto [low, high] = range_of(schedule, trace.step[i] - (i > 0 ? before : after),
                                      trace.step[i] + (i + 1 < n ? after : before));
    const double excess = std::max(low - trace.lr[i], trace.lr[i] - high);
    if (!(excess > kRateTolerance * peak)) continue;
    outside += 1;
    if (excess > worst) {
      worst = excess;
      worst_at = i;
    }
  }
  if (outside > std::max(kOutlierTolerance * known, known < 4 ? 0.0 : 1.0)) {
    refuse("schedule: learning rate ", scheduled[worst_at], " at step ", trace.step[worst_at],
           ", where the run logged ", trace.lr[worst_at],
           ": a schedule is that of the whole run, past and planned");
  }
}

/// By a schedule that has ended in 0 no run learns: what most of the log lies beyond was counted in
/// another unit, such as epochs, and has no effect on the forecast.
void refuse_other_unit(TraceView trace, const Schedule& schedule) {
  const auto last =
      std::find_if(schedule.lr.rbegin(), schedule.lr.rend(), [](double lr) { return lr > 0; });
  if (trace.step.empty() || last == schedule.lr.rbegin() || last == schedule.lr.rend()) return;
  const double end = schedule.step[static_cast<std::size_t>(schedule.lr.rend() - last)];
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < trace.step.size(); ++i) {
    const bool logged = !trace.lr.empty() && is_rate(trace.lr[i]);
    beyond += !logged && trace.step[i] > end;
  }
  if (static_cast<double>(beyond) <= kMaxBeyondShare * static_cast<double>(trace.step.size())) {
    return;
  }
  refuse("schedule: learning rate 0 from step ", end,
         " on, expected above 0 at most of the log, "
         "whose steps are ",
         trace.step.front(), " to ", trace.step.back(), ": a schedule counts the steps of the log");
}

}  // namespace

Rates rates_of(TraceView trace, const Schedule& schedule, double horizon) {
  schedule.validate();
  std::vector<double> scheduled;
  scheduled.reserve(trace.step.size());
  for (const double step : trace.step) {
    scheduled.push_back(interpolate(step, schedule.step, schedule.lr));
  }
  const bool logged = !trace.lr.empty();
  if (logged) refuse_contradiction(trace, scheduled, schedule);
  refuse_other_unit(trace, schedule);

  Rates rates;
  for (std::size_t i = 0; i < trace.step.size(); ++i) {
    if (!std::isfinite(trace.loss[i])) continue;
    rates.observed.push_back(logged && is_rate(trace.lr[i]) ? trace.lr[i] : scheduled[i]);
  }
  const auto finite = std::ranges::find_if(trace.loss, [](double y) { return std::isfinite(y); });
  if (finite != trace.loss.end()) {
    const double from = trace.step[static_cast<std::size_t>(finite - trace.loss.begin())];
    const auto first = std::ranges::lower_bound(schedule.step, from);
    rates.before_step.assign(schedule.step.begin(), first);
    rates.before.assign(schedule.lr.begin(), schedule.lr.begin() + (first - schedule.step.begin()));
  }
  const double last = trace.step.empty() ? -kInfinity : trace.step.back();
  const auto first_ahead = std::ranges::upper_bound(schedule.step, last);
  rates.ahead_step.assign(first_ahead, schedule.step.end());
  rates.ahead.assign(schedule.lr.begin() + (first_ahead - schedule.step.begin()),
                     schedule.lr.end());
  if (rates.ahead_step.empty()) {
    rates.ahead_step.push_back(horizon);
    rates.ahead.push_back(schedule.lr.back());
  }
  return rates;
}

}  // namespace glidepath::detail
