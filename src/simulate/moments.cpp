// SPDX-License-Identifier: Apache-2.0
#include "simulate/moments.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/require.hpp"
#include "plan/value.hpp"
#include "simulate/leader.hpp"
#include "simulate/observer.hpp"
#include "simulate/play.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath {

namespace {

using detail::Cluster;
using detail::Predictor;
using detail::Run;

/// Whether the planner's values are those of the order that leads: as a simulation has it.
bool follows_leader(std::string_view policy, const Workload& workload,
                    const SimulationOptions& options) {
  const PlanOptions plans = options.planner.value_or(PlanOptions{});
  const std::vector<WeightedObjective>& goals = detail::objectives_of(plans);
  const detail::PolicyTraits& traits = detail::policy_named(policy);
  return traits.follows_leader && workload.tiers.size() == 1 && goals.size() == 1 &&
         goals.front().objective == Objective::jct && !detail::chooses_gangs(traits.info, workload);
}

/// By whose order values go: the planner's own, or that which leads under a simulation.
enum class Order : std::uint8_t { planner, leader };

/// A job as it arrived, with the law of its whole work.
Job as_it_arrived(int job, const Cluster& cluster, const detail::Foresight& foresight,
                  Predictor& predict) {
  const WorkloadJob& submitted = cluster.submitted(job);
  Job out{.id = -1 - submitted.id, .user = submitted.user};
  out.submit_s = std::min(submitted.submit_s, cluster.seconds(cluster.now));  // but for rounding
  out.weight = submitted.weight;
  out.priority = submitted.priority;
  out.options = detail::shown_options(cluster, job, foresight);
  out.remaining_steps = predict.at_arrival(job);
  return out;
}

Moment moment_of(const Cluster& cluster, Order order, const detail::Foresight& foresight,
                 int recent) {
  const bool leads = order == Order::leader;
  detail::Observer observer(cluster, foresight);
  for (int job = 0; job < cluster.arrived; ++job) {
    if (cluster.runs[job].end < 0) observer.arrive(job);
  }
  const Snapshot seen = observer.snapshot();
  Moment out{.now_s = seen.now_s,
             .jobs{seen.jobs.begin(), seen.jobs.end()},
             .running{seen.running.begin(), seen.running.end()}};
  Predictor predict(cluster);
  predict.refresh();
  detail::Leader next(cluster);
  const auto likely = [&](int job) { return predict.likely(job); };
  // Where nobody leads yet: it is looked for once somebody was seen to wait, so twice.
  for (int look = 0; leads && !cluster.by_gpu_time && look < 2; ++look) next.refresh(likely);
  const bool by_gpu_time = cluster.by_gpu_time.value_or(next.by_gpu_time().value_or(false));
  const auto per_second = static_cast<double>(cluster.per_second);
  const auto tell = [&](int job, Job& shown, double believed) {
    const int gpus = cluster.runs[job].gpus;
    if (leads && !by_gpu_time) shown.weight = cluster.submitted(job).weight * gpus;
    out.believed.push_back({shown.id, std::max(0.0, believed) / per_second});
  };
  for (std::size_t i = 0; i < out.jobs.size(); ++i) {
    const int job = observer.live()[i];
    const Run& run = cluster.runs[job];
    tell(job, out.jobs[i], predict.total(job) - cluster.done(job));
    // Policies are shown what the next start costs; all later ones are played, too.
    out.jobs[i].restart_s = cluster.seconds(cluster.restart_of(job));
    if (run.tier < 0 && run.first_start >= 0) {
      out.jobs[i].waiting_s = cluster.seconds(cluster.now - run.began);
    }
  }
  for (int job = std::max(0, cluster.arrived - recent); job < cluster.arrived; ++job) {
    Job& shown = out.recent.emplace_back(as_it_arrived(job, cluster, foresight, predict));
    tell(job, shown, predict.total(job));
  }
  return out;
}

}  // namespace

std::vector<Moment> moments_of(const Workload& workload, std::string_view policy,
                               const SimulationOptions& options, std::span<const double> at_s,
                               int recent) {
  (void)detail::play_rule_named(policy);
  if (!workload.curves.empty()) detail::refuse("moments_of: the jobs have curves");
  for (std::size_t i = 0; i < at_s.size(); ++i) {
    if (std::isnan(at_s[i])) {
      detail::refuse("moments_of: at_s[", i, "] is nan, expected a time");
    }
    if (i > 0 && at_s[i] <= at_s[i - 1]) {
      detail::refuse("moments_of: at_s must increase, at_s[", i, "] is ", at_s[i], " after ",
                     at_s[i - 1]);
    }
  }
  if (recent < 0) detail::refuse("moments_of: recent is ", recent, ", expected 0 or more");
  std::vector<Moment> out;
  std::size_t next = 0;
  const Order order = follows_leader(policy, workload, options) ? Order::leader : Order::planner;
  const detail::Foresight foresight{.elastic = detail::policy_named(policy).info.elastic};
  (void)detail::simulate_watched(workload, policy, options, [&](const Cluster& cluster) {
    if (next == at_s.size() || cluster.seconds(cluster.now) < at_s[next]) return;
    out.push_back(moment_of(cluster, order, foresight, recent));
    while (next < at_s.size() && at_s[next] <= cluster.seconds(cluster.now)) ++next;
  });
  return out;
}

}  // namespace glidepath
