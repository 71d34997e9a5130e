// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "simulate/live.hpp"

namespace glidepath::detail {

namespace {

/// Finish-time fairness of each job: JCT over the time that it would have taken with an equal share
/// of the cluster, A times the contention: A its time alone with the same share of each tier.
struct Fairness {
  /// Contention max(1, n g / C): g the gang, C all GPUs, n the mean number of live jobs while it
  /// lived (after Themis, Mahajan et al., NSDI 2020).
  std::vector<double> live;
  /// Contention max(1, N / C), N all jobs of the workload (Shockwave, Zheng et al., NSDI 2023).
  std::vector<double> fixed;
};

/// NaN for a job that has not ended, and for one that was given up before it did any work: it had
/// no use for a share.
Fairness finish_time_fairness(const Cluster& cluster) {
  std::vector<std::pair<Tick, int>> changes;
  for (const Run& run : cluster.runs) {
    if (run.end < 0) continue;
    changes.emplace_back(run.submit, 1);
    changes.emplace_back(run.end, -1);
  }
  std::sort(changes.begin(), changes.end());
  // area[k]: job-ticks before changes[k]
  std::vector<double> area(changes.size() + 1, 0.0);
  double live = 0;
  for (std::size_t k = 0; k < changes.size(); ++k) {
    const auto gap = k == 0 ? 0.0 : static_cast<double>(changes[k].first - changes[k - 1].first);
    area[k + 1] = area[k] + live * gap;
    live += changes[k].second;
  }
  const auto area_at = [&](Tick tick) {
    const auto it = std::lower_bound(changes.begin(), changes.end(), std::pair{tick, -2});
    return area[it - changes.begin() + 1];
  };
  double all_gpus = 0;
  for (const Tier& tier : cluster.workload.tiers) all_gpus += tier.gpus();
  const double all_jobs = static_cast<double>(cluster.runs.size());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Fairness out;
  out.live.reserve(cluster.runs.size());
  out.fixed.reserve(cluster.runs.size());
  for (std::size_t i = 0; i < cluster.runs.size(); ++i) {
    const Run& run = cluster.runs[i];
    const bool without_work = run.outcome == JobOutcome::never && run.done <= 0;
    if (run.end <= run.submit || without_work) {
      const double none = run.end < 0 || without_work ? nan : 1.0;
      out.live.push_back(none);
      out.fixed.push_back(none);
      continue;
    }
    double even = 0;
    for (std::size_t t = 0; t < cluster.workload.tiers.size(); ++t) {
      const int job = static_cast<int>(i), tier = static_cast<int>(t);
      if (!cluster.usable(job, tier)) continue;
      even += cluster.rate(job, tier) * cluster.workload.tiers[t].gpus() / all_gpus;
    }
    const auto jct = static_cast<double>(run.end - run.submit);
    const double n = (area_at(run.end) - area_at(run.submit)) / jct;
    const double alone = run.done / even;  // what it did, for a job that was stopped
    out.live.push_back(jct / (alone * std::max(1.0, n * run.gpus / all_gpus)));
    out.fixed.push_back(jct / (alone * std::max(1.0, all_jobs / all_gpus)));
  }
  return out;
}

void user_accounts(const Cluster& cluster, Simulation& out) {
  std::map<std::string_view, std::size_t> place;  // in order of first submission
  for (std::size_t i = 0; i < cluster.runs.size(); ++i) {
    const std::string& user = cluster.workload.jobs[cluster.order[i]].user;
    const auto [it, is_new] = place.emplace(user, out.user_accounts.size());
    if (is_new) out.user_accounts.push_back({.name = user});
    UserAccount& account = out.user_accounts[it->second];
    ++account.jobs;
    account.gpu_seconds += out.jobs.gpu_seconds[i];
    account.energy_kwh += out.jobs.energy_j[i] / kJoulesPerKwh;
    if (std::isnan(out.jobs.jct_s[i])) continue;
    account.mean_jct_s += out.jobs.jct_s[i];  // divided below
    account.wait_s += out.jobs.wait_s[i];
  }
  std::vector<double> ended(out.user_accounts.size(), 0.0);
  for (std::size_t i = 0; i < cluster.runs.size(); ++i) {
    if (cluster.runs[i].end < 0) continue;
    ended[place.at(cluster.workload.jobs[cluster.order[i]].user)] += 1;
  }
  for (std::size_t u = 0; u < ended.size(); ++u) out.user_accounts[u].mean_jct_s /= ended[u];
}

/// Held GPUs at the power of their jobs, the others idle, asleep or out, from the first submission
/// to the last end, or to when the last GPUs were given back by a job that did not end.
void tier_accounts(const Cluster& cluster, Tick first, Tick last, Simulation& out) {
  const bool carbon = !cluster.options.carbon_g_per_kwh.empty();
  const Stretch all = cluster.clock.between(first, last);
  std::vector<Nodes::Off> off(cluster.workload.tiers.size());
  if (cluster.nodes) off = cluster.nodes->off_between(first, last);
  double joules = 0;
  double grams = 0;
  double gpus = 0;
  for (std::size_t t = 0; t < cluster.workload.tiers.size(); ++t) {
    const Tier& tier = cluster.workload.tiers[t];
    const Stretch idle = tier.gpus() * all - cluster.held[t] - off[t].asleep - off[t].out;
    Stretch energy = cluster.energy[t];
    energy += tier.idle_watts * idle;
    energy += cluster.options.sleep.watts * off[t].asleep;
    out.tier_accounts.push_back(
        {.name = tier.name,
         .starts = cluster.starts[t],
         .gpu_seconds = cluster.held[t].s,
         .utilization = all.s > 0 ? cluster.held[t].s / (tier.gpus() * all.s) : 0,
         .energy_kwh = energy.s / kJoulesPerKwh});
    joules += energy.s;
    grams += energy.carbon / kJoulesPerKwh;
    gpus += tier.gpus();
  }
  out.energy_kwh = joules / kJoulesPerKwh;
  out.carbon_kg = carbon ? grams / 1000 : std::numeric_limits<double>::quiet_NaN();
  out.utilization = all.s > 0 ? out.gpu_seconds / (gpus * all.s) : 0;
}

std::vector<TimelineRow> timeline(const Cluster& cluster) {
  struct Change {
    double time_s;
    int running, live;
    double busy;
  };
  std::vector<Change> changes;
  changes.reserve(2 * (cluster.spans.size() + cluster.runs.size()));
  for (const JobSpan& span : cluster.spans) {
    const double busy = span.gpus * (span.partner < 0 ? 1.0 : 0.5);
    changes.push_back({span.start_s, 1, 0, busy});
    changes.push_back({span.end_s, -1, 0, -busy});
  }
  for (const Run& run : cluster.runs) {
    changes.push_back({cluster.seconds(run.submit), 0, 1, 0});
    if (run.end >= 0) changes.push_back({cluster.seconds(run.end), 0, -1, 0});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time_s < b.time_s; });
  std::vector<TimelineRow> rows;
  TimelineRow now;
  for (std::size_t k = 0; k < changes.size(); ++k) {
    now.time_s = changes[k].time_s;
    now.running += changes[k].running;
    now.queued += changes[k].live - changes[k].running;
    now.busy += changes[k].busy;
    if (k + 1 == changes.size() || changes[k + 1].time_s > now.time_s) rows.push_back(now);
  }
  return rows;
}

struct Ended {
  std::vector<double> jct;        ///< of the jobs that ended
  Tick first = kNever, last = 0;  ///< submission of any, end
};

/// Fills the columns of the jobs and the sums over them.
Ended job_columns(const Cluster& cluster, Simulation& out) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t n = cluster.runs.size();
  JobColumns& jobs = out.jobs;
  Ended ended;
  double with_deadline = 0;
  double in_time = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Run& run = cluster.runs[i];
    const WorkloadJob& submitted = cluster.workload.jobs[cluster.order[i]];
    const bool has_ended = run.end >= 0;
    const bool done = run.outcome == JobOutcome::finished || run.outcome == JobOutcome::target;
    const auto if_ended = [&](Tick tick) { return has_ended ? cluster.seconds(tick) : nan; };
    jobs.job.push_back(submitted.id);
    jobs.user.push_back(submitted.user);
    jobs.submit_s.push_back(cluster.seconds(run.submit));
    jobs.start_s.push_back(run.first_start < 0 ? nan : cluster.seconds(run.first_start));
    jobs.end_s.push_back(if_ended(run.end));
    jobs.jct_s.push_back(if_ended(run.end - run.submit));
    jobs.wait_s.push_back(if_ended(run.end - run.submit - run.held));
    jobs.preemptions.push_back(run.suspensions);
    jobs.failures.push_back(run.failures);
    jobs.gpu_seconds.push_back(cluster.seconds(run.held) * run.gpus -
                               0.5 * cluster.seconds(run.shared) * run.gpus +
                               run.extra_gpu / static_cast<double>(cluster.per_second));
    jobs.energy_j.push_back(run.energy_j);
    jobs.outcome.push_back(run.outcome);
    out.preemptions += run.suspensions;
    out.failures += run.failures;
    if (submitted.deadline_s < kInfinity) {
      ++with_deadline;
      in_time += done && cluster.seconds(run.end) <= submitted.deadline_s;
    }
    out.gpu_seconds += jobs.gpu_seconds.back();
    ended.first = std::min(ended.first, run.submit);
    if (!has_ended) continue;
    ended.last = std::max(ended.last, run.end);
    ended.jct.push_back(jobs.jct_s.back());
    out.total_wait_s += jobs.wait_s.back();
  }
  out.share_in_time = in_time / with_deadline;
  return ended;
}

}  // namespace

