// SPDX-License-Identifier: Apache-2.0
#include "forecast/predict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/evidence.hpp"
#include "forecast/gates.hpp"
#include "forecast/shape_grid.hpp"

namespace glidepath::detail {
namespace {

constexpr double kFlatShape = 1e-12;  // <v,v> below it: the whitened shape is the constant
constexpr double kMinTimeStep = 1e-12;
// Log prior of the gain 0 of a rising metric, over that of a loss: mAP follows the rate less.
constexpr double kNoGainRising = 3;
// What does not come of a foreseen move, in deviations of the points from the shape, at most.
constexpr double kMaxMissing = 20;
constexpr const char* kNotFinite =
    "forecast: these losses, by these constants, have no finite forecast";

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
struct Context {
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

/// Amplitude and residual sum of squares of a node.
struct NodeFit {
  double amplitude = 0, rss = 0;
  bool active = false;  // the shape differs from a constant
};

NodeFit solve(const Context& context, const StructureFit& fit, double gain, std::size_t shape) {
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
double log_evidence(const StructureFit& fit) { return -fit.log_det - 0.5 * std::log(fit.oo); }

/// Log prior of every shape: of the parametric ones, then of the past runs.
std::vector<double> shape_priors(const Context& context) {
  std::vector<double> priors;
  priors.reserve(context.grid.basis.shapes);
  const double rest = context.templates > 0 ? std::log(1 - context.template_mass) : 0.0;
  for (const ForecastConstants::Shape& shape : context.constants.shapes) {
    const auto family = static_cast<std::size_t>(shape.family);
    priors.push_back(shape.log_prior + context.gated.family_prior[family] + rest);
  }
  const double past = 2.0 * static_cast<double>(context.templates);
  priors.resize(context.grid.basis.shapes, std::log(context.template_mass / past));
  return priors;
}

/// Log prior of how far a past run must be moved and stretched to resemble this one: a run of the
/// same kind needs little of either. Cauchy, so that a clear likeness outweighs it.
double likeness(const Context& context, const StructureFit& fit, double gain, std::size_t shape,
                double amplitude) {
  const ForecastConstants& c = context.constants;
  const Basis& basis = context.grid.basis;
  const double at = fit.mean_u + gain * fit.mean_h - amplitude * fit.mean_v[shape];
  const double range = context.past_range[(shape - context.parametric) % context.templates];
  const double shift = (at - basis.mean[shape]) / (c.template_shift * std::max(range, 1e-12));
  double prior = 0;
  prior -= std::log1p(shift * shift);
  if (basis.deviation[shape] > 0) {
    const double ratio = std::max(amplitude / basis.deviation[shape], 1e-3);
    const double stretch = std::log(ratio) / c.template_stretch;
    prior -= std::log1p(stretch * stretch);
  }
  return prior;
}

/// The heaviest nodes with their weights, heaviest first.
std::vector<GridNode> heaviest(std::vector<GridNode> nodes, const ForecastConstants& constants) {
  const auto before = [](const GridNode& a, const GridNode& b) {
    if (a.log_weight != b.log_weight) return a.log_weight > b.log_weight;
    if (a.structure != b.structure) return a.structure < b.structure;
    if (a.gain != b.gain) return a.gain < b.gain;
    return a.shape < b.shape;
  };
  const auto keep = std::min(nodes.size(), static_cast<std::size_t>(constants.components));
  const auto end = nodes.begin() + keep;
  if (keep < nodes.size()) std::nth_element(nodes.begin(), end - 1, nodes.end(), before);
  std::sort(nodes.begin(), end, before);
  nodes.resize(keep);
  double total = 0, tail = 0;
  for (const GridNode& node : nodes) total += std::exp(node.log_weight - nodes[0].log_weight);
  while (nodes.size() > 1) {
    tail += std::exp(nodes.back().log_weight - nodes[0].log_weight);
    if (tail > constants.tail_mass * total) break;
    nodes.pop_back();
  }
  return nodes;
}

/// What is needed of a node to predict with it (docs/method/forecast.md, "Predictive").
struct NodeCurve {
  double offset = 0, amplitude = 0, walk = 0, gain = 0;
  double last = 0;      // location at the last bin
  double variance = 0;  // RSS / (bins - 1)
  bool free_amplitude = false;
};

NodeCurve curve_of(const Context& context, const GridNode& node, const StructureFit& fit) {
  const double gain = context.gain(node.gain);
  const std::size_t k = node.shape;
  const NodeFit s = solve(context, fit, gain, k);
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

double location_at(const Context& context, const NodeCurve& curve, std::size_t shape,
                   std::size_t query) {
  const double annealed =
      context.annealed.queries.empty() ? 0.0 : curve.gain * context.annealed.queries[query];
  return curve.offset + curve.amplitude * context.grid.basis.row(context.bins + 1 + query)[shape] +
         curve.walk - annealed;
}

/// Kriging variance in units of the noise.
double kriging_at(const Context& context, const NodeCurve& curve, const StructureFit& fit,
                  std::size_t shape, std::size_t query, double ahead) {
  const double rest = 1 - fit.walk_o;
  double q = ahead + fit.walk_variance + rest * rest / fit.oo;
  if (curve.free_amplitude) {
    const double f = context.grid.basis.row(context.bins + 1 + query)[shape];
    const double lever = (f - fit.walk_v[shape]) - fit.mean_v[shape] * rest;
    q += lever * lever / fit.vv[shape];
  }
  return q;
}

/// Where z is no logarithm, shapes foresee too much: a share of the move comes. A shape that meets
/// the points all but exactly is believed.
double shorten(const Context& context, const NodeCurve& curve, double m) {
  const double move = m - curve.last;
  const double missing = (1 - context.constants.linear_move) * std::abs(move);
  const double most = kMaxMissing * std::sqrt(curve.variance);
  return m - std::copysign(std::min(missing, most), move);
}

/// Location m and scale s of a node at every query, as one component of `out`.
void predict_node(const Context& context, const GridNode& node, std::size_t component,
                  Mixture& out) {
  const StructureFit& fit = context.grid.fits[node.structure];
  const std::vector<double>& ahead = context.grid.ahead[node.structure];
  const Annealed& annealed = context.annealed;
  const Gated& gated = context.gated;
  const NodeCurve curve = curve_of(context, node, fit);
  const double discrepancy =
      node.shape < context.parametric ? 1.0 : context.constants.template_discrepancy;
  const bool shape = node.shape < context.parametric;
  const bool corrected = context.leans && shape;
  const bool shortened = context.linear && shape;
  // Narrow nodes must not leave gaps between the gains of the grid.
  const double narrowing2 = context.narrowing * context.narrowing;
  const double gain_variance = narrowing2 < 1 && !annealed.queries.empty()
                                   ? (1 - narrowing2) * context.cell_variance(node.gain)
                                   : 0.0;
  for (std::size_t j = 0; j < context.queries; ++j) {
    const double m = location_at(context, curve, node.shape, j);
    const double q = kriging_at(context, curve, fit, node.shape, j, ahead[j]);
    const double drop = gated.drop * (m - curve.last);
    const double distance = gated.distance * context.variation.late * context.grid.log_distance[j];
    const double variance = gated.inflation * curve.variance * q +
                            discrepancy * discrepancy * (drop * drop + distance * distance);
    const double annealing = gain_variance > 0 ? annealed.queries[j] - annealed.last : 0.0;
    const double spread = narrowing2 * variance + gain_variance * annealing * annealing;
    double& location = out.location[j * out.components + component];
    double& scale = out.scale[j * out.components + component];
    location = shortened ? shorten(context, curve, m) : m;
    scale = gated.width * std::sqrt(spread + 1e-14);
    if (!corrected) continue;
    scale *= context.widening[j];
    location += context.lean[j] * scale;
  }
}

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

/// Bins the run and fits every structure to it. The context refers to a grid of this thread.
Context build(const Observed& observed, std::span<const double> queries,
              std::span<const Template> past, const ForecastConstants& c) {
  const Points bins = bin(observed.points, observed.run.coordinate, c.bins);
  std::vector<double> ahead;
  ahead.reserve(queries.size());
  for (const double step : queries) ahead.push_back(observed.ahead(step));
  PastShapes shapes = shapes_of(past, bins, queries);
  ShapeGrid& grid = grid_at(bins, ahead, shapes.values, c);

  Context context{c, grid};
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

/// Weight of every node: tempered evidence times prior.
std::vector<GridNode> weigh(const Context& context, const Annealing& plan) {
  const bool falls = plan.falls;
  const ForecastConstants& c = context.constants;
  const std::size_t gains = falls ? c.gains.size() : 1, shapes = context.grid.basis.shapes;
  const std::vector<double> shape_prior = shape_priors(context);
  std::vector<GridNode> nodes;
  nodes.reserve(c.structures.size() * gains * shapes);
  for (std::size_t i = 0; i < c.structures.size(); ++i) {
    const StructureFit& fit = context.grid.fits[i];
    const double of_structure = log_evidence(fit);
    for (std::size_t g = 0; g < gains; ++g) {
      const double gain = falls ? context.gain(g) : 0.0;
      const double prior = context.gated.structure_prior[i] + (falls ? c.gains[g].log_prior : 0.0) +
                           (falls && context.rising && gain == 0 ? kNoGainRising : 0.0);
      for (std::size_t k = 0; k < shapes; ++k) {
        const NodeFit s = solve(context, fit, gain, k);
        const double evidence = of_structure - 0.5 * context.freedom * std::log(s.rss);
        const double log_weight =
            context.gated.temper * evidence + (s.amplitude <= 0 ? context.gated.rising : 0.0) +
            shape_prior[k] + prior +
            (k < context.parametric ? 0.0 : likeness(context, fit, gain, k, s.amplitude));
        if (!std::isfinite(log_weight)) continue;  // constants beyond all measure
        nodes.push_back({log_weight, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(g),
                         static_cast<std::uint32_t>(k)});
      }
    }
  }
  return nodes;
}

double log_sum(std::span<const double> logs) {
  if (logs.empty()) return -kInfinity;
  const double most = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double value : logs) sum += std::exp(value - most);
  return most + std::log(sum);
}

/// Log of how much more probable the points are by all nodes of the shapes, weighed by their prior,
/// than as a level with noise, tempered alike. The noise of a level is that of the structure that
/// walks least, which in the learned table does not walk.
double log_gain_over_level(const Context& context, std::span<const GridNode> nodes) {
  const ForecastConstants& c = context.constants;
  const auto least =
      std::ranges::min_element(c.structures, {}, &ForecastConstants::Structure::lambda);
  const StructureFit& level = context.grid.fits[least - c.structures.begin()];
  const double rss = level.uu + c.rss_floor * context.variation.variance;
  std::vector<double> weight, prior = shape_priors(context);
  prior.resize(context.parametric);
  for (const GridNode& node : nodes) weight.push_back(node.log_weight);
  const double gain =
      log_sum(weight) - log_sum(prior) - log_sum(context.gated.structure_prior) -
      context.gated.temper * (log_evidence(level) - 0.5 * context.freedom * std::log(rss));
  if (std::isnan(gain)) refuse(kNotFinite);
  return gain;
}

/// Throws InputError where the constants, which anybody may give, leave nothing that is finite.
void require_finite(const Mixture& mixture) {
  const auto every = [](const std::vector<double>& column, auto holds) {
    return std::all_of(column.begin(), column.end(), holds);
  };
  if (mixture.components == 0 || !every(mixture.location, is_location) ||
      !every(mixture.scale, is_scale)) {
    refuse(kNotFinite);
  }
}

}  // namespace

Observed::Observed(const Prepared& observed_run, const Annealing& known_plan)
    : run(observed_run), plan(known_plan) {
  const std::size_t n = run.step.size();
  if (!plan.known()) {
    unit_ = last();
    points.step = run.step;
    points.z = run.z;
    points.count = run.count;
    points.x.resize(n);
    for (std::size_t i = 0; i < n; ++i) points.x[i] = std::max(run.step[i] / unit_, 1e-30);
    return;
  }
  unit_ = interpolate(last(), plan.step, plan.time);
  double before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = interpolate(run.step[i], plan.step, plan.time) / unit_;
    const bool passes = x > kMinTimeStep && (i == 0 || x - before > kMinTimeStep);
    before = x;
    if (!passes) continue;
    points.x.push_back(x);
    points.step.push_back(run.step[i]);
    points.z.push_back(run.z[i]);
    points.count.push_back(run.count[i]);
  }
}

double Observed::ahead(double step) const {
  const double time = plan.known() ? interpolate(step, plan.step, plan.time) : step;
  return std::max(time / unit_, 1.0);
}

Mixture predict(const Observed& observed, std::span<const double> queries,
                std::span<const Template> past, const ForecastConstants& c, double narrowing,
                Evidence* evidence) {
  Context context = build(observed, queries, past, c);
  context.narrowing = narrowing;
  std::vector<GridNode> nodes = weigh(context, observed.plan);
  if (evidence != nullptr) evidence->log_gain_over_level = log_gain_over_level(context, nodes);
  const std::vector<GridNode> top = heaviest(std::move(nodes), c);

  Mixture mixture;
  mixture.components = top.size();
  mixture.queries = queries.size();
  mixture.degrees = c.degrees;
  mixture.weight.resize(top.size());
  mixture.location.resize(queries.size() * top.size());
  mixture.scale.resize(queries.size() * top.size());
  double total = 0;
  for (std::size_t i = 0; i < top.size(); ++i) {
    mixture.weight[i] = std::exp(top[i].log_weight - top[0].log_weight);
    total += mixture.weight[i];
  }
  for (double& w : mixture.weight) w /= total;
  for (std::size_t i = 0; evidence != nullptr && i < top.size(); ++i) {
    if (top[i].shape >= context.parametric) evidence->past += mixture.weight[i];
  }
  for (std::size_t i = 0; i < top.size(); ++i) predict_node(context, top[i], i, mixture);
  require_finite(mixture);
  return mixture;
}

NodeTable node_table(const Prepared& run, std::span<const double> queries,
                     const ForecastConstants& c) {
  const Annealing no_plan;
  const Observed observed(run, no_plan);
  const Context context = build(observed, queries, {}, c);
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
