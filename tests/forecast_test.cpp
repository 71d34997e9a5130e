// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include "glidepath/eigen.hpp"
#include "glidepath/error.hpp"
#include "glidepath/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <locale>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/require.hpp"
#include "common/rng.hpp"
#include "forecast/constants.hpp"
#include "forecast/law.hpp"
#include "forecast/math.hpp"
#include "forecast/predict.hpp"
#include "forecast/prepare.hpp"
#include "forecast/stored_law.hpp"
#include "forecast/student.hpp"

namespace glidepath {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// floor + scale t^-rate with log-normal noise, at t = 1 ... n.
Trace power_law(int n, double floor, double scale, double rate, double noise) {
  Trace trace;
  const detail::Rng rng{7};
  for (int i = 1; i <= n; ++i) {
    trace.step.push_back(i);
    trace.loss.push_back((floor + scale * std::pow(i, -rate)) * std::exp(noise * rng.normal(1, i)));
  }
  return trace;
}

std::vector<double> steps_from(double first, double last, int count) {
  std::vector<double> steps;
  for (int i = 0; i < count; ++i) steps.push_back(first + (last - first) * i / (count - 1));
  return steps;
}

void expect_sound(const Forecast& f) {
  const std::ptrdiff_t levels = std::ssize(f.levels), at = std::ssize(f.at);
  ASSERT_EQ(std::ssize(f.median), at);
  for (const Rows* quantiles : {&f.quantiles, &f.curve_quantiles}) {
    ASSERT_EQ(quantiles->rows(), levels);
    ASSERT_EQ(quantiles->cols(), at);
    EXPECT_TRUE(as_eigen(*quantiles).allFinite());
    for (std::ptrdiff_t i = 1; i < levels; ++i) {
      EXPECT_TRUE(std::ranges::equal(quantiles->row(i - 1), quantiles->row(i), std::less_equal{}));
    }
  }
  for (const double median : f.median) EXPECT_TRUE(std::isfinite(median));
}

/// Widths of the central interval that holds the observation with probability `coverage`.
std::vector<double> widths(const Forecast& f, double coverage) {
  const ForecastInterval inside = interval(f, coverage);
  std::vector<double> width;
  for (std::size_t j = 0; j < f.at.size(); ++j) width.push_back(inside.high[j] - inside.low[j]);
  return width;
}

/// The sentence of the InputError that `work` throws.
template <typename Work>
std::string refusal(Work work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(StudentTest, CdfOfThreeDegreesAgreesWithTheIncompleteBeta) {
  for (double x = -40; x <= 40; x += 0.37) {
    EXPECT_NEAR(detail::student_cdf(3, x), detail::student_cdf_general(3, x), 1e-12);
  }
}

TEST(StudentTest, ClosedFormOfTheNoiseAgreesWithTheIncompleteBeta) {
  for (double x = -40; x <= 40; x += 0.37) {
    EXPECT_NEAR(detail::noise_cdf(x), detail::student_cdf(detail::kNoiseDegrees, x), 1e-12);
  }
}

#ifdef __GLIBC__
TEST(StudentTest, TheGlobalSignOfTheMathLibraryIsLeftAlone) {
  signgam = 7;  // two threads that wrote it at once would race
  EXPECT_GT(detail::student_cdf_general(2.5, 1.0), 0.5);
  EXPECT_GT(detail::student_quantile(2.5, 0.9), 0.0);
  EXPECT_EQ(signgam, 7);
}
#endif

TEST(StudentTest, QuantileInvertsCdf) {
  for (const double degrees : {1.5, 3.0, 3.07, 8.0}) {
    for (const double p : {1e-6, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999}) {
      EXPECT_NEAR(detail::student_cdf(degrees, detail::student_quantile(degrees, p)), p,
                  1e-13 + 1e-9 * p);
    }
  }
  // Tables of Student's t.
  EXPECT_NEAR(detail::student_quantile(3, 0.975), 3.182446305284263, 1e-12);
  EXPECT_NEAR(detail::student_quantile(8, 0.95), 1.859548037530898, 1e-12);
}

TEST(StudentTest, MixtureQuantilesInvertTheMixtureCdf) {
  const std::vector<double> weight{0.2, 0.5, 0.3}, location{-4, 0, 3}, scale{0.01, 1, 0.2};
  const detail::MixtureView mixture{weight, location, scale, 3};
  EXPECT_NEAR(detail::mixture_cdf(mixture, detail::mixture_median(mixture)), 0.5, 1e-8);
  std::vector<double> levels, unit;
  for (int i = 1; i < 100; ++i) {
    levels.push_back(i / 100.0);
    unit.push_back(detail::student_quantile(3, i / 100.0));
  }
  std::vector<double> q(levels.size());
  detail::MixtureQuantiles(levels, unit).find(mixture, 0, q);
  for (std::size_t i = 0; i < q.size(); ++i) {
    EXPECT_NEAR(detail::mixture_cdf(mixture, q[i]), levels[i], 1e-8);
  }
}

TEST(StudentTest, MixturesAtOnePlaceAreSearchedAsAnyOthers) {
  const std::vector<double> weight{0.2, 0.5, 0.3}, location{-4, 0, 3}, scale{0.01, 1, 0.2};
  const detail::MixtureView mixture{weight, location, scale, 3};
  const std::vector<double> levels{0.1, 0.5, 0.9};
  std::vector<double> unit, q(levels.size());
  for (const double p : levels) unit.push_back(detail::student_quantile(3, p));
  detail::MixtureQuantiles search(levels, unit);
  for (const double at : {7.0, 37.0, 37.0, 37.0, 37.0}) {
    search.find(mixture, at, q);
    for (std::size_t i = 0; i < q.size(); ++i) {
      EXPECT_NEAR(detail::mixture_cdf(mixture, q[i]), levels[i], 1e-8) << at;
    }
  }
}

TEST(StudentTest, TheKernelOfAMixtureHasTheDerivativesOfItsClosedForm) {
  const double middle = 0.3, scale = 2, step = detail::kInvSqrt3 / scale, each = 1 / detail::kPi;
  const double height = 2 * each * step;
  const detail::Component component{
      middle, step, each, height, -4 * height * step, height * step * step};
  std::vector<double> x(detail::kMaxLanes), cdf(x), density(x), slope(x), bend(x);
  for (double u = -60; u < 60; u += 0.0137) {
    x[0] = middle + u * scale;
    detail::forecast_kernels().mixture(1, x.data(), 1, &component,
                                       {cdf.data(), density.data(), slope.data(), bend.data()});
    EXPECT_NEAR(cdf[0], detail::student_cdf_general(3, u), 2e-13) << u;
    const double w = u / std::sqrt(3.0),
                 f = 2 / (detail::kPi * std::sqrt(3.0)) / std::pow(1 + w * w, 2) / scale;
    const double rate = 1 / (std::sqrt(3.0) * scale);
    EXPECT_NEAR(density[0] / f, 1, 1e-14) << u;
    EXPECT_NEAR(slope[0], -4 * w / (1 + w * w) * f * rate, 1e-14) << u;
    EXPECT_NEAR(bend[0], (20 * w * w - 4) / std::pow(1 + w * w, 2) * f * rate * rate, 1e-14) << u;
  }
  for (const double far : {1e20, 1e160, 1e200}) {
    x[0] = -far;
    detail::forecast_kernels().mixture(1, x.data(), 1, &component,
                                       {cdf.data(), density.data(), slope.data(), bend.data()});
    EXPECT_NEAR(cdf[0], 0, 1e-13) << far;
  }
}

TEST(StudentTest, AQuantileDoesNotDependOnTheOtherLevelsAsked) {
  const std::vector<double> weight{0.2, 0.5, 0.3}, location{-4, 0, 3}, scale{0.01, 1, 0.2};
  const std::vector<double> levels{0.05, 0.1, 0.5, 0.7, 0.95, 0.96, 0.97, 0.98, 0.99};
  for (const double degrees : {3.0, 5.0}) {
    const detail::MixtureView mixture{weight, location, scale, degrees};
    std::vector<double> unit;
    for (const double p : levels) unit.push_back(detail::student_quantile(degrees, p));
    detail::MixtureQuantiles all(levels, unit);
    std::vector<double> q(levels.size());
    for (const double at : {0.0, 0.1, 0.2, 0.3}) all.find(mixture, at, q);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      detail::MixtureQuantiles one({&levels[i], 1}, {&unit[i], 1});
      double alone = 0;
      for (const double at : {0.0, 0.1, 0.2, 0.3}) one.find(mixture, at, {&alone, 1});
      EXPECT_EQ(alone, q[i]);
      EXPECT_NEAR(detail::mixture_cdf(mixture, alone), levels[i], 1e-9);
    }
  }
}

TEST(MathTest, ExponentialAndLogarithmAreAccurateToAFewUlp) {
  for (double x = -707; x < 707; x += 0.613) {
    EXPECT_NEAR(detail::fast_exp(x) / std::exp(x), 1, 4e-16) << x;
  }
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(detail::fast_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x))));
  }
  EXPECT_EQ(detail::fast_exp(-1000), 0);
}

