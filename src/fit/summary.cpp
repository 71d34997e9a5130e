// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/numbers.hpp"
#include "fit/end_of_curve.hpp"
#include "fit/problem.hpp"

namespace glidepath::detail {
namespace {

/// Inverse of the n x n symmetric `a` by its factors L D Lᵀ. False where a pivot has lost all its
/// digits: the columns cannot be told apart.
template <int n>
bool invert(std::array<double, 16>& a) {
  double l[n][n] = {}, inverse[n];  // of L, below its diagonal of ones, and of D
  for (int i = 0; i < n; ++i) {
    double row[n];  // of L D
    double pivot = a[i * n + i];
    for (int j = 0; j < i; ++j) {
      row[j] = a[i * n + j];
      for (int k = 0; k < j; ++k) row[j] -= row[k] * l[j][k];
    }
    for (int j = 0; j < i; ++j) {
      l[i][j] = row[j] * inverse[j];
      pivot -= row[j] * l[i][j];
    }
    if (!(pivot > 1e-14 * a[i * n + i])) return false;
    inverse[i] = 1.0 / pivot;
  }
  for (int i = 1; i < n; ++i) {  // l becomes its inverse
    for (int j = 0; j < i; ++j) {
      double sum = -l[i][j];
      for (int k = j + 1; k < i; ++k) sum -= l[i][k] * l[k][j];
      l[i][j] = sum;
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = inverse[i] * (i == j ? 1.0 : l[i][j]);
      for (int k = i + 1; k < n; ++k) sum += l[k][i] * l[k][j] * inverse[k];
      a[i * n + j] = a[j * n + i] = sum;
    }
  }
  return true;
}

/// (floor', A, z) -> (floor, scale, q), and its derivative.
template <class Unit>
class Units {
 public:
  static constexpr int kFirst = kFirstShape<Unit>, kCount = kParameterCount<Unit>;
  using Row = std::array<double, kCount>;

  Units(const Problem& problem, const Solution& solution)
      : spread_(problem.spread), shapes_(solution.shapes) {
    if constexpr (Unit::kShapes == 0) {  // A (-log t + log t_1)
      log_first_ = std::log(problem.range.first);
    } else {
      lift_ = std::exp(-Unit::exponent(shapes_.q.data(), problem.range.first));
      Unit::gradient(shapes_.q.data(), problem.range.first, at_first_.data());
    }
    const double amplitude = spread_ * solution.amplitude;
    parameters[kFirst - 1] = amplitude * lift_;
    if (Unit::kHasFloor) {
      parameters[0] = problem.centre + spread_ * solution.floor + amplitude * log_first_;
    }
    for (int i = 0; i < Unit::kShapes; ++i) parameters[kFirst + i] = shapes_.q[i];
  }

  /// What a small change of (floor', A, z) makes of (floor, scale, q).
  [[nodiscard]] Row carried(const Row& change) const {
    Row to{};
    to[kFirst - 1] = spread_ * lift_ * change[kFirst - 1];
    for (int i = 0; i < Unit::kShapes; ++i) {
      for (int j = 0; j < Unit::kShapes; ++j) {
        to[kFirst + i] += shapes_.dq[i][j] * change[kFirst + j];
      }
      to[kFirst - 1] -= parameters[kFirst - 1] * at_first_[i] * to[kFirst + i];
    }
    if (Unit::kHasFloor) to[0] = spread_ * (change[0] + log_first_ * change[kFirst - 1]);
    return to;
  }

  std::array<double, kMaxParameters> parameters{};

