// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set by Highway's foreach_target; see fit/kernels.cpp. The
// loops are plain ones, which the compiler vectorises (CMakeLists.txt), but for those whose sums
// must stay in registers.
#include "forecast/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "forecast/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "forecast/math.hpp"

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {

void power(size_t n, const double* log_x, double b, double* out) {
  for (size_t i = 0; i < n; ++i) out[i] = fast_exp(-b * log_x[i]);
}

void weibull(size_t n, const double* log_x, double log_b, double k, double* out) {
  for (size_t i = 0; i < n; ++i) out[i] = fast_exp(-fast_exp(k * (log_x[i] + log_b)));
}

void hill(size_t n, const double* log_x, double log_half, double b, double* out) {
  for (size_t i = 0; i < n; ++i) out[i] = 1.0 / (1.0 + fast_exp(b * (log_x[i] - log_half)));
}

void standardise(size_t stride, size_t points, size_t bins, double* value, double* mean,
                 double* deviation, double* largest) {
  const auto count = static_cast<double>(bins);
  for (size_t k = 0; k < stride; ++k) mean[k] = deviation[k] = largest[k] = 0;
  for (size_t i = 0; i < bins; ++i) {
    const double* row = value + i * stride;
    for (size_t k = 0; k < stride; ++k) {
      mean[k] += row[k];
      const double size = row[k] < 0 ? -row[k] : row[k];
      largest[k] = largest[k] < size ? size : largest[k];
    }
  }
  for (size_t k = 0; k < stride; ++k) mean[k] /= count;
  for (size_t i = 0; i < bins; ++i) {
    const double* row = value + i * stride;
    for (size_t k = 0; k < stride; ++k) {
      const double d = row[k] - mean[k];
      deviation[k] += d * d;
    }
  }
  for (size_t k = 0; k < stride; ++k) {
    const double sd = __builtin_sqrt(deviation[k] / count);
    const double size = largest[k] > 1e-300 ? largest[k] : 1e-300;
    deviation[k] = sd > 1e-9 * size ? sd : 0.0;
  }
  for (size_t i = 0; i < points; ++i) {
    double* row = value + i * stride;
    for (size_t k = 0; k < stride; ++k) {
      const double scaled = (row[k] - mean[k]) / (deviation[k] > 0 ? deviation[k] : 1.0);
      row[k] = deviation[k] > 0 ? scaled : 0.0;
    }
  }
}

void whiten(size_t bins, size_t stride, const double* basis, const double* gain,
            const double* inverse_sd, const double* o, double* state, double* v, double* ov) {
  for (size_t k = 0; k < stride; ++k) state[k] = ov[k] = 0;
  for (size_t i = 0; i < bins; ++i) {
    const double* f = basis + i * stride;
    double* out = v + i * stride;
    const double g = gain[i], r = inverse_sd[i], oi = o[i];
    for (size_t k = 0; k < stride; ++k) {
      const double e = f[k] - state[k];
      const double w = e * r;
      state[k] += g * e;
      out[k] = w;
      ov[k] += oi * w;
    }
  }
}

void centre(size_t bins, size_t stride, const double* mean, const double* o, double* v,
            double* vv) {
  for (size_t k = 0; k < stride; ++k) vv[k] = 0;
  for (size_t i = 0; i < bins; ++i) {
    double* row = v + i * stride;
    const double oi = o[i];
    for (size_t k = 0; k < stride; ++k) {
      const double c = row[k] - mean[k] * oi;
      row[k] = c;
      vv[k] += c * c;
    }
  }
}

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<double, kMaxLanes>;
using Vec = hn::Vec<Tag>;

HWY_INLINE Vec set(double x) { return hn::Set(Tag(), x); }
HWY_INLINE Vec line(double p, double q, Vec x) { return hn::Add(set(p), hn::Mul(set(q), x)); }
HWY_INLINE Vec line(Vec p, Vec q, Vec x) { return hn::Add(p, hn::Mul(q, x)); }

/// Sums of N vectors at once, which stay in registers.
template <size_t N>
HWY_INLINE void project_block(size_t bins, size_t stride, const double* v, const double* column,
                              double* sum) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  Vec total[N];
  for (size_t part = 0; part < N; ++part) total[part] = set(0);
  for (size_t i = 0; i < bins; ++i) {
    for (size_t part = 0; part < N; ++part) {
      const Vec row = hn::LoadU(d, v + i * stride + part * lanes);
      total[part] = line(total[part], row, set(column[i]));
    }
  }
  for (size_t part = 0; part < N; ++part) hn::StoreU(total[part], d, sum + part * lanes);
}

