// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "forecast/predict.hpp"

namespace glidepath::detail {

/// Mixes in what past runs did from this step on, those most that were like this one so far
/// (docs/method/forecast.md, "Past runs"). `step` and `z` are the live run.
void mix_in_analogy(std::span<const double> step, std::span<const double> z,
                    std::span<const double> queries, std::span<const Template> past,
                    const ForecastConstants& constants, Mixture& mixture);

}  // namespace glidepath::detail