TEST(ForecastTest, FollowsANoiselessPowerLaw) {
  const Trace trace = power_law(200, 2, 3, 0.5, 0);
  const std::vector<double> steps = steps_from(201, 1000, 50);
  const Forecast f = forecast(trace.view(), steps);
  expect_sound(f);
  EXPECT_EQ(f.status, ForecastStatus::good);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    EXPECT_NEAR(f.median[j], 2 + 3 / std::sqrt(steps[j]), 0.01);
  }
}

TEST(ForecastTest, StepsAndScaleOfTheMetricDoNotMatter) {
  const Trace trace = power_law(60, 1, 2, 0.4, 0.01);
  Trace other = trace;
  for (double& step : other.step) step *= 1000;
  for (double& loss : other.loss) loss *= 1e-12;
  const std::vector<double> steps{61, 100, 300}, scaled{61000, 100000, 300000};
  const Forecast a = forecast(trace.view(), steps), b = forecast(other.view(), scaled);
  const EigenRows error = (as_eigen(a.quantiles) - as_eigen(b.quantiles) * 1e12).cwiseAbs();
  EXPECT_TRUE((error.array() <= 1e-6 * as_eigen(a.quantiles).array()).all());
}

TEST(ForecastTest, PositiveLossNeverGetsANegativeQuantile) {
  for (const double rate : {0.2, 1.0, 2.5}) {
    const Trace trace = power_law(30, 0, 1, rate, 0.2);
    const Forecast f = forecast(trace.view(), steps_from(31, 3000, 40));
    expect_sound(f);
    EXPECT_GE(as_eigen(f.quantiles).minCoeff(), 0);
  }
}

TEST(ForecastTest, RisingMetricStaysBelowItsCeilingAndMirrorsItsError) {
  Trace error = power_law(50, 0.1, 0.8, 0.5, 0.01), accuracy = error;
  for (double& v : accuracy.loss) v = 1 - v;
  const std::vector<double> steps = steps_from(51, 500, 10);
  const Forecast up = forecast(accuracy.view(), steps, {.direction = Direction::max});
  const Forecast down = forecast(error.view(), steps);
  expect_sound(up);
  const ForecastInterval high = interval(up, 0.9), low = interval(down, 0.9);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    EXPECT_NEAR(up.median[j], 1 - down.median[j], 1e-9);
    EXPECT_NEAR(high.low[j], 1 - low.high[j], 1e-9);
    EXPECT_NEAR(high.high[j], 1 - low.low[j], 1e-9);
  }
  const auto rising = as_eigen(up.quantiles), falling = as_eigen(down.quantiles);
  EXPECT_TRUE(rising.row(0).isApprox(EigenRows::Ones(1, 10) - falling.bottomRows(1)));
  EXPECT_LE(rising.maxCoeff(), 1);
}

TEST(ForecastTest, EveryOddTraceHasAFiniteAnswerAndAStatus) {
  const std::vector<double> steps{10, 20, 100};
  struct Case {
    std::vector<double> step, loss;
    ForecastStatus status;
  };
  const std::vector<Case> cases{
      {{}, {}, ForecastStatus::too_few_points},
      {{1}, {2}, ForecastStatus::too_few_points},
      {{0}, {2}, ForecastStatus::too_few_points},
      {{1, 2}, {2, 1}, ForecastStatus::too_few_points},
      {{1, 2, 3}, {3, 2, 1}, ForecastStatus::good},
      {{0, 1, 2}, {3, 2, 1}, ForecastStatus::good},
      {{-5, -1, 2}, {3, 2, 1}, ForecastStatus::good},
      {{1, 2, 3, 4}, {5, 5, 5, 5}, ForecastStatus::flat},
      {{1, 2, 3, 4}, {0, 0, 0, 0}, ForecastStatus::flat},
      {{1, 2, 3, 4}, {-1, -1, -1, -1}, ForecastStatus::flat},
      {{1, 2, 3, 4}, {3, 2, 1, kNaN}, ForecastStatus::not_finite},
      {{1, 2, 3, 4}, {kNaN, kInfinity, kNaN, kNaN}, ForecastStatus::not_finite},
      {{1, 2, 3, 4, 5}, {3, kNaN, 2, 1.5, 1.4}, ForecastStatus::good},
      {{1, 2, 3, 4, 5}, {3, 1, 0, 0, 0}, ForecastStatus::good},
      {{1, 2, 3, 4, 5}, {3, 1, -1, -2, -2.5}, ForecastStatus::good},
      {{1, 2, 3, 4, 5}, {1, 10, 1e5, 1e20, 1e100}, ForecastStatus::good},
      {{1, 2, 3, 4, 5}, {1e300, 1e200, 1, 1e-200, 1e-300}, ForecastStatus::good},
      {{1e-9, 1, 2, 3, 4}, {5, 4, 3, 2, 1.9}, ForecastStatus::good},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    for (const Direction direction : {Direction::min, Direction::max}) {
      const TraceView view{cases[i].step, cases[i].loss, {}};
      const Forecast f = forecast(view, steps, {.direction = direction});
      expect_sound(f);
      EXPECT_EQ(f.status, cases[i].status);
      for (const double p : prob_below(f, 1.0)) {
        EXPECT_GE(p, 0);
        EXPECT_LE(p, 1);
      }
      const Reach r = reach(view, 0.5, 100, {.direction = direction});
      EXPECT_GE(r.prob_never, 0);
      EXPECT_LE(r.prob_never, 1);
    }
  }
}

TEST(ForecastTest, TheBestSoFarIsPastWhereARunTurnsUpAndToComeWhereItFalls) {
  const Trace falls = power_law(60, 1, 1, 0.5, 0);
  Trace turns = falls;
  for (std::size_t i = 20; i < 60; ++i) turns.loss[i] += 0.02 * static_cast<double>(i - 19);
  const ForecastOptions by_point{.reached_by = ReachedBy::point};
  EXPECT_LT(best_so_far(falls.view(), 120, by_point).prob_past, 0.05);
  const BestSoFar best = best_so_far(turns.view(), 120, by_point);
  EXPECT_GT(best.prob_past, 0.95);
  EXPECT_EQ(best.step, turns.step[19]);
  EXPECT_EQ(best.value, turns.loss[19]);
  EXPECT_EQ(best_so_far(turns.view(), 60).prob_past, 1);
  EXPECT_TRUE(std::isnan(best_so_far({}, 60).value));
}

