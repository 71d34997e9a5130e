// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// simulate() with a look at the cluster after each event, where there is one to look.
[[nodiscard]] Simulation simulate_watched(const Workload& workload, std::string_view policy,
                                          const SimulationOptions& options,
                                          const std::function<void(const Cluster&)>& look);

}  // namespace glidepath::detail
