// SPDX-License-Identifier: Apache-2.0
#include "forecast/reach.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "common/interpolate.hpp"
#include "common/interrupt.hpp"
#include "common/numbers.hpp"
#include "common/parallel.hpp"
#include "common/require.hpp"
#include "forecast/beginning.hpp"
#include "forecast/ended_runs.hpp"
#include "forecast/gaps.hpp"
#include "forecast/law.hpp"
#include "forecast/level.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/survival.hpp"
#include "trace/counted.hpp"
#include "trace/direction.hpp"
#include "trace/naming_trace.hpp"

namespace glidepath {
namespace {

using detail::kInfinity;

// Steps from the last observed one to the budget, at least, and at most where these lie more than
// 8000 times apart: up to there the cells are no wider in log step than kMeanCell in the mean.
constexpr double kGridSteps = 60, kMaxGridSteps = 180, kMeanCell = 0.15;
constexpr double kMinCount = 1e-9;
constexpr double kMostCounted = 1e15;    // values of a log: weights may add up to more than a count
constexpr double kFirstOfBudget = 1e-3;  // share of the budget from which a grid before step 0 runs
constexpr double kSpreadOfNever = 3;     // in log steps, of a curve that stays above the target

/// The points that were logged with a number: where, and how many.
struct FinitePoints {
  std::vector<double> step{}, loss{}, weight{};

