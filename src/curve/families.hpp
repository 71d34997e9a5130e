// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

/// The families, one unit each. Every curve is
///
///     floor + scale φ(t; q),   φ = exp(e(t; q)),
///
/// so a unit gives the exponent e, its gradient in the shape parameters q, the steps t it can see,
/// and where to search for q: a box of coordinates z, a grid of starts in it, and q(z); a family
/// with `largest_z0` has a corner of the box cut off. To add a
/// family, name it in `Family` and add its unit here; Ceres, the starts, the choice and the
/// bindings follow.
/// (`log2` is linear in all it has: φ = -log t, no exponent, no shapes.)
namespace glidepath::detail {

/// The steps a fit sees: the first two positive ones and the last.
struct StepRange {
  double first = 1, second = 2, last = 3;

  [[nodiscard]] double log_span() const { return log_of_ratio(last); }
  [[nodiscard]] double log_gap() const { return log_of_ratio(second); }

 private:
  /// log(t / first), also where the ratio is beyond a double.
  [[nodiscard]] double log_of_ratio(double t) const {
    const double ratio = t / first;
    return std::isfinite(ratio) ? std::log(ratio) : std::log(t) - std::log(first);
  }
};

/// A coordinate's box, and `nodes` starts spread evenly over [from, to] inside it.
struct Axis {
  double lower = 0, upper = 0, from = 0, to = 0;
  int nodes = 1;
};

/// Shape parameters at coordinates z, with dq[i][j] = dq_i / dz_j.
struct Shapes {
  std::array<double, 2> q{};
  std::array<std::array<double, 2>, 2> dq{};
};

/// |e| at the first step stays below this, so that `scale` is a finite number; φ and scale are
/// taken from losses within 1e±30.
inline constexpr double kLargestExponent = 600.0;
/// A decay over the whole trace smaller than this cannot be told from a straight line: floor and
/// scale would cancel to more digits than a double has to spare.
inline constexpr double kSmallestDecay = 1e-7;
/// A decay between the first two points larger than this leaves nothing at the second.
inline constexpr double kLargestDecay = 40.0;

/// Box of a rate for φ = exp(-rate x), x rising over `span` by at least `gap` and `at_first` away
/// from 0 at the first step.
struct RateBox {
  double lower = 0, upper = 0;
};
inline RateBox rate_box(double span, double gap, double at_first) {
  const double upper =
      std::min(kLargestDecay / gap, kLargestExponent / std::max(std::abs(at_first), 1e-300));
  return {std::min(kSmallestDecay / span, 1e-3 * upper), upper};
}

/// The same as an axis, of log rate.
inline Axis rate_axis(double span, double gap, double at_first) {
  const auto [lower, upper] = rate_box(span, gap, at_first);
  const double from = std::clamp(0.05 / span, lower, upper);
  return {std::log(lower), std::log(upper), std::log(from),
          std::log(std::clamp(4.0 / gap, from, upper)), 12};
}

inline Shapes exponential_of(double z) { return {{std::exp(z), 0}, {{{std::exp(z), 0}, {0, 0}}}}; }

struct Pow2 {
  static constexpr Family kFamily = Family::pow2;
  static constexpr std::string_view kName = "pow2";
  static constexpr std::array<std::string_view, 2> kParameters{"scale", "rate"};
  static constexpr bool kHasFloor = false;
  static constexpr int kShapes = 1;

  static bool sees(double t) { return t > 0; }
  static double exponent(const double* q, double t) { return -q[0] * std::log(t); }
  static void gradient(const double*, double t, double* de) { de[0] = -std::log(t); }
  static RateBox box(const StepRange& t) {
    return rate_box(t.log_span(), t.log_gap(), std::log(t.first));
  }
  static std::array<Axis, 1> axes(const StepRange& t) {
    return {rate_axis(t.log_span(), t.log_gap(), std::log(t.first))};
  }
  static Shapes shapes(const double* z, const StepRange&) { return exponential_of(z[0]); }
};

struct Pow3 : Pow2 {
  static constexpr Family kFamily = Family::pow3;
  static constexpr std::string_view kName = "pow3";
  static constexpr std::array<std::string_view, 3> kParameters{"floor", "scale", "rate"};
  static constexpr bool kHasFloor = true;
};

struct Pow4 {
  static constexpr Family kFamily = Family::pow4;
  static constexpr std::string_view kName = "pow4";
  static constexpr std::array<std::string_view, 4> kParameters{"floor", "scale", "rate", "shift"};
  static constexpr bool kHasFloor = true;
  static constexpr int kShapes = 2;

