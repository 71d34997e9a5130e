// SPDX-License-Identifier: Apache-2.0
#include "simulate/live.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/observer.hpp"
#include "simulate/wanted.hpp"

namespace glidepath::detail {

namespace {

/// Lets a policy decide: shows it what it may see, carries out what it wants.
class Live {
 public:
  Live(Cluster& cluster, const Policy& policy, const Foresight& foresight)
      : cluster_(cluster),
        policy_(policy),
        observer_(cluster, foresight),
        session_(ticks_of(cluster.options.session_s)),
        round_(ticks_of(cluster.options.round_s)) {}

  void arrive(int job) { observer_.arrive(job); }

  void leave(int job) {
    observer_.leave(job);
    session_end_.erase(job);
  }

  [[nodiscard]] Tick wake() const {
    Tick next = kNever;
    if (session_ != kNever) {
      for (const auto& [end, job] : cluster_.ends) next = std::min(next, session_end_.at(job));
    }
    if (round_ != kNever && !observer_.live().empty()) {
      next = std::min(next, (cluster_.now / round_ + 1) * round_);
    }
    return next;
  }

  void schedule() {
    if (observer_.live().empty()) return;
    const Plan plan = policy_(observer_.snapshot());
    for (const std::int64_t id : plan.stop) {
      const int job = named_job(observer_, id);
      const bool reached = observer_.has_reached_target(job);
      cluster_.finish(job, reached ? JobOutcome::target : JobOutcome::never);
      leave(job);
    }
    wanted_ = wanted(plan, cluster_, observer_);
    suspend_others();
    start_wanted();
    if (session_ == kNever) return;
    for (const auto& [finish, job] : cluster_.ends) {  // a job that runs on begins a session
      Tick& end = session_end_[job];
      if (end <= cluster_.now) end = cluster_.now + session_;
    }
  }

 private:
  [[nodiscard]] Tick ticks_of(const std::optional<double>& seconds) const {
    return seconds ? std::max<Tick>(1, cluster_.ticks(*seconds)) : kNever;
  }

  /// Of two that part, and of two that both have GPUs and shall share, the later one moves.
  void suspend_others() {
    std::set<int> stays;
    for (const auto& [finish, job] : cluster_.ends) {
      const auto it = wanted_.find(job);
      if (it != wanted_.end() && it->second.tier == cluster_.runs[at(job)].tier) stays.insert(job);
    }
    suspended_.clear();
    for (const auto& [finish, job] : cluster_.ends) {
      if (!stays.contains(job)) {
        suspended_.push_back(job);
        continue;
      }
      const int had = cluster_.runs[at(job)].partner;
      const int has = wanted_.at(job).partner;
      const bool moves = had != has && ((had >= 0 && had < job && stays.contains(had)) ||
                                        (has >= 0 && has < job && stays.contains(has)));
      if (moves) suspended_.push_back(job);
    }
    for (const int job : suspended_) cluster_.suspend(job);
  }

  void start_wanted() {
    for (const int job : observer_.live()) {  // in order of submission, not of a hash
      const auto it = wanted_.find(job);
      if (it == wanted_.end() || cluster_.runs[at(job)].tier >= 0) continue;
      const int partner = it->second.partner;
      const bool joins = partner >= 0 && cluster_.runs[at(partner)].tier == it->second.tier;
      if (joins) {
        cluster_.join(job, partner);
      } else if (!cluster_.start(job, it->second.tier)) {
        continue;  // no nodes have room for the gang
      }
      if (session_ != kNever) session_end_[job] = cluster_.runs[at(job)].resumes + session_;
    }
  }

  Cluster& cluster_;
  const Policy& policy_;
  Observer observer_;
  Tick session_, round_;
  std::unordered_map<int, Wanted> wanted_;
  std::unordered_map<int, Tick> session_end_;
  std::vector<int> suspended_;
};

bool has_quality(const std::vector<WeightedObjective>& goals) {
  return std::any_of(goals.begin(), goals.end(), [](const WeightedObjective& goal) {
    return goal.objective == Objective::quality;
  });
}

}  // namespace

void run_policy(Cluster& cluster, const Policy& policy) {
  Live live(cluster, policy, {});
  run(cluster, live);
}

void run_named(Cluster& cluster, const PolicyTraits& traits) {
  // A pair that was measured is known to the cluster, as a table of job classes.
  std::unordered_map<std::int64_t, int> of_id;
  PairTable pairs;
  if (!cluster.workload.pairs.empty() && cluster.options.sharing != Sharing::exclusive) {
    for (int job = 0; job < static_cast<int>(cluster.runs.size()); ++job) {
      of_id.emplace(cluster.asked(job).id, job);
    }
    pairs = [&](std::int64_t first, std::int64_t second, int tier) {
      return cluster.shared(of_id.at(first), of_id.at(second), tier);
    };
  }
  const std::vector<WeightedObjective>& goals = cluster.options.planner.objectives;
  const bool for_jct = goals.size() == 1 && goals.front().objective == Objective::jct;
  const bool one_tier = cluster.capacity.size() == 1 && cluster.workload.curves.empty();
  const Policy decide = traits.make(traits.info, cluster.options, pairs);
  Live live(cluster, decide,
            {.sees = traits.info.sees,
             .looks_ahead = traits.looks_ahead || has_quality(goals),
             .follows_leader = traits.follows_leader && for_jct && one_tier});
  run(cluster, live);
}

std::function<bool()> stepwise(Cluster& cluster, Policy policy) {
  struct AtWork {
    AtWork(Cluster& on, Policy decide)
        : policy(std::move(decide)), live(on, policy, {.looks_ahead = true}) {}
    Policy policy;
    Live live;
  };
  return [&cluster, work = std::make_shared<AtWork>(cluster, std::move(policy))] {
    return advance(cluster, work->live);
  };
}

}  // namespace glidepath::detail
