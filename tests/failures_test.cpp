// SPDX-License-Identifier: Apache-2.0
#include "glidepath/error.hpp"
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "simulate/cluster.hpp"
#include "simulate/leader.hpp"
#include "simulated.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

TEST(FailureTest, LosesTheWorkSinceTheLastCheckpoint) {
  Workload workload = random_workload(0, 1, 8);
  workload.jobs[0].duration_s = 10000;
  SimulationOptions options;
  options.failures.job_every_s = 3000;
  options.restart_s = 7;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    options.failures.checkpoint_s = 0;
    const Simulation none = simulate(workload, "fifo", options);
    EXPECT_DOUBLE_EQ(none.mean_jct_s, 10000 + 7 * static_cast<double>(none.failures));
    options.failures.checkpoint_s = 500;
    const Simulation some = simulate(workload, "fifo", options);
    const double lost_s = some.lost_gpu_seconds / workload.jobs[0].gpus;
    EXPECT_DOUBLE_EQ(some.mean_jct_s, 10000 + lost_s + 7 * static_cast<double>(some.failures));
    EXPECT_LT(lost_s, 500 * static_cast<double>(some.failures) + 1e-9);
    EXPECT_EQ(some.preemptions, 0);
  }
}

TEST(FailureTest, CrashesComeAsOftenAsSaid) {
  Workload workload = random_workload(0, 1, 8);
  workload.jobs[0].duration_s = 4e6;
  SimulationOptions options;
  options.failures.job_every_s = 1000;
  const Simulation run = simulate(workload, "fifo", options);
  EXPECT_NEAR(static_cast<double>(run.failures), 4000, 4 * std::sqrt(4000.0));
}

TEST(FailureTest, ANodeThatIsOutHoldsNothing) {
  Workload workload = random_workload(0, 1, 1);
  workload.jobs[0].gpus = 1;
  workload.jobs[0].duration_s = 50000;
  SimulationOptions options;
  options.failures = {.node_every_s = 5000, .repair_s = 1000};
  const Simulation run = simulate(workload, "srtf", options);
  ASSERT_GT(run.failures, 2);
  for (std::size_t k = 0; k + 1 < run.spans.size(); ++k) {  // one node, one job: gaps are repairs
    EXPECT_DOUBLE_EQ(run.spans[k + 1].start_s - run.spans[k].end_s, 1000);
  }
  EXPECT_DOUBLE_EQ(run.mean_jct_s, 50000 + 1000 * static_cast<double>(run.failures));
}

TEST(FailureTest, AreTheSameWhateverThePolicyDoes) {
  const Workload workload = random_tiers(5);
  SimulationOptions options;
  options.failures = {.node_every_s = 1e9, .job_every_s = 700};
  const Simulation a = simulate(workload, "fifo", options);
  const Simulation b = simulate(workload, "srtf", options);
  EXPECT_NEAR(static_cast<double>(a.failures), static_cast<double>(b.failures),
              0.35 * static_cast<double>(a.failures));
  options.seed = 1;
  EXPECT_NE(simulate(workload, "fifo", options).jobs.failures, a.jobs.failures);
}

/// Four GPUs: a gang of four, and so many jobs of one.
Workload gang_and_singles(int singles) {
  Workload workload;
  workload.tiers.push_back({.name = "all", .nodes = 4});
  for (int i = 0; i <= singles; ++i) {
    WorkloadJob& job = workload.jobs.emplace_back();
    job.id = i;
    job.gpus = i == 0 ? 4 : 1;
    job.duration_s = i == 0 ? 3000 : 4000;
  }
  return workload;
}

TEST(FailureTest, TheLeaderIsThatOfAllNodesWhereAGangNeedsOneThatIsOut) {
  for (const int singles : {1, 6}) {  // the gang first, as the shortest, makes one or all six wait
    const Workload workload = gang_and_singles(singles);
    const double time = simulate(workload, "srtf").mean_jct_s;
    const double gpu_time = simulate(workload, "srsf").mean_jct_s;
    ASSERT_NE(gpu_time, time);
    const SimulationOptions options;
    detail::Cluster cluster(workload, options);
    cluster.arrived = cluster.live = static_cast<int>(cluster.runs.size());
    cluster.capacity[0] = 2;  // two nodes are out, the others busy
    cluster.free[0] = 0;
    detail::Leader leader(cluster);
    leader.refresh([&](int job) { return cluster.runs[job].work; });
    EXPECT_EQ(leader.factor(4), gpu_time < time ? 4 : 1) << singles;
  }
}

