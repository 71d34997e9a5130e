// SPDX-License-Identifier: Apache-2.0
// Which clock a run is read by: the steps, or the learning rate that they were taken at; counted
// from step 0, or from where its log begins.
#pragma once

#include <span>

#include "forecast/annealing.hpp"
#include "forecast/law.hpp"
#include "forecast/predict.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// What the rates of a run say of it, in its shifted steps; nothing where hardly any time of that
/// clock passes while it is observed.
[[nodiscard]] Annealing annealing_of(const Prepared& p, Rates rates,
                                     const ForecastConstants& constants);

/// The mixture by one clock: with the planned rates, where they are known, and without them as far
/// as the backtest says.
[[nodiscard]] Mixture by_clock(const Observed& observed, std::span<const double> knots,
                               std::span<const Template> past, const ForecastConstants& constants,
                               Use use, Evidence* evidence = nullptr);

/// The law of a log that begins late by a clock of its own, which counts from one logging interval
/// before the log, as of a run that began with it.
struct LateClock {
  Mixture law{};
  /// Share of this clock. A loss keeps the clock of step 0 as far as its log shows a shape: noise
  /// alone shows no rate by which the many steps before could be told.
  double share = 0;

  /// This law mixed into one by the clock of step 0, of which past runs, whose clock is known, have
  /// the part `past`.
  [[nodiscard]] Mixture mixed_into(Mixture from_zero, double past = 0) const;
};
[[nodiscard]] LateClock late_clock(const Prepared& p, const Rates* rates,
                                   std::span<const double> knots,
                                   const ForecastConstants& constants, Use use,
                                   const Evidence& from_zero);

}  // namespace glidepath::detail
