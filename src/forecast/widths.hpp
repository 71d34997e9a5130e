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

/// The same after one more run. Throws InputError where the widths have other horizons.
[[nodiscard]] Widths learn_one_more(Widths widths, const Trace& run, std::span<const Trace> shapes,
                                    const std::shared_ptr<const ForecastConstants>& constants);

}  // namespace glidepath::detail
