// SPDX-License-Identifier: Apache-2.0
// The reference solver: all parameters free, Ceres from several starts.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/least_squares.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "fit/problem.hpp"

namespace glidepath::detail {
namespace {

constexpr int kStarts = 4;  // where FitOptions::starts is empty

/// ψ(t_i) and its derivatives in z, for one z.
template <class Unit>
class ShapeModel {
 public:
  ShapeModel(const Problem& problem, const double* z) : problem_(problem) {
    shapes_ = Unit::shapes(z, problem.range);
    if constexpr (Unit::kShapes > 0) {
      at_first_ = Unit::exponent(shapes_.q.data(), problem.range.first);
      Unit::gradient(shapes_.q.data(), problem.range.first, gradient_at_first_.data());
    }
  }
  [[nodiscard]] double value(double t) const {
    if constexpr (Unit::kShapes == 0)
      return -std::log(t / problem_.range.first);
    else
      return std::exp(Unit::exponent(shapes_.q.data(), t) - at_first_);
  }
  /// d log ψ / dz
  [[nodiscard]] std::array<double, 2> log_derivative(double t) const {
    std::array<double, 2> dz{};
    if constexpr (Unit::kShapes > 0) {
      std::array<double, 2> dq{};
      Unit::gradient(shapes_.q.data(), t, dq.data());
      for (int j = 0; j < Unit::kShapes; ++j) {
        for (int i = 0; i < Unit::kShapes; ++i) {
          dz[j] += (dq[i] - gradient_at_first_[i]) * shapes_.dq[i][j];
        }
      }
    }
    return dz;
  }

 private:
  const Problem& problem_;
  Shapes shapes_;
  double at_first_ = 0;
  std::array<double, 2> gradient_at_first_{};
};

/// The points in units of the problem.
struct Points {
  std::vector<double> loss, root_weight;

  explicit Points(const Problem& problem) : root_weight(problem.step.size(), 1.0) {
    for (const double y : problem.loss) loss.push_back((y - problem.centre) / problem.spread);
    for (std::size_t i = 0; i < problem.weight.size(); ++i) {
      root_weight[i] = std::sqrt(problem.weight[i]);
    }
  }
};

struct Start {
  std::array<double, 2> z{};
  std::array<int, 2> node{};
  double floor = 0, amplitude = 0, rss = 0;
};

/// The best floor' and A for the shapes of a start, and what is left.
template <class Unit>
void eliminate(const Problem& problem, const Points& points, Start& start) {
  const ShapeModel<Unit> model(problem, start.z.data());
  const std::size_t n = problem.step.size();
  std::vector<double> psi(n);
  const auto weight = [&](std::size_t i) { return points.root_weight[i] * points.root_weight[i]; };
  double w = 0, y1 = 0, f1 = 0;
  for (std::size_t i = 0; i < n; ++i) {
    psi[i] = model.value(problem.step[i]);
    w += weight(i);
    y1 += weight(i) * points.loss[i];
    f1 += weight(i) * psi[i];
  }
  const auto slope = [&](double f_mean, double y_mean) {
    double ff = 0, fy = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double f = weight(i) * (psi[i] - f_mean);
      ff += f * (psi[i] - f_mean);
      fy += f * (points.loss[i] - y_mean);
    }
    return ff > 0 ? fy / ff : 0.0;
  };
  const double y_mean = Unit::kHasFloor ? y1 / w : 0.0, f_mean = Unit::kHasFloor ? f1 / w : 0.0;
  start.amplitude = slope(f_mean, y_mean);
  start.floor = y_mean - start.amplitude * f_mean;
  if (Unit::kHasFloor && Unit::kShapes > 0 && start.floor < problem.lowest_floor) {
    start.floor = problem.lowest_floor;
    start.amplitude = slope(0.0, start.floor);
  }
  start.rss = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double r =
        points.root_weight[i] * (start.floor + start.amplitude * psi[i] - points.loss[i]);
    start.rss += r * r;
  }
  if (!std::isfinite(start.rss)) start.rss = kInfinity;
}

