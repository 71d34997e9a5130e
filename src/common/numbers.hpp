// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace glidepath::detail {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Sums and differences of steps have to be finite, so those beyond are refused.
inline constexpr double kMaxStep = 1e300;
inline constexpr double kMaxWeight = 1e100;  // of a point: times a loss it is finite, too
inline constexpr const char* kStepRange = "between -1e300 and 1e300";
[[nodiscard]] inline bool is_step(double step) { return std::abs(step) <= kMaxStep; }

}  // namespace glidepath::detail
