// SPDX-License-Identifier: Apache-2.0
#include "glidepath/plan.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "plan_cluster.hpp"

namespace glidepath {
namespace {

/// Step time 0.1 + 0.8 / k seconds, measured up to `largest` GPUs of nodes of 4.
Scaling scaling_up_to(int largest, double scale = 1) {
  std::vector<StepTime> measured;
  for (int k = 1; k <= largest; k *= 2) {
    measured.push_back({k, (k + 3) / 4, 64.0 / k, scale * (0.1 + 0.8 / k)});
  }
  return fit_scaling(measured);
}

TEST(OptionsTest, EveryTierAndGangComesWithTheRateOfItsStepTime) {
  const std::vector<Tier> tiers{{.name = "small", .nodes = 1, .gpus_per_node = 4, .memory_gb = 11},
                                {.name = "none", .nodes = 8, .gpus_per_node = 4, .memory_gb = 80},
                                {.name = "large", .nodes = 8, .gpus_per_node = 4, .memory_gb = 40}};
  const std::vector<Scaling> scaling{scaling_up_to(8), Scaling{}, scaling_up_to(4, 0.5)};
  const std::vector<Option> options = options_of(tiers, scaling, {.batch = 64, .utilization = 0.9});
  ASSERT_EQ(options.size(), 3u + 4u);  // 1, 2, 4 of 4 GPUs; 1, 2, 4, 8 = twice what was measured
  for (const Option& option : options) {
    const double seconds = (option.tier == 0 ? 1.0 : 0.5) * (0.1 + 0.8 / option.gpus);
    EXPECT_NE(option.tier, 1);
    EXPECT_NEAR(option.steps_per_s * seconds, 1, option.gpus <= 4 ? 0.03 : 0.2);
    EXPECT_EQ(option.utilization, 0.9);
    EXPECT_EQ(option.sharing, Sharing::exclusive);
  }
  const PlacementOptions large{.alone = {.memory_gb = 20}, .batch = 64, .max_gpus = 2};
  EXPECT_EQ(options_of(tiers, scaling, large).size(), 2u);  // the small cards have 11 GB
}

TEST(OptionsTest, ALargerGangThatIsNoFasterIsNotListed) {
  std::vector<StepTime> measured;
  for (int k = 1; k <= 16; k *= 2) measured.push_back({k, 1, 1.0, 0.2 + 0.1 * k});
  const std::vector<Tier> tiers{{.name = "one", .nodes = 1, .gpus_per_node = 16}};
  const std::vector<Option> options = options_of(tiers, std::vector{fit_scaling(measured)});
  ASSERT_EQ(options.size(), 1u);
  EXPECT_EQ(options[0].gpus, 1);
}

TEST(OptionsTest, SharedOptionsFollowWhereThePairFitsTheCard) {
  const std::vector<Tier> tiers{{.name = "a", .gpu = "A", .nodes = 1, .memory_gb = 16},
                                {.name = "b", .gpu = "B", .nodes = 1, .memory_gb = 40}};
  const std::vector<Scaling> scaling{scaling_up_to(1), scaling_up_to(1)};
  const std::vector<KindPair> measured{{"B", Sharing::mps, "x", "y", 1.25, 1.5}};
  const Pairs pairs = learn_pairs(measured);
  const Profile alone{0.5, 10, "x"}, partner{0.5, 10, "y"};
  const PlacementOptions given{
      .alone = alone, .sharing = Sharing::mps, .partner = partner, .pairs = &pairs};
  const std::vector<Option> options = options_of(tiers, scaling, given);
  ASSERT_EQ(options.size(), 3u);  // 20 GB do not fit on 16
  EXPECT_EQ(options[2].tier, 1);
  EXPECT_EQ(options[2].sharing, Sharing::mps);
  EXPECT_NEAR(options[2].steps_per_s, 0.8 * options[1].steps_per_s, 1e-12);
  // They may go into a job as they are.
  const Job job{.id = 1, .options = options, .remaining_steps = {100}};
  EXPECT_EQ(choose_accelerator(job, tiers).size(), 3u);
  const Snapshot snapshot{.tiers = tiers, .jobs = {&job, 1}};
  EXPECT_EQ(glidepath::plan(snapshot).allocations.size(), 1u);
}

TEST(OptionsTest, BrokenOptionsAreRefusedByValue) {
  const std::vector<Tier> tiers{{.name = "a", .nodes = 1}};
  const std::vector<Scaling> scaling{scaling_up_to(1)};
  const auto refused = [&](const PlacementOptions& options) {
    return refusal([&] { (void)options_of(tiers, scaling, options); });
  };
  EXPECT_EQ(refusal([&] { (void)options_of(tiers, {}); }),
            "options_of: scaling has 0 fits, expected 1, one for each tier");
  EXPECT_EQ(refused({.alone = {.memory_gb = -1}}),
            "options_of: memory is -1 GB, expected 0 or more and finite");
  EXPECT_EQ(refused({.batch = kInfinity}),
            "options_of: batch is inf, expected 0 or more and finite");
  EXPECT_EQ(refused({.max_gpus = 0}), "options_of: max_gpus is 0, expected at least 1");
  EXPECT_EQ(refused({.utilization = 2}), "options_of: utilization is 2, expected 0 to 1");
  EXPECT_TRUE(options_of({}, {}).empty());
}

struct TwoCards {
  std::vector<Tier> tiers{
      {.name = "small", .nodes = 4, .memory_gb = 11, .busy_watts = 250, .price_per_gpu_hour = 0.5},
      {.name = "large", .nodes = 4, .memory_gb = 24, .busy_watts = 400, .price_per_gpu_hour = 2}};
  Job job{.id = 1,
          .memory_gb = 8,
          .options = {{.tier = 0, .gpus = 1, .steps_per_s = 1},
                      {.tier = 1, .gpus = 1, .steps_per_s = 2}},
          .remaining_steps = {3600, 7200, 10'800, 14'400}};
};

TEST(AcceleratorTest, ProbabilitiesAreThoseOfTheForecastWithinTheLimits) {
  const TwoCards c;
  const auto by_hours = choose_accelerator(c.job, c.tiers, {.max_hours = 2, .confidence = 0.7});
  ASSERT_EQ(by_hours.size(), 2u);
  EXPECT_EQ(by_hours[0].option.tier, 1);
  EXPECT_DOUBLE_EQ(by_hours[0].probability, 1.0);
  EXPECT_DOUBLE_EQ(by_hours[0].hours, 1.0);
  EXPECT_DOUBLE_EQ(by_hours[0].kwh, 0.4);
  EXPECT_DOUBLE_EQ(by_hours[0].cost, 2.0);
  EXPECT_DOUBLE_EQ(by_hours[1].probability, 0.5);
  EXPECT_FALSE(by_hours[1].good);
  const auto by_power = choose_accelerator(c.job, c.tiers, {.max_watts = 300});
  EXPECT_EQ(by_power[0].option.tier, 0);
  EXPECT_EQ(by_power[1].probability, 0);
  EXPECT_NE(by_power[1].reason.find("too much power"), std::string::npos);
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {}, Preference::cost)[0].option.tier, 0);
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {}, Preference::hours)[0].option.tier, 1);
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {.max_kwh = 0.4})[0].probability, 0.5);
}

