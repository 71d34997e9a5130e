// SPDX-License-Identifier: Apache-2.0
// The C interface under the sanitizers; tests/python/test_c_interface.py compares its numbers.
#include "glidepath/glidepath.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

struct Decay {
  explicit Decay(int points) {
    for (int t = 1; t <= points; ++t) {
      step.push_back(t);
      loss.push_back(1.0 + 2.0 * std::pow(t, -0.5));
    }
    trace.size = sizeof(trace);
    trace.points = step.size();
    trace.step = step.data();
    trace.loss = loss.data();
  }
  std::vector<double> step{}, loss{};
  glidepath_trace_t trace{};
};

TEST(CTest, WhatOneFunctionMakesAnotherTakesBack) {
  const Decay run(60);
  const double at[] = {100, 200};
  glidepath_forecast_t* forecast = nullptr;
  ASSERT_EQ(glidepath_forecast(&run.trace, at, 2, nullptr, &forecast), GLIDEPATH_OK);
  glidepath_forecast_view_t view{};
  view.size = sizeof(view);
  ASSERT_EQ(glidepath_forecast_get(forecast, &view), GLIDEPATH_OK);
  EXPECT_EQ(std::string(view.status), "good");
  EXPECT_NEAR(view.median[1], 1.0 + 2.0 / std::sqrt(200.0), 0.02);
  glidepath_forecast_free(forecast);

  glidepath_reach_t* reach = nullptr;
  ASSERT_EQ(glidepath_reach(&run.trace, 1.1, 1000, nullptr, &reach), GLIDEPATH_OK);
  std::vector<double> remaining(20);
  ASSERT_EQ(glidepath_reach_remaining_steps(reach, 20, remaining.data()), GLIDEPATH_OK);
  EXPECT_GT(remaining[10], 0);
  glidepath_reach_free(reach);

  const double target = 0.5, budget = 1000;
  glidepath_watch_options_t options{};
  options.size = sizeof(options);
  options.target = &target;
  options.budget = &budget;
  glidepath_watch_t* watch = nullptr;
  ASSERT_EQ(glidepath_watch(&options, &watch), GLIDEPATH_OK);
  glidepath_decision_t decision{};
  decision.size = sizeof(decision);
  for (std::size_t i = 0; i < run.step.size(); ++i) {
    ASSERT_EQ(glidepath_watch_add(watch, run.step[i], run.loss[i], NAN), GLIDEPATH_OK);
    ASSERT_EQ(glidepath_watch_decision(watch, &decision), GLIDEPATH_OK);
  }
  EXPECT_LT(decision.probability, 0.5);
  EXPECT_NE(std::string(decision.reason), "");
  glidepath_watch_free(watch);
}

TEST(CTest, ADecisionThatIsRefusedLeavesTheReasonOfTheOneBefore) {
  glidepath_watch_t* watch = nullptr;
  ASSERT_EQ(glidepath_watch(nullptr, &watch), GLIDEPATH_OK);
  glidepath_decision_t decision{};
  decision.size = sizeof(decision);
  ASSERT_EQ(glidepath_watch_decision(watch, &decision), GLIDEPATH_OK);
  const char* const reason = decision.reason;
  const std::string before = reason;
  for (int step = 1; step < 40; ++step) {
    ASSERT_EQ(glidepath_watch_add(watch, step, 3 - 0.01 * step, NAN), GLIDEPATH_OK);
  }
  glidepath_decision_t unsized{};
  EXPECT_EQ(glidepath_watch_decision(watch, &unsized), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(reason, before);
  glidepath_watch_free(watch);
}

TEST(CTest, TheBestOfARunThatTurnedUpIsPastAndOfOneThatFallsIsToCome) {
  Decay run(60);
  glidepath_best_so_far_t best{};
  best.size = sizeof(best);
  ASSERT_EQ(glidepath_best_so_far(&run.trace, 120, nullptr, &best), GLIDEPATH_OK);
  EXPECT_LT(best.prob_past, 0.05);
  EXPECT_EQ(std::string(best.status), "good");

  for (std::size_t i = 20; i < run.loss.size(); ++i) {
    run.loss[i] += 0.02 * (run.step[i] - 20);
  }
  glidepath_forecast_options_t options{};
  options.size = sizeof(options);
  options.reached_by = "point";
  ASSERT_EQ(glidepath_best_so_far(&run.trace, 120, &options, &best), GLIDEPATH_OK);
  EXPECT_GT(best.prob_past, 0.95);
  EXPECT_EQ(best.step, 20);
  EXPECT_EQ(best.value, run.loss[19]);
  EXPECT_EQ(best.budget, 120);

  best.size = offsetof(glidepath_best_so_far_t, prob_past);
  best.prob_past = 7;
  ASSERT_EQ(glidepath_best_so_far(&run.trace, 120, &options, &best), GLIDEPATH_OK);
  EXPECT_EQ(best.prob_past, 7);  // not the caller's to have
  EXPECT_EQ(glidepath_best_so_far(&run.trace, NAN, nullptr, &best), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()).find("best_so_far: budget is nan"), 0U);
  const double level = 0.5;
  options.levels = &level;
  options.level_count = 1;
  EXPECT_EQ(glidepath_best_so_far(&run.trace, 120, &options, &best), GLIDEPATH_INPUT_ERROR);
}