 private:
  double spread_;
  const Shapes& shapes_;
  double lift_ = 1.0, log_first_ = 0.0;
  std::array<double, 2> at_first_{};
};

/// Covariance and standard errors, `sigma` in units of the problem.
template <class Unit>
void fill_errors(const Units<Unit>& units, const Solution& solution, double sigma, int freedom,
                 Fit& fit) {
  constexpr int kCount = Units<Unit>::kCount;
  using Row = typename Units<Unit>::Row;
  std::array<double, 16> inverse = solution.normal;
  for (int j = 0; j < kCount; ++j) {
    if (!fit.at_bound[j]) continue;  // known there: out of the matrix
    for (int k = 0; k < kCount; ++k) inverse[j * kCount + k] = inverse[k * kCount + j] = 0.0;
    inverse[j * kCount + j] = 1.0;
  }
  if (!(freedom > 0 && invert<kCount>(inverse))) {
    for (int i = 0; i < kCount; ++i) {
      const double unknown = fit.at_bound[i] ? 0.0 : kInfinity;
      fit.standard_error[i] = fit.covariance[i * kMaxParameters + i] = unknown;
    }
    return;
  }
  for (int j = 0; j < kCount; ++j) {
    if (fit.at_bound[j]) inverse[j * kCount + j] = 0.0;
  }
  std::array<Row, kCount> half;  // of the covariance in terms of (floor', A, z), by columns
  for (int k = 0; k < kCount; ++k) {
    Row column;
    for (int j = 0; j < kCount; ++j) column[j] = inverse[k * kCount + j];
    half[k] = units.carried(column);
  }
  for (int i = 0; i < kCount; ++i) {
    Row row;
    for (int k = 0; k < kCount; ++k) row[k] = half[k][i];
    row = units.carried(row);
    for (int k = 0; k <= i; ++k) {
      double value = sigma * sigma * row[k];
      if (!std::isfinite(value)) value = kInfinity;
      fit.covariance[i * kMaxParameters + k] = fit.covariance[k * kMaxParameters + i] = value;
    }
    fit.standard_error[i] = std::sqrt(std::max(0.0, fit.covariance[i * kMaxParameters + i]));
  }
}

/// AICc and BIC of `parameters` and the noise level, which is one too.
void fill_criteria(const Problem& problem, const Solution& solution, int parameters, Fit& fit) {
  const auto n = static_cast<int>(problem.step.size());
  // A perfect fit leaves rounding, not 0, to take the logarithm of.
  const double largest = std::max(std::abs(problem.centre) / problem.spread, 1.0);
  const double rounding = largest * std::numeric_limits<double>::epsilon();
  const double deviation = problem.spread * std::max(std::sqrt(solution.rss / n), rounding);
  const double log_likelihood = 2.0 * std::log(deviation);
  const int k = parameters + 1;
  fit.bic = n * log_likelihood + k * std::log(n);
  if (n > k + 1) {
    fit.aicc = n * log_likelihood + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0);
  }
}

template <class Unit>
Fit summarise_as(const Problem& problem, const Solution& solution) {
  constexpr int kFirst = kFirstShape<Unit>, kCount = kParameterCount<Unit>;
  const int n = static_cast<int>(problem.step.size());
  const Units<Unit> units(problem, solution);
  Fit fit;
  fit.curve = {Unit::kFamily, units.parameters};
  if (Unit::kHasFloor) fit.at_bound[0] = solution.floor_at_bound;
  for (int j = 0; j < Unit::kShapes; ++j) fit.at_bound[kFirst + j] = solution.shape_at_bound[j];

  fit.status = solution.status;
  fit.points = n;
  fit.last_step = problem.step.back();
  fit.rss = solution.rss * problem.spread * problem.spread;
  const int freedom = n - kCount;
  const double sigma = solution.robust_sigma > 0.0 ? solution.robust_sigma
                       : freedom > 0               ? std::sqrt(solution.rss / freedom)
                                                   : 0.0;
  fit.sigma = sigma * problem.spread;
  fill_errors<Unit>(units, solution, sigma, freedom, fit);
  fill_criteria(problem, solution, kCount, fit);
  if (fit.status == FitStatus::converged &&
      EndOfCurve(Unit::kFamily, problem.step)
          .misses(fit.curve, problem.loss, problem.weight,
                  solution.robust_sigma > 0.0 ? Middle::median : Middle::mean)) {
    fit.status = FitStatus::poor;
  }
  return fit;
}

}  // namespace

Fit summarise(const Problem& problem, const Solution& solution) {
  return with_family(problem.family,
                     [&]<class Unit>(Unit) { return summarise_as<Unit>(problem, solution); });
}

}  // namespace glidepath::detail
