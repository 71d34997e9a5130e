// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "forecast/annealing.hpp"
#include "forecast/constants.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {

/// A past run as a shape: its steps and its metric in the coordinate z of the live run.
struct Template {
  std::vector<double> step, z;
};

/// Mixture of Student-t in z at each query.
struct Mixture {
  std::size_t components = 0, queries = 0;
  std::vector<double> weight;           ///< sums to 1
  std::vector<double> location, scale;  ///< (queries, components) row-major
};

/// The mixture over all nodes (shape, structure, annealing gain) at the shifted steps `queries`.
/// `prepared` has status good; bins it on the way. `narrowing` is a factor of the scales of shapes,
/// which leaves what is not known of the gain.
[[nodiscard]] Mixture predict(Prepared& prepared, std::span<const double> queries,
                              const Annealing& plan, std::span<const Template> past,
                              const ForecastConstants& constants, double narrowing = 1);

/// Every node before priors and tempering, for `bench/accuracy/learn_prior.py`. Rows are structures
/// times shapes, structure-major; columns of `location` and `kriging` are queries.
struct NodeTable {
  std::size_t structures = 0, shapes = 0, queries = 0;
  Features features{};
  double late = 0, freedom = 1;
  std::vector<double> log_evidence, rss, amplitude, last;  ///< per node; evidence with no floor yet
  std::vector<double> location, kriging;                   ///< (nodes, queries)
  std::vector<double> log_distance;                        ///< per query, not yet to its power
};
[[nodiscard]] NodeTable node_table(Prepared& prepared, std::span<const double> queries,
                                   const ForecastConstants& constants);

}  // namespace glidepath::detail
