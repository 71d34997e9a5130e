// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace glidepath::detail {

/// sd of white noise of one observation, from successive differences of the later half: their
/// median size / (0.6745 sqrt 2). Points that were merged from several, `count`, differ by less.
[[nodiscard]] double successive_noise(std::span<const double> z, std::span<const double> count);

/// The same of differences about their median: a run that falls evenly has none.
[[nodiscard]] double noise_about_slope(std::span<const double> z, std::span<const double> count);

/// sd of noise that lasts over several observations, as where a log was smoothed: `white`, or more
/// where values of the later half that lie further apart differ by more than their trend explains.
/// No point is merged.
[[nodiscard]] double lasting_noise(std::span<const double> z, double white);

}  // namespace glidepath::detail
