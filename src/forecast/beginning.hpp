// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "forecast/law.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

constexpr std::ptrdiff_t kMinModelled = 3;  ///< finite points that show a curve

/// The law of a run of fewer than three points, from past runs (docs/method/settings.md, "Before
/// the curve shows"): `law` has its knots, and gets its coordinate, mixture and limits. False, and
/// nothing changed, where fewer than three past runs go beyond it.
[[nodiscard]] bool begin(const Prepared& p, const Settings* settings, const PastRuns& past,
                         Law& law);

/// Mixes into the law of a run of a few points what past runs became: the less the more points
/// there are, and by how like each other these runs are, unless they taught what settings do.
void mix_in_beginnings(const Prepared& p, const Settings* settings, const PastRuns& past,
                       double likeness, Law& law);

/// P(reached by each of `steps`), increasing, for a run of fewer than three points, from when past
/// runs came to the target; empty where fewer than three past runs tell.
[[nodiscard]] std::optional<std::vector<double>> arrivals(TraceView trace, double target,
                                                          std::span<const double> steps,
                                                          const ForecastOptions& options);

}  // namespace glidepath::detail
