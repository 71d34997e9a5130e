// SPDX-License-Identifier: Apache-2.0
#include "forecast/predict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/nodes.hpp"

namespace glidepath::detail {
namespace {

constexpr double kMinTimeStep = 1e-12;
// Log prior of the gain 0 of a rising metric, over that of a loss: mAP follows the rate less.
constexpr double kNoGainRising = 3;
// What does not come of a foreseen move, in deviations of the points from the shape, at most.
constexpr double kMaxMissing = 20;
constexpr const char* kNotFinite =
    "forecast: these losses, by these constants, have no finite forecast";

/// Log prior of every shape: of the parametric ones, then of the past runs.
std::vector<double> shape_priors(const NodeContext& context) {
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
double likeness(const NodeContext& context, const StructureFit& fit, double gain, std::size_t shape,
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

/// Where z is no logarithm, shapes foresee too much: a share of the move comes. A shape that meets
/// the points all but exactly is believed.
double shorten(const NodeContext& context, const NodeCurve& curve, double m) {
  const double move = m - curve.last;
  const double missing = (1 - context.constants.linear_move) * std::abs(move);
  const double most = kMaxMissing * std::sqrt(curve.variance);
  return m - std::copysign(std::min(missing, most), move);
}

/// Location m and scale s of a node at every query, as one component of `out`.
void predict_node(const NodeContext& context, const GridNode& node, std::size_t component,
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

/// Weight of every node: tempered evidence times prior.
std::vector<GridNode> weigh(const NodeContext& context, const Annealing& plan) {
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
        const NodeFit s = fit_node(context, fit, gain, k);
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
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (const double value : logs) sum += std::exp(value - most);
  return most + std::log(sum);
}

/// Log of how much more probable the points are by all nodes of the shapes, weighed by their prior,
/// than as a level with noise, tempered alike. The noise of a level is that of the structure that
/// walks least, which in the learned table does not walk.
double log_gain_over_level(const NodeContext& context, std::span<const GridNode> nodes) {
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
    return std::ranges::all_of(column, holds);
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
  NodeContext context = context_of(observed, queries, past, c);
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

}  // namespace glidepath::detail