void project(size_t bins, size_t stride, const double* v, const double* column, double* sum) {
  constexpr size_t kBlock = 4;
  const size_t lanes = hn::Lanes(Tag());
  size_t k = 0;
  for (; k + kBlock * lanes <= stride; k += kBlock * lanes) {
    project_block<kBlock>(bins, stride, v + k, column, sum + k);
  }
  for (; k < stride; k += lanes) project_block<1>(bins, stride, v + k, column, sum + k);
}

/// arctan(x) to 2e-14 and 1 / (1 + x^2) to a few ulp, by one division, x up to kLargestArgument.
/// With low and high the smaller and the larger of |x| and 1, t = tan(pi / 8): arctan(low / high) =
/// pi / 8 + arctan r, r = (low - t high) / (high + t low), so that |r| <= t; arctan r = r times a
/// polynomial in r^2 (interpolated at the Chebyshev nodes, here in Estrin's order).
struct Arc {
  Vec tangent, rest;
};
HWY_INLINE Arc arc(Vec x) {
  const Vec one = set(1), t = set(0.41421356237309504880);
  const Vec a = hn::Abs(x);
  const Vec low = hn::Min(a, one), high = hn::Max(a, one);
  const Vec top = hn::Sub(low, hn::Mul(t, high)), bottom = hn::Add(high, hn::Mul(t, low));
  const Vec square = hn::Add(one, hn::Mul(a, a));
  const Vec inverse = hn::Div(one, hn::Mul(bottom, square));
  const Vec r = hn::Mul(hn::Mul(top, square), inverse);
  const Vec z = hn::Mul(r, r), z2 = hn::Mul(z, z), z4 = hn::Mul(z2, z2);
  const Vec p01 = line(0x1.fffffffffff0fp-1, -0x1.55555554e6115p-2, z);
  const Vec p23 = line(0x1.99999911d787ep-3, -0x1.2492291db1906p-3, z);
  const Vec p45 = line(0x1.c714d4c311554p-4, -0x1.73d9d72891b8bp-4, z);
  const Vec p67 = line(0x1.35cf2e1ebd059p-4, -0x1.e13d4fe7944cap-5, z);
  const Vec p8 = set(0x1.f65f98a6d1466p-6);
  const Vec p = line(line(p01, p23, z2), line(line(p45, p67, z2), p8, z4), z4);
  const auto beyond = hn::Ge(a, one);  // pi / 2 less the arctangent of 1 / a
  const Vec turned = hn::IfThenElse(beyond, hn::Neg(r), r);
  const Vec base = hn::IfThenElse(beyond, set(3 * kPi / 8), set(kPi / 8));
  return {hn::CopySign(line(base, turned, p), x), hn::Mul(bottom, inverse)};
}

void bracket(size_t count, const double* unit, size_t components, const double* location,
             const double* scale, double* low, double* high) {
  const Tag d;
  for (size_t begin = 0; begin < count; begin += hn::Lanes(d)) {
    const Vec at = hn::LoadU(d, unit + begin);
    Vec least = set(__builtin_inf()), most = set(-__builtin_inf());
    for (size_t k = 0; k < components; ++k) {
      const Vec quantile = line(set(location[k]), at, set(scale[k]));
      least = hn::Min(least, quantile);
      most = hn::Max(most, quantile);
    }
    hn::StoreU(least, d, low + begin);
    hn::StoreU(most, d, high + begin);
  }
}

