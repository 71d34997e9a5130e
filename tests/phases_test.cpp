// SPDX-License-Identifier: Apache-2.0
// Jobs whose speed changes in mid-run, against an integration of each job's own stretches in long
// double and against the jobs of constant speed that take as long.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "refusal.hpp"
#include "simulated.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

/// Up to four phases, some of them slower than the one before.
std::vector<Phase> random_phases(std::uint64_t seed, std::uint64_t id) {
  const detail::Rng rng{seed};
  std::vector<Phase> out;
  double from = 0;
  for (std::uint64_t k = 0; k < rng.bits(id, 0) % 5; ++k) {
    from += 0.02 + 0.22 * rng.uniform(id, 1 + k);
    out.push_back({from, std::exp(rng.normal(id, 10 + k))});
  }
  return out;
}

Workload with_phases(Workload workload, std::uint64_t seed) {
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    workload.jobs[i].phases = random_phases(seed, i);
  }
  return workload;
}

/// Seconds at rate 1 that a job takes, phase after phase.
long double alone_s(const WorkloadJob& job) {
  long double sum = 0, from = 0, speed = 1;
  for (const Phase& phase : job.phases) {
    sum += (phase.from - from) / speed;
    from = phase.from;
    speed = phase.speed;
  }
  return (sum + (1 - from) / speed) * (job.duration_s > 0 ? job.duration_s : job.budget_steps);
}

/// The share of its work that a job has done after its spans, each followed from phase to phase.
long double share_done(const WorkloadJob& job, const std::vector<JobSpan>& spans,
                       double restart_s) {
  const long double work = job.duration_s > 0 ? job.duration_s : job.budget_steps;
  long double done = 0;
  bool first = true;
  for (const JobSpan& span : spans) {
    if (span.job != job.id) continue;
    long double left = static_cast<long double>(span.end_s) - span.start_s;
    if (!first) left -= std::min<long double>(left, restart_s);
    first = false;
    const double rate = job.steps_per_s.empty() ? 1 : job.steps_per_s[span.tier];
    while (left > 0) {
      long double speed = 1, until = 2;
      for (const Phase& phase : job.phases) {
        if (phase.from <= done) {
          speed = phase.speed;
        } else {
          until = phase.from;
          break;
        }
      }
      const long double pace = rate * speed / work;
      const long double step = std::min(left, (until - done) / pace);
      done = step < left ? until : done + step * pace;
      left -= step;
    }
  }
  return done;
}

TEST(PhasesTest, AJobGoesFasterFromAShareOfItsWorkOn) {
  // 50 s for the first half, 25 s for the next quarter at twice the speed would be 12.5 s ...
  Workload workload = on_gpus(1, {{0, 100}});
  workload.jobs[0].phases = {{0.5, 2}, {0.75, 0.5}};
  for (const std::string_view policy : policy_names()) {
    const Simulation run = simulate(workload, policy);
    EXPECT_DOUBLE_EQ(run.mean_jct_s, 50 + 12.5 + 50) << policy;
    EXPECT_DOUBLE_EQ(run.gpu_seconds, 112.5) << policy;
  }
}

TEST(PhasesTest, EachJobDoesAllItsWorkAndNoMoreUnderEveryPolicy) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (const bool tiers : {false, true}) {
      const Workload workload =
          with_phases(tiers ? random_tiers(seed, 40) : random_workload(seed, 40), 50 + seed);
      for (const PolicyInfo& policy : policies()) {
        SimulationOptions options;
        const bool shares_time = divides_time(policy.name);
        options.restart_s = 20;
        const Simulation run = simulate(workload, policy.name, options);
        SCOPED_TRACE(std::string(policy.name) + " " + std::to_string(seed));
        expect_capacities_kept(workload, run);
        expect_accounts_agree(run);
        ASSERT_TRUE(all_finished(run));
        EXPECT_GE(run.mean_jct_s, run.lower_bound_jct_s * (1 - 1e-9));
        for (const WorkloadJob& job : workload.jobs) {
          const long double done = share_done(job, run.spans, options.restart_s);
          // A job is done at the first whole tick after it; a policy of Gavel makes whole steps.
          const double slack = shares_time ? 0.02 : 1e-4;
          ASSERT_NEAR(static_cast<double>(done), 1, slack) << job.id;
        }
      }
    }
  }
}

TEST(PhasesTest, PhasesOfSpeedOneChangeNoByte) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Workload plain = random_tiers(60 + seed, 30);
    Workload phased = plain;
    for (WorkloadJob& job : phased.jobs) job.phases = {{0.1, 1}, {0.3, 1}, {0.7, 1}};
    for (const std::string_view policy : policy_names()) {
      const Simulation want = simulate(plain, policy), run = simulate(phased, policy);
      EXPECT_EQ(run.jobs.end_s, want.jobs.end_s) << policy;
      EXPECT_EQ(run.jobs.energy_j, want.jobs.energy_j) << policy;
      EXPECT_EQ(run.jobs.ftf_static, want.jobs.ftf_static) << policy;
      EXPECT_EQ(run.spans, want.spans) << policy;
      EXPECT_EQ(run.lower_bound_jct_s, want.lower_bound_jct_s) << policy;
    }
  }
}

