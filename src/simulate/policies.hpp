// SPDX-License-Identifier: Apache-2.0
// The policies of the table as functions of Snapshots.
#pragma once

#include "glidepath/simulate.hpp"

#include <vector>

#include "simulate/policy_table.hpp"

namespace glidepath::detail {

MakePolicy make_fifo, make_first_fit, make_slurm_backfill, make_sjf, make_srtf, make_srsf, make_las,
    make_gittins, make_themis, make_optimus, make_slaq, make_makespan, make_session_fifo, make_dare,
    make_best_value;

/// The planner under goals that may change between decisions; both must outlive the policy.
[[nodiscard]] Policy steered_planner(const SimulationOptions& options,
                                     const std::vector<WeightedObjective>& goals);

}  // namespace glidepath::detail
