// SPDX-License-Identifier: Apache-2.0
// Newton's descent with Levenberg's damping for a family with two shapes, inside its box. Part of
// two_shapes.cpp.
#pragma once

#include <algorithm>

#include "fit/closed_form.hpp"

namespace glidepath::detail {

template <class Unit>
constexpr Plane plane_of() {
  switch (Unit::kFamily) {
    case Family::pow4:
      return Plane::pow4;
    case Family::weibull4:
      return Plane::weibull4;
    case Family::mmf4:
      return Plane::mmf4;
    default:
      return Plane::powexp;
  }
}

/// A symmetric matrix of the two coordinates.
struct Quadratic {
  double m00 = 0, m01 = 0, m11 = 0;
};

/// Where a descent stands or ended.
struct PlaneEnd {
  std::array<double, 2> z{};
  double a = 0, c = 0, rss = std::numeric_limits<double>::infinity(), mean = 0, centre = 0;
  PlaneSums sums{};
  bool converged = false;
  Quadratic normal{};  ///< of z, floor and scale eliminated

  /// The larger variance of the coordinates, by the normal matrix.
  [[nodiscard]] double variance(double freedom) const {
    const double determinant = normal.m00 * normal.m11 - normal.m01 * normal.m01;
    return rss / freedom * std::max(normal.m00, normal.m11) / std::max(determinant, 1e-300);
  }
};

inline std::array<double, 3> shapes_of(Plane family, const std::array<double, 2>& z, double span) {
  switch (family) {
    case Plane::pow4:
      return {std::exp(z[0]), std::exp(-z[1])};
    case Plane::powexp:
      return {std::exp(z[0]), std::exp(z[1])};
    default:
      return {z[0], std::exp(z[1]), -span};
  }
}

/// Where to search.
template <class Unit>
struct Box {
  explicit Box(const StepRange& steps) : range(steps) {}

  const StepRange& range;
  std::array<Axis, 2> axis = Unit::axes(range);
  double span = range.log_span();
};

inline constexpr double kLongestStep = 2.0;  ///< of a coordinate
/// Steps that end a descent: always; where the shapes are well known; and on merged points, whose
/// valley is not quite that of all.
inline constexpr double kFinePlaneStep = 1e-5, kKnownPlaneStep = 5e-5, kRoughPlaneStep = 0.03;

/// RSS / 2 about the best point so far, as a function of z with floor and scale at their best.
struct Valleyside {
  std::array<double, 2> gradient{};
  std::array<double, 2> slope_a{}, slope_mean{};  ///< of the best scale and of the mean of φ
  Quadratic newton, gauss;  ///< its second derivative, and the part of it that is never negative
  bool trusted = false;     ///< newton: its residuals are those of the best a and c, or nearly
  double blur = 0;          ///< what they may be wrong by in newton
};

/// A step from the best point.
struct PlaneStep {
  std::array<double, 2> by{};
  std::array<bool, 2> held{};  ///< by a side of the box that the slope pushes against
  bool on_edge = false;        ///< it goes along the edge of the cut-off corner
  bool newtonian = false;
  double edge_slope = 0;  ///< of the edge, z_0 = edge(z_1)
  Quadratic model;        ///< whose lowest point is wanted; of a step on the edge, nothing
  double promised = 0;    ///< what the gradient says that it gains, twice

  [[nodiscard]] bool bounded() const { return on_edge || held[0] || held[1]; }
  [[nodiscard]] double longest() const { return std::max(std::abs(by[0]), std::abs(by[1])); }
};

template <class Unit>
class Descent {
 public:
  Descent(const Kernels& simd, const Data& data, const Box<Unit>& where, double enough)
      : simd_(simd),
        data_(data),
        range_(where.range),
        box_(where.axis),
        span_(where.span),
        enough_(enough),
        memory_(
            scratch().column(kBends, static_cast<std::size_t>(data.points.n + 8) * kBendParts)) {}