TEST(ForecastTest, BrokenInputIsRefusedInASentence) {
  const Trace trace = power_law(20, 1, 1, 0.5, 0);
  const std::vector<double> behind{10, 30}, backwards{30, 25}, none, ahead{30, 40};
  const std::vector<double> levels{0.5, 0.2};
  EXPECT_EQ(refusal([&] { (void)forecast(trace.view(), behind); }),
            "forecast: step 10 is not after 20: steps must increase past the last observed one");
  EXPECT_EQ(refusal([&] { (void)forecast(trace.view(), backwards); }),
            "forecast: step 25 is not after 30: steps must increase past the last observed one");
  EXPECT_EQ(refusal([&] { (void)forecast(trace.view(), none); }), "forecast: no steps to forecast");
  EXPECT_EQ(refusal([&] { (void)forecast(trace.view(), ahead, {.levels = levels}); }),
            "forecast: level 0.2 after 0.5: levels must increase and lie between 0 and 1");
  EXPECT_EQ(refusal([&] { (void)reach(trace.view(), kNaN, 100); }),
            "reach: target is nan, expected a number");
  EXPECT_EQ(refusal([&] { (void)reach(trace.view(), 1, kInfinity); }),
            "reach: budget is inf, expected between -1e300 and 1e300");
  const std::vector<double> median{0.5};
  EXPECT_EQ(refusal([&] { (void)reach(trace.view(), 1, 100, {.levels = median}); }),
            "reach: levels are for forecast()");
  EXPECT_EQ(refusal([&] { (void)best_so_far(trace.view(), kInfinity); }),
            "best_so_far: budget is inf, expected between -1e300 and 1e300");
  EXPECT_EQ(refusal([&] { (void)best_so_far(trace.view(), 100, {.levels = median}); }),
            "best_so_far: levels are for forecast()");
  for (const ReachedBy any : {ReachedBy::curve, ReachedBy::point}) {
    const ForecastOptions of_reach{.reached_by = any};
    const std::string sentence = "forecast: reached_by is for reach()";
    EXPECT_EQ(refusal([&] { (void)forecast(trace.view(), ahead, of_reach); }), sentence);
    const RowsView row(trace.loss.data(), 1, std::ssize(trace.loss));
    EXPECT_EQ(refusal([&] { (void)forecast_batch(trace.step, row, ahead, of_reach); }), sentence);
  }
  const Forecast f = forecast(trace.view(), ahead);
  EXPECT_EQ(refusal([&] { (void)interval(f, 1.0); }),
            "forecast: coverage is 1, expected above 0 and below 1");
  const Reach uneven{.step = {1, 2}, .cdf = {0.5}};
  for (const auto& read : {+[](const Reach& law) { return law.prob_by(1.5); },
                           +[](const Reach& law) { return law.quantile(0.2); },
                           +[](const Reach& law) { return law.quantile_if_reached(0.2); }}) {
    EXPECT_EQ(refusal([&] { (void)read(uneven); }),
              "reach: 2 steps but 1 probabilities, expected as many");
  }
  EXPECT_EQ(refusal([&] { (void)prob_below(f, kNaN); }),
            "forecast: target is nan, expected a number");
  EXPECT_EQ(refusal([&] { (void)quantile(f, 2); }),
            "forecast: p is 2, expected above 0 and below 1");
}

TEST(ForecastTest, OptionsThatAreNoValueOfTheirsAreRefused) {
  const Trace trace = power_law(20, 1, 2, 0.5, 0.01);
  const std::vector<double> ahead{40};
  const ForecastOptions sideways{.direction = static_cast<Direction>(9)};
  const ForecastOptions misread{.reached_by = static_cast<ReachedBy>(9)};
  const std::string direction = ": direction is value 9, expected one of min, max";
  const std::string reached_by = ": reached_by is value 9, expected one of curve, point";
  EXPECT_EQ(refusal([&] { (void)forecast(trace.view(), ahead, sideways); }),
            "forecast" + direction);
  EXPECT_EQ(refusal([&] {
              (void)forecast_batch(trace.step, {trace.loss.data(), 1, 20}, ahead, sideways);
            }),
            "forecast" + direction);
  EXPECT_EQ(refusal([&] { (void)reach(trace.view(), 1.5, 40, sideways); }), "reach" + direction);
  EXPECT_EQ(refusal([&] { (void)reach(trace.view(), 1.5, 40, misread); }), "reach" + reached_by);
  EXPECT_EQ(refusal([&] { (void)best_so_far(trace.view(), 40, sideways); }),
            "best_so_far" + direction);
  EXPECT_EQ(refusal([&] { (void)best_so_far(trace.view(), 40, misread); }),
            "best_so_far" + reached_by);
  Trace past = trace;
  past.name = "run";
  past.direction = static_cast<Direction>(9);
  EXPECT_EQ(refusal([&] { (void)PastRuns({past}); }), "past: 'run'" + direction);
}

TEST(ForecastTest, AForecastThatNobodyMadeIsRefusedInASentence) {
  const std::string sentence = "forecast: this one was not made by forecast(), it has no quantiles";
  EXPECT_EQ(refusal([] { (void)quantile({}, 0.5); }), sentence);
  EXPECT_EQ(refusal([] { (void)curve_quantile({}, 0.5); }), sentence);
  EXPECT_EQ(refusal([] { (void)interval({}, 0.5); }), sentence);
  EXPECT_EQ(refusal([] { (void)prob_below({}, 0.5); }), sentence);
}

TEST(ForecastTest, APointOfWeightZeroCountsForNothing) {
  const std::vector<double> step{1, 2, 3, 4, 5, 6, 7, 8}, loss{9, 3, 2, 1.6, 1.4, 1.3, 0.1, 50};
  const std::vector<double> weight{1, 1, 1, 1, 1, 1, 0, 0}, none(8, 0.0), at{20, 40};
  const Forecast f = forecast({step, loss, weight}, at);
  const Forecast without = forecast({std::span(step).first(6), std::span(loss).first(6), {}}, at);
  EXPECT_EQ(f.median, without.median);
  const Forecast empty = forecast({step, loss, none}, at);
  EXPECT_EQ(empty.status, ForecastStatus::too_few_points);
  for (const double value : empty.median) EXPECT_TRUE(std::isfinite(value));
}

TEST(ForecastTest, AWeightTooSmallForAnInverseIsAWeightOfZero) {
  const Trace run = power_law(40, 1, 3, 0.5, 0.01);
  const std::vector<double> at{80};
  std::vector<double> weight(40, 1.0);
  for (const std::size_t i : {0, 20, 39}) {
    weight[i] = 0;
    const Forecast without = forecast({run.step, run.loss, weight}, at);
    weight[i] = 1e-310;
    EXPECT_EQ(forecast({run.step, run.loss, weight}, at).median, without.median) << i;
    weight[i] = 1;
  }
}

TEST(ReachTest, APointOfWeightZeroDecidesNeitherATargetNorTheBestNorAFailure) {
  const Trace run = power_law(40, 1, 3, 0.5, 0.01);
  Trace marked = run;
  std::vector<double> weight(40, 1.0);
  for (std::ptrdiff_t i = 0; i < 8; ++i) {  // between steps 30 and 31
    marked.step.insert(marked.step.begin() + 30 + i, 30.1 + 0.1 * static_cast<double>(i));
    marked.loss.insert(marked.loss.begin() + 30 + i, 0.01);
    weight.insert(weight.begin() + 30 + i, 0.0);
  }
  const std::vector<double> at{400};
  for (const bool fails : {false, true}) {
    for (double step = 41; fails && step < 44; ++step) {
      marked.step.push_back(step);
      marked.loss.push_back(kNaN);
      weight.push_back(0);
    }
    const TraceView view{marked.step, marked.loss, weight};
    EXPECT_EQ(forecast(view, at).median, forecast(run.view(), at).median);
    EXPECT_EQ(forecast(view, at).status, ForecastStatus::good);
    for (const ReachedBy by : {ReachedBy::curve, ReachedBy::point}) {
      const ForecastOptions options{.reached_by = by};
      const Reach reached = reach(view, 0.5, 1000, options);
      const Reach expected = reach(run.view(), 0.5, 1000, options);
      EXPECT_EQ(reached.step, expected.step);
      EXPECT_EQ(reached.cdf, expected.cdf);
      EXPECT_EQ(reached.status, ForecastStatus::good);
      const BestSoFar best = best_so_far(view, 1000, options);
      const BestSoFar of_run = best_so_far(run.view(), 1000, options);
      EXPECT_EQ(best.step, of_run.step);
      EXPECT_EQ(best.value, of_run.value);
      EXPECT_EQ(best.prob_past, of_run.prob_past);
    }
  }
  const std::vector<double> none(run.step.size(), 0.0);
  EXPECT_TRUE(std::isnan(best_so_far({run.step, run.loss, none}, 1000).value));
  EXPECT_EQ(reach({run.step, run.loss, none}, 2, 1000).status, ForecastStatus::too_few_points);
}

TEST(ForecastTest, StepsAheadOfAnEmptyRunMustIncreaseFromZero) {
  for (const std::vector<double>& at : {std::vector{3.0, 2.0}, {0.0, 1.0}, {-1.0}}) {
    EXPECT_NE(refusal([&] { (void)forecast({}, at); }).find("steps must increase"),
              std::string::npos);
  }
}

