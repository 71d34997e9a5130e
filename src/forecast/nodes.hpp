// SPDX-License-Identifier: Apache-2.0
// A node is a shape under a structure with an annealing gain: what a run makes of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "forecast/constants.hpp"
#include "forecast/evidence.hpp"
#include "forecast/gates.hpp"
#include "forecast/predict.hpp"
#include "forecast/prepare.hpp"
#include "forecast/shape_grid.hpp"

namespace glidepath::detail {

constexpr double kFlatShape = 1e-12;  ///< <v,v> below it: the whitened shape is the constant

/// Annealing fraction at the bins, the last point and the queries; empty without a plan.
struct Annealed {
  std::vector<double> bins{}, queries{};
  double last = 0;
  double gain_unit = 1;  // of the grid of gains
};

/// A node: which shape under which structure with which annealing gain.
struct GridNode {
  double log_weight = 0;
  std::uint32_t structure = 0, gain = 0, shape = 0;
};

/// What the nodes have in common.
struct NodeContext {
  const ForecastConstants& constants;
  const ShapeGrid& grid;
  Annealed annealed{};
  std::vector<double> past_range{};
  Variation variation{};
  Features features{};
  Gated gated{};
  bool leans = false;                      // like the logs that the lean was learned from
  bool linear = false;                     // z is no logarithm: the metric reaches 0 or is signed
  bool scheduled = false;                  // a learning rate is known
  double freedom = 1;                      // bins - 1
  bool rising = false;                     // the metric, as the run improves
  double narrowing = 1;                    // of the scales, by the backtest
  double template_mass = 0;                // prior of all past runs together
  std::vector<double> widening{}, lean{};  // at the queries: factor of the scale, scales of a move
  std::size_t bins = 0, queries = 0, parametric = 0, templates = 0;

  /// Number i of the annealing gains.
  [[nodiscard]] double gain(std::size_t i) const {
    return annealed.gain_unit * constants.gains[i].gain;
  }

  /// Variance of the gains that number i stands for, half of the way to its neighbours.
  [[nodiscard]] double cell_variance(std::size_t i) const {
    const double low = i > 0 ? 0.5 * (gain(i - 1) + gain(i)) : gain(i);
    const double high =
        i + 1 < constants.gains.size() ? 0.5 * (gain(i) + gain(i + 1)) : 2 * gain(i) - low;
    return (high - low) * (high - low) / 12;
  }

  /// A template with its amplitude fixed at 1: the first of the two that each past run gives.
  [[nodiscard]] bool fixed(std::size_t shape) const {
    return shape >= parametric && shape < parametric + templates;
  }
};

/// Bins the run and fits every structure to it. The context refers to a grid of this thread.
[[nodiscard]] NodeContext context_of(const Observed& observed, std::span<const double> queries,
                                     std::span<const Template> past, const ForecastConstants& c);

/// Amplitude and residual sum of squares of a node.
struct NodeFit {
  double amplitude = 0, rss = 0;
  bool active = false;  // the shape differs from a constant
};

[[nodiscard]] inline NodeFit fit_node(const NodeContext& context, const StructureFit& fit,
                                      double gain, std::size_t shape) {
  const double uu = fit.uu + gain * (2 * fit.uh + gain * fit.hh);
  const double uv = fit.uv[shape] + gain * fit.hv[shape];
  const double vv = fit.vv[shape];
  NodeFit node;
  node.active = vv > kFlatShape;
  double explained = 0;
  if (node.active) {
    node.amplitude = context.fixed(shape) ? context.grid.basis.deviation[shape] : uv / vv;
    explained = node.amplitude * (2 * uv - node.amplitude * vv);
  }
  node.rss =
      std::max(uu - explained, 1e-30) + context.constants.rss_floor * context.variation.variance;
  return node;
}

/// Log evidence of a structure, without what depends on the residuals.
[[nodiscard]] inline double log_evidence(const StructureFit& fit) {
  return -fit.log_det - 0.5 * std::log(fit.oo);
}

/// What is needed of a node to predict with it (docs/method/forecast.md, "Predictive").
struct NodeCurve {
  double offset = 0, amplitude = 0, walk = 0, gain = 0;
  double last = 0;      // location at the last bin
  double variance = 0;  // RSS / (bins - 1)
  bool free_amplitude = false;
};

[[nodiscard]] NodeCurve curve_of(const NodeContext& context, const GridNode& node,
                                 const StructureFit& fit);

[[nodiscard]] inline double location_at(const NodeContext& context, const NodeCurve& curve,
                                        std::size_t shape, std::size_t query) {
  const double annealed =
      context.annealed.queries.empty() ? 0.0 : curve.gain * context.annealed.queries[query];
  return curve.offset + curve.amplitude * context.grid.basis.row(context.bins + 1 + query)[shape] +
         curve.walk - annealed;
}

/// Kriging variance in units of the noise.
[[nodiscard]] inline double kriging_at(const NodeContext& context, const NodeCurve& curve,
                                       const StructureFit& fit, std::size_t shape,
                                       std::size_t query, double ahead) {
  const double rest = 1 - fit.walk_o;
  double q = ahead + fit.walk_variance + rest * rest / fit.oo;
  if (curve.free_amplitude) {
    const double f = context.grid.basis.row(context.bins + 1 + query)[shape];
    const double lever = (f - fit.walk_v[shape]) - fit.mean_v[shape] * rest;
    q += lever * lever / fit.vv[shape];
  }
  return q;
}

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
