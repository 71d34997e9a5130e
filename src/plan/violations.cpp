// SPDX-License-Identifier: Apache-2.0
// Written from the definition of a plan alone: uses nothing of the solver.
#include "glidepath/plan.hpp"

#include <cmath>
#include <map>
#include <set>
#include <sstream>

namespace glidepath {

std::vector<std::string> violations(const Snapshot& snapshot, const Plan& plan) {
  std::vector<std::string> found;
  const auto report = [&found](const auto&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    found.push_back(text.str());
  };

  std::map<std::int64_t, const Job*> jobs;
  for (const Job& job : snapshot.jobs) jobs[job.id] = &job;

  std::map<std::int64_t, const Allocation*> by_job;
  for (const Allocation& a : plan.allocations) by_job[a.job] = &a;

  std::map<int, long long> used;
  std::set<std::int64_t> placed, ended;
  for (const std::int64_t id : plan.stop) {
    if (!jobs.contains(id)) report("job ", id, " is ended but not in the queue");
    if (!ended.insert(id).second) report("job ", id, " is ended twice");
  }
  for (const Allocation& a : plan.allocations) {
    if (!placed.insert(a.job).second) report("job ", a.job, " is placed twice");
    if (ended.contains(a.job)) report("job ", a.job, " is both placed and ended");
    const auto job = jobs.find(a.job);
    if (job == jobs.end()) {
      report("job ", a.job, " is placed but not in the queue");
      continue;
    }
    if (a.tier < 0 || a.tier >= static_cast<int>(snapshot.tiers.size())) {
      report("job ", a.job, " is placed on tier ", a.tier, ", there are ", snapshot.tiers.size());
      continue;
    }
    if (a.gpus < 1) {
      report("job ", a.job, " is placed on ", a.gpus, " GPUs");
      continue;
    }
    // The GPUs of a pair count once, for its smaller id.
    const auto found_partner = a.partner >= 0 ? by_job.find(a.partner) : by_job.end();
    const Allocation* partner = found_partner == by_job.end() ? nullptr : found_partner->second;
    if (a.partner >= 0 && (!partner || partner->partner != a.job || partner->tier != a.tier ||
                           partner->gpus != a.gpus || a.partner == a.job)) {
      report("job ", a.job, " shares GPUs with job ", a.partner, ", which does not share them");
      partner = nullptr;
    }
    if (!partner || a.job < a.partner) used[a.tier] += a.gpus;
    if (partner && jobs.contains(partner->job)) {
      const double card = snapshot.tiers[static_cast<std::size_t>(a.tier)].memory_gb;
      const double both = job->second->memory_gb + jobs[partner->job]->memory_gb;
      if (card > 0 && both > card) {
        report("jobs ", a.job, " and ", a.partner, " need ", both, " GB together, the card has ",
               card);
      }
    }
    bool offered = false;
    for (const Option& o : job->second->options) {
      offered = offered || (o.tier == a.tier && o.gpus == a.gpus);
    }
    const Tier& tier = snapshot.tiers[static_cast<std::size_t>(a.tier)];
    if (!offered) {
      report("job ", a.job, " is placed on ", a.gpus, " x ", tier.name, ", not one of its options");
    }
    if (tier.memory_gb > 0 && job->second->memory_gb > tier.memory_gb) {
      report("job ", a.job, " needs ", job->second->memory_gb, " GB, a GPU of ", tier.name, " has ",
             tier.memory_gb);
    }
    if (!(a.since_s <= snapshot.now_s)) {
      report("job ", a.job, " starts at ", a.since_s, " s, after now");
    }
  }
  for (const auto& [t, gpus] : used) {
    const Tier& tier = snapshot.tiers[static_cast<std::size_t>(t)];
    const long long there = static_cast<long long>(tier.nodes) * tier.gpus_per_node;
    if (gpus > there) report("tier ", tier.name, " has ", there, " GPUs, the plan uses ", gpus);
  }
  if (!std::isfinite(plan.value) || !std::isfinite(plan.bound) || plan.value > plan.bound) {
    report("the value ", plan.value, " is not at most the bound ", plan.bound);
  }
  for (const double price : plan.prices) {
    if (!(price >= 0)) report("a price is ", price);
  }
  return found;
}

}  // namespace glidepath