TEST(ForecastTest, TablesOfConstantsThatDoNotReadAreRefusedInASentence) {
  const std::string table(detail::learned_table());
  const auto without = [&](const std::string& key) {
    const std::size_t begin = table.find("\n" + key + ' ') + 1;
    return table.substr(0, begin) + table.substr(table.find('\n', begin) + 1);
  };
  EXPECT_NO_THROW((void)read_constants(table));
  EXPECT_EQ(
      refusal([&] { (void)read_constants("temper 1\nshape cube 1 2 3\n"); }),
      "forecast constants: line 2: shape is 'cube', expected one of constant, hill, log, power, "
      "weibull");
  EXPECT_EQ(
      refusal([&] { (void)read_constants("temper 1\ngate family cube 1 2 3 4 5 6\n"); }),
      "forecast constants: line 2: shape is 'cube', expected one of constant, hill, log, power, "
      "weibull");
  EXPECT_EQ(refusal([&] { (void)read_constants("jitter 1\n"); }),
            "forecast constants: line 1: cannot read 'jitter 1'");
  for (const std::string line :
       {"ahead lean", "ahead lean 1 0 0 0 0 0", "ahead jump 1 0 0 0 0 0 0"}) {
    EXPECT_EQ(refusal([&] { (void)read_constants(line + '\n'); }),
              "forecast constants: line 1: cannot read '" + line + "'");
  }
  EXPECT_EQ(refusal([&] { (void)read_constants("lag 1\nlag 2\n"); }),
            "forecast constants: line 2: cannot read 'lag 2'");
  EXPECT_EQ(refusal([&] { (void)read_constants(without("lag")); }),
            "forecast constants: no line gives 'lag'");
  EXPECT_EQ(refusal([&] { (void)read_constants(without("bins") + "bins 4\n"); }),
            "forecast constants: bins is 4, expected 8 to 256");
  EXPECT_EQ(refusal([&] { (void)read_constants(without("epochs") + "epochs 2\n"); }),
            "forecast constants: epochs is 2, expected 0 to 1");
  EXPECT_EQ(refusal([&] { (void)read_constants(without("degrees") + "degrees 0\n"); }),
            "forecast constants: degrees is 0, expected 0.1 or more");
  EXPECT_EQ(refusal([&] { (void)read_constants(without("lag") + "lag 0\n"); }),
            "forecast constants: lag is 0, expected above 0");
  const Trace trace = power_law(30, 1, 2, 0.4, 0.02);
  const std::vector<double> ahead{40, 80};
  for (const char* width : {"width -1\n", "width 0\n", "width 1e200\n"}) {
    const auto constants = read_constants(without("width") + width);
    EXPECT_EQ(refusal([&] { (void)forecast(trace.view(), ahead, {.constants = constants}); }),
              "forecast: these losses, by these constants, have no finite forecast");
  }
}

/// Numbers as a German program writes them once it has set its locale.
struct WithCommas : std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

TEST(ForecastTest, TheTableIsReadAndSentencesAreSpelledAlikeWhateverTheLocaleOfTheProgram) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new WithCommas));
  std::shared_ptr<const ForecastConstants> read;
  const std::string refused = refusal([&] { read = read_constants(detail::learned_table()); });
  const std::string spelled = detail::sentence("at step ", 1234.5);
  std::locale::global(before);
  EXPECT_EQ(spelled, "at step 1234.5");
  ASSERT_NE(read, nullptr) << refused;
  EXPECT_EQ(read->shapes, detail::learned_constants().shapes);
  EXPECT_EQ(read->temper, detail::learned_constants().temper);
}

TEST(LawTest, StoredNumbersGiveTheLawBackAndOthersAreRefused) {
  const Trace trace = power_law(60, 1, 2, 0.4, 0.02);
  const std::vector<double> steps = steps_from(61, 400, 40);
  const Forecast f = forecast(trace.view(), steps);
  Forecast stored = f;
  const std::vector<double> numbers = detail::pack_law(*f.law);
  stored.law = std::make_shared<const detail::Law>(detail::unpack_law(numbers));
  EXPECT_EQ(quantile(stored, 0.3), quantile(f, 0.3));
  EXPECT_EQ(curve_quantile(stored, 0.3), curve_quantile(f, 0.3));
  EXPECT_EQ(prob_below(stored, 1.5), prob_below(f, 1.5));
  EXPECT_EQ(detail::pack_law(*stored.law), numbers);
  const std::span<const double> all(numbers);
  EXPECT_EQ(refusal([&] { (void)detail::unpack_law(all.first(5)); }),
            "forecast: these 5 numbers are not a stored forecast");
  EXPECT_THROW((void)detail::unpack_law(all.first(all.size() - 1)), InputError);
  const std::vector<double> broken(40, -1.0);
  EXPECT_THROW((void)detail::unpack_law(broken), InputError);
  std::vector<double> parts(all.begin(), all.begin() + 20);
  parts[0] = 1;
  parts[1] = 4.0 / 3;  // of components, which with one knot would be six numbers
  EXPECT_EQ(refusal([&] { (void)detail::unpack_law(parts); }),
            "forecast: these 20 numbers are not a stored forecast");

  detail::Law ahead = *f.law;  // whose clock begins after the steps
  for (double& knot : ahead.knots) knot += 1000;
  ahead.before = 500;
  stored.law = std::make_shared<const detail::Law>(detail::unpack_law(detail::pack_law(ahead)));
  for (const double value : quantile(stored, 0.3)) EXPECT_TRUE(std::isfinite(value));

  const auto changed = [&](auto change) {
    detail::Law law = *f.law;
    change(law);
    return refusal([&] { (void)detail::unpack_law(detail::pack_law(law)); });
  };
  EXPECT_EQ(changed([](detail::Law& law) { std::swap(law.lowest, law.highest); }),
            "forecast: this is not a stored forecast, its lowest value is above its highest");
  EXPECT_EQ(changed([](detail::Law& law) { law.highest = kNaN; }),
            "forecast: this is not a stored forecast, its lowest or highest value cannot be");
  EXPECT_EQ(changed([](detail::Law& law) { law.mixture.scale[1] = 0; }),
            "forecast: this is not a stored forecast, a scale cannot be");
  EXPECT_EQ(changed([](detail::Law& law) { law.mixture.weight[0] += 1; }),
            "forecast: this is not a stored forecast, its weights are no shares");
  EXPECT_EQ(changed([](detail::Law& law) { std::swap(law.knots[0], law.knots[1]); }),
            "forecast: this is not a stored forecast, its knots do not increase");
}

TEST(LawTest, StoredStepsThatTheOneKnotOfALawIsNotAtAreRefused) {
  Forecast stored = forecast(power_law(60, 1, 2, 0.4, 0.02).view(), std::vector<double>{100});
  EXPECT_EQ(quantile(stored, 0.5), stored.median);
  stored.at = {100, 200};
  EXPECT_EQ(refusal([&] { (void)quantile(stored, 0.3); }),
            "forecast: this is not a stored forecast, its one knot is not at its 2 steps");
  stored.at = {200};
  EXPECT_EQ(refusal([&] { (void)prob_below(stored, 1.5); }),
            "forecast: this is not a stored forecast, its one knot is not at its 1 step");
}

TEST(LawTest, CdfAtAKnotInvertsTheQuantileOfARawObservation) {
  const Trace trace = power_law(60, 1, 2, 0.4, 0.05);
  const std::vector<double> steps{61, 100, 400}, levels{0.02, 0.3, 0.5, 0.8};
  const Forecast f = forecast(trace.view(), steps);
  const detail::Law& law = *f.law;
  const detail::Levels at = detail::prepare_levels(levels, law.mixture.degrees, law.direction());
  std::vector<double> curve, raw;
  law.quantiles(at, curve, raw);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    EXPECT_NEAR(law.median(j), curve[at.median * steps.size() + j], 1e-6);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      EXPECT_NEAR(law.cdf(j, raw[at.row[i] * steps.size() + j]), levels[i], 1e-6);
    }
  }
}

TEST(PrepareTest, RunsThatCountFrom0AreShiftedByOneInterval) {
  EXPECT_EQ(detail::step_shift(std::vector<double>{5, 10}), 0);
  EXPECT_EQ(detail::step_shift(std::vector<double>{0, 10, 20}), 10);
  EXPECT_EQ(detail::step_shift(std::vector<double>{-5, -1}), 9);
  EXPECT_EQ(detail::step_shift(std::vector<double>{0}), 1);
  EXPECT_EQ(detail::step_shift({}), 0);
}

