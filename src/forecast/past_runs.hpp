// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

namespace glidepath::detail {

/// Throws InputError unless the past runs, where there are any, have the direction of the live run.
void refuse_other_direction(const PastRuns* past, Direction live);

}  // namespace glidepath::detail
