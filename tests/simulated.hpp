// SPDX-License-Identifier: Apache-2.0
// Workloads for tests, and what must hold of any simulation.
#pragma once

#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"

namespace glidepath {

/// The policies of Gavel, which have neither failures nor nodes.
inline bool divides_time(std::string_view policy) {
  return policy == "max_min" || policy == "max_min_unaware" || policy == "fifo_perf" ||
         policy == "isolated";
}

/// So many jobs, but fewer under `pollux`, which breeds a hundred generations of plans in a round.
inline int jobs_for(std::string_view policy, int jobs) {
  return policy == "pollux" ? jobs / 4 : jobs;
}

/// Jobs of gangs of 1 to 8 GPUs and durations of 1 s to an hour, on one tier.
inline Workload random_workload(std::uint64_t seed, int jobs = 60, int gpus = 8) {
  const detail::Rng rng{seed};
  Workload out;
  out.name = "random";
  out.tiers.push_back({.name = "only", .nodes = gpus, .idle_watts = 20, .busy_watts = 300});
  double now = 0;
  for (int i = 0; i < jobs; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    if (rng.uniform(id, 0) < 0.7) now += std::floor(400 * rng.uniform(id, 1));  // ties as well
    WorkloadJob job{.id = 100 + i};
    job.user = "u" + std::to_string(rng.bits(id, 2) % 5);
    job.submit_s = now;
    job.gpus = 1 << (rng.bits(id, 3) % 4);
    job.duration_s = 1 + std::floor(std::exp(8 * rng.uniform(id, 4)));
    out.jobs.push_back(job);
  }
  return out;
}

/// Jobs of one GPU, each submitted and lasting so many seconds.
inline Workload on_gpus(int gpus, const std::vector<std::pair<double, double>>& jobs) {
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = gpus}};
  for (const auto& [submit_s, duration_s] : jobs) {
    WorkloadJob& job = workload.jobs.emplace_back();
    job.id = static_cast<std::int64_t>(workload.jobs.size());
    job.submit_s = submit_s;
    job.duration_s = duration_s;
  }
  return workload;
}

/// Three unlike tiers of nodes, jobs of several sizes, memories and activities.
inline Workload random_tiers(std::uint64_t seed, int jobs = 60) {
  const detail::Rng rng{seed};
  Workload out = random_workload(seed, jobs);
  out.tiers = {{.name = "small",
                .nodes = 4,
                .gpus_per_node = 2,
                .memory_gb = 12,
                .idle_watts = 15,
                .busy_watts = 200},
               {.name = "large",
                .nodes = 2,
                .gpus_per_node = 8,
                .memory_gb = 40,
                .idle_watts = 40,
                .busy_watts = 400},
               {.name = "one", .nodes = 3, .memory_gb = 24, .idle_watts = 20, .busy_watts = 300}};
  for (std::size_t i = 0; i < out.jobs.size(); ++i) {
    WorkloadJob& job = out.jobs[i];
    job.memory_gb = 2 + 18 * rng.uniform(i, 10);
    job.sm_activity = rng.uniform(i, 11);
    job.utilization = rng.uniform(i, 12);
    job.priority = static_cast<int>(rng.bits(i, 13) % 2);
    job.steps_per_s = {0.5 + rng.uniform(i, 14), 1 + rng.uniform(i, 15), 1};
  }
  return out;
}

/// Mean completion time under a policy with such errors of forecasts, three draws of them, over
/// that under `las`.
inline double ratio_to_las(const Workload& workload, const char* policy, double sigma) {
  SimulationOptions options;
  options.forecast_sigma = sigma;
  options.spans = false;
  double mean = 0;
  for (options.seed = 0; options.seed < 3; ++options.seed) {
    mean += simulate(workload, policy, options).mean_jct_s / 3;
  }
  return mean / simulate(workload, "las").mean_jct_s;
}

/// What came of one job.
struct JobResult {
  double start_s, end_s, jct_s, wait_s, gpu_seconds, energy_j;
  JobOutcome outcome;
};

inline JobResult result_of(const Simulation& run, std::int64_t id) {
  const auto found = std::find(run.jobs.job.begin(), run.jobs.job.end(), id);
  if (found == run.jobs.job.end()) {
    ADD_FAILURE() << "no job " << id;
    return {};
  }
  const auto i = static_cast<std::size_t>(found - run.jobs.job.begin());
  return {run.jobs.start_s[i],     run.jobs.end_s[i],    run.jobs.jct_s[i],  run.jobs.wait_s[i],
          run.jobs.gpu_seconds[i], run.jobs.energy_j[i], run.jobs.outcome[i]};
}

inline bool all_finished(const Simulation& run) {
  return std::all_of(run.jobs.outcome.begin(), run.jobs.outcome.end(),
                     [](JobOutcome outcome) { return outcome == JobOutcome::finished; });
}

/// A pair has one gang.
inline double gpus_of(const JobSpan& span) { return span.gpus * (span.partner < 0 ? 1.0 : 0.5); }

using JobsById = std::map<std::int64_t, const WorkloadJob*>;
inline JobsById jobs_by_id(const Workload& workload) {
  JobsById out;
  for (const WorkloadJob& job : workload.jobs) out[job.id] = &job;
  return out;
}

/// No GPU is used twice: at each start what is held fits the tier.
inline void expect_capacities_kept(const Workload& workload, const Simulation& run) {
  for (std::size_t t = 0; t < workload.tiers.size(); ++t) {
    std::map<double, double> change;
    for (const JobSpan& span : run.spans) {
      if (span.tier != static_cast<int>(t)) continue;
      change[span.start_s] += gpus_of(span);
      change[span.end_s] -= gpus_of(span);
    }
    double held = 0;
    for (const auto& [time, delta] : change) {
      held += delta;
      ASSERT_LE(held, workload.tiers[t].gpus()) << "at " << time;
      ASSERT_GE(held, 0);
    }
  }
}