TEST(FailureTest, AGangThatNeedsANodeThatIsOutWaitsForItAndEnds) {
  const Workload workload = gang_and_singles(6);
  for (const char* policy : {"gittins", "best_value"}) {
    for (const double restart_s : {0.0, 60.0}) {
      SimulationOptions options;
      options.restart_s = restart_s;
      options.failures = {.node_every_s = 4000, .repair_s = 3000, .checkpoint_s = 60};
      for (options.seed = 0; options.seed < 10; ++options.seed) {
        const Simulation run = simulate(workload, policy, options);
        EXPECT_GT(run.failures, 0);
        for (std::size_t i = 0; i < run.jobs.job.size(); ++i) {
          EXPECT_EQ(run.jobs.outcome[i], JobOutcome::finished) << policy << " " << options.seed;
          EXPECT_GE(run.jobs.jct_s[i], workload.jobs[i].duration_s);
        }
      }
    }
  }
}

TEST(SharingTest, APairRunsAtItsMeasuredSpeedsAndParts) {
  Workload workload;
  workload.tiers = {
      {.name = "a", .nodes = 1, .memory_gb = 24, .idle_watts = 50, .busy_watts = 250}};
  for (int i = 0; i < 2; ++i) {
    WorkloadJob job{.id = i, .user = "u"};
    job.job_class = i == 0 ? "x" : "y";
    job.duration_s = i == 0 ? 600 : 1000;
    job.memory_gb = 10;
    job.utilization = i == 0 ? 0.3 : 0.4;
    workload.jobs.push_back(job);
  }
  workload.pairs = {{"y", "x", 0, 0.5, 0.75}};
  SimulationOptions options;
  options.sharing = Sharing::mps;
  const auto both = [](const Snapshot& snapshot) {
    Plan plan;
    const auto n = snapshot.jobs.size();
    for (std::size_t i = 0; i < n; ++i) {
      plan.allocations.push_back(
          {snapshot.jobs[i].id, 0, 1, snapshot.now_s, n == 2 ? snapshot.jobs[1 - i].id : -1});
    }
    return plan;
  };
  const Simulation run = simulate(workload, both, options);
  // x: 600 s at 0.75 = 800 s; y makes 400 s of work by then, and 600 s alone after.
  EXPECT_DOUBLE_EQ(result_of(run, 0).end_s, 800);
  EXPECT_DOUBLE_EQ(result_of(run, 1).end_s, 1400);
  EXPECT_DOUBLE_EQ(result_of(run, 0).gpu_seconds, 400);
  EXPECT_DOUBLE_EQ(result_of(run, 1).gpu_seconds, 1000);
  EXPECT_NEAR(run.energy_kwh * 3.6e6, 800 * (50 + 0.7 * 200) + 600 * (50 + 0.4 * 200), 1e-6);
  EXPECT_EQ(run.preemptions, 0);
  workload.jobs[0].memory_gb = 20;
  EXPECT_EQ(message_of<InputError>([&] { (void)simulate(workload, both, options); }),
            "simulate: jobs 0 and 1 cannot share GPUs (mps)");
}

TEST(SharingTest, ACrashTakesWhatWasDoneSinceTheCheckpointAtTheSpeedsOfThatTime) {
  Workload workload = on_gpus(1, {{0, 1000}, {100, 1000}});
  workload.pairs = {{"", "", 0, 0.5, 0.5}};
  SimulationOptions options;
  options.sharing = Sharing::mps;
  for (const double checkpoint_s : {0.0, 70.0, std::numeric_limits<double>::infinity()}) {
    options.failures = {.job_every_s = 600, .checkpoint_s = checkpoint_s};
    const auto all = [&](const Snapshot& snapshot) {
      Plan plan;
      const auto n = snapshot.jobs.size();
      for (std::size_t i = 0; i < n; ++i) {
        const Job& job = snapshot.jobs[i];
        plan.allocations.push_back(
            {job.id, 0, 1, snapshot.now_s, n == 2 ? snapshot.jobs[1 - i].id : -1});
        const bool waits = std::ranges::count(snapshot.running, job.id, &Allocation::job) == 0;
        if (waits && std::isinf(checkpoint_s)) {
          EXPECT_EQ(job.steps_done, 0);
        }
      }
      return plan;
    };
    std::int64_t failures = 0;
    double lost = 0;
    for (options.seed = 0; options.seed < 20; ++options.seed) {
      const Simulation run = simulate(workload, all, options);
      // Half of a GPU at half the speed: a GPU-second is a second of work, alone or together. A job
      // ends at a whole second, half a second of work late at most.
      EXPECT_NEAR(run.gpu_seconds, 2000 + run.lost_gpu_seconds, 0.5) << options.seed;
      failures += run.failures;
      lost += run.lost_gpu_seconds;
    }
    EXPECT_GT(failures, 40);
    EXPECT_EQ(lost > 0, checkpoint_s > 0);
  }
}

