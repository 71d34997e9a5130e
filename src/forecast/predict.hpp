// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "forecast/annealing.hpp"
#include "forecast/constants.hpp"
#include "forecast/prepare.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {

/// Steps ahead are taken as at least this multiple of the last one, so that the logarithm is not 0.
inline constexpr double kMinAhead = 1.0001;
/// The learned corrections stay as they are from this logarithm of the distance on.
inline constexpr double kMaxLogAhead = 2.5;
/// A log that begins past this share of its last step shows too little of its run to correct what a
/// known schedule says.
inline constexpr double kLateLog = 0.4;
[[nodiscard]] inline bool shows_too_little(const Prepared& run) {
  return run.step.front() >= kLateLog * run.step.back();
}

/// A past run as a shape: its steps and its metric in the coordinate z of the live run.
struct Template {
  std::vector<double> step, z;
};

/// A run in relative time: that of its steps, or of the plan where one is known, and then of the
/// points at which time passes only (at lr = 0 none does). Borrows both.
struct Observed {
  const Prepared& run;
  const Annealing& plan;
  Points points;

  Observed(const Prepared& run, const Annealing& plan);
  [[nodiscard]] double last() const { return run.step.back(); }
  /// Relative time of a step after the last one, at least 1.
  [[nodiscard]] double ahead(double step) const;

 private:
  double unit_ = 1;
};

/// What the points of a run say.
struct Evidence {
  double log_gain_over_level = 0;  ///< how much more probable they are by the shapes than as a
                                   ///< level with noise
  double past = 0;                 ///< share of the mixture that goes by the shapes of past runs
};

/// The mixture over all nodes (shape, structure, annealing gain) at the shifted steps `queries`.
/// The run has status good. `narrowing` is a factor of the scales of shapes, which leaves what is
/// not known of the gain. `evidence`, where given, is filled in.
[[nodiscard]] Mixture predict(const Observed& observed, std::span<const double> queries,
                              std::span<const Template> past, const ForecastConstants& constants,
                              double narrowing = 1, Evidence* evidence = nullptr);

/// Mixes in what past runs did from this step on, those most that were like this one so far
/// (docs/method/past_runs.md, "Analogy"). `step` and `z` are the live run. Returns the error that
/// the past runs would have made about each other from this step on, as a share of the error of
/// their last levels; 1 for a single run.
double mix_in_analogy(std::span<const double> step, std::span<const double> z,
                      std::span<const double> queries, std::span<const Template> past,
                      const ForecastConstants& constants, Mixture& mixture);

/// What a forecast of the last 30 % of the steps from those before says about a known schedule.
struct Backtest {
  /// Factor of the widths, at most 1: how well the shapes follow the run, not how large the gain of
  /// the annealing is.
  double width = 1;
  /// Share of the mixture that follows the schedule; the rest does not know it.
  double scheduled = 1;
};
/// Both 1 without a schedule, and where the log is too short or begins too late to test; of a late
/// log all follows the schedule.
[[nodiscard]] Backtest backtest(const Prepared& prepared, const Annealing& plan,
                                const ForecastConstants& constants);

/// Factor of the widths of intervals without a schedule: how well this run was forecast from its
/// first half and its first 70 %. 1 where it is too short for either.
[[nodiscard]] double width_by_backtest(const Prepared& prepared,
                                       const ForecastConstants& constants);

}  // namespace glidepath::detail