  static bool sees(double t) { return t > 0; }
  static double exponent(const double* q, double t) { return -q[0] * std::log(t + q[1]); }
  static void gradient(const double* q, double t, double* de) {
    de[0] = -std::log(t + q[1]);
    de[1] = -q[0] / (t + q[1]);
  }
  // shift >= 0, so that the curve is finite at every step; z[1] = log(shift + first), which keeps
  // shift = 0 inside reach.
  static std::array<Axis, 2> axes(const StepRange& t) {
    const double largest_shift = 10.0 * t.last;
    const double span = t.log_span();
    Axis rate = rate_axis(
        span, 0.25 * t.log_gap(),
        std::max(std::abs(std::log(t.first)), std::abs(std::log(t.first + largest_shift))));
    rate.to = std::min(rate.upper, std::log(8.0 + 8.0 / span));
    rate.from = std::min(rate.from, rate.to);
    return {rate, Axis{std::log(t.first), std::log(t.first + largest_shift), std::log(t.first),
                       std::log(t.first + largest_shift), 10}};
  }
  static Shapes shapes(const double* z, const StepRange& t) {
    const double rate = std::exp(z[0]), shifted = std::exp(z[1]);
    return {{rate, std::max(0.0, shifted - t.first)}, {{{rate, 0}, {0, shifted}}}};
  }
};

struct Exp3 {
  static constexpr Family kFamily = Family::exp3;
  static constexpr std::string_view kName = "exp3";
  static constexpr std::array<std::string_view, 3> kParameters{"floor", "scale", "rate"};
  static constexpr bool kHasFloor = true;
  static constexpr int kShapes = 1;

  static bool sees(double) { return true; }
  static double exponent(const double* q, double t) { return -q[0] * t; }
  static void gradient(const double*, double t, double* de) { de[0] = -t; }
  static RateBox box(const StepRange& t) {
    return rate_box(t.last - t.first, t.second - t.first, t.first);
  }
  static std::array<Axis, 1> axes(const StepRange& t) {
    return {rate_axis(t.last - t.first, t.second - t.first, t.first)};
  }
  static Shapes shapes(const double* z, const StepRange&) { return exponential_of(z[0]); }
};

/// v = (t / t_c)^shape, where weibull4 has t_c = 1/rate and mmf4 t_c = half. The box is one of
/// (log v(last), log shape): t_c itself runs over hundreds of orders when the shape is small.
/// Past v = `kLargestV` at the first step nothing is left of φ.
template <std::int64_t kLargestV>  // clang before 18 takes no double here
struct Sigmoid {
  static constexpr bool kHasFloor = true;
  static constexpr int kShapes = 2;
  static constexpr double kSmallestShape = 0.1, kLargestShape = 10.0;

  static bool sees(double t) { return t >= 0; }
  static std::array<Axis, 2> axes(const StepRange& t) {
    const double span = t.log_span();
    return {
        Axis{std::log(kSmallestDecay),
             std::log(static_cast<double>(kLargestV)) + kLargestShape * span, -3.0,
             3.0 + 3.0 * span, 24},
        Axis{std::log(kSmallestShape), std::log(kLargestShape), std::log(0.12), std::log(9.0), 9}};
  }
  static double largest_z0(double z1, const StepRange& t) {
    return std::log(static_cast<double>(kLargestV)) + std::exp(z1) * t.log_span();
  }
  /// log t_c and its derivatives in z.
  static std::array<double, 3> log_centre(const double* z, const StepRange& t) {
    const double shape = std::exp(z[1]);
    return {std::log(t.last) - z[0] / shape, -1.0 / shape, z[0] / shape};
  }
};

struct Weibull4 : Sigmoid<30> {
  static constexpr Family kFamily = Family::weibull4;
  static constexpr std::string_view kName = "weibull4";
  static constexpr std::array<std::string_view, 4> kParameters{"floor", "scale", "rate", "shape"};

  static double exponent(const double* q, double t) { return -std::pow(q[0] * t, q[1]); }
  static void gradient(const double* q, double t, double* de) {
    const double v = std::pow(q[0] * t, q[1]);
    de[0] = -q[1] * v / q[0];
    de[1] = t > 0 ? -v * std::log(q[0] * t) : 0.0;
  }
  static Shapes shapes(const double* z, const StepRange& t) {
    const auto [log_centre, by_level, by_shape] = Sigmoid::log_centre(z, t);
    const double rate = std::exp(std::clamp(-log_centre, -690.0, 690.0)), shape = std::exp(z[1]);
    return {{rate, shape}, {{{-rate * by_level, -rate * by_shape}, {0, shape}}}};
  }
};

struct Mmf4 : Sigmoid<10'000'000'000> {
  static constexpr Family kFamily = Family::mmf4;
  static constexpr std::string_view kName = "mmf4";
  static constexpr std::array<std::string_view, 4> kParameters{"floor", "scale", "half", "shape"};

