// SPDX-License-Identifier: Apache-2.0
#include "glidepath/watch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "common/require.hpp"

namespace glidepath {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kOpenBudget = 10;      // times the steps seen, where no budget is given
constexpr std::size_t kFewPoints = 4;   // fewer say nothing about the future
constexpr std::size_t kTail = 5;        // a level, not a spike
constexpr std::int64_t kNonFinite = 2;  // one NaN may be the logger's

/// Median of the last few finite losses, or NaN while there are too few.
double tail_level(const WatchState& s) {
  std::vector<double> tail;
  for (const double loss : s.newest) {
    if (std::isfinite(loss)) tail.push_back(loss);
  }
  if (tail.size() < kTail) return std::numeric_limits<double>::quiet_NaN();
  tail.erase(tail.begin(), tail.end() - static_cast<std::ptrdiff_t>(kTail));
  std::nth_element(tail.begin(), tail.begin() + kTail / 2, tail.end());
  return tail[kTail / 2];
}

std::string percent(double probability) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * probability);
  return text;
}

}  // namespace

Decision Watch::decision() const {
  const WatchState& s = state_;
  Decision d;
  d.steps_to_target = {kInfinity, kInfinity, kInfinity};
  d.probability = options_.target ? 0.0 : std::numeric_limits<double>::quiet_NaN();

  if (options_.target && std::isfinite(s.reached_step)) {
    d.verdict = Verdict::reached;
    d.probability = 1;
    d.steps_to_target = {0, 0, 0};
    d.reason = detail::sentence("target ", *options_.target, " was met at step ", s.reached_step);
    return d;
  }
  if (s.trailing_nonfinite >= kNonFinite) {
    d.verdict = Verdict::diverged;
    d.reason = detail::sentence("the last ", s.trailing_nonfinite, " losses are not finite");
    return d;
  }
  // Worse than the start by as much as the run ever improved on it.
  const double sign = options_.direction == Direction::max ? -1.0 : 1.0;
  const double first = sign * s.first_loss, best = sign * s.best_loss, tail = sign * tail_level(s);
  const double margin = std::max(first - best, 0.5 * std::abs(first));
  if (s.step.size() >= 2 * kTail && tail > first + margin) {
    d.verdict = Verdict::diverged;
    d.reason = detail::sentence("the last points are around ", sign * tail, ", the run began at ",
                                s.first_loss, " and its best was ", s.best_loss);
    return d;
  }
  if (!options_.target) {
    d.reason = "no target is set";
    return d;
  }
  const double seen = s.step.empty() ? 0.0 : s.step.back();
  const double start = s.step.empty() ? 0.0 : std::min(s.step.front(), 0.0);
  const double budget = options_.budget ? *options_.budget : start + kOpenBudget * (seen - start);
  if (!s.step.empty() && s.last_step >= budget) {
    d.verdict = Verdict::never;
    d.reason = detail::sentence("the budget of ", budget, " steps is spent and the best was ",
                                s.best_loss);
    return d;
  }
  if (s.step.size() < kFewPoints) {
    d.probability = 0.5;
    d.reason = detail::sentence(s.step.size(), " points are too few to tell");
    return d;
  }

  ForecastOptions options;
  options.direction = options_.direction;
  options.past = options_.past;
  const Reach r = reach({s.step, s.loss, s.weight}, *options_.target, budget, options);
  d.probability = 1 - r.prob_never;
  const double levels[] = {0.1, 0.5, 0.9};
  for (std::size_t i = 0; i < 3; ++i) {
    d.steps_to_target[i] = std::max(r.quantile(levels[i]) - s.last_step, 0.0);
  }
  const double alpha = options_.alpha;
  d.reason = detail::sentence("reaches ", *options_.target, " by step ", budget,
                              " with probability ", percent(d.probability));
  if (d.probability >= 1 - alpha) {
    d.verdict = Verdict::will_reach;
    d.reason += detail::sentence(", in ", std::round(d.steps_to_target[1]), " steps by the median");
  } else if (d.probability <= alpha) {
    d.verdict = Verdict::never;
    d.reason += ", no more than the " + percent(alpha) + " that count as never";
  } else {
    d.reason += ", between " + percent(alpha) + " and " + percent(1 - alpha);
  }
  return d;
}

}  // namespace glidepath
