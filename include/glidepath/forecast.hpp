// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath {

/// Learning rate at the observed steps (`past`) and ahead of them; empty = unknown. `ahead` lies at
/// `ahead_step`, or at the forecast's own steps where `ahead_step` is empty. A schedule that is
/// constant, zero or mostly unknown is left out of account; gaps take the nearest earlier value.
struct LearningRate {
  std::span<const double> past{}, ahead{}, ahead_step{};
};

/// 0.05, 0.10 ... 0.95
[[nodiscard]] std::vector<double> default_levels();

/// The numbers of the model: shapes, discrepancy structures, annealing gains, widths. The library
/// carries a table learned by `bench/accuracy/learn_prior.py`; another one is read from its text.
struct ForecastConstants;
/// Throws InputError naming the line that cannot be read or the number that is missing.
[[nodiscard]] std::shared_ptr<const ForecastConstants> read_constants(std::string_view text);
/// Widths learned from finished runs: see calibrate().
struct Calibration {
  std::vector<double> horizon;  ///< log(step / last observed step), increasing; empty = none
  std::vector<double> factor;   ///< of the half-widths, one per horizon
  int runs = 0;                 ///< finished runs it was learned from
  /// The same for forecasts that know the learning rate ahead, from the runs that logged one; empty
  /// = no such run.
  std::vector<double> scheduled_factor{};
  int scheduled_runs = 0;
  /// False where those runs were forecast worse for knowing it: forecasts then leave it out of
  /// account.
  bool schedule_helps = true;
};

struct ForecastOptions {
  LearningRate learning_rate{};
  std::span<const Trace> past{};     ///< finished runs of the same user, model or study
  std::span<const double> levels{};  ///< in (0, 1), increasing; empty = default_levels()
  Direction direction = Direction::min;
  Calibration calibration{};
  std::shared_ptr<const ForecastConstants> constants{};  ///< empty = the learned table
};

enum class ForecastStatus : std::uint8_t {
  good,
  too_few_points,  ///< fewer than 3 finite points: the last value with a wide interval
  flat,            ///< all points equal: the value with 1 % of it as scale
  not_finite       ///< no finite point, or the run ended in NaN or infinity: it has failed
};
[[nodiscard]] std::string_view name(ForecastStatus status) noexcept;

namespace detail {
struct Law;
}

/// What the run will log, from what it has logged.
struct Forecast {
  std::vector<double> at, levels;
  std::vector<double> median;  ///< of the noise-free curve, one per step of `at`
  Rows quantiles;              ///< of the raw observation, (levels, at)
  Rows curve_quantiles;        ///< of the noise-free curve, (levels, at)
  ForecastStatus status = ForecastStatus::good;
  std::shared_ptr<const detail::Law> law;  ///< what quantile() and prob_below() read; opaque
};

/// Forecast at `steps` (strictly increasing, past the last observed one). Throws InputError on a
/// broken trace or steps; never returns NaN. Below 0.5 ms for 200 points.
[[nodiscard]] Forecast forecast(TraceView trace, std::span<const double> steps,
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
  std::vector<double> low, high;
};
/// The central interval that holds the observation with probability `coverage`, in (0, 1).
[[nodiscard]] ForecastInterval interval(const Forecast& forecast, double coverage);

/// Forecasts of a batch of runs, one row each.
struct ForecastBatch {
  std::vector<double> at, levels;
  Rows median;     ///< (rows, at)
  Rows quantiles;  ///< (levels x rows, at): all rows of the first level, then of the next
  std::vector<ForecastStatus> status;

  /// The quantiles at levels[level], (rows, at).
  [[nodiscard]] auto quantile_rows(std::size_t level) const {
    return quantiles.middleRows(static_cast<Eigen::Index>(level) * median.rows(), median.rows());
  }
};

/// Row i is forecast(row i of `losses` over `step`), byte for byte, whatever the threads.
[[nodiscard]] ForecastBatch forecast_batch(std::span<const double> step,
                                           Eigen::Ref<const Rows> losses,
                                           std::span<const double> steps,
                                           const ForecastOptions& options = {},
                                           const Execution& execution = {});

/// Law of the first step at which the curve is at or below a target (at or above, for a metric that
/// rises), with an atom at never.
struct Reach {
  std::vector<double> step;  ///< increasing grid from the last observed step to the budget
  std::vector<double> cdf;   ///< P(reached by step[i]), non-decreasing
  double prob_never = 1.0;   ///< 1 - cdf.back(): not inside the budget
  ForecastStatus status = ForecastStatus::good;

  [[nodiscard]] double prob_by(double at_step) const;
  /// Smallest step by which the target is reached with probability p; infinity if it is reached
  /// within the budget with probability below p.
  [[nodiscard]] double quantile(double p) const;
  /// The quantile given that the target is reached within the budget; infinity where it cannot be.
  [[nodiscard]] double quantile_if_reached(double p) const;
};

/// `budget` is an absolute step. A target already met is reached at the step where it was met.
[[nodiscard]] Reach reach(TraceView trace, double target, double budget,
                          const ForecastOptions& options = {});

/// Learns the widths that would have held on these finished runs (split conformal: the quantile of
/// |truth - median| / half-width over prefixes of each run, one score per run and horizon), shrunk
/// towards no change while runs are few. A run with a learning rate is forecast twice, without it
/// and with it: the widths of the two are wrong in their own ways, and for some kinds of run the
/// schedule misleads.
[[nodiscard]] Calibration calibrate(std::span<const Trace> finished,
                                    const ForecastOptions& options = {},
                                    const Execution& execution = {});

/// The same, one run at a time as runs finish (adaptive conformal inference, Gibbs and Candès
/// 2021): where the interval missed the run the factor grows by 8 %, where it held it falls by 2 %,
/// so that in the long run 80 % of the runs are covered, even if their kind changes. `before` may
/// be empty.
[[nodiscard]] Calibration calibrate_online(Calibration before, const Trace& finished,
                                           const ForecastOptions& options = {});

}  // namespace glidepath
