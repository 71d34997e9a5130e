// SPDX-License-Identifier: Apache-2.0
#include "forecast/annealing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "common/interpolate.hpp"
#include "common/statistics.hpp"

namespace glidepath::detail {
namespace {

constexpr double kMaxLateIntervals = 5;  // logging intervals missing before a log begins late
constexpr double kMaxParts = 512;        // a stretch of the plan is cut into
constexpr double kPeakShare = 0.999;     // of the peak, at which the warm-up has ended
constexpr double kMinFall = 0.01;        // of the peak

/// Many points are missing before the first: a log that begins at the peak begins where the warm-up
/// ended. Merged points count as what they were merged from.
bool starts_late(std::span<const double> observed, std::span<const double> count) {
  const double points = std::accumulate(count.begin(), count.end(), 0.0);
  return observed.front() * (points - 1) > kMaxLateIntervals * (observed.back() - observed.front());
}

/// Appends a plan, which is straight between the few steps at which it is given.
void extend(std::vector<double>& step, std::vector<double>& lr, std::span<const double> ahead_step,
            std::span<const double> ahead) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < step.size(); ++i) gaps.push_back(step[i] - step[i - 1]);
  const double gap = gaps.empty() ? step.back() : upper_median(gaps);
  const double finest = std::max(2 * gap, (ahead_step.back() - step.back()) / kMaxParts);
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    const double from = step.back(), to = ahead_step[i], rate = lr.back();
    const double parts = std::clamp(std::ceil((to - from) / finest), 1.0, kMaxParts);
    for (double k = 1; k < parts; ++k) {
      step.push_back(from + (to - from) * (k / parts));
      lr.push_back(rate + (ahead[i] - rate) * (k / parts));
    }
    step.push_back(to);
    lr.push_back(ahead[i]);
  }
}

}  // namespace

bool Annealing::moves(std::span<const double> points) const {
  std::size_t moving = 0;
  double last = 0;
  for (const double at : points) {
    const double now = interpolate(at, step, time);
    moving += now > last;
    last = now;
  }
  return moving >= 3;
}

Annealing annealing(std::span<const double> observed, std::span<const double> count,
                    std::span<const double> past, std::span<const double> ahead_step,
                    std::span<const double> ahead, const ForecastConstants& constants) {
  std::vector<double> step(observed.begin(), observed.end());
  std::vector<double> lr(past.begin(), past.end());
  extend(step, lr, ahead_step, ahead);
  const auto [least, peak_at] = std::minmax_element(lr.begin(), lr.end());
  const double peak = *peak_at;
  const bool falls = peak - *least > kMinFall * peak;
  const std::size_t warm =
      std::find_if(lr.begin(), lr.end(), [&](double v) { return v >= kPeakShare * peak; }) -
      lr.begin();
  const bool late = warm == 0 && starts_late(observed, count) && constants.warmup < 1;
  if (!(peak > 0) || !(falls || late)) return {};

  // S1(t) = sum of (lr / peak)^clock;  h' = ((1 - lr / peak) - h) / (lag of the plan), 0 in the
  // warm-up.
  Annealing plan;
  plan.falls = falls;
  plan.time.resize(step.size());
  plan.fraction.resize(step.size());
  double time = 0, fraction = 0, before = 0;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const double width = step[i] - before;
    before = step[i];
    const double pace = std::pow(lr[i] / peak, i < warm ? constants.warm_clock : constants.clock);
    time += pace * width * (i == 0 && late ? constants.warmup : 1);
    const double keep = std::exp(-width / (constants.lag * step.back()));
    fraction = fraction * keep + (1 - keep) * (i < warm ? 0.0 : 1 - lr[i] / peak);
    plan.time[i] = time;
    plan.fraction[i] = fraction;
  }
  plan.step = std::move(step);
  return plan;
}

}  // namespace glidepath::detail
