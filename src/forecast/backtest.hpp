// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forecast/annealing.hpp"
#include "forecast/constants.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// Factor of the widths under a known schedule, at most 1: what a forecast from the first 70 % of
/// the run would have been wrong by since. 1 without a schedule. It tells how well the shapes
/// follow the run, not how large the gain of the annealing is.
[[nodiscard]] double backtest_width(const Prepared& prepared, const Annealing& plan,
                                    const ForecastConstants& constants);

}  // namespace glidepath::detail