TEST(ForecastTest, OneSpikeDoesNotRuinTheInterval) {
  const Trace clean_trace = power_law(40, 0.2, 1, 0.6, 0.01);
  const std::vector<double> steps{41, 60, 100};
  const Forecast calm = forecast(clean_trace.view(), steps);
  for (const std::size_t at : {std::size_t{5}, std::size_t{20}, std::size_t{38}}) {
    Trace spiked = clean_trace;
    spiked.loss[at] *= 1000;
    const Forecast f = forecast(spiked.view(), steps);
    for (std::size_t j = 0; j < steps.size(); ++j) {
      EXPECT_NEAR(f.median[j], calm.median[j], 0.05 * calm.median[j]) << at;
      EXPECT_LT(widths(f, 0.8)[j], 3 * widths(calm, 0.8)[j]) << at;
    }
  }
}

TEST(ForecastTest, QuantileAndProbabilityAreInverse) {
  const Trace trace = power_law(80, 1, 2, 0.4, 0.05);
  const std::vector<double> steps{81, 120, 400};
  const Forecast f = forecast(trace.view(), steps);
  for (const double p : {0.03, 0.2, 0.5, 0.77, 0.98}) {
    const std::vector<double> q = quantile(f, p);
    for (std::size_t j = 0; j < steps.size(); ++j) {
      EXPECT_NEAR(prob_below(f, q[j])[j], p, 1e-6);
    }
  }
  for (std::size_t i = 0; i < f.levels.size(); ++i) {
    const std::vector<double> raw = quantile(f, f.levels[i]);
    const std::vector<double> curve = curve_quantile(f, f.levels[i]);
    for (std::size_t j = 0; j < steps.size(); ++j) {
      const auto row = static_cast<std::ptrdiff_t>(i), column = static_cast<std::ptrdiff_t>(j);
      EXPECT_NEAR(raw[j], f.quantiles(row, column), 1e-9);
      EXPECT_NEAR(curve[j], f.curve_quantiles(row, column), 1e-9);
    }
  }
}

TEST(ForecastTest, BatchGivesTheBytesOfSingleForecastsForAnyThreads) {
  const int m = 37, n = 30;
  const detail::Rng rng{3};
  std::vector<double> step;
  for (int i = 1; i <= n; ++i) step.push_back(10 * i);
  Rows losses(m, n);
  for (int r = 0; r < m; ++r) {
    for (int i = 0; i < n; ++i) {
      losses(r, i) = 1 + std::pow(i + 1, -0.1 * (r % 9)) + 0.02 * rng.normal(r, i);
    }
  }
  losses(5, n - 1) = kNaN;
  std::ranges::fill(losses.row(6), 2.0);
  const std::vector<double> steps = steps_from(310, 2000, 33);
  const ForecastBatch one = forecast_batch(step, losses, steps, {}, {.threads = 1});
  const ForecastBatch four = forecast_batch(step, losses, steps, {}, {.threads = 4});
  EXPECT_EQ(one.quantiles, four.quantiles);
  EXPECT_EQ(one.median, four.median);
  EXPECT_EQ(one.status[5], ForecastStatus::not_finite);
  EXPECT_EQ(one.status[6], ForecastStatus::flat);
  const Trace other = power_law(40, 1, 2, 0.4, 0.01);
  for (std::ptrdiff_t r = 0; r < m; ++r) {
    // Rows share what follows from the steps; a forecast of another run in between must not matter.
    if (r % 2 == 0) static_cast<void>(forecast(other.view(), steps));
    const Forecast f = forecast({step, losses.row(r), {}}, steps);
    for (std::size_t j = 0; j < steps.size(); ++j) {
      EXPECT_EQ(f.median[j], one.median(r, static_cast<std::ptrdiff_t>(j)));
    }
    for (std::size_t i = 0; i < f.levels.size(); ++i) {
      const auto level = f.quantiles.row(static_cast<std::ptrdiff_t>(i));
      EXPECT_TRUE(std::ranges::equal(level, one.quantile_rows(i).row(r)));
    }
  }
}

TEST(ForecastTest, ABatchWithoutRowsIsRefusedWhatOneWithRowsIs) {
  const std::vector<double> step{10, 20, 30}, back{10, 30, 20}, at{40, 50}, odd{kNaN}, levels{2};
  const RowsView none(nullptr, 0, 3);
  EXPECT_EQ(forecast_batch(step, none, at).median.rows(), 0);
  EXPECT_EQ(refusal([&] { (void)forecast_batch(step, none, odd); }),
            "forecast: step is nan, expected between -1e300 and 1e300");
  EXPECT_NE(refusal([&] { (void)forecast_batch(back, none, at); }), "");
  const RowsView fewer_rows(nullptr, -1, std::ssize(step));
  EXPECT_EQ(refusal([&] { (void)forecast_batch(step, fewer_rows, at); }),
            "forecast_batch: rows is -1, expected 0 or more");
  EXPECT_EQ(refusal([&] { (void)forecast_batch(step, RowsView(nullptr, 2, 3), at); }),
            "forecast_batch: loss is null, expected 2 x 3 numbers");
  EXPECT_EQ(refusal([&] { (void)forecast_batch(step, none, at, {.levels = levels}); }),
            "forecast: level 2 after 0: levels must increase and lie between 0 and 1");
}

TEST(ExecutionTest, ABatchOfNothingIsRefusedThreadsBelowNone) {
  const Execution fewer{.threads = -1};
  const std::string sentence = "threads is -1, expected 0 or more";
  const std::vector<double> step{10, 20, 30}, at{40};
  const RowsView none(nullptr, 0, 3);
  Rows out;
  EXPECT_EQ(refusal([&] { evaluate_batch({}, {}, out, fewer); }), sentence);
  EXPECT_EQ(refusal([&] { (void)fit_batch(step, none, {.family = Family::pow3}, fewer); }),
            sentence);
  EXPECT_EQ(refusal([&] { (void)forecast_batch(step, none, at, {}, fewer); }), sentence);
  EXPECT_EQ(refusal([&] { (void)PastRuns({}, fewer); }), sentence);
  EXPECT_EQ(refusal([&] { (void)PastRuns({power_law(20, 1, 1, 0.5, 0)}, fewer); }), sentence);
}

TEST(ForecastTest, KnownScheduleForeseesTheDropOfADecayBeforeItStarts) {
  Trace trace;
  std::vector<double> steps;
  for (int i = 10; i <= 1000; i += 10) {
    if (i > 600) {
      steps.push_back(i);
      continue;
    }
    trace.step.push_back(i);
    trace.loss.push_back(2 + 3 / std::sqrt(i));
  }
  const Schedule decay = Schedule::wsd(1, 1000);
  const Forecast blind = forecast(trace.view(), steps);
  const Forecast seeing = forecast(trace.view(), steps, {.schedule = &decay});
  expect_sound(seeing);
  EXPECT_LT(seeing.median.back(), 0.995 * blind.median.back());
  // Seven tenths of the law know the schedule: their median is the whole law's 0.35 quantile.
  EXPECT_LT(quantile(seeing, 0.35).back(), 0.985 * blind.median.back());
  // A log that says the same adds nothing; a log alone has no plan.
  trace.lr.assign(trace.step.size(), 1.0);
  EXPECT_EQ(forecast(trace.view(), steps, {.schedule = &decay}).median, seeing.median);
  EXPECT_EQ(forecast(trace.view(), steps).median, blind.median);
  // The effect of a rate that never changes cannot be foreseen.
  trace.lr.clear();
  for (const double rate : {0.1, 0.0}) {
    const Schedule level = Schedule::constant(rate);
    EXPECT_EQ(forecast(trace.view(), steps, {.schedule = &level}).median, blind.median);
  }
}

TEST(ForecastTest, AResumedLogForeseesTheDropOfADecayLikeAWholeOne) {
  Trace rest;
  std::vector<double> steps;
  for (int i = 510; i <= 1000; i += 10) {
    if (i > 700) {
      steps.push_back(i);
      continue;
    }
    rest.step.push_back(i);
    rest.loss.push_back(2 + 3 / std::sqrt(i));
  }
  const Forecast blind = forecast(rest.view(), steps);
  const Schedule whole = Schedule::wsd(1, 1000), from_here{{510, 800, 1000}, {1, 1, 0}};
  for (const Schedule* schedule : {&whole, &from_here}) {
    const Forecast seeing = forecast(rest.view(), steps, {.schedule = schedule});
    expect_sound(seeing);
    EXPECT_LT(seeing.median.back(), 0.985 * blind.median.back());
  }
}

