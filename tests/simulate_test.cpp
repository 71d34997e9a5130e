// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include "glidepath/error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "refusal.hpp"
#include "simulate/policy_table.hpp"
#include "simulated.hpp"

namespace glidepath {
namespace {

TEST(InvariantTest, HoldForEachPolicyOverRandomWorkloads) {
  for (std::uint64_t seed = 100; seed < 115; ++seed) {
    for (const std::string_view policy : policy_names()) {
      const Workload workload = random_workload(seed, jobs_for(policy, 60));
      for (const double restart_s : {0.0, 30.0}) {
        SimulationOptions options;
        options.restart_s = restart_s;
        options.seed = seed;
        if (policy == "session_fifo") options.session_s = 500;
        if (seed % 2 == 0) options.forecast_sigma = 1.0;
        const Simulation run = simulate(workload, policy, options);
        expect_consistent(workload, run, restart_s);
        EXPECT_TRUE(all_finished(run)) << policy;
      }
    }
  }
}

/// Any plan that can be carried out: gangs here and there, some of them in pairs.
Plan random_plan(const Snapshot& snapshot, const detail::Rng& rng, std::uint64_t draw) {
  Plan plan;
  std::vector<int> room;
  for (const Tier& tier : snapshot.tiers) room.push_back(tier.gpus());
  std::vector<std::size_t> alone;  // allocations that may take a partner
  std::map<std::int64_t, const Job*> of_id;
  for (const Job& job : snapshot.jobs) {
    of_id[job.id] = &job;
    const double u = rng.uniform(static_cast<std::uint64_t>(job.id), draw);
    if (u < 0.15) continue;
    const Option& option = job.options[static_cast<std::size_t>(u * 997) % job.options.size()];
    const double card = snapshot.tiers[static_cast<std::size_t>(option.tier)].memory_gb;
    const auto host = std::find_if(alone.begin(), alone.end(), [&](std::size_t a) {
      const Allocation& with = plan.allocations[a];
      return u > 0.5 && with.partner < 0 && with.tier == option.tier && with.gpus == option.gpus &&
             of_id[with.job]->memory_gb + job.memory_gb <= card;
    });
    if (host != alone.end()) {
      plan.allocations[*host].partner = job.id;
      plan.allocations.push_back(
          {job.id, option.tier, option.gpus, snapshot.now_s, plan.allocations[*host].job});
      alone.erase(host);
    } else if (room[static_cast<std::size_t>(option.tier)] >= option.gpus) {
      room[static_cast<std::size_t>(option.tier)] -= option.gpus;
      alone.push_back(plan.allocations.size());
      plan.allocations.push_back({job.id, option.tier, option.gpus, snapshot.now_s});
    }
  }
  return plan;
}

TEST(InvariantTest, HoldForAnyPlansWithFailuresSharingNodesAndSleep) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Workload workload = random_tiers(seed, 40);
    const detail::Rng rng{seed};
    SimulationOptions options;
    options.seed = seed;
    options.restart_s = seed % 2 == 0 ? 0 : 20;
    options.round_s = 300;
    options.sharing = seed % 3 == 0 ? Sharing::naive : Sharing::mps;
    options.failures = {.node_every_s = 20000,
                        .repair_s = 1000,
                        .job_every_s = 4000,
                        .checkpoint_s = seed % 4 == 0 ? 0.0 : 600.0};
    options.sleep = {.after_s = 100, .watts = 2, .wake_s = 15};
    options.in_nodes = seed % 5 == 0;
    std::uint64_t draw = 0;
    const Simulation run = simulate(
        workload, [&](const Snapshot& s) { return random_plan(s, rng, ++draw); }, options);
    expect_consistent(workload, run, options.restart_s + options.sleep.wake_s);
    EXPECT_TRUE(all_finished(run)) << seed;
    EXPECT_GT(run.failures, 0);
  }
}

