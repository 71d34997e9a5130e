// SPDX-License-Identifier: Apache-2.0
#include "glidepath/error.hpp"
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "plan/value.hpp"
#include "simulate/fair_share.hpp"
#include "simulate/snapshots.hpp"
#include "simulated.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

// ---- the table

TEST(PolicyTableTest, TheNamesOfTheErrorTextAreThoseOfTheTable) {
  std::string known;
  for (const PolicyInfo& policy : policies()) {
    known += known.empty() ? "" : ", ";
    known += policy.name;
  }
  EXPECT_EQ(message_of<InputError>([] { (void)simulate(random_workload(0), "sooner"); }),
            "simulate: policy is 'sooner', expected one of " + known);
  ASSERT_EQ(policy_names().size(), policies().size());
  for (std::size_t i = 0; i < policies().size(); ++i) {
    EXPECT_EQ(policy_names()[i], policies()[i].name);
  }
}

TEST(PolicyTableTest, ANameThatIsAlmostKnownReachesNoPolicy) {
  for (const std::string_view policy : policy_names()) {
    const std::string wrong = std::string(policy) + "_";
    EXPECT_THROW((void)simulate(random_workload(0), wrong), InputError) << wrong;
  }
}

TEST(PolicyTableTest, EveryPolicyRunsOnOneTierAndOnUnlikeTiers) {
  for (const PolicyInfo& policy : policies()) {
    EXPECT_FALSE(policy.description.empty()) << policy.name;
    EXPECT_TRUE(all_finished(simulate(random_workload(1), policy.name))) << policy.name;
    EXPECT_TRUE(all_finished(simulate(random_tiers(1), policy.name))) << policy.name;
  }
}

TEST(PolicyTableTest, SessionsAndRoundsAreThoseOfThePolicyUnlessGiven) {
  for (const PolicyInfo& policy : policies()) {
    Workload workload = random_tiers(2, jobs_for(policy.name, 60));
    for (WorkloadJob& job : workload.jobs) job.duration_s *= 20;  // many sessions and rounds
    const bool has_sessions = policy.session_s && !policy.stops_at_target;  // no job has a curve
    SimulationOptions same, other;
    if (has_sessions) same.session_s = policy.session_s;
    if (has_sessions) other.session_s = 0.5 * *policy.session_s;
    if (policy.round_s) same.round_s = policy.round_s;
    if (policy.round_s) other.round_s = 0.5 * *policy.round_s;
    const Simulation plain = simulate(workload, policy.name);
    const Simulation given = simulate(workload, policy.name, same);
    EXPECT_EQ(given.jobs.end_s, plain.jobs.end_s) << policy.name;
    EXPECT_EQ(given.events, plain.events) << policy.name;
    if (!has_sessions && !policy.round_s) continue;
    EXPECT_NE(simulate(workload, policy.name, other).events, plain.events) << policy.name;
  }
}

TEST(PolicyTableTest, APolicyThatReadsSessionsDecidesAtTheirEndsAlsoWithoutCurves) {
  Workload workload = random_workload(2);
  for (WorkloadJob& job : workload.jobs) job.duration_s *= 20;
  for (const PolicyInfo& policy : policies()) {
    if (std::ranges::find(policy.reads, "session_s") == policy.reads.end()) continue;
    SimulationOptions shorter;
    shorter.session_s = 0.25 * policy.session_s.value_or(3600);
    EXPECT_GT(simulate(workload, policy.name, shorter).events,
              simulate(workload, policy.name).events)
        << policy.name;
  }
}

// ---- what policies decide

/// The definition of a preemptive policy, word by word: sort all live jobs at each event and fill.
struct Naive {
  double mean_jct = 0;
  std::int64_t preemptions = 0;
};

