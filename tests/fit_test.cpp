// SPDX-License-Identifier: Apache-2.0
#include "glidepath/fit.hpp"

#include "glidepath/error.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/least_squares.hpp"
#include "common/rng.hpp"
#include "fit_samples.hpp"
#include "needs_ceres.hpp"
#include "refusal.hpp"

namespace glidepath {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class EveryFamilyTest : public testing::TestWithParam<std::tuple<Curve, Solver>> {};

TEST_P(EveryFamilyTest, RecoversANoiselessCurve) {
  const auto& [curve, solver] = GetParam();
  const Trace trace = sample(curve, counting(200));
  const Fit fit = glidepath::fit(trace.view(), {.family = curve.family, .solver = solver});
  EXPECT_EQ(fit.status, FitStatus::converged);
  EXPECT_EQ(fit.points, 200);
  EXPECT_EQ(fit.last_step, 200);
  for (std::size_t k = 0; k < parameter_names(curve.family).size(); ++k) {
    EXPECT_NEAR(fit.curve.parameters[k], curve.parameters[k], 1e-6 * curve.parameters[k])
        << parameter_names(curve.family)[k];
  }
}

TEST_P(EveryFamilyTest, KeepsItsAnswerWhenUnitsChange) {
  const auto& [curve, solver] = GetParam();
  const Trace trace = sample(curve, counting(60), 0.01);
  const FitOptions options{.family = curve.family, .solver = solver};
  const Fit plain = fit(trace.view(), options);
  for (const double unit : {1e-30, 1e30}) {
    Trace scaled = trace;
    for (double& y : scaled.loss) y *= unit;
    const Fit fit = glidepath::fit(scaled.view(), options);
    EXPECT_EQ(fit.status, plain.status);
    for (const double t : {1.0, 10.0, 100.0}) {
      EXPECT_NEAR(evaluate(fit.curve, t) / unit, evaluate(plain.curve, t), 1e-7);
    }
    EXPECT_NEAR(fit.sigma / unit, plain.sigma, 1e-9 * plain.sigma);
  }
}

/// The spread of the estimates over noise is what the standard errors promise.
TEST_P(EveryFamilyTest, StandardErrorsAreTheSpreadOfTheEstimates) {
  const auto& [curve, solver] = GetParam();
  const int repeats = solver == Solver::ceres ? 150 : 400;
  const std::size_t count = parameter_names(curve.family).size();
  std::array<double, kMaxParameters> sum{}, square{}, promised{};
  for (int r = 0; r < repeats; ++r) {
    const Trace trace = sample(curve, counting(150), 1e-4, 100 + r);
    FitOptions options{.family = curve.family, .solver = solver};
    if (solver == Solver::ceres) options.starts = 1;
    const Fit fit = glidepath::fit(trace.view(), options);
    for (std::size_t k = 0; k < count; ++k) {
      const double error = fit.curve.parameters[k] - curve.parameters[k];
      sum[k] += error / repeats;
      square[k] += error * error / repeats;
      promised[k] += fit.standard_error[k] / repeats;
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    EXPECT_NEAR(std::sqrt(square[k] - sum[k] * sum[k]) / promised[k], 1.0, 0.25)
        << parameter_names(curve.family)[k];
  }
}

INSTANTIATE_TEST_SUITE_P(FitTest, EveryFamilyTest,
                         testing::Combine(testing::ValuesIn(kExamples),
                                          testing::ValuesIn(solvers())),
                         [](const auto& parameter) {
                           return std::string(name(std::get<0>(parameter.param).family)) +
                                  (std::get<1>(parameter.param) == Solver::ceres ? "ByCeres"
                                                                                 : "InClosedForm");
                         });

TEST(FitTest, SaysThatPointsAreTooFew) {
  const std::vector<double> t{1, 2}, y{3, 2};
  const Fit fit = glidepath::fit({t, y}, {.family = Family::pow3});
  EXPECT_EQ(fit.status, FitStatus::too_few_points);
  EXPECT_TRUE(std::isnan(fit.curve.parameters[0]));
  EXPECT_EQ(glidepath::fit({}, {}).status, FitStatus::too_few_points);
}

TEST(FitTest, AsManyPointsAsParametersGiveTheCurveThroughThem) {
  const std::vector<double> t{1, 2, 4}, y{3, 2, 1.5};  // 1 + 2 / t
  const Fit fit = glidepath::fit({t, y}, {.family = Family::pow3});
  EXPECT_EQ(fit.status, FitStatus::converged);
  EXPECT_NEAR(fit.curve.parameters[0], 1.0, 1e-7);
  EXPECT_NEAR(fit.curve.parameters[1], 2.0, 1e-7);
  EXPECT_NEAR(fit.curve.parameters[2], 1.0, 1e-7);
  EXPECT_EQ(fit.sigma, 0.0);
  EXPECT_TRUE(std::isinf(fit.standard_error[0]));
}

TEST(FitTest, SaysThatAConstantIsFlat) {
  const std::vector<double> t{1, 2, 3, 4, 5, 6, 7}, y(7, 2.5);
  for (const Family family : kFamilies) {
    const Fit fit = glidepath::fit({t, y}, {.family = family});
    EXPECT_EQ(fit.status, FitStatus::flat);
    EXPECT_NEAR(evaluate(fit.curve, 5.0), 2.5, 1e-5) << name(family);
  }
  EXPECT_EQ(glidepath::fit({t, y}).status, FitStatus::flat);
}

TEST(FitTest, SaysThatALossIsNotFinite) {
  const std::vector<double> t{1, 2, 3, 4, 5, 6, 7};
  for (const double bad : {kNaN, std::numeric_limits<double>::infinity()}) {
    const std::vector<double> y{3, 2, bad, 1, 1, 1, 0.5};
    for (const Family family : kFamilies) {
      EXPECT_EQ(glidepath::fit({t, y}, {.family = family}).status, FitStatus::not_finite);
    }
    EXPECT_EQ(glidepath::fit({t, y}).status, FitStatus::not_finite);
  }
}

TEST(FitTest, RefusesABrokenTrace) {
  const std::vector<double> y{3, 2, 1};
  for (const auto& t :
       {std::vector<double>{1, 2}, std::vector<double>{1, 1, 2}, std::vector<double>{1, kNaN, 2}}) {
    EXPECT_THROW((void)glidepath::fit({t, y}), InputError);
  }
  const std::vector<double> step{1, 2, 3}, lr{0.1, 0.1};
  EXPECT_EQ(refusal([&] {
              (void)glidepath::fit({step, y, {}, lr});
            }),
            "trace: 3 steps but 2 learning rates");
  EXPECT_EQ(refusal([&] {
              (void)glidepath::fit({step, y}, {.starts = 0});
            }),
            "fit: starts is 0, expected at least 1");
}

TEST(FitTest, LeavesOutStepsThatAPowerCannotSee) {
  Trace trace = sample({Family::pow3, {1, 2, 0.5}}, counting(50));
  const Fit whole = fit(trace.view(), {.family = Family::pow3});
  trace.step.insert(trace.step.begin(), 0.0);
  trace.loss.insert(trace.loss.begin(), 11.0);
  const Fit fit = glidepath::fit(trace.view(), {.family = Family::pow3});
  EXPECT_EQ(fit.points, 50);
  EXPECT_EQ(fit.curve.parameters, whole.curve.parameters);
  EXPECT_EQ(glidepath::fit(trace.view(), {.family = Family::exp3}).points, 51);
}

TEST(FitTest, KeepsTheFloorAboveItsBound) {
  const Trace trace = sample({Family::pow3, {-1.0, 3.0, 0.2}}, counting(100), 0.01);
  EXPECT_LT(fit(trace.view(), {.family = Family::pow3}).curve.parameters[0], -0.5);
  for (const Solver solver : solvers()) {
    const Fit bounded =
        fit(trace.view(), {.family = Family::pow3, .lowest_floor = 0.0, .solver = solver});
    EXPECT_EQ(bounded.curve.parameters[0], 0.0);
    EXPECT_TRUE(bounded.at_bound[0]);
    EXPECT_EQ(bounded.standard_error[0], 0.0);
    const Fit pow2 = fit(trace.view(), {.family = Family::pow2, .solver = solver});
    EXPECT_NEAR(bounded.rss, pow2.rss, 1e-9 * pow2.rss);  // the same problem
    EXPECT_NEAR(bounded.curve.parameters[2], pow2.curve.parameters[1], 1e-6);
  }
}

TEST(FitTest, AFitIsUsableWhereItsParametersAreNumbers) {
  const auto status_of = [](std::vector<double> step, std::vector<double> loss) {
    const Fit fit = glidepath::fit({step, loss, {}}, {.family = Family::pow3});
    EXPECT_EQ(usable(fit.status), std::isfinite(fit.curve.parameters[0])) << name(fit.status);
    return fit.status;
  };
  EXPECT_EQ(status_of({1, 2, 3, 4}, {3, 2, 1.5, 1.3}), FitStatus::converged);
  EXPECT_EQ(status_of({1, 2, 3, 4}, {2, 2, 2, 2}), FitStatus::flat);
  EXPECT_EQ(status_of({1, 2}, {2, 1}), FitStatus::too_few_points);
  EXPECT_EQ(status_of({1, 2, 3, 4}, {2, kNaN, 2, 2}), FitStatus::not_finite);
  EXPECT_TRUE(usable(FitStatus::iteration_limit));
  EXPECT_FALSE(usable(FitStatus::poor));
}

TEST(FitTest, AFitThatMissesTheEndIsPoorUnlessTheStartIsLeftOut) {
  std::vector<double> step, loss;
  for (int i = 1; i <= 200; ++i) {
    step.push_back(i);
    loss.push_back(1.5 + 3 * std::pow(i, -0.4) + (i < 120 ? 2.0 : 0.0));
  }
  const TraceView trace{step, loss, {}};
  FitOptions options{.family = Family::pow3};
  EXPECT_EQ(fit(trace, options).status, FitStatus::poor);
  const RowsView row(loss.data(), 1, 200);
  EXPECT_EQ(fit_batch(step, row, options).status[0], FitStatus::poor);
  options.from_step = 120;
  const Fit kept = fit(trace, options);
  EXPECT_EQ(kept.status, FitStatus::converged);
  EXPECT_EQ(kept.points, 81);
  EXPECT_NEAR(kept.curve.parameters[2], 0.4, 1e-6);
  EXPECT_NEAR(fit_batch(step, row, options).parameters[2][0], 0.4, 1e-6);
  EXPECT_EQ(name(FitStatus::poor), "poor");
}

TEST(FitTest, ASteepStartDoesNotHideAMissAtTheEnd) {
  std::vector<double> step, loss;
  for (int i = 1; i <= 400; ++i) {
    step.push_back(i);
    loss.push_back(30 * std::exp(-i / 3.0) + 3 * std::pow(i, -0.3));
  }
  const Fit fit = glidepath::fit({step, loss, {}}, {.family = Family::exp3});
  double miss = 0;
  for (std::size_t i = 360; i < 400; ++i) miss += (loss[i] - evaluate(fit.curve, step[i])) / 40;
  EXPECT_LT(std::abs(miss), 0.02 * (loss.front() - loss.back()));  // little of the whole descent
  EXPECT_GT(std::abs(miss), 0.1 * (loss[40] - loss.back()));       // much of what came later
  EXPECT_EQ(fit.status, FitStatus::poor);
}

TEST(FitTest, ACurveThatNoStepShowsIsNoFit) {
  std::vector<double> step{1000.0, 1000.0000000000031, 1000.0000000000061, 1000.0000000000092};
  for (double& at : step) at = std::ldexp(at, -18);
  const std::vector<double> loss{-0.318656287716193, 1.2837337798455022, 0.6690922234665899,
                                 -1.2115190882756839};
  for (const Family family : kFamilies) {
    const Fit found = fit({step, loss}, {.family = family});
    EXPECT_TRUE(!usable(found.status) || std::isfinite(found.rss)) << name(family);
  }
}

TEST(FitTest, AFitThatRestsOnItsFastestRateLeavesWhatItSays) {
  // 28 steps of a run that went on from step 1 000 000 fall faster than any power may.
  std::vector<double> step{4.93,  6.32,  7.95,  9.28, 10.67, 13.66,
                           22.56, 24.86, 28.57, 30.7, 32.37, 32.71};
  for (double& at : step) at += 1e6;
  const std::vector<double> loss{3.056, 2.058, 1.637, 1.393, 1.23, 1.113,
                                 1.022, 0.95,  0.891, 0.842, 0.8,  0.763};
  for (const Family family : {Family::pow2, Family::pow3, Family::exp3}) {
    const Fit found = fit({step, loss}, {.family = family});
    double rss = 0;
    for (std::size_t i = 0; i < step.size(); ++i) {
      const double residual = loss[i] - evaluate(found.curve, step[i]);
      rss += residual * residual;
    }
    EXPECT_TRUE(found.at_bound[family == Family::pow2 ? 1 : 2]) << name(family);
    EXPECT_NEAR(found.rss, rss, 1e-6 * rss) << name(family);
  }
}

TEST(FitTest, NamesOfOptionsAreReadBackAndOthersRefusedInASentence) {
  for (const Robust robust : {Robust::none, Robust::huber, Robust::cauchy}) {
    EXPECT_EQ(robust_named(name(robust)), robust);
  }
  for (const Solver solver : {Solver::closed_form, Solver::ceres}) {
    EXPECT_EQ(solver_named(name(solver)), solver);
  }
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no InputError";
  };
  EXPECT_EQ(message([] { (void)robust_named("tukey"); }),
            "fit: robust is 'tukey', expected huber or cauchy");
  EXPECT_EQ(message([] { (void)solver_named("adam"); }),
            "fit: solver is 'adam', expected closed_form or ceres");
  EXPECT_EQ(message([] { (void)schedule_law_named("cosine"); }),
            "schedule law: kind is 'cosine', expected annealing or multi_power");
  const std::vector<double> step{1, 2, 3}, loss{3, 2, 1.5};
  const auto said = [&](const FitOptions& options) {
    return message([&] { (void)glidepath::fit({step, loss}, options); });
  };
  EXPECT_EQ(
      said({.family = static_cast<Family>(99)}),
      "fit: family is value 99, expected one of pow2, pow3, pow4, exp3, weibull4, mmf4, log2, "
      "powexp");
  EXPECT_EQ(said({.robust = static_cast<Robust>(9)}),
            "fit: robust is value 9, expected one of none, huber, cauchy");
  EXPECT_EQ(said({.solver = static_cast<Solver>(9)}),
            "fit: solver is value 9, expected one of closed_form, ceres");
  const auto kind = static_cast<ScheduleLawKind>(9);
  const std::string unknown =
      "schedule law: kind is value 9, expected one of annealing, multi_power";
  EXPECT_EQ(message([&] { (void)fit_schedule_law({}, kind); }), unknown);
  EXPECT_EQ(message([&] { (void)predict(ScheduleLaw{.kind = kind}, step, loss); }), unknown);
}

TEST(FitTest, WithoutCeresWhatNeedsItIsRefusedWhateverTheData) {
  if (GLIDEPATH_WITH_CERES == 1) GTEST_SKIP() << "this build has Ceres";
  const std::vector<double> step{1, 2, 3}, flat{1, 1, 1}, lr{3, 2, 1};
  const Trace run{.step = step, .loss = flat, .lr = lr};
  const std::string built = " needs Ceres, and this glidepath was built without it";
  EXPECT_EQ(refusal([&] {
              (void)fit({step, flat}, {.robust = Robust::huber});
            }),
            "fit: a robust loss" + built);
  EXPECT_EQ(refusal([&] {
              (void)fit({step, flat}, {.solver = Solver::ceres});
            }),
            "fit: the solver 'ceres'" + built);
  EXPECT_EQ(refusal([&] {
              (void)fit_schedule_law({&run, 1}, ScheduleLawKind::annealing);
            }),
            "schedule law: a fit" + built);
  for (const Family family : kFamilies) EXPECT_NO_THROW((void)fit({step, flat}, {family}));
}

TEST(FitTest, RobustLossesShrugOffSpikes) {
  NEEDS_CERES;
  const Curve truth{Family::pow3, {1.0, 3.0, 0.5}};
  Trace trace = sample(truth, counting(200), 0.01);
  for (std::size_t i = 20; i < 200; i += 15) trace.loss[i] += 5.0;
  const auto error = [&](Robust robust) {
    const Fit fit = glidepath::fit(trace.view(), {.family = Family::pow3, .robust = robust});
    EXPECT_EQ(fit.status, FitStatus::converged);
    return std::abs(evaluate(fit.curve, 1000.0) - evaluate(truth, 1000.0));
  };
  EXPECT_GT(error(Robust::none), 0.1);
  EXPECT_LT(error(Robust::huber), 0.02);
  EXPECT_LT(error(Robust::cauchy), 0.01);
  const Fit robust = fit(trace.view(), {.family = Family::pow3, .robust = Robust::cauchy});
  EXPECT_NEAR(robust.sigma, 0.01, 0.003);
}

TEST(FitTest, AWeightOfZeroIsAPointLeftOut) {
  const Trace trace = sample({Family::pow3, {1.0, 3.0, 0.5}}, counting(40), 0.01);
  std::vector<double> weight(40, 2.0), t, y;
  Trace spoiled = trace;
  for (std::size_t i = 0; i < 40; ++i) {
    if (i % 7 == 3) {
      weight[i] = 0;
      spoiled.loss[i] = 9;
    } else {
      t.push_back(trace.step[i]);
      y.push_back(trace.loss[i]);
    }
  }
  for (const Solver solver : solvers()) {
    const FitOptions options{.family = Family::pow3, .solver = solver};
    const Fit weighted = fit({spoiled.step, spoiled.loss, weight}, options);
    const Fit without = fit({t, y}, options);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(weighted.curve.parameters[k], without.curve.parameters[k], 1e-6);
    }
    EXPECT_NEAR(weighted.rss, 2.0 * without.rss, 1e-9);
  }
}

