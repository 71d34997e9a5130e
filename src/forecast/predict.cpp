// SPDX-License-Identifier: Apache-2.0
#include "forecast/predict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "forecast/evidence.hpp"
#include "forecast/interpolate.hpp"
#include "forecast/nodes.hpp"

namespace glidepath::detail {
namespace {

constexpr double kFlatShape = 1e-12;  // <v,v> below it: the whitened shape is the constant
constexpr double kMostGain = 3;       // times the gains of the grid

/// A node: which shape under which structure with which annealing gain.
struct Node {
  double log_weight = 0;
  std::uint32_t structure = 0, gain = 0, shape = 0;
};

/// What the nodes have in common.
struct Context {
  const ForecastConstants& constants;
  const Basis& basis;
  std::span<const double> annealed_bins, annealed_queries;
  double annealed_last = 0;
  double gain_unit = 1;  // of the grid of gains
  double spread2 = 0;    // variance of z, for the floor of the residuals
  double late = 0;       // sd of z over the later half
  double freedom = 1;    // n - 1
  // The constants as the features of this trace bend them.
  double temper = 1, rising = 0, inflation = 1, drop = 0, distance = 0, width = 1;
  double narrowing = 1;  // of the scales, by the backtest
  std::array<double, 5> family_prior{};
  std::vector<double> structure_prior{};
  std::size_t bins = 0, queries = 0, parametric = 0, templates = 0;
  double template_mass = 0;                  // prior of all past runs together
  std::span<const double> template_range{};  // of each past run, over bins and queries