Naive naive_fill(const Workload& workload, const std::string& policy) {
  struct State {
    double left;
    double end = -1;
    bool running = false;
  };
  const auto n = workload.jobs.size();
  std::vector<State> state;
  for (const WorkloadJob& job : workload.jobs) state.push_back({job.duration_s});
  const int capacity = workload.tiers[0].gpus();
  Naive out;
  double now = -1;
  for (std::size_t ended = 0; ended < n;) {
    double next = 1e18;
    for (std::size_t i = 0; i < n; ++i) {
      if (state[i].running) next = std::min(next, now + state[i].left);
      if (workload.jobs[i].submit_s > now) next = std::min(next, workload.jobs[i].submit_s);
    }
    for (State& s : state) {
      if (s.running) s.left -= next - now;
    }
    now = next;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < n; ++i) {
      if (state[i].running && state[i].left == 0) {
        state[i].running = false;
        state[i].end = now;
        out.mean_jct += now - workload.jobs[i].submit_s;
        ++ended;
      }
      if (workload.jobs[i].submit_s <= now && state[i].end < 0) order.push_back(i);
    }
    const auto key = [&](std::size_t i) {
      const double gpus = workload.jobs[i].gpus;
      if (policy == "fifo" || policy == "first_fit") return state[i].running ? -1.0 : 0.0;
      if (policy == "sjf") return gpus;
      if (policy == "edf") return workload.jobs[i].deadline_s;
      return policy == "srtf" ? state[i].left : state[i].left * gpus;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    int room = capacity;
    for (const std::size_t i : order) {
      const bool fits = workload.jobs[i].gpus <= room;
      if (!fits && policy == "fifo") break;
      if (fits) room -= workload.jobs[i].gpus;
      if (!fits && state[i].running) ++out.preemptions;
      state[i].running = fits;
    }
  }
  out.mean_jct /= static_cast<double>(n);
  return out;
}

TEST(QueueTest, IndexedQueuesDoWhatAFullSortAtEachEventDoes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Workload workload = random_workload(seed);
    for (std::size_t i = 0; i < workload.jobs.size(); ++i) {  // every third has no deadline
      WorkloadJob& job = workload.jobs[i];
      if (i % 3 > 0)
        job.deadline_s = job.submit_s + static_cast<double>(1 + i % 5) * job.duration_s;
    }
    for (const char* policy : {"fifo", "first_fit", "sjf", "srtf", "srsf", "edf"}) {
      const Naive want = naive_fill(workload, policy);
      const Simulation got = simulate(workload, policy);
      EXPECT_NEAR(got.mean_jct_s, want.mean_jct, 1e-9 * want.mean_jct) << policy << " " << seed;
      EXPECT_EQ(got.preemptions, want.preemptions) << policy << " " << seed;
    }
  }
}

// ---- one policy, whatever else the workload has

void expect_same(const Simulation& run, const Simulation& want) {
  EXPECT_EQ(run.mean_jct_s, want.mean_jct_s) << want.policy;
  EXPECT_EQ(run.jobs.end_s, want.jobs.end_s) << want.policy;
  EXPECT_EQ(run.jobs.preemptions, want.jobs.preemptions) << want.policy;
  EXPECT_EQ(run.events, want.events) << want.policy;
}

TEST(OnePolicyTest, FailuresThatNeverComeAndNodesOfOneGpuChangeNothing) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SimulationOptions options;
    options.restart_s = seed % 2 == 0 ? 0 : 20;
    if (seed % 3 == 2) options.forecast_sigma = 1.0;
    for (const std::string_view policy : policy_names()) {
      if (divides_time(policy)) continue;
      const Workload workload = random_workload(700 + seed, jobs_for(policy, 120));
      SCOPED_TRACE(seed);
      const Simulation want = simulate(workload, policy, options);
      SimulationOptions failing = options;
      failing.failures.node_every_s = 1e12;
      expect_same(simulate(workload, policy, failing), want);
      SimulationOptions in_nodes = options;
      in_nodes.in_nodes = true;
      expect_same(simulate(workload, policy, in_nodes), want);
    }
  }
}