TEST(PhasesTest, ToAPolicyThatKnowsThemTheyAreTheTimeThatTheJobTakes) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Workload phased = with_phases(random_workload(70 + seed, 60), seed);
    Workload constant = phased;
    for (WorkloadJob& job : constant.jobs) {
      job.duration_s = static_cast<double>(alone_s(job));
      job.phases.clear();
    }
    for (const double sigma : {0.0, 0.5}) {
      SimulationOptions options;
      if (sigma > 0) options.forecast_sigma = sigma;
      for (const std::string_view policy :
           {"fifo", "srtf", "gittins", "fair_finish", "best_value", "las", "themis", "makespan"}) {
        const Simulation run = simulate(phased, policy, options);
        const Simulation want = simulate(constant, policy, options);
        SCOPED_TRACE(std::string(policy) + " " + std::to_string(seed));
        EXPECT_NEAR(run.mean_jct_s, want.mean_jct_s, 1e-9 * want.mean_jct_s);
        EXPECT_NEAR(run.worst_ftf, want.worst_ftf, 1e-9 * want.worst_ftf);
        EXPECT_NEAR(run.worst_ftf_static, want.worst_ftf_static, 1e-9 * want.worst_ftf_static);
        EXPECT_EQ(run.preemptions, want.preemptions);
      }
    }
  }
}

TEST(PhasesTest, TimeLeftIsThatOfThePhasesOrOfThePresentSpeed) {
  Workload workload = on_gpus(1, {{0, 100}, {20, 1}});
  workload.jobs[0].phases = {{0.2, 4}, {0.6, 0.5}};  // 20 s, 10 s, 80 s
  const auto seen_at = [&](bool knows, double at_s) {
    double left_s = -1;
    const Policy looks = [&](const Snapshot& seen) {
      Plan plan;
      for (const Job& job : seen.jobs) {
        if (job.id != 1) continue;
        plan.allocations.push_back({1, 0, 1});
        if (seen.now_s == at_s) {
          left_s = job.remaining_steps.front() / job.options.front().steps_per_s;
        }
      }
      if (plan.allocations.empty()) plan.allocations.push_back({seen.jobs.front().id, 0, 1});
      return plan;
    };
    SimulationOptions options{.round_s = 5, .knows_phases = knows};
    EXPECT_DOUBLE_EQ(simulate(workload, looks, options).jobs.end_s[0], 110);
    return left_s;
  };
  EXPECT_NEAR(seen_at(true, 0), 110, 1e-9);
  EXPECT_NEAR(seen_at(false, 0), 100, 1e-9);
  EXPECT_NEAR(seen_at(true, 10), 100, 1e-9);
  EXPECT_NEAR(seen_at(false, 10), 90, 1e-9);
  EXPECT_NEAR(seen_at(true, 25), 85, 1e-9);
  EXPECT_NEAR(seen_at(false, 25), 15, 1e-9);  // 60 of 100 at four times the speed
  EXPECT_NEAR(seen_at(true, 30), 80, 1e-9);
  EXPECT_NEAR(seen_at(false, 30), 80, 1e-9);
}

TEST(PhasesTest, AnOrderByTimeLeftGoesByWhatIsKnownOfTheSpeed) {
  // The first takes 10 s and then 9 s for the rest; it would take 100 s as it begins.
  Workload workload = on_gpus(1, {{0, 100}, {0, 50}});
  workload.jobs[0].phases = {{0.1, 10}};
  for (const std::string_view policy : {"srtf", "srsf", "gittins", "best_value", "optimus"}) {
    EXPECT_DOUBLE_EQ(result_of(simulate(workload, policy), 1).end_s, 19) << policy;
    SimulationOptions options{.knows_phases = false};
    EXPECT_DOUBLE_EQ(result_of(simulate(workload, policy, options), 2).end_s, 50) << policy;
    EXPECT_DOUBLE_EQ(result_of(simulate(workload, policy, options), 1).end_s, 69) << policy;
  }
}

TEST(PhasesTest, WhoeverTakesThePresentSpeedToLastDoesAllWorkToo) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Workload workload = with_phases(random_workload(80 + seed, 60), seed);
    for (const PolicyInfo& policy : policies()) {
      SimulationOptions options{.knows_phases = false};
      const bool shares_time = policy.round_s == 360 && policy.sees == Forecasts::none;
      options.restart_s = 10;
      const Simulation run = simulate(workload, policy.name, options);
      SCOPED_TRACE(std::string(policy.name) + " " + std::to_string(seed));
      ASSERT_TRUE(all_finished(run));
      expect_capacities_kept(workload, run);
      for (const WorkloadJob& job : workload.jobs) {
        const long double done = share_done(job, run.spans, options.restart_s);
        ASSERT_NEAR(static_cast<double>(done), 1, shares_time ? 0.02 : 1e-4) << job.id;
      }
    }
  }
}