  /// Number i of the annealing gains.
  [[nodiscard]] double gain(std::size_t i) const { return gain_unit * constants.gains[i].gain; }

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
struct Solution {
  double amplitude = 0, rss = 0;
  bool active = false;  // the shape differs from a constant
};

Solution solve(const Context& context, const StructureFit& fit, double gain, std::size_t shape) {
  const double uu = fit.uu + gain * (2 * fit.uh + gain * fit.hh);
  const double uv = fit.uv[shape] + gain * fit.hv[shape];
  const double vv = fit.vv[shape];
  Solution s;
  s.active = vv > kFlatShape;
  double explained = 0;
  if (s.active) {
    s.amplitude = context.fixed(shape) ? context.basis.deviation[shape] : uv / vv;
    explained = s.amplitude * (2 * uv - s.amplitude * vv);
  }
  s.rss = std::max(uu - explained, 1e-30) + context.constants.rss_floor * context.spread2;
  return s;
}

double node_prior(const Context& context, std::size_t shape) {
  const ForecastConstants& c = context.constants;
  if (shape < context.parametric) {
    return c.shapes[shape].log_prior +
           context.family_prior[static_cast<std::size_t>(c.shapes[shape].family)] +
           (context.templates > 0 ? std::log(1 - context.template_mass) : 0.0);
  }
  return std::log(context.template_mass / (2.0 * static_cast<double>(context.templates)));
}

/// Log prior of how far a past run must be moved and stretched to resemble this one: a run of the
/// same kind needs little of either. Cauchy, so that a clear likeness outweighs it.
double likeness(const Context& context, const StructureFit& fit, double gain, std::size_t shape,
                double amplitude) {
  const ForecastConstants& c = context.constants;
  double prior = 0;
  if (c.template_shift > 0) {
    const double at = fit.mean_u + gain * fit.mean_h - amplitude * fit.mean_v[shape];
    const double range = context.template_range[(shape - context.parametric) % context.templates];
    const double shift =
        (at - context.basis.mean[shape]) / (c.template_shift * std::max(range, 1e-12));
    prior -= std::log1p(shift * shift);
  }
  if (c.template_stretch > 0 && context.basis.deviation[shape] > 0) {
    const double ratio = std::max(amplitude / context.basis.deviation[shape], 1e-3);
    const double stretch = std::log(ratio) / c.template_stretch;
    prior -= std::log1p(stretch * stretch);
  }
  return prior;
}

/// The heaviest nodes with their weights, heaviest first.
std::vector<Node> heaviest(std::vector<Node> nodes, const ForecastConstants& constants) {
  const auto before = [](const Node& a, const Node& b) {
    if (a.log_weight != b.log_weight) return a.log_weight > b.log_weight;
    if (a.structure != b.structure) return a.structure < b.structure;
    if (a.gain != b.gain) return a.gain < b.gain;
    return a.shape < b.shape;
  };
  const auto keep =
      std::min(nodes.size(), static_cast<std::size_t>(std::max(constants.components, 1)));
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(keep);
  if (keep < nodes.size()) std::nth_element(nodes.begin(), end - 1, nodes.end(), before);
  std::sort(nodes.begin(), end, before);
  nodes.resize(keep);
  if (constants.tail_mass > 0) {
    double total = 0;
    for (const Node& node : nodes) total += std::exp(node.log_weight - nodes[0].log_weight);
    double tail = 0;
    while (nodes.size() > 1) {
      tail += std::exp(nodes.back().log_weight - nodes[0].log_weight);
      if (tail > constants.tail_mass * total) break;
      nodes.pop_back();
    }
  }
  return nodes;
}

/// What is needed of a node to predict with it (docs/method/forecast.md, "Predictive").
struct Line {
  double offset = 0, amplitude = 0, walk = 0, gain = 0;
  double last = 0;      // location at the last bin
  double variance = 0;  // RSS / (n - 1)
  bool free_amplitude = false;
};

Line line_of(const Context& context, const Node& node, const StructureFit& fit) {
  const double gain = context.gain(node.gain);
  const std::size_t k = node.shape;
  const Solution s = solve(context, fit, gain, k);
  Line line;
  line.gain = gain;
  line.amplitude = s.amplitude;
  line.offset = fit.mean_u + gain * fit.mean_h - s.amplitude * fit.mean_v[k];
  line.walk =
      fit.walk_u + gain * fit.walk_h - line.offset * fit.walk_o - s.amplitude * fit.walk_v[k];
  line.last = line.offset + s.amplitude * context.basis.row(context.bins)[k] + line.walk -
              gain * context.annealed_last;
  line.variance = s.rss / context.freedom;
  line.free_amplitude = s.active && !context.fixed(k);
  return line;
}

double location_at(const Context& context, const Line& line, std::size_t shape, std::size_t query) {
  const double annealed =
      context.annealed_queries.empty() ? 0.0 : line.gain * context.annealed_queries[query];
  return line.offset + line.amplitude * context.basis.row(context.bins + 1 + query)[shape] +
         line.walk - annealed;
}

/// Kriging variance in units of the noise.
double kriging_at(const Context& context, const Line& line, const StructureFit& fit,
                  std::size_t shape, std::size_t query, double ahead) {
  const double rest = 1 - fit.walk_o;
  double q = ahead + fit.walk_variance + rest * rest / fit.oo;
  if (line.free_amplitude) {
    const double f = context.basis.row(context.bins + 1 + query)[shape];
    const double lever = (f - fit.walk_v[shape]) - fit.mean_v[shape] * rest;
    q += lever * lever / fit.vv[shape];
  }
  return q;
}

/// Location m and scale s of a node at every query.
void predict_node(const Context& context, const Node& node, const StructureFit& fit,
                  std::span<const double> ahead, std::span<const double> log_distance,
                  std::size_t component, Mixture& out) {
  const Line line = line_of(context, node, fit);
  const double discrepancy =
      node.shape < context.parametric ? 1.0 : context.constants.template_discrepancy;
  // Narrow nodes must not leave gaps between the gains of the grid.
  const double narrowing2 = context.narrowing * context.narrowing;
  const double gain_variance = narrowing2 < 1 && !context.annealed_queries.empty()
                                   ? (1 - narrowing2) * context.cell_variance(node.gain)
                                   : 0.0;
  for (std::size_t j = 0; j < context.queries; ++j) {
    const double m = location_at(context, line, node.shape, j);
    const double q = kriging_at(context, line, fit, node.shape, j, ahead[j]);
    const double drop = context.drop * (m - line.last);
    const double distance = context.distance * context.late * log_distance[j];
    const double variance = context.inflation * line.variance * q +
                            discrepancy * discrepancy * (drop * drop + distance * distance);
    const double annealing =
        gain_variance > 0 ? context.annealed_queries[j] - context.annealed_last : 0.0;
    const double spread = narrowing2 * variance + gain_variance * annealing * annealing;
    out.location[j * out.components + component] = m;
    out.scale[j * out.components + component] = context.width * std::sqrt(spread + 1e-14);
  }
}

double dot(const ForecastConstants::Row& row, const Features& features) {
  double sum = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) sum += row[i] * features[i];
  return sum;
}

/// What the trace looks like; clamped, so that odd traces get the gates of the oddest ones learned
/// from, not more.
Features features_of(const Prepared& p, double late) {
  const double range = std::max(p.range, 1e-300);
  std::size_t half = 0;
  while (half + 1 < p.x.size() && p.x[half] <= 0.5 * p.x.back()) ++half;
  const double trend = (p.bin_z.back() - p.bin_z[half]) / range;
  const double above = (p.bin_z.back() - *std::min_element(p.bin_z.begin(), p.bin_z.end())) / range;
  const auto bounded = [](double v) { return std::clamp(v, -2.0, 2.0); };
  return {bounded((std::log(static_cast<double>(p.points)) - 3.5) / 1.5),
          bounded((std::log(p.noise / range + 1e-4) + 4.5) / 2),
          bounded((std::log(late / range + 1e-4) + 2.5) / 1.5),
          bounded((std::log(p.x[0]) + 3.5) / 1.5),
          bounded(4 * trend),
          bounded(6 * above - 0.5)};
}

/// What the gains of the grid are multiplied by: a run that has hardly learnt gains little by
/// learning more slowly, one that still falls fast gains more.
double gain_unit(const Prepared& p, const ForecastConstants& c) {
  const auto half = static_cast<std::size_t>(
      std::upper_bound(p.bin_step.begin(), p.bin_step.end(), 0.5 * p.bin_step.back()) -
      p.bin_step.begin());
  double unit = 1;
  if (c.gain_range > 0) unit = std::min(1.0, p.range / c.gain_range);
  if (c.gain_fall > 0) {
    unit *= std::clamp((p.bin_z[half] - p.bin_z.back()) / c.gain_fall, 1.0, kMostGain);
  }
  return unit;
}

/// All that the shapes become at given bins and queries, whatever the losses: rows of a batch share
/// it, so it is kept from one forecast to the next.
struct Grid {
  std::vector<double> points{}, count{};  // bins, the last bin again, queries; points in each bin
  std::vector<ForecastConstants::Shape> shapes{};
  std::vector<ForecastConstants::Structure> structures{};
  double count_cap = 0, jitter = 0, distance_power = 0;