TEST(AcceleratorTest, ATargetIsForecastFromTheCurveOfTheJob) {
  TwoCards c;
  std::vector<double> step, loss;
  for (int t = 1; t <= 60; ++t) {
    step.push_back(10 * t);
    loss.push_back(1 + 3 / std::sqrt(10.0 * t));
  }
  c.job.observed = {.step = step, .loss = loss};
  Job forecast = c.job;
  forecast.remaining_steps = reach(c.job.observed, 1.08, 6000).remaining_steps(64);
  const RunLimits limits{.max_hours = 1, .target = 1.08};
  const auto found = choose_accelerator(c.job, c.tiers, limits);
  const auto expected = choose_accelerator(forecast, c.tiers, {.max_hours = 1});
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].probability, expected[i].probability);
    EXPECT_EQ(found[i].hours, expected[i].hours);
  }
  const auto refused = [&](const RunLimits& given) {
    return refusal([&] { (void)choose_accelerator(c.job, c.tiers, given); });
  };
  EXPECT_EQ(refused({.reached_by = ReachedBy::point}),
            "choose_accelerator: reached_by without target");
  EXPECT_EQ(refused({.target = 1.08, .reached_by = static_cast<ReachedBy>(9)}),
            "choose_accelerator: reached_by is value 9, expected one of curve, point");
  c.job.observed = {};
  EXPECT_EQ(refused(limits),
            "choose_accelerator: job 1 has no curve to forecast the target 1.08 from");
}

TEST(AcceleratorTest, WhatAJobHasRunSinceItsLastPointIsTakenOffTheWayToTheTarget) {
  TwoCards c;
  std::vector<double> step, loss;
  for (int t = 1; t <= 30; ++t) {
    step.push_back(10 * t);
    loss.push_back(1 + 3 / std::sqrt(t));
  }
  c.job.observed = {.step = step, .loss = loss};
  Job forecast = c.job;
  forecast.remaining_steps = reach(c.job.observed, 1.4, 3000).remaining_steps(64);
  forecast.forecast_at_steps = 300;
  const RunLimits limits{.target = 1.4};
  for (const double done : {0.0, 300.0, 600.0}) {
    c.job.steps_done = forecast.steps_done = done;
    const auto found = choose_accelerator(c.job, c.tiers, limits);
    const auto expected = choose_accelerator(forecast, c.tiers);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(found[0].hours, expected[0].hours);
  }
  c.job.steps_done = 2900;
  EXPECT_EQ(refusal([&] { (void)choose_accelerator(c.job, c.tiers, {.target = 1.5}); }),
            "choose_accelerator: job 1 is at step 2900, by which its forecast as of step 300 had "
            "it done: it needs a newer one");
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {.target = 2})[0].probability, 1);  // long reached
}