/// The `count` best nodes of the family's grid, no two of them neighbours.
template <class Unit>
std::vector<Start> starts(const Problem& problem, const Points& points, int count) {
  const auto axes = Unit::axes(problem.range);
  std::vector<Start> grid(1);
  for (int axis = 0; axis < Unit::kShapes; ++axis) {
    std::vector<Start> finer;
    for (const Start& start : grid) {
      const Axis& a = axes[axis];
      for (int k = 0; k < a.nodes; ++k) {
        Start next = start;
        next.node[axis] = k;
        next.z[axis] = a.from + (a.to - a.from) * k / std::max(1, a.nodes - 1);
        finer.push_back(next);
      }
    }
    grid = std::move(finer);
  }
  std::erase_if(grid, [&](const Start& s) { return !feasible<Unit>(s.z.data(), problem.range); });
  for (Start& start : grid) eliminate<Unit>(problem, points, start);
  std::ranges::stable_sort(grid, {}, &Start::rss);
  std::vector<Start> best;
  for (const Start& start : grid) {
    if (static_cast<int>(best.size()) >= count) break;
    const bool crowded = std::ranges::any_of(best, [&](const Start& other) {
      return std::abs(start.node[0] - other.node[0]) <= 1 &&
             std::abs(start.node[1] - other.node[1]) <= 1;
    });
    if (!crowded) best.push_back(start);
  }
  return best;
}

/// Noise of the losses about the line through their neighbours, in the way of Rice (1984), by the
/// median, which neither spikes nor a steep start move.
double noise_of(const Points& points) {
  if (points.loss.size() < 3) return 0.0;
  std::vector<double> bend;
  for (std::size_t i = 1; i + 1 < points.loss.size(); ++i) {
    bend.push_back(std::abs(points.loss[i] - 0.5 * (points.loss[i - 1] + points.loss[i + 1])));
  }
  return kDeviationPerMad * upper_median(bend) / std::sqrt(1.5);
}

/// Residuals in (floor', A, z), with the bounds of the family.
template <class Unit>
LeastSquares squares_of(const Problem& problem, const Points& points) {
  constexpr int kFirst = kFirstShape<Unit>, kCount = kParameterCount<Unit>;
  const auto axes = Unit::axes(problem.range);
  LeastSquares squares;
  squares.residuals = static_cast<int>(problem.step.size());
  squares.lower.assign(kCount, -kInfinity);
  squares.upper.assign(kCount, kInfinity);
  if (Unit::kHasFloor && Unit::kShapes > 0) squares.lower[0] = problem.lowest_floor;
  for (int j = 0; j < Unit::kShapes; ++j) {
    squares.lower[kFirst + j] = axes[j].lower;
    squares.upper[kFirst + j] = axes[j].upper;
  }
  squares.evaluate = [&](const double* p, int begin, int end, double* r, double* jacobian) {
    if (!feasible<Unit>(p + kFirst, problem.range)) return false;
    const ShapeModel<Unit> model(problem, p + kFirst);
    const double floor = Unit::kHasFloor ? p[0] : 0.0, amplitude = p[kFirst - 1];
    for (int i = begin; i < end; ++i) {
      const double psi = model.value(problem.step[i]), root = points.root_weight[i];
      *r++ = root * (floor + amplitude * psi - points.loss[i]);
      if (jacobian == nullptr) continue;
      if (Unit::kHasFloor) *jacobian++ = root;
      *jacobian++ = root * psi;
      const auto derivative = model.log_derivative(problem.step[i]);
      for (int j = 0; j < Unit::kShapes; ++j) *jacobian++ = root * amplitude * psi * derivative[j];
    }
    return true;
  };
  return squares;
}

