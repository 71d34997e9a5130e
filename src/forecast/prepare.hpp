// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "common/numbers.hpp"
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

/// What is added to every step of a run so that all are positive: 0, or so much that the first of a
/// run that counts from 0 lies one logging interval after 0.
[[nodiscard]] double step_shift(std::span<const double> step);
/// By the steps that have a number: the others are dropped.
[[nodiscard]] double step_shift_of(const Trace& run);

/// Many points are missing before the first of a log, by its mean logging interval. Merged points
/// count as what they were merged from.
[[nodiscard]] bool starts_late(std::span<const double> step, std::span<const double> count);
/// The steps before a log that starts late, up to one such interval before its first point; else 0.
[[nodiscard]] double steps_before(std::span<const double> step, std::span<const double> count);

/// Values that a metric takes beside those of the run: its target, and those of past runs. They
/// tell bounds that it has from where it merely stands: a return of 20 is no percentage.
struct MetricRange {
  double lowest = kInfinity;
  double highest = -kInfinity;

  void include(double value) {
    if (!std::isfinite(value)) return;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  void include(std::span<const double> values) {
    for (const double value : values) include(value);
  }
};

/// One trace, ready for the nodes: clean and in z.
struct Prepared {
  ForecastStatus status = ForecastStatus::good;
  bool modelled = false;  ///< at least 3 finite points that are not all equal
  Coordinate coordinate{};
  double step_shift = 0;  ///< see step_shift()
  double last_z = 0;
  double lowest = 0, highest = 0;      ///< clip of z
  double range = 0;                    ///< of z
  double noise = 0;                    ///< of a raw observation around the curve, in z
  std::vector<double> step, z, count;  ///< all finite points: shifted step, z, points merged in it
};

[[nodiscard]] Prepared prepare(TraceView trace, Direction direction,
                               const ForecastConstants& constants, MetricRange others = {});

/// The coordinate that all finite losses of these runs, of one direction, have together.
[[nodiscard]] Coordinate pooled_coordinate(std::span<const Trace* const> runs);

/// The same run as it was at its point number `points`.
[[nodiscard]] Prepared first_points(const Prepared& prepared, std::size_t points);

/// Points with their relative time x, that of the last observed step being 1.
struct Points {
  std::vector<double> x, step, z, count;
};

/// At most `bins` bins of `points`: mean relative time, its step, log of the mean metric (the mean
/// where z is not a logarithm), points in it.
[[nodiscard]] Points bin(const Points& points, const Coordinate& coordinate, int bins);

}  // namespace glidepath::detail