  bool operator==(const Grid&) const = default;
};

/// Binned trace, basis and filter of every structure: all that nodes have in common.
struct Model {
  Grid grid{};
  Basis basis{};
  std::vector<StructureFit> fits{};
  std::vector<std::vector<double>> ahead{};  // of each structure: variance_ahead at the queries
  std::vector<double> log_distance{};        // log(x / last) at the queries, to its power
  std::vector<double> ahead_x{}, annealed_bins{}, annealed_queries{}, scratch{}, template_range{};
  Features features{};
};

/// Basis and filters for the bins of `p` and the queries, unless they are there already.
void fill_grid(const Prepared& p, std::vector<double> points,
               std::span<const std::vector<double>> templates, const ForecastConstants& c,
               Model& model) {
  const std::size_t n = p.x.size(), queried = points.size() - n - 1;
  Grid grid{std::move(points), p.count,  c.shapes,        c.structures,
            c.count_cap,       c.jitter, c.distance_power};
  if (templates.empty() && grid == model.grid) return;
  model.grid = {};
  fill_basis(c, grid.points, n, templates, model.basis);
  model.fits.resize(c.structures.size());
  model.ahead.resize(c.structures.size());
  for (std::size_t i = 0; i < c.structures.size(); ++i) {
    whiten_shapes(p.x, p.count, model.basis, c.structures[i], c.count_cap, c.jitter, model.fits[i]);
    model.ahead[i].resize(queried);
    for (std::size_t j = 0; j < queried; ++j) {
      model.ahead[i][j] =
          model.fits[i].variance_ahead(c.structures[i], p.x[n - 1], grid.points[n + 1 + j]);
    }
  }
  model.log_distance.resize(queried);
  for (std::size_t j = 0; j < queried; ++j) {
    const double x = std::max(grid.points[n + 1 + j] / p.x[n - 1], 1.0001);
    model.log_distance[j] = std::pow(std::log(x), c.distance_power);
  }
  if (templates.empty()) model.grid = std::move(grid);
}

/// Bins the trace and fills `model`; what it returns refers to it.
Context build(Prepared& p, std::span<const double> queries, const Annealing& plan,
              std::span<const Template> past, const ForecastConstants& c, Model& model) {
  // Relative time: x = t / T, or S1(t) / S1(T) where the learning rate is known.
  const double last = p.step.back();
  std::vector<double> relative(p.step.size());
  std::vector<double>& ahead_x = model.ahead_x;
  ahead_x.resize(queries.size());
  if (plan.known()) {
    const double unit = interpolate(last, plan.step, plan.time);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < p.step.size(); ++i) {
      const double x = interpolate(p.step[i], plan.step, plan.time) / unit;
      const double before = i > 0 ? interpolate(p.step[i - 1], plan.step, plan.time) / unit : 0;
      if (!(x > 1e-12) || (i > 0 && !(x - before > 1e-12))) continue;  // lr = 0: no time passes
      relative[kept] = x;
      p.step[kept] = p.step[i];
      p.z[kept] = p.z[i];
      p.count[kept] = p.count[i];
      ++kept;
    }
    relative.resize(kept);
    p.step.resize(kept);
    p.z.resize(kept);
    p.count.resize(kept);
    for (std::size_t j = 0; j < queries.size(); ++j) {
      ahead_x[j] = std::max(interpolate(queries[j], plan.step, plan.time) / unit, 1.0);
    }
  } else {
    for (std::size_t i = 0; i < p.step.size(); ++i) relative[i] = std::max(p.step[i] / last, 1e-30);
    for (std::size_t j = 0; j < queries.size(); ++j) {
      ahead_x[j] = std::max(queries[j] / last, 1.0);
    }
  }
  bin_points(p, relative, c.bins);
  const std::size_t n = p.x.size(), queried = queries.size();
  const double x_last = p.x[n - 1];