  /// Until a step is smaller than `enough`.
  PlaneEnd from(std::array<double, 2> z, const ScanNode& start) {
    FitLine line(start);
    int repeats = 0;
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      check_interrupt_of_pass(data_.points);
      const std::array<double, 3> q = shapes_of(kFamily, z, span_);
      const double centre = line.centre;
      const PlaneSums sums =
          simd_.plane(kFamily, data_.points, q.data(), centre, line.c, line.a, memory_);
      const Refined found = refine(sums, line, data_.inverse);
      if (found.lost && found.ff > 0 && repeats < kMaxRepeats) {
        ++repeats;
        line = found.line;
        continue;
      }
      repeats = 0;
      const bool better =
          found.ff > 0 && std::isfinite(found.rss) && !(found.rss > best_.rss * (1 + 1e-13));
      if (better) {
        move_to(z, sums, found, centre);
      } else if (pass == 0) {
        return best_;
      } else if (!damp()) {
        return converged();  // no smaller step goes down either
      }

      PlaneStep step = blocked();
      if (step.held[0] && step.held[1]) return converged();
      if (step.on_edge) {
        step_on_edge(step);
      } else {
        step_inside(step);
      }
      if (!std::isfinite(step.longest())) return best_;
      shorten(step);
      turn_downhill(step);
      falls_ = better && step.by[1] < -0.7 ? falls_ + 1 : (better ? 0 : falls_);
      z = landing(step);
      if (arrived(step, z)) return converged();
      if (falls_ >= 3 && !leapt_ && kFamily == Plane::powexp) {  // the second decay wants to vanish
        z[1] = box_[1].lower;
        leapt_ = true;
      }
      line = next_line(step);
    }
    return best_;
  }

 private:
  static constexpr Plane kFamily = plane_of<Unit>();

  PlaneEnd converged() {
    best_.converged = true;
    return best_;
  }

  /// Makes z the best point, with what its sums tell of the slopes there.
  void move_to(const std::array<double, 2>& z, const PlaneSums& s, const Refined& found,
               double centre) {
    const double inverse = data_.inverse, ff = found.ff, da = found.da, a = found.line.a;
    best_ = {z, a, found.line.c, std::max(found.rss, 0.0), found.line.centre, centre, s, false, {}};
    const double d[2] = {s.d0, s.d1}, g[2] = {s.g0, s.g1}, r[2] = {s.r0, s.r1};
    double cross[2];
    for (int i = 0; i < 2; ++i) {
      cross[i] = g[i] - s.g * d[i] * inverse;
      const double fr = r[i] - s.r * d[i] * inverse - da * cross[i];  // Σ φ_i r
      at_.slope_a[i] = (fr - a * cross[i]) / ff;
      at_.slope_mean[i] = d[i] * inverse;
      at_.gradient[i] = -a * fr;
    }
    const double a2 = a * a;
    const double d00 = s.d00 - s.d0 * s.d0 * inverse, d01 = s.d01 - s.d0 * s.d1 * inverse,
                 d11 = s.d11 - s.d1 * s.d1 * inverse;
    at_.trusted = found.correction <= 0.01 * found.rss;
    at_.blur = std::abs(a) * std::sqrt(std::max(0.0, found.correction) * std::max(d00, d11));
    at_.newton = {a2 * d00 - a * s.r00 - ff * at_.slope_a[0] * at_.slope_a[0],
                  a2 * d01 - a * s.r01 - ff * at_.slope_a[0] * at_.slope_a[1],
                  a2 * d11 - a * s.r11 - ff * at_.slope_a[1] * at_.slope_a[1]};
    at_.gauss = {a2 * (d00 - cross[0] * cross[0] / ff), a2 * (d01 - cross[0] * cross[1] / ff),
                 a2 * (d11 - cross[1] * cross[1] / ff)};
    best_.normal = at_.gauss;
    lambda_ = lambda_ > 1e-6 ? 0.1 * lambda_ : 0.0;
    lean_ = 2.0;
  }

  /// Leans on the damping after a step that did not go down; false when that is at its end.
  bool damp() {
    lambda_ = std::max(1e-3, lean_ * lambda_);
    lean_ *= 2.0;
    return !(lambda_ > 1e12);
  }