TEST(FitTest, ChoosesTheFamilyThatMadeTheCurveAndSaysWhatItTried) {
  for (const Curve& curve : kExamples) {
    const Trace trace = sample(curve, counting(200), 1e-4);
    const Fit fit = glidepath::fit(trace.view());
    ASSERT_EQ(fit.scores.size(), kFamilies.size());
    double own = 0;
    for (const FitScore& score : fit.scores) {
      EXPECT_GE(score.aicc, fit.aicc);
      if (score.family == curve.family) own = score.aicc;
    }
    EXPECT_LT(own, fit.aicc + 4.0) << name(curve.family) << " lost to " << name(fit.curve.family);
  }
}

TEST(FitTest, FewPointsLeaveFewFamilies) {
  const Trace trace = sample({Family::pow3, {1.0, 3.0, 0.5}}, {1, 2, 4, 8});
  EXPECT_EQ(parameter_names(fit(trace.view()).curve.family).size(), 2U);
  const Trace six = sample({Family::pow3, {1.0, 3.0, 0.5}}, {1, 2, 4, 8, 16, 32}, 1e-5);
  EXPECT_EQ(fit(six.view()).curve.family, Family::pow3);
}

TEST(FitTest, ABatchIsItsFitsWhateverTheThreads) {
  std::vector<Trace> traces;
  for (int i = 0; i < 40; ++i) {
    traces.push_back(sample({Family::pow3, {1.0, 3.0, 0.3 + 0.02 * i}}, counting(20 + i), 0.01, i));
  }
  traces[3].loss[5] = kNaN;
  traces[4].step.resize(2);
  traces[4].loss.resize(2);
  std::vector<TraceView> views;
  for (const Trace& trace : traces) views.push_back(trace.view());
  const FitOptions options{.family = Family::pow3};
  const auto one = fit_batch(views, options, {.threads = 1});
  const auto two = fit_batch(views, options, {.threads = 2});
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Fit alone = fit(views[i], options);
    EXPECT_EQ(one[i].status, alone.status);
    if (alone.status != FitStatus::converged) continue;
    EXPECT_EQ(one[i].curve.parameters, alone.curve.parameters);
    EXPECT_EQ(two[i].curve.parameters, alone.curve.parameters);
  }
  EXPECT_EQ(one[3].status, FitStatus::not_finite);
  EXPECT_EQ(one[4].status, FitStatus::too_few_points);
}