  // Shapes and past runs at the bins, at the last bin again, and at the queries.
  std::vector<double> points(p.x);
  points.push_back(x_last);
  points.insert(points.end(), ahead_x.begin(), ahead_x.end());
  std::vector<std::vector<double>> templates(2 * past.size());
  model.template_range.clear();
  for (std::size_t r = 0; r < past.size(); ++r) {
    std::vector<double>& values = templates[r];
    values.reserve(points.size());
    for (const double t : p.bin_step) {
      values.push_back(interpolate(t, past[r].step, past[r].z));
    }
    values.push_back(interpolate(p.bin_step[n - 1], past[r].step, past[r].z));
    for (const double t : queries) values.push_back(interpolate(t, past[r].step, past[r].z));
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    model.template_range.push_back(*most - *least);
    templates[past.size() + r] = values;
  }
  fill_grid(p, std::move(points), templates, c, model);
  const Basis& basis = model.basis;

  std::vector<double>&annealed_bins = model.annealed_bins,
  &annealed_queries = model.annealed_queries;
  annealed_bins.clear();
  annealed_queries.clear();
  Context context{c, basis, {}, {}};
  if (plan.known()) {
    for (const double t : p.bin_step) {
      annealed_bins.push_back(interpolate(t, plan.step, plan.fraction));
    }
    for (const double t : queries) {
      annealed_queries.push_back(interpolate(t, plan.step, plan.fraction));
    }
    context.annealed_last = interpolate(last, plan.step, plan.fraction);
    context.gain_unit = gain_unit(p, c);
  }
  context.annealed_bins = annealed_bins;
  context.annealed_queries = annealed_queries;
  context.bins = n;
  context.queries = queried;
  context.parametric = c.shapes.size();
  context.templates = past.size();
  context.template_range = model.template_range;
  const double odds = c.template_odds * static_cast<double>(past.size());
  context.template_mass = c.template_odds > 0 ? odds / (1 + odds) : c.template_mass;
  context.freedom = static_cast<double>(std::max<std::size_t>(n - 1, 1));

  // Weighted variance of z, all of it and its later half.
  double weight = 0, mean = 0, late_weight = 0, late_mean = 0;
  for (std::size_t i = 0; i < n; ++i) {
    weight += p.count[i];
    mean += p.count[i] * p.bin_z[i];
    if (p.x[i] > 0.5 * x_last) {
      late_weight += p.count[i];
      late_mean += p.count[i] * p.bin_z[i];
    }
  }
  mean /= weight;
  late_mean /= late_weight;
  double late2 = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double d = p.bin_z[i] - mean, d_late = p.bin_z[i] - late_mean;
    context.spread2 += p.count[i] * d * d / weight;
    if (p.x[i] > 0.5 * x_last) late2 += p.count[i] * d_late * d_late / late_weight;
  }
  context.spread2 = std::max(context.spread2, 1e-16);
  context.late = std::sqrt(late2);

