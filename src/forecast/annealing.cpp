// SPDX-License-Identifier: Apache-2.0
#include "forecast/annealing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/interpolate.hpp"
#include "common/statistics.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {
namespace {

constexpr double kMaxParts = 512;     // a stretch of the plan is cut into
constexpr double kPeakShare = 0.999;  // of the peak, at which the warm-up has ended
constexpr double kMinFall = 0.01;     // of the peak
// The loss follows the rate at two paces: `lag` of the plan, and for a part of the fall this much.
constexpr double kSlowLag = 0.1, kSlowPart = 0.3;

/// Rates in the order of their steps.
struct RatePath {
  std::vector<double> step, lr;

  void add(double at, double rate) {
    step.push_back(at);
    lr.push_back(rate);
  }
  /// A straight line, in parts.
  void extend(double to, double rate, double finest) {
    if (step.empty()) return add(to, rate);
    const double from = step.back(), before = lr.back();
    const double parts = std::clamp(std::ceil((to - from) / finest), 1.0, kMaxParts);
    for (double k = 1; k < parts; ++k) {
      add(from + (to - from) * (k / parts), before + (rate - before) * (k / parts));
    }
    add(to, rate);
  }
};

/// The plan is straight between the few steps at which it is given; the log is not.
RatePath path_of(std::span<const double> observed, const Rates& rates, std::size_t& first) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < observed.size(); ++i) gaps.push_back(observed[i] - observed[i - 1]);
  const double gap = gaps.empty() ? observed.back() : upper_median(gaps);
  const auto finest = [&](double span) { return std::max(2 * gap, span / kMaxParts); };
  RatePath path;
  for (std::size_t i = 0; i < rates.before.size(); ++i) {
    if (rates.before_step[i] < 0) continue;
    path.extend(rates.before_step[i], rates.before[i], finest(observed.front()));
  }
  path.extend(observed.front(), rates.observed.front(), finest(observed.front()));
  first = path.step.size() - 1;
  for (std::size_t i = 1; i < observed.size(); ++i) path.add(observed[i], rates.observed[i]);
  const double ahead = finest(rates.ahead_step.back() - observed.back());
  for (std::size_t i = 0; i < rates.ahead.size(); ++i) {
    path.extend(rates.ahead_step[i], rates.ahead[i], ahead);
  }
  return path;
}

/// Index at which the rate that rises from the start has come to its peak, or falls again.
std::size_t warmup_end(std::span<const double> lr, double peak) {
  std::size_t i = 0;
  while (i + 1 < lr.size() && lr[i] < kPeakShare * peak && lr[i + 1] > lr[i] - kMinFall * peak) ++i;
  return i;
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
                    const Rates& rates, const ForecastConstants& constants) {
  std::size_t first = 0;
  const RatePath path = path_of(observed, rates, first);
  const std::vector<double>&step = path.step, &lr = path.lr;
  const double peak = *std::ranges::max_element(lr);
  const std::size_t warm = warmup_end(lr, peak);
  const auto varies = [&](std::size_t from) {
    const auto begin = lr.begin() + static_cast<std::ptrdiff_t>(from);
    return peak - *std::min_element(begin, lr.end()) > kMinFall * peak;
  };
  const bool late = first >= warm && starts_late(observed, count) && constants.warmup < 1;
  if (!(peak > 0) || !(varies(0) || late)) return {};

  // S1(t) = sum of (lr / peak)^clock;  h' = ((1 - lr / peak) - h) / (lag of the plan), 0 in the
  // warm-up, for the fast and the slow part of h.
  Annealing plan;
  plan.falls = varies(warm);
  double time = 0, warm_time = 0, before = 0, fast = 0, slow = 0;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const double width = step[i] - before, rate = lr[i] / peak;
    before = step[i];
    time += std::pow(rate, i < warm ? constants.warm_clock : constants.clock) * width;
    if (i < warm) warm_time = time;
    if (i == first && late) time = warm_time + constants.warmup * (time - warm_time);
    const auto follow = [&](double& follower, double lag) {
      const double keep = std::exp(-width / (lag * step.back()));
      follower = follower * keep + (1 - keep) * (i < warm ? 0.0 : 1 - rate);
    };
    follow(fast, constants.lag);
    follow(slow, kSlowLag);
    if (i < first) continue;
    plan.step.push_back(step[i]);
    plan.time.push_back(time);
    plan.fraction.push_back((1 - kSlowPart) * fast + kSlowPart * slow);
  }
  return plan;
}

}  // namespace glidepath::detail