  static double exponent(const double* q, double t) {
    return -std::log1p(std::pow(t / q[0], q[1]));
  }
  static void gradient(const double* q, double t, double* de) {
    const double v = std::pow(t / q[0], q[1]), p = v < 1e300 ? v / (1.0 + v) : 1.0;
    de[0] = q[1] / q[0] * p;
    de[1] = t > 0 ? -std::log(t / q[0]) * p : 0.0;
  }
  static Shapes shapes(const double* z, const StepRange& t) {
    const auto [log_centre, by_level, by_shape] = Sigmoid::log_centre(z, t);
    const double half = std::exp(std::clamp(log_centre, -690.0, 690.0)), shape = std::exp(z[1]);
    return {{half, shape}, {{{half * by_level, half * by_shape}, {0, shape}}}};
  }
};

struct Log2 {
  static constexpr Family kFamily = Family::log2;
  static constexpr std::string_view kName = "log2";
  static constexpr std::array<std::string_view, 2> kParameters{"floor", "scale"};
  static constexpr bool kHasFloor = true;
  static constexpr int kShapes = 0;

  static bool sees(double t) { return t > 0; }
  static std::array<Axis, 0> axes(const StepRange&) { return {}; }
  static Shapes shapes(const double*, const StepRange&) { return {}; }
};

struct PowExp {
  static constexpr Family kFamily = Family::powexp;
  static constexpr std::string_view kName = "powexp";
  static constexpr std::array<std::string_view, 4> kParameters{"floor", "scale", "rate", "decay"};
  static constexpr bool kHasFloor = true;
  static constexpr int kShapes = 2;

  static bool sees(double t) { return t > 0; }
  static double exponent(const double* q, double t) { return -q[0] * std::log(t) - q[1] * t; }
  static void gradient(const double*, double t, double* de) {
    de[0] = -std::log(t);
    de[1] = -t;
  }
  static std::array<Axis, 2> axes(const StepRange& t) {
    // each may use half of the exponent; its lower end is as good as absent
    Axis rate = rate_axis(t.log_span(), t.log_gap(), 2.0 * std::log(t.first));
    Axis decay = rate_axis(t.last - t.first, t.second - t.first, 2.0 * t.first);
    // down from the fastest by e^9, and further where steps span more orders than that
    for (Axis* axis : {&rate, &decay}) {
      axis->from = std::max(axis->lower, std::min(axis->from, axis->to - 9.0));
      axis->nodes = std::max(8, static_cast<int>((axis->to - axis->from) / 1.2));
    }
    return {rate, decay};
  }
  static Shapes shapes(const double* z, const StepRange&) {
    const double rate = std::exp(z[0]), decay = std::exp(z[1]);
    return {{rate, decay}, {{{rate, 0}, {0, decay}}}};
  }
};

/// body(Unit{}) for the unit of `family`.
template <class Body>
decltype(auto) with_family(Family family, Body&& body) {
  switch (family) {
    case Family::pow2:
      return body(Pow2{});
    case Family::pow3:
      return body(Pow3{});
    case Family::pow4:
      return body(Pow4{});
    case Family::exp3:
      return body(Exp3{});
    case Family::weibull4:
      return body(Weibull4{});
    case Family::mmf4:
      return body(Mmf4{});
    case Family::log2:
      return body(Log2{});
    case Family::powexp:
      break;
  }
  return body(PowExp{});
}

/// φ(t; q)
template <class Unit>
double basis(const double* q, double t) {
  if constexpr (Unit::kShapes == 0) {
    return -std::log(t);
  } else {
    return std::exp(Unit::exponent(q, t));
  }
}

/// Whether a family has a corner cut off its box.
template <class Unit>
concept Cornered = requires(double z1, const StepRange& t) {
  Unit::largest_z0(z1, t);
};

template <class Unit>
bool feasible(const double* z, const StepRange& t) {
  if constexpr (Cornered<Unit>) return z[0] <= Unit::largest_z0(z[1], t) + 1e-9;
  return true;
}

/// Index of the first shape parameter: after floor (where there is one) and scale.
template <class Unit>
inline constexpr int kFirstShape = Unit::kHasFloor ? 2 : 1;

template <class Unit>
inline constexpr int kParameterCount = kFirstShape<Unit> + Unit::kShapes;

}  // namespace glidepath::detail
