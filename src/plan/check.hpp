// SPDX-License-Identifier: Apache-2.0
// Finds what is broken in snapshots and options, in one sentence that names the job.
#pragma once

#include "glidepath/plan.hpp"

#include <string>

namespace glidepath::detail {

void check_options(const PlanOptions& options, const Snapshot& snapshot);
/// Which value of the job is broken; empty when none is.
[[nodiscard]] std::string fault_of(const Job& job, const Snapshot& snapshot);
/// Refuses a job that has a fault.
void check_job(const Job& job, const Snapshot& snapshot);
/// Why no option of the job fits.
[[nodiscard]] std::string why_unfit(const Job& job, const Snapshot& snapshot);

}  // namespace glidepath::detail
