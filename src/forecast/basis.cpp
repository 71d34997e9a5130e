// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "forecast/evidence.hpp"
#include "forecast/kernels.hpp"

namespace glidepath::detail {
namespace {

using ShapeKind = ForecastConstants::ShapeKind;

constexpr double kNudge = 1e-9;  // keeps x + d off 0

}  // namespace

void fill_basis(const ForecastConstants& constants, std::span<const double> x, std::size_t bins,
                std::span<const std::vector<double>> templates, Basis& basis) {
  const ForecastKernels& run = forecast_kernels();
  const std::size_t n = x.size();
  basis.points = n;
  basis.shapes = constants.shapes.size() + templates.size();
  basis.stride = (basis.shapes + kMaxLanes - 1) / kMaxLanes * kMaxLanes;
  basis.value.assign(n * basis.stride, 0.0);

  std::vector<double> log_x(n), column(n);
  for (std::size_t i = 0; i < n; ++i) log_x[i] = std::log(x[i]);
  // log(x + d): the shapes share a handful of shifts d.
  std::vector<double> shifts, logs;
  const auto shifted_by = [&](double d) {
    const auto known = std::ranges::find(shifts, d);
    const std::size_t index = known - shifts.begin();
    if (known == shifts.end()) {
      shifts.push_back(d);
      for (std::size_t i = 0; i < n; ++i) logs.push_back(std::log(x[i] + d + kNudge));
    }
    return logs.data() + index * n;
  };
  for (std::size_t k = 0; k < constants.shapes.size(); ++k) {
    const ForecastConstants::Shape& shape = constants.shapes[k];
    switch (shape.family) {
      case ShapeKind::power:
        run.power(n, shifted_by(shape.q), shape.p, column.data());
        break;
      case ShapeKind::weibull:
        run.weibull(n, log_x.data(), std::log(shape.p), shape.q, column.data());
        break;
      case ShapeKind::hill:
        run.hill(n, log_x.data(), std::log(shape.q), shape.p, column.data());
        break;
      case ShapeKind::log: {
        const double* log_shifted = shifted_by(shape.q);
        for (std::size_t i = 0; i < n; ++i) column[i] = -log_shifted[i];
        break;
      }
      case ShapeKind::constant:
        std::ranges::fill(column, 0.0);
        break;
    }
    for (std::size_t i = 0; i < n; ++i) basis.value[i * basis.stride + k] = column[i];
  }
  for (std::size_t r = 0; r < templates.size(); ++r) {
    const std::size_t k = constants.shapes.size() + r;
    for (std::size_t i = 0; i < n; ++i) basis.value[i * basis.stride + k] = templates[r][i];
  }
  std::vector<double> largest(basis.stride);
  basis.mean.assign(basis.stride, 0.0);
  basis.deviation.assign(basis.stride, 0.0);
  run.standardise(basis.stride, n, bins, basis.value.data(), basis.mean.data(),
                  basis.deviation.data(), largest.data());
}

}  // namespace glidepath::detail
