// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace glidepath::detail {

/// Measured speeds of two live jobs on the same GPUs of a tier: what a profile of the pair says.
using PairTable = std::function<SharedSpeeds(std::int64_t first, std::int64_t second, int tier)>;

/// A policy by name, as one that sees Snapshots only, and `pairs` where it may let jobs share.
[[nodiscard]] Policy make_policy(std::string_view name, const SimulationOptions& options,
                                 const PairTable& pairs = {});

/// The planner under goals that may change between decisions; both must outlive the policy.
[[nodiscard]] Policy steered_planner(const SimulationOptions& options,
                                     const std::vector<WeightedObjective>& goals);

}  // namespace glidepath::detail