TEST(InvariantTest, HoldForEachPolicyOnTiersWithFailures) {
  for (std::uint64_t seed = 200; seed < 206; ++seed) {
    const Workload workload = random_tiers(seed);
    for (const std::string_view policy : policy_names()) {
      if (detail::policy_named(policy).shares) continue;  // refuses failures
      SimulationOptions options;
      options.seed = seed;
      options.restart_s = 10;
      options.failures = {
          .node_every_s = 30000, .repair_s = 2000, .job_every_s = 5000, .checkpoint_s = 300};
      options.in_nodes = seed % 2 == 0;
      options.sharing = policy == "best_value" ? Sharing::mps : Sharing::exclusive;
      const Simulation run = simulate(workload, policy, options);
      expect_consistent(workload, run, options.restart_s);
      EXPECT_TRUE(all_finished(run)) << policy;
    }
  }
}

TEST(InvariantTest, WaitsAreBoundedAsPromised) {
  // After max_wait_s a job is placed before all others, and no younger one may hold it up: what it
  // waits beyond is the time that those before it in that order and those that run need.
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Workload workload = random_workload(300 + seed, 120, 8);
    const PlanOptions planner{.dynamics = {.max_wait_s = 3000}};
    const SimulationOptions options{.round_s = 60, .planner = planner};
    const Simulation run = simulate(workload, "best_value", options);
    const JobsById asked = jobs_by_id(workload);
    for (std::size_t i = 0; i < run.jobs.job.size(); ++i) {
      double older_gpu_s = 0, longest_s = 0;
      for (std::size_t k = 0; k < run.jobs.job.size(); ++k) {
        const WorkloadJob& job = *asked.at(run.jobs.job[k]);
        longest_s = std::max(longest_s, job.duration_s);
        if (k < i) older_gpu_s += job.gpus * job.duration_s;
      }
      EXPECT_LE(run.jobs.start_s[i] - run.jobs.submit_s[i], 3000 + 60 + older_gpu_s + 2 * longest_s)
          << seed << " job " << run.jobs.job[i];
    }
  }
}

TEST(DeterminismTest, TheSameSeedGivesTheSameRun) {
  const Workload workload = random_workload(7);
  SimulationOptions options;
  options.forecast_sigma = 1.0;
  options.seed = 3;
  for (const std::string_view policy : policy_names()) {
    const Simulation a = simulate(workload, policy, options);
    const Simulation b = simulate(workload, policy, options);
    EXPECT_EQ(a.jobs.end_s, b.jobs.end_s) << policy;
    EXPECT_EQ(a.spans, b.spans) << policy;
  }
}

TEST(EnergyTest, ConstantLoadIsTheAnalyticValue) {
  Workload workload;
  workload.tiers = {
      {.name = "a", .nodes = 2, .gpus_per_node = 4, .idle_watts = 25, .busy_watts = 350}};
  for (int i = 0; i < 8; ++i) {  // 4 GPUs of 8 are busy at 80 % for an hour, twice
    WorkloadJob job{.id = i};
    job.submit_s = i < 4 ? 0 : 3600;
    job.duration_s = 3600;
    job.utilization = 0.8;
    workload.jobs.push_back(job);
  }
  const Simulation run = simulate(workload, "fifo");
  const double watts = 4 * (25 + 0.8 * 325) + 4 * 25;
  EXPECT_NEAR(run.energy_kwh, watts * 2 / 1000, 1e-9 * watts);
  EXPECT_NEAR(result_of(run, 0).energy_j, 3600 * (25 + 0.8 * 325), 1e-9 * 1e6);
  EXPECT_DOUBLE_EQ(run.utilization, 0.5);
}