template <class Unit>
LeastSquaresSolution best_of_starts(const LeastSquares& squares, const std::vector<Start>& from,
                                    const LeastSquaresOptions& how = {}) {
  LeastSquaresSolution best;
  for (const Start& start : from) {
    std::vector<double> p;
    if (Unit::kHasFloor) p.push_back(start.floor);
    p.push_back(start.amplitude);
    p.insert(p.end(), start.z.begin(), start.z.begin() + Unit::kShapes);
    LeastSquaresSolution found = minimise(squares, p, how);
    if (best.parameters.empty() || found.cost < best.cost) best = std::move(found);
  }
  return best;
}

/// A robust fit with the scale of its own residuals, which is found again after each fit.
template <class Unit>
LeastSquaresSolution robust_of_starts(const LeastSquares& squares, const std::vector<Start>& from,
                                      const Points& points, const FitOptions& options,
                                      double& sigma) {
  // 95 % efficiency on Gaussian noise (Holland and Welsch 1977)
  const bool huber = options.robust == Robust::huber;
  const double tuning = huber ? 1.345 : 2.385;
  const double smallest = 1e-12;
  sigma = std::max(noise_of(points), smallest);
  std::vector<double> r(points.loss.size());
  LeastSquaresSolution best;
  for (int round = 0; round < 5; ++round) {
    best = best_of_starts<Unit>(squares, from, {huber ? Rho::huber : Rho::cauchy, tuning * sigma});
    squares.evaluate(best.parameters.data(), 0, squares.residuals, r.data(), nullptr);
    for (double& each : r) each = std::abs(each);
    const double found = std::max(kDeviationPerMad * upper_median(r), smallest);
    const bool settled = std::abs(found - sigma) <= 0.02 * sigma;
    sigma = found;
    if (settled) break;
  }
  return best;
}

template <class Unit>
Solution solve(const Problem& problem, const FitOptions& options) {
  constexpr int kFirst = kFirstShape<Unit>, kCount = kParameterCount<Unit>;
  const Points points(problem);
  const LeastSquares squares = squares_of<Unit>(problem, points);
  const std::vector<Start> from = starts<Unit>(problem, points, options.starts.value_or(kStarts));

  Solution solution;
  const LeastSquaresSolution best =
      options.robust == Robust::none
          ? best_of_starts<Unit>(squares, from)
          : robust_of_starts<Unit>(squares, from, points, options, solution.robust_sigma);
  const std::vector<double>& p = best.parameters;
  solution.floor = Unit::kHasFloor ? p[0] : 0.0;
  solution.amplitude = p[kFirst - 1];
  solution.floor_at_bound = Unit::kHasFloor && solution.floor <= squares.lower[0];
  const double* z = p.data() + kFirst;
  solution.shapes = Unit::shapes(z, problem.range);
  for (int j = 0; j < Unit::kShapes; ++j) {
    const double lower = squares.lower[kFirst + j], upper = squares.upper[kFirst + j];
    solution.shape_at_bound[j] = std::min(z[j] - lower, upper - z[j]) < 1e-6;
  }
  solution.rss = 2.0 * best.cost;
  solution.status = best.status == LeastSquaresStatus::converged ? FitStatus::converged
                                                                 : FitStatus::iteration_limit;
  const int n = squares.residuals;
  std::vector<double> r(n), jacobian(static_cast<std::size_t>(n) * kCount);
  squares.evaluate(p.data(), 0, n, r.data(), jacobian.data());
  for (int i = 0; i < n; ++i) {
    const double* row = &jacobian[static_cast<std::size_t>(i) * kCount];
    for (int j = 0; j < kCount; ++j) {
      for (int k = 0; k < kCount; ++k) solution.normal[j * kCount + k] += row[j] * row[k];
    }
  }
  return solution;
}

}  // namespace

Solution solve_by_ceres(const Problem& problem, const FitOptions& options) {
  return with_family(problem.family,
                     [&]<class Unit>(Unit) { return solve<Unit>(problem, options); });
}

}  // namespace glidepath::detail
