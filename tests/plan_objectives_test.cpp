// SPDX-License-Identifier: Apache-2.0
#include "glidepath/plan.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "plan_cluster.hpp"

namespace glidepath {
namespace {

TEST(GittinsTest, AKnownSizeHasTheIndexOfShortestRemainingTime) {
  const std::vector<double> samples(5, 20.0);
  EXPECT_DOUBLE_EQ(gittins_index(samples), 1.0 / 20);
}

TEST(GittinsTest, EqualsTheSupremumOverAFineGridOfD) {
  for (std::uint64_t id = 0; id < 200; ++id) {
    Draws draw{{5}, id};
    std::vector<double> samples(static_cast<std::size_t>(1 + draw.below(12)));
    for (double& s : samples) s = draw.uniform() < 0.2 ? kInfinity : 0.01 + 10 * draw.uniform();
    double best = 0;
    for (const double d : samples) {
      if (d == kInfinity) continue;
      double done = 0, served = 0;
      for (const double s : samples) {
        done += s <= d;
        served += std::min(s, d);
      }
      best = std::max(best, done / served);
    }
    for (double d = 0.01; d < 11; d += 0.01) {  // no d between the samples is better
      double done = 0, served = 0;
      for (const double s : samples) {
        done += s <= d;
        served += std::min(s, d);
      }
      EXPECT_LE(done / served, best * (1 + 1e-12));
    }
    EXPECT_NEAR(gittins_index(samples), best, 1e-12 * best) << id;
  }
}

TEST(GittinsTest, HopelessIsWorthNothingAndDoneIsWorthEverything) {
  EXPECT_EQ(gittins_index(std::vector{kInfinity, kInfinity}), 0);
  EXPECT_EQ(gittins_index(std::vector{0.0, 5.0}), kInfinity);
  const auto refused = [](const std::vector<double>& samples) {
    return refusal([&] { (void)gittins_index(samples); });
  };
  EXPECT_EQ(refused({}), "gittins_index: samples is empty, expected at least one");
  EXPECT_EQ(refused({1.0, -1.0}), "gittins_index: sample 1 is -1, expected 0 or more");
  EXPECT_EQ(refused({1.0, std::nan("")}), "gittins_index: sample 1 is nan, expected 0 or more");
}

TEST(PlanTest, DeadlinesGoToTheJobThatStillCanMissOrMeetIts) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {900}).deadline_s = cluster.now_s + 1e6;   // time enough
  add_to(cluster, 2, {900}).deadline_s = cluster.now_s + 1000;  // now or never
  add_to(cluster, 3, {900}).deadline_s = cluster.now_s + 100;   // too late
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.objectives = {{Objective::deadline}}})),
            (std::vector<std::int64_t>{2}));
}

TEST(PlanTest, WithoutAnObjectiveTheMeanCompletionTimeIsOne) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {900});
  add_to(cluster, 2, {100});
  const Plan plain = glidepath::plan(cluster.snapshot());
  const Plan said = glidepath::plan(cluster.snapshot(), {.objectives = {{Objective::jct}}});
  EXPECT_EQ(placed(plain), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(placed(plain), placed(said));
  EXPECT_EQ(plain.value, said.value);
}

TEST(PlanTest, QualityGoesToTheJobWhoseLossFallsMost) {
  Cluster cluster = one_tier(1);
  Job& flat = add_to(cluster, 1, {10});
  flat.ahead_steps = {0, 1000};
  flat.ahead_loss = {1.0, 0.99};
  Job& steep = add_to(cluster, 2, {1e6});
  steep.ahead_steps = {0, 1000};
  steep.ahead_loss = {1.0, 0.5};
  const std::vector<double> step{1, 2}, loss{3.0, 1.0};
  for (Job& job : cluster.jobs) job.observed = {step, loss};
  const auto served = [&](Objective objective) {
    return placed(glidepath::plan(cluster.snapshot(), {.objectives = {{objective}}}));
  };
  EXPECT_EQ(served(Objective::quality), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(served(Objective::jct), (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, KnownSizeTakesTheMeanWhereGittinsTakesTheChance) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {10, 4000});  // half done in 10 s
  add_to(cluster, 2, {1000});
  const auto served = [&](Objective objective) {
    return placed(glidepath::plan(cluster.snapshot(), {.objectives = {{objective}}}));
  };
  EXPECT_EQ(served(Objective::jct), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(served(Objective::known_size), (std::vector<std::int64_t>{2}));
}

TEST(PlanTest, FairnessServesTheJobThatSuffersMost) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {100}).submit_s = 990;
  Job& old = add_to(cluster, 2, {500});
  old.submit_s = -5000;
  old.attained_s = 100;
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.objectives = {{Objective::fairness}}})),
            (std::vector<std::int64_t>{2}));
}

