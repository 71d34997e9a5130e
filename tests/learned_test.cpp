// SPDX-License-Identifier: Apache-2.0
// The objective and policy `learned`: equal to what it corrects at weights of zero, where it does
// not hold, and from any file that is whole.
#include "plan/learned.hpp"

#include "glidepath/simulate.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan_cluster.hpp"
#include "refusal.hpp"
#include "simulated.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

using detail::kLearnedValues;
using detail::kRanges;
using detail::kShares;
using detail::kTerms;

constexpr std::size_t kKeeps = 6;  ///< the weight of a job that has the GPUs of the option

/// No correction, anywhere.
std::vector<double> zeros() {
  std::vector<double> values(kLearnedValues, 0.0);
  for (std::size_t i = 0; i < kRanges; ++i) {
    values[kLearnedValues - 2 * kRanges + i] = -1;
    values[kLearnedValues - kRanges + i] = 1e12;
  }
  return values;
}

Workload wrong_forecasts(std::uint64_t seed, int tiers) {
  Workload workload = tiers == 1 ? random_workload(seed, 80) : random_tiers(seed, 60);
  for (WorkloadJob& job : workload.jobs) job.priority = 0;
  return workload;
}

SimulationOptions hardship(std::uint64_t seed, double restart_s) {
  SimulationOptions options;
  options.seed = seed;
  options.restart_s = restart_s;
  options.forecast_sigma = 0.8;
  options.failures.node_every_s = 40000;
  options.failures.job_every_s = 20000;
  options.failures.checkpoint_s = 600;
  return options;
}

void expect_equal(const Simulation& a, const Simulation& b) {
  EXPECT_EQ(a.jobs.end_s, b.jobs.end_s);
  EXPECT_EQ(a.jobs.preemptions, b.jobs.preemptions);
  EXPECT_EQ(a.spans, b.spans);
  EXPECT_EQ(a.energy_kwh, b.energy_kwh);
  EXPECT_EQ(a.events, b.events);
}

TEST(LearnedTest, WithWeightsOfZeroItIsBestValueToTheLastDigit) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const int tiers : {1, 3}) {
      for (const double restart_s : {0.0, 60.0}) {
        const Workload workload = wrong_forecasts(seed, tiers);
        SimulationOptions options = hardship(seed, restart_s);
        const Simulation base = simulate(workload, "best_value", options);
        options.planner.emplace().learned = zeros();
        const Simulation run = simulate(workload, "learned", options);
        expect_consistent(workload, run, restart_s);
        expect_equal(run, base);
        EXPECT_EQ(run.fallback, "");
      }
    }
  }
}

TEST(LearnedTest, AWeightChangesTheScheduleAndBreaksNoRule) {
  for (const int tiers : {1, 3}) {
    const Workload workload = wrong_forecasts(5, tiers);
    SimulationOptions options = hardship(5, 60);
    options.planner.emplace().learned = zeros();
    const Simulation base = simulate(workload, "learned", options);
    options.planner->learned[kKeeps] = options.planner->learned[kTerms + kKeeps] = 2;
    const Simulation run = simulate(workload, "learned", options);
    expect_consistent(workload, run, 60);
    EXPECT_LT(run.preemptions, base.preemptions) << tiers;
  }
}

TEST(LearnedTest, WhereItsValuesDoNotHoldItIsBestValueAndSaysSo) {
  for (const int tiers : {1, 3}) {
    const Workload workload = wrong_forecasts(7, tiers);
    SimulationOptions options = hardship(7, 60);
    const Simulation base = simulate(workload, "best_value", options);
    options.planner.emplace().learned = zeros();
    options.planner->learned[kKeeps] = options.planner->learned[kTerms + kKeeps] = 2;
    options.planner->learned[kLearnedValues - kRanges] = 0;  // no load is that low
    const Simulation run = simulate(workload, "learned", options);
    expect_equal(run, base);
    EXPECT_NE(run.fallback.find("decisions by jct: GPUs wanted over GPUs is"), std::string::npos)
        << run.fallback;
  }
}

TEST(LearnedTest, WhatTheCrowdLiesWithinDecidesAsALookAtEachJobDoes) {
  bool left = false, held = false;  // some decisions to jct, and not all of a run
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    for (const double restart_s : {0.0, 60.0}) {
      const Workload workload = random_workload(seed, 250, 24);
      SimulationOptions options = hardship(seed, restart_s);
      std::vector<double>& values = options.planner.emplace().learned = zeros();
      values[2 * kTerms] = 0.5;
      values[2 * kTerms + 1] = -3;  // much hangs on where a job stands in the crowd
      values[2 * kTerms + 2] = -0.5;
      values[kLearnedValues - 2 * kRanges + 2] = 0.5;  // spreads that the values know
      values[kLearnedValues - kRanges + 2] = 0.7;
      const Simulation within = simulate(workload, "learned", options);
      values[kTerms] = 1e-300;  // a weight that changes no key, but each job is looked at
      const Simulation looked = simulate(workload, "learned", options);
      expect_equal(within, looked);
      EXPECT_EQ(within.fallback, looked.fallback);
      left |= !within.fallback.empty();
      values[kLearnedValues - 2 * kRanges + 2] = -1;
      values[kLearnedValues - kRanges + 2] = 1e12;
      held |= simulate(workload, "learned", options).jobs.end_s != within.jobs.end_s;
    }
  }
  EXPECT_TRUE(left && held);
}

