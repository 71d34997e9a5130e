// SPDX-License-Identifier: Apache-2.0
#include "forecast/evidence.hpp"

#include <algorithm>
#include <cmath>

#include "forecast/math.hpp"

namespace glidepath::detail {
namespace {

constexpr double kWalkOnly = 30;       // lambda from which the walk has unit variance and the white
constexpr double kWhiteOfWalk = 0.01;  // noise this one

/// Variance of the walk gathered from x = a to x = b: log(b / a), or with decay eta
/// (a^(-2 eta) - b^(-2 eta)) / (2 eta).
double clock(double a, double b, double eta) {
  if (eta == 0) return std::log(b / a);
  return (std::pow(a, -2 * eta) - std::pow(b, -2 * eta)) / (2 * eta);
}

/// The filter over all shapes at once: e = f - state, v = e / sqrt(S), state += gain e.
GLIDEPATH_CLONES void whiten(std::size_t bins, std::size_t stride, const double* basis,
                             const double* gain, const double* inverse_sd, const double* o,
                             double* state, double* v, double* ov) {
  for (std::size_t k = 0; k < stride; ++k) state[k] = ov[k] = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    const double* f = basis + i * stride;
    double* out = v + i * stride;
    const double g = gain[i], r = inverse_sd[i], oi = o[i];
    for (std::size_t k = 0; k < stride; ++k) {
      const double e = f[k] - state[k];
      const double w = e * r;
      state[k] += g * e;
      out[k] = w;
      ov[k] += oi * w;
    }
  }
}

/// Sums over the bins of v - mean o, against itself, u and h (both already without their part along
/// o).
GLIDEPATH_CLONES void project(std::size_t bins, std::size_t stride, const double* v,
                              const double* mean, const double* o, const double* u, const double* h,
                              double* vv, double* uv, double* hv) {
  for (std::size_t k = 0; k < stride; ++k) vv[k] = uv[k] = hv[k] = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    const double* row = v + i * stride;
    const double oi = o[i], ui = u[i], hi = h[i];
    for (std::size_t k = 0; k < stride; ++k) {
      const double c = row[k] - mean[k] * oi;
      vv[k] += c * c;
      uv[k] += c * ui;
      hv[k] += c * hi;
    }
  }
}

}  // namespace

double StructureFit::variance_ahead(const ForecastConstants::Structure& structure, double last,
                                    double x) const {
  if (lambda2 == 0 || x <= last) return 0;
  return lambda2 * clock(last, x, structure.eta) / clock_unit;
}

void fit_structure(const Bins& data, const Basis& basis,
                   const ForecastConstants::Structure& structure, double count_cap, double jitter,
                   std::vector<double>& scratch, StructureFit& fit) {
  const std::size_t n = data.x.size(), stride = basis.stride;
  const bool walk_only = structure.lambda >= kWalkOnly;
  const double white = walk_only ? kWhiteOfWalk : 1.0;
  fit.lambda2 = walk_only ? 1.0 : structure.lambda * structure.lambda;

  scratch.resize(6 * n + n * stride);
  double* gain = scratch.data();
  double* inverse_sd = gain + n;
  double* o = inverse_sd + n;
  double* u = o + n;
  double* h = u + n;
  double* noise = h + n;
  double* v = noise + n;

  const double last = data.x[n - 1];
  double trace = 0, gathered = 0;
  fit.clock_unit = fit.lambda2 > 0 ? clock(0.5 * last, last, structure.eta) : 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    noise[i] = white / std::min(data.count[i], count_cap);
    gain[i] = 0;  // for now: variance that the walk gathers before this bin
    if (fit.lambda2 > 0 && i > 0) {
      gain[i] = fit.lambda2 * clock(data.x[i - 1], data.x[i], structure.eta) / fit.clock_unit;
    }
    gathered += gain[i];
    trace += noise[i] + gathered;
  }
  const double extra = jitter * trace / static_cast<double>(n);

  // Gains of the filter: P = variance of the walk given the bins so far, S = of the innovation.
  double variance = 0;
  fit.log_det = 0;
  for (std::size_t i = 0; i < n; ++i) {
    variance += gain[i];
    const double w = noise[i] + extra;
    const double s = variance + w;
    gain[i] = variance / s;
    inverse_sd[i] = 1 / std::sqrt(s);
    variance *= w / s;
    fit.log_det += 0.5 * std::log(s);
  }
  fit.walk_variance = variance;

  // The columns that all shapes share.
  const bool annealed = !data.annealed.empty();
  fit.walk_o = fit.walk_u = fit.walk_h = 0;
  fit.oo = fit.uu = fit.uh = fit.hh = fit.mean_u = fit.mean_h = 0;
  double ou = 0, oh = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double eo = 1 - fit.walk_o, eu = data.z[i] - fit.walk_u;
    const double eh = annealed ? data.annealed[i] - fit.walk_h : 0.0;
    fit.walk_o += gain[i] * eo;
    fit.walk_u += gain[i] * eu;
    fit.walk_h += gain[i] * eh;
    o[i] = eo * inverse_sd[i];
    u[i] = eu * inverse_sd[i];
    h[i] = eh * inverse_sd[i];
    fit.oo += o[i] * o[i];
    ou += o[i] * u[i];
    oh += o[i] * h[i];
  }
  fit.mean_u = ou / fit.oo;
  fit.mean_h = oh / fit.oo;
  for (std::size_t i = 0; i < n; ++i) {
    u[i] -= fit.mean_u * o[i];
    h[i] -= fit.mean_h * o[i];
    fit.uu += u[i] * u[i];
    fit.uh += u[i] * h[i];
    fit.hh += h[i] * h[i];
  }

  for (auto* column : {&fit.mean_v, &fit.walk_v, &fit.vv, &fit.uv, &fit.hv}) {
    column->resize(stride);
  }
  whiten(n, stride, basis.value.data(), gain, inverse_sd, o, fit.walk_v.data(), v,
         fit.mean_v.data());
  for (double& mean : fit.mean_v) mean /= fit.oo;
  project(n, stride, v, fit.mean_v.data(), o, u, h, fit.vv.data(), fit.uv.data(), fit.hv.data());
}

}  // namespace glidepath::detail
