// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/trace.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath {

/// 0.05, 0.10 ... 0.95
[[nodiscard]] std::vector<double> default_levels();

/// The numbers of the model: shapes, discrepancy structures, annealing gains, widths. The library
/// carries a table learned by `bench/accuracy/learn_prior.py`; another one is read from its text.
struct ForecastConstants;
/// Throws InputError naming the line that cannot be read.
[[nodiscard]] std::shared_ptr<const ForecastConstants> read_constants(std::string_view text);
/// Text of the compiled-in tables: "learned" (the default) or "prototype" (published with the
/// method, for comparison). Throws InputError on another name.
[[nodiscard]] std::string_view constants_named(std::string_view name);

/// Factors of the half-widths of the 80 % interval, learned from finished runs.
struct Widths {
  std::vector<double> horizon{};  ///< log(step / last observed step), increasing; empty = none
  std::vector<double> factor{};   ///< one per horizon
  int runs = 0;                   ///< finished runs behind them
  /// The same for forecasts under a schedule, from the runs that logged a learning rate; empty = no
  /// such run.
  std::vector<double> scheduled_factor{};
  int scheduled_runs = 0;
  /// False where those runs were forecast worse with their schedule: forecasts then leave it out.
  bool schedule_helps = true;

  bool operator==(const Widths&) const = default;
};

/// Finished runs of the same user, model or study, all of one direction, and what was learned from
/// them once. Each run serves as the shape of a curve. The widths are those that would have held
/// (split conformal: the quantile of |truth - median| / half-width over prefixes of each of the
/// newest fifty runs, one score per run and horizon), shrunk towards no change while runs are few.
/// A run with a learning rate is forecast twice, without it and with it, because the widths of the
/// two are wrong in their own ways and for some kinds of run the schedule misleads.
class PastRuns {
 public:
  /// Knows nothing yet.
  PastRuns() = default;
  /// The newest run comes last. Throws InputError on a broken run or runs of both directions.
  explicit PastRuns(std::vector<Trace> runs, const Execution& execution = {},
                    const std::shared_ptr<const ForecastConstants>& constants = {});
  /// Runs as shapes only: no widths are learned.
  [[nodiscard]] static PastRuns unlearned(std::vector<Trace> runs);
  /// What was learned before. Throws InputError on widths of another kind: factors that are
  /// not positive, horizons that do not increase, columns of different length.
  [[nodiscard]] static PastRuns restored(std::vector<Trace> runs, Widths widths);

  /// With one more run, whose kind may have changed (adaptive conformal inference, Gibbs and Candès
  /// 2021): where the interval missed the run the factor grows by 8 %, where it held it falls by
  /// 2 %, so that in the long run 80 % of the runs are covered.
  [[nodiscard]] PastRuns update(
      Trace finished, const std::shared_ptr<const ForecastConstants>& constants = {}) const;

  [[nodiscard]] const std::vector<Trace>& runs() const noexcept { return runs_; }
  [[nodiscard]] const Widths& widths() const noexcept { return widths_; }

 private:
  std::vector<Trace> runs_{};
  Widths widths_{};
};

/// `schedule`, `past` and `levels` are borrowed: they must outlive the call.
struct ForecastOptions {
  /// Learning rate of the whole run. Where the trace logged a rate, that one counts for the past;
  /// InputError where the schedule contradicts the log. A schedule that is constant or zero changes
  /// no forecast: it has no effect that could be foreseen. After its last step no time passes in
  /// the clock of the learning rate.
  const Schedule* schedule = nullptr;
  const PastRuns* past = nullptr;    ///< of the same direction
  std::span<const double> levels{};  ///< in (0, 1), increasing; empty = default_levels()
  Direction direction = Direction::min;
  std::shared_ptr<const ForecastConstants> constants{};  ///< empty = the learned table
};

enum class ForecastStatus : std::uint8_t {
  good,
  too_few_points,  ///< fewer than 3 finite points: the last value with a wide interval
  flat,            ///< all points equal: the value with 1 % of it as scale
  not_finite       ///< no finite point, or the run ended in NaN or infinity: it has failed
};
[[nodiscard]] std::string_view name(ForecastStatus status) noexcept;

