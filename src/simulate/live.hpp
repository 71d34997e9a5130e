// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "simulate/policy_table.hpp"

namespace glidepath::detail {

/// Throws InputError on an option that no run takes.
void check_options(const SimulationOptions& options);

/// Throws InputError on a workload that is broken, and on an option that no job of it would read.
void check_run(const Workload& workload, const SimulationOptions& options);

/// Runs a policy that decides from Snapshots: any number of tiers, jobs with curves.
void run_policy(Cluster& cluster, const Policy& policy);

/// The same for a policy of the table.
void run_named(Cluster& cluster, const PolicyTraits& traits);

/// `best_value` at work one event at a time, under goals that may change in between: each call goes
/// to the next one, and is false when nothing is left. It sees all forecasts, losses on the way
/// included. Cluster and goals must outlive it.
[[nodiscard]] std::function<bool()> stepwise(Cluster& cluster,
                                             const std::vector<WeightedObjective>& goals);

/// What came of a run that is over. Takes the spans from the cluster.
[[nodiscard]] Simulation results(const Cluster& cluster, std::string policy);

}  // namespace glidepath::detail
