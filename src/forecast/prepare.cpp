// SPDX-License-Identifier: Apache-2.0
#include "forecast/prepare.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/numbers.hpp"
#include "forecast/interpolate.hpp"

namespace glidepath::detail {
namespace {

constexpr double kMaxLog = 690.0;  // exp of it is finite, with room for a sum

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

/// Pulls in isolated points: those further from the median of their six neighbours than `limit`
/// times the spread of those neighbours (their middle four) and the typical successive difference.
/// A steep but monotone curve lies between its neighbours, so it is left alone; a level that moves
/// takes its neighbours with it.
void pull_in_spikes(std::vector<double>& z, double limit) {
  const std::size_t n = z.size();
  if (n < 7) return;
  std::vector<double> differences(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) differences[i] = std::abs(z[i + 1] - z[i]);
  const double typical = median(differences);
  const std::vector<double> raw = z;
  for (std::size_t i = 1; i < n; ++i) {
    const double jump = std::abs(raw[i] - raw[i - 1]);
    const double fall = i + 1 < n ? std::abs(raw[i + 1] - raw[i]) : jump;
    if (std::max(jump, fall) <= limit * typical) continue;
    const std::size_t begin = i + 3 < n ? (i >= 3 ? i - 3 : 0) : n - 7;
    std::array<double, 6> around{};
    std::size_t filled = 0;
    for (std::size_t k = begin; k < begin + 7; ++k) {
      if (k != i) around[filled++] = raw[k];
    }
    std::sort(around.begin(), around.end());
    const double middle = 0.5 * (around[2] + around[3]);
    // One more neighbour tells a spike from the start of a divergence: the last point has none.
    const double patience = i + 1 < n ? limit : 2 * limit;
    const double reach = patience * std::max(around[4] - around[1], typical);
    if (std::abs(raw[i] - middle) > reach) {
      z[i] =
          middle + std::copysign(0.5 * std::max(around[4] - around[1], typical), raw[i] - middle);
    }
  }
}

/// sd of white noise of one observation, from successive differences of the later half: median |dz|
/// / (0.6745 sqrt 2). Points that were merged from several differ by less.
double successive_noise(const std::vector<double>& z, const std::vector<double>& count) {
  const std::size_t half = z.size() / 2;
  if (z.size() - half <= 3) return 0;
  std::vector<double> differences;
  differences.reserve(z.size() - half);
  for (std::size_t i = half + 1; i < z.size(); ++i) {
    const double merged = 2 * count[i] * count[i - 1] / std::max(count[i] + count[i - 1], 1e-300);
    differences.push_back(std::abs(z[i] - z[i - 1]) * std::sqrt(merged));
  }
  return median(differences) / (0.6745 * std::sqrt(2.0));
}

/// Lower-is-better values: a rising metric in [0, 1] or [0, 100] becomes its distance from the top.
Coordinate oriented(double lowest, double highest, Direction direction) {
  Coordinate c;
  c.floor = -kInfinity;
  c.ceiling = kInfinity;
  if (direction == Direction::min) {
    if (lowest >= 0) c.floor = 0;
    return c;
  }
  c.sign = -1;
  if (lowest >= 0 && highest <= 100) {
    c.floor = 0;
    c.ceiling = highest <= 1 ? 1 : 100;
    c.offset = c.ceiling;
  }
  return c;
}

}  // namespace

double Coordinate::metric(double z) const {
  const double g = logarithmic ? std::exp(std::clamp(z, -kMaxLog, kMaxLog)) : z;
  return std::clamp(sign * (unit * g - offset), floor, ceiling);
}

double Coordinate::z(double metric) const {
  const double g = (sign * metric + offset) / unit;
  if (!logarithmic) return g;
  return g > 0 ? std::log(g) : -kInfinity;
}

Prepared prepare(TraceView trace, Direction direction, const ForecastConstants& constants) {
  validate(trace);
  Prepared p;
  const std::size_t total = trace.step.size();
  std::size_t finite = 0;
  double low = kInfinity, high = -kInfinity;
  for (std::size_t i = 0; i < total; ++i) {
    if (!std::isfinite(trace.loss[i])) continue;
    ++finite;
    low = std::min(low, trace.loss[i]);
    high = std::max(high, trace.loss[i]);
  }
  if (total > 0 && trace.step[0] <= 0) {
    p.step_shift = (total > 1 ? trace.step[1] - trace.step[0] : 1.0) - trace.step[0];
  }
  p.last = total > 0 ? trace.step[total - 1] + p.step_shift : 0;
  if (finite == 0) {
    p.status = total == 0 ? ForecastStatus::too_few_points : ForecastStatus::not_finite;
    p.coordinate = oriented(0, 1, direction);
    p.coordinate.logarithmic = false;
    return p;
  }

  Coordinate& c = p.coordinate;
  c = oriented(low, high, direction);
  std::vector<double> y;  // oriented: lower is better
  y.reserve(finite);
  p.step.reserve(finite);
  p.count.reserve(finite);
  for (std::size_t i = 0; i < total; ++i) {
    if (!std::isfinite(trace.loss[i])) continue;
    p.step.push_back(trace.step[i] + p.step_shift);
    y.push_back(c.sign * trace.loss[i] + c.offset);
    p.count.push_back(trace.weight.empty() ? 1.0 : trace.weight[i]);
  }
  const auto [min_y, max_y] = std::minmax_element(y.begin(), y.end());
  const double least = *min_y, most = *max_y, range = most - least;
  if (!(least > 0)) {
    if (constants.signed_linear) {
      c.logarithmic = false;
      c.unit = range > 0 && std::isfinite(range) ? range : std::max(1.0, std::abs(most));
    } else {
      const double shift = -least + 0.05 * std::max(range, 1e-9);
      for (double& value : y) value += shift;
      c.offset += shift;
    }
  }
  const bool failed = !std::isfinite(trace.loss[total - 1]);
  const double size = std::max(std::abs(least), std::abs(most));
  p.z.resize(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    p.z[i] = c.logarithmic ? std::log(y[i]) : y[i] / c.unit;
  }
  p.modelled = finite >= 3 && range > 1e-12 * size;
  if (failed) {
    p.status = ForecastStatus::not_finite;
  } else if (finite < 3) {
    p.status = ForecastStatus::too_few_points;
  } else if (!p.modelled) {
    p.status = ForecastStatus::flat;
  }
  if (constants.spike > 0 && p.modelled) {
    pull_in_spikes(p.z, constants.spike);
    if (!c.logarithmic) {  // the unit is the range of the run, not that of a spike
      const auto [low_z, high_z] = std::minmax_element(p.z.begin(), p.z.end());
      const double kept = *high_z - *low_z;
      if (kept > 0 && kept < 1) {
        for (double& z : p.z) z /= kept;
        c.unit *= kept;
      }
    }
  }
  p.last_z = p.z.back();
  const auto [min_z, max_z] = std::minmax_element(p.z.begin(), p.z.end());
  const double spread = *max_z - *min_z;
  p.range = spread;
  p.points = finite;
  // The upper clip: without it the tail of a log-t explodes under exp.
  p.lowest = *min_z - (c.logarithmic ? std::max(5 * spread, 1.0) : 5 * spread);
  p.highest = *max_z + spread;
  p.noise = successive_noise(p.z, p.count);
  return p;
}

Prepared first_points(const Prepared& all, std::size_t points) {
  const auto first = [&](const std::vector<double>& column) {
    return std::vector<double>(column.begin(),
                               column.begin() + static_cast<std::ptrdiff_t>(points));
  };
  Prepared p;
  p.modelled = true;
  p.coordinate = all.coordinate;
  p.step_shift = all.step_shift;
  p.step = first(all.step);
  p.z = first(all.z);
  p.count = first(all.count);
  p.points = points;
  p.last_z = p.z.back();
  const auto [low, high] = std::minmax_element(p.z.begin(), p.z.end());
  p.range = *high - *low;
  p.noise = successive_noise(p.z, p.count);
  return p;
}

void bin_points(Prepared& p, std::span<const double> relative, int bins) {
  const std::size_t n = relative.size();
  const auto limit = static_cast<std::size_t>(bins);
  if (n <= limit) {
    p.x.assign(relative.begin(), relative.end());
    p.bin_step = p.step;
    p.bin_z = p.z;
    return;
  }
  // Edges: half of them even in log time, half even in time.
  const double first = relative[0], last = relative[n - 1];
  const std::size_t half = limit / 2;
  std::vector<double> edges;
  edges.reserve(2 * half);
  const double from = std::log10(std::max(first, last * 1e-4)), to = std::log10(last);
  const auto parts = static_cast<double>(half - 1);
  for (std::size_t i = 0; i < half; ++i) {
    const auto step = static_cast<double>(i);
    edges.push_back(i == 0          ? std::max(first, last * 1e-4)
                    : i + 1 == half ? last
                                    : std::pow(10.0, step * ((to - from) / parts) + from));
    edges.push_back(i + 1 == half ? last : step * ((last - first) / parts) + first);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

  const Coordinate& c = p.coordinate;
  std::vector<double> count;
  p.x.clear();
  p.bin_step.clear();
  p.bin_z.clear();
  std::size_t edge = 0;
  for (std::size_t i = 0; i < n;) {
    while (edge < edges.size() && edges[edge] < relative[i]) ++edge;
    double points = 0, sum_x = 0, sum_y = 0;
    const double bound = edge < edges.size() ? edges[edge] : kInfinity;
    for (; i < n && relative[i] <= bound; ++i) {
      const double w = p.count[i];
      points += w;
      sum_x += w * relative[i];
      sum_y += w * (c.logarithmic ? std::exp(p.z[i]) : p.z[i]);
    }
    if (points <= 0) continue;
    count.push_back(points);
    p.x.push_back(sum_x / points);
    p.bin_step.push_back(interpolate(p.x.back(), relative, p.step));
    p.bin_z.push_back(c.logarithmic ? std::log(sum_y / points) : sum_y / points);
  }
  p.count = std::move(count);
}

}  // namespace glidepath::detail
