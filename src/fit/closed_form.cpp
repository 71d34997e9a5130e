// SPDX-License-Identifier: Apache-2.0
// Variable projection (Golub and Pereyra 1973): for given shapes the best floor c and scale a are
// those of a straight line, so the search is over the shapes alone, and Newton's second derivative
// is a handful of sums over the points.
//
//     RSS(z) = min over c, a of Σ w (y - c - a φ(z))²
//
// A scan over the whole range of shapes (doubling a rate squares the decay, so a node costs two
// multiplications a point) finds the valleys; Newton goes to the bottom of each. The sums are taken
// of residuals against the floor and scale of the pass before, not of y: nothing cancels, however
// good the fit.
#include "fit/closed_form.hpp"

#include <algorithm>

namespace glidepath::detail {

Data merge(const Data& all, std::span<const double> key, double fraction) {
  const Columns& from = all.points;
  const std::size_t n = from.n;
  double *x = scratch().column(kBinX, n), *x2 = scratch().column(kBinX2, n),
         *y = scratch().column(kBinY, n), *w = scratch().column(kBinW, n);
  Data merged = all;
  merged.start = nullptr;
  merged.points = {x, from.x2 != nullptr ? x2 : nullptr, y, w, 0};
  for (std::size_t first = 0, i = 0; first < n; first = i) {
    const double end = key[first] + fraction * (key[first] - key[0]);
    do ++i;
    while (i < n && key[i] <= end);
    double sum_w = 0, sum_x = 0, sum_x2 = 0, sum_y = 0;
    if (from.w == nullptr && from.x2 == nullptr) {
      for (std::size_t j = first; j < i; ++j) {
        sum_x += from.x[j];
        sum_y += from.y[j];
      }
      sum_w = static_cast<double>(i - first);
    } else {
      for (std::size_t j = first; j < i; ++j) {
        const double wj = from.w != nullptr ? from.w[j] : 1.0;
        sum_w += wj;
        sum_x += wj * from.x[j];
        sum_y += wj * from.y[j];
        if (from.x2 != nullptr) sum_x2 += wj * from.x2[j];
      }
      if (!(sum_w > 0)) continue;
    }
    const int bin = merged.points.n++;
    const double each = 1.0 / sum_w;
    x[bin] = i - first == 1 ? from.x[first] : sum_x * each;
    x2[bin] = sum_x2 * each;
    y[bin] = sum_y * each;
    w[bin] = sum_w;
  }
  return merged;
}

namespace {

constexpr int kSexticNodes = 7;  ///< nodes of it

/// The sextics through seven nodes of a scan: the coefficients of the slope, by powers of s - 1,
/// that a value at node i gives, s being the fourth root of the rate over that of node k.
constexpr auto kSlopes = [] {
  constexpr double kRoot = 1.1892071150027210667;  // of 2, the fourth
  std::array<std::array<std::array<double, kSexticNodes - 1>, kSexticNodes>, kSexticNodes> slopes{};
  for (int k = 0; k < kSexticNodes; ++k) {
    std::array<double, kSexticNodes> at{};
    for (int i = 0; i < kSexticNodes; ++i) {
      double s = 1.0;
      for (int j = k; j < i; ++j) s *= kRoot;
      for (int j = i; j < k; ++j) s /= kRoot;
      at[i] = s - 1.0;
    }
    for (int i = 0; i < kSexticNodes; ++i) {
      std::array<double, kSexticNodes> product{1.0};  // of (s - s_j) / (s_i - s_j)
      for (int j = 0; j < kSexticNodes; ++j) {
        if (j == i) continue;
        for (int power = kSexticNodes - 1; power >= 0; --power) {
          const double lower = power > 0 ? product[power - 1] : 0.0;
          product[power] = (lower - at[j] * product[power]) / (at[i] - at[j]);
        }
      }
      for (int power = 1; power < kSexticNodes; ++power)
        slopes[k][i][power - 1] = power * product[power];
    }
  }
  return slopes;
}();

/// First to third derivative of a sextic at a point.
struct Slope {
  double first, second, third;
};
Slope slope_at(const std::array<double, kSexticNodes - 1>& g, double at) {
  return {g[0] + at * (g[1] + at * (g[2] + at * (g[3] + at * (g[4] + at * g[5])))),
          g[1] + at * (2 * g[2] + at * (3 * g[3] + at * (4 * g[4] + at * 5 * g[5]))),
          2 * g[2] + at * (6 * g[3] + at * (12 * g[4] + at * 20 * g[5]))};
}
}  // namespace

Top top_of(const double* misfit, int nodes, int k) {
  if (k == 0 || k + 1 >= nodes) return {};
  const double* m = misfit + k;
  const double slope = 0.5 * (m[1] - m[-1]), bend = m[-1] - 2.0 * m[0] + m[1];
  if (!(bend > 0)) return {};
  // near the end of the parabola through three nodes, then a step of Halley's
  const double octaves = std::clamp(-slope / bend, -0.5, 0.5);
  const double start = octaves * (0.173 + 0.015 * octaves);
  double s = 1.0 + start, third = 0.0;
  if (nodes >= kSexticNodes) {
    const int from = std::clamp(k - kSexticNodes / 2, 0, nodes - kSexticNodes);
    std::array<double, kSexticNodes - 1> g{};
    for (int i = 0; i < kSexticNodes; ++i) {
      for (int power = 0; power < kSexticNodes - 1; ++power) {
        g[power] += kSlopes[k - from][i][power] * misfit[from + i];
      }
    }
    const auto [d1, d2, d3] = slope_at(g, start);
    const double step = -d1 * d2 / (d2 * d2 - 0.5 * d1 * d3);
    if (d2 > 0 && std::abs(step) < 0.1) {
      s += step;
      third = -(3.0 * d2 + (s + 3.0 * step) * d3) * s * s / (64.0 * m[0] * m[0]);
    }
  }
  s *= s;
  return {s * s, third};
}

namespace {

/// Held at its lowest value, or at 0 where the family has none.
enum class FloorIs : std::uint8_t { free, held };

/// y - held, or y - mean where the floor is free. Returns what was subtracted.
double fill_losses(const Kernels& simd, const Problem& problem, FloorIs floor, double held,
                   Data& data) {
  const int n = static_cast<int>(problem.step.size());
  double* y = scratch().column(kY, problem.step.size());
  const double unit = 1.0 / problem.spread;
  const double* w = problem.weight.empty() ? nullptr : problem.weight.data();
  data.points.n = n;
  data.points.y = y;
  data.points.w = w;
  data.weight = n;
  double sum = problem.above_last * unit;
  if (w != nullptr) {
    data.weight = sum = 0;
    for (int i = 0; i < n; ++i) {
      data.weight += w[i];
      sum += w[i] * (problem.loss[i] - problem.centre) * unit;
    }
  }
  const bool is_free = floor == FloorIs::free;
  if (is_free) data.inverse = 1.0 / data.weight;
  const double subtract = is_free ? sum * data.inverse : held;
  data.total = simd.rescale(problem.loss.data(), n, problem.centre, unit, subtract, y);
  if (w != nullptr) {
    data.total = 0;
    for (int i = 0; i < n; ++i) data.total += w[i] * y[i] * y[i];
  }
  return subtract;
}

Solution solve_line(const Problem& problem) {
  double w = 0, y1 = 0, f1 = 0;
  const std::size_t n = problem.step.size();
  const auto weight = [&](std::size_t i) {
    return problem.weight.empty() ? 1.0 : problem.weight[i];
  };
  const auto loss = [&](std::size_t i) {
    return (problem.loss[i] - problem.centre) / problem.spread;
  };
  const auto basis = [&](std::size_t i) {
    return -std::log(problem.step[i] / problem.range.first);
  };
  for (std::size_t i = 0; i < n; ++i) {
    w += weight(i);
    y1 += weight(i) * loss(i);
    f1 += weight(i) * basis(i);
  }
  const double y_mean = y1 / w, f_mean = f1 / w;
  double ff = 0, fy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double f = basis(i) - f_mean;
    ff += weight(i) * f * f;
    fy += weight(i) * f * (loss(i) - y_mean);
  }
  Solution solution;
  solution.amplitude = fy / ff;
  solution.floor = y_mean - solution.amplitude * f_mean;
  solution.status = FitStatus::converged;
  for (std::size_t i = 0; i < n; ++i) {
    const double r = loss(i) - y_mean - solution.amplitude * (basis(i) - f_mean);
    solution.rss += weight(i) * r * r;
  }
  solution.normal = {w, f1, f1, ff + f1 * f_mean};
  return solution;
}

/// The columns of a family in units that its kernel wants, and the key that merging goes by.
template <class Unit>
std::span<const double> fill_steps(const Kernels& simd, const Problem& problem, Data& data) {
  const std::span<const double> t = problem.step;
  const int n = static_cast<int>(t.size());
  double* x = scratch().column(kX, t.size());
  data.points.x = x;
  const double first = problem.range.first;
  switch (Unit::kFamily) {
    case Family::pow2:
    case Family::pow3:
    case Family::exp3: {
      const bool power = Unit::kFamily != Family::exp3;
      const double span = power ? problem.range.log_span() : problem.range.last - first;
      const auto axis = power ? Scratch::Axis::log_steps : Scratch::Axis::steps;
      const auto known = scratch().coordinate(simd, t, axis, first, 1.0 / span);
      data.points.x = known.x;
      data.start = known.start;
      return {known.x, t.size()};
    }
    case Family::pow4:
      simd.rescale(t.data(), n, first, 1.0, 0.0, x);
      return t;
    case Family::powexp: {
      double* x2 = scratch().column(kX2, t.size());
      simd.rescale(t.data(), n, first, 1.0, 0.0, x2);
      data.points.x2 = x2;
      [[fallthrough]];
    }
    default: {
      const bool sigmoid = Unit::kFamily == Family::weibull4 || Unit::kFamily == Family::mmf4;
      simd.logs(t.data(), n, 1.0 / (sigmoid ? problem.range.last : first), 1.0, x);
      return t;
    }
  }
}

template <class Unit>
Solution solve_with(const Kernels& simd, const Problem& problem, FloorIs floor) {
  Data data;
  const std::span<const double> key = fill_steps<Unit>(simd, problem, data);
  const bool at_lowest = floor == FloorIs::held && Unit::kHasFloor;
  const double subtracted =
      fill_losses(simd, problem, floor, at_lowest ? problem.lowest_floor : 0.0, data);
  Solution solution;
  if constexpr (Unit::kShapes == 1) {
    const double unit = Unit::kFamily == Family::exp3 ? problem.range.last - problem.range.first
                                                      : problem.range.log_span();
    const auto [lower, upper] = Unit::box(problem.range);
    solution = solve_decay(simd, data, key, {unit * lower, unit * upper});
    const double rate = std::clamp(solution.shapes.q[0] / unit, lower, upper);
    solution.shapes = {{rate, 0}, {{{rate, 0}, {0, 0}}}};
  } else {
    solution = solve_plane(Unit::kFamily, simd, data, key, problem.range);
  }
  solution.floor += subtracted;
  if (!Unit::kHasFloor) {  // no floor: its row and column go
    const auto full = solution.normal;
    solution.normal = {full[4], full[5], full[7], full[8]};
  }
  return solution;
}
}  // namespace

Solution solve_in_closed_form(const Problem& problem, Isa isa) {
  const Kernels& simd = kernels(isa);
  return with_family(problem.family, [&]<class Unit>(Unit) {
    if constexpr (Unit::kShapes == 0) {
      return solve_line(problem);
    } else {
      Solution solution =
          solve_with<Unit>(simd, problem, Unit::kHasFloor ? FloorIs::free : FloorIs::held);
      if (Unit::kHasFloor && solution.floor < problem.lowest_floor) {
        // below what the metric can be: the best curve of that floor
        solution = solve_with<Unit>(simd, problem, FloorIs::held);
        solution.floor_at_bound = true;
      }
      return solution;
    }
  });
}

}  // namespace glidepath::detail