/// The predictive law: at each knot a mixture of Student-t in z, where z is an increasing function
/// of the metric (its logarithm, unless it can be negative). Between knots quantiles are linear in
/// log step.
struct ForecastLaw {
  std::vector<double> knots;              ///< steps, increasing
  std::vector<double> weight;             ///< of the components, summing to 1
  std::vector<double> location, scale;    ///< (knots, components) row-major
  std::vector<double> noise, stretch;     ///< per knot: of a raw observation around the curve, and
                                          ///< the factor of the half-widths
  double degrees = 3;                     ///< of freedom
  double lowest = 0, highest = 0;         ///< clip of z
  double step_shift = 0;                  ///< knots = steps + shift, for runs that count from 0
  double offset = 0, sign = 1, unit = 1;  ///< metric = sign * (unit * g(z) - offset)
  bool logarithmic = true;                ///< g = exp, or the identity
  double floor = 0, ceiling = 0;          ///< what the metric allows
};

/// What the run will log, from what it has logged.
struct Forecast {
  std::vector<double> at, levels;
  std::vector<double> median;           ///< of the noise-free curve, one per step
  std::vector<double> quantiles;        ///< of the raw observation, (levels, steps) row-major
  std::vector<double> curve_quantiles;  ///< of the noise-free curve, same layout
  ForecastStatus status = ForecastStatus::good;
  ForecastLaw law;
};

/// Forecast at the steps `at` (strictly increasing, past the last observed one). Throws InputError
/// on a broken trace or steps; never returns NaN. Below 0.5 ms for 200 points.
[[nodiscard]] Forecast forecast(TraceView trace, std::span<const double> at,
                                const ForecastOptions& options = {});

/// Quantiles of the raw observation (`raw`) or of the noise-free curve at each of the steps.
[[nodiscard]] std::vector<double> quantile(const Forecast& forecast, double level, bool raw = true);
/// P(observation at or below `target`) at each of the steps.
[[nodiscard]] std::vector<double> prob_below(const Forecast& forecast, double target);

/// Forecasts of a batch: `median` (rows, steps), `quantiles` (levels, rows, steps).
struct ForecastBatch {
  std::vector<double> at, levels, median, quantiles;
  std::vector<ForecastStatus> status;
};

/// Row i is forecast(row i of `losses` over `step`), byte for byte, for any number of threads.
[[nodiscard]] ForecastBatch forecast_batch(std::span<const double> step,
                                           Eigen::Ref<const Rows> losses,
                                           std::span<const double> at,
                                           const ForecastOptions& options = {},
                                           const Execution& execution = {});

/// Law of the first step at which the curve is at or below a target (at or above, for a metric that
/// rises), with an atom at never.
struct Reach {
  std::vector<double> step{};  ///< increasing grid from the last observed step to the budget
  std::vector<double> cdf{};   ///< P(reached by step[i]), non-decreasing
  double prob_never = 1.0;     ///< 1 - cdf.back(): not within the budget
  double target = 0, budget = 0;
  ForecastStatus status = ForecastStatus::good;

  [[nodiscard]] double prob_by(double at_step) const;
  /// Smallest step by which the target is reached with probability p; infinity if it is reached
  /// within the budget with probability below p.
  [[nodiscard]] double quantile(double p) const;
  /// The quantile given that the target is reached within the budget; infinity where it cannot be.
  [[nodiscard]] double quantile_if_reached(double p) const;
  /// `count` equally likely numbers of steps from the last observed one to the target, increasing
  /// and not negative: 0 where it is reached already, infinity for never.
  [[nodiscard]] std::vector<double> remaining_steps(int count) const;
};

/// `budget` is an absolute step. A target already met is reached at the step where it was met.
[[nodiscard]] Reach reach(TraceView trace, double target, double budget,
                          const ForecastOptions& options = {});

/// One reach per trace. `targets` and `budgets` have one value per trace, or one for all; the
/// options hold for all. Entry i is the reach of trace i, byte for byte, for any number of threads.
[[nodiscard]] std::vector<Reach> reach_batch(std::span<const TraceView> traces,
                                             std::span<const double> targets,
                                             std::span<const double> budgets,
                                             const ForecastOptions& options = {},
                                             const Execution& execution = {});

}  // namespace glidepath