TEST(CTest, ATraceWhoseMetricRisesIsLookedAtThatWayUnlessTheOptionsSayOtherwise) {
  Decay run(60);
  for (double& loss : run.loss) loss = 3.0 - loss;
  run.trace.direction = "max";
  glidepath_best_so_far_t best{};
  best.size = sizeof(best);
  ASSERT_EQ(glidepath_best_so_far(&run.trace, 120, nullptr, &best), GLIDEPATH_OK);
  EXPECT_GT(best.value, 1.7);
  glidepath_forecast_options_t options{};
  options.size = sizeof(options);
  options.reached_by = "point";
  ASSERT_EQ(glidepath_best_so_far(&run.trace, 120, &options, &best), GLIDEPATH_OK);
  EXPECT_EQ(best.value, run.loss.back());
  options.direction = "min";
  ASSERT_EQ(glidepath_best_so_far(&run.trace, 120, &options, &best), GLIDEPATH_OK);
  EXPECT_EQ(best.value, run.loss.front());
  run.trace.direction = "banana";
  EXPECT_EQ(glidepath_best_so_far(&run.trace, 120, &options, &best), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()),
            "trace: direction is 'banana', expected min or max");
}

TEST(CTest, ARoundOnAllCoresIsThatOfOneThreadAndFewerThanNoneAreRefused) {
  const std::int64_t job[] = {1, 2}, tier[] = {0, 0}, gpus[] = {1, 1}, capacity[] = {1};
  const double value[] = {1, 2};
  glidepath_round_t round{};
  round.size = sizeof(round);
  round.options = 2;
  round.job = job;
  round.tier = tier;
  round.gpus = gpus;
  round.value = value;
  round.tiers = 1;
  round.capacity = capacity;
  glidepath_round_options_t options{};
  options.size = sizeof(options);
  glidepath_round_plan_t* plan = nullptr;
  const std::int32_t all = 0, one = 1, broken = -3;
  for (const std::int32_t* threads : {&all, &one, static_cast<const std::int32_t*>(nullptr)}) {
    options.threads = threads;
    ASSERT_EQ(glidepath_solve_round(&round, &options, &plan), GLIDEPATH_OK);
    glidepath_round_plan_view_t view{};
    view.size = sizeof(view);
    ASSERT_EQ(glidepath_round_plan_get(plan, &view), GLIDEPATH_OK);
    ASSERT_EQ(view.chosen_count, 1U);
    EXPECT_EQ(view.chosen[0], 1);
    glidepath_round_plan_free(plan);
  }
  options.threads = &broken;
  EXPECT_EQ(glidepath_solve_round(&round, &options, &plan), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()), "threads is -3, expected 0 or more");
}

TEST(CTest, AFailureLeavesNoHandleAndASentence) {
  const Decay run(60);
  const double back[] = {200, 100};
  auto* forecast = reinterpret_cast<glidepath_forecast_t*>(std::uintptr_t{8});
  EXPECT_EQ(glidepath_forecast(&run.trace, back, 2, nullptr, &forecast), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(forecast, nullptr);
  EXPECT_NE(std::string(glidepath_last_error()), "");

  glidepath_traces_t* traces = nullptr;
  EXPECT_EQ(glidepath_read_traces("/no/such.csv", nullptr, nullptr, &traces), GLIDEPATH_IO_ERROR);
  EXPECT_NE(std::string(glidepath_last_error()).find("/no/such.csv"), std::string::npos);

  const double ahead[] = {100, 200}, level = 0.5;
  glidepath_forecast_options_t uncounted{};
  uncounted.size = sizeof(uncounted);
  uncounted.levels = &level;
  EXPECT_EQ(glidepath_forecast(&run.trace, ahead, 2, &uncounted, &forecast), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()),
            "forecast options: level_count is 0 beside levels, expected 1 or more");

  glidepath_fit_options_t options{};
  options.size = sizeof(options);
  options.family = "pow9";
  glidepath_fit_t fit{};
  fit.size = sizeof(fit);
  EXPECT_EQ(glidepath_fit(&run.trace, &options, &fit), GLIDEPATH_INPUT_ERROR);
  EXPECT_NE(std::string(glidepath_last_error()).find("pow9"), std::string::npos);
}

