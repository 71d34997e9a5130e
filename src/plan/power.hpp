// SPDX-License-Identifier: Apache-2.0
#pragma once

/// When a sum of power keeps to a cap: the one rule of the planner, its check and the simulator.
namespace glidepath::detail {

/// Sums of power may pass the cap by this share: what equals it but for rounding keeps to it.
inline constexpr double kPowerTolerance = 1e-10;

[[nodiscard]] constexpr double most_watts(double power_cap_w) {
  return power_cap_w * (1 + kPowerTolerance);
}

}  // namespace glidepath::detail