  /// What is in the way at the best point: the cut-off corner and the sides of the box.
  PlaneStep blocked() const {
    PlaneStep step;
    if constexpr (Cornered<Unit>) {
      step.edge_slope = std::exp(best_.z[1]) * span_;
      step.on_edge =
          best_.z[0] >= Unit::largest_z0(best_.z[1], range_) - 1e-9 && at_.gradient[0] < 0;
    }
    for (int i = 0; i < 2; ++i) {
      step.held[i] = (best_.z[i] <= box_[i].lower && at_.gradient[i] >= 0) ||
                     (best_.z[i] >= box_[i].upper && at_.gradient[i] <= 0);
    }
    return step;
  }

  /// Valleys of a sigmoid, along which v stays what it is at one step, are straight in (z_0,
  /// shape): its second coordinate steps by shares of the shape.
  double bend() const { return Cornered<Unit> ? at_.gradient[1] : 0.0; }

  void step_on_edge(PlaneStep& step) const {
    const double edge_slope = step.edge_slope;
    const double along = at_.gradient[0] * edge_slope + at_.gradient[1];
    const auto curve = [&](const Quadratic& c) {
      return edge_slope * (edge_slope * c.m00 + 2.0 * c.m01) + c.m11;
    };
    const double gauss = curve(at_.gauss) * (1.0 + lambda_);
    const double newton = curve(at_.newton) + edge_slope * at_.gradient[0] + lambda_ * gauss;
    step.newtonian = at_.trusted && newton > 0;
    step.by[1] = -along / (step.newtonian ? newton : gauss);
    step.by[0] = edge_slope * step.by[1];
  }

  /// To the lowest point of the model, damped: false where it has none.
  bool solve(double damping, PlaneStep& step) const {
    Quadratic& m = step.model;
    const std::array<double, 2>& gradient = at_.gradient;
    m.m00 += damping * std::max(at_.gauss.m00, 1e-30);
    m.m11 += damping * std::max(at_.gauss.m11, 1e-30);
    if (step.held[0]) {
      step.by = {0.0, -gradient[1] / m.m11};
      return m.m11 > 0;
    }
    if (step.held[1]) {
      step.by = {-gradient[0] / m.m00, 0.0};
      return m.m00 > 0;
    }
    const double determinant = m.m00 * m.m11 - m.m01 * m.m01;
    step.by = {(m.m01 * gradient[1] - m.m11 * gradient[0]) / determinant,
               (m.m01 * gradient[0] - m.m00 * gradient[1]) / determinant};
    return m.m00 > 0 && m.m11 > 0 && determinant > 1e-13 * m.m00 * m.m11;
  }

  void step_inside(PlaneStep& step) const {
    for (int tries = 0; tries < 2; ++tries) {
      step.model = at_.newton;
      step.model.m11 -= bend();
      step.newtonian = at_.trusted && solve(lambda_, step);
      if (!step.newtonian) {
        step.model = at_.gauss;
        solve(std::max(lambda_, 1e-4), step);
      }
      // a step out of the box from its side is one along the side
      bool out = false;
      for (int i = 0; i < 2; ++i) {
        const bool leaves = !step.held[i] && ((best_.z[i] <= box_[i].lower && step.by[i] < 0) ||
                                              (best_.z[i] >= box_[i].upper && step.by[i] > 0));
        step.held[i] = step.held[i] || leaves;
        out = out || leaves;
      }
      if (!out || (step.held[0] && step.held[1])) return;
    }
  }

  /// One coordinate goes as far as it may, and the other to its best place there.
  void shorten(PlaneStep& step) const {
    const double longest = step.longest();
    if (!(longest > kLongestStep)) return;
    const int far = std::abs(step.by[0]) == longest ? 0 : 1, near = 1 - far;
    const double m = near == 0 ? step.model.m00 : step.model.m11;
    step.by[near] *= kLongestStep / longest;
    step.by[far] = std::copysign(kLongestStep, step.by[far]);
    if (!step.on_edge && !step.held[near] && m > 0) {
      step.by[near] = std::clamp(-(at_.gradient[near] + step.model.m01 * step.by[far]) / m,
                                 -kLongestStep, kLongestStep);
    }
  }

  double promised(const PlaneStep& step) const {
    return -(at_.gradient[0] * step.by[0] + at_.gradient[1] * step.by[1]);
  }

