// SPDX-License-Identifier: Apache-2.0
#include "glidepath/plan.hpp"

#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/kept.hpp"
#include "plan_cluster.hpp"

namespace glidepath {
namespace {

TEST(PlanTest, ShortJobsGoFirstAndTheShortestOnTheFastTier) {
  Cluster cluster;
  for (std::int64_t id = 1; id <= 8; ++id) cluster.add(id, {1000.0 * static_cast<double>(id)});
  const Plan plan = glidepath::plan(cluster.snapshot());
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
  EXPECT_EQ(plan.allocations.size(), 6u);
  EXPECT_EQ(allocation_of(plan, 1)->tier, 1);
  EXPECT_EQ(allocation_of(plan, 2)->tier, 1);
  EXPECT_EQ(allocation_of(plan, 7), nullptr);
  EXPECT_EQ(allocation_of(plan, 8), nullptr);
  EXPECT_LE(plan.value, plan.bound);
  ASSERT_EQ(plan.reasons.size(), 8u);
  EXPECT_EQ(plan.reasons[0].text.substr(0, 12), "gets 1 x fas");
  EXPECT_EQ(plan.reasons[7].text.substr(0, 6), "waits:");
}

/// More jobs than GPUs, under a quota, with forecasts of any length.
Cluster crowd(std::int64_t jobs) {
  Cluster cluster;
  Draws draw{{7}, static_cast<std::uint64_t>(jobs)};
  for (std::int64_t id = 0; id < jobs; ++id) {
    Job& job = cluster.add(jobs - id, {10 + 1000 * draw.uniform()}, 1 + static_cast<int>(id % 2));
    if (id % 3 == 0) job.remaining_steps.insert(job.remaining_steps.end(), 600, 2000);
    job.user = id % 5 == 0 ? "a" : "b";
  }
  cluster.tiers[0].nodes = cluster.tiers[1].nodes = 1 + static_cast<int>(jobs / 8);
  return cluster;
}

TEST(PlanTest, APlanAfterOthersOrInsideOneIsAsOnItsOwn) {
  const Cluster small = crowd(20), large = crowd(2000);
  const PlanOptions quota{.limits = {.user_quota = {{"a", 3}}}}, plain;
  const auto same = [](const Plan& a, const Plan& b) {
    return a.allocations == b.allocations && a.reasons == b.reasons && a.prices == b.prices &&
           a.value == b.value && a.bound == b.bound;
  };
  const auto on_its_own = [](const Cluster& cluster, const PlanOptions& options) {
    Plan made;
    std::thread([&] { made = glidepath::plan(cluster.snapshot(), options); }).join();
    return made;
  };
  const Plan small_one = on_its_own(small, quota), large_one = on_its_own(large, plain);
  bool inside = false;
  const Interruptible polled([&] {
    inside = true;
    EXPECT_TRUE(same(glidepath::plan(small.snapshot(), quota), small_one));
  });
  while (!inside) {
    EXPECT_TRUE(same(glidepath::plan(large.snapshot(), plain), large_one));
    EXPECT_TRUE(same(glidepath::plan(small.snapshot(), quota), small_one));
  }
  EXPECT_TRUE(same(glidepath::plan(large.snapshot(), plain), large_one));
}

TEST(KeptTest, MemoryStaysWithItsThreadUpToALimitAndIsLentOnce) {
  struct Memory {
    std::vector<char> bytes_held;
    [[nodiscard]] std::size_t bytes() const { return detail::bytes_of(bytes_held); }
  };
  using Held = detail::Kept<Memory>;
  { Held()->bytes_held.resize(1000); }
  {
    const Held outer, inner;
    EXPECT_EQ(outer->bytes_held.size(), 1000u);
    EXPECT_EQ(inner->bytes_held.size(), 0u);
    outer->bytes_held.resize(detail::kMaxKeptBytes + 1);
  }
  EXPECT_EQ(Held()->bytes_held.size(), 0u);
  std::thread([] { EXPECT_EQ(Held()->bytes_held.size(), 0u); }).join();
}

TEST(PlanTest, AJobThatReachedItsTargetOrNeverWillIsEndedWithItsProbability) {
  Cluster cluster;
  cluster.add(1, {0, 0, 0, 0});
  cluster.add(2, {kInfinity, kInfinity, kInfinity, kInfinity});
  cluster.add(3, {100, kInfinity, kInfinity, kInfinity});
  const Plan plan = glidepath::plan(cluster.snapshot(), {.stop_probability = 0.9});
  EXPECT_EQ(plan.stop, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(plan.reasons[0].text, "ends: target reached with probability 1");
  EXPECT_EQ(plan.reasons[1].text, "ends: target out of reach with probability 1");
  EXPECT_NE(allocation_of(plan, 3), nullptr);
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
}

TEST(PlanTest, ARestartIsPaidForOnlyByAClearlyBetterChallenger) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 1, .memory_gb = 24}};
  Job& old = cluster.add(1, {1000});
  old.options.pop_back();
  old.attained_s = 50;
  Job& fresh = cluster.add(2, {990});
  fresh.options.pop_back();
  cluster.running = {{.job = 1, .tier = 0, .gpus = 1, .since_s = 950}};
  Plan plan = glidepath::plan(cluster.snapshot());
  ASSERT_NE(allocation_of(plan, 1), nullptr);
  EXPECT_EQ(allocation_of(plan, 1)->since_s, 950);
  cluster.jobs[1].remaining_steps = {200};
  plan = glidepath::plan(cluster.snapshot());
  EXPECT_NE(allocation_of(plan, 2), nullptr);
  cluster.jobs[1].attained_s = 10;  // the challenger itself would pay a restart of an hour
  cluster.jobs[1].restart_s = 3600;
  plan = glidepath::plan(cluster.snapshot());
  EXPECT_NE(allocation_of(plan, 1), nullptr);
}