TEST(LearnedTest, AJobThatCannotBePlannedIsNoneOfTheCrowd) {
  const std::vector<Tier> tiers{{.name = "a", .nodes = 1, .gpus_per_node = 4}};
  std::vector<Job> jobs(3);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i] = {.id = static_cast<std::int64_t>(i), .options = {{0, i == 0 ? 4 : 2, 1.0}}};
    for (int k = 1; k < 9; ++k) {
      jobs[i].remaining_steps.push_back(1000.0 * k * (1 + static_cast<double>(i)));
    }
  }
  PlanOptions options{.objectives = {{Objective::learned}}, .learned = zeros()};
  const auto planned = [&](std::span<const Job> of, std::span<const Allocation> running) {
    return plan({.now_s = 1000, .tiers = tiers, .jobs = of, .running = running}, options);
  };
  const Plan without = planned(jobs, {});
  EXPECT_EQ(without.fallback, "");
  std::vector<Job> more = jobs;
  more.push_back({.id = 99, .options = {{0, 8, 1.0}}});  // of which, too, nothing is known
  EXPECT_EQ(planned(more, {}).fallback, "");
  EXPECT_EQ(planned(more, {}).allocations, without.allocations);
  more.back() = {.id = 99, .options = {{0, 1, 1.0}}, .preemptible = false};
  const std::vector<Allocation> running{{.job = 99, .gpus = 2}};  // no option of its own
  EXPECT_EQ(planned(more, running).fallback, "");
}

TEST(LearnedTest, WhereNobodyIsNothingIsLeftToJct) {
  const std::vector<Tier> tiers{{.name = "a", .nodes = 1, .gpus_per_node = 4}};
  const PlanOptions options{.objectives = {{Objective::learned}}};
  EXPECT_EQ(plan({.tiers = tiers}, options).fallback, "");
  const std::vector<Job> too_large{{.id = 1, .options = {{0, 8, 1.0}}, .remaining_steps = {9}}};
  EXPECT_EQ(plan({.tiers = tiers, .jobs = too_large}, options).fallback, "");
  Workload workload{.tiers = tiers};
  workload.jobs = {{.id = 1, .duration_s = 100}, {.id = 2, .submit_s = 500, .duration_s = 100}};
  SimulationOptions errors;
  errors.forecast_sigma = 2;
  EXPECT_EQ(simulate(workload, "learned", errors).fallback, "");
}

TEST(LearnedTest, KnownDurationsLeaveItNothingToCorrect) {
  const Workload workload = wrong_forecasts(8, 1);
  SimulationOptions options;
  options.restart_s = 60;
  const Simulation run = simulate(workload, "learned", options);
  expect_equal(run, simulate(workload, "best_value", options));
  EXPECT_EQ(run.fallback, "1 of 1 decisions by jct: durations are known exactly");
}

TEST(LearnedTest, ThePolicyIsThePlannerWithTheObjectiveOfThatName) {
  for (const int tiers : {1, 3}) {
    const Workload workload = wrong_forecasts(9, tiers);
    const SimulationOptions options = hardship(9, 60);
    expect_equal(simulate(workload, "learned", options),
                 simulate(workload, "best_value:learned", options));
  }
}

/// Two jobs for one GPU: the second has it, the first is worth `ratio` times as much.
Plan plan_of_two(double ratio, const std::vector<double>& values) {
  Cluster cluster = one_tier(1);
  const auto job = [&](std::int64_t id, double steps) {
    Job& added = cluster.add(id, {0.5 * steps, 0.9 * steps, 1.1 * steps, 2 * steps});
    added.options = {{.tier = 0, .gpus = 1, .steps_per_s = 1}};
  };
  job(1, 1000);
  job(2, 1000 * ratio);
  cluster.running = {{.job = 2, .tier = 0, .gpus = 1, .since_s = 10}};
  PlanOptions options;
  options.objectives = {{Objective::learned}};
  options.learned = values;
  options.dynamics.hysteresis = 0;
  return plan(cluster.snapshot(), options);
}

TEST(LearnedTest, AJobKeepsItsGpusAgainstOneThatIsWorthLessThanTheFactorMore) {
  std::vector<double> values = zeros();
  EXPECT_NE(allocation_of(plan_of_two(1.5, values), 1), nullptr);
  values[kKeeps] = std::log(1.6);  // the factor exp(z) of what it has
  EXPECT_NE(allocation_of(plan_of_two(1.5, values), 2), nullptr);
  EXPECT_NE(allocation_of(plan_of_two(1.7, values), 1), nullptr);
}

