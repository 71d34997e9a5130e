// SPDX-License-Identifier: Apache-2.0
// Written from the definition of a plan alone: uses nothing of the solver
// but what makes a job broken.
#include "glidepath/plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/power.hpp"

namespace glidepath {
namespace {

/// Puts gangs, the largest first, on nodes: whole nodes, then the rest on any node with room.
/// Gives up after `tries` placements and then says yes, as nothing is proved.
bool can_place(const std::vector<int>& rest, std::size_t next, std::vector<int>& room, int& tries) {
  if (next == rest.size() || --tries < 0) return true;
  for (std::size_t n = 0; n < room.size(); ++n) {
    if (room[n] < rest[next]) continue;
    if (n > 0 && room[n] == room[n - 1]) continue;  // the same as the one before
    room[n] -= rest[next];
    const bool good = can_place(rest, next + 1, room, tries);
    room[n] += rest[next];
    if (good) return true;
  }
  return false;
}

bool fit_nodes(const Tier& tier, const std::vector<int>& gangs) {
  long long nodes = tier.nodes;
  std::vector<int> rest;
  for (const int gpus : gangs) {
    nodes -= gpus / tier.gpus_per_node;
    if (gpus % tier.gpus_per_node > 0) rest.push_back(gpus % tier.gpus_per_node);
  }
  if (nodes < 0) return false;
  std::sort(rest.rbegin(), rest.rend());
  const auto opened = std::min<long long>(nodes, static_cast<long long>(rest.size()));
  std::vector<int> room(opened, tier.gpus_per_node);
  int tries = 2000;
  return can_place(rest, 0, room, tries);
}

class Inspector {
 public:
  Inspector(const Snapshot& snapshot, const Plan& plan, const PlanLimits& limits)
      : snapshot_(snapshot), plan_(plan), limits_(limits) {}

  std::vector<std::string> run() {
    for (const Job& job : snapshot_.jobs) jobs_[job.id] = &job;
    for (const Allocation& a : plan_.allocations) by_job_[a.job] = &a;
    for (const std::int64_t id : plan_.stop) {
      if (!jobs_.contains(id)) report("job ", id, " is ended but not in the queue");
      if (!ended_.insert(id).second) report("job ", id, " is ended twice");
    }
    for (const Allocation& a : plan_.allocations) inspect(a);
    capacities();
    quotas(limits_.user_quota, "user", &Job::user);
    quotas(limits_.group_quota, "group", &Job::group);
    for (const Allocation& held : snapshot_.running) guarantees(held);
    if (!std::isfinite(plan_.value) || !std::isfinite(plan_.bound) || plan_.value > plan_.bound) {
      report("the value ", plan_.value, " is not at most the bound ", plan_.bound);
    }
    for (const double price : plan_.prices) {
      if (!(price >= 0)) report("a price is ", price);
    }
    return std::move(found_);
  }

 private:
  void report(const auto&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    found_.push_back(text.str());
  }

  void inspect(const Allocation& a) {
    if (!placed_.insert(a.job).second) report("job ", a.job, " is placed twice");
    if (ended_.contains(a.job)) report("job ", a.job, " is both placed and ended");
    const auto entry = jobs_.find(a.job);
    if (entry == jobs_.end()) return report("job ", a.job, " is placed but not in the queue");
    if (a.tier < 0 || a.tier >= static_cast<int>(snapshot_.tiers.size())) {
      return report("job ", a.job, " is placed on tier ", a.tier,
                    detail::expected_place("tier", snapshot_.tiers.size()));
    }
    if (a.gpus < 1) return report("job ", a.job, " is placed on ", a.gpus, " GPUs");
    const Job& job = *entry->second;
    if (const std::string fault = detail::fault_of(job, snapshot_); !fault.empty()) {
      report("job ", a.job, " is placed but cannot be planned: ", fault);
    }
    const Tier& tier = snapshot_.tiers[a.tier];
    const std::optional<double> option = least_busy(job, a);
    if (!option) {
      report("job ", a.job, " is placed on ", a.gpus, " x ", tier.name, ", not one of its options");
    }
    if (tier.memory_gb > 0 && job.memory_gb > tier.memory_gb) {
      report("job ", a.job, " needs ", job.memory_gb, " GB, a GPU of ", tier.name, " has ",
             tier.memory_gb);
    }
    if (!(a.since_s <= snapshot_.now_s)) {
      report("job ", a.job, " starts at ", a.since_s, " s, after now");
    }
    double busy = option.value_or(1);
    if (a.partner >= 0) {
      const Allocation* partner = partner_of(a);
      if (!partner) {
        report("job ", a.job, " shares GPUs with job ", a.partner, ", which does not share them");
      } else if (jobs_.contains(a.partner)) {
        const Job& other = *jobs_[a.partner];
        if (!stays(a)) memory_of_pair(job, other, tier);
        if (limits_.sharing != Sharing::exclusive) permission(job, a);
        if (a.partner < a.job) return;  // the GPUs of a pair count once, for its smaller id
        if (limits_.sharing == Sharing::exclusive && !stays(a)) {
          report("jobs ", a.job, " and ", a.partner, " share GPUs, sharing is exclusive");
        }
        busy = std::min(1.0, busy + least_busy(other, a).value_or(0));
      }
    }
    gangs_[a.tier].push_back(a.gpus);
    watts_ += draw(a, busy);
  }