Simulation results(const Cluster& cluster, std::string policy) {
  Simulation out;
  out.policy = std::move(policy);
  out.workload = cluster.workload.name;
  for (const Tier& tier : cluster.workload.tiers) out.tiers.push_back(tier.name);
  auto [jct, first, last] = job_columns(cluster, out);
  out.events = cluster.events;
  if (const Fallback& fallback = cluster.fallback; fallback.left > 0) {
    out.fallback =
        sentence(fallback.left, " of ", fallback.decisions, " decisions by jct: ", fallback.why);
  }
  out.lost_gpu_seconds = cluster.lost_gpu_s;
  out.lower_bound_jct_s = lower_bound_jct_s(cluster.workload);
  user_accounts(cluster, out);
  if (cluster.options.spans) out.timeline = timeline(cluster);
  out.spans = cluster.spans;
  const auto ended = static_cast<double>(jct.size());  // where none did, means are NaN
  for (const double value : jct) out.mean_jct_s += value;
  out.mean_jct_s /= ended;
  out.mean_wait_s = out.total_wait_s / ended;
  out.mean_wait_per_user_s = out.total_wait_s / static_cast<double>(out.user_accounts.size());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  out.median_jct_s = jct.empty() ? nan : interpolated_quantile(jct, 0.5);
  out.p95_jct_s = jct.empty() ? nan : interpolated_quantile(jct, 0.95);
  out.makespan_s = jct.empty() ? 0 : cluster.seconds(last - first);
  tier_accounts(cluster, first, std::max({first, last, cluster.last_held}), out);
  Fairness fairness = finish_time_fairness(cluster);
  const auto sum_up = [&](const std::vector<double>& ftf, double& worst, double& unfair) {
    double known = 0;
    for (const double rho : ftf) {
      if (std::isnan(rho)) continue;
      ++known;
      worst = std::max(worst, rho);
      unfair += rho > cluster.options.unfair_above;
    }
    if (known == 0) worst = nan;
    unfair /= known;
  };
  sum_up(fairness.live, out.worst_ftf, out.share_unfair);
  sum_up(fairness.fixed, out.worst_ftf_static, out.share_unfair_static);
  out.jobs.ftf = std::move(fairness.live);
  out.jobs.ftf_static = std::move(fairness.fixed);
  return out;
}

}  // namespace glidepath::detail
