// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"
#include "glidepath/forecast.hpp"
#include "glidepath/trace.hpp"

#include <memory>
#include <span>

namespace glidepath::detail {

/// Widths that would have held for forecasts of the teachers which had the shapes as past runs; no
/// run helps to forecast itself.
[[nodiscard]] Widths learn_widths(std::span<const Trace> teachers, std::span<const Trace> shapes,
                                  const std::shared_ptr<const ForecastConstants>& constants,
                                  const Execution& execution);

/// Throws InputError unless the past runs, where there are any, have the direction of the live run.
void refuse_other_direction(const PastRuns* past, Direction live);

}  // namespace glidepath::detail