TEST(OnePolicyTest, ATierThatNoJobCanUseAndACurveThatNoneFollowsChangeNothing) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (const PolicyInfo& policy : policies()) {
      if (policy.sees == Forecasts::all || divides_time(policy.name)) continue;  // led on one tier
      const Workload workload = random_workload(720 + seed, jobs_for(policy.name, 120));
      Workload tiers = workload;
      tiers.tiers.push_back({.name = "unused", .nodes = 8});
      for (WorkloadJob& job : tiers.jobs) job.steps_per_s = {1, 0};
      Workload curves = workload;
      curves.curves.push_back({.step = {1, 2}, .loss = {2, 1}});
      SCOPED_TRACE(seed);
      const Simulation want = simulate(workload, policy.name);
      expect_same(simulate(tiers, policy.name), want);
      expect_same(simulate(curves, policy.name), want);
    }
  }
}

// ---- fair shares

/// One GPU: a job of 100 s at 0, and every ten seconds one of 10 s, so that two jobs are live while
/// the short ones go first.
Workload a_long_job_and_short_ones() {
  std::vector<std::pair<double, double>> jobs{{0, 100}};
  for (int i = 0; i < 60; ++i) jobs.emplace_back(10 * i, 10);
  return on_gpus(1, jobs);
}

TEST(FairFinishTest, AJobThatHeadsForTheMultipleGoesBeforeShorterOnes) {
  const Workload workload = a_long_job_and_short_ones();
  EXPECT_EQ(result_of(simulate(workload, "gittins"), 1).start_s, 600);
  for (const double multiple : {0.7, 1.2, 1.7}) {
    SimulationOptions options;
    options.max_ftf = multiple;
    const Simulation run = simulate(workload, "fair_finish", options);
    const JobResult job = result_of(run, 1);
    // With half of the GPU it takes 200 s: after 200 multiple - 100 s it heads for the multiple. It
    // is looked at again after a hundredth of its multiple at the latest.
    EXPECT_GE(job.start_s, 200 * multiple - 100) << multiple;
    EXPECT_LE(job.start_s, 200 * multiple - 100 + 100 * multiple / 100 + 1) << multiple;
    // Behind it short jobs come to head for a small multiple too, and have earlier deadlines.
    if (multiple > 1.5) {
      EXPECT_EQ(job.end_s, job.start_s + 100);
    }
  }
}

TEST(FairFinishTest, WithoutAJobThatIsLateItIsGittins) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Workload workload = random_workload(800 + seed, 100);
    SimulationOptions options;
    options.restart_s = seed % 2 == 0 ? 0 : 15;
    if (seed % 3 == 0) options.forecast_sigma = 0.7;
    const Simulation want = simulate(workload, "gittins", options);
    options.max_ftf = 1e6;
    const Simulation run = simulate(workload, "fair_finish", options);
    EXPECT_EQ(run.jobs.end_s, want.jobs.end_s) << seed;
    EXPECT_EQ(run.jobs.preemptions, want.jobs.preemptions) << seed;
  }
}

/// Jobs of one GPU, three times as much work as the GPUs can do while they are submitted.
Workload overload(std::uint64_t seed, int gpus) {
  const detail::Rng rng{seed};
  std::vector<std::pair<double, double>> jobs;
  for (std::uint64_t i = 0; i < 120; ++i) {
    const double duration_s = 1 + std::floor(std::exp(3 + 5 * rng.uniform(i, 0)));
    jobs.emplace_back(std::floor(9000.0 * rng.uniform(i, 1)), duration_s);
  }
  return on_gpus(gpus, jobs);
}

TEST(FairFinishTest, KeepsTheWorstFairnessNearTheMultipleForLittleMeanJct) {
  // Sharing the GPUs equally all the time would keep each job near 1, so 1.5 can be kept.
  double before = 0, jct = 0, jct_before = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Workload workload = overload(seed, 4);
    const Simulation best = simulate(workload, "gittins");
    SimulationOptions options;
    options.max_ftf = 1.5;
    const Simulation run = simulate(workload, "fair_finish", options);
    EXPECT_LE(run.worst_ftf, 1.25 * 1.5) << seed;
    EXPECT_LE(static_cast<double>(run.preemptions), static_cast<double>(best.preemptions) + 120);
    before = std::max(before, best.worst_ftf);
    jct += run.mean_jct_s;
    jct_before += best.mean_jct_s;
  }
  EXPECT_GT(before, 1.9);  // the multiple does something here
  EXPECT_LE(jct, 1.1 * jct_before);
}

