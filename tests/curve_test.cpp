// SPDX-License-Identifier: Apache-2.0
#include "glidepath/curve.hpp"

#include "glidepath/error.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fit_samples.hpp"
#include "refusal.hpp"

namespace glidepath {
namespace {

/// The formulas of curve.hpp in long double, written out once more.
long double truth(const Curve& curve, long double t) {
  const auto& p = curve.parameters;
  const long double a = p[0], b = p[1], c = p[2], d = p[3];
  switch (curve.family) {
    case Family::pow2:
      return a * std::pow(t, -b);
    case Family::pow3:
      return a + b * std::pow(t, -c);
    case Family::pow4:
      return a + b * std::pow(t + d, -c);
    case Family::exp3:
      return a + b * std::exp(-c * t);
    case Family::weibull4:
      return a + b * std::exp(-std::pow(c * t, d));
    case Family::mmf4:
      return a + b / (1 + std::pow(t / c, d));
    case Family::log2:
      return a - b * std::log(t);
    case Family::powexp:
      return a + b * std::pow(t, -c) * std::exp(-d * t);
  }
  return 0;
}

TEST(CurveTest, EvaluatesTheFormulaOfEveryFamily) {
  for (const Curve& curve : kExamples) {
    for (const double t : {0.5, 1.0, 7.0, 100.0, 12345.0}) {
      const auto expected = static_cast<double>(truth(curve, t));
      EXPECT_NEAR(evaluate(curve, t), expected, 1e-14 * std::abs(expected))
          << name(curve.family) << " at " << t;
    }
  }
}

TEST(CurveTest, NamesGoThereAndBack) {
  for (const Family family : kFamilies) EXPECT_EQ(family_named(name(family)), family);
  EXPECT_EQ(name(static_cast<Family>(77)), "?");
  EXPECT_THROW((void)family_named("pow5"), InputError);
  EXPECT_EQ(parameter_names(Family::mmf4)[2], "half");
}

TEST(CurveTest, ABatchIsEveryCurveAtEveryStep) {
  const std::vector<double> steps{1, 2, 3.5, 10, 1e3, 1e6};
  for (const Curve& curve : kExamples) {
    const std::size_t m = 137;  // three blocks, so that two threads share them
    std::array<std::vector<double>, kMaxParameters> columns;
    CurvesView view{.family = curve.family};
    for (std::size_t k = 0; k < parameter_names(curve.family).size(); ++k) {
      for (std::size_t i = 0; i < m; ++i) {
        columns[k].push_back(curve.parameters[k] * (1.0 + 0.01 * static_cast<double>(i)));
      }
      view.parameters[k] = columns[k];
    }
    Rows out(m, steps.size());
    evaluate_batch(view, steps, out, {.threads = 2});
    for (std::size_t i = 0; i < m; ++i) {
      Curve one{.family = curve.family};
      for (std::size_t k = 0; k < view.parameters.size(); ++k) {
        if (!columns[k].empty()) one.parameters[k] = columns[k][i];
      }
      for (std::size_t j = 0; j < steps.size(); ++j) {
        const auto expected = static_cast<double>(truth(one, steps[j]));
        EXPECT_NEAR(out(i, j), expected, 1e-12 * std::abs(expected)) << name(curve.family);
      }
    }
  }
}

TEST(CurveTest, EvenlySpacedStepsGiveTheSameValues) {
  std::vector<double> linear, logs;
  for (int j = 0; j < 1001; ++j) {
    linear.push_back(100.0 + 250.0 * j);
    logs.push_back(100.0 * std::exp(9.0 * j / 1000.0));
  }
  for (const auto& steps : {linear, logs}) {
    for (const Curve& curve : kExamples) {
      CurvesView view{.family = curve.family};
      for (std::size_t k = 0; k < parameter_names(curve.family).size(); ++k) {
        view.parameters[k] = {&curve.parameters[k], 1};
      }
      Rows out(1, steps.size()), baseline(1, steps.size());
      evaluate_batch(view, steps, out);
      evaluate_batch(view, steps, baseline, {.isa = Isa::baseline});
      for (std::size_t j = 0; j < steps.size(); ++j) {
        const auto expected = static_cast<double>(truth(curve, steps[j]));
        EXPECT_NEAR(out(0, j), expected, 1e-12 * std::abs(expected)) << name(curve.family);
        EXPECT_NEAR(baseline(0, j), expected, 1e-12 * std::abs(expected)) << name(curve.family);
      }
    }
  }
}

TEST(CurveTest, StepsAndParametersOutOfTheOrdinaryFollowTheFormula) {
  const std::vector<double> steps{0.0, 1e-3, 1.0, 1e12};
  const std::vector<double> floor{1.0, 1.0, std::nan("")}, scale{2.0, 2.0, 2.0},
      rate{0.5, 200.0, 0.5};
  Rows out(3, 4);
  evaluate_batch({Family::pow3, {floor, scale, rate}}, steps, out);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      const double one = evaluate({Family::pow3, {floor[i], scale[i], rate[i]}}, steps[j]);
      if (std::isnan(one)) {
        EXPECT_TRUE(std::isnan(out(i, j)));
      } else {
        EXPECT_EQ(out(i, j), one);
      }
    }
  }
}

TEST(CurveTest, RefusesColumnsThatDoNotMatch) {
  const std::vector<double> three{1, 2, 3}, two{1, 2};
  Rows out(3, 2);
  EXPECT_EQ(refusal([&] {
              evaluate_batch({Family::pow2, {three, two}}, two, out);
            }),
            "evaluate: rate has 2 values, expected 3 as scale has");
  EXPECT_EQ(refusal([&] {
              evaluate_batch({Family::pow2, {three, three}}, three, out);
            }),
            "evaluate: out is 3 x 2, expected 3 x 3");
  EXPECT_EQ(refusal([&] {
              evaluate_batch({Family::pow2, {three, three, three}}, two, out);
            }),
            "evaluate: column 3 has 3 values, expected none, as pow2 has 2 parameters");
  const MutableRowsView nowhere(nullptr, 3, 2), empty(nullptr, 0, 2);
  EXPECT_EQ(refusal([&] {
              evaluate_batch({Family::pow2, {three, three}}, two, nowhere);
            }),
            "evaluate: out is null, expected 3 x 2 numbers");
  EXPECT_EQ(refusal([&] { evaluate_batch({Family::pow2}, two, empty); }), "");
}

}  // namespace
}  // namespace glidepath
