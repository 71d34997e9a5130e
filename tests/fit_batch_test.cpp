// SPDX-License-Identifier: Apache-2.0
// Batches of fits over shared steps.
#include "glidepath/eigen.hpp"
#include "glidepath/error.hpp"
#include "glidepath/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "fit/low_rank.hpp"
#include "fit_samples.hpp"
#include "refusal.hpp"

namespace glidepath {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(FitBatchTest, SharedStepsGiveColumnsAndABadRowItsStatus) {
  const auto t = counting(60);
  Rows losses(9, 60);
  for (int i = 0; i < 9; ++i) {
    const Trace trace = sample({Family::pow3, {1.0, 3.0, 0.3 + 0.1 * i}}, t, 0.01, i);
    for (int j = 0; j < 60; ++j) losses(i, j) = trace.loss[j];
  }
  losses(2, 7) = kNaN;
  std::ranges::fill(losses.row(5), 4.0);
  const FitBatch columns = fit_batch(t, losses, {.family = Family::pow3});
  for (int i = 0; i < 9; ++i) {
    const Fit one = fit({t, std::span(&losses(i, 0), 60)}, {.family = Family::pow3});
    EXPECT_EQ(columns.status[i], one.status);
    if (i == 2) continue;
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(columns.parameters[k][i], one.curve.parameters[k],
                  1e-8 * (1e-3 + std::abs(one.curve.parameters[k])));
    }
  }
  EXPECT_EQ(columns.status[5], FitStatus::flat);
  EXPECT_THROW((void)fit_batch(t, losses, {}), InputError);
  const RowsView fewer_than_none(nullptr, -1, std::ssize(t));
  EXPECT_EQ(refusal([&] { (void)fit_batch(t, fewer_than_none, {.family = Family::pow3}); }),
            "fit: rows is -1, expected 0 or more");
  const RowsView nowhere(nullptr, 2, std::ssize(t));
  EXPECT_EQ(refusal([&] { (void)fit_batch(t, nowhere, {.family = Family::pow3}); }),
            "fit: loss is null, expected 2 x " + std::to_string(t.size()) + " numbers");
}

TEST(FitBatchTest, ABrokenTraceIsRefusedByItsPlaceInTheBatch) {
  const auto t = counting(20);
  const Trace run = sample({Family::pow3, {1.0, 3.0, 0.5}}, t, 0.01, 0);
  Trace broken = run;
  broken.step[4] = 0;
  const std::vector<TraceView> traces{run.view(), run.view(), broken.view()};
  const std::string fault = "trace: step[4] is 0, expected above the 4 before it";
  EXPECT_EQ(refusal([&] { (void)fit_batch(traces); }), "fit_batch: trace 2: " + fault);
  EXPECT_EQ(refusal([&] { (void)fit_batch(std::span(traces).last(1)); }), fault);
}

TEST(EigenTest, MatricesMapsAndBlocksAreViewsOfTheirNumbers) {
  EigenRows matrix(3, 4);
  for (int i = 0; i < 12; ++i) matrix(i / 4, i % 4) = i;
  const EigenRows& constant = matrix;
  const auto expect_same = [](RowsView view, const auto& of) {
    ASSERT_EQ(view.rows(), of.rows());
    ASSERT_EQ(view.cols(), of.cols());
    for (int i = 0; i < of.rows(); ++i) {
      for (int j = 0; j < of.cols(); ++j) EXPECT_EQ(view(i, j), of(i, j)) << i << ' ' << j;
    }
  };
  expect_same(as_rows(matrix), matrix);
  expect_same(as_rows(constant), matrix);
  expect_same(as_rows(constant.middleRows(1, 2)), matrix.middleRows(1, 2));
  expect_same(as_rows(constant.middleCols(1, 2)), matrix.middleCols(1, 2));
  const std::vector<double> numbers{0, 1, 2, 3, 4, 5, 6, 7};
  const Eigen::Map<const EigenRows> map(numbers.data(), 2, 4);
  expect_same(as_rows(map), map);
  using Apart = Eigen::Map<const EigenRows, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
  const Apart whole(numbers.data(), 2, 3, {4, 1}), apart(numbers.data(), 2, 2, {4, 2});
  expect_same(as_rows(whole), whole);
  EXPECT_EQ(refusal([&] { (void)as_rows(apart); }), "as_rows: the inner stride is 2, expected 1");
  const MutableRowsView block = as_rows(matrix.middleRows(2, 1));
  block(0, 3) = 50;
  EXPECT_EQ(matrix(2, 3), 50);
  expect_same(as_eigen(block).data() == matrix.data() + 8 ? block : RowsView(nullptr, 0, 0),
              matrix.middleRows(2, 1));
}