TEST(FairFinishTest, AMultipleThatCannotBeKeptIsRaisedForAllJobsAlike) {
  // All jobs are late from the start, so the order is by deadline at the worst multiple. The
  // deadlines of first come first served leave short jobs behind long ones.
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Workload workload = overload(20 + seed, 2);
    SimulationOptions options;
    options.max_ftf = 0.2;
    EXPECT_LE(simulate(workload, "fair_finish", options).worst_ftf, 3) << seed;
    EXPECT_GT(simulate(workload, "fifo").worst_ftf, 20) << seed;
  }
}

TEST(FairFinishTest, LateJobsGoByEarliestDeadlineInNodesAndBesideCurvesToo) {
  // All are late when they come. With one, two and three live jobs a fair share takes 50, 60 and
  // 30 s, so that of any multiple the third has the earliest deadline and then the first.
  const Workload workload = on_gpus(1, {{0, 50}, {1, 30}, {2, 10}});
  SimulationOptions options;
  options.max_ftf = 1e-3;
  const auto expect_order = [&](const Workload& each) {
    const Simulation run = simulate(each, "fair_finish", options);
    EXPECT_EQ(run.jobs.end_s, (std::vector<double>{60, 90, 12}));
  };
  expect_order(workload);
  Workload curves = workload;  // decides from Snapshots
  curves.curves.push_back({.step = {1, 2}, .loss = {2, 1}});
  expect_order(curves);
  Workload nodes = workload;  // laid out anew at each event
  nodes.tiers.front().gpus_per_node = 2;
  for (WorkloadJob& job : nodes.jobs) job.gpus = 2;
  options.in_nodes = true;
  expect_order(nodes);
}

TEST(FairFinishTest, LongJobsHaveAShareOfTheGpusForAnEarlierEndOfAll) {
  // Two GPUs, one job of 300 s and ten of 20 s. All of it is 250 s of both GPUs: the long job ends
  // last unless it runs from the start.
  std::vector<std::pair<double, double>> jobs{{0, 300}};
  for (int i = 0; i < 10; ++i) jobs.emplace_back(0, 20);
  const Workload workload = on_gpus(2, jobs);
  EXPECT_EQ(simulate(workload, "fair_finish").makespan_s, 400);
  SimulationOptions options;
  options.max_ftf = 1e6;  // nobody is late
  options.long_share = 0.5;
  EXPECT_EQ(simulate(workload, "fair_finish", options).makespan_s, 300);
  options.long_share = 0.4;  // less than one GPU
  EXPECT_EQ(simulate(workload, "fair_finish", options).makespan_s, 400);
}

TEST(FinishTimeFairnessTest, StaticContentionIsAllJobsOverAllGpusThroughout) {
  // Two GPUs, four jobs of 100 s at once and, alone much later, one of 50 s: five jobs, so a fair
  // share takes 2.5 times as long. The second two end after 200 s.
  const Workload workload = on_gpus(2, {{0, 100}, {0, 100}, {0, 100}, {0, 100}, {1000, 50}});
  SimulationOptions options;
  const Simulation run = simulate(workload, "fifo", options);
  EXPECT_EQ(run.jobs.ftf_static, (std::vector<double>{0.4, 0.4, 0.8, 0.8, 0.4}));
  EXPECT_EQ(run.worst_ftf_static, 0.8);
  EXPECT_EQ(run.share_unfair_static, 0);
  // By live contention: four jobs live on two GPUs; three on average over the 200 s; one.
  EXPECT_EQ(run.jobs.ftf, (std::vector<double>{0.5, 0.5, 4.0 / 3, 4.0 / 3, 1}));
  EXPECT_EQ(run.share_unfair, 0.4);
  options.unfair_above = 0.75;  // changes what is counted, and nothing else
  const Simulation stricter = simulate(workload, "fifo", options);
  EXPECT_EQ(stricter.jobs.ftf_static, run.jobs.ftf_static);
  EXPECT_EQ(stricter.share_unfair_static, 0.4);
  EXPECT_EQ(stricter.share_unfair, 0.6);
  // With fewer jobs than GPUs nobody has to share, and gangs do not count.
  Workload few = on_gpus(8, {{0, 100}, {0, 100}});
  for (WorkloadJob& job : few.jobs) job.gpus = 8;
  EXPECT_EQ(simulate(few, "fifo").jobs.ftf_static, (std::vector<double>{1, 2}));
}

