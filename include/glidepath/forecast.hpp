// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/trace.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace glidepath {

/// Learning rate at the observed steps (`past`) and at the forecast's steps (`ahead`); empty =
/// unknown.
struct LearningRate {
  std::span<const double> past{}, ahead{};
};

/// 0.05, 0.10 ... 0.95
[[nodiscard]] std::vector<double> default_levels();

struct ForecastOptions {
  LearningRate learning_rate{};
  std::span<const Trace> past{};  ///< finished runs of the same user, model or study
  std::span<const double>
      levels{};  ///< quantile levels in (0, 1), increasing; empty = default_levels()
};

enum class ForecastStatus : std::uint8_t { good, too_few_points, flat, not_finite };

/// What the run will log, from what it has logged.
struct Forecast {
  std::vector<double> steps, levels;
  std::vector<double> mean;             ///< point forecast (the median), one per step
  std::vector<double> quantiles;        ///< of the raw observation, (levels, steps) row-major
  std::vector<double> curve_quantiles;  ///< of the noise-free curve, same layout
  ForecastStatus status = ForecastStatus::good;
};

/// Forecast at `steps` (strictly increasing, past the last observed one). Throws InputError on a
/// broken trace or steps; never returns NaN.
[[nodiscard]] Forecast forecast(TraceView trace, std::span<const double> steps,
                                const ForecastOptions& options = {});

/// Law of the first step at which the curve is at or below a target, with an atom at never.
struct Reach {
  std::vector<double> step;  ///< increasing grid from the last observed step to the budget
  std::vector<double> cdf;   ///< P(reached by step[i]), non-decreasing
  double prob_never = 1.0;   ///< 1 - cdf.back(): not inside the budget

  [[nodiscard]] double prob_by(double at_step) const;
  /// Smallest step reached with probability p; infinity where the atom at never comes first.
  [[nodiscard]] double quantile(double p) const;
};

/// `budget` is an absolute step. A target already met is reached at the step where it was met.
[[nodiscard]] Reach reach(TraceView trace, double target, double budget,
                          const ForecastOptions& options = {});

}  // namespace glidepath
