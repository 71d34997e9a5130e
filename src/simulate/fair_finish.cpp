// SPDX-License-Identifier: Apache-2.0
#include "simulate/fair_finish.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulate/policy_table.hpp"
#include "simulate/snapshots.hpp"

namespace glidepath::detail {

namespace {

double gpus_of(const Snapshot& snapshot) {
  double gpus = 0;
  for (const Tier& tier : snapshot.tiers) gpus += tier.gpus();
  return gpus;
}

/// See FairFinish; the time that jobs have been live is that between its decisions. On several
/// tiers an order is not enough: there the planner places the late jobs as a class of their own
/// before the long ones and the others, each class for completion times.
class FairOrder {
 public:
  explicit FairOrder(const SimulationOptions& options)
      : rule_(options), packing_(packing_of(options)) {
    planner_.limits.in_nodes = options.in_nodes;
    planner_.reasons = false;
    if (options.round_s) planner_.round_s = *options.round_s;
  }

  Plan operator()(const Snapshot& snapshot) {
    live_sum_ += live_ * (snapshot.now_s - then_s_);
    then_s_ = snapshot.now_s;
    live_ = static_cast<double>(snapshot.jobs.size());
    double worst = rule_.max_ftf;
    for (const Job& job : snapshot.jobs) worst = std::max(worst, look(snapshot, job));
    const std::vector<int> longest = long_ones(snapshot);
    // Kind (0 late, 1 long, 2 the others), key, index.
    Order order;
    for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
      const Job& job = snapshot.jobs[i];
      const Seen& seen = seen_.at(job.id);
      const bool is_long = std::binary_search(longest.begin(), longest.end(), static_cast<int>(i));
      if (seen.fair_s >= 0) {
        order.emplace_back(0, job.submit_s + worst * seen.fair_s, i);
      } else if (is_long) {
        order.emplace_back(1, 0.0, i);
      } else {
        order.emplace_back(2, gittins_rank(job) / job.weight, i);
      }
    }
    std::sort(order.begin(), order.end());
    if (snapshot.tiers.size() > 1) return planned(snapshot, order);
    Plan plan;
    Filling filling(snapshot, packing_);
    for (const auto& [kind, key, i] : order) filling.keep_or_start(snapshot.jobs[i], plan);
    return plan;
  }

 private:
  using Order = std::vector<std::tuple<int, double, std::size_t>>;
  [[nodiscard]] Plan planned(const Snapshot& snapshot, const Order& order) const {
    std::vector<Job> jobs(snapshot.jobs.begin(), snapshot.jobs.end());
    for (const auto& [kind, key, i] : order) jobs[i].priority = -kind;
    Snapshot classed = snapshot;
    classed.jobs = jobs;
    return plan(classed, planner_);
  }
  struct Seen {
    double live_at = 0;  ///< `live_sum_` when it was new
    double fair_s = -1;  ///< time with a fair share, of a late one
  };
  /// What a late job heads for; 0 for another one.
  double look(const Snapshot& snapshot, const Job& job) {
    Seen& seen = seen_.try_emplace(job.id, Seen{live_sum_}).first->second;
    Heading now = heading_of(snapshot, job, FairFinish::kQuantile, gpus_of(snapshot));
    now.live_before = live_sum_ - seen.live_at;
    if (!(now.alone > 0)) return 0;  // nothing is left, or nothing known
    if (seen.fair_s < 0 && now.ftf() >= rule_.max_ftf) seen.fair_s = now.fair();
    return seen.fair_s < 0 ? 0 : now.ftf();
  }
  [[nodiscard]] std::vector<int> long_ones(const Snapshot& snapshot) const {
    std::vector<Length> lengths;
    for (const Job& job : snapshot.jobs) {
      lengths.push_back(
          {remaining_s(job, FairFinish::kMedian), gang(job), static_cast<int>(lengths.size())});
    }
    return long_jobs(std::move(lengths), gpus_of(snapshot), rule_.long_share);
  }

  FairFinish rule_;
  Packing packing_;
  PlanOptions planner_;
  double live_sum_ = 0, live_ = 0, then_s_ = 0;
  std::unordered_map<std::int64_t, Seen> seen_;
};

}  // namespace

Heading heading_of(const Snapshot& snapshot, const Job& job, double quantile, double gpus) {
  double even = 0;
  for (const Option& option : job.options) {
    even += option.steps_per_s * snapshot.tiers[option.tier].gpus() / gpus;
  }
  const double age_s = snapshot.now_s - job.submit_s;
  const double left_s = remaining_s(job, quantile);
  const auto live = static_cast<double>(snapshot.jobs.size());
  return {.total = age_s + left_s,
          .alone = (job.steps_done + left_s * fastest(job)) / even,
          .live_before = live * age_s,
          .live = live,
          .left = left_s,
          .share = gang(job) / gpus};
}

Policy make_fair_finish(const PolicySetup& setup) { return FairOrder(setup.options); }

}  // namespace glidepath::detail