TEST(FairFinishTest, OptionsOutOfRangeAreRefused) {
  const Workload workload = random_workload(0);
  const auto refusal = [&](const SimulationOptions& options) {
    return message_of<InputError>([&] { (void)simulate(workload, "fair_finish", options); });
  };
  EXPECT_EQ(refusal({.max_ftf = 0}), "simulate: max_ftf is 0, expected a number above 0");
  EXPECT_EQ(refusal({.long_share = 1.5}), "simulate: long_share is 1.5, expected 0 to 1");
  EXPECT_EQ(refusal({.unfair_above = -1}),
            "simulate: unfair_above is -1, expected a number above 0");
}

TEST(LeaderTest, FollowsTheOrderThatServesTheJobsBetter) {
  // Gangs as large as the cluster among many small jobs: by GPU-time they always wait, by time not.
  double led = 0, time = 0, gpu_time = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const detail::Rng rng{seed};
    Workload workload = random_workload(500 + seed, 600, 8);
    for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
      workload.jobs[i].gpus = rng.uniform(i, 40) < 0.5 ? 1 : 8;
      workload.jobs[i].submit_s = std::floor(workload.jobs[i].submit_s * 6);
    }
    led += simulate(workload, "gittins").mean_jct_s;
    time += simulate(workload, "srtf").mean_jct_s;
    gpu_time += simulate(workload, "srsf").mean_jct_s;
  }
  EXPECT_GT(std::max(time, gpu_time), 1.05 * std::min(time, gpu_time));
  EXPECT_LT(led, 0.5 * (time + gpu_time));  // nearer to the better one, learning included
}

TEST(RestartCostTest, APreemptionComesOnlyWhereItSavesMoreThanItCosts) {
  // Two GPUs. The first two jobs set the mean completion time, 100 s; then one GPU is busy for
  // 1000 s and the other for `other` s when a job of 200 s comes.
  const auto suspended = [](double other) {
    const Workload workload =
        on_gpus(2, {{0, 100}, {0, 100}, {200, 1000}, {200, other}, {210, 200}});
    SimulationOptions options;
    options.restart_s = 20;
    return simulate(workload, "gittins", options).preemptions;
  };
  // It would wait for w = other - 10 s; a preemption costs 20 + 0.25 x 100 s and half of w, for
  // which the other job would wait in its place.
  EXPECT_EQ(suspended(98), 0);
  EXPECT_EQ(suspended(102), 1);
}

TEST(RestartCostTest, AShortJobWaitsWhereThatIsWithinItsFairShare) {
  // One GPU. The mean completion time is 1000 s when, `before` the end of a long job, one of 10 s
  // comes: not worth a preemption. With two jobs live a fair share would have taken 20 s.
  const auto run = [](double before) {
    SimulationOptions options;
    options.restart_s = 5;
    const double comes = 11000 - before;
    return simulate(on_gpus(1, {{0, 1000}, {1000, 10000}, {comes, 10}}), "gittins", options);
  };
  EXPECT_EQ(result_of(run(9), 3).start_s, 11000);
  EXPECT_EQ(run(9).preemptions, 0);
  EXPECT_EQ(result_of(run(11), 3).start_s, 11000 - 11);
  EXPECT_EQ(run(11).preemptions, 1);
}

TEST(RestartCostTest, AShortJobTakesNoGpusOfOneThatLosesMoreByAStart) {
  // One GPU. A job of 10 s comes when one of 20 s has run for a second: it would end after 29 s, a
  // fair share takes 20 s. The other, whose fair share takes 40 s, would lose 10 s and a start.
  const auto starts = [](double restart_s) {
    SimulationOptions options;
    options.restart_s = restart_s;
    return result_of(simulate(on_gpus(1, {{0, 1000}, {1000, 20}, {1001, 10}}), "gittins", options),
                     3)
        .start_s;
  };
  EXPECT_EQ(starts(5), 1001);
  EXPECT_EQ(starts(60), 1020);
}

