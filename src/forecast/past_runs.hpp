// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// Throws InputError unless the past runs, where there are any, have the direction of the live run.
void refuse_other_direction(const PastRuns* past, Direction live);

/// The lowest and the highest value of the past run in the middle by each: one odd run changes
/// neither. Empty for no past runs.
[[nodiscard]] MetricRange metric_range_of(const PastRuns* past);

}  // namespace glidepath::detail
