// SPDX-License-Identifier: Apache-2.0
#include "glidepath/error.hpp"
#include "glidepath/simulate.hpp"

#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulated.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

/// Takes the first action that can be taken until the episode is over. Returns the sum of rewards.
double play_first(Environment& environment) {
  std::vector<std::uint8_t> may(static_cast<std::size_t>(environment.actions()));
  double reward = 0;
  while (!environment.done()) {
    environment.mask(may);
    const auto first = std::find(may.begin(), may.end(), std::uint8_t{1});
    const auto action = static_cast<int>(first - may.begin());
    const bool preempts = action >= 32 && action < environment.actions() - 1;
    reward += environment.step(preempts ? environment.actions() - 1 : action);
  }
  return reward;
}

double total_jct_hours(const Simulation& run) {
  return std::accumulate(run.jobs.jct_s.begin(), run.jobs.jct_s.end(), 0.0) / 3600;
}

TEST(EnvironmentTest, StartingTheFirstThatFitsIsFirstFit) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Workload workload = random_workload(seed, 40);
    Environment environment;
    environment.reset(workload, seed);
    const double reward = play_first(environment);
    const Simulation run = environment.simulation();
    EXPECT_EQ(run.jobs.end_s, simulate(workload, "first_fit").jobs.end_s);
    EXPECT_NEAR(-reward, total_jct_hours(run), 1e-9 * total_jct_hours(run));
  }
}

TEST(EnvironmentTest, AllWeightOnOneObjectiveIsThePlannerWithIt) {
  const Workload workload = random_tiers(4, 30);
  Environment environment({.weights_for_s = 900});
  environment.reset(workload, 0);
  std::vector<double> weights(static_cast<std::size_t>(environment.actions()), 0.0);
  weights[static_cast<std::size_t>(Objective::energy)] = 1;
  while (!environment.done()) (void)environment.step(weights);
  EXPECT_EQ(environment.simulation().jobs.end_s,
            simulate(workload, "best_value:energy").jobs.end_s);
}

TEST(EnvironmentTest, WeightsOfObjectivesThatTheTiersSayNothingOfAreTaken) {
  Workload workload = random_tiers(4, 30);
  for (Tier& tier : workload.tiers) tier.idle_watts = tier.busy_watts = 0;
  Environment environment({.weights_for_s = 900});
  environment.reset(workload, 0);
  const std::vector<double> weights(static_cast<std::size_t>(environment.actions()), 1.0);
  while (!environment.done()) (void)environment.step(weights);
  Environment counts({.simulation = {.carbon_g_per_kwh = {100}}});
  EXPECT_EQ(message_of<InputError>([&] { counts.reset(workload, 0); }),
            "simulate: carbon_g_per_kwh is given, no tier has idle_watts or busy_watts");
}

TEST(EnvironmentTest, BeforeAnEpisodeEachQuestionIsRefusedInASentence) {
  Environment environment;
  const std::string want = "environment: reset() begins an episode, it comes first";
  std::vector<std::uint8_t> may(static_cast<std::size_t>(environment.actions()));
  std::vector<float> seen(static_cast<std::size_t>(environment.observation_size(1)));
  EXPECT_EQ(message_of<InputError>([&] { (void)environment.step(0); }), want);
  EXPECT_EQ(message_of<InputError>([&] { (void)environment.step(std::vector{1.0}); }), want);
  EXPECT_EQ(message_of<InputError>([&] { environment.mask(may); }), want);
  EXPECT_EQ(message_of<InputError>([&] { environment.observe(seen); }), want);
  EXPECT_EQ(message_of<InputError>([&] { (void)environment.simulation(); }), want);
  EXPECT_EQ(message_of<InputError>([&] { (void)environment.done(); }), want);
}