TEST(ForecastErrorTest, JobsSubmittedTogetherTellOfEachOthersDurations) {
  // Ten times thirty jobs a second apart and of one length, years between: each forecast is off by
  // a factor of e^2, the law of each job by much less.
  const detail::Rng rng{5};
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 30}};
  for (int i = 0; i < 300; ++i) {
    WorkloadJob& job = workload.jobs.emplace_back();
    job.id = i;
    job.submit_s = 1e8 * (i / 30) + i % 30;
    job.duration_s =
        std::round(1e4 * std::exp(2 * rng.normal(static_cast<std::uint64_t>(i / 30), 0)));
  }
  SimulationOptions options;
  options.forecast_sigma = 2.0;
  std::vector<double> error;
  const Simulation run = simulate(
      workload,
      [&](const Snapshot& snapshot) {
        Plan plan;
        for (const Job& job : snapshot.jobs) {
          plan.allocations.push_back({job.id, 0, 1, snapshot.now_s, -1});
        }
        if (snapshot.jobs.size() == 30 && snapshot.jobs.front().id == 270) {
          error.clear();
          for (const Job& job : snapshot.jobs) {
            const double median = job.remaining_steps[job.remaining_steps.size() / 2];
            error.push_back(std::abs(std::log(median / workload.jobs[270].duration_s)));
          }
        }
        return plan;
      },
      options);
  ASSERT_EQ(error.size(), 30U);
  EXPECT_EQ(run.preemptions, 0);
  const double mean = std::accumulate(error.begin(), error.end(), 0.0) / 30;
  EXPECT_LT(mean, 0.5);  // 2.0 with the law of durations alone
}

TEST(PlannerOptionsTest, EveryObjectiveIsAPolicyByName) {
  const Workload workload = random_tiers(3);
  for (const char* objective :
       {"jct", "known_size", "quality", "deadline", "fairness", "energy", "edp", "cost"}) {
    const std::string policy = std::string("best_value:") + objective;
    const Simulation run = simulate(workload, policy);
    expect_consistent(workload, run);
    EXPECT_EQ(run.policy, policy);
  }
  EXPECT_LT(simulate(workload, "best_value:energy").energy_kwh,
            simulate(workload, "best_value:jct").energy_kwh * 1.02);
  EXPECT_THROW((void)simulate(workload, "best_value:beauty"), InputError);
  EXPECT_EQ(message_of<InputError>([&] { (void)simulate(workload, "fifo:jct"); }),
            "simulate: 'fifo' has no objectives, best_value has");
}

TEST(PlannerOptionsTest, APolicyWithAnObjectiveOfItsOwnRefusesAnother) {
  const Workload workload = random_tiers(3);
  SimulationOptions options{.planner = PlanOptions{.dynamics = {.hysteresis = 0.1}}};
  for (const char* policy : {"themis", "optimus", "slaq", "learned", "best_value:jct"}) {
    expect_consistent(workload, simulate(workload, policy, options));
    SimulationOptions said = options;
    for (const Objective objective : {Objective::jct, Objective::energy}) {
      said.planner->objectives = {{objective}};
      EXPECT_EQ(message_of<InputError>([&] { (void)simulate(workload, policy, said); }),
                "simulate: '" + std::string(policy) +
                    "' has its own objective, leave that of planner out");
    }
  }
}

TEST(PlannerOptionsTest, WithoutAskingAnythingRunsWhereThePlannerWouldLeaveIt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Workload workload = random_tiers(seed);
    for (WorkloadJob& job : workload.jobs) {
      if (seed % 2 == 1) job.priority = 0;
      if (seed % 4 == 3) job.steps_per_s = {1, 1, 1};  // the first tier with room
    }
    for (const double sigma : {0.0, 1.0}) {
      SimulationOptions options;
      options.restart_s = 30;
      options.in_nodes = seed % 3 == 0;
      options.forecast_sigma = sigma;
      const Simulation want = simulate(workload, "best_value", options);
      options.planner.emplace();  // asks the planner at each event
      EXPECT_EQ(simulate(workload, "best_value", options).spans, want.spans) << seed;
    }
  }
}

