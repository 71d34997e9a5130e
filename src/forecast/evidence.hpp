// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "forecast/constants.hpp"
#include "forecast/nodes.hpp"

namespace glidepath::detail {

/// What a node says once the offset c, the amplitude a and the noise variance are integrated out,
/// for every shape under one structure. Names as in docs/method/forecast.md: o, u, v, h are the
/// whitened columns of ones, of z, of a shape and of the annealing fraction; <.,.> are sums over
/// the bins after the part along o is taken out.
struct StructureFit {
  double log_det = 0;                              ///< log |V| / 2
  double oo = 0, uu = 0, uh = 0, hh = 0;           ///< <o,o>, <u,u>, <u,h>, <h,h>
  double mean_u = 0, mean_h = 0;                   ///< <o,u> / <o,o>, <o,h> / <o,o>
  double walk_o = 0, walk_u = 0, walk_h = 0;       ///< E[walk at the last bin | column]
  double walk_variance = 0;                        ///< of the walk at the last bin, given the bins
  double lambda2 = 0, clock_unit = 1;              ///< lambda^2; clock per octave
  std::vector<double> mean_v, walk_v, vv, uv, hv;  ///< per shape

  /// lambda^2 (G(x) - G(last)): variance that the walk gathers from the last bin to x.
  [[nodiscard]] double variance_ahead(const ForecastConstants::Structure& structure, double last,
                                      double x) const;
};

/// One bin of the data, all in z.
struct Bins {
  std::span<const double> x, z, count, annealed;  ///< `annealed` empty without a schedule
};

/// Whitens all columns by V = diag(w / count) + lambda^2 min(G_i, G_j): the scalar Kalman filter of
/// a random walk seen through noise, whose innovations are the columns times the inverse of the
/// Cholesky factor of V. O(bins) per shape. `jitter` times the mean variance is added to the white
/// noise (what the Cholesky factor of the prototype needs; the filter does not).
void fit_structure(const Bins& bins, const Basis& basis,
                   const ForecastConstants::Structure& structure, double count_cap, double jitter,
                   std::vector<double>& scratch, StructureFit& fit);

}  // namespace glidepath::detail