TEST(PlanTest, AJobGivesWayOnlyWhereItsOwnRestartIsWonBack) {
  // One GPU, job 1 runs with T left and would pay kappa later, job 2 needs T2: giving way is
  // better for the sum of their completion times where T2 + kappa < T.
  for (std::uint64_t id = 0; id < 200; ++id) {
    Draws draw{{16}, id};
    const double left = 10 + 1000 * draw.uniform(), other = 10 + 1000 * draw.uniform();
    const double kappa = 500 * draw.uniform();
    if (std::abs(other + kappa - left) < 1) continue;
    Cluster cluster;
    cluster.tiers = {{.name = "one", .nodes = 1, .memory_gb = 24}};
    for (const double steps : {left, other}) {
      Job& job = cluster.add(std::ssize(cluster.jobs) + 1, {steps});
      job.options.pop_back();
      job.restart_s = kappa;
    }
    cluster.jobs[0].attained_s = 50;
    cluster.running = {{.job = 1, .tier = 0, .gpus = 1, .since_s = 900}};
    const Plan plan = glidepath::plan(cluster.snapshot(), {.dynamics = {.hysteresis = 0}});
    EXPECT_EQ(plan.allocations.at(0).job, other + kappa < left ? 2 : 1)
        << left << " against " << other << " + " << kappa;
  }
}

TEST(PlanTest, WithoutForecastsTheLeastServedJobGoesFirst) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 1, .memory_gb = 24}};
  for (std::int64_t id = 1; id <= 3; ++id) {
    Job& job = cluster.add(id, {});
    job.options.pop_back();
    job.steps_done = 1e6 / static_cast<double>(id);
  }
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.at(0).job, 3);
}

TEST(PlanTest, ProgressSinceTheForecastIsTakenOffIt) {
  Cluster cluster = one_tier(1);
  Job& far = add_to(cluster, 1, {10'000});
  far.steps_done = 9'950;
  far.forecast_at_steps = 0;  // 50 steps are left
  add_to(cluster, 2, {100});
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, AJobThatOutrunsItsForecastFallsBackToLeastAttainedService) {
  Cluster cluster = one_tier(1);
  Job& late = add_to(cluster, 1, {10, 20, 30, 40});
  late.forecast_at_steps = 0;
  late.steps_done = 50'000;
  add_to(cluster, 2, {40'000});
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{2}));
  cluster.jobs[0].steps_done = 25;  // between its samples: 5 or 15 left
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, AJobThatOutrunsItsForecastIsNotEndedForItsFewSamplesAtNever) {
  Cluster cluster = one_tier(1);
  std::vector<double> steps(31, 10.0);
  steps.push_back(kInfinity);
  Job& late = add_to(cluster, 1, steps);
  late.forecast_at_steps = 50;
  late.steps_done = late.attained_s = 100;
  const Plan plan = glidepath::plan(cluster.snapshot());
  EXPECT_TRUE(plan.stop.empty());
  EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1}));
  // What was the likeliest end all along is one.
  cluster.jobs[0].remaining_steps = {10, kInfinity, kInfinity, kInfinity};
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).stop, (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, WhatWaitsInALowerClassChangesNoPlaceInAHigherOne) {
  Cluster cluster = one_tier(2);
  Job& grows = add_to(cluster, 1, {1000});
  grows.options.push_back({.tier = 0, .gpus = 2, .steps_per_s = 1.2});
  grows.priority = 1;
  grows.restart_s = 30;
  grows.attained_s = 100;
  cluster.running = {{.job = 1, .tier = 0, .gpus = 1, .since_s = 900}};
  const auto gang = [&] {
    const Plan plan = glidepath::plan(cluster.snapshot(), {.dynamics = {.hysteresis = 0}});
    return allocation_of(plan, 1)->gpus;
  };
  EXPECT_EQ(gang(), 2);
  add_to(cluster, 2, {50});  // it would hold the GPU for 50 s, for which a restart is dear
  EXPECT_EQ(gang(), 2);
}