TEST(BackfillTest, ServesPrioritiesFirstAndKeepsUsersWithinTheirLimit) {
  Workload workload = random_workload(4, 80, 8);
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    workload.jobs[i].gpus = std::min(workload.jobs[i].gpus, 4);
    workload.jobs[i].priority = i % 4 == 0 ? 1 : 0;
  }
  SimulationOptions options;
  options.user_gpus = 4;
  const Simulation run = simulate(workload, "slurm_backfill", options);
  expect_consistent(workload, run);
  std::map<std::int64_t, std::string> user;
  double first = 0, others = 0;
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    user[workload.jobs[i].id] = workload.jobs[i].user;
    (i % 4 == 0 ? first : others) += run.jobs.wait_s[i] / (i % 4 == 0 ? 20 : 60);
  }
  EXPECT_LT(first, others);
  std::map<std::string, std::map<double, int>> change;
  for (const JobSpan& span : run.spans) {
    change[user[span.job]][span.start_s] += span.gpus;
    change[user[span.job]][span.end_s] -= span.gpus;
  }
  for (const auto& [who, steps] : change) {
    int held = 0;
    for (const auto& [time, delta] : steps) EXPECT_LE(held += delta, 4) << who << " at " << time;
  }
}

TEST(BackfillTest, CountsOnTheLargestOfFewValuesOfWhatRunningJobsNeed) {
  const auto needs = [](std::vector<double> steps) {
    return detail::remaining_steps({.remaining_steps = std::move(steps)}, detail::kEndQuantile);
  };
  EXPECT_EQ(needs({10, 1000}), 1000);
  EXPECT_EQ(needs({1000, 10, 20}), 1000);
}

/// EASY backfill on one tier as a policy of one's own, which looks at all jobs in each Snapshot.
Plan backfilled(const Snapshot& snapshot) {
  Plan plan;
  std::map<std::int64_t, const Job*> jobs;
  for (const Job& job : snapshot.jobs) jobs.emplace(job.id, &job);
  int room = snapshot.tiers[0].gpus();
  std::vector<std::pair<double, int>> ends;
  const auto runs = [&](const Job& job) {
    room -= job.options[0].gpus;
    ends.emplace_back(detail::remaining_s(job, detail::kEndQuantile), job.options[0].gpus);
  };
  for (const Allocation& held : snapshot.running) {
    plan.allocations.push_back(held);
    runs(*jobs.at(held.job));
    jobs.erase(held.job);
  }
  std::optional<double> from_s;  // of the reservation
  int spare = 0;                 // GPUs beside it
  for (const Job& job : snapshot.jobs) {
    if (!jobs.contains(job.id)) continue;
    const int gpus = job.options[0].gpus;
    if (gpus > room && from_s) continue;
    if (gpus > room) {
      std::ranges::sort(ends);
      spare = room;
      for (const auto& [at, freed] : ends) {
        if (spare >= gpus) break;
        spare += freed;
        from_s = at;
      }
      spare -= gpus;
      continue;
    }
    const bool late = from_s && detail::remaining_s(job, detail::kEndQuantile) > *from_s;
    if (late && gpus > spare) continue;
    if (late) spare -= gpus;
    runs(job);
    plan.allocations.push_back({job.id, 0, gpus, snapshot.now_s});
  }
  return plan;
}

TEST(BackfillTest, IsThatOfAPolicyThatLooksAtAllJobsAtEachEvent) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Workload workload = random_workload(900 + seed, 200, 8 << (seed % 4));
    for (const double sigma : {0.0, 0.5, 2.0}) {
      SimulationOptions options;
      options.forecast_sigma = sigma;
      options.seed = seed;
      options.restart_s = 60;
      if (seed % 2 == 1) options.failures = {.job_every_s = 5000, .checkpoint_s = 300};
      if (seed % 4 == 2) options.session_s = 500;
      if (seed % 4 == 3) options.round_s = 300;
      const Simulation want = simulate(workload, backfilled, options);
      const Simulation got = simulate(workload, "slurm_backfill", options);
      EXPECT_EQ(got.jobs.end_s, want.jobs.end_s) << seed << " at " << sigma;
      EXPECT_EQ(got.events, want.events) << seed << " at " << sigma;
    }
  }
}