TEST(NodeTest, AGangUpToANodeSitsOnOne) {
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 2, .gpus_per_node = 4}};
  for (int i = 0; i < 3; ++i) {
    WorkloadJob job{.id = i};
    job.gpus = i < 2 ? 3 : 2;  // 8 GPUs, and one left on each node
    job.duration_s = 100;
    workload.jobs.push_back(job);
  }
  SimulationOptions options;
  EXPECT_DOUBLE_EQ(simulate(workload, "fifo", options).makespan_s, 100);
  options.in_nodes = true;
  EXPECT_DOUBLE_EQ(simulate(workload, "fifo", options).makespan_s, 200);
}

TEST(NodeTest, AFewGangsRunAtOnceWhereSomeLayoutHasNodesForThem) {
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 2, .gpus_per_node = 8}};
  for (const int gpus : {4, 3, 3, 2, 2, 2}) {  // 4 + 2 + 2 and 3 + 3 + 2, not 4 + 3 and the rest
    WorkloadJob& job = workload.jobs.emplace_back();
    job.id = static_cast<std::int64_t>(workload.jobs.size());
    job.gpus = gpus;
    job.duration_s = 100;
  }
  SimulationOptions options;
  options.in_nodes = true;
  for (const char* policy : {"srtf", "las", "gittins"}) {
    const Simulation run = simulate(workload, policy, options);
    EXPECT_DOUBLE_EQ(run.makespan_s, 100) << policy;
    expect_consistent(workload, run, 0);
  }
}

TEST(NodeTest, AGangThatFitsWhereOthersMoveMovesThemUnderPoliciesThatPreempt) {
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 2, .gpus_per_node = 4}};
  for (int i = 0; i < 5; ++i) {  // two gangs of 3 fill up with one of 1 each, which then stay apart
    WorkloadJob job{.id = i};
    job.gpus = i < 2 ? 3 : i < 4 ? 1 : 4;
    job.submit_s = i < 4 ? 0 : 200;
    job.duration_s = i < 2 ? 100 : i < 4 ? 1000 : 10;
    workload.jobs.push_back(job);
  }
  SimulationOptions options;
  options.in_nodes = true;
  options.restart_s = 7;
  for (const char* policy : {"srtf", "srsf", "las", "gittins", "best_value"}) {
    const Simulation run = simulate(workload, policy, options);
    expect_consistent(workload, run, options.restart_s);
    EXPECT_DOUBLE_EQ(result_of(run, 4).end_s, 210) << policy;
    EXPECT_EQ(run.preemptions, 1) << policy;
    EXPECT_DOUBLE_EQ(run.makespan_s, 1007) << policy;
  }
  for (const char* policy : {"fifo", "first_fit", "slurm_backfill"}) {
    const Simulation run = simulate(workload, policy, options);
    EXPECT_DOUBLE_EQ(result_of(run, 4).end_s, 1010) << policy;
    EXPECT_EQ(run.preemptions, 0) << policy;
  }
}

