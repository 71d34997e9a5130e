// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "forecast/predict.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// The predictive law of a trace at the knots, with how it came about.
struct Predicted {
  Prepared prepared;
  ForecastLaw law;
  bool scheduled = false;  ///< a learning rate ahead was known, and moves
};

/// What the law is for: intervals, which the backtest may narrow, or a decision that hangs on its
/// tails, for which a few points that were foreseen do not vouch.
enum class Use : std::uint8_t { intervals, decision };

/// `knots` are steps in the trace's own unit, increasing, past the last observed one.
[[nodiscard]] Predicted predict_law(TraceView trace, std::span<const double> steps,
                                    std::size_t max_knots, const ForecastOptions& options, Use use);

/// Quantile levels with what the quantile search needs of them.
struct Levels {
  std::vector<double> level;        ///< of z, increasing, with the median inserted
  std::vector<double> unit, noise;  ///< standard quantiles of a component and of the noise
  std::size_t median = 0;           ///< index of 0.5
  std::vector<std::size_t> row;     ///< of each level that was asked for
};
/// Throws InputError on a level out of order or out of (0, 1). `falling`: the metric falls with z,
/// so that its level p is the level 1 - p of z.
[[nodiscard]] Levels prepare_levels(std::span<const double> levels, double degrees, bool falling);

/// z quantiles at the knots, (level, knot) row-major: of the curve, and of a raw observation.
void law_quantiles(const ForecastLaw& law, const Levels& levels, std::vector<double>& curve,
                   std::vector<double>& raw);

/// Metric at `steps` from z at the knots.
void spread_to_steps(const ForecastLaw& law, double step_shift, std::span<const double> steps,
                     std::span<const double> z, std::span<double> metric);

[[nodiscard]] Coordinate coordinate_of(const ForecastLaw& law);

}  // namespace glidepath::detail