TEST(PolicyTest, ALambdaThatIsFifoEqualsFifo) {
  const Policy fifo = [](const Snapshot& snapshot) {
    Plan plan;
    int room = snapshot.tiers[0].gpus();
    for (const Allocation& held : snapshot.running) {
      room -= held.gpus;
      plan.allocations.push_back(held);
    }
    for (const Job& job : snapshot.jobs) {
      if (job.attained_s > 0 ||
          std::any_of(snapshot.running.begin(), snapshot.running.end(),
                      [&](const Allocation& held) { return held.job == job.id; })) {
        continue;
      }
      if (job.options[0].gpus > room) break;
      room -= job.options[0].gpus;
      plan.allocations.push_back({job.id, 0, job.options[0].gpus, snapshot.now_s});
    }
    return plan;
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Workload workload = random_workload(seed);
    const Simulation want = simulate(workload, "fifo");
    const Simulation got = simulate(workload, fifo);
    EXPECT_EQ(got.jobs.end_s, want.jobs.end_s);
    EXPECT_EQ(got.preemptions, 0);
  }
}

TEST(PolicyTest, PlansThatCannotBeCarriedOutAreRefusedWithAReason) {
  const Workload workload = random_workload(1);
  const auto message = [&](std::vector<Allocation> allocations) {
    Plan bad;
    bad.allocations = std::move(allocations);
    return message_of<InputError>(
        [&] { (void)simulate(workload, [&](const Snapshot&) { return bad; }); });
  };
  EXPECT_EQ(message({{7, 0, 1, 0}}), "simulate: the policy names job 7, which is not live");
  const std::int64_t id = workload.jobs[0].id;
  const int gpus = workload.jobs[0].gpus;
  EXPECT_EQ(message({{id, 3, gpus, 0}}), "simulate: the policy puts job 100 on tier 3, expected 0");
  EXPECT_EQ(message({{id, 0, gpus, 0}, {id, 0, gpus, 0}}),
            "simulate: the policy runs job 100 twice");
}

TEST(EvenSharesTest, AreTheCheapestAssignmentOfAll) {
  // As many jobs as GPUs, one each: all permutations are tried.
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const detail::Rng rng{seed};
    Eigen::MatrixXd cost(6, 3);
    for (std::uint64_t k = 0; k < 18; ++k) cost.data()[k] = rng.uniform(k, 0);
    const std::vector<double> capacity{1, 2, 3};
    const Eigen::MatrixXd share = detail::even_shares(
        cost, Eigen::VectorXd::Ones(6), Eigen::Map<const Eigen::VectorXd>(capacity.data(), 3));
    std::vector<int> tier{0, 1, 1, 2, 2, 2};
    double least = 1e9;
    do {
      double sum = 0;
      for (int i = 0; i < 6; ++i) sum += cost(i, tier[static_cast<std::size_t>(i)]);
      least = std::min(least, sum);
    } while (std::next_permutation(tier.begin(), tier.end()));
    EXPECT_NEAR(share.cwiseProduct(cost).sum(), least, 1e-9) << seed;
    EXPECT_TRUE(share.rowwise().sum().isOnes(1e-9)) << seed;
  }
}

TEST(EvenSharesTest, GiveEqualGpuTimeWithinTheTiers) {
  const Eigen::VectorXd gang = Eigen::Vector4d(1, 2, 4, 1);
  const Eigen::VectorXd capacity = Eigen::Vector2d(1, 2);
  const Eigen::MatrixXd share =
      detail::even_shares(Eigen::MatrixXd::Random(4, 2).array() + 2, gang, capacity);
  const Eigen::MatrixXd gpus = share.array().colwise() * gang.array();
  EXPECT_TRUE(gpus.rowwise().sum().isApprox(Eigen::Vector4d::Constant(0.75)));
  EXPECT_TRUE(gpus.colwise().sum().transpose().isApprox(capacity));
}

}  // namespace
}  // namespace glidepath