TEST(ForecastTest, RatesBeforeTheLogTellThatTheRateHasFallenAlready) {
  Trace rest;
  for (int i = 610; i <= 800; i += 10) {
    rest.step.push_back(i);
    rest.loss.push_back(2 + 3 / std::sqrt(i) - 0.05 * (1 - std::exp((600 - i) / 60.0)));
  }
  const std::vector<double> steps{900, 1000};
  const Schedule level = Schedule::constant(0.1);
  const Schedule dropped{{0, 600, 601}, {1, 1, 0.1}};
  const Forecast unknown = forecast(rest.view(), steps, {.schedule = &level});
  const Forecast known = forecast(rest.view(), steps, {.schedule = &dropped});
  expect_sound(known);
  EXPECT_NE(known.median, unknown.median);
}

TEST(ForecastTest, AKnownScheduleGoesByBothClocksOfALateLog) {
  // A score that began with its log, at step 9000, would hardly move by the clock of step 0.
  const auto score = [](double step) { return 0.9 - 0.5 * std::pow((step - 9000) / 10, -0.8); };
  Trace trace;
  for (int k = 1; k <= 40; ++k) {
    trace.step.push_back(9000 + 10 * k);
    trace.loss.push_back(score(trace.step.back()));
  }
  std::vector<double> steps;
  for (int k = 9450; k <= 13000; k += 50) steps.push_back(k);
  const Schedule decay{{0, 13000}, {1e-3, 1e-4}};
  const Forecast known =
      forecast(trace.view(), steps, {.schedule = &decay, .direction = Direction::max});
  expect_sound(known);
  const double moves = score(13000) - trace.loss.back();
  EXPECT_NEAR(known.median.back(), score(13000), 0.2 * moves);
}

TEST(ForecastTest, AScheduleThatContradictsTheLogIsRefusedWithTheWorstStep) {
  Trace trace = power_law(50, 1, 2, 0.5, 0);
  trace.lr.assign(50, 0.001);
  const std::vector<double> steps{60, 100};
  const Schedule twice = Schedule::wsd(0.002, 100);
  try {
    (void)forecast(trace.view(), steps, {.schedule = &twice});
    FAIL() << "a schedule of twice the peak was taken";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "schedule: learning rate 0.002 at step 1, where the run logged 0.001: a schedule "
                 "is that of the whole run, past and planned");
  }
  EXPECT_THROW((void)reach(trace.view(), 1.1, 100, {.schedule = &twice}), InputError);
}

TEST(ForecastTest, PastRunsOfTheSameKindSharpenTheForecast) {
  std::vector<Trace> past;
  const auto run = [](double level, int n) {  // a plateau that drops at step 60
    Trace trace;
    for (int i = 1; i <= n; ++i) {
      trace.step.push_back(i);
      trace.loss.push_back(level * (1 + 1.0 / i + 1 / (1 + std::exp((i - 60) / 4.0))));
    }
    return trace;
  };
  for (int i = 0; i < 12; ++i) past.push_back(run(0.8 + 0.05 * i, 120));
  const Trace trace = run(1.07, 40), truth = run(1.07, 120);
  const std::vector<double> steps{60, 80, 120};
  const Forecast alone = forecast(trace.view(), steps);
  const PastRuns shapes = PastRuns::unlearned(past);
  const Forecast with = forecast(trace.view(), steps, {.past = &shapes});
  for (std::size_t j = 0; j < steps.size(); ++j) {
    const double right = truth.loss[static_cast<std::size_t>(steps[j]) - 1];
    EXPECT_LT(std::abs(with.median[j] - right), 0.03 * right);
    EXPECT_LT(std::abs(with.median[j] - right), std::abs(alone.median[j] - right));
  }
}

TEST(ForecastTest, PastRunsThatEachWentTheirOwnWayHardlyMoveTheForecast) {
  const detail::Rng rng{3};
  // The same until step 40, then up or down by an amount of its own.
  const auto run = [&](std::uint64_t id, double change, int n) {
    Trace trace;
    for (int i = 1; i <= n; ++i) {
      const double changed = 1 - std::exp(-std::max(i - 40, 0) / 20.0);
      trace.step.push_back(i);
      trace.loss.push_back(1 + 1.0 / i + change * changed + 0.002 * rng.normal(id, i));
    }
    return trace;
  };
  std::vector<Trace> past;
  for (int k = 0; k < 8; ++k) past.push_back(run(k, (k % 2 ? 0.1 : -0.1) * (1 + k / 2), 120));
  const Trace trace = run(100, 0, 40);
  const std::vector<double> steps{60, 120};
  const PastRuns shapes = PastRuns::unlearned(past);
  const Forecast alone = forecast(trace.view(), steps);
  const Forecast with = forecast(trace.view(), steps, {.past = &shapes});
  expect_sound(with);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    EXPECT_NEAR(with.median[j], alone.median[j], 0.005);
  }
}

/// A loss that fell since step 0, logged every 10 steps from step 900 to 1290.
Trace late_loss(double fall, double noise, std::uint64_t seed = 3) {
  Trace trace;
  const detail::Rng rng{seed};
  for (int i = 0; i < 40; ++i) {
    const double step = 900 + 10 * i;
    trace.step.push_back(step);
    trace.loss.push_back((2 + fall * std::pow(step / 900, -0.5)) *
                         std::exp(noise * rng.normal(1, i)));
  }
  return trace;
}

/// Medians by the clock of step 0 alone.
std::vector<double> by_clock_of_zero(const Trace& trace, std::span<const double> steps) {
  const ForecastConstants& constants = detail::constants_of({});
  const detail::Prepared run = detail::prepare(trace.view(), Direction::min, constants);
  const detail::Annealing no_plan;
  const detail::Mixture law = predict(detail::Observed(run, no_plan), steps, {}, constants);
  std::vector<double> medians;
  for (std::size_t j = 0; j < steps.size(); ++j) {
    medians.push_back(run.coordinate.metric(mixture_median(law.at(j))));
  }
  return medians;
}

/// Medians by the clock of the log alone, which counts from one interval before it.
std::vector<double> by_clock_of_log(Trace trace, std::vector<double> steps) {
  const double before = trace.step.front() - 10;
  for (double& step : trace.step) step -= before;
  for (double& step : steps) step -= before;
  return forecast(trace.view(), steps).median;
}

TEST(ForecastTest, ALateLossWhoseLogShowsHowItFallsKeepsMostlyTheClockOfStepZero) {
  const std::vector<double> steps{1400, 2300, 3300};
  for (const double noise : {0.001, 0.01}) {
    const Trace trace = late_loss(1, noise);
    const std::vector<double> given = forecast(trace.view(), steps).median;
    const std::vector<double> zero = by_clock_of_zero(trace, steps);
    const std::vector<double> log = by_clock_of_log(trace, steps);
    for (std::size_t j = 0; j < steps.size(); ++j) {
      EXPECT_LT(std::abs(given[j] - zero[j]), 0.25 * std::abs(log[j] - zero[j])) << noise;
    }
    EXPECT_GT(std::abs(given.back() - log.back()), 5e-4) << noise;
  }
}

TEST(ForecastTest, ALateLossWhoseLogIsNoiseIsForecastByTwoClocks) {
  const std::vector<double> steps{2300, 3300};
  for (const double fall : {0.1, 0.0}) {
    double error = 0, error_by_zero = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Trace trace = late_loss(fall, 0.05, seed);
      const std::vector<double> given = forecast(trace.view(), steps).median;
      const std::vector<double> zero = by_clock_of_zero(trace, steps);
      const std::vector<double> log = by_clock_of_log(trace, steps);
      for (std::size_t j = 0; j < steps.size(); ++j) {
        const auto [low, high] = std::minmax(zero[j], log[j]);
        EXPECT_GE(given[j], low) << fall << ' ' << seed;
        EXPECT_LE(given[j], high) << fall << ' ' << seed;
        const double truth = 2 + fall * std::pow(steps[j] / 900, -0.5);
        error += std::abs(given[j] - truth);
        error_by_zero += std::abs(zero[j] - truth);
      }
    }
    EXPECT_LT(error, 0.9 * error_by_zero) << fall;
  }
}

