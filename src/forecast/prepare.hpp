// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <vector>

#include "forecast/constants.hpp"

namespace glidepath::detail {

/// The increasing map between the metric y and the coordinate z that the model is linear in:
/// y = sign (unit g(z) - offset), g = exp or the identity.
struct Coordinate {
  double sign = 1, unit = 1, offset = 0;
  bool logarithmic = true;
  double floor = 0, ceiling = 0;  ///< what the metric allows

  [[nodiscard]] double metric(double z) const;
  [[nodiscard]] double z(double metric) const;
};

/// One trace, ready for the nodes: clean, in z, compressed to a few dozen bins.
struct Prepared {
  ForecastStatus status = ForecastStatus::good;
  bool modelled = false;  ///< at least 3 finite points that are not all equal
  Coordinate coordinate{};
  double step_shift = 0;  ///< added to every step, so that they are positive
  double last = 0;        ///< last observed step, shifted
  double last_z = 0;
  double lowest = 0, highest = 0;    ///< clip of z
  double range = 0;                  ///< of z
  std::size_t points = 0;            ///< finite ones
  double noise = 0;                  ///< of a raw observation around the curve, in z
  std::vector<double> step, z;       ///< all finite points, shifted steps
  std::vector<double> x, bin_step;   ///< bins: mean relative time, its step
  std::vector<double> bin_z, count;  ///< log of the mean metric, points in the bin
};

/// Cleans and transforms; the bins follow from bin_points() once relative time is known.
[[nodiscard]] Prepared prepare(TraceView trace, Direction direction,
                               const ForecastConstants& constants);

/// The same run as it was at its point number `points`.
[[nodiscard]] Prepared first_points(const Prepared& prepared, std::size_t points);

/// Fills x, bin_step, bin_z and count of at most `bins` bins from relative times of all points.
void bin_points(Prepared& prepared, std::span<const double> relative, int bins);

}  // namespace glidepath::detail
