// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "simulate/observer.hpp"

namespace glidepath::detail {

/// Where a plan puts a job.
struct Wanted {
  int tier, partner;  ///< partner: a job on the same GPUs, -1 without
};

/// The index of a live job that a plan names. Throws InputError naming an id that is not live.
[[nodiscard]] int named_job(const Observer& observer, std::int64_t id);

/// What a plan wants of each job by index. Throws InputError naming the job on a plan that the
/// cluster cannot carry out.
[[nodiscard]] std::unordered_map<int, Wanted> wanted(const Plan& plan, const Cluster& cluster,
                                                     const Observer& observer);

}  // namespace glidepath::detail