TEST(ForecastTest, ALogThatBeginsLateIsForecastAlikeBesideAPastRunOfAnotherKind) {
  Trace late;
  const detail::Rng rng{5};
  for (int i = 0; i < 30; ++i) {
    late.step.push_back(5000 + 10 * i);
    late.loss.push_back(2 - 0.0002 * i + 0.02 * rng.normal(1, i));
  }
  const PastRuns other = PastRuns::unlearned({power_law(8000, 40, 600, 1.5, 0.01)});
  const std::vector<double> steps{5400, 6000, 8000};
  const Forecast alone = forecast(late.view(), steps);
  const Forecast with = forecast(late.view(), steps, {.past = &other});
  const ForecastInterval inside = interval(alone, 0.8), inside_with = interval(with, 0.8);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    EXPECT_NEAR(with.median[j], alone.median[j], 1e-3);
    EXPECT_NEAR(inside_with.high[j] - inside_with.low[j], inside.high[j] - inside.low[j], 1e-3);
  }
}

TEST(ReachTest, TheNameOfTheMetricSaysHowALogIsRead) {
  Trace noisy = power_law(200, 1, 1, 0.5, 0.05);
  const auto by = [&](std::string metric, std::optional<ReachedBy> reached_by) {
    noisy.metric = std::move(metric);
    return reach(noisy.view(), 1.02, 1000, {.reached_by = reached_by}).cdf;
  };
  const auto curve = by("loss", ReachedBy::curve), point = by("loss", ReachedBy::point);
  ASSERT_NE(curve, point);
  EXPECT_EQ(by("loss", {}), curve);
  EXPECT_EQ(by("val_loss", {}), point);
  EXPECT_EQ(by("val_loss", ReachedBy::curve), curve);
}

TEST(ReachTest, TargetAlreadyMetIsReachedWhereItWasMet) {
  const Trace trace = power_law(50, 1, 1, 0.5, 0);
  const Reach r = reach(trace.view(), trace.loss[19], 1000, {.reached_by = ReachedBy::point});
  EXPECT_EQ(r.quantile(0.5), trace.step[19]);
  EXPECT_EQ(r.prob_never, 0);
  EXPECT_EQ(r.prob_by(trace.step[19]), 1);
  EXPECT_EQ(r.prob_by(trace.step[19] - 0.5), 0);
  EXPECT_EQ(refusal([&] { (void)r.prob_by(std::nan("")); }),
            "reach: step is nan, expected a number");
}

TEST(ReachTest, TheLevelIsOfATenthOfTheValuesWithinItsBounds) {
  const std::vector<std::pair<std::size_t, std::size_t>> expected{
      {0, 1},  {1, 1},  {11, 1},  {12, 3},   {19, 3},   {20, 5},   {69, 5},
      {70, 7}, {99, 9}, {100, 9}, {110, 11}, {629, 61}, {630, 63}, {100000, 63}};
  for (const auto& [points, window] : expected) {
    EXPECT_EQ(level_window(ReachedBy::curve, points), window) << points;
    EXPECT_EQ(level_window(ReachedBy::point, points), 1u);
  }
  EXPECT_EQ(reached_by_named(name(ReachedBy::point)), ReachedBy::point);
  EXPECT_THROW((void)reached_by_named("level"), InputError);
}

TEST(ReachTest, WeightsMayAddUpToMoreThanAnyNumberOfValues) {
  const std::vector<double> step{1, 2, 3, 4, 5, 6, 7, 8}, loss{5, 4, 3.4, 3, 2.8, 2.6, 2.5, 2.4};
  const std::vector<double> heavy(8, 1e100), many(8, 1e15);
  const ForecastOptions by_curve{.reached_by = ReachedBy::curve};
  const Reach reach = glidepath::reach({step, loss, heavy}, 2.0, 40, by_curve);
  const Reach as_many = glidepath::reach({step, loss, many}, 2.0, 40, by_curve);
  EXPECT_NEAR(reach.prob_never, as_many.prob_never, 0.05);
  const BestSoFar best = best_so_far({step, loss, heavy}, 40, by_curve);
  EXPECT_EQ(best.value, best_so_far({step, loss}, 40, by_curve).value);
  EXPECT_TRUE(best.prob_past >= 0 && best.prob_past <= 1) << best.prob_past;
}

TEST(ReachTest, TheCurveHasReachedATargetWhereTheMedianOfItsNewestValuesHas) {
  const Trace trace = power_law(400, 1, 2, 0.5, 0.05);
  for (const double target : {1.35, 1.2, 1.12}) {
    double level_at = kInfinity, point_at = kInfinity;  // by sorting each window
    for (std::size_t i = 0; i < trace.loss.size() && !std::isfinite(level_at); ++i) {
      const auto end = trace.loss.begin() + static_cast<std::ptrdiff_t>(i + 1);
      const std::size_t window = level_window(ReachedBy::curve, i + 1);
      std::vector<double> newest(end - static_cast<std::ptrdiff_t>(window), end);
      std::sort(newest.begin(), newest.end());
      if (newest[window / 2] <= target) level_at = trace.step[i];
      if (trace.loss[i] <= target) point_at = std::min(point_at, trace.step[i]);
    }
    ASSERT_LT(point_at, level_at);
    EXPECT_EQ(reach(trace.view(), target, 1000).step.front(), level_at);
    const Reach by_point = reach(trace.view(), target, 1000, {.reached_by = ReachedBy::point});
    EXPECT_EQ(by_point.step.front(), point_at);
  }
}

TEST(ReachTest, NoiseBringsALevelToTheTargetMoreSeldomThanAPoint) {
  const Trace trace = power_law(200, 1, 0, 0.5, 0.02);  // flat: only its noise can reach anything
  const double target = *std::min_element(trace.loss.begin(), trace.loss.end()) * 0.999;
  const Reach point = reach(trace.view(), target, 2000, {.reached_by = ReachedBy::point});
  EXPECT_GT(1 - point.prob_never, 0.8);
  EXPECT_LT(1 - reach(trace.view(), target, 2000).prob_never, 0.2);
}

TEST(ReachTest, TellsAReachableTargetFromAHopelessOne) {
  const Trace trace = power_law(100, 1, 2, 0.5, 0.002);
  const double reachable = 1 + 2 / std::sqrt(300.0);
  const Reach soon = reach(trace.view(), reachable, 2000);
  EXPECT_LT(soon.prob_never, 0.2);
  EXPECT_LT(soon.quantile(0.1), 300);
  EXPECT_GT(soon.quantile(0.9), 300);
  EXPECT_GT(reach(trace.view(), 0.5, 2000).prob_never, 0.95);
  // Given that it is reached: the law without the atom at never.
  const Reach unlikely = reach(trace.view(), 1 + 2 / std::sqrt(4000.0), 1000);
  EXPECT_GT(unlikely.prob_never, 0.5);
  EXPECT_EQ(unlikely.quantile(0.5), kInfinity);
  const double when = unlikely.quantile_if_reached(0.5);
  EXPECT_NEAR(unlikely.prob_by(when), 0.5 * (1 - unlikely.prob_never), 1e-12);
  EXPECT_EQ(reach(trace.view(), -1, 2000).quantile_if_reached(0.5), kInfinity);
  EXPECT_EQ(reach(trace.view(), -1, 2000).prob_never, 1);
  EXPECT_EQ(reach(trace.view(), 0.5, 50).prob_never, 1);
  for (std::size_t i = 1; i < soon.cdf.size(); ++i) {
    EXPECT_GE(soon.cdf[i], soon.cdf[i - 1]);
    EXPECT_GT(soon.step[i], soon.step[i - 1]);
  }
}

TEST(ReachTest, RemainingStepsAreNeverNegativeAndInfiniteForNever) {
  const Trace trace = power_law(100, 1, 2, 0.5, 0.01);
  const Reach r = reach(trace.view(), 1.12, 300);
  const std::vector<double> remaining = r.remaining_steps(16);
  ASSERT_EQ(remaining.size(), 16u);
  for (std::size_t i = 0; i < remaining.size(); ++i) {
    EXPECT_GE(remaining[i], i > 0 ? remaining[i - 1] : 0);
    const double at = r.quantile((static_cast<double>(i) + 0.5) / 16);
    EXPECT_EQ(remaining[i], std::isinf(at) ? kInfinity : at - 100);
  }
  EXPECT_EQ(remaining.back(), kInfinity);
  EXPECT_EQ(reach(trace.view(), trace.loss[19], 300).remaining_steps(3),
            std::vector<double>(3, 0.0));
  EXPECT_THROW((void)r.remaining_steps(0), InputError);
}