  [[nodiscard]] double draw(const Allocation& a, double busy) const {
    const Tier& tier = snapshot_.tiers[a.tier];
    return a.gpus * (tier.idle_watts + busy * (tier.busy_watts - tier.idle_watts));
  }

  /// The least utilization of the options that such an allocation may be: which of them it is a
  /// plan does not say.
  [[nodiscard]] static std::optional<double> least_busy(const Job& job, const Allocation& a) {
    std::optional<double> least;
    for (const Option& o : job.options) {
      if (o.tier != a.tier || o.gpus != a.gpus || o.sharing != Sharing::exclusive) continue;
      least = std::min(least.value_or(o.utilization), o.utilization);
    }
    return least;
  }

  [[nodiscard]] const Allocation* partner_of(const Allocation& a) const {
    const auto found = by_job_.find(a.partner);
    if (found == by_job_.end() || a.partner == a.job) return nullptr;
    const Allocation& other = *found->second;
    const bool mutual = other.partner == a.job && other.tier == a.tier && other.gpus == a.gpus;
    return mutual ? &other : nullptr;
  }

  /// Two that share these GPUs already are left together whatever they need.
  [[nodiscard]] bool stays(const Allocation& a) const {
    return std::any_of(snapshot_.running.begin(), snapshot_.running.end(),
                       [&](const Allocation& held) {
                         return held.job == a.job && held.partner == a.partner &&
                                held.tier == a.tier && held.gpus == a.gpus;
                       });
  }

  void memory_of_pair(const Job& job, const Job& other, const Tier& tier) {
    const bool halves = limits_.sharing == Sharing::mig;
    const double both =
        halves ? 2 * std::max(job.memory_gb, other.memory_gb) : job.memory_gb + other.memory_gb;
    if (tier.memory_gb <= 0 || both <= tier.memory_gb) return;
    report("jobs ", job.id, " and ", other.id, " need ", both, " GB together, the card has ",
           tier.memory_gb);
  }

  /// A job that lists shared options says with them where it may be paired; one that is in a pair
  /// already is where it is.
  void permission(const Job& job, const Allocation& a) {
    bool asked = false;
    for (const Option& o : job.options) {
      if (o.sharing == Sharing::exclusive) continue;
      asked = true;
      if (o.sharing == limits_.sharing && o.tier == a.tier && o.gpus == a.gpus) return;
    }
    for (const Allocation& held : snapshot_.running) {
      if (held.job == a.job && held.partner == a.partner) return;
    }
    if (asked) report("job ", job.id, " shares GPUs, none of its shared options says so");
  }

  void capacities() {
    for (const auto& [t, gangs] : gangs_) {
      const Tier& tier = snapshot_.tiers[t];
      const long long there = static_cast<long long>(tier.nodes) * tier.gpus_per_node;
      long long used = 0;
      for (const int gpus : gangs) used += gpus;
      if (used > there) {
        report("tier ", tier.name, " has ", there, " GPUs, the plan uses ", used);
      } else if (limits_.in_nodes && !fit_nodes(tier, gangs)) {
        report("the gangs on tier ", tier.name, " do not fit in its nodes");
      }
    }
    if (watts_ > limits_.power_cap_w * (1 + 1e-9) + 1e-3) {
      report("the GPUs in use draw ", watts_, " W, the cap is ", limits_.power_cap_w);
    }
  }

