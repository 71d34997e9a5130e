// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "forecast/constants.hpp"

namespace glidepath::detail {

/// Values of every shape at every point, shapes contiguous: value[point * stride + shape]. Each
/// shape is standardised to mean 0 and sd 1 over the first `bins` points (numerics only: the flat
/// prior of the amplitude makes the scale cancel); a shape that is constant there is 0 everywhere.
struct Basis {
  std::size_t shapes = 0, stride = 0, points = 0;
  std::vector<double> value;
  std::vector<double> mean;       ///< of each shape before it was standardised
  std::vector<double> deviation;  ///< sd that each shape was divided by; 0 = switched off

  [[nodiscard]] const double* row(std::size_t point) const { return value.data() + point * stride; }
};

/// `templates` are past runs in z at the same points, appended after the shapes in their order.
void fill_basis(const ForecastConstants& constants, std::span<const double> x, std::size_t bins,
                std::span<const std::vector<double>> templates, Basis& basis);

}  // namespace glidepath::detail
