// SPDX-License-Identifier: Apache-2.0
// The policy `makespan`: all work is done as soon as can be.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "simulate/fair_finish.hpp"
#include "simulate/policy_table.hpp"
#include "simulate/snapshots.hpp"

namespace glidepath::detail {

namespace {

/// GPUs of the tiers that the jobs may use.
double usable_gpus(const Snapshot& snapshot) {
  std::set<int> tiers;
  for (const Job& job : snapshot.jobs) {
    for (const Option& option : job.options) {
      if (option.steps_per_s > 0) tiers.insert(option.tier);
    }
  }
  double gpus = 0;
  for (const int tier : tiers) gpus += snapshot.tiers[tier].gpus();
  return std::max(1.0, gpus);
}

/// Finish-time fairness that a job heads for by the jobs that are live now.
double heads_for(const Snapshot& snapshot, const Job& job, double gpus) {
  constexpr double kMaxFtf = 1e7;  // of a job that takes no time: worth less than a round takes
  const Heading now = heading_of(snapshot, job, FairFinish::kMedian, gpus);
  const double fair_s = now.alone * std::max(1.0, now.live * gang(job) / gpus);
  return fair_s * kMaxFtf > now.total ? now.total / fair_s : kMaxFtf;
}

/// Longest remaining time first, each job where it is worth most: the knapsack of the planner with
/// the value (rate / best rate) x GPUs x ((remaining time)^2 + u), so that the longest chain is cut
/// first. A running job counts as longer by a lead of d = 4 sqrt(work x restart), because all work
/// W then takes W / d changes: a smaller d costs more restarts, a larger one leaves more to do for
/// one job alone. u grows for jobs that are about to take longer than with a fair share, as far as
/// the time that all work takes leaves room beside the longest chain and four leads: short jobs
/// that displace long ones make the end later, and so do restarts for their sake. Without room they
/// still go before the jobs that are clearly shorter than the longest one, unless a restart costs
/// as much time as that one lasts.
Plan least_makespan(const Snapshot& snapshot, Packing packing) {
  constexpr double kLead = 4, kLeadsOfRoom = 4, kLateFtf = 1.2, kLateWeight = 4,
                   kMaxLateWorth = 0.8,  // of the longest job
      kMaxValue = 1e15;                  // of an option of a round
  std::vector<std::int64_t> job, tier, gpus, capacity, node_gpus;
  std::vector<double> value;
  double longest = 0, work = 0;
  for (const Job& live : snapshot.jobs) {
    longest = std::max(longest, remaining_s(live, 0.5));
    work += remaining_s(live, 0.5) * gang(live);
  }
  const double usable = usable_gpus(snapshot);
  const double all_s = std::max(longest, work / usable);
  const auto lead_of = [&](const Job& live) { return kLead * std::sqrt(all_s * live.restart_s); };
  std::unordered_map<std::int64_t, const Allocation*> holds;
  for (const Allocation& held : snapshot.running) holds.emplace(held.job, &held);
  double dearest = 0;
  for (const Job& live : snapshot.jobs) {
    if (holds.contains(live.id)) dearest = std::max(dearest, lead_of(live));
  }
  const double left_s = all_s - longest - kLeadsOfRoom * dearest;
  const double room = left_s > 0 ? left_s / all_s : 0;
  const double most = kMaxLateWorth * std::max(0.0, 1 - dearest / std::max(longest, 1e-300));
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
    const Job& live = snapshot.jobs[i];
    const auto held = holds.find(live.id);
    const double lead = held == holds.end() ? 0 : lead_of(live);
    const double share = longest > 0 ? (remaining_s(live, 0.5) + lead) / longest : 1;
    double worth = share * share;
    const double late = std::max(0.0, heads_for(snapshot, live, usable) - kLateFtf);
    const double bonus = kLateWeight * late * late;
    worth = std::max(worth + room * bonus, std::min(bonus, most));
    for (const Option& option : live.options) {
      job.push_back(static_cast<std::int64_t>(i));
      tier.push_back(option.tier);
      gpus.push_back(option.gpus);
      const bool here = held != holds.end() && held->second->tier == option.tier;
      value.push_back(std::min(kMaxValue, option.steps_per_s / fastest(live) * option.gpus * worth *
                                              (here ? kStayFactor : 1.0)));
    }
  }
  for (const Tier& each : snapshot.tiers) {
    capacity.push_back(each.gpus());
    if (packing == Packing::in_nodes) node_gpus.push_back(each.gpus_per_node);
  }
  const RoundPlan round = solve_round({.job = job,
                                       .tier = tier,
                                       .gpus = gpus,
                                       .value = value,
                                       .capacity = capacity,
                                       .node_gpus = node_gpus});
  Plan plan;
  for (const std::int64_t o : round.chosen) {
    const std::size_t k = o;
    const Job& live = snapshot.jobs[job[k]];
    const auto held = holds.find(live.id);
    if (held != holds.end() && held->second->tier == tier[k]) {
      plan.allocations.push_back(*held->second);
    } else {
      plan.allocations.push_back(
          {live.id, static_cast<int>(tier[k]), static_cast<int>(gpus[k]), snapshot.now_s, -1});
    }
  }
  return plan;
}

}  // namespace

Policy make_makespan(const PolicySetup& setup) {
  return [packing = packing_of(setup.options)](const Snapshot& s) {
    return least_makespan(s, packing);
  };
}

}  // namespace glidepath::detail