  void quotas(const std::vector<Quota>& quotas, const char* what, std::string Job::*key) {
    std::map<std::string, long long> used;
    for (const Allocation& a : plan_.allocations) {
      if (jobs_.contains(a.job)) used[jobs_[a.job]->*key] += a.gpus;
    }
    for (const Quota& quota : quotas) {
      if (used[quota.name] > quota.gpus) {
        report("the ", what, " '", quota.name, "' holds ", used[quota.name], " GPUs, the quota is ",
               quota.gpus);
      }
    }
  }

  /// A job that may not be preempted, or not yet, keeps what it holds where the limits let it.
  void guarantees(const Allocation& held) {
    const auto job = jobs_.find(held.job);
    if (job == jobs_.end() || ended_.contains(held.job)) return;
    if (!promised(*job->second, held) || keeps(held)) return;
    if (!detail::fault_of(*job->second, snapshot_).empty()) return;  // it gets no GPU at all
    if (!can_keep(*job->second, held) || limits_end(*job->second, held)) return;
    report("job ", held.job, " loses its GPUs, ",
           job->second->preemptible ? "its guaranteed run is not over" : "it may not be preempted");
  }

  [[nodiscard]] bool promised(const Job& job, const Allocation& held) const {
    return !job.preemptible || snapshot_.now_s - held.since_s < limits_.min_run_s;
  }

  [[nodiscard]] bool keeps(const Allocation& held) const {
    const auto now = by_job_.find(held.job);
    return now != by_job_.end() && now->second->tier == held.tier && now->second->gpus == held.gpus;
  }

  /// With it the jobs that keep what they were promised would pass the power cap or a quota, which
  /// go before any promise.
  [[nodiscard]] bool limits_end(const Job& job, const Allocation& held) const {
    std::map<std::int64_t, const Allocation*> staying{{held.job, &held}};
    for (const Allocation& other : snapshot_.running) {
      const auto found = jobs_.find(other.job);
      if (found == jobs_.end() || !promised(*found->second, other) || !keeps(other)) continue;
      if (!detail::fault_of(*found->second, snapshot_).empty()) continue;
      if (can_keep(*found->second, other)) staying.emplace(other.job, &other);
    }
    double watts = 0;
    long long of_user = 0, of_group = 0;
    for (const auto& [id, a] : staying) {
      const Job& each = *jobs_.at(id);
      if (each.user == job.user) of_user += a->gpus;
      if (each.group == job.group) of_group += a->gpus;
      double busy = least_busy(each, *a).value_or(1);
      const auto partner = staying.find(a->partner);
      if (partner != staying.end() && partner->second->partner == id) {
        if (partner->first < id) continue;  // the GPUs of a pair count once
        busy = std::min(1.0, busy + least_busy(*jobs_.at(partner->first), *a).value_or(1));
      }
      watts += draw(*a, busy);
    }
    const auto passed = [](const std::vector<Quota>& quotas, const std::string& name,
                           long long used) {
      return std::any_of(quotas.begin(), quotas.end(), [&](const Quota& quota) {
        return quota.name == name && used > quota.gpus;
      });
    };
    return watts > detail::most_watts(limits_.power_cap_w) ||
           passed(limits_.user_quota, job.user, of_user) ||
           passed(limits_.group_quota, job.group, of_group);
  }

  /// What it holds is one of its options: a plan leaves it out otherwise.
  [[nodiscard]] bool can_keep(const Job& job, const Allocation& held) const {
    return std::any_of(job.options.begin(), job.options.end(), [&](const Option& o) {
      const Tier& tier = snapshot_.tiers[o.tier];
      return o.sharing == Sharing::exclusive && o.tier == held.tier && o.gpus == held.gpus &&
             o.gpus <= tier.gpus() && (tier.memory_gb <= 0 || job.memory_gb <= tier.memory_gb);
    });
  }

  const Snapshot& snapshot_;
  const Plan& plan_;
  const PlanLimits& limits_;
  std::map<std::int64_t, const Job*> jobs_;
  std::map<std::int64_t, const Allocation*> by_job_;
  std::set<std::int64_t> placed_, ended_;
  std::map<int, std::vector<int>> gangs_;
  double watts_ = 0;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> violations(const Snapshot& snapshot, const Plan& plan,
                                    const PlanLimits& limits) {
  detail::check_limits("violations", limits, snapshot.tiers);
  return Inspector(snapshot, plan, limits).run();
}

}  // namespace glidepath