TEST(PlanTest, EnergyAndCostMoveAJobToTheFrugalTier) {
  Cluster cluster;
  cluster.tiers[0].busy_watts = 70, cluster.tiers[0].price_per_gpu_hour = 1;
  cluster.tiers[1].busy_watts = 400, cluster.tiers[1].price_per_gpu_hour = 9;
  cluster.add(1, {1000});
  const auto tier = [&](const PlanOptions& options) {
    return glidepath::plan(cluster.snapshot(), options).allocations.at(0).tier;
  };
  EXPECT_EQ(tier({}), 1);
  EXPECT_EQ(tier({.objectives = {{Objective::energy}}}), 0);
  EXPECT_EQ(tier({.objectives = {{Objective::cost}}}), 0);
  EXPECT_EQ(tier({.objectives = {{Objective::edp}}}), 0);  // 70 / 1^2 < 400 / 2^2
  cluster.tiers[1].busy_watts = 200;
  EXPECT_EQ(tier({.objectives = {{Objective::energy}}}), 0);
  EXPECT_EQ(tier({.objectives = {{Objective::edp}}}), 1);
  EXPECT_EQ(tier({.joule_value = 1e-5}), 0);
  EXPECT_EQ(tier({.objectives = {{Objective::jct, 1}, {Objective::energy, 1e-3}}}), 1);
  EXPECT_EQ(tier({.objectives = {{Objective::jct, 1e-3}, {Objective::energy, 1}}}), 0);
}

TEST(PlanTest, ObjectivesInOrderServeTheFirstAndLetTheOthersChooseAmongItsBest) {
  Cluster cluster = one_tier(2);
  for (std::int64_t id = 1; id <= 3; ++id) add_to(cluster, id, {900}).deadline_s = kInfinity;
  cluster.jobs[0].deadline_s = cluster.now_s + 1000;  // now or never
  cluster.jobs[1].remaining_steps = {500};
  cluster.jobs[2].remaining_steps = {400};
  const std::vector<WeightedObjective> first{{Objective::deadline}, {Objective::jct}};
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(),
                                   {.objectives = first, .combine = Combine::in_order})),
            (std::vector<std::int64_t>{1, 3}));
  const std::vector<WeightedObjective> turned{{Objective::jct}, {Objective::deadline}};
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(),
                                   {.objectives = turned, .combine = Combine::in_order})),
            (std::vector<std::int64_t>{2, 3}));
  // Energy first, time second: of two tiers of equal power per step the faster one.
  Cluster two;
  two.tiers[0].busy_watts = 100, two.tiers[1].busy_watts = 200;
  two.add(1, {1000});
  const auto tier = [&](double watts) {
    two.tiers[1].busy_watts = watts;
    return glidepath::plan(two.snapshot(), {.objectives = {{Objective::energy}, {Objective::jct}},
                                            .combine = Combine::in_order})
        .allocations.at(0)
        .tier;
  };
  EXPECT_EQ(tier(200), 1);
  EXPECT_EQ(tier(201), 0);
  EXPECT_EQ(refusal([&] { (void)glidepath::plan(two.snapshot(), {.slack = 1}); }),
            "plan: slack is 1, expected 0 to less than 1");
}

TEST(PlanTest, ThreeObjectivesInOrderWithSlackMakeAPlan) {
  Cluster cluster;
  cluster.tiers = {
      {.name = "one", .nodes = 1, .gpus_per_node = 8, .idle_watts = 50, .busy_watts = 300}};
  cluster.now_s = 1800;
  for (const std::int64_t id : {1, 2}) {
    Job& job = add_to(cluster, id, {id == 1 ? 600.0 : 60000.0}, id == 1 ? 1 : 4);
    job.options[0].steps_per_s = 10;
  }
  const Plan plan =
      glidepath::plan(cluster.snapshot(),
                      {.objectives = {{Objective::fairness}, {Objective::jct}, {Objective::energy}},
                       .combine = Combine::in_order,
                       .slack = 0.05});
  EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
}

TEST(PlanTest, ValuesOfAnySizeAreScaledIntoARound) {
  for (const double weight : {1e-15, 1e15, 1e60}) {  // 1e15 and more in a round would be refused
    Cluster cluster;
    for (std::int64_t id = 1; id <= 8; ++id) {
      cluster.add(id, {1000 * static_cast<double>(id)}).weight = weight;
    }
    const Plan plan = glidepath::plan(cluster.snapshot());
    EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6})) << weight;
    EXPECT_NEAR(plan.value / weight, glidepath::plan(cluster.snapshot()).value / weight, 1e-9);
    EXPECT_LE(plan.value, plan.bound);
    EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
    const Plan again = glidepath::plan(cluster.snapshot(), {.prices = plan.prices});
    EXPECT_EQ(placed(again), placed(plan));
  }
}

}  // namespace
}  // namespace glidepath