TEST(EnergyTest, NodesThatNobodyUsesSleep) {
  Workload workload;
  workload.tiers = {
      {.name = "a", .nodes = 3, .gpus_per_node = 2, .idle_watts = 50, .busy_watts = 250}};
  for (int i = 0; i < 2; ++i) {
    WorkloadJob job{.id = i};
    job.submit_s = 5000.0 * i;
    job.duration_s = 1000;
    job.gpus = i == 0 ? 1 : 3;
    workload.jobs.push_back(job);
  }
  SimulationOptions options;
  options.sleep = {.after_s = 600, .watts = 5, .wake_s = 40};
  const Simulation run = simulate(workload, "fifo", options);
  // The first job wakes nobody; the second needs one node that slept from 1600 s on, and one that
  // slept from 600 s on. The third sleeps from 600 s to the end at 6040 s.
  EXPECT_DOUBLE_EQ(result_of(run, 0).jct_s, 1000);
  EXPECT_DOUBLE_EQ(result_of(run, 1).jct_s, 1040);
  const double held = 1000 + 3 * 1040;
  const double asleep = 2 * (3400 + 4400 + 5440);
  const double idle = 6 * 6040 - held - asleep;
  EXPECT_NEAR(run.energy_kwh * 3.6e6, 250 * held + 50 * idle + 5 * asleep, 1e-6);
}

TEST(EnergyTest, EndsWithTheLastJobThoughNodesFailOnBesideOneThatNeverRuns) {
  Workload workload;
  workload.tiers = {
      {.name = "a", .nodes = 2, .gpus_per_node = 4, .idle_watts = 50, .busy_watts = 400}};
  WorkloadJob& job = workload.jobs.emplace_back();
  job.gpus = 4;
  job.duration_s = 1000;
  Workload beside = workload;
  WorkloadJob& other = beside.jobs.emplace_back(job);
  other.id = 1;
  other.gpus = 8;  // more than its user may have
  SimulationOptions options;
  options.user_gpus = 4;
  options.carbon_g_per_kwh = {300, 100};
  options.failures = {.node_every_s = 2000, .repair_s = 400, .checkpoint_s = 0};
  options.sleep = {.after_s = 100, .watts = 5};
  for (options.seed = 0; options.seed < 10; ++options.seed) {
    const Simulation alone = simulate(workload, "slurm_backfill", options);
    const Simulation run = simulate(beside, "slurm_backfill", options);
    ASSERT_EQ(run.jobs.outcome[1], JobOutcome::unfinished);
    EXPECT_EQ(run.makespan_s, alone.makespan_s) << options.seed;
    EXPECT_EQ(run.energy_kwh, alone.energy_kwh) << options.seed;
    EXPECT_EQ(run.carbon_kg, alone.carbon_kg) << options.seed;
  }
}

TEST(EnergyTest, WhoeverStartsOnANodeThatWakesWaitsUntilItIsAwake) {
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 1, .gpus_per_node = 2}};
  const auto submit = [&](double submit_s, double duration_s) {
    WorkloadJob& job = workload.jobs.emplace_back();
    job.id = static_cast<std::int64_t>(workload.jobs.size()) - 1;
    job.submit_s = submit_s;
    job.duration_s = duration_s;
  };
  SimulationOptions options;
  options.sleep = {.after_s = 100, .watts = 5, .wake_s = 200};
  for (const auto& [submit_s, duration_s] :
       {std::pair{0, 10}, {500, 100}, {500, 100}, {1200, 400}, {1250, 300}, {1250, 50}}) {
    submit(submit_s, duration_s);
  }
  using Times = std::vector<double>;
  EXPECT_EQ(simulate(workload, "fifo", options).jobs.end_s,
            (Times{10, 800, 800, 1800, 1700, 1750}));
  // The shortest takes the GPUs of the one that woke the node, which then waits for the others.
  EXPECT_EQ(simulate(workload, "srtf", options).jobs.end_s,
            (Times{10, 800, 800, 1850, 1700, 1450}));
}

TEST(EnergyTest, AGuestOnANodeThatWakesWaitsUntilItIsAwake) {
  Workload workload = on_gpus(1, {{0, 10}, {500, 100}, {550, 100}});
  workload.pairs = {{"", "", 0, 1, 1}};
  SimulationOptions options;
  options.sharing = Sharing::mps;
  options.sleep = {.after_s = 100, .watts = 5, .wake_s = 200};
  const auto all = [](const Snapshot& snapshot) {
    Plan plan;
    const std::size_t n = snapshot.jobs.size();
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t partner = n == 2 ? snapshot.jobs[1 - i].id : -1;
      plan.allocations.push_back({snapshot.jobs[i].id, 0, 1, snapshot.now_s, partner});
    }
    return plan;
  };
  const Simulation run = simulate(workload, all, options);
  EXPECT_EQ(run.jobs.end_s, (std::vector<double>{10, 800, 800}));
}

}  // namespace
}  // namespace glidepath
