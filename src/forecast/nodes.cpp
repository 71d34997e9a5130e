// SPDX-License-Identifier: Apache-2.0
#include "forecast/nodes.hpp"

#include <algorithm>
#include <cmath>

#include "forecast/math.hpp"

namespace glidepath::detail {
namespace {

using Family = ForecastConstants::Family;

constexpr double kNudge = 1e-9;  // keeps x + d off 0

/// out = exp(-b log(x + d))
GLIDEPATH_CLONES void power(std::size_t n, const double* log_x, double b, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = fast_exp(-b * log_x[i]);
}
/// out = exp(-(b x)^k)
GLIDEPATH_CLONES void weibull(std::size_t n, const double* log_x, double log_b, double k,
                              double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = fast_exp(-fast_exp(k * (log_x[i] + log_b)));
}
/// out = 1 / (1 + (x / half)^b)
GLIDEPATH_CLONES void hill(std::size_t n, const double* log_x, double log_half, double b,
                           double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = 1.0 / (1.0 + fast_exp(b * (log_x[i] - log_half)));
}

GLIDEPATH_CLONES void standardise(std::size_t stride, std::size_t points, std::size_t bins,
                                  double* value, double* mean, double* deviation, double* largest) {
  const auto count = static_cast<double>(bins);
  for (std::size_t k = 0; k < stride; ++k) mean[k] = deviation[k] = largest[k] = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    const double* row = value + i * stride;
    for (std::size_t k = 0; k < stride; ++k) {
      mean[k] += row[k];
      const double size = row[k] < 0 ? -row[k] : row[k];
      largest[k] = largest[k] < size ? size : largest[k];
    }
  }
  for (std::size_t k = 0; k < stride; ++k) mean[k] /= count;
  for (std::size_t i = 0; i < bins; ++i) {
    const double* row = value + i * stride;
    for (std::size_t k = 0; k < stride; ++k) {
      const double d = row[k] - mean[k];
      deviation[k] += d * d;
    }
  }
  for (std::size_t k = 0; k < stride; ++k) {
    const double sd = std::sqrt(deviation[k] / count);
    const double size = largest[k] > 1e-300 ? largest[k] : 1e-300;
    deviation[k] = sd > 1e-9 * size ? sd : 0.0;
  }
  for (std::size_t i = 0; i < points; ++i) {
    double* row = value + i * stride;
    for (std::size_t k = 0; k < stride; ++k) {
      const double scaled = (row[k] - mean[k]) / (deviation[k] > 0 ? deviation[k] : 1.0);
      row[k] = deviation[k] > 0 ? scaled : 0.0;
    }
  }
}

}  // namespace

void fill_basis(const ForecastConstants& constants, std::span<const double> x, std::size_t bins,
                std::span<const std::vector<double>> templates, Basis& basis) {
  const std::size_t n = x.size();
  basis.points = n;
  basis.shapes = constants.shapes.size() + templates.size();
  basis.stride = (basis.shapes + 7) / 8 * 8;
  basis.value.assign(n * basis.stride, 0.0);

  std::vector<double> log_x(n), column(n);
  for (std::size_t i = 0; i < n; ++i) log_x[i] = std::log(x[i]);
  // log(x + d): the shapes share a handful of shifts d.
  std::vector<double> shifts, logs;
  const auto shifted_by = [&](double d) {
    const auto known = std::find(shifts.begin(), shifts.end(), d);
    const auto index = static_cast<std::size_t>(known - shifts.begin());
    if (known == shifts.end()) {
      shifts.push_back(d);
      for (std::size_t i = 0; i < n; ++i) logs.push_back(std::log(x[i] + d + kNudge));
    }
    return logs.data() + index * n;
  };
  for (std::size_t k = 0; k < constants.shapes.size(); ++k) {
    const ForecastConstants::Shape& shape = constants.shapes[k];
    switch (shape.family) {
      case Family::power:
        power(n, shifted_by(shape.q), shape.p, column.data());
        break;
      case Family::weibull:
        weibull(n, log_x.data(), std::log(shape.p), shape.q, column.data());
        break;
      case Family::hill:
        hill(n, log_x.data(), std::log(shape.q), shape.p, column.data());
        break;
      case Family::log: {
        const double* log_shifted = shifted_by(shape.q);
        for (std::size_t i = 0; i < n; ++i) column[i] = -log_shifted[i];
        break;
      }
      case Family::constant:
        std::fill(column.begin(), column.end(), 0.0);
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
  standardise(basis.stride, n, bins, basis.value.data(), basis.mean.data(), basis.deviation.data(),
              largest.data());
}

}  // namespace glidepath::detail
