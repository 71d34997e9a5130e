// SPDX-License-Identifier: Apache-2.0
// Losses that fall at the end of each epoch: a model that learns its examples by heart does better
// on those that it meets again, from the first of them on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "forecast/annealing.hpp"
#include "forecast/law.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// The falls that a log shows, at all multiples of an epoch until its end.
struct EpochFalls {
  double epoch = 0;                  ///< in shifted steps
  std::vector<std::size_t> first{};  ///< point of each epoch after the first one
  std::vector<double> fall{};        ///< of z there

  [[nodiscard]] bool seen() const { return !fall.empty(); }
  /// Falls that come after the log, until a shifted step.
  [[nodiscard]] double ahead(double step) const;
};

/// None where the log shows no such fall, falls elsewhere as well, begins late, or where a known
/// schedule explains one. A single fall says how long an epoch is, as the first begins at step 0.
[[nodiscard]] EpochFalls epoch_falls(const Prepared& run, const Annealing& plan);

/// The law of a run whose falls go on: that of the run without them, lower by those seen and those
/// ahead.
[[nodiscard]] Mixture law_with_falls(const Prepared& run, const Annealing& plan,
                                     const EpochFalls& falls, std::span<const double> knots,
                                     const ForecastConstants& constants, Use use);

/// Adds those of the forecast steps that lie next to a fall ahead.
void add_knots_at_falls(const EpochFalls& falls, std::span<const double> steps, double step_shift,
                        std::vector<double>& knots);

}  // namespace glidepath::detail