TEST(FitTest, WhatAThreadFittedBeforeDoesNotShow) {
  const auto t = counting(50), longer = counting(80);
  auto other = t;
  other[7] += 0.5;
  const std::vector<std::pair<Family, std::vector<double>>> turns{
      {Family::pow3, t},     {Family::pow3, t},      {Family::exp3, t}, {Family::pow3, other},
      {Family::exp3, other}, {Family::exp3, longer}, {Family::pow2, t}, {Family::exp3, t}};
  for (const Isa isa : {Isa::best, Isa::baseline}) {
    for (const auto& turn : turns) {
      const Family family = turn.first;
      const std::vector<double>& steps = turn.second;
      const Trace trace = sample({Family::pow3, {1.0, 3.0, 0.5}}, steps, 0.01);
      const TraceView view = trace.view();
      const FitOptions options{.family = family};
      const auto run = [&] {
        return fit_batch(std::span(&view, 1), options, {.threads = 1, .isa = isa})[0];
      };
      const Fit here = run();
      Fit fresh;
      std::thread([&] { fresh = run(); }).join();
      EXPECT_EQ(here.curve.parameters, fresh.curve.parameters) << name(family);
      EXPECT_EQ(here.rss, fresh.rss) << name(family);

      const auto together = [&] {
        const RowsView row(trace.loss.data(), 1, std::ssize(trace.loss));
        return fit_batch(steps, row, options, {.threads = 1, .isa = isa}).parameters;
      };
      decltype(together()) alone;
      std::thread([&] { alone = together(); }).join();
      EXPECT_EQ(together(), alone) << name(family);
    }
  }
}

