// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/policy_table.hpp"

namespace glidepath::detail {

/// Runs a policy of shares of time in rounds of SimulationOptions::round_s, which must be set, as
/// the simulator of Gavel does (Narayanan et al., OSDI 2020).
void run_rounds(Cluster& cluster, Shares shares);

}  // namespace glidepath::detail
