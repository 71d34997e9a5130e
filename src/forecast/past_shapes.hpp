// SPDX-License-Identifier: Apache-2.0
// The part of a law that goes by the shapes of past runs, as far as they reach and are believed.
#pragma once

#include "glidepath/forecast.hpp"

#include <cstddef>

#include "forecast/clocks.hpp"
#include "forecast/law.hpp"
#include "forecast/predict.hpp"

namespace glidepath::detail {

/// The first knots, of which past runs tell.
struct PastKnots {
  std::size_t covered = 0;
  bool has_end = false;  ///< the last of them is where past runs end, and is none of the law's own
};

/// Adds a knot where past runs end before the horizon, to be taken out again: so the law goes on
/// from there in any list of steps. What is decided is decided by how past runs ended, where none
/// of them goes so far.
[[nodiscard]] PastKnots past_knots(const Prepared& p, const ForecastOptions& options, Use use,
                                   Law& law);

/// Mixes in the law with past runs as far as it is believed, and says how far what they became is
/// of this run too: the less, the worse they would have forecast each other. The best value that
/// one of them had from this step on is in reach.
[[nodiscard]] double mix_in_past(const Observed& observed, const PastKnots& of_past,
                                 const LateClock& late, const ForecastOptions& options,
                                 const ForecastConstants& constants, Use use, Law& law);

/// Takes a knot out of a law again.
void take_out(Law& law, std::size_t knot);

}  // namespace glidepath::detail