/// Curves that a grid of steps can tell from others: decays well inside it, noise of 1 %.
Rows identified(Family family, std::span<const double> t, int m) {
  Rows losses(m, std::ssize(t));
  const detail::Rng rng{11};
  const bool power = family == Family::pow3;
  const double span = power ? std::log(t.back() / t.front()) : t.back() - t.front();
  const double origin = power ? std::log(t.front()) : t.front();
  for (int i = 0; i < m; ++i) {
    const double rate = (1.5 + 6.0 * rng.uniform(i, 0)) / span;
    const double size = (i % 3 == 0 ? -1 : 1) * std::pow(10.0, 2.0 * rng.uniform(i, 1) - 1.0);
    const Curve curve{family, {5.0 * rng.uniform(i, 2), size * std::exp(rate * origin), rate}};
    for (std::size_t j = 0; j < t.size(); ++j) {
      losses(i, static_cast<std::ptrdiff_t>(j)) =
          evaluate(curve, t[j]) + 0.01 * size * rng.normal(i, j);
    }
  }
  return losses;
}

std::vector<std::vector<double>> grids() {
  std::vector<double> late, squares, far;
  for (int j = 0; j < 130; ++j) {
    late.push_back(500.0 + 25.0 * j);
    squares.push_back(1.0 + j * j);
    far.push_back(1e10 * std::exp(0.05 * j));
  }
  return {counting(50), counting(1000), late, squares, far};
}

TEST(LowRankTest, RowsAgreeWithFitsOnAllTheirPoints) {
  for (const Family family : {Family::pow3, Family::exp3}) {
    for (const std::vector<double>& t : grids()) {
      const Rows losses = identified(family, t, 200);
      for (const double unit : {1.0, 1e-30, 1e30}) {
        const EigenRows scaled = as_eigen(losses) * unit;
        const FitBatch columns = fit_batch(t, as_rows(scaled), {.family = family});
        for (int i = 0; i < scaled.rows(); ++i) {
          const Fit one = fit({t, std::span(&scaled(i, 0), t.size())}, {.family = family});
          ASSERT_EQ(columns.status[i], one.status);
          for (int k = 0; k < 3; ++k) {
            const double size = std::max(std::abs(one.curve.parameters[k]), k == 0 ? unit : 0.0);
            ASSERT_NEAR(columns.parameters[k][i], one.curve.parameters[k], 1e-8 * size)
                << name(family) << " on " << t.size() << " steps from " << t[0] << ", row " << i;
          }
          ASSERT_NEAR(columns.sigma[i], one.sigma, 1e-7 * one.sigma);
        }
      }
    }
  }
}

