// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <string>

#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// What came of a run that is over. Takes the spans from the cluster.
[[nodiscard]] Simulation results(Cluster& cluster, std::string policy);

}  // namespace glidepath::detail
