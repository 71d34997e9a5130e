// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

namespace glidepath::detail {

/// reach() of a run that has not reached the target, whatever its points: those of a Watch are
/// merged.
[[nodiscard]] Reach reach_ahead(TraceView trace, double target, double budget,
                                const ForecastOptions& options);

}  // namespace glidepath::detail