TEST(LowRankTest, OrdinaryRowsTakeTheShortWayAndOthersDoNot) {
  for (const Family family : {Family::pow3, Family::exp3}) {
    for (const std::vector<double>& t : grids()) {
      const int n = static_cast<int>(t.size()), m = 200;
      Rows losses = identified(family, t, m);
      std::ranges::fill(losses.row(3), 2.0);
      losses(4, n / 2) = kNaN;
      losses(5, n - 1) = std::numeric_limits<double>::infinity();
      for (int j = 0; j < n; ++j) {
        losses(6, j) = j == 0 ? 5.0 : 1.0 + 1e-3 * detail::Rng{1}.normal(0, j);  // a spike
        losses(7, j) = 3.0 - t[j] / t.back();                                    // a line
        losses(8, j) = 1.0 + detail::Rng{2}.normal(0, j);                        // only noise
        losses(9, j) += 1e7;                                                     // a high floor
        losses(10, j) = 1.0 - losses(7, j) * losses(7, j);                       // bent upwards
      }
      const auto grid = detail::low_rank_grid(family, t, Isa::best);
      ASSERT_TRUE(grid);
      std::vector<double> floor(m), scale(m), rate(m), sigma(m);
      std::vector<std::uint8_t> stands(m);
      detail::low_rank_kernels(Isa::best).fit(
          *grid, losses.data(), n, m, -std::numeric_limits<double>::infinity(),
          {floor.data(), scale.data(), rate.data(), sigma.data(), stands.data()});
      for (int i = 3; i <= 10; ++i) EXPECT_EQ(stands[i], 0) << name(family) << " row " << i;
      EXPECT_GE(std::accumulate(stands.begin(), stands.end(), 0), (m - 8) * 95 / 100);
      const FitBatch columns = fit_batch(t, losses, {.family = family});
      for (int i = 3; i <= 10; ++i) {
        const Fit one = fit({t, std::span(&losses(i, 0), t.size())}, {.family = family});
        EXPECT_EQ(columns.status[i], one.status);
        if (one.status == FitStatus::not_finite) continue;
        for (int k = 0; k < 3; ++k) EXPECT_EQ(columns.parameters[k][i], one.curve.parameters[k]);
      }
    }
  }
}

TEST(LowRankTest, BytesDependOnTheRowAloneAndLittleOnTheInstructionSet) {
  const auto t = counting(90);
  for (const Family family : {Family::pow3, Family::exp3}) {
    const Rows losses = identified(family, t, 150);
    const FitBatch whole = fit_batch(t, losses, {.family = family}, {.threads = 1});
    const FitBatch shared = fit_batch(t, losses, {.family = family}, {.threads = 2});
    const FitBatch baseline =
        fit_batch(t, losses, {.family = family}, {.threads = 1, .isa = Isa::baseline});
    for (int k = 0; k < 3; ++k) EXPECT_EQ(whole.parameters[k], shared.parameters[k]);
    EXPECT_EQ(whole.sigma, shared.sigma);
    for (const int begin : {0, 1, 63, 64, 65, 149}) {
      const RowsView part = RowsView(losses).middle_rows(begin, 150 - begin);
      const FitBatch columns = fit_batch(t, part, {.family = family});
      for (int i = 0; i < part.rows(); ++i) {
        for (int k = 0; k < 3; ++k) {
          EXPECT_EQ(columns.parameters[k][i], whole.parameters[k][begin + i]);
          EXPECT_NEAR(baseline.parameters[k][i], whole.parameters[k][i],
                      1e-9 * (0.1 + std::abs(whole.parameters[k][i])));
        }
      }
    }
  }
}

TEST(LowRankTest, KeepsTheFloorAboveItsBound) {
  const auto t = counting(100);
  Rows losses(1, 100);
  for (int j = 0; j < 100; ++j) {
    losses(0, j) = -1.0 + 3.0 * std::pow(t[j], -0.5) + 0.01 * detail::Rng{1}.normal(0, j);
  }
  const FitOptions options{.family = Family::pow3, .lowest_floor = 0.0};
  EXPECT_LT(fit_batch(t, losses, {.family = Family::pow3}).parameters[0][0], -0.9);
  EXPECT_EQ(fit_batch(t, losses, options).parameters[0][0], 0.0);
}

}  // namespace
}  // namespace glidepath
