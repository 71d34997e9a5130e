// SPDX-License-Identifier: Apache-2.0
#include "simulate/wanted.hpp"

#include <vector>

#include "common/numbers.hpp"
#include "common/require.hpp"

namespace glidepath::detail {

namespace {

void check_place(const Allocation& allocation, int job, const Cluster& cluster) {
  const int tiers = static_cast<int>(cluster.capacity.size());
  if (allocation.tier < 0 || allocation.tier >= tiers) {
    refuse("simulate: the policy puts job ", allocation.job, " on tier ", allocation.tier, " of ",
           tiers);
  }
  if (allocation.gpus != cluster.runs[at(job)].gpus) {
    refuse("simulate: the policy gives job ", allocation.job, " ", allocation.gpus,
           " GPUs, it asks for ", cluster.runs[at(job)].gpus);
  }
  if (!(cluster.rate(job, allocation.tier) > 0) || !cluster.fits_memory(job, allocation.tier)) {
    refuse("simulate: the policy puts job ", allocation.job, " on tier '",
           cluster.workload.tiers[at(allocation.tier)].name, "', where it cannot run");
  }
}

/// Both name each other, on the same tier, with equal gangs that share memory and make progress.
void check_pair(const Allocation& allocation, const std::unordered_map<int, Wanted>& all,
                const Cluster& cluster, const Observer& observer) {
  const int job = observer.job_of(allocation.job);
  const int partner = observer.job_of(allocation.partner);
  const auto other = all.find(partner);
  if (job == partner || other == all.end() || other->second.partner != job ||
      other->second.tier != allocation.tier || cluster.runs[at(partner)].gpus != allocation.gpus) {
    refuse("simulate: the policy lets job ", allocation.job, " share the GPUs of job ",
           allocation.partner, ", which does not share them");
  }
  const SharedSpeeds speeds = cluster.shared(job, partner, allocation.tier);
  if (!(speeds.first > 0 && speeds.second > 0)) {
    refuse("simulate: jobs ", allocation.job, " and ", allocation.partner, " cannot share GPUs (",
           name(cluster.options.sharing), ")");
  }
}

}  // namespace

int named_job(const Observer& observer, std::int64_t id) {
  const int job = observer.job_of(id);
  if (job < 0) refuse("simulate: the policy names job ", id, ", which is not live");
  return job;
}

std::unordered_map<int, Wanted> wanted(const Plan& plan, const Cluster& cluster,
                                       const Observer& observer) {
  std::unordered_map<int, Wanted> out;
  std::vector<int> used(cluster.capacity.size(), 0);
  for (const Allocation& allocation : plan.allocations) {
    const int job = named_job(observer, allocation.job);
    check_place(allocation, job, cluster);
    const int partner = allocation.partner < 0 ? -1 : named_job(observer, allocation.partner);
    if (!out.emplace(job, Wanted{allocation.tier, partner}).second) {
      refuse("simulate: the policy runs job ", allocation.job, " twice");
    }
    if (partner < 0 || job < partner) used[at(allocation.tier)] += allocation.gpus;
  }
  for (const Allocation& allocation : plan.allocations) {
    if (allocation.partner >= 0) check_pair(allocation, out, cluster, observer);
  }
  for (std::size_t t = 0; t < used.size(); ++t) {
    if (used[t] > cluster.capacity[t]) {
      refuse("simulate: the policy uses ", used[t], " GPUs of tier '",
             cluster.workload.tiers[t].name, "', which has ", cluster.capacity[t]);
    }
  }
  return out;
}

}  // namespace glidepath::detail