/// Gangs are whole, on cards that hold them, and no job runs twice at once.
inline void expect_spans_possible(const Workload& workload, const Simulation& run) {
  const JobsById jobs = jobs_by_id(workload);
  std::map<std::int64_t, double> last_end;
  for (const JobSpan& span : run.spans) {
    ASSERT_LT(span.start_s, span.end_s);
    const WorkloadJob& job = *jobs.at(span.job);
    ASSERT_TRUE(span.gpus == job.gpus ||
                std::ranges::count(job.gangs, span.gpus, &Gang::gpus) == 1);
    const Tier& tier = workload.tiers[static_cast<std::size_t>(span.tier)];
    double memory_gb = job.memory_gb;
    if (span.partner >= 0) memory_gb += jobs.at(span.partner)->memory_gb;
    ASSERT_TRUE(tier.memory_gb == 0 || memory_gb <= tier.memory_gb);
    ASSERT_GE(span.start_s, last_end[span.job] - 1e-9);
    last_end[span.job] = span.end_s;
  }
}

/// The columns of the jobs are what the spans add up to, and work is conserved.
inline void expect_columns_of_spans(const Workload& workload, const Simulation& run,
                                    double restart_s) {
  const JobsById jobs = jobs_by_id(workload);
  std::map<std::int64_t, double> seconds, gpu_seconds;
  for (const JobSpan& span : run.spans) {
    seconds[span.job] += span.end_s - span.start_s;
    gpu_seconds[span.job] += (span.end_s - span.start_s) * gpus_of(span);
  }
  for (std::size_t i = 0; i < run.jobs.job.size(); ++i) {
    const WorkloadJob& job = *jobs.at(run.jobs.job[i]);
    const double held = seconds[job.id];
    ASSERT_NEAR(run.jobs.gpu_seconds[i], gpu_seconds[job.id], 1e-6 * (1 + held));
    ASSERT_NEAR(run.jobs.jct_s[i], run.jobs.wait_s[i] + held, 1e-6 * (1 + held));
    ASSERT_GE(run.jobs.start_s[i], run.jobs.submit_s[i]);
    ASSERT_GE(run.jobs.wait_s[i], -1e-9);
    if (job.duration_s == 0 || !job.steps_per_s.empty()) continue;
    ASSERT_GE(held, job.duration_s - 1e-6);
    const auto starts = static_cast<double>(run.jobs.preemptions[i] + run.jobs.failures[i]);
    const bool alone = run.gpu_seconds > 0 && gpu_seconds[job.id] >= (held - 1e-6) * job.gpus;
    if (alone && run.lost_gpu_seconds == 0) {
      ASSERT_LE(held, job.duration_s + starts * restart_s + 1e-6);
    }
  }
}

/// Users, tiers and the timeline add up to the same.
inline void expect_accounts_agree(const Simulation& run) {
  double held_s = 0, busy_j = 0, of_users = 0, of_tiers = 0, of_timeline = 0, kwh = 0;
  for (std::size_t i = 0; i < run.jobs.job.size(); ++i) {
    held_s += run.jobs.gpu_seconds[i];
    busy_j += run.jobs.energy_j[i];
  }
  for (const UserAccount& user : run.user_accounts) of_users += user.gpu_seconds;
  for (const TierAccount& tier : run.tier_accounts) {
    of_tiers += tier.gpu_seconds;
    kwh += tier.energy_kwh;
  }
  for (std::size_t k = 0; k + 1 < run.timeline.size(); ++k) {
    const TimelineRow& row = run.timeline[k];
    ASSERT_LT(row.time_s, run.timeline[k + 1].time_s);  // time is monotone
    ASSERT_GE(row.queued, 0);
    of_timeline += row.busy * (run.timeline[k + 1].time_s - row.time_s);
  }
  EXPECT_NEAR(run.gpu_seconds, held_s, 1e-9 * held_s);
  EXPECT_NEAR(of_users, held_s, 1e-6 * held_s);
  EXPECT_NEAR(of_tiers, held_s, 1e-6 * held_s);
  EXPECT_NEAR(of_timeline, held_s, 1e-6 * held_s);
  EXPECT_NEAR(kwh, run.energy_kwh, 1e-9 * kwh);
  EXPECT_GE(run.energy_kwh * 3.6e6, busy_j - 1e-6);
}

/// What another simulator printed of the same replay, to six digits.
template <class Printed>
void expect_reference(const Simulation& got, const Printed& want) {
  EXPECT_NEAR(got.mean_jct_s, want.mean, 1e-6 * want.mean);
  EXPECT_NEAR(got.median_jct_s, want.median, 1e-6 * want.median);
  EXPECT_NEAR(got.p95_jct_s, want.p95, 1e-6 * want.p95);
  EXPECT_EQ(got.makespan_s, want.makespan);
  EXPECT_EQ(got.preemptions, want.preemptions);
}

/// Everything that must hold of any simulation.
inline void expect_consistent(const Workload& workload, const Simulation& run,
                              double restart_s = 0) {
  SCOPED_TRACE(run.policy + " on " + workload.name);
  expect_capacities_kept(workload, run);
  expect_spans_possible(workload, run);
  expect_columns_of_spans(workload, run, restart_s);
  expect_accounts_agree(run);
  EXPECT_GE(run.utilization, 0);
  EXPECT_LE(run.utilization, 1 + 1e-12);
  if (!std::isnan(run.lower_bound_jct_s)) {
    EXPECT_LE(run.lower_bound_jct_s, run.mean_jct_s * (1 + 1e-9));
  }
}

}  // namespace glidepath
