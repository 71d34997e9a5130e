// SPDX-License-Identifier: Apache-2.0
// What the shapes of a forecast are at given points, whatever the losses there.
#pragma once

#include "glidepath/forecast.hpp"

#include <span>
#include <vector>

#include "forecast/evidence.hpp"
#include "forecast/predict.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// All that the shapes become at given bins and queries, whatever the losses.
struct ShapeGrid {
  struct Key {
    std::vector<double> points{}, count{};  // bins, the last bin again, queries; points in each bin
    std::vector<ForecastConstants::Shape> shapes{};
    std::vector<ForecastConstants::Structure> structures{};
    double count_cap = 0, distance_power = 0;

    bool operator==(const Key&) const = default;
  };
  Key key{};
  Basis basis{};
  std::vector<StructureFit> fits{};
  std::vector<std::vector<double>> ahead{};  // of each structure: variance_ahead at the queries
  std::vector<double> log_ahead{};           // log(x / last) at the queries, at most kMaxLogAhead
  std::vector<double> log_distance{};        // log(x / last), to its power
};

/// The grid of this thread at these bins and queries, which are in relative time. Rows of a batch
/// lie at the same steps, so those of the last forecasts and of their backtests are kept.
[[nodiscard]] ShapeGrid& grid_at(const Points& bins, std::span<const double> ahead,
                                 std::span<const std::vector<double>> templates,
                                 const ForecastConstants& c);

/// A past run at the points of the grid.
struct PastShapes {
  std::vector<std::vector<double>> values{};  // each run twice: amplitude fixed, then free
  std::vector<double> range{};                // of each run, over bins and queries
};

[[nodiscard]] PastShapes shapes_of(std::span<const Template> past, const Points& bins,
                                   std::span<const double> queries);

}  // namespace glidepath::detail
