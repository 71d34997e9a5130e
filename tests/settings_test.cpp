// SPDX-License-Identifier: Apache-2.0
// Runs that have hardly begun: what past runs of alike settings foretell.
#include "glidepath/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "refusal.hpp"

namespace glidepath {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// `n` points of a loss that falls to `floor`, at steps 10, 20 ...
Trace run_to(double floor, std::size_t n, Settings settings = {}) {
  Trace run;
  for (std::size_t i = 1; i <= n; ++i) {
    run.step.push_back(10.0 * static_cast<double>(i));
    run.loss.push_back(floor + 3.0 / std::pow(static_cast<double>(i), 0.8));
  }
  run.settings = std::move(settings);
  return run;
}

/// Where runs of a learning rate end: the lower the rate, the higher.
double floor_of(double lr) { return 0.5 - 0.4 * std::log10(lr); }

/// Forty runs: five learning rates, two optimizers, four widths and a seed each, of which only the
/// learning rate matters.
std::vector<Trace> sweep() {
  std::vector<Trace> runs;
  double seed = 0;
  for (const double lr : {0.1, 0.03, 0.01, 0.003, 0.001}) {
    for (const char* optimizer : {"adam", "sgd"}) {
      for (const double width : {16.0, 32.0, 64.0, 128.0}) {
        seed += 1;
        const double luck = 0.02 * std::sin(12.9898 * seed * seed);
        runs.push_back(run_to(
            floor_of(lr) + luck, 60,
            {{"lr", lr}, {"optimizer", std::string(optimizer)}, {"width", width}, {"seed", seed}}));
      }
    }
  }
  return runs;
}

double weight_of(const PastRuns& past, const std::string& setting) {
  for (const Relevance& each : past.relevance()) {
    if (each.setting == setting) return each.weight;
  }
  return -1;
}

TEST(SettingsTest, BeforeTheFirstStepARunIsForecastAsRunsOfItsSettingsWent) {
  const PastRuns past(sweep());
  const Forecast unknown = forecast(TraceView{}, std::vector{300.0, 600.0}, {.past = &past});
  for (const double lr : {0.1, 0.005, 0.001}) {
    const Settings settings{{"lr", lr}, {"optimizer", std::string("adam")}, {"width", 48.0}};
    TraceView live;
    live.settings = &settings;
    const Forecast ahead = forecast(live, std::vector{300.0, 600.0}, {.past = &past});
    EXPECT_EQ(ahead.status, ForecastStatus::good);
    EXPECT_NEAR(ahead.median[1], floor_of(lr) + 3 / std::pow(60, 0.8), 0.12) << lr;
    const ForecastInterval own = interval(ahead, 0.8), any = interval(unknown, 0.8);
    EXPECT_LT(own.high[1] - own.low[1], 0.7 * (any.high[1] - any.low[1])) << lr;
  }
}

TEST(SettingsTest, WithoutSettingsAllPastRunsCountAlikeAndTheIntervalHoldsThemAll) {
  const PastRuns past(sweep());
  const Forecast ahead = forecast(TraceView{}, std::vector{600.0}, {.past = &past});
  const ForecastInterval most = interval(ahead, 0.95);
  EXPECT_LT(most.low[0], floor_of(0.1) + 0.15);
  EXPECT_GT(most.high[0], floor_of(0.001));
}

TEST(SettingsTest, WhatMattersIsLearnedAndSeedsArePassedOver) {
  const PastRuns past(sweep());
  EXPECT_GT(weight_of(past, "lr"), 4 * std::max(weight_of(past, "width"), 0.1));
  EXPECT_GT(weight_of(past, "lr"), 4 * std::max(weight_of(past, "optimizer"), 0.1));
  EXPECT_EQ(weight_of(past, "seed"), -1);
}

TEST(SettingsTest, PointsTakeOverFromSettingsAsTheyCome) {
  const PastRuns past(sweep());
  const Settings settings{{"lr", 0.1}, {"optimizer", std::string("adam")}, {"width", 16.0}};
  const Trace other = run_to(floor_of(0.001), 60, settings);  // it goes as the lowest rate does
  const double truth = other.loss.back();
  double before = std::numeric_limits<double>::infinity();
  for (const std::size_t points : {0, 2, 10, 40}) {
    TraceView seen = other.view();
    seen.step = seen.step.first(points);
    seen.loss = seen.loss.first(points);
    const Forecast ahead = forecast(seen, std::vector{600.0}, {.past = &past});
    const double error = std::abs(ahead.median[0] - truth);
    EXPECT_LT(error, before) << points;
    before = error;
  }
  EXPECT_LT(before, 0.05);
}

TEST(SettingsTest, ARunWithoutPointsNeedsThreePastRuns) {
  std::vector<Trace> runs = sweep();
  runs.resize(2);
  const PastRuns two(runs);
  EXPECT_EQ(forecast(TraceView{}, std::vector{600.0}, {.past = &two}).status,
            ForecastStatus::too_few_points);
}

TEST(SettingsTest, ARunWithoutPointsIsTheLessSureTheFartherItGoesBeyondPastRuns) {
  const PastRuns past(sweep());
  double before = 0;
  for (const double last : {600.0, 900.0, 2700.0}) {
    const Forecast ahead = forecast(TraceView{}, std::vector{last}, {.past = &past});
    EXPECT_EQ(ahead.status, ForecastStatus::good);
    const double width = quantile(ahead, 0.9)[0] - quantile(ahead, 0.1)[0];
    EXPECT_GT(width, 1.05 * before);
    before = width;
  }
}

TEST(SettingsTest, BeforeTheFirstStepTheShareThatArrivesIsThatOfPastRuns) {
  // Runs to 1 and to 2: eight of ten come to 1.5, at the steps of their curves.
  std::vector<Trace> runs;
  for (int i = 0; i < 10; ++i) runs.push_back(run_to(i < 8 ? 1.0 : 2.0, 60 + i));
  const PastRuns past = PastRuns::unlearned(runs);
  const Reach reached =
      reach(TraceView{}, 1.5, 600, {.past = &past, .reached_by = ReachedBy::point});
  EXPECT_EQ(reached.status, ForecastStatus::good);
  EXPECT_NEAR(1 - reached.prob_never, 0.8, 0.01);
  const double arrives = 10 * std::ceil(std::pow(6.0, 1 / 0.8));  // 3 / i^0.8 = 0.5
  EXPECT_NEAR(reached.quantile_if_reached(0.5), arrives, 0.1 * arrives);
}

TEST(SettingsTest, ARunThatEndedBeforeTheTargetCountsForThoseThatCameLater) {
  // Kaplan and Meier: of four runs one arrives at step 100, one ends at 150 with nothing said, two
  // arrive at 300 and 500: F(100) = 1/4, F(300) = 1/4 + 3/8, F(500) = 1.
  std::vector<Trace> runs(4);
  const std::vector<double> ends{100, 150, 300, 500};
  for (std::size_t i = 0; i < 4; ++i) {
    for (double step = 10; step <= ends[i]; step += 10) {
      runs[i].step.push_back(step);
      runs[i].loss.push_back(step < ends[i] || i == 1 ? 2 - 0.001 * step : 1.0);
    }
  }
  const PastRuns past = PastRuns::unlearned(runs);
  const Reach reached =
      reach(TraceView{}, 1.2, 2000, {.past = &past, .reached_by = ReachedBy::point});
  EXPECT_NEAR(reached.prob_by(200), 0.25, 0.08);
  EXPECT_NEAR(reached.prob_by(395), 0.625, 0.08);
  EXPECT_NEAR(reached.prob_by(1900), 1.0, 0.02);
}

TEST(SettingsTest, NoRunThatHasPointsChangesWhereNoneHasSettings) {
  std::vector<Trace> runs = sweep();
  Trace live = run_to(1.2, 10);
  const PastRuns with(runs);
  for (Trace& run : runs) run.settings.clear();
  const PastRuns without(runs);
  const Forecast a = forecast(live.view(), std::vector{600.0}, {.past = &with});
  const Forecast b = forecast(live.view(), std::vector{600.0}, {.past = &without});
  EXPECT_EQ(a.quantiles, b.quantiles);
}

TEST(SettingsTest, AreNumbersThatAreFinite) {
  Trace run = run_to(1, 10, {{"lr", kNaN}});
  EXPECT_THROW(validate(run.view()), InputError);
  EXPECT_NE(refusal([&] { validate(run.view()); }).find("setting 'lr' is nan"), std::string::npos);
}

TEST(SettingsTest, OfFailedRunsAndTargetsBeyondReachGiveFiniteProbabilities) {
  std::vector<Trace> runs = sweep();
  for (std::size_t i = 0; i < runs.size(); i += 2) runs[i].loss.back() = kNaN;
  const PastRuns past(runs);
  for (const double target : {-1.0, 0.0, 0.6, 1e300}) {
    const Reach reached = reach(TraceView{}, target, 600, {.past = &past});
    EXPECT_TRUE(reached.prob_never >= 0 && reached.prob_never <= 1) << target;
    EXPECT_TRUE(std::ranges::is_sorted(reached.cdf)) << target;
  }
}

}  // namespace
}  // namespace glidepath
