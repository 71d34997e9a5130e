// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "forecast/annealing.hpp"
#include "forecast/constants.hpp"
#include "forecast/prepare.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {

/// Steps ahead are taken as at least this multiple of the last one, so that the logarithm is not 0.
inline constexpr double kMinAhead = 1.0001;

/// A past run as a shape: its steps and its metric in the coordinate z of the live run.
struct Template {
  std::vector<double> step, z;
};

/// A run in relative time: that of its steps, or of the plan where one is known, and then of the
/// points at which time passes only (at lr = 0 none does). Borrows both.
struct Observed {
  const Prepared& run;
  const Annealing& plan;
  Points points;

  Observed(const Prepared& run, const Annealing& plan);
  [[nodiscard]] double last() const { return run.step.back(); }
  /// Relative time of a step after the last one, at least 1.
  [[nodiscard]] double ahead(double step) const;

 private:
  double unit_ = 1;
};

/// The mixture over all nodes (shape, structure, annealing gain) at the shifted steps `queries`.
/// The run has status good. `narrowing` is a factor of the scales of shapes, which leaves what is
/// not known of the gain.
[[nodiscard]] Mixture predict(const Observed& observed, std::span<const double> queries,
                              std::span<const Template> past, const ForecastConstants& constants,
                              double narrowing = 1);

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
[[nodiscard]] NodeTable node_table(const Prepared& run, std::span<const double> queries,
                                   const ForecastConstants& constants);

}  // namespace glidepath::detail
