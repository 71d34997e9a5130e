// SPDX-License-Identifier: Apache-2.0
#include "glidepath/watch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "forecast/gaps.hpp"
#include "forecast/reach.hpp"
#include "watch/points.hpp"

namespace glidepath {
namespace {

using detail::kInfinity;

constexpr double kOpenBudget = 10;  // times the steps seen, where no budget is given
// What it takes to exclude anything: a part of the budget, and of the way from the start of the run
// to its target, because nobody sees the end of a plateau or a climb on which a run begins; or half
// the budget. And what the later half of the run gained, grown with the time that is left, must be
// less than this part of what is lacking: a curve that still falls may fall faster than any law.
constexpr double kSettledShare = 0.1 - 1e-9;
constexpr double kSettledWay = 0.3, kPlateauShare = 0.5, kSettledGain = 0.2;
constexpr double kSpending = 3;             // power of the share by which the error rate is spent
constexpr std::size_t kTailPoints = 5;      // a level, not a spike
constexpr std::ptrdiff_t kFirstPoints = 3;  // of which the start is the median

/// Median of the last few finite losses, or NaN while there are too few.
double tail_level(const std::vector<double>& losses) {
  std::vector<double> tail;
  for (const double loss : losses) {
    if (std::isfinite(loss)) tail.push_back(loss);
  }
  if (tail.size() < kTailPoints) return std::numeric_limits<double>::quiet_NaN();
  tail.erase(tail.begin(), tail.end() - static_cast<std::ptrdiff_t>(kTailPoints));
  return detail::upper_median(tail);
}

/// Level of the first `kept` points: the median of its newest losses, as many as a run by its curve
/// is read by. A point that was merged stands for all that it has in it.
double level_of(const WatchState& s, std::size_t kept) {
  const auto end = static_cast<std::ptrdiff_t>(kept);
  const double points = std::accumulate(s.weight.begin(), s.weight.begin() + end, 0.0);
  const std::size_t window = level_window(ReachedBy::curve, static_cast<std::size_t>(points));
  std::vector<double> newest;
  double weight = 0;
  for (std::size_t i = kept; i-- > 0 && weight < static_cast<double>(window);) {
    newest.push_back(s.loss[i]);
    weight += s.weight[i];
  }
  return detail::upper_median(newest);
}

/// Whether the run still gains so much that its later half, grown with the time that is left, by
/// the square while that is more, brings it a good part of the way from its level to the target.
bool gains(const WatchState& s, const WatchOptions& o, double start, double budget) {
  const double sign = o.direction == Direction::max ? -1.0 : 1.0;
  const double half = start + 0.5 * (s.last_step - start);
  const auto first_of_half = std::lower_bound(s.step.begin(), s.step.end(), half);
  const auto before = std::max<std::ptrdiff_t>(first_of_half - s.step.begin(), kFirstPoints);
  const double level = sign * level_of(s, s.step.size());
  const double gain = sign * level_of(s, static_cast<std::size_t>(before)) - level;
  const double left_by_seen = (budget - s.last_step) / (s.last_step - start);
  const double growth = std::max(left_by_seen, left_by_seen * left_by_seen);
  return gain * growth >= kSettledGain * (level - sign * *o.target);
}

/// The rates that were planned before the log began, used until its end, then planned.
Schedule used_and_planned(const WatchState& s, const Schedule& plan) {
  if (s.step.empty()) return plan;
  Schedule whole;
  const auto add = [&](double step, double lr) {
    whole.step.push_back(step);
    whole.lr.push_back(lr);
  };
  for (std::size_t i = 0; i < plan.step.size() && plan.step[i] < s.step.front(); ++i) {
    add(plan.step[i], plan.lr[i]);
  }
  for (std::size_t i = 0; i < s.step.size(); ++i) {
    add(s.step[i],
        std::isfinite(s.lr[i]) ? s.lr[i] : detail::interpolate(s.step[i], plan.step, plan.lr));
  }
  for (std::size_t i = 0; i < plan.step.size(); ++i) {
    if (plan.step[i] > s.step.back()) add(plan.step[i], plan.lr[i]);
  }
  return whole;
}

/// The step at which the run stands, be there a number or not.
double now_of(const WatchState& s) { return std::isfinite(s.last_step) ? s.last_step : 0.0; }

/// Law of the first step at the target. A run that is beyond its last number has not reached the
/// target until now.
Reach reach_now(const WatchState& s, const WatchOptions& o, double budget) {
  ForecastOptions options{
      .past = o.past.get(), .direction = o.direction, .reached_by = o.reached_by};
  Schedule schedule;
  if (o.schedule) {
    schedule = used_and_planned(s, *o.schedule);
    options.schedule = &schedule;
  }
  if (s.step.empty() ? !std::isfinite(s.last_step) : s.last_step == s.step.back()) {
    return detail::reach_ahead({s.step, s.loss, s.weight}, *o.target, budget, options);
  }
  const auto and_then = [](std::vector<double> column, double value) {
    column.push_back(value);
    return column;
  };
  const std::vector<double> step = and_then(s.step, s.last_step),
                            loss = and_then(s.loss, std::numeric_limits<double>::quiet_NaN()),
                            weight = and_then(s.weight, 1);
  return detail::reach_ahead({step, loss, weight}, *o.target, budget, options);
}

/// With as many digits as it takes not to round to 0 or 100 % what may yet come otherwise; of less
/// than a millionth it does not matter how little it is.
std::string percent(double probability) {
  constexpr double kLeastShown = 1e-6;
  char text[32];
  if (0 < probability && probability < kLeastShown) return "< 0.0001 %";
  if (probability < 0.001) {
    std::snprintf(text, sizeof text, "%.2g %%", 100 * probability);
  } else {
    const double nines = probability < 1 ? std::ceil(-std::log10(1 - probability)) : 0.0;
    std::snprintf(text, sizeof text, "%.*f %%", std::max(static_cast<int>(nines) - 2, 1),
                  100 * probability);
  }
  return text;
}

/// With as many digits as a sentence needs. Steps are counts and keep all of theirs.
std::string loss_in_words(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", loss);
  return text;
}

/// A step with all of its digits, in groups of three: 41 200.
std::string step_in_words(double step) {
  std::string text = detail::sentence(step);
  if (text.find_first_not_of("-0123456789") != std::string::npos) return text;
  const std::size_t first = text.front() == '-' ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ' ');
  return text;
}

/// So many steps: 1 step, 41 200 steps.
std::string steps_in_words(double steps) {
  return step_in_words(steps) + (steps == 1 ? " step" : " steps");
}

/// What the probability of reaching the target means by now.
void weigh(const WatchState& s, const WatchOptions& o, double start, double budget, Decision& d) {
  // A run is looked at again and again, and ends at the first never. So the error rate is spent as
  // the budget is, in proportion to a power of its share: little while little is known.
  const double alpha = o.alpha;
  const double share = (s.last_step - start) / (budget - start);
  // By what is kept, as the newest begin anew at a restart.
  const double sign = o.direction == Direction::max ? -1.0 : 1.0;
  const double first = sign * s.first_loss;
  const double level = sign * tail_level(s.loss);
  const bool on_its_way = first - level >= kSettledWay * (first - sign * *o.target);
  const bool settled = share >= kSettledShare && (on_its_way || share >= kPlateauShare);
  const bool slow = settled && !gains(s, o, start, budget);
  const double spent = alpha * std::pow(share, kSpending);
  d.reason = detail::sentence("reaches ", loss_in_words(*o.target), " by step ",
                              step_in_words(budget), " with probability ", percent(d.probability));
  if (d.probability >= 1 - alpha) {
    d.verdict = Verdict::will_reach;
    d.reason += ", in " + steps_in_words(std::round(d.steps_to_target[1])) + " by the median";
  } else if (!(d.probability <= spent)) {
    d.reason += "; by now never is at most " + percent(spent) + ", will_reach at least " +
                percent(1 - alpha);
  } else if (slow) {
    d.verdict = Verdict::never;
    d.reason += ", no more than the " + percent(spent) + " that count as never by now";
  } else if (settled) {
    d.reason += ", gaining too much to call it never";
  } else if (share >= kSettledShare) {
    d.reason += ", too near its start to call it never";
  } else {
    d.reason += ", too early to call it never";
  }
}

}  // namespace