TEST(PhasesTest, WhatMakesNoSenseIsRefused) {
  const auto with = [](const std::vector<Phase>& phases) {
    Workload workload = on_gpus(1, {{0, 100}});
    workload.jobs[0].phases = phases;
    return refusal([&] { validate(workload); });
  };
  EXPECT_EQ(with({{0, 2}, {0.999, 0.1}}), "");
  EXPECT_EQ(with({{1, 2}}), "workload: job 1 has a phase from 1, expected a share of 0 to below 1");
  EXPECT_EQ(
      with({{0.5, 2}, {0.5, 3}}),
      "workload: job 1 has a phase from 0.5, expected more than 0.5, where the one before begins");
  EXPECT_EQ(with({{0.5, 0}}), "workload: job 1 has speed 0 from 0.5, expected more than 0");
  EXPECT_NE(with({{NAN, 1}}), "");
  EXPECT_NE(with({{0.5, NAN}}), "");
  EXPECT_EQ(with({{0.5, 1e-300}}), "workload: job 1 lies beyond 1e12 seconds by its phases");

  Workload workload = on_gpus(1, {{0, 100}});
  SimulationOptions options{.knows_phases = false};
  EXPECT_EQ(refusal([&] { (void)simulate(workload, "srtf", options); }),
            "simulate: knows_phases is off, no job has phases");
  workload.jobs[0].phases = {{0.5, 2}};
  options.forecast_sigma = 0.5;
  EXPECT_EQ(refusal([&] { (void)simulate(workload, "srtf", options); }),
            "simulate: knows_phases is off and forecast_sigma is 0.5, expected one of them");
  workload.curves = {{.step = {1, 2}, .loss = {2, 1}}};
  workload.jobs[0] = {.id = 1, .truth = 0, .budget_steps = 2, .phases = {{0.5, 2}}};
  EXPECT_EQ(refusal([&] { validate(workload); }),
            "workload: job 1 has phases and a curve: the steps of a curve are as fast as its rates "
            "say");
}

using WrittenJobsTest = TemporaryFiles;

TEST_F(WrittenJobsTest, AreReadBackWithTheirGangsPhasesAndRestarts) {
  Workload workload = with_phases(random_tiers(5, 20), 5);
  workload.jobs[3].gangs = {{16, {0, 3.7, 0}}};
  workload.jobs[4].restart_s = 12.25;
  workload.jobs[5].deadline_s = 1e5 / 3;
  workload.jobs[6].user = "a, \"b\"";
  workload.jobs[7].duration_s = 0;
  workload.jobs[7].budget_steps = 1e4 / 7;
  write("tiers.csv",
        "name,nodes,gpus_per_node,memory_gb\nsmall,4,2,12\nlarge,2,8,40\none,3,1,24\n");
  write("gangs.csv", "job,gpus\n1,2\n");  // of other jobs
  write_jobs(workload, path("jobs.csv"));
  const Workload read = read_workload(path(""));
  ASSERT_EQ(read.jobs.size(), workload.jobs.size());
  for (std::size_t i = 0; i < read.jobs.size(); ++i) {
    const WorkloadJob &a = read.jobs[i], &b = workload.jobs[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.user, b.user);
    EXPECT_EQ(a.duration_s, b.duration_s);
    EXPECT_EQ(a.budget_steps, b.budget_steps);
    EXPECT_EQ(a.memory_gb, b.memory_gb);
    EXPECT_EQ(a.sm_activity, b.sm_activity);
    EXPECT_EQ(a.priority, b.priority);
    EXPECT_EQ(a.deadline_s, b.deadline_s);
    EXPECT_EQ(a.restart_s, b.restart_s);
    EXPECT_EQ(a.steps_per_s, b.steps_per_s);
    EXPECT_EQ(a.gangs, b.gangs);
    EXPECT_EQ(a.phases, b.phases);
  }
  workload.jobs[3].gangs.clear();
  for (WorkloadJob& job : workload.jobs) job.phases.clear();
  write_jobs(workload, path("jobs.csv"));
  for (const WorkloadJob& job : read_workload(path("")).jobs) {
    EXPECT_TRUE(job.gangs.empty() && job.phases.empty()) << job.id;
  }
}

TEST_F(WrittenJobsTest, OfAWorkloadThatCannotBeAreRefused) {
  Workload workload = with_phases(random_tiers(5, 20), 5);
  workload.jobs[2].phases.clear();
  workload.jobs[2].truth = 3;
  const std::string sentence =
      "workload: job 2000 names curve 3, expected none: there are no curves";
  workload.jobs[2].id = 2000;
  EXPECT_EQ(refusal([&] { write_jobs(workload, path("jobs.csv")); }), sentence);
}

}  // namespace
}  // namespace glidepath