TEST(LearnedTest, AJobWithoutAForecastLeavesThePlanToJct) {
  Cluster cluster = one_tier(1);
  cluster.add(3, {}).options = {{.tier = 0, .gpus = 1, .steps_per_s = 1}};
  PlanOptions options;
  options.objectives = {{Objective::learned}};
  EXPECT_EQ(plan(cluster.snapshot(), options).fallback,
            "job 3 has no forecast and no budget is left");
  cluster.jobs[0].remaining_steps = {10, 20, kInfinity};
  EXPECT_EQ(plan(cluster.snapshot(), options).fallback,
            "job 3 may never be done and no budget is left");
  cluster.jobs[0].budget_steps = kInfinity;
  EXPECT_EQ(plan(cluster.snapshot(), options).fallback,
            "job 3 may never be done and no budget is left");
  options.objectives = {{Objective::jct}};
  EXPECT_EQ(plan(cluster.snapshot(), options).fallback, "");
}

TEST(LearnedTest, WhatAForecastLeavesOpenIsAShareOfTheBudgetThatIsLeft) {
  constexpr std::size_t kFirst = kLearnedValues - 2 * kRanges - kShares;
  const auto planned = [](std::vector<double> first, std::vector<double> second,
                          Objective objective) {
    Cluster cluster = one_tier(1);
    for (const auto& [id, samples] : {std::pair{1, first}, std::pair{2, second}}) {
      Job& job = cluster.add(id, samples);
      job.options = {{.tier = 0, .gpus = 1, .steps_per_s = 1}};
      job.steps_done = 100;
      job.budget_steps = 1100;
    }
    PlanOptions options;
    options.objectives = {{objective}};
    if (objective == Objective::learned) {
      options.learned = zeros();
      options.learned[kFirst] = std::log(0.6);
      options.learned[kFirst + 1] = std::log(0.9);
    }
    return plan(cluster.snapshot(), options);
  };
  const std::vector<double> unknown{150, 300, 450, 600};  // quarters of 0.6 of the 1000 left
  const std::vector<double> open{100, 300, kInfinity, kInfinity}, closed{100, 300, 900, 900};
  for (const auto& other : {std::vector<double>{200, 350, 380, 400}, std::vector<double>{600}}) {
    const Plan by_budget = planned({}, other, Objective::learned);
    EXPECT_EQ(by_budget.fallback, "");
    EXPECT_EQ(by_budget.value, planned(unknown, other, Objective::jct).value);
    EXPECT_EQ(by_budget.allocations, planned(unknown, other, Objective::jct).allocations);
    const Plan ended = planned(open, other, Objective::learned);
    EXPECT_EQ(ended.value, planned(closed, other, Objective::jct).value);
    EXPECT_EQ(ended.allocations, planned(closed, other, Objective::jct).allocations);
  }
  EXPECT_NE(allocation_of(planned({}, {600}, Objective::learned), 1), nullptr);
  EXPECT_NE(allocation_of(planned({}, {200}, Objective::learned), 2), nullptr);
}

TEST(LearnedTest, ValuesThatCannotBeUsedAreRefused) {
  PlanOptions options;
  options.objectives = {{Objective::learned}};
  options.learned = {1, 2};
  const Cluster cluster = one_tier(1);
  EXPECT_EQ(message_of<InputError>([&] { (void)plan(cluster.snapshot(), options); }),
            "plan: learned has 2 values, expected 66");
  options.learned = zeros();
  options.learned[3] = kInfinity;
  EXPECT_EQ(message_of<InputError>([&] { (void)plan(cluster.snapshot(), options); }),
            "plan: learned has the value inf, expected a finite one");
}

class LearnedFileTest : public TemporaryFiles {};

TEST_F(LearnedFileTest, WhatIsWrittenIsReadBack) {
  const std::filesystem::path file = path("learned.txt");
  std::vector<double> values = zeros();
  values[0] = 1.0 / 3;
  values[1] = -1e-300;
  write_learned_values(values, file);
  EXPECT_EQ(read_learned_values(file), values);
}

TEST_F(LearnedFileTest, NoValuesAreNoFile) {
  const std::filesystem::path file = path("learned.txt");
  EXPECT_EQ(message_of<InputError>([&] { write_learned_values({}, file); }),
            "write_learned_values: values is empty, expected 66 numbers");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(LearnedFileTest, ADamagedFileIsRefusedInOneSentence) {
  const std::filesystem::path file = path("learned.txt");
  write_learned_values(zeros(), file);
  std::ifstream in(file);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto refusal = [&](const std::string& text) {
    const std::filesystem::path damaged = write("damaged.txt", text);
    return message_of<IoError>([&] { (void)read_learned_values(damaged); });
  };
  // Whatever byte is changed or lost.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string text = whole;
    text[at] = text[at] == '5' ? '6' : '5';
    EXPECT_NE(refusal(text).find("damaged.txt"), std::string::npos) << at;
    EXPECT_NE(refusal(whole.substr(0, at)).find("damaged.txt"), std::string::npos) << at;
  }
  EXPECT_NE(refusal(whole + "1\n").find("the checksum is not that of the values"),
            std::string::npos);
  EXPECT_NE(refusal("glidepath learned 1\n").find(":1: 'glidepath learned 1', expected"),
            std::string::npos);
}

}  // namespace
}  // namespace glidepath
