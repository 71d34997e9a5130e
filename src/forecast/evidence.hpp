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

/// What a node says once the offset c, the amplitude a and the noise variance are integrated out,
/// for every shape under one structure. Names as in docs/method/forecast.md: o, u, v, h are the
/// whitened columns of ones, of z, of a shape and of the annealing fraction; <.,.> are sums over
/// the bins after the part along o is taken out.
struct StructureFit {
  // By whiten_shapes(), from the steps alone.
  double log_det = 0;                       ///< log |V| / 2
  double oo = 0, walk_o = 0;                ///< <o,o>; E[walk at the last bin | ones]
  double walk_variance = 0;                 ///< of the walk at the last bin, given the bins
  double lambda2 = 0, clock_unit = 1;       ///< lambda^2; clock per octave
  std::vector<double> gain, inverse_sd, o;  ///< of the filter, per bin
  std::vector<double> v;                    ///< without the part along o, (bins, stride)
  std::vector<double> mean_v, walk_v, vv;   ///< per shape
  // By fit_structure(), from the losses.
  double uu = 0, uh = 0, hh = 0;  ///< <u,u>, <u,h>, <h,h>
  double mean_u = 0, mean_h = 0;  ///< <o,u> / <o,o>, <o,h> / <o,o>
  double walk_u = 0, walk_h = 0;  ///< E[walk at the last bin | column]
  std::vector<double> uv, hv;     ///< per shape

  /// lambda^2 (G(x) - G(last)): variance that the walk gathers from the last bin to x.
  [[nodiscard]] double variance_ahead(const ForecastConstants::Structure& structure, double last,
                                      double x) const;
};

/// Whitens ones and shapes by V = diag(w / count) + lambda^2 min(G_i, G_j): the scalar Kalman
/// filter of a random walk seen through noise, whose innovations are the columns times the inverse
/// of the Cholesky factor of V. O(bins) per shape.
void whiten_shapes(std::span<const double> x, std::span<const double> count, const Basis& basis,
                   const ForecastConstants::Structure& structure, double count_cap,
                   StructureFit& fit);

/// The same for `z` and the annealing fraction (empty without a schedule), and their sums.
void fit_structure(std::span<const double> z, std::span<const double> annealed, std::size_t stride,
                   StructureFit& fit);

}  // namespace glidepath::detail
