// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/rows.hpp"
#include "glidepath/trace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath::detail {
struct Law;
struct SharedPassages;
}  // namespace glidepath::detail

#pragma GCC visibility push(default)
namespace glidepath {

/// 0.05, 0.10 ... 0.95
[[nodiscard]] std::vector<double> default_levels();

/// The numbers of the model: shapes, discrepancy structures, annealing gains, widths. The library
/// carries a table learned by `bench/accuracy/learn_prior.py`; another one is read from its text.
struct ForecastConstants;
/// Throws InputError naming the line that cannot be read or the number that is missing.
[[nodiscard]] std::shared_ptr<const ForecastConstants> read_constants(std::string_view text);

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

/// How much one setting says about how a run goes.
struct Relevance {
  std::string setting{};
  double weight = 0;  ///< of its square differences; 0 = it does not count
  double spread = 1;  ///< standard deviation of its logarithm; two words differ by 1

  bool operator==(const Relevance&) const = default;
};

/// Finished runs of the same user, model or study, all of one direction, and what was learned from
/// them once. Each run serves as the shape of a curve; the shapes get as much weight as these runs
/// earn by predicting each other from the live run's step on. The widths are those that
/// would have held (split conformal: the quantile of |truth - median| / half-width over prefixes of
/// each of the newest fifty runs, one score per run and horizon), shrunk towards no change while
/// runs are few and as far as they would raise the CRPS of those runs. They widen forecasts, not
/// times to target. A run with a learning rate is forecast twice, without it and with it, because
/// the widths of the two are wrong in their own ways and for some kinds of run the schedule
/// misleads. Which settings matter is learned from how well runs with similar settings predict
/// each other.
class PastRuns {
 public:
  /// Knows nothing yet.
  PastRuns() = default;
  /// The newest run comes last. Throws InputError on a broken run or runs of both directions.
  explicit PastRuns(std::vector<Trace> traces, const Execution& execution = {},
                    const std::shared_ptr<const ForecastConstants>& constants = {});
  /// Runs as shapes and by their settings; no widths are learned.
  [[nodiscard]] static PastRuns unlearned(std::vector<Trace> traces);
  /// What was learned before. Throws InputError on widths of another kind: factors that are
  /// not positive, horizons that do not increase, columns of different length.
  [[nodiscard]] static PastRuns restored(std::vector<Trace> traces, Widths widths);

  /// With one more run, whose kind may have changed (adaptive conformal inference, Gibbs and Candès
  /// 2021): where the run left the interval the factor grows by 8 %, where it held it falls by
  /// 2 %, so that in the long run 80 % of the runs are covered.
  [[nodiscard]] PastRuns update(
      Trace trace, const std::shared_ptr<const ForecastConstants>& constants = {}) const;

  [[nodiscard]] const std::vector<Trace>& runs() const noexcept { return runs_; }
  [[nodiscard]] const Widths& widths() const noexcept { return widths_; }
  /// One for each setting in which the runs differ; empty where fewer than three runs have any.
  [[nodiscard]] const std::vector<Relevance>& relevance() const noexcept { return relevance_; }

 private:
  friend struct detail::SharedPassages;

  std::vector<Trace> runs_{};
  std::shared_ptr<detail::SharedPassages> passages_{};  ///< of all copies; none without runs
  Widths widths_{};
  std::vector<Relevance> relevance_{};
};

/// When a run has reached a target. A run is at the target where the median of its newest
/// `level_window` logged values is at or beyond it; values that are not finite do not count.
enum class ReachedBy : std::uint8_t {
  curve,  ///< by its level: noise, such as that of a lucky batch, decides nothing
  point   ///< by one logged value, of evaluations and scores: the window is 1
};
[[nodiscard]] std::string_view name(ReachedBy reached_by) noexcept;  ///< "curve" or "point"
/// Throws InputError on any other text.
[[nodiscard]] ReachedBy reached_by_named(std::string_view text);
/// How many of the newest of `points` logged values make the level: with `curve` the largest odd
/// number in a tenth of them, or in 5 where a tenth is less, but not in more than a quarter nor in
/// more than 63; at least 1. So a log of up to eleven values is read value by value.
[[nodiscard]] std::size_t level_window(ReachedBy reached_by, std::size_t points) noexcept;

/// Levels of the quantiles that an answer shows by default.
inline constexpr std::array kShownLevels{0.1, 0.5, 0.9};

/// `schedule`, `past` and `levels` are borrowed: they must outlive the call.
struct ForecastOptions {
  /// Learning rate of the whole run. Where the trace logged a rate, that one counts for the past;
  /// InputError where the schedule contradicts the log. A schedule that is zero changes no
  /// forecast, nor does a constant one unless the log begins late: it has no effect that could be
  /// foreseen, but tells of the time before the log. After its last step no time passes in the
  /// clock of the learning rate.
  const Schedule* schedule = nullptr;
  const PastRuns* past = nullptr;  ///< of the same direction
  /// In (0, 1), increasing; empty = default_levels(). Refused by reach() and best_so_far().
  std::span<const double> levels{};
  Direction direction = Direction::min;
  std::optional<ReachedBy> reached_by{};  ///< empty = by the metric's name; not of forecast()
  std::shared_ptr<const ForecastConstants> constants{};  ///< empty = the learned table
};

enum class ForecastStatus : std::uint8_t {
  good,
  too_few_points,  ///< fewer than 3 finite points: the last value with a wide interval
  flat,            ///< all points equal: the value with 1 % of it as scale
  not_finite  ///< no finite point, or the run failed: it ended with a longer streak of non-finite
              ///< losses than any that it recovered from
};
[[nodiscard]] std::string_view name(ForecastStatus status) noexcept;

/// What the run will log, from what it has logged.
struct Forecast {
  std::vector<double> at{}, levels{};
  std::vector<double> median{};  ///< of the noise-free curve, one per step of `at`
  Rows quantiles{};              ///< of the raw observation, (levels, at)
  Rows curve_quantiles{};        ///< of the noise-free curve, (levels, at)
  ForecastStatus status = ForecastStatus::good;
  std::shared_ptr<const detail::Law> law{};  ///< what quantile() and prob_below() read; opaque
};

/// Forecast at the steps `at` (strictly increasing, past the last observed one). Throws InputError
/// on a broken trace or steps; never returns NaN. Below 0.5 ms for 200 points.
[[nodiscard]] Forecast forecast(TraceView trace, std::span<const double> at,
                                const ForecastOptions& options = {});

/// Quantile p of the raw observation at each step of `at`, p in (0, 1). This and the next three
/// throw InputError on a Forecast that forecast() did not make.
[[nodiscard]] std::vector<double> quantile(const Forecast& forecast, double p);
/// The same of the noise-free curve.
[[nodiscard]] std::vector<double> curve_quantile(const Forecast& forecast, double p);
/// P(observation at or below `target`) at each step of `at`.
[[nodiscard]] std::vector<double> prob_below(const Forecast& forecast, double target);

/// Between two quantiles of the raw observation, at each step.
struct ForecastInterval {
  std::vector<double> low{}, high{};
};
/// The central interval that holds the observation with probability `coverage`, in (0, 1).
[[nodiscard]] ForecastInterval interval(const Forecast& forecast, double coverage);

/// Forecasts of a batch of runs, one row each.
struct ForecastBatch {
  std::vector<double> at{}, levels{};
  Rows median{};     ///< (rows, at)
  Rows quantiles{};  ///< (levels x rows, at): all rows of the first level, then of the next
  std::vector<ForecastStatus> status{};