TEST(EnergyTest, CarbonFollowsTheHours) {
  Workload workload;
  workload.tiers = {
      {.name = "a", .nodes = 1, .gpus_per_node = 2, .idle_watts = 50, .busy_watts = 250}};
  WorkloadJob job{.id = 1};
  job.submit_s = 1800;
  job.duration_s = 5400;
  workload.jobs.push_back(job);
  SimulationOptions options;
  options.carbon_g_per_kwh = {100, 400};  // half an hour of the one, an hour of the other
  const Simulation run = simulate(workload, "fifo", options);
  const double kw = (250 + 50) / 1000.0;
  EXPECT_NEAR(run.carbon_kg, kw * (0.5 * 100 + 1.0 * 400) / 1000, 1e-12);
  options.carbon_g_per_kwh = {250};
  EXPECT_NEAR(simulate(workload, "fifo", options).carbon_kg, run.energy_kwh * 0.25, 1e-12);
  EXPECT_TRUE(std::isnan(simulate(workload, "fifo").carbon_kg));
}

TEST(LowerBoundTest, OfUnlikeTiersIsTighterAndNeverAboveASchedule) {
  double pooled = 0, tiered = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Workload workload = random_tiers(seed);
    for (std::size_t i = 0; i < workload.jobs.size(); ++i) {  // no tier is good at all of them
      workload.jobs[i].gpus = 1 + static_cast<int>(i % 2);
      workload.jobs[i].memory_gb = 1;
      workload.jobs[i].steps_per_s = {0.05, 0.1, i % 2 == 0 ? 1.0 : 0.0};
    }
    const double bound = lower_bound_jct_s(workload);
    for (const char* policy : {"srtf", "best_value", "makespan", "max_min"}) {
      EXPECT_LE(bound, simulate(workload, policy).mean_jct_s) << policy << " " << seed;
    }
    tiered += bound;
    for (WorkloadJob& job : workload.jobs) {  // as if every tier were its fastest
      const double best = *std::max_element(job.steps_per_s.begin(), job.steps_per_s.end());
      job.steps_per_s.assign(3, best);
    }
    pooled += lower_bound_jct_s(workload);
  }
  EXPECT_GT(tiered, pooled);
}

TEST(LowerBoundTest, OfAWorkloadThatNothingRunsIsRefusedAtOnce) {
  Workload workload = random_workload(0, 5);
  workload.jobs[3].steps_per_s = {1e-300};
  EXPECT_NE(refusal([&] { (void)lower_bound_jct_s(workload); }).find("job 103 would take"),
            std::string::npos);
  workload.jobs[3].steps_per_s = {0};
  EXPECT_NE(refusal([&] { (void)lower_bound_jct_s(workload); }).find("job 103 fits no tier"),
            std::string::npos);
}

TEST(SimulateTest, OptionsThatASimulationHasItselfAreNoneOfItsPlanner) {
  const Workload workload = random_workload(3, 5);
  const auto why = [&](const SimulationOptions& options) {
    return refusal([&] { (void)simulate(workload, "best_value", options); });
  };
  EXPECT_EQ(why({.planner = PlanOptions{.limits = {.in_nodes = true}}}),
            "simulate: planner.in_nodes, say in_nodes in its place");
  EXPECT_EQ(why({.planner = PlanOptions{.limits = {.sharing = Sharing::mps}}}),
            "simulate: planner.sharing, say sharing in its place");
  EXPECT_EQ(why({.stop_at_target = true}),
            "simulate: stop_at_target is for jobs with curves, the workload has none");
}

TEST(StreamTest, GivesEveryStretchWhetherKeptOrNot) {
  const Workload workload = random_workload(9);
  std::vector<JobSpan> streamed;
  SimulationOptions options;
  options.stream = [&](const JobSpan& span) { streamed.push_back(span); };
  options.spans = false;
  const Simulation run = simulate(workload, "srtf", options);
  EXPECT_TRUE(run.spans.empty());
  options.stream = {};
  options.spans = true;
  EXPECT_EQ(simulate(workload, "srtf", options).spans, streamed);
}

