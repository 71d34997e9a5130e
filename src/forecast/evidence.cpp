// SPDX-License-Identifier: Apache-2.0
#include "forecast/evidence.hpp"

#include <algorithm>
#include <cmath>

#include "forecast/kernels.hpp"

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

}  // namespace

double StructureFit::variance_ahead(const ForecastConstants::Structure& structure, double last,
                                    double x) const {
  if (lambda2 == 0 || x <= last) return 0;
  return lambda2 * clock(last, x, structure.eta) / clock_unit;
}

void whiten_shapes(std::span<const double> x, std::span<const double> count, const Basis& basis,
                   const ForecastConstants::Structure& structure, double count_cap,
                   StructureFit& fit) {
  const std::size_t n = x.size(), stride = basis.stride;
  const bool walk_only = structure.lambda >= kWalkOnly;
  const double white = walk_only ? kWhiteOfWalk : 1.0;
  fit.lambda2 = walk_only ? 1.0 : structure.lambda * structure.lambda;

  const double last = x[n - 1];
  fit.clock_unit = fit.lambda2 > 0 ? clock(0.5 * last, last, structure.eta) : 1.0;
  fit.gain.assign(n, 0.0);  // for now: variance that the walk gathers before this bin
  fit.inverse_sd.resize(n);
  fit.o.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (fit.lambda2 > 0 && i > 0) {
      fit.gain[i] = fit.lambda2 * clock(x[i - 1], x[i], structure.eta) / fit.clock_unit;
    }
  }

  // Gains of the filter: P = variance of the walk given the bins so far, S = of the innovation.
  double variance = 0;
  fit.log_det = fit.oo = fit.walk_o = 0;
  for (std::size_t i = 0; i < n; ++i) {
    variance += fit.gain[i];
    const double w = white / std::min(count[i], count_cap);
    const double s = variance + w;
    fit.gain[i] = variance / s;
    fit.inverse_sd[i] = 1 / std::sqrt(s);
    variance *= w / s;
    fit.log_det += 0.5 * std::log(s);
    const double e = 1 - fit.walk_o;
    fit.walk_o += fit.gain[i] * e;
    fit.o[i] = e * fit.inverse_sd[i];
    fit.oo += fit.o[i] * fit.o[i];
  }
  fit.walk_variance = variance;

  fit.v.resize(n * stride);
  for (auto* column : {&fit.mean_v, &fit.walk_v, &fit.vv}) column->resize(stride);
  const ForecastKernels& run = forecast_kernels();
  run.whiten(n, stride, basis.value.data(), fit.gain.data(), fit.inverse_sd.data(), fit.o.data(),
             fit.walk_v.data(), fit.v.data(), fit.mean_v.data());
  for (double& mean : fit.mean_v) mean /= fit.oo;
  run.centre(n, stride, fit.mean_v.data(), fit.o.data(), fit.v.data(), fit.vv.data());
}

void fit_structure(std::span<const double> z, std::span<const double> annealed, std::size_t stride,
                   StructureFit& fit) {
  const std::size_t n = z.size();
  thread_local std::vector<double> u;
  u.resize(n);
  const auto filtered = [&](std::span<const double> column, double& walk, double& mean) {
    double along = 0;
    walk = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double e = column[i] - walk;
      walk += fit.gain[i] * e;
      u[i] = e * fit.inverse_sd[i];
      along += fit.o[i] * u[i];
    }
    mean = along / fit.oo;
    for (std::size_t i = 0; i < n; ++i) u[i] -= mean * fit.o[i];
  };
  fit.uv.resize(stride);
  fit.hv.assign(stride, 0.0);
  fit.uh = fit.hh = fit.mean_h = fit.walk_h = 0;
  std::vector<double> h;
  if (!annealed.empty()) {
    filtered(annealed, fit.walk_h, fit.mean_h);
    h = u;
    forecast_kernels().project(n, stride, fit.v.data(), h.data(), fit.hv.data());
  }
  filtered(z, fit.walk_u, fit.mean_u);
  forecast_kernels().project(n, stride, fit.v.data(), u.data(), fit.uv.data());
  fit.uu = 0;
  for (std::size_t i = 0; i < n; ++i) {
    fit.uu += u[i] * u[i];
    if (!h.empty()) {
      fit.uh += u[i] * h[i];
      fit.hh += h[i] * h[i];
    }
  }
}

}  // namespace glidepath::detail