  const Features features = model.features = features_of(p, context.late);
  const ForecastConstants::Gate& gate = c.gate;
  context.temper = c.temper * std::exp(dot(gate.temper, features));
  context.rising = c.rising_penalty + dot(gate.rising, features);
  context.inflation = c.inflation * std::exp(dot(gate.inflation, features));
  context.drop = c.drop * std::exp(dot(gate.drop, features));
  context.distance = c.distance * std::exp(dot(gate.distance, features));
  context.width = c.width * std::exp(dot(gate.width, features));
  for (std::size_t i = 0; i < gate.family.size(); ++i) {
    context.family_prior[i] = dot(gate.family[i], features);
  }
  for (std::size_t i = 0; i < c.structures.size(); ++i) {
    context.structure_prior.push_back(c.structures[i].log_prior + dot(gate.structure[i], features));
  }

  for (StructureFit& fit : model.fits) {
    fit_structure(p.bin_z, annealed_bins, basis.stride, model.scratch, fit);
  }
  return context;
}

}  // namespace

Mixture predict(Prepared& p, std::span<const double> queries, const Annealing& plan,
                std::span<const Template> past, const ForecastConstants& c, double narrowing) {
  thread_local Model model;
  thread_local std::vector<Node> nodes;
  Context context = build(p, queries, plan, past, c, model);
  context.narrowing = narrowing;
  const std::vector<StructureFit>& fits = model.fits;
  const std::size_t queried = queries.size();

  // Weight of every node: tempered evidence times prior.
  const std::size_t gains = plan.falls ? c.gains.size() : 1;
  nodes.clear();
  for (std::size_t i = 0; i < c.structures.size(); ++i) {
    const StructureFit& fit = fits[i];
    for (std::size_t g = 0; g < gains; ++g) {
      const double gain = plan.falls ? context.gain(g) : 0.0;
      const double prior = context.structure_prior[i] + (plan.falls ? c.gains[g].log_prior : 0.0);
      for (std::size_t k = 0; k < model.basis.shapes; ++k) {
        const Solution s = solve(context, fit, gain, k);
        const double evidence =
            -fit.log_det - 0.5 * std::log(fit.oo) - 0.5 * context.freedom * std::log(s.rss);
        const double log_weight =
            context.temper * evidence + (s.amplitude <= 0 ? context.rising : 0.0) +
            node_prior(context, k) + prior +
            (k < context.parametric ? 0.0 : likeness(context, fit, gain, k, s.amplitude));
        nodes.push_back({log_weight, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(g),
                         static_cast<std::uint32_t>(k)});
      }
    }
  }
  const std::vector<Node> top = heaviest(nodes, c);

  Mixture mixture;
  mixture.components = top.size();
  mixture.queries = queried;
  mixture.weight.resize(top.size());
  mixture.location.resize(queried * top.size());
  mixture.scale.resize(queried * top.size());
  double total = 0;
  for (std::size_t i = 0; i < top.size(); ++i) {
    mixture.weight[i] = std::exp(top[i].log_weight - top[0].log_weight);
    total += mixture.weight[i];
  }
  for (double& w : mixture.weight) w /= total;

  for (std::size_t i = 0; i < top.size(); ++i) {
    const std::uint32_t structure = top[i].structure;
    predict_node(context, top[i], fits[structure], model.ahead[structure], model.log_distance, i,
                 mixture);
  }
  return mixture;
}

NodeTable node_table(Prepared& p, std::span<const double> queries, const ForecastConstants& c) {
  Model model;
  const Context context = build(p, queries, {}, {}, c, model);
  NodeTable t;
  t.structures = c.structures.size();
  t.shapes = c.shapes.size();
  t.queries = queries.size();
  t.features = model.features;
  t.late = context.late;
  t.freedom = context.freedom;
  const double x_last = p.x.back();
  for (const double x : model.ahead_x) {
    t.log_distance.push_back(std::log(std::max(x / x_last, 1.0001)));
  }
  for (std::size_t i = 0; i < t.structures; ++i) {
    const StructureFit& fit = model.fits[i];
    for (std::size_t k = 0; k < t.shapes; ++k) {
      const Node node{0, static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(k)};
      const Line line = line_of(context, node, fit);
      t.log_evidence.push_back(-fit.log_det - 0.5 * std::log(fit.oo));
      t.rss.push_back(line.variance * context.freedom);
      t.amplitude.push_back(line.amplitude);
      t.last.push_back(line.last);
      for (std::size_t j = 0; j < t.queries; ++j) {
        const double ahead = model.ahead[i][j];
        t.location.push_back(location_at(context, line, k, j));
        t.kriging.push_back(kriging_at(context, line, fit, k, j, ahead));
      }
    }
  }
  return t;
}

}  // namespace glidepath::detail
