// SPDX-License-Identifier: Apache-2.0
#include "forecast/annealing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "forecast/interpolate.hpp"

namespace glidepath::detail {
namespace {

constexpr double kLate = 5;  // logging intervals

/// Gaps take the nearest earlier value, the first ones the first known; false where more than half
/// is unknown.
bool fill_gaps(std::vector<double>& lr) {
  const auto known = static_cast<std::size_t>(
      std::count_if(lr.begin(), lr.end(), [](double v) { return std::isfinite(v) && v >= 0; }));
  if (2 * known <= lr.size()) return false;
  double value =
      *std::find_if(lr.begin(), lr.end(), [](double v) { return std::isfinite(v) && v >= 0; });
  for (double& v : lr) {
    if (std::isfinite(v) && v >= 0) value = v;
    v = value;
  }
  return true;
}

/// Many points are missing before the first: a log that begins at the peak begins where the warm-up
/// ended. Merged points count as what they were merged from.
bool starts_late(std::span<const double> observed, std::span<const double> count) {
  const double points = std::accumulate(count.begin(), count.end(), 0.0);
  return observed.front() * (points - 1) > kLate * (observed.back() - observed.front());
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
  std::vector<double> lr(past.begin(), past.end()), later(ahead.begin(), ahead.end());
  if (lr.empty() || later.empty() || !fill_gaps(lr) || !fill_gaps(later)) return {};

  // A plan given at a few steps is taken as straight between them.
  std::vector<double> gaps;
  for (std::size_t i = 1; i < step.size(); ++i) gaps.push_back(step[i] - step[i - 1]);
  double gap = step.back();
  if (!gaps.empty()) {
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    gap = *middle;
  }
  const double span = ahead_step.back() - step.back();
  const double finest = std::max(2 * gap, span / 512);
  for (std::size_t i = 0; i < later.size(); ++i) {
    const double from = step.back(), to = ahead_step[i], rate = lr.back();
    const double parts = std::clamp(std::ceil((to - from) / finest), 1.0, 512.0);
    for (double k = 1; k < parts; ++k) {
      step.push_back(from + (to - from) * (k / parts));
      lr.push_back(rate + (later[i] - rate) * (k / parts));
    }
    step.push_back(to);
    lr.push_back(later[i]);
  }

  const auto [least, peak_at] = std::minmax_element(lr.begin(), lr.end());
  const double peak = *peak_at;
  const bool falls = peak - *least > 0.01 * peak;
  const auto warm = static_cast<std::size_t>(
      std::find_if(lr.begin(), lr.end(), [&](double v) { return v >= 0.999 * peak; }) - lr.begin());
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
