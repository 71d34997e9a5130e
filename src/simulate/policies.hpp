// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace glidepath::detail {

/// Measured speeds of two live jobs on the same GPUs of a tier: what a profile of the pair says.
using PairTable = std::function<SharedSpeeds(std::int64_t first, std::int64_t second, int tier)>;

/// A policy by name, as one that sees Snapshots only, and `pairs` where it may let jobs share.
[[nodiscard]] Policy make_policy(std::string_view name, const SimulationOptions& options,
                                 const PairTable& pairs = {});

}  // namespace glidepath::detail
