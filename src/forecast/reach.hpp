// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

namespace glidepath::detail {

/// Throws InputError on a budget that is no step, or options that a reach has no use for or does
/// not know.
void refuse_bad_reach(const char* verb, double budget, const ForecastOptions& options);

/// The law by the run's own curve, past runs being shapes of curves only; by the past runs alone
/// where it has hardly begun.
struct ReachByCurve {
  Reach reach{};
  bool of_curve = false;  ///< by the curve of a metric that can take the target as its value
};
[[nodiscard]] ReachByCurve reach_by_curve(TraceView trace, double target, double budget,
                                          const ForecastOptions& options);

/// reach() of a run that has not reached the target, whatever its points: those of a Watch are
/// merged.
[[nodiscard]] Reach reach_ahead(TraceView trace, double target, double budget,
                                const ForecastOptions& options);

}  // namespace glidepath::detail