TEST(PlanTest, AHigherClassIsServedStrictlyFirst) {
  Cluster cluster = one_tier(3);
  add_to(cluster, 1, {1});
  add_to(cluster, 2, {1e9}, 2).priority = 1;
  add_to(cluster, 3, {1e9}, 2).priority = 1;
  const Plan plan = glidepath::plan(cluster.snapshot());
  EXPECT_EQ(plan.allocations.size(), 2u);
  EXPECT_NE(allocation_of(plan, 1), nullptr);  // takes what the class above could not
  EXPECT_LE(plan.value, plan.bound);
}

TEST(PlanTest, AnEmptyQueueOrClusterGivesTheObviousPlan) {
  EXPECT_TRUE(glidepath::plan({}).allocations.empty());
  Cluster cluster;
  EXPECT_TRUE(glidepath::plan(cluster.snapshot()).allocations.empty());
}

/// The reason of the only job of a cluster, which gets no GPU.
std::string reason_without_gpu(const Cluster& cluster) {
  const Plan plan = glidepath::plan(cluster.snapshot());
  EXPECT_TRUE(plan.allocations.empty());
  EXPECT_TRUE(plan.stop.empty());
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
  return plan.reasons.at(0).text;
}

TEST(PlanTest, TheReasonOfAJobThatFitsNowhereIsThatOfEachOfItsOptions) {
  Cluster cluster;
  cluster.add(1, {100});
  for (Option& option : cluster.jobs[0].options) option.sharing = Sharing::mps;
  EXPECT_EQ(reason_without_gpu(cluster),
            "cannot be planned: job 1 has no option with GPUs of its own");
  cluster.jobs.clear();
  cluster.add(1, {100}, 4).memory_gb = 20;  // the slow tier has 4 GPUs of 11 GB, the fast one 2
  EXPECT_EQ(reason_without_gpu(cluster),
            "cannot be planned: job 1 asks 4 GPUs, tier 'fast' has 2, and needs 20 GB per GPU, "
            "tier 'slow' has 11");
}

TEST(PlanTest, ABrokenJobGetsAReasonAndNoGpu) {
  Cluster cluster;
  cluster.add(17, {100}, 9);
  EXPECT_EQ(reason_without_gpu(cluster),
            "cannot be planned: job 17 asks 9 GPUs, tier 'slow' has 4");
  cluster.jobs[0] = {.id = 17};
  EXPECT_EQ(reason_without_gpu(cluster), "cannot be planned: job 17 has no options");
  cluster.jobs.clear();
  cluster.add(17, {100}).memory_gb = 80;
  EXPECT_EQ(reason_without_gpu(cluster),
            "cannot be planned: job 17 needs 80 GB per GPU, tier 'fast' has 24");
  for (const auto& spoil : std::initializer_list<void (*)(Job&)>{
           [](Job& j) { j.weight = -1; }, [](Job& j) { j.weight = std::nan(""); },
           [](Job& j) { j.options[0].tier = 9; }, [](Job& j) { j.options[0].gpus = 0; },
           [](Job& j) { j.options[0].sharing = static_cast<Sharing>(9); },
           [](Job& j) { j.options[0].steps_per_s = -1; }, [](Job& j) { j.restart_s = -1; },
           [](Job& j) { j.remaining_steps = {-5}; }, [](Job& j) { j.memory_gb = kInfinity; },
           [](Job& j) { j.budget_steps = std::nan(""); }, [](Job& j) { j.budget_steps = -1; },
           [](Job& j) { j.attained_gpu_s = std::nan(""); }, [](Job& j) { j.attained_gpu_s = -1; },
           [](Job& j) { j.waiting_s = std::nan(""); }, [](Job& j) { j.waiting_s = kInfinity; },
           [](Job& j) { j.forecast_at_steps = std::nan(""); },
           [](Job& j) { j.target_loss = std::nan(""); }}) {
    Cluster broken;
    spoil(broken.add(3, {100}));
    broken.running = {{.job = 3, .tier = 0, .gpus = 1}};
    broken.jobs[0].preemptible = false;
    EXPECT_EQ(reason_without_gpu(broken).substr(0, 25), "cannot be planned: job 3 ");
    Plan placed;
    placed.allocations = broken.running;
    EXPECT_FALSE(violations(broken.snapshot(), placed).empty());
  }
}

