// SPDX-License-Identifier: Apache-2.0
#include "forecast/predict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "forecast/evidence.hpp"
#include "forecast/interpolate.hpp"
#include "forecast/nodes.hpp"

namespace glidepath::detail {
namespace {

constexpr double kFlatShape = 1e-12;  // <v,v> below it: the whitened shape is the constant

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
  double spread2 = 0;  // variance of z, for the floor of the residuals
  double late = 0;     // sd of z over the later half
  double freedom = 1;  // n - 1
  std::size_t bins = 0, queries = 0, parametric = 0, templates = 0;

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
           (context.templates > 0 ? std::log(1 - c.template_mass) : 0.0);
  }
  return std::log(c.template_mass / (2.0 * static_cast<double>(context.templates)));
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

/// Location m and scale s of a node at every query (docs/method/forecast.md, "Predictive").
void predict_node(const Context& context, const Node& node, const StructureFit& fit,
                  std::span<const double> ahead, std::span<const double> log_distance,
                  std::size_t component, Mixture& out) {
  const ForecastConstants& c = context.constants;
  const double gain = c.gains[node.gain].gain;
  const std::size_t k = node.shape;
  const Solution s = solve(context, fit, gain, k);
  const double a = s.amplitude, f_mean = fit.mean_v[k], f_walk = fit.walk_v[k];
  const double offset = fit.mean_u + gain * fit.mean_h - a * f_mean;
  const double walk = fit.walk_u + gain * fit.walk_h - offset * fit.walk_o - a * f_walk;
  const double rest = 1 - fit.walk_o;
  const double last =
      offset + a * context.basis.row(context.bins)[k] + walk - gain * context.annealed_last;
  const double sigma2 = c.inflation * s.rss / context.freedom;
  const double discrepancy = k < context.parametric ? 1.0 : c.template_discrepancy;
  const bool free_amplitude = s.active && !context.fixed(k);
  for (std::size_t j = 0; j < context.queries; ++j) {
    const double f = context.basis.row(context.bins + 1 + j)[k];
    const double annealed =
        context.annealed_queries.empty() ? 0.0 : gain * context.annealed_queries[j];
    const double m = offset + a * f + walk - annealed;
    double q = ahead[j] + fit.walk_variance + rest * rest / fit.oo;
    if (free_amplitude) {
      const double lever = (f - f_walk) - f_mean * rest;
      q += lever * lever / fit.vv[k];
    }
    const double drop = c.drop * (m - last);
    const double distance = c.distance * context.late * log_distance[j];
    const double variance =
        sigma2 * q + discrepancy * discrepancy * (drop * drop + distance * distance);
    out.location[j * out.components + component] = m;
    out.scale[j * out.components + component] = c.width * std::sqrt(variance + 1e-14);
  }
}

}  // namespace

Mixture predict(Prepared& p, std::span<const double> queries, const Annealing& plan,
                std::span<const Template> past, const ForecastConstants& c) {
  // Relative time: x = t / T, or S1(t) / S1(T) where the learning rate is known.
  const double last = p.step.back();
  std::vector<double> relative(p.step.size());
  std::vector<double> ahead_x(queries.size());
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
  for (std::size_t r = 0; r < past.size(); ++r) {
    std::vector<double>& values = templates[r];
    values.reserve(points.size());
    for (const double t : p.bin_step) {
      values.push_back(interpolate(t, past[r].step, past[r].z));
    }
    values.push_back(interpolate(p.bin_step[n - 1], past[r].step, past[r].z));
    for (const double t : queries) values.push_back(interpolate(t, past[r].step, past[r].z));
    templates[past.size() + r] = values;
  }
  thread_local Basis basis;
  fill_basis(c, points, n, templates, basis);

  std::vector<double> annealed_bins, annealed_queries;
  Context context{c, basis, {}, {}};
  if (plan.known()) {
    for (const double t : p.bin_step) {
      annealed_bins.push_back(interpolate(t, plan.step, plan.fraction));
    }
    for (const double t : queries) {
      annealed_queries.push_back(interpolate(t, plan.step, plan.fraction));
    }
    context.annealed_last = interpolate(last, plan.step, plan.fraction);
  }
  context.annealed_bins = annealed_bins;
  context.annealed_queries = annealed_queries;
  context.bins = n;
  context.queries = queried;
  context.parametric = c.shapes.size();
  context.templates = past.size();
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

  // Weight of every node: tempered evidence times prior.
  const std::size_t gains = plan.known() ? c.gains.size() : 1;
  thread_local std::vector<StructureFit> fits;
  thread_local std::vector<double> scratch;
  thread_local std::vector<Node> nodes;
  fits.resize(c.structures.size());
  nodes.clear();
  const Bins data{p.x, p.bin_z, p.count, annealed_bins};
  for (std::size_t i = 0; i < c.structures.size(); ++i) {
    StructureFit& fit = fits[i];
    fit_structure(data, basis, c.structures[i], c.count_cap, c.jitter, scratch, fit);
    for (std::size_t g = 0; g < gains; ++g) {
      const double gain = plan.known() ? c.gains[g].gain : 0.0;
      const double prior = c.structures[i].log_prior + (plan.known() ? c.gains[g].log_prior : 0.0);
      for (std::size_t k = 0; k < basis.shapes; ++k) {
        const Solution s = solve(context, fit, gain, k);
        const double evidence =
            -fit.log_det - 0.5 * std::log(fit.oo) - 0.5 * context.freedom * std::log(s.rss);
        const double log_weight = c.temper * evidence +
                                  (s.amplitude <= 0 ? c.rising_penalty : 0.0) +
                                  node_prior(context, k) + prior;
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

  std::vector<double> log_distance(queried);
  for (std::size_t j = 0; j < queried; ++j) {
    log_distance[j] = std::pow(std::log(std::max(ahead_x[j] / x_last, 1.0001)), c.distance_power);
  }
  std::vector<std::vector<double>> ahead(c.structures.size());
  for (std::size_t i = 0; i < top.size(); ++i) {
    const std::uint32_t structure = top[i].structure;
    std::vector<double>& variance = ahead[structure];
    if (variance.empty()) {
      for (const double x : ahead_x) {
        variance.push_back(fits[structure].variance_ahead(c.structures[structure], x_last, x));
      }
    }
    predict_node(context, top[i], fits[structure], variance, log_distance, i, mixture);
  }
  return mixture;
}

}  // namespace glidepath::detail