  explicit FinitePoints(TraceView trace) {
    for (std::size_t i = 0; i < trace.loss.size(); ++i) {
      if (!std::isfinite(trace.loss[i])) continue;
      step.push_back(trace.step[i]);
      loss.push_back(trace.loss[i]);
      if (!trace.weight.empty()) weight.push_back(trace.weight[i]);
    }
  }
  [[nodiscard]] TraceView view() const { return {step, loss, weight}; }
};

/// Values logged at the points from `first` on.
double logged(TraceView trace, std::size_t first) {
  if (trace.weight.empty()) return static_cast<double>(trace.step.size() - first);
  const auto weight = trace.weight.subspan(first);
  return std::accumulate(weight.begin(), weight.end(), 0.0);
}

/// Observations per step over the later half of the trace; of a single point, one in the steps that
/// led to it.
double density_of(TraceView trace) {
  const std::size_t n = trace.step.size(), half = n / 2;
  if (n == 0) return 1;
  if (n == 1) return 1 / (trace.step[0] + detail::step_shift(trace.step));
  return logged(trace, half) / (trace.step[n - 1] - trace.step[half - 1]);
}

/// The point at which the target was reached, or the size of the trace.
std::size_t first_at(TraceView trace, double target, const ForecastOptions& options) {
  detail::Level level{target, options.direction, detail::reading(options)};
  const auto hit = std::ranges::find_if(trace.loss, [&](double loss) { return level.add(loss); });
  return static_cast<std::size_t>(hit - trace.loss.begin());
}

/// Steps after `last` up to the budget, even in the root of how far ahead they are in the logarithm
/// of the shifted step. So they are dense where the next observations fall, however far the budget.
std::vector<double> grid_to(double budget, double last, double shift) {
  std::vector<double> steps;
  const double from = last + shift, ratio = (budget + shift) / from;
  const double cells =
      std::clamp(std::ceil(std::log(ratio) / kMeanCell), kGridSteps, kMaxGridSteps);
  for (double i = 1; i < cells; ++i) {
    const double step = from * std::pow(ratio, i / cells * (i / cells)) - shift;
    if (step > (steps.empty() ? last : steps.back()) && step < budget) steps.push_back(step);
  }
  steps.push_back(budget);
  return steps;
}

/// What the grid adds to the steps of a trace: a log that begins late is seen by its own clock, by
/// which the steps soon after it are many.
double grid_shift(TraceView trace, double budget) {
  if (trace.step.empty()) return kFirstOfBudget * budget;
  const std::vector<double> once(trace.weight.empty() ? trace.step.size() : 0, 1.0);
  const auto count = trace.weight.empty() ? std::span<const double>(once) : trace.weight;
  return detail::step_shift(trace.step) - detail::steps_before(trace.step, count);
}

/// Mixes in what the past runs that ended say, by how narrow it is beside the curve's own law. What
/// they say of an easier target bounds it from above: there more of them count.
void mix_in_ended_runs(TraceView trace, const ForecastOptions& options, Reach& r) {
  if (options.past == nullptr) return;
  const auto laws = detail::laws_of_end(trace, r.target, options, *options.past);
  if (laws.empty()) return;
  double spread = kSpreadOfNever;
  if (r.cdf.back() > 0) {
    const double shift = laws.front().shift;
    spread = std::log((r.quantile_if_reached(0.9) + shift) / (r.quantile_if_reached(0.1) + shift));
  }
  const std::vector<double> curve = r.cdf;
  for (const detail::EndLaw& law : laws) {
    if (law.runs == 0) continue;
    const double weight = law.weight(spread);
    for (std::size_t i = 1; i < curve.size(); ++i) {
      const double mixed = curve[i] + weight * (law.cdf(r.step[i]) - curve[i]);
      r.cdf[i] = &law == &laws.front() ? mixed : std::min(r.cdf[i], mixed);
    }
  }
}

/// P(reached by each step of the grid) as the law of the curve has it.
void follow_curve(const detail::Law& law, double target, TraceView trace, ReachedBy reached_by,
                  Reach& r) {
  const auto points = static_cast<std::size_t>(std::min(logged(trace, 0), kMostCounted));
  detail::Survival survival(law, target, level_window(reached_by, points));
  const double density = density_of(trace);
  for (std::size_t j = 1; j < r.step.size(); ++j) {
    const double count = std::clamp(density * (r.step[j] - r.step[j - 1]), kMinCount, kMostCounted);
    const double never = survival.past(j - 1, count);
    r.cdf.push_back(std::clamp(1 - never, r.cdf.back(), 1.0));
  }
}

/// The law of a run that has hardly begun, from past runs; false where they tell nothing.
bool begin_reach(TraceView trace, std::span<const double> steps, const ForecastOptions& options,
                 Reach& r) {
  if (options.past == nullptr) return false;
  const auto finite = std::ranges::count_if(trace.loss, [](double y) { return std::isfinite(y); });
  if (finite >= detail::kMinModelled || detail::gaps_of(trace.loss).diverged()) return false;
  const auto cdf = detail::arrivals(trace, r.target, steps, options);
  if (!cdf) return false;
  r.status = ForecastStatus::good;
  r.step.insert(r.step.end(), steps.begin(), steps.end());
  r.cdf.insert(r.cdf.end(), cdf->begin(), cdf->end());
  r.prob_never = 1 - r.cdf.back();
  return true;
}

/// Refuses a law of one's own whose columns differ.
void refuse_uneven(const Reach& law) {
  if (law.step.size() == law.cdf.size()) return;
  detail::refuse("reach: ", law.step.size(), " steps but ", law.cdf.size(),
                 " probabilities, expected as many");
}

}  // namespace

double Reach::prob_by(double at_step) const {
  refuse_uneven(*this);
  if (std::isnan(at_step)) detail::refuse("reach: step is nan, expected a number");
  if (step.empty() || !(at_step >= step.front())) return 0;
  return detail::interpolate(at_step, step, cdf);
}

double Reach::quantile(double p) const {
  if (!(p >= 0 && p <= 1)) detail::refuse("reach: p is ", p, ", expected 0 to 1");
  refuse_uneven(*this);
  if (cdf.empty() || p > cdf.back()) return kInfinity;
  const auto above = std::ranges::lower_bound(cdf, p);
  const auto i = static_cast<std::size_t>(above - cdf.begin());
  if (i == 0) return step[0];
  return step[i - 1] + (step[i] - step[i - 1]) * ((p - cdf[i - 1]) / (cdf[i] - cdf[i - 1]));
}

double Reach::quantile_if_reached(double p) const {
  if (!(p >= 0 && p <= 1)) detail::refuse("reach: p is ", p, ", expected 0 to 1");
  if (cdf.empty() || cdf.back() == 0) return kInfinity;
  return quantile(p * cdf.back());
}

std::vector<double> Reach::remaining_steps(int n) const {
  if (n < 1) detail::refuse("reach: remaining_steps is ", n, ", expected at least 1");
  std::vector<double> remaining;
  remaining.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    const double at = quantile((i + 0.5) / n);
    remaining.push_back(std::isinf(at) ? kInfinity : std::max(at - step.front(), 0.0));
  }
  return remaining;
}