TEST(CTest, CountsThatNoMemoryHoldsAreRefused) {
  const std::size_t absurd = std::size_t{1} << 62U;
  const double one = 1;
  const std::int64_t job = 1;
  double index = 0;
  EXPECT_EQ(glidepath_gittins_index(&one, absurd, &index), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()),
            "samples has 4611686018427387904 values, expected at most 17592186044415");
  GLIDEPATH_INIT(glidepath_snapshot_t, snapshot);
  snapshot.nodes = &job;
  glidepath_plan_t* plan = nullptr;
  snapshot.tiers = absurd;
  EXPECT_EQ(glidepath_plan(&snapshot, nullptr, &plan), GLIDEPATH_INPUT_ERROR);
  snapshot.tiers = 1;
  snapshot.jobs = absurd;
  snapshot.job = &job;
  EXPECT_EQ(glidepath_plan(&snapshot, nullptr, &plan), GLIDEPATH_INPUT_ERROR);
  snapshot.jobs = 1;
  snapshot.remaining_steps = &one;
  snapshot.samples = absurd;
  EXPECT_EQ(glidepath_plan(&snapshot, nullptr, &plan), GLIDEPATH_INPUT_ERROR);
  snapshot.samples = 0;
  EXPECT_EQ(glidepath_plan(&snapshot, nullptr, &plan), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()), "snapshot: remaining_steps without samples");
  snapshot.remaining_steps = nullptr;
  snapshot.samples = 20;
  EXPECT_EQ(glidepath_plan(&snapshot, nullptr, &plan), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()),
            "snapshot: samples is 20 without remaining_steps, expected 0");
}

TEST(CTest, AFitIsPredictedWithAsManyParametersAsItsFamilyHas) {
  Decay run(60);
  GLIDEPATH_INIT(glidepath_fit_options_t, options);
  options.family = "pow3";
  GLIDEPATH_INIT(glidepath_fit_t, fit);
  ASSERT_EQ(glidepath_fit(&run.trace, &options, &fit), GLIDEPATH_OK);
  const double step = 61;
  double loss = 0;
  EXPECT_EQ(glidepath_fit_predict(&fit, &step, 1, &loss), GLIDEPATH_OK);
  fit.parameter_count = 4;
  EXPECT_EQ(glidepath_fit_predict(&fit, &step, 1, &loss), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()), "fit: parameter_count is 4, expected 3 of pow3");
}

TEST(CTest, AStructOfEitherVersionIsReadAsFarAsBothKnowIt) {
  Decay run(60);
  glidepath_fit_t fit{};
  fit.size = offsetof(glidepath_fit_t, parameters);
  fit.parameters[0] = 7;
  ASSERT_EQ(glidepath_fit(&run.trace, nullptr, &fit), GLIDEPATH_OK);
  EXPECT_EQ(fit.points, 60);
  EXPECT_EQ(fit.parameters[0], 7);  // not the caller's to have

  struct Newer {
    glidepath_watch_options_t known{};
    double unknown = 0;
  } options;
  options.known.size = sizeof(options);
  glidepath_watch_t* watch = nullptr;
  EXPECT_EQ(glidepath_watch(&options.known, &watch), GLIDEPATH_OK);
  glidepath_watch_free(watch);
  options.unknown = 1;
  EXPECT_EQ(glidepath_watch(&options.known, &watch), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(watch, nullptr);

  options.known.size = offsetof(glidepath_watch_options_t, budget) + 4;  // within a pointer
  EXPECT_EQ(glidepath_watch(&options.known, &watch), GLIDEPATH_INPUT_ERROR);
  EXPECT_EQ(std::string(glidepath_last_error()),
            "watch options: its size is 20; GLIDEPATH_INIT sets it");
}

}  // namespace