constexpr double kLargestArgument = 1e100;  // its cube is finite

// F(u) = 1/2 + [w / (1 + w^2) + arctan w] / pi, w = u / sqrt 3, and with r = 1 / (1 + w^2) its
// derivatives by w are (2 / pi) (r^2, -4 w r^3, r^3 (20 - 24 r)).
void mixture(size_t count, const double* x, size_t components, const Component* component,
             Derivatives out) {
  const Tag d;
  for (size_t begin = 0; begin < count; begin += hn::Lanes(d)) {
    const Vec at = hn::LoadU(d, x + begin);
    Vec cdf = set(0.5), density = set(0), slope = set(0), bend = set(0);
    for (size_t k = 0; k < components; ++k) {
      const Component& c = component[k];
      const Vec far = hn::Mul(hn::Sub(at, set(c.location)), set(c.step));
      const Vec w = hn::Max(hn::Min(far, set(kLargestArgument)), set(-kLargestArgument));
      const auto [tangent, rest] = arc(w);
      const Vec square = hn::Mul(rest, rest), cube = hn::Mul(square, rest);
      cdf = line(cdf, set(c.each), line(tangent, w, rest));
      density = line(density, set(c.density), square);
      slope = line(slope, set(c.slope), hn::Mul(w, cube));
      bend = line(bend, hn::Mul(set(c.bend), cube), line(20, -24, rest));
    }
    hn::StoreU(cdf, d, out.cdf + begin);
    hn::StoreU(density, d, out.density + begin);
    hn::StoreU(slope, d, out.slope + begin);
    hn::StoreU(bend, d, out.bend + begin);
  }
}

void search_step(size_t count, const double* level, Derivatives at, double tolerance, double* x,
                 double* low, double* high, double* found) {
  constexpr double kRounding = 4e-16;
  for (size_t i = 0; i < count; ++i) {
    const double from = x[i], error = at.cdf[i] - level[i];
    const double lower = error < 0 ? from : low[i], upper = error < 0 ? high[i] : from;
    const double inverse = 1 / at.density[i], newton = -error * inverse;
    const double slope = at.slope[i] * inverse, bend = at.bend[i] * inverse;
    double more = (1 + 0.5 * newton * slope) / (1 + newton * (slope + newton * bend * (1.0 / 6)));
    more = more > 0.5 ? more : 1.0;
    more = more < 2 ? more : 1.0;
    const double next = from + newton * more, half = 0.5 * (lower + upper);
    const bool within = next >= lower && next <= upper;
    const double to = within ? next : half;
    const double move = to < from ? from - to : to - from;
    const double rounding = kRounding * (to < 0 ? -to : to);
    low[i] = lower;
    high[i] = upper;
    x[i] = to;
    found[i] = move <= (within && tolerance > rounding ? tolerance : rounding) ? 1.0 : 0.0;
  }
}

void pass(const double* unit, double location, double scale, double highest, double target,
          double inverse_noise, double count_before, double count, double* log_above,
          double* log_survival, double* survival) {
  for (size_t i = 0; i < kPaths; ++i) {
    double path = location + scale * unit[i];
    path = path > highest ? highest : path;
    double u = (path - target) * inverse_noise;
    u = u < -1e8 ? -1e8 : u;
    u = u > 1e8 ? 1e8 : u;
    const double above = noise_cdf(u), log_now = fast_log(above < 1e-12 ? 1e-12 : above);
    log_survival[i] += count_before * log_above[i] + count * log_now;
    log_above[i] = log_now;
    survival[i] = fast_exp(log_survival[i]);
  }
}

ForecastKernels forecast_table() {
  return {power,   weibull, hill,    standardise, whiten, centre,
          project, bracket, mixture, search_step, pass};
}

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace glidepath::detail {

HWY_EXPORT(forecast_table);

const ForecastKernels& forecast_kernels() {
  static const ForecastKernels best = HWY_DYNAMIC_DISPATCH(forecast_table)();
  return best;
}

}  // namespace glidepath::detail
#endif