TEST(PlanTest, AJobThatMayNotBePreemptedAndHoldsNoneOfItsOptionsGetsNoGpu) {
  Cluster cluster;
  cluster.add(4, {100}).preemptible = false;
  cluster.running = {{.job = 4, .tier = 0, .gpus = 2}};
  EXPECT_EQ(reason_without_gpu(cluster),
            "cannot be planned: job 4 may not be preempted and holds 2 GPUs of tier 0, not one of "
            "its options");
}

TEST(PlanTest, AJobThatMayNotBePreemptedKeepsItsGpusWhateverItsWeight) {
  for (const double weight : {1e99, 1e103, 1e307}) {
    Cluster cluster;
    Job& held = cluster.add(4, {100});
    held.weight = weight;
    held.preemptible = false;
    cluster.running = {{.job = 4, .tier = 0, .gpus = 1}};
    const Plan plan = glidepath::plan(cluster.snapshot());
    ASSERT_EQ(plan.allocations.size(), 1u) << weight;
    EXPECT_EQ(plan.allocations[0].tier, 0);
    EXPECT_TRUE(std::isfinite(plan.value));
    EXPECT_LE(plan.value, plan.bound);
    EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
  }
}

TEST(PlanTest, AWaitingJobOfTooLargeAWeightIsRefusedByIt) {
  Cluster cluster;
  cluster.add(4, {100}).weight = 1e200;
  EXPECT_EQ(reason_without_gpu(cluster),
            "cannot be planned: job 4 is worth 2e+198 per second, expected at most 1e+100: its "
            "weight is 1e+200");
}

TEST(PlanTest, ThreeBrokenJobsOfAThousandChangeNothingForTheOthers) {
  Draws draws{.rng = detail::Rng{5}, .id = 1};
  Cluster cluster;
  cluster.tiers[0].nodes = 100;
  cluster.tiers[1].nodes = 60;
  for (int i = 0; i < 997; ++i) {
    Job& job =
        cluster.add(i, {100 + 1e4 * draws.uniform(), 2e4 * draws.uniform()}, 1 << draws.below(2));
    job.weight = 1 + draws.uniform();
    job.restart_s = 60;
  }
  for (int i = 0; i < 50; ++i) cluster.running.push_back({.job = 7 * i, .tier = 0, .gpus = 1});
  Cluster spoilt = cluster;
  Cluster bad;
  bad.add(5000, {-20}).restart_s = 60;
  bad.add(5001, {100}, 999);
  bad.add(5002, {100}).weight = std::nan("");
  spoilt.jobs.insert(spoilt.jobs.begin(), bad.jobs[0]);
  spoilt.jobs.insert(spoilt.jobs.begin() + 500, bad.jobs[1]);
  spoilt.jobs.push_back(bad.jobs[2]);
  spoilt.running.push_back({.job = 5000, .tier = 1, .gpus = 1});
  for (const Sharing sharing : {Sharing::exclusive, Sharing::mps}) {
    PlanOptions options;
    options.limits.sharing = sharing;
    const Plan with = glidepath::plan(spoilt.snapshot(), options);
    const Plan without = glidepath::plan(cluster.snapshot(), options);
    EXPECT_EQ(with.allocations, without.allocations);
    EXPECT_EQ(with.stop, without.stop);
    EXPECT_EQ(with.value, without.value);
    EXPECT_EQ(with.bound, without.bound);
    EXPECT_EQ(with.prices, without.prices);
    ASSERT_EQ(with.reasons.size(), 1000u);
    std::vector<Reason> others;
    for (const Reason& reason : with.reasons) {
      if (reason.job < 5000) others.push_back(reason);
    }
    EXPECT_EQ(others, without.reasons);
    EXPECT_EQ(with.reasons[0].text,
              "cannot be planned: job 5000 has -20 remaining steps, expected 0 or more");
    EXPECT_TRUE(violations(spoilt.snapshot(), with, options.limits).empty());
  }
}

