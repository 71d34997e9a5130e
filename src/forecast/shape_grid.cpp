// SPDX-License-Identifier: Apache-2.0
#include "forecast/shape_grid.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/interpolate.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kKeptGrids = 6;  // two clocks, each with its backtests

/// Basis and filters at the bins, at the last bin again and at the queries (both in relative time).
void fill_grid(const Points& bins, std::span<const double> ahead,
               std::span<const std::vector<double>> templates, const ForecastConstants& c,
               std::span<const double> points, ShapeGrid& grid) {
  const std::size_t n = bins.x.size();
  const double last = bins.x[n - 1];
  fill_basis(c, points, n, templates, grid.basis);
  grid.fits.resize(c.structures.size());
  grid.ahead.resize(c.structures.size());
  for (std::size_t i = 0; i < c.structures.size(); ++i) {
    whiten_shapes(bins.x, bins.count, grid.basis, c.structures[i], c.count_cap, grid.fits[i]);
    grid.ahead[i].resize(ahead.size());
    for (std::size_t j = 0; j < ahead.size(); ++j) {
      grid.ahead[i][j] = grid.fits[i].variance_ahead(c.structures[i], last, ahead[j]);
    }
  }
  grid.log_ahead.resize(ahead.size());
  grid.log_distance.resize(ahead.size());
  for (std::size_t j = 0; j < ahead.size(); ++j) {
    const double x = std::max(ahead[j] / last, kMinAhead);
    grid.log_ahead[j] = std::min(std::log(x), kMaxLogAhead);
    grid.log_distance[j] = std::pow(std::log(x), c.distance_power);
  }
}

}  // namespace

ShapeGrid& grid_at(const Points& bins, std::span<const double> ahead,
                   std::span<const std::vector<double>> templates, const ForecastConstants& c) {
  thread_local std::array<ShapeGrid, kKeptGrids> grids;
  thread_local std::size_t oldest = 0;
  ShapeGrid::Key key{bins.x, bins.count, c.shapes, c.structures, c.count_cap, c.distance_power};
  key.points.push_back(bins.x.back());
  key.points.insert(key.points.end(), ahead.begin(), ahead.end());
  if (templates.empty()) {
    const auto kept = std::ranges::find(grids, key, &ShapeGrid::key);
    if (kept != grids.end()) return *kept;
  }
  ShapeGrid& grid = grids[oldest];
  oldest = (oldest + 1) % kKeptGrids;
  grid.key = {};
  fill_grid(bins, ahead, templates, c, key.points, grid);
  if (templates.empty()) grid.key = std::move(key);
  return grid;
}

PastShapes shapes_of(std::span<const Template> past, const Points& bins,
                     std::span<const double> queries) {
  PastShapes shapes;
  shapes.values.resize(2 * past.size());
  for (std::size_t r = 0; r < past.size(); ++r) {
    std::vector<double>& values = shapes.values[r];
    values.reserve(bins.step.size() + 1 + queries.size());
    const auto add = [&](double t) { values.push_back(interpolate(t, past[r].step, past[r].z)); };
    for (const double t : bins.step) add(t);
    add(bins.step.back());
    for (const double t : queries) add(t);
    const auto [least, most] = std::ranges::minmax_element(values);
    shapes.range.push_back(*most - *least);
    shapes.values[past.size() + r] = values;
  }
  return shapes;
}

}  // namespace glidepath::detail
