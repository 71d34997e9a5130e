// SPDX-License-Identifier: Apache-2.0
#include "forecast/nodes.hpp"

#include <utility>

#include "common/interpolate.hpp"

namespace glidepath::detail {
namespace {

Annealed annealed_at(const Observed& observed, const Points& bins, std::span<const double> queries,
                     const ForecastConstants& c) {
  Annealed annealed;
  const Annealing& plan = observed.plan;
  if (!plan.known()) return annealed;
  const auto fraction = [&](double t) { return interpolate(t, plan.step, plan.fraction); };
  for (const double t : bins.step) annealed.bins.push_back(fraction(t));
  for (const double t : queries) annealed.queries.push_back(fraction(t));
  annealed.last = fraction(observed.last());
  annealed.gain_unit = gain_unit(observed.run, bins, observed.last() / plan.step.back(), c);
  return annealed;
}

}  // namespace

NodeContext context_of(const Observed& observed, std::span<const double> queries,
                       std::span<const Template> past, const ForecastConstants& c) {
  const Points bins = bin(observed.points, observed.run.coordinate, c.bins);
  std::vector<double> ahead;
  ahead.reserve(queries.size());
  for (const double step : queries) ahead.push_back(observed.ahead(step));
  PastShapes shapes = shapes_of(past, bins, queries);
  ShapeGrid& grid = grid_at(bins, ahead, shapes.values, c);

  NodeContext context{c, grid};
  context.annealed = annealed_at(observed, bins, queries, c);
  context.past_range = std::move(shapes.range);
  context.variation = variation_of(bins);
  context.features = features_of(observed.run, bins, context.variation.late);
  context.gated = gated(c, context.features);
  context.rising = observed.run.coordinate.sign < 0;
  context.scheduled = observed.plan.known();
  context.linear = !observed.run.coordinate.logarithmic;
  context.leans = !context.linear && (!context.scheduled || !shows_too_little(observed.run));
  context.bins = bins.x.size();
  context.queries = queries.size();
  context.parametric = c.shapes.size();
  context.templates = past.size();
  context.freedom = static_cast<double>(std::max<std::size_t>(context.bins - 1, 1));
  for (const double log_ahead : grid.log_ahead) {
    const double widen = context.scheduled ? 0.0 : context.gated.widen;
    context.widening.push_back(std::exp(widen * log_ahead));
    context.lean.push_back(context.gated.lean + context.gated.lean_far * log_ahead);
  }
  const double odds = c.template_odds * static_cast<double>(past.size());
  context.template_mass = odds / (1 + odds);
  for (StructureFit& fit : grid.fits) {
    fit_structure(bins.z, context.annealed.bins, grid.basis.stride, fit);
  }
  return context;
}

NodeCurve curve_of(const NodeContext& context, const GridNode& node, const StructureFit& fit) {
  const double gain = context.gain(node.gain);
  const std::size_t k = node.shape;
  const NodeFit s = fit_node(context, fit, gain, k);
  NodeCurve curve;
  curve.gain = gain;
  curve.amplitude = s.amplitude;
  curve.offset = fit.mean_u + gain * fit.mean_h - s.amplitude * fit.mean_v[k];
  curve.walk =
      fit.walk_u + gain * fit.walk_h - curve.offset * fit.walk_o - s.amplitude * fit.walk_v[k];
  curve.last = curve.offset + s.amplitude * context.grid.basis.row(context.bins)[k] + curve.walk -
               gain * context.annealed.last;
  curve.variance = s.rss / context.freedom;
  curve.free_amplitude = s.active && !context.fixed(k);
  return curve;
}

NodeTable node_table(const Prepared& run, std::span<const double> queries,
                     const ForecastConstants& c) {
  const Annealing no_plan;
  const Observed observed(run, no_plan);
  const NodeContext context = context_of(observed, queries, {}, c);
  const ShapeGrid& grid = context.grid;
  NodeTable t;
  t.structures = c.structures.size();
  t.shapes = c.shapes.size();
  t.queries = queries.size();
  t.features = context.features;
  t.late = context.variation.late;
  t.freedom = context.freedom;
  const double last = grid.key.points[context.bins];
  for (const double step : queries) {
    t.log_distance.push_back(std::log(std::max(observed.ahead(step) / last, kMinAhead)));
  }
  for (std::size_t i = 0; i < t.structures; ++i) {
    const StructureFit& fit = grid.fits[i];
    for (std::size_t k = 0; k < t.shapes; ++k) {
      const GridNode node{0, static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(k)};
      const NodeCurve curve = curve_of(context, node, fit);
      t.log_evidence.push_back(log_evidence(fit));
      t.rss.push_back(curve.variance * context.freedom);
      t.amplitude.push_back(curve.amplitude);
      t.last.push_back(curve.last);
      for (std::size_t j = 0; j < t.queries; ++j) {
        t.location.push_back(location_at(context, curve, k, j));
        t.kriging.push_back(kriging_at(context, curve, fit, k, j, grid.ahead[i][j]));
      }
    }
  }
  return t;
}

}  // namespace glidepath::detail