TEST(PlanTest, BrokenSnapshotsAreRefusedByName) {
  const auto refused = [](const Cluster& cluster, const PlanOptions& options = {}) {
    return refusal([&] { (void)glidepath::plan(cluster.snapshot(), options); });
  };
  Cluster cluster;
  cluster.add(5, {100}), cluster.add(5, {100});
  EXPECT_EQ(refused(cluster), "plan: job 5 appears twice");
  cluster.jobs.pop_back();
  cluster.running = {{.job = 6, .tier = 0, .gpus = 1}};
  EXPECT_EQ(refused(cluster), "plan: job 6 runs but is not in the queue");
  cluster.running = {{.job = 5, .tier = 0, .gpus = 1}, {.job = 5, .tier = 0, .gpus = 1}};
  EXPECT_EQ(refused(cluster), "plan: job 5 holds two allocations");
  cluster.running = {{.job = 5, .tier = 2, .gpus = 1}};
  EXPECT_EQ(refused(cluster), "plan: job 5 runs on 1 GPUs of tier 2, expected 0 to 1");
  cluster.running = {{.job = 5, .tier = 0, .gpus = 1, .since_s = std::nan("")}};
  EXPECT_EQ(refused(cluster), "plan: job 5 runs since nan s, expected a finite number");
  cluster.running = {{.job = 5, .tier = 0, .gpus = -3}};
  EXPECT_EQ(refused(cluster), "plan: job 5 runs on -3 GPUs, expected at least 1");
  cluster.running.clear();
  EXPECT_EQ(refused(cluster, {.round_s = 0}),
            "plan: round_s is 0, expected more than 0 and finite");
  EXPECT_EQ(refused(cluster, {.objectives = {{Objective::jct, -1}}}),
            "plan: objective 'jct' has weight -1, expected 0 or more and finite");
  EXPECT_EQ(refused(cluster, {.objectives = {{Objective::jct, 0}, {Objective::energy, 0}}}),
            "plan: every objective has weight 0, expected one above 0");
  EXPECT_EQ(refused(cluster, {.objectives = {{Objective::jct, 0}, {Objective::quality, 1}}}), "");
  EXPECT_EQ(
      refused(cluster, {.objectives = {{Objective::jct, 1e308}, {Objective::quality, 1e308}}}),
      "plan: with these weights of the objectives an option is worth inf per second, expected "
      "a finite number");
  EXPECT_EQ(refused(cluster, {.objectives = {{Objective::jct, 0}}, .combine = Combine::in_order}),
            "");
  EXPECT_EQ(refused(cluster, {.objectives = {{static_cast<Objective>(99), 1}}}),
            "plan: objective is value 99, expected one of jct, known_size, quality, deadline, "
            "fairness, energy, edp, cost, learned");
  EXPECT_EQ(refused(cluster, {.combine = static_cast<Combine>(9)}),
            "plan: combine is value 9, expected one of weighted, in_order");
  EXPECT_EQ(refused(cluster, {.limits = {.sharing = static_cast<Sharing>(9)}}),
            "plan: sharing is value 9, expected one of exclusive, naive, mps, mig");
  EXPECT_EQ(refused(cluster, {.limits = {.power_cap_w = -1}}),
            "plan: power_cap_w is -1, expected 0 or more");
  EXPECT_EQ(refused(cluster, {.limits = {.user_quota = {{"ada", -1}}}}),
            "plan: the quota of 'ada' is -1, expected 0 or more");
  EXPECT_EQ(refused(cluster, {.limits = {.user_quota = {{"ada", 1}, {"ada", 2}}}}),
            "plan: two quotas for 'ada'");
  EXPECT_EQ(refused(cluster, {.dynamics = {.hysteresis = std::nan("")}}),
            "plan: hysteresis is nan, expected 0 or more and finite");
}

TEST(PlanTest, AStartAfterNowCountsAsNow) {
  Cluster ahead;
  for (std::int64_t id = 1; id <= 3; ++id) ahead.add(id, {1000});
  ahead.now_s = 50;
  const Plan first = glidepath::plan(ahead.snapshot());
  ASSERT_FALSE(first.allocations.empty());
  ahead.running = first.allocations;
  Cluster now = ahead;
  for (Allocation& each : ahead.running) each.since_s = 60;  // by a clock ten seconds ahead
  const PlanOptions options{.limits = {.min_run_s = 5}};
  const Plan plan = glidepath::plan(ahead.snapshot(), options);
  EXPECT_EQ(plan.allocations, glidepath::plan(now.snapshot(), options).allocations);
  EXPECT_EQ(violations(ahead.snapshot(), plan, options.limits), std::vector<std::string>{});
}

}  // namespace
}  // namespace glidepath
