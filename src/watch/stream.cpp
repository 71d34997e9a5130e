// SPDX-License-Identifier: Apache-2.0
#include "glidepath/watch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "common/names.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "forecast/gaps.hpp"
#include "forecast/level.hpp"
#include "forecast/past_runs.hpp"
#include "trace/direction.hpp"

namespace glidepath {
namespace {

constexpr std::size_t kMaxKeptPoints = 128;  // points kept
constexpr std::size_t kMergedPoints = 96;    // points left after merging
constexpr std::size_t kUnmergedPoints = 32;  // newest points that are never merged
constexpr std::size_t kNewestLosses = 10;    // raw losses kept for the test of divergence
constexpr std::int64_t kMaxPoints = std::int64_t{1} << 53;  // of a state: a double counts them

/// Merges the neighbours that lie closest together, in time and in log time, until few are left.
void merge(WatchState& s) {
  const double span = s.step.back() - s.step.front();
  const double base = s.step.front() > 0 ? 0.0 : span * 1e-3 - s.step.front();
  while (s.step.size() > kMergedPoints) {
    std::size_t at = 0;
    double closest = detail::kInfinity;
    for (std::size_t i = 0; i + 1 + kUnmergedPoints < s.step.size(); ++i) {
      const double gap = s.step[i + 1] - s.step[i];
      const double cost = (gap / span + std::log((s.step[i + 1] + base) / (s.step[i] + base))) *
                          (s.weight[i] + s.weight[i + 1]);
      if (cost < closest) {
        closest = cost;
        at = i;
      }
    }
    const double a = s.weight[at], b = s.weight[at + 1];
    const auto mean = [&](double x, double y) {
      const double rounded = (a * x + b * y) / (a + b);  // it may lie beyond both, and overflow
      return std::isfinite(rounded) ? std::clamp(rounded, std::min(x, y), std::max(x, y))
                                    : std::lerp(x, y, b / (a + b));
    };
    s.step[at] = mean(s.step[at], s.step[at + 1]);
    s.loss[at] = mean(s.loss[at], s.loss[at + 1]);
    s.lr[at] = mean(s.lr[at], s.lr[at + 1]);
    s.weight[at] = a + b;
    const auto next = static_cast<std::ptrdiff_t>(at + 1);
    s.step.erase(s.step.begin() + next);
    s.loss.erase(s.loss.begin() + next);
    s.lr.erase(s.lr.begin() + next);
    s.weight.erase(s.weight.begin() + next);
  }
}

/// Takes the newest `points` losses out of the level. Those that it lacks then count as not at the
/// target until new ones take their place.
void forget(WatchState& s, double points) {
  constexpr double kBits = 64;
  s.at_target = points < kBits ? s.at_target >> static_cast<unsigned>(points) : 0;
}

/// NaN where there are none.
double best_of(const std::vector<double>& losses, Direction direction) {
  if (losses.empty()) return std::numeric_limits<double>::quiet_NaN();
  return direction == Direction::max ? std::ranges::max(losses) : std::ranges::min(losses);
}

/// Counts that add() brings about: a restart needs a point before it, and every point is finite or
/// not.
void refuse_counts(const WatchState& s) {
  if (s.points < 0 || s.points > kMaxPoints) {
    detail::refuse("watch: state has ", s.points, " points, expected 0 to ", kMaxPoints);
  }
  const auto within = [](const char* what, std::int64_t count, std::int64_t most) {
    if (count >= 0 && count <= most) return;
    detail::refuse("watch: state has ", count, " ", what, ", expected 0 to ", most);
  };
  within("points that are not finite", s.nonfinite, s.points);
  within("points that are not finite at its end", s.trailing_nonfinite, s.nonfinite);
  within("points that are not finite in a row", s.longest_gap, s.nonfinite - s.trailing_nonfinite);
  within("restarts", s.restarts, std::max<std::int64_t>(0, s.points - 1));
}

/// Losses of infinity count as points and are no more than that.
void refuse_losses(const WatchState& s) {
  for (const auto& [what, loss] :
       {std::pair{"first", s.first_loss}, std::pair{"best", s.best_loss}}) {
    if (!std::isinf(loss)) continue;
    detail::refuse("watch: state has the ", what, " loss ", loss, ", expected a finite one or nan");
  }
  if (std::isinf(s.reached_step) || s.reached_step > s.last_step) {
    detail::refuse("watch: state has reached its target at step ", s.reached_step,
                   ", its last step is ", s.last_step);
  }
}

/// Divergence is all that a watch without a target looks for, and no option changes what it is.
void refuse_without_target(const WatchOptions& options) {
  const WatchOptions plain;
  for (const auto& [name, given] : {
           std::pair{"budget", options.budget.has_value()},
           std::pair{"schedule", options.schedule.has_value()},
           std::pair{"past", options.past != nullptr},
           std::pair{"alpha", options.alpha != plain.alpha},
           std::pair{"reached_by", options.reached_by != plain.reached_by},
       }) {
    if (given) detail::refuse("watch: ", name, " without target");
  }
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  return detail::name_in(detail::Names<5>{"unknown", "reached", "will_reach", "never", "diverged"},
                         verdict);
}

Watch::Watch(WatchOptions options) : options_(std::move(options)) {
  if (options_.target && std::isnan(*options_.target)) {
    detail::refuse("watch: target is nan, expected a number");
  }
  if (options_.budget && !detail::is_step(*options_.budget)) {
    detail::refuse("watch: budget is ", *options_.budget, ", expected ", detail::kStepRange);
  }
  // Such as the -1 of frameworks, where it means no limit: not that the budget is spent.
  if (options_.budget && *options_.budget <= 0) {
    detail::refuse("watch: budget is ", *options_.budget, ", expected above 0");
  }
  detail::refuse_unknown(options_.direction, "watch: direction");
  detail::refuse_unknown(options_.reached_by, "watch: reached_by");
  if (!(options_.alpha > 0 && options_.alpha < 0.5)) {
    detail::refuse("watch: alpha is ", options_.alpha, ", expected above 0 and below 0.5");
  }
  if (options_.schedule) options_.schedule->validate();
  detail::refuse_other_direction(options_.past.get(), options_.direction);
  if (!options_.target) refuse_without_target(options_);
}

void Watch::add(double step, double loss, double lr) {
  WatchState& s = state_;
  if (!detail::is_step(step)) {
    detail::refuse("watch: step is ", step, ", expected ", detail::kStepRange);
  }
  if (!std::isnan(lr) && !options_.schedule) {
    detail::refuse("watch: learning rate ", lr, " at step ", step, " without a schedule");
  }
  if (lr < 0 || std::isinf(lr)) {
    detail::refuse("watch: learning rate ", lr, " at step ", step,
                   ", expected 0 or more and finite");
  }
  if (step <= s.last_step) {
    ++s.restarts;
    while (!s.step.empty() && s.step.back() >= step) {
      forget(s, s.weight.back());
      s.step.pop_back();
      s.loss.pop_back();
      s.weight.pop_back();
      s.lr.pop_back();
    }
    s.newest.clear();
    s.trailing_nonfinite = 0;
    s.best_loss = best_of(s.loss, options_.direction);
    if (s.reached_step >= step) s.reached_step = std::numeric_limits<double>::quiet_NaN();
  }
  s.last_step = step;
  ++s.points;
  if (s.newest.size() == kNewestLosses) s.newest.erase(s.newest.begin());
  s.newest.push_back(loss);
  detail::Gaps gaps{s.trailing_nonfinite, s.longest_gap};
  gaps.add(loss);
  s.trailing_nonfinite = gaps.now;
  s.longest_gap = gaps.longest;
  if (!std::isfinite(loss)) {
    ++s.nonfinite;
    return;
  }
  s.step.push_back(step);
  s.loss.push_back(loss);
  s.weight.push_back(1);
  s.lr.push_back(lr);
  const bool rising = options_.direction == Direction::max;
  if (s.step.size() <= 3) {
    std::vector<double> first = s.loss;
    // Of two the sum might overflow.
    s.first_loss = first.size() == 2 ? std::midpoint(first[0], first[1]) : detail::median(first);
  }
  if (!(rising ? loss <= s.best_loss : loss >= s.best_loss)) s.best_loss = loss;
  if (options_.target) {
    const double points = std::accumulate(s.weight.begin(), s.weight.end(), 0.0);
    detail::Level level{*options_.target, options_.direction, options_.reached_by,
                        static_cast<std::size_t>(points) - 1, s.at_target};
    const bool reached = level.add(loss);
    s.at_target = level.at_target;
    if (reached && std::isnan(s.reached_step)) s.reached_step = step;
  }
  if (s.step.size() > kMaxKeptPoints) merge(s);
}

void Watch::restore(WatchState state) {
  if (state.loss.size() != state.step.size() || state.weight.size() != state.step.size()) {
    detail::refuse("watch: state has ", state.step.size(), " steps, ", state.loss.size(),
                   " losses and ", state.weight.size(), " weights");
  }
  if (state.lr.size() != state.step.size()) {
    detail::refuse("watch: state has ", state.lr.size(), " learning rates for ", state.step.size(),
                   " steps");
  }
  validate(TraceView{state.step, state.loss, {}});
  double points = 0;
  for (std::size_t i = 0; i < state.weight.size(); ++i) {
    if (!(state.weight[i] >= 1) || !std::isfinite(state.weight[i]) ||
        !std::isfinite(state.loss[i])) {
      detail::refuse("watch: state has weight ", state.weight[i], " and loss ", state.loss[i],
                     " at point ", i, ", expected a weight of at least 1 and finite numbers");
    }
    if (state.lr[i] < 0 || std::isinf(state.lr[i])) {
      detail::refuse("watch: state has learning rate ", state.lr[i], " at point ", i,
                     ", expected 0 or more, or nan");
    }
    points += state.weight[i];
  }
  refuse_counts(state);
  if (points > static_cast<double>(state.points - state.nonfinite)) {
    detail::refuse("watch: state has points of weight ", points, " in all, of ",
                   state.points - state.nonfinite);
  }
  if (state.newest.size() > kNewestLosses) {
    detail::refuse("watch: state has ", state.newest.size(), " newest losses, expected at most ",
                   kNewestLosses);
  }
  const double latest = state.step.empty() ? -detail::kInfinity : state.step.back();
  if (!(state.last_step >= latest) || state.last_step > detail::kMaxStep) {
    detail::refuse("watch: state has last step ", state.last_step, ", expected ", latest, " to ",
                   detail::kMaxStep);
  }
  refuse_losses(state);
  state_ = std::move(state);
}

}  // namespace glidepath