  /// The quantiles at levels[level], (rows, at).
  [[nodiscard]] RowsView quantile_rows(std::size_t level) const {
    const auto first = static_cast<std::ptrdiff_t>(level) * median.rows();
    return RowsView(quantiles).middle_rows(first, median.rows());
  }
};

/// Row i is forecast(row i of `loss` over `step`), byte for byte, for any number of threads.
[[nodiscard]] ForecastBatch forecast_batch(std::span<const double> step, RowsView loss,
                                           std::span<const double> at,
                                           const ForecastOptions& options = {},
                                           const Execution& execution = {});

/// Law of the first step at which a run has reached a target (ReachedBy), with an atom at never.
struct Reach {
  std::vector<double> step{};  ///< increasing grid from the last observed step to the budget
  std::vector<double> cdf{};   ///< P(reached by step[i]), non-decreasing
  double prob_never = 1.0;     ///< 1 - cdf.back(): not within the budget
  double target = 0, budget = 0;
  ForecastStatus status = ForecastStatus::good;

  [[nodiscard]] double prob_by(double at_step) const;
  /// Smallest step by which the target is reached with probability p; infinity if it is reached
  /// within the budget with probability below p. Both throw InputError on a p out of [0, 1].
  [[nodiscard]] double quantile(double p) const;
  /// The quantile given that the target is reached within the budget; infinity where it cannot be.
  [[nodiscard]] double quantile_if_reached(double p) const;
  /// `n` equally likely numbers of steps from the last observed one to the target, increasing and
  /// not negative: 0 where it is reached already, infinity for never. InputError on n below 1.
  [[nodiscard]] std::vector<double> remaining_steps(int n) const;
};

/// `budget` is an absolute step; a target reached before is reached then. Throws as forecast().
[[nodiscard]] Reach reach(TraceView trace, double target, double budget,
                          const ForecastOptions& options = {});

/// One reach per trace, of its own target and budget or the one for all. Entry i is the reach of
/// trace i, byte for byte, for any number of threads. Throws InputError naming the trace.
[[nodiscard]] std::vector<Reach> reach_batch(std::span<const TraceView> traces,
                                             std::span<const double> targets,
                                             std::span<const double> budgets,
                                             const ForecastOptions& options = {},
                                             const Execution& execution = {});

/// The best level of a run so far, and the probability that it stays the best. A level is the
/// median of `level_window` logged values, as for a target (ReachedBy).
struct BestSoFar {
  double step = std::numeric_limits<double>::quiet_NaN();   ///< at which it was reached
  double value = std::numeric_limits<double>::quiet_NaN();  ///< NaN where no value is finite
  /// Probability that no level after the last observed step, up to the budget, is better; NaN where
  /// no value is finite.
  double prob_past = std::numeric_limits<double>::quiet_NaN();
  double budget = 0;
  ForecastStatus status = ForecastStatus::good;
};

/// `budget` is an absolute step; nothing comes after it. Costs a reach(), and throws as it does.
[[nodiscard]] BestSoFar best_so_far(TraceView trace, double budget,
                                    const ForecastOptions& options = {});

}  // namespace glidepath
#pragma GCC visibility pop