  /// A step that would go up goes straight down instead.
  void turn_downhill(PlaneStep& step) const {
    step.promised = promised(step);
    if (step.promised > 0 || step.on_edge) return;
    const double b[2] = {at_.gauss.m00, at_.gauss.m11};
    for (int i = 0; i < 2; ++i) {
      step.by[i] = step.held[i]
                       ? 0.0
                       : std::clamp(-at_.gradient[i] / std::max((1.0 + lambda_) * b[i], 1e-300),
                                    -kLongestStep, kLongestStep);
    }
    step.promised = promised(step);
  }

  /// Where the step leads inside the box; makes it what is left of it.
  std::array<double, 2> landing(PlaneStep& step) const {
    if (Cornered<Unit> && !step.on_edge) step.by[1] = std::log1p(std::max(step.by[1], -0.8));
    std::array<double, 2> z{};
    for (int i = 0; i < 2; ++i) {
      z[i] = std::clamp(best_.z[i] + step.by[i], box_[i].lower, box_[i].upper);
    }
    if constexpr (Cornered<Unit>) {
      const double edge = Unit::largest_z0(z[1], range_);
      if (step.on_edge || z[0] > edge) z[0] = std::clamp(edge, box_[0].lower, box_[0].upper);
    }
    for (int i = 0; i < 2; ++i) step.by[i] = z[i] - best_.z[i];
    return z;
  }

  /// Whether the step to z is the last, and then takes it: to first order in a, c and second in
  /// RSS.
  bool arrived(const PlaneStep& step, const std::array<double, 2>& z) {
    const double moved = step.longest();
    const Quadratic& h = at_.newton;
    const bool sound = step.newtonian && lambda_ == 0 &&
                       (step.bounded() || at_.blur * (h.m00 + h.m11) <
                                              0.1 * (h.m00 * (h.m11 - bend()) - h.m01 * h.m01));
    if (!(moved < (sound ? enough_ : 1e-5 * enough_) || step.promised < 1e-14 * best_.rss)) {
      return false;
    }
    const std::array<double, 2>&by = step.by, &gradient = at_.gradient;
    const double y_mean = best_.c + best_.a * best_.mean;
    const double change = by[0] * (2 * gradient[0] + h.m00 * by[0] + 2 * h.m01 * by[1]) +
                          by[1] * (2 * gradient[1] + h.m11 * by[1]);
    // A Newton step gains what the gradient promises; more is due to curvatures that rounding
    // made up where a curve is all but exact.
    if (moved < std::max(enough_, 1e-4) && change <= 0 && change >= -2.0 * step.promised) {
      best_.z = z;
      best_.a += at_.slope_a[0] * by[0] + at_.slope_a[1] * by[1];
      best_.mean += at_.slope_mean[0] * by[0] + at_.slope_mean[1] * by[1];
      if (data_.inverse > 0) best_.c = y_mean - best_.a * best_.mean;
      best_.rss = std::max(0.0, best_.rss + change);
    }
    return true;
  }

  /// The line that the next pass takes residuals against.
  FitLine next_line(const PlaneStep& step) const {
    FitLine line;
    line.a = best_.a;
    line.c = best_.c;
    line.centre = data_.inverse > 0 ? best_.mean : 0.0;
    if (step.longest() < 0.1) {
      const double y_mean = best_.c + best_.a * best_.mean;
      line.a += at_.slope_a[0] * step.by[0] + at_.slope_a[1] * step.by[1];
      line.centre += at_.slope_mean[0] * step.by[0] + at_.slope_mean[1] * step.by[1];
      if (data_.inverse > 0) line.c = y_mean - line.a * line.centre;
    }
    return line;
  }

  const Kernels& simd_;
  const Data& data_;
  const StepRange& range_;
  const std::array<Axis, 2>& box_;
  const double span_, enough_;
  double* memory_;
  PlaneEnd best_;
  Valleyside at_;
  double lambda_ = 0, lean_ = 2.0;  ///< the damping, and what a failure multiplies it by
  int falls_ = 0;                   ///< steps in a row that lower the second coordinate much
  bool leapt_ = false;
};

template <class Unit>
PlaneEnd descend(const Kernels& simd, const Data& data, const std::array<double, 2>& z,
                 const ScanNode& start, const Box<Unit>& where, double enough = kFinePlaneStep) {
  return Descent<Unit>(simd, data, where, enough).from(z, start);
}

}  // namespace glidepath::detail