/// One GPU, jobs that follow `losses` at a step a second.
Workload curve_workload(std::vector<double> losses, double target, double budget) {
  Workload out;
  out.tiers = {{.name = "only", .nodes = 1, .memory_gb = 24, .idle_watts = 20, .busy_watts = 300}};
  Trace curve{.name = "c", .step = {}, .loss = std::move(losses)};
  for (std::size_t i = 1; i <= curve.loss.size(); ++i) {
    curve.step.push_back(static_cast<double>(i));
  }
  out.curves.push_back(curve);
  WorkloadJob job{.id = 1, .user = "ann"};
  job.memory_gb = 8;
  job.truth = 0;
  job.target_loss = target;
  job.budget_steps = budget;
  job.steps_per_s = {0.5};
  out.jobs.push_back(job);
  return out;
}

TEST(CurveJobTest, RunsToItsBudgetOrToItsTarget) {
  std::vector<double> losses;
  for (int t = 1; t <= 200; ++t) losses.push_back(4.0 / t);
  const Workload workload = curve_workload(losses, 0.1, 200);  // reached at step 40
  const Simulation whole = simulate(workload, "fifo");
  EXPECT_DOUBLE_EQ(whole.mean_jct_s, 400);
  EXPECT_EQ(result_of(whole, 1).outcome, JobOutcome::finished);
  SimulationOptions options;
  options.stop_at_target = true;
  const Simulation stopped = simulate(workload, "fifo", options);
  EXPECT_DOUBLE_EQ(stopped.mean_jct_s, 80);
  EXPECT_EQ(result_of(stopped, 1).outcome, JobOutcome::target);
}

TEST(CurveJobTest, APolicySeesThePrefixAndNothingOfTheFuture) {
  std::vector<double> losses;
  for (int t = 1; t <= 100; ++t) losses.push_back(4.0 / t);
  Workload workload = curve_workload(losses, 0.001, 100);
  // Two truths that differ after step 30 only, at events before and after it.
  Workload other = workload;
  for (std::size_t i = 30; i < 100; ++i) other.curves[0].loss[i] = 9;
  const auto seen = [](const Workload& w) {
    std::vector<std::vector<double>> out;
    SimulationOptions options;
    options.round_s = 7;
    (void)simulate(
        w,
        [&](const Snapshot& snapshot) {
          const Job& job = snapshot.jobs[0];
          out.emplace_back(job.observed.loss.begin(), job.observed.loss.end());
          EXPECT_EQ(job.observed.loss.size(), std::floor(job.steps_done));
          for (const double step : job.observed.step) EXPECT_LE(step, job.steps_done);
          out.back().insert(out.back().end(), job.remaining_steps.begin(),
                            job.remaining_steps.end());
          Plan plan;
          plan.allocations.push_back({job.id, 0, 1, snapshot.now_s});
          return plan;
        },
        options);
    return out;
  };
  const auto a = seen(workload);
  const auto b = seen(other);
  ASSERT_GT(a.size(), 12U);
  for (std::size_t k = 0; 7 * k <= 60; ++k) EXPECT_EQ(a[k], b[k]) << k;  // step 30 is at 60 s
  EXPECT_NE(a.back(), b.back());
}

TEST(CurveJobTest, WithNoiseAPolicySeesAForecastAndNotTheDuration) {
  Workload workload = random_workload(2, 5);
  SimulationOptions options;
  options.forecast_sigma = 0.5;
  (void)simulate(
      workload,
      [&](const Snapshot& snapshot) {
        Plan plan;
        int room = 8;
        for (const Job& job : snapshot.jobs) {
          for (const WorkloadJob& truth : workload.jobs) {
            if (truth.id != job.id) continue;
            EXPECT_EQ(std::count(job.remaining_steps.begin(), job.remaining_steps.end(),
                                 truth.duration_s - job.steps_done),
                      0);
          }
          if (job.options[0].gpus > room) continue;
          room -= job.options[0].gpus;
          plan.allocations.push_back({job.id, 0, job.options[0].gpus, snapshot.now_s});
        }
        return plan;
      },
      options);
}

}  // namespace
}  // namespace glidepath