TEST(EnvironmentTest, ActionsAndWeightsOutOfRangeAreRefusedInASentence) {
  const Workload workload = random_workload(0, 5);
  Environment acts({.slots = 2, .running = 1});
  acts.reset(workload, 0);
  EXPECT_EQ(message_of<InputError>([&] { (void)acts.step(9); }),
            "environment: action is 9, expected 0 to 3");
  EXPECT_EQ(message_of<InputError>([&] { (void)acts.step(std::vector{1.0}); }),
            "environment: 1 weights, expected 0");
  Environment weighs({.weights_for_s = 60});
  weighs.reset(workload, 0);
  EXPECT_EQ(message_of<InputError>([&] { (void)weighs.step(0); }),
            "environment: expected weights, not an action");
  EXPECT_EQ(message_of<InputError>([] { (void)Environment({.weights_for_s = 1e300}); }),
            "environment: weights_for_s is 1e+300, expected at most 1e12");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message_of<InputError>([] { (void)Environment({.energy_weight = kInfinity}); }),
            "environment: energy_weight is inf, expected 0 or more and finite");
  EXPECT_EQ(message_of<InputError>([] { (void)Environment({.slots = 0}); }),
            "environment: 0 slots and 8 running jobs, expected at least 1 and 0, at most 1048576");
}

TEST(EnvironmentTest, WhatOnlySomePoliciesReadIsRefusedByName) {
  const auto refused = [](SimulationOptions options) {
    const std::string text =
        message_of<InputError>([&] { (void)Environment({.simulation = std::move(options)}); });
    return text.substr(0, text.find(','));
  };
  const std::string unread = "simulate: an environment does not read ";
  EXPECT_EQ(refused({.session_s = 60}), unread + "session_s");
  EXPECT_EQ(refused({.round_s = 60}), unread + "round_s");
  EXPECT_EQ(refused({.sharing = Sharing::mps}), unread + "sharing");
  EXPECT_EQ(refused({.user_gpus = 1}), unread + "user_gpus");
  EXPECT_EQ(refused({.planner = PlanOptions{}}), unread + "planner");
  EXPECT_EQ(refused({.max_ftf = 3}), unread + "max_ftf");
  const Workload workload = random_workload(0, 5);
  Environment counts({.simulation = {.carbon_g_per_kwh = {100}}});
  counts.reset(workload, 0);
  play_first(counts);
  EXPECT_EQ(counts.simulation().carbon_kg, counts.simulation().energy_kwh * 0.1);
}

TEST(EnvironmentTest, WhatIsShownIsWrittenIntoRoomOfItsSizeAndNoOther) {
  const Workload workload = random_workload(0, 5);
  for (const double weights_for_s : {0.0, 60.0}) {
    Environment environment({.slots = 2, .running = 1, .weights_for_s = weights_for_s});
    environment.reset(workload, 0);
    const auto actions = static_cast<std::size_t>(environment.actions());
    const auto numbers = static_cast<std::size_t>(environment.observation_size(1));
    for (const std::size_t wrong : {std::size_t{0}, actions - 1, actions + 1}) {
      std::vector<std::uint8_t> may(wrong, 7);
      EXPECT_EQ(message_of<InputError>([&] { environment.mask(may); }),
                "environment: a mask of " + std::to_string(wrong) + " bytes, expected " +
                    std::to_string(actions));
      EXPECT_EQ(may, std::vector<std::uint8_t>(wrong, 7));
    }
    for (const std::size_t wrong : {std::size_t{0}, numbers - 1, numbers + 1}) {
      std::vector<float> seen(wrong, 7);
      EXPECT_EQ(message_of<InputError>([&] { environment.observe(seen); }),
                "environment: an observation of " + std::to_string(wrong) + " numbers, expected " +
                    std::to_string(numbers));
      EXPECT_EQ(seen, std::vector<float>(wrong, 7));
    }
  }
}

TEST(EnvironmentTest, AWorkloadThatIsRefusedLeavesTheEpisodeBefore) {
  const Workload workload = random_workload(0, 5);
  Workload broken = workload;
  broken.jobs[2].truth = 99;
  Environment environment;
  EXPECT_EQ(message_of<InputError>([&] { environment.reset(broken, 0); }),
            "workload: job 102 names curve 99, expected none: there are no curves");
  environment.reset(workload, 0);
  EXPECT_THROW(environment.reset(broken, 0), InputError);
  play_first(environment);
  EXPECT_TRUE(all_finished(environment.simulation()));
  EXPECT_EQ(message_of<InputError>([&] { Environment({.simulation = {.seed = 3}}); }),
            "environment: simulation.seed is 3, expected 0: reset() takes the seed");
  Environment fails({.simulation = {.restart_s = -1}});
  EXPECT_EQ(message_of<InputError>([&] { fails.reset(workload, 0); }),
            "simulate: restart_s is -1, expected 0 or more");
}

}  // namespace
}  // namespace glidepath
