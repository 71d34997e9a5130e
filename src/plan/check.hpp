// SPDX-License-Identifier: Apache-2.0
// Refuses broken snapshots and options in one sentence that names the job.
#pragma once

#include "glidepath/plan.hpp"

namespace glidepath::detail {

void check_options(const PlanOptions& options, const Snapshot& snapshot);
void check_job(const Job& job, const Snapshot& snapshot);
/// Why no option of the job fits.
[[noreturn]] void refuse_unfit(const Job& job, const Snapshot& snapshot);

}  // namespace glidepath::detail