TEST(AcceleratorTest, ABudgetThatIsSpentLeavesNoChanceOfTheTarget) {
  TwoCards c;
  std::vector<double> step, loss;
  for (int t = 1; t <= 60; ++t) {
    step.push_back(5 * t);
    loss.push_back(1 + 3 / std::sqrt(5.0 * t));
  }
  c.job.observed = {.step = step, .loss = loss};
  c.job.steps_done = 300;
  const auto chance = [&](double budget, double target) {
    c.job.budget_steps = budget;
    return choose_accelerator(c.job, c.tiers, {.target = target})[0].probability;
  };
  for (const double spent : {290.0, 300.0}) EXPECT_EQ(chance(spent, 1.1), 0) << spent;
  EXPECT_EQ(chance(300, 1.5), 1);  // reached on the way
  EXPECT_GT(chance(0, 1.1), 0.5);
}

TEST(AcceleratorTest, TheFrontHoldsWhatNothingElseBeats) {
  TwoCards c;
  c.job.options.push_back({.tier = 1, .gpus = 2, .steps_per_s = 2});  // dearer, not faster
  for (const AcceleratorChoice& choice : choose_accelerator(c.job, c.tiers)) {
    EXPECT_EQ(choice.pareto, choice.option.gpus == 1);
  }
}

TEST(AcceleratorTest, ANodesPeakIsThatOfTheGpusInItWhateverTheirAverage) {
  TwoCards c;
  c.tiers[0].gpus_per_node = 2;
  c.job.options = {{.tier = 0, .gpus = 1, .steps_per_s = 1, .utilization = 0.2},
                   {.tier = 0, .gpus = 3, .steps_per_s = 2, .utilization = 0.2},
                   {.tier = 1, .gpus = 1, .steps_per_s = 2}};
  const RunLimits limits{.max_node_watts = 400};
  for (const AcceleratorChoice& choice : choose_accelerator(c.job, c.tiers, limits)) {
    const bool wide = choice.option.gpus == 3;  // a full node of two cards, and a third one
    const double peak = wide ? 500 : choice.option.tier == 0 ? 250 : 400;
    EXPECT_EQ(choice.node_watts, peak);
    EXPECT_EQ(choice.probability > 0, !wide);
    EXPECT_EQ(choice.reason.find("power in a node") != std::string::npos, wide);
    EXPECT_LT(choice.watts, 400 + 1e-9);
  }
}

TEST(AcceleratorTest, ANewProfileDecidesAgain) {
  TwoCards c;
  EXPECT_EQ(choose_accelerator(c.job, c.tiers)[0].option.tier, 1);
  c.job.options[1].steps_per_s = 0.5;  // measured: the large card is slow for it
  EXPECT_EQ(choose_accelerator(c.job, c.tiers)[0].option.tier, 0);
  c.job.memory_gb = 20;
  EXPECT_EQ(choose_accelerator(c.job, c.tiers).size(), 1u);
}

TEST(AcceleratorTest, ATargetThatIsOftenMissedIsInNoOptionsReach) {
  TwoCards c;
  c.job.remaining_steps = {100, kInfinity, kInfinity, kInfinity};
  // What is preferred still decides, though every median is infinite.
  EXPECT_EQ(choose_accelerator(c.job, c.tiers)[0].option.tier, 1);
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {}, Preference::cost)[0].option.tier, 0);
  for (const AcceleratorChoice& choice : choose_accelerator(c.job, c.tiers)) {
    EXPECT_DOUBLE_EQ(choice.probability, 0.25);
    EXPECT_EQ(choice.hours, kInfinity);
    EXPECT_FALSE(choice.good);
  }
  const auto refused = [&](const RunLimits& limits = {}) {
    return refusal([&] { (void)choose_accelerator(c.job, c.tiers, limits); });
  };
  c.job.remaining_steps.clear();
  EXPECT_EQ(refused(), "choose_accelerator: job 1 has no forecast of its remaining steps");
  c.job.remaining_steps = {100};
  EXPECT_EQ(refused({.max_hours = -1}), "choose_accelerator: max_hours is -1, expected 0 or more");
  EXPECT_EQ(refused({.max_node_watts = -1}),
            "choose_accelerator: max_node_watts is -1, expected 0 or more");
  EXPECT_EQ(
      refusal([&] { (void)choose_accelerator(c.job, c.tiers, {}, static_cast<Preference>(9)); }),
      "choose_accelerator: prefer is value 9, expected one of hours, kwh, cost, watts");
  c.job.memory_gb = 80;
  EXPECT_EQ(refused(), "choose_accelerator: job 1 needs 80 GB per GPU, tier 'large' has 24");
}

TEST(AcceleratorTest, WhatAJobLacksIsSaidInTheNameOfTheFunction) {
  TwoCards c;
  const auto refused = [&] { return refusal([&] { (void)choose_accelerator(c.job, c.tiers); }); };
  for (Option& option : c.job.options) option.steps_per_s = 0;
  EXPECT_EQ(refused(), "choose_accelerator: job 1 runs at 0 steps per second on tier 'small'");
  c.job.weight = -1;
  EXPECT_EQ(refused(), "choose_accelerator: job 1 has weight -1, expected 0 or more and finite");
}

}  // namespace
}  // namespace glidepath
