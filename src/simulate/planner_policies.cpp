// SPDX-License-Identifier: Apache-2.0
// Policies that are the planner under an objective: `best_value`, `learned`, `themis`, `optimus`
// and `slaq`. Where jobs may share GPUs by measured speeds, its plans are filled up with guests.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/power.hpp"
#include "plan/value.hpp"
#include "simulate/policy_table.hpp"
#include "simulate/snapshots.hpp"

namespace glidepath::detail {

namespace {

/// What the limits of a plan leave for guests.
class Leeway {
 public:
  Leeway(const Snapshot& snapshot, const PlanLimits& limits, const Plan& plan)
      : snapshot_(snapshot), power_w_(detail::most_watts(limits.power_cap_w)) {
    for (const Quota& quota : limits.user_quota) of_user_.emplace(quota.name, quota.gpus);
    for (const Quota& quota : limits.group_quota) of_group_.emplace(quota.name, quota.gpus);
    std::unordered_map<std::int64_t, const Job*> of_id;
    for (const Job& job : snapshot.jobs) of_id.emplace(job.id, &job);
    for (const Allocation& held : plan.allocations) {
      const Job& job = *of_id.at(held.job);
      power_w_ -= held.gpus * watts(snapshot.tiers[held.tier], busy(job, held));
      take_quota(job, held.gpus);
    }
  }

  /// Seats a guest where its quotas and the power cap allow it.
  [[nodiscard]] bool seat(const Job& host, const Job& guest, const Allocation& held) {
    const double own = busy(host, held), both = std::min(1.0, own + busy(guest, held));
    const Tier& tier = snapshot_.tiers[held.tier];
    const double more_w = held.gpus * (watts(tier, both) - watts(tier, own));
    const auto within = [&](const auto& left, const std::string& name) {
      const auto found = left.find(name);
      return found == left.end() || held.gpus <= found->second;
    };
    if (more_w > power_w_ || !within(of_user_, guest.user) || !within(of_group_, guest.group)) {
      return false;
    }
    power_w_ -= more_w;
    take_quota(guest, held.gpus);
    return true;
  }