void detail::refuse_bad_reach(const char* verb, double budget, const ForecastOptions& options) {
  if (!is_step(budget)) refuse(verb, ": budget is ", budget, ", expected ", kStepRange);
  if (!options.levels.empty()) refuse(verb, ": levels are for forecast()");
  refuse_unknown(options.direction, std::string(verb) + ": direction");
  refuse_unknown(reading(options), std::string(verb) + ": reached_by");
  refuse_other_direction(options.past, options.direction);
  if (options.schedule != nullptr) options.schedule->validate();
}

Reach reach(TraceView given, double target, double budget, const ForecastOptions& asked) {
  validate(given);
  const ForecastOptions options = detail::read_by(given.metric, asked);
  const detail::Counted counted(given);
  const TraceView trace = counted.view();
  if (std::isnan(target)) detail::refuse("reach: target is nan, expected a number");
  detail::refuse_bad_reach("reach", budget, options);
  const std::size_t hit = first_at(trace, target, options);
  if (hit < trace.step.size() && trace.step[hit] <= budget) {
    return {.step = {trace.step[hit]},
            .cdf = {1.0},
            .prob_never = 0,
            .target = target,
            .budget = budget};
  }
  if (detail::gaps_of(trace.loss).diverged()) {
    return {.step = {trace.step.back()},
            .cdf = {0.0},
            .prob_never = 1,
            .target = target,
            .budget = budget,
            .status = ForecastStatus::not_finite};
  }
  return detail::reach_ahead(trace, target, budget, options);
}

detail::ReachByCurve detail::reach_by_curve(TraceView trace, double target, double budget,
                                            const ForecastOptions& options) {
  check_interrupt();
  const bool rising = options.direction == Direction::max;
  ReachByCurve found{.reach = {.target = target, .budget = budget}};
  Reach& r = found.reach;
  const double last = trace.step.empty() ? 0.0 : trace.step.back();
  r.step = {last};
  r.cdf = {0.0};
  const FinitePoints finite(trace);
  if (finite.step.empty()) r.status = ForecastStatus::too_few_points;
  if (budget <= last) return found;
  const TraceView logged_points = finite.step.empty() ? trace : finite.view();
  const std::vector<double> steps = grid_to(budget, last, grid_shift(logged_points, budget));
  if (begin_reach(trace, steps, options, r) || finite.step.empty()) return found;
  const detail::Predicted predicted =
      detail::predict_law(trace, steps, steps.size(), options, detail::Use::decision, target);
  const detail::Law& law = predicted.law;
  r.status = predicted.prepared.status;
  r.step.insert(r.step.end(), steps.begin(), steps.end());
  const double z = law.coordinate.z(target);
  found.of_curve = rising ? target <= law.coordinate.ceiling : target >= law.coordinate.floor;
  if (!found.of_curve) {
    r.cdf.resize(r.step.size(), 0.0);
  } else {
    follow_curve(law, z, logged_points, detail::reading(options), r);
  }
  r.prob_never = 1 - r.cdf.back();
  return found;
}

Reach detail::reach_ahead(TraceView trace, double target, double budget,
                          const ForecastOptions& options) {
  auto [r, of_curve] = reach_by_curve(trace, target, budget, options);
  if (of_curve && !gaps_of(trace.loss).diverged()) {
    mix_in_ended_runs(FinitePoints(trace).view(), options, r);
  }
  r.prob_never = 1 - r.cdf.back();
  return r;
}

std::vector<Reach> reach_batch(std::span<const TraceView> traces, std::span<const double> targets,
                               std::span<const double> budgets, const ForecastOptions& options,
                               const Execution& execution) {
  const auto fits = [&](std::span<const double> values, const char* name) {
    if (values.size() != 1 && values.size() != traces.size()) {
      detail::refuse("reach_batch: ", traces.size(), " traces but ", values.size(), ' ', name);
    }
  };
  fits(targets, "targets");
  fits(budgets, "budgets");
  const auto value = [](std::span<const double> values, std::size_t i) {
    return values.size() == 1 ? values[0] : values[i];
  };
  std::vector<Reach> found(traces.size());
  detail::for_each_block(
      std::ssize(traces), 1, execution, [&](std::ptrdiff_t begin, std::ptrdiff_t) {
        const auto i = static_cast<std::size_t>(begin);
        detail::naming_trace("reach_batch", i, traces.size(), [&] {
          found[i] = reach(traces[i], value(targets, i), value(budgets, i), options);
        });
      });
  return found;
}

}  // namespace glidepath