TEST(LeastSquaresTest, RefusesWhatWouldEndTheProcess) {
  NEEDS_CERES;
  detail::LeastSquares problem{.residuals = 1, .lower = {1.0}, .upper = {0.0}};
  const std::vector<double> start{0.0}, two{0.0, 1.0};
  EXPECT_THROW((void)detail::minimise(problem, start), InputError);
  problem.upper = {2.0};
  EXPECT_THROW((void)detail::minimise(problem, two), InputError);
}

TEST(LeastSquaresTest, AResidualThatCannotBeComputedIsAStatus) {
  NEEDS_CERES;
  detail::LeastSquares problem{.residuals = 1, .lower = {-1.0}, .upper = {1.0}};
  problem.evaluate = [](const double*, int, int, double* r, double*) {
    *r = kNaN;
    return true;
  };
  const std::vector<double> start{0.5};
  testing::internal::CaptureStderr();
  EXPECT_EQ(detail::minimise(problem, start).status, detail::LeastSquaresStatus::failed);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// A plane whose residuals and slopes are multiplied by odd numbers, other ones after some
/// evaluations.
detail::LeastSquares odd_plane(double first, double later, double slope) {
  detail::LeastSquares problem{.residuals = 3, .lower = {-1, -1e300}, .upper = {1, 1e300}};
  const auto evaluations = std::make_shared<int>(0);
  problem.evaluate = [=](const double* p, int begin, int end, double* r, double* jacobian) {
    const double scale = ++*evaluations < 6 ? first : later;
    for (int i = begin; i < end; ++i) {
      r[i - begin] = scale * (p[0] + i * p[1] - 0.3);
      if (jacobian == nullptr) continue;
      jacobian[2 * (i - begin)] = slope;
      jacobian[2 * (i - begin) + 1] = slope * i;
    }
    return true;
  };
  return problem;
}

TEST(LeastSquaresTest, ASolveThatGoesWrongWritesNothing) {
  NEEDS_CERES;
  const std::vector<double> odd{0, 1, 1e154, 1e200, 1e300, 1.7e308, 5e-324, kNaN}, start{0.5, 1e-3};
  int failed = 0;
  testing::internal::CaptureStderr();
  for (const double first : odd) {
    for (const double later : odd) {
      for (const double slope : odd) {
        const detail::LeastSquares problem = odd_plane(first, later, slope);
        for (const detail::Rho rho : {detail::Rho::squares, detail::Rho::huber}) {
          const auto status = detail::minimise(problem, start, {.rho = rho}).status;
          failed += status == detail::LeastSquaresStatus::failed ? 1 : 0;
        }
      }
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(failed, 100);
}

}  // namespace
}  // namespace glidepath