TEST(ReachTest, BatchGivesTheBytesOfSingleReachesForAnyThreads) {
  std::vector<Trace> runs;
  std::vector<TraceView> views;
  std::vector<double> targets;
  for (int i = 0; i < 7; ++i) runs.push_back(power_law(40 + 10 * i, 1, 2, 0.3 + 0.05 * i, 0.02));
  for (const Trace& run : runs) {
    views.push_back(run.view());
    targets.push_back(0.97 * run.loss.back());
  }
  const std::vector<double> budget{400};
  const std::vector<Reach> one = reach_batch(views, targets, budget, {}, {.threads = 1});
  const std::vector<Reach> four = reach_batch(views, targets, budget, {}, {.threads = 4});
  ASSERT_EQ(one.size(), runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Reach single = reach(views[i], targets[i], 400);
    EXPECT_EQ(one[i].cdf, single.cdf);
    EXPECT_EQ(one[i].step, single.step);
    EXPECT_EQ(one[i].target, targets[i]);
    EXPECT_EQ(four[i].cdf, single.cdf);
  }
  const std::vector<double> two{1, 2};
  try {
    (void)reach_batch(views, two, budget);
    FAIL() << "two targets for seven traces";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "reach_batch: 7 traces but 2 targets");
  }
}

std::vector<Trace> finished_runs(int count) {
  std::vector<Trace> finished;
  for (int i = 0; i < count; ++i) {
    Trace run = power_law(60, 1, 2, 0.3 + 0.05 * i, 0.02);
    for (int j = 0; j < 60; ++j) run.lr.push_back(1 - j / 61.0);
    run.name = "run" + std::to_string(i);
    finished.push_back(run);
  }
  return finished;
}

TEST(PastRunsTest, LearnTheSameFromAnyNumberOfThreads) {
  const PastRuns one(finished_runs(6), {.threads = 1}), two(finished_runs(6), {.threads = 2});
  EXPECT_EQ(one.widths(), two.widths());
  EXPECT_EQ(one.widths().scheduled_factor.size(), one.widths().horizon.size());
  EXPECT_EQ(one.widths().scheduled_runs, 6);
  EXPECT_EQ(PastRuns::unlearned(finished_runs(6)).widths(), Widths{});
}

TEST(PastRunsTest, OneMoreRunJoinsTheOthersAndTeaches) {
  const PastRuns before(finished_runs(5));
  const PastRuns after = before.update(finished_runs(6).back());
  EXPECT_EQ(before.runs().size(), 5u);
  EXPECT_EQ(after.runs().size(), 6u);
  EXPECT_EQ(after.widths().runs, before.widths().runs + 1);
  EXPECT_NE(after.widths().factor, before.widths().factor);
}

TEST(PastRunsTest, BrokenRunsAndWidthsAreRefusedInASentence) {
  std::vector<Trace> broken = finished_runs(3);
  broken[2].lr.pop_back();
  EXPECT_EQ(refusal([&] { (void)PastRuns(broken); }),
            "past: 'run2': trace: 60 steps but 59 learning rates");
  std::vector<Trace> mixed = finished_runs(2);
  mixed[1].direction = Direction::max;
  EXPECT_EQ(refusal([&] { (void)PastRuns::unlearned(mixed); }),
            "past: 'run1' has direction 'max', the first run 'min'");
  EXPECT_EQ(refusal([] {
              (void)PastRuns::restored({}, {.horizon = {0.1, 0.4}, .factor = {1}});
            }),
            "past: 2 horizons, 1 factors");
  EXPECT_EQ(refusal([] {
              (void)PastRuns::restored({}, {.horizon = {0.4, 0.1}, .factor = {1, 1}});
            }),
            "past: horizon[1] is 0.1, expected a finite number above 0.4");
  EXPECT_EQ(refusal([] { (void)PastRuns::restored({}, {.horizon = {0.4}, .factor = {0}}); }),
            "past: factor is 0, expected above 0 and finite");
  const PastRuns falling = PastRuns::unlearned(finished_runs(2));
  const Trace live = power_law(40, 1, 2, 0.4, 0.02);
  const std::vector<double> steps{50, 60};
  EXPECT_EQ(refusal([&] {
              (void)forecast(live.view(), steps, {.past = &falling, .direction = Direction::max});
            }),
            "past: 'run0' has direction 'min', the live run 'max'");
}

TEST(PastRunsTest, TheLargestFactorOfAWidthLeavesQuantilesFinite) {
  const double largest = std::numeric_limits<double>::max();
  const PastRuns past = PastRuns::restored({}, {.horizon = {0.1}, .factor = {largest}});
  const Trace live = power_law(40, 1, 2, 0.4, 0.02);
  const std::vector<double> steps{80, 160};
  const Forecast wide = forecast(live.view(), steps, {.past = &past});
  for (const double p : {0.05, 0.5, 0.95}) {
    for (const double loss : quantile(wide, p)) EXPECT_TRUE(std::isfinite(loss)) << p;
  }
  EXPECT_EQ(wide.median, forecast(live.view(), steps).median);
}

TEST(ForecastTest, ALogWithoutANumberIsReachedAsOneThatIsEmpty) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> steps{10}, losses{nan};
  std::vector<Trace> runs;
  for (const double rate : {0.30, 0.31, 0.32, 0.33}) {
    runs.push_back(power_law(1000, 1.5, 8, rate, 0));
  }
  const PastRuns past = PastRuns::unlearned(runs);
  for (const double target : {2.5, 1e-300}) {
    EXPECT_EQ(reach({steps, losses}, target, 1500).prob_never, reach({}, target, 1500).prob_never);
  }
  const double target = runs[1].loss[900];
  const double empty = reach({}, target, 1000, {.past = &past}).prob_never;
  EXPECT_LT(empty, 0.9);
  EXPECT_NEAR(reach({steps, losses}, target, 1000, {.past = &past}).prob_never, empty, 0.02);
}

TEST(ForecastTest, OneLossThatIsNoNumberTakesNothingFromWhatPastRunsSay) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Trace> runs;
  for (const double rate : {0.30, 0.31, 0.32, 0.33}) {
    runs.push_back(power_law(1000, 1.5, 8, rate, 0));
  }
  const PastRuns past = PastRuns::unlearned(runs);
  for (const std::size_t points : {std::size_t{1}, std::size_t{400}}) {
    Trace live = power_law(static_cast<int>(points), 1.5, 8, 0.3, 0);
    const double before = reach(live.view(), 2.6, 1000, {.past = &past}).prob_never;
    const double alone = reach(live.view(), 2.6, 1000).prob_never;
    live.step.push_back(live.step.back() + 1);
    live.loss.push_back(nan);
    const double after = reach(live.view(), 2.6, 1000, {.past = &past}).prob_never;
    EXPECT_NEAR(after, before, 0.01);
    EXPECT_LT(std::abs(after - before), 0.2 * std::abs(after - alone)) << points;
  }
}

TEST(ForecastTest, OnePointAtAnyStepHasAProbability) {
  const std::vector<double> losses{3};
  for (const double step : {-5.0, -1e20, -3e265, -1e300, 0.0, 1e-309, 1e-300, 1e300}) {
    const std::vector<double> steps{step};
    const double never =
        reach({steps, losses}, 0.5, std::min(step + 2 * std::abs(step) + 1, 1e300)).prob_never;
    EXPECT_TRUE(never >= 0 && never <= 1) << step;
  }
}

TEST(ForecastTest, ARowWithoutANumberDoesNotMoveTheClock) {
  Trace run = power_law(40, 1.5, 2, 0.4, 0.01);
  for (double& step : run.step) step = 10 * step;
  Trace begun = run;
  begun.step.insert(begun.step.begin(), 0.0);
  begun.loss.insert(begun.loss.begin(), std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> at{2000};
  EXPECT_EQ(forecast(begun.view(), at).quantiles, forecast(run.view(), at).quantiles);
  EXPECT_EQ(reach(begun.view(), 1.9, 2000).cdf, reach(run.view(), 1.9, 2000).cdf);
}

TEST(ForecastTest, StepsThatFallTogetherBesideAFarBeginningAreRefused) {
  const std::vector<double> step{-1e300, 0, 1, 3, 5, 7}, loss{7.1, 0.9, 0.8, 7.2, -1.0, 0.9};
  EXPECT_EQ(refusal([&] {
              (void)forecast({step, loss}, steps_from(22, 232, 15));
            }),
            "forecast: steps 22 to 232 cannot be told apart beside a run that begins at -1e+300");
}

}  // namespace
}  // namespace glidepath
