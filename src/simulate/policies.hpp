// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <string_view>

namespace glidepath::detail {

/// A policy by name, as one that sees Snapshots only.
[[nodiscard]] Policy make_policy(std::string_view name, const SimulationOptions& options);

}  // namespace glidepath::detail
