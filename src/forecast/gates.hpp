// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "forecast/constants.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// Variance of z over the bins, and its sd over their later half.
struct Variation {
  double variance = 0, late = 0;
};
[[nodiscard]] Variation variation_of(const Points& bins);

/// What the trace looks like; clamped, so that odd traces get the gates of the oddest ones learned
/// from, not more.
[[nodiscard]] Features features_of(const Prepared& run, const Points& bins, double late);

/// The constants as the features of a trace bend them.
struct Gated {
  double temper = 1, rising = 0, inflation = 1, drop = 0, distance = 0, width = 1;
  double lean = 0, lean_far = 0, widen = 0;
  std::array<double, 5> family_prior{};
  std::vector<double> structure_prior{};
};
[[nodiscard]] Gated gated(const ForecastConstants& constants, const Features& features);

/// What the annealing gains of the grid are multiplied by: a run that has hardly learnt gains
/// little by learning more slowly, one that will still fall fast when the plan ends gains more.
[[nodiscard]] double gain_unit(const Prepared& run, const Points& bins, double planned_share,
                               const ForecastConstants& constants);

}  // namespace glidepath::detail
