// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set by Highway's foreach_target; see fit/kernels.cpp. The
// loops are plain ones, which the compiler vectorises (CMakeLists.txt).
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

void project(size_t bins, size_t stride, const double* v, const double* column, double* sum) {
  for (size_t k = 0; k < stride; ++k) sum[k] = 0;
  for (size_t i = 0; i < bins; ++i) {
    const double* row = v + i * stride;
    const double ci = column[i];
    for (size_t k = 0; k < stride; ++k) sum[k] += row[k] * ci;
  }
}

void bracket(size_t lanes, const double* unit, size_t components, const double* location,
             const double* scale, double* low, double* high) {
  for (size_t k = 0; k < components; ++k) {
    const double m = location[k], s = scale[k];
    for (size_t i = 0; i < lanes; ++i) {
      const double q = m + unit[i] * s;
      low[i] = q < low[i] ? q : low[i];
      high[i] = q > high[i] ? q : high[i];
    }
  }
}

// F(u) = 1/2 + [w / (1 + w^2) + arctan w] / pi and f(u) = 2 / (pi sqrt 3 (1 + w^2)^2),
// w = u / sqrt 3.
void add_components(size_t lanes, const double* x, size_t components, const double* weight,
                    const double* location, const double* scale, double* cdf, double* density,
                    double* slope) {
  for (size_t k = 0; k < components; ++k) {
    const double middle = location[k], step = 1 / scale[k] * kInvSqrt3;
    const double each = weight[k] / kPi;
    const double high = 2 * each * step, steep = -4 * high * step;
    for (size_t i = 0; i < lanes; ++i) {
      const double w = (x[i] - middle) * step;
      const Arc arc = fast_arc(w);
      cdf[i] += each * (w * arc.rest + arc.tangent);
      density[i] += high * (arc.rest * arc.rest);
      slope[i] += steep * w * (arc.rest * arc.rest * arc.rest);
    }
  }
}

void pass(const double* unit, double location, double scale, double lowest, double highest,
          double target, double inverse_noise, double count, double* log_survival,
          double* survival) {
  for (size_t i = 0; i < kPaths; ++i) {
    double path = location + scale * unit[i];
    path = path < lowest ? lowest : path;
    path = path > highest ? highest : path;
    double u = (path - target) * inverse_noise;
    u = u < -1e8 ? -1e8 : u;
    u = u > 1e8 ? 1e8 : u;
    const double above = noise_cdf(u);
    log_survival[i] += count * fast_log(above < 1e-12 ? 1e-12 : above);
    survival[i] = fast_exp(log_survival[i]);
  }
}

ForecastKernels forecast_table() {
  return {power,  weibull, hill,    standardise,    whiten,
          centre, project, bracket, add_components, pass};
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