 private:
  static double busy(const Job& job, const Allocation& held) {
    const Option* option = option_of(job, held);
    return option != nullptr ? option->utilization : 1;
  }
  void take_quota(const Job& job, int gpus) {
    if (const auto user = of_user_.find(job.user); user != of_user_.end()) user->second -= gpus;
    if (const auto group = of_group_.find(job.group); group != of_group_.end())
      group->second -= gpus;
  }
  const Snapshot& snapshot_;
  double power_w_;
  std::unordered_map<std::string, std::int64_t> of_user_, of_group_;  ///< GPUs left
};

/// Lets waiting jobs join those of a plan on GPUs of their own, by falling gain in the sum of rate
/// x Gittins index at the measured speeds; a pair that is there already is worth a little more.
void pair_up(const Snapshot& snapshot, const PairTable& speeds, const PlanLimits& limits,
             Plan& plan) {
  struct Join {
    double gain;
    std::size_t host;
    const Job* guest;
  };
  std::unordered_map<std::int64_t, const Job*> waiting;
  std::unordered_map<std::int64_t, std::int64_t> partner;
  for (const Job& job : snapshot.jobs) waiting.emplace(job.id, &job);
  for (const Allocation& held : snapshot.running) partner.emplace(held.job, held.partner);
  std::vector<const Job*> hosts;
  for (const Allocation& held : plan.allocations) {
    hosts.push_back(waiting.at(held.job));
    waiting.erase(held.job);
  }
  for (const std::int64_t id : plan.stop) waiting.erase(id);
  const auto value = [](const Job& job, const Allocation& held) {
    const Option* option = option_of(job, held);
    if (option == nullptr || job.remaining_steps.empty()) return 0.0;
    return job.weight * option->steps_per_s * gittins_index(job.remaining_steps);
  };
  std::vector<Join> joins;
  for (const Job& job : snapshot.jobs) {
    if (!waiting.contains(job.id)) continue;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const Allocation& held = plan.allocations[h];
      if (held.gpus != gang(job)) continue;
      const double own = value(job, held);
      if (!(own > 0)) continue;
      const SharedSpeeds speed = speeds(held.job, job.id, held.tier);
      if (!(speed.first > 0 && speed.second > 0)) continue;
      const auto had = partner.find(job.id);
      const double kept = had != partner.end() && had->second == held.job ? kStayFactor : 1.0;
      const double gain = kept * speed.second * own - (1 - speed.first) * value(*hosts[h], held);
      if (gain > 0) joins.push_back({gain, h, &job});
    }
  }
  std::stable_sort(joins.begin(), joins.end(),
                   [](const Join& a, const Join& b) { return a.gain > b.gain; });
  Leeway leeway(snapshot, limits, plan);
  for (const Join& join : joins) {
    Allocation& host = plan.allocations[join.host];
    if (host.partner >= 0 || !waiting.contains(join.guest->id)) continue;
    if (!leeway.seat(*hosts[join.host], *join.guest, host)) continue;
    waiting.erase(join.guest->id);
    host.partner = join.guest->id;
    plan.allocations.push_back({join.guest->id, host.tier, host.gpus, snapshot.now_s, host.job});
  }
}

/// The running jobs without guests, which are planned anew, as those that wait: a guest may join
/// the same host. Of a pair the one is the owner that keeps its GPUs for sure, or else the one that
/// was submitted first; where both keep them they stay a pair.
std::vector<Allocation> owners_of(const Snapshot& snapshot, double min_run_s) {
  std::unordered_map<std::int64_t, bool> stays;
  std::unordered_map<std::int64_t, const Job*> jobs;  // in order of submission
  for (const Job& job : snapshot.jobs) jobs.emplace(job.id, &job);
  for (const Allocation& held : snapshot.running) {
    const bool is_new = snapshot.now_s - held.since_s < min_run_s;
    stays.emplace(held.job, is_new || !jobs.at(held.job)->preemptible);
  }
  std::vector<Allocation> owners;
  for (const Allocation& held : snapshot.running) {
    owners.push_back(held);
    if (held.partner < 0) continue;
    const bool own = stays.at(held.job), other = stays.at(held.partner);
    if (own && other) continue;
    if (own != other ? other : jobs.at(held.job) > jobs.at(held.partner)) {
      owners.pop_back();
    } else {
      owners.back().partner = -1;
    }
  }
  return owners;
}

Policy planner(const SimulationOptions& how, std::vector<WeightedObjective> objectives,
               const PairTable& pairs) {
  PlanOptions options = how.planner.value_or(PlanOptions{});
  options.objectives = std::move(objectives);
  options.limits.sharing =
      pairs ? Sharing::exclusive : how.sharing;  // measured pairs, or predicted ones
  options.limits.in_nodes = how.in_nodes;
  options.reasons = false;
  if (how.round_s) options.round_s = *how.round_s;
  const bool shares = how.sharing != Sharing::exclusive;
  return [options, shares, pairs, user_gpus = how.user_gpus](const Snapshot& snapshot) {
    PlanOptions now = options;
    if (user_gpus) {
      std::set<std::string> users;
      for (const Job& job : snapshot.jobs) users.insert(job.user);
      std::vector<Quota>& quotas = now.limits.user_quota;  // of two limits the smaller holds
      for (Quota& quota : quotas) {
        quota.gpus = std::min<std::int64_t>(quota.gpus, *user_gpus);
        users.erase(quota.name);
      }
      for (const std::string& user : users) quotas.push_back({user, *user_gpus});
    }
    if (!shares) return plan(snapshot, now);
    const std::vector<Allocation> owners = owners_of(snapshot, now.limits.min_run_s);
    Snapshot alone = snapshot;
    alone.running = owners;
    Plan out = plan(alone, now);
    if (pairs) pair_up(snapshot, pairs, now.limits, out);
    return out;
  };
}

}  // namespace

Policy steered_planner(const SimulationOptions& options,
                       const std::vector<WeightedObjective>& goals) {
  return [&options, &goals](const Snapshot& s) { return planner(options, goals, {})(s); };
}

Policy make_themis(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::fairness, 1.0}}, setup.pairs);
}
Policy make_optimus(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::known_size, 1.0}}, setup.pairs);
}
Policy make_slaq(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::quality, 1.0}, {Objective::jct, 1e-3}}, setup.pairs);
}
Policy make_best_value(const PolicySetup& setup) {
  const PlanOptions plans = setup.options.planner.value_or(PlanOptions{});
  return planner(setup.options, objectives_of(plans), setup.pairs);
}

Policy make_learned(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::learned, 1.0}}, setup.pairs);
}

}  // namespace glidepath::detail