double open_budget(double first_step, double last_step) noexcept {
  const double start = std::min(first_step, 0.0);
  return std::min(start + kOpenBudget * (last_step - start), detail::kMaxStep);
}

Decision Watch::decision() const {
  const WatchState& s = state_;
  Decision d;
  d.steps_to_target = {kInfinity, kInfinity, kInfinity};
  d.probability = options_.target ? 0.0 : std::numeric_limits<double>::quiet_NaN();

  if (options_.target && std::isfinite(s.reached_step)) {
    d.verdict = Verdict::reached;
    d.probability = 1;
    d.steps_to_target = {0, 0, 0};
    d.reason = detail::sentence("target ", loss_in_words(*options_.target), " was reached at step ",
                                step_in_words(s.reached_step));
    return d;
  }
  if (detail::Gaps{s.trailing_nonfinite, s.longest_gap}.diverged()) {
    d.verdict = Verdict::diverged;
    d.reason = detail::sentence("the last ", s.trailing_nonfinite, " losses are not finite");
    return d;
  }
  const double now = now_of(s);
  const double start = s.step.empty() ? 0.0 : std::min(s.step.front(), 0.0);
  const double budget = options_.budget ? *options_.budget : open_budget(start, now);
  // Of a run that has made no step there is nothing to multiply.
  const bool has_budget = options_.budget || now > start;
  // Worse than the start by as much as the run ever improved on it. On the way to a target it may
  // come back.
  const bool may_come_back =
      options_.target && options_.budget && s.last_step - start < kPlateauShare * (budget - start);
  const double sign = options_.direction == Direction::max ? -1.0 : 1.0;
  const double first = sign * s.first_loss, best = sign * s.best_loss,
               tail = sign * tail_level(s.newest);
  const double margin = std::max(first - best, 0.5 * std::abs(first));
  if (s.step.size() >= 2 * kTailPoints && tail > first + margin && !may_come_back) {
    d.verdict = Verdict::diverged;
    d.reason = "the last points are around " + loss_in_words(sign * tail) + ", the run began at " +
               loss_in_words(s.first_loss) + " and its " + (sign < 0 ? "highest" : "lowest") +
               " value was " + loss_in_words(s.best_loss);
    return d;
  }
  if (!options_.target) {
    d.reason = "no target is set";
    return d;
  }
  if (has_budget && s.last_step >= budget) {
    d.verdict = Verdict::never;
    d.reason = "the budget of " + steps_in_words(budget) + " is spent and target " +
               loss_in_words(*options_.target) + " was not reached";
    return d;
  }
  const bool few = s.step.size() < detail::kMinWatchedPoints;
  if (few) {
    d.reason = detail::sentence(s.step.size(), s.step.size() == 1 ? " point is" : " points are",
                                " too few to tell");
  }
  if (!has_budget || (s.step.empty() && !(options_.past && options_.budget))) {
    d.probability = 0.5;  // nothing is known
    return d;
  }
  const Reach r = reach_now(s, options_, budget);
  d.probability = 1 - r.prob_never;
  for (std::size_t i = 0; i < kShownLevels.size(); ++i) {
    d.steps_to_target[i] = std::max(r.quantile(kShownLevels[i]) - now, 0.0);
  }
  if (!few) weigh(s, options_, start, budget, d);
  return d;
}

}  // namespace glidepath
