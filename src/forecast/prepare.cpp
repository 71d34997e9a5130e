// SPDX-License-Identifier: Apache-2.0
#include "forecast/prepare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "forecast/gaps.hpp"
#include "forecast/noise.hpp"
#include "trace/metric_name.hpp"

namespace glidepath::detail {
namespace {

constexpr double kMaxLog = 690.0;  // exp of it is finite, with room for a sum
// The largest loss whose logarithm is taken as it is: times a weight it is finite.
constexpr double kLargestLoss = 0x1p600;
constexpr double kMaxLateIntervals = 5;  // logging intervals missing before a log begins late
constexpr double kStraySteps = 20;  // of resolution between a loss of 0 that is none and others
constexpr double kMaxMetric = std::numeric_limits<double>::max();
constexpr double kFlatRange = 1e-12;  // of values, relative to the largest: they are one value
constexpr double kMinMean = 1e-290;   // of exponentials, below which they have lost digits

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
    std::ranges::sort(around);
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

/// Lower-is-better values: a rising metric in [0, 1] or [0, 100] becomes its distance from the top.
/// A return above 1 has no top: that of a pole held for 20 steps is no percentage.
Coordinate oriented(double lowest, double highest, Direction direction, std::string_view metric) {
  Coordinate c;
  c.floor = -kInfinity;
  c.ceiling = kInfinity;
  if (direction == Direction::min) {
    if (lowest >= 0) c.floor = 0;
    return c;
  }
  c.sign = -1;
  if (lowest >= 0 && highest <= (is_return_by_name(metric) ? 1 : 100)) {
    c.floor = 0;
    c.ceiling = highest <= 1 ? 1 : 100;
    c.offset = c.ceiling;
  } else if (highest <= 0) {
    c.ceiling = 0;  // a loss turned round
  }
  return c;
}

/// Edges of bins, half of them even in log time, half even in time.
std::vector<double> bin_edges(double first, double last, std::size_t half) {
  std::vector<double> edges;
  edges.reserve(2 * half);
  const double earliest = std::max(first, last * 1e-4);
  const double from = std::log10(earliest), to = std::log10(last);
  const auto parts = static_cast<double>(half - 1);
  for (std::size_t i = 0; i < half; ++i) {
    const auto step = static_cast<double>(i);
    edges.push_back(i == 0          ? earliest
                    : i + 1 == half ? last
                                    : std::pow(10.0, step * ((to - from) / parts) + from));
    edges.push_back(i + 1 == half ? last : step * ((last - first) / parts) + first);
  }
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

/// Log of the weighted mean of e^z where these are too small for a sum.
double log_mean(std::span<const double> z, std::span<const double> weight) {
  const double most = *std::ranges::max_element(z);
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    sum += weight[i] * std::exp(z[i] - most);
    total += weight[i];
  }
  return most + std::log(sum / total);
}

constexpr double kMinWeight = 1e-300;  // a smaller one, but 0, has an infinite inverse

/// A point that counts: its loss is finite, and its weight is as good as not 0.
bool counts(const TraceView& trace, std::size_t i) {
  return std::isfinite(trace.loss[i]) && (trace.weight.empty() || trace.weight[i] >= kMinWeight);
}

/// The range of the losses that count.
struct Extent {
  std::size_t points = 0;
  MetricRange of{};
};

Extent extent_of(const TraceView& trace) {
  Extent extent;
  for (std::size_t i = 0; i < trace.loss.size(); ++i) {
    if (!counts(trace, i)) continue;
    ++extent.points;
    extent.of.include(trace.loss[i]);
  }
  return extent;
}

/// A value of 0 whose neighbours are many times the resolution of the log is the logger's: it gets
/// their mean. One that the run came to stays.
void replace_stray_zeros(std::vector<double>& values) {
  const std::size_t last = values.size() - 1;
  if (last < 1 || std::ranges::find(values, 0.0) == values.end()) return;
  double resolution = kInfinity;
  for (std::size_t i = 1; i <= last; ++i) {
    const double step = std::abs(values[i] - values[i - 1]);
    if (step > 0 && values[i] > 0 && values[i - 1] > 0) resolution = std::min(resolution, step);
  }
  const double least = kStraySteps * resolution;
  for (std::size_t i = 0; i <= last; ++i) {
    const double before = values[i > 0 ? i - 1 : 1];
    const double after = values[i < last ? i + 1 : last - 1];
    if (values[i] == 0 && std::min(before, after) > least) values[i] = 0.5 * before + 0.5 * after;
  }
}

/// Oriented values (lower is better) become z: their logarithm, or a share of their range where
/// they reach 0, as of a metric without a bound, or jump by more than `max_noise` of it, as then
/// its tails are no use. False where there are fewer than 3 or all are equal.
bool into_z(std::vector<double>& values, std::span<const double> count, double max_noise,
            Coordinate& c) {
  const bool bounded = c.sign > 0 ? c.floor == 0 : c.ceiling < kInfinity;
  if (bounded && c.sign > 0) replace_stray_zeros(values);
  const auto [min_y, max_y] = std::ranges::minmax_element(values);
  const double least = *min_y, most = *max_y, range = most - least;
  c.logarithmic = least > 0 && bounded;
  if (c.logarithmic) {
    if (most > kLargestLoss || most < 1 / kLargestLoss) {
      c.unit = std::exp2(std::ilogb(most));  // a power of 2: nothing is rounded
    }
    const double log_unit = std::log(c.unit);  // a quotient could be 0
    std::vector<double> z;
    z.reserve(values.size());
    for (const double v : values) z.push_back(std::log(v) - log_unit);
    c.logarithmic = noise_about_slope(z, count) <= max_noise;  // a steep fall is no jump
    if (c.logarithmic) values = std::move(z);
  }
  const double size = std::max(std::abs(least), std::abs(most));
  const bool varies = range > kFlatRange * size;
  if (!c.logarithmic) {
    c.unit = varies && std::isfinite(range) ? range : size > 0 ? size : 1.0;
    for (double& v : values) v /= c.unit;
  }
  return values.size() >= 3 && varies;
}

/// The unit is the range of the run, not that of a spike that was pulled in.
void rescale(std::vector<double>& z, Coordinate& c) {
  const auto [low, high] = std::ranges::minmax_element(z);
  const double kept = *high - *low;
  if (!(kept > 0 && kept < 1)) return;
  for (double& v : z) v /= kept;
  c.unit *= kept;
}

ForecastStatus status_of(const Prepared& p, std::span<const double> loss) {
  if (gaps_of(loss).failing()) return ForecastStatus::not_finite;
  if (p.step.size() < 3) return ForecastStatus::too_few_points;
  return p.modelled ? ForecastStatus::good : ForecastStatus::flat;
}

}  // namespace

double Coordinate::metric(double z) const {
  double value = 0;
  if (!logarithmic) {
    value = unit * z;
  } else if (z < -kMaxLog && unit > 1) {  // far below the largest loss, by which the unit goes
    value = std::exp(std::max(z + std::log(unit), -kMaxLog));
  } else {
    value = unit * std::exp(std::clamp(z, -kMaxLog, kMaxLog));
  }
  return std::clamp(sign * (value - offset), std::max(floor, -kMaxMetric),
                    std::min(ceiling, kMaxMetric));
}

double Coordinate::z(double metric) const {
  const double g = sign * metric + offset;
  if (!logarithmic) return g / unit;
  return g > 0 ? std::log(g) - std::log(unit) : -kInfinity;
}

double step_shift(std::span<const double> step) {
  if (step.empty() || step[0] > 0) return 0;
  // Of one point the interval is 1, or the least that is not lost beside its step.
  constexpr double kSpacing = std::numeric_limits<double>::epsilon();
  const double one = std::max(1.0, kSpacing * std::abs(step[0]));
  return (step.size() > 1 ? step[1] - step[0] : one) - step[0];
}

double step_shift_of(const Trace& run) {
  std::vector<double> first;
  for (std::size_t i = 0; i < run.step.size() && first.size() < 2; ++i) {
    if (std::isfinite(run.loss[i])) first.push_back(run.step[i]);
  }
  return step_shift(first);
}

bool starts_late(std::span<const double> step, std::span<const double> count) {
  const double points = std::accumulate(count.begin(), count.end(), 0.0);
  return step.front() * (points - 1) > kMaxLateIntervals * (step.back() - step.front());
}

double steps_before(std::span<const double> step, std::span<const double> count) {
  if (!starts_late(step, count)) return 0;
  const double points = std::accumulate(count.begin(), count.end(), 0.0);
  return step.front() - (step.back() - step.front()) / (points - 1);
}

Prepared prepare(TraceView trace, Direction direction, const ForecastConstants& constants,
                 MetricRange others) {
  validate(trace);
  Prepared p;
  const std::size_t total = trace.step.size();
  const Extent loss = extent_of(trace);
  if (loss.points == 0) {
    const bool ends_finite = total == 0 || std::isfinite(trace.loss[total - 1]);
    p.status = ends_finite ? ForecastStatus::too_few_points : ForecastStatus::not_finite;
    p.step_shift = step_shift(trace.step);
    p.coordinate = oriented(0, 1, direction, trace.metric);
    p.coordinate.logarithmic = false;
    return p;
  }
  others.include(loss.of.lowest);
  others.include(loss.of.highest);
  p.coordinate = oriented(others.lowest, others.highest, direction, trace.metric);
  p.step.reserve(loss.points);
  p.z.reserve(loss.points);
  p.count.reserve(loss.points);
  for (std::size_t i = 0; i < total; ++i) {
    if (!counts(trace, i)) continue;
    p.step.push_back(trace.step[i]);
    p.z.push_back(p.coordinate.sign * trace.loss[i] + p.coordinate.offset);
    p.count.push_back(trace.weight.empty() ? 1.0 : trace.weight[i]);
  }
  p.step_shift = step_shift(p.step);
  for (double& step : p.step) step += p.step_shift;
  p.modelled = into_z(p.z, p.count, constants.max_log_noise, p.coordinate);
  p.status = status_of(p, trace.loss);
  if (p.modelled) {
    pull_in_spikes(p.z, constants.spike);
    if (!p.coordinate.logarithmic) rescale(p.z, p.coordinate);
  }
  const auto [low, high] = std::ranges::minmax_element(p.z);
  p.last_z = p.z.back();
  p.range = *high - *low;
  p.lowest = *low - (p.coordinate.logarithmic ? std::max(5 * p.range, 1.0) : 5 * p.range);
  // The upper clip: without it the tail of a log-t explodes under exp. One range of z, and at most
  // two of the metric, max + 2 (max - min) = max (1 + 2 (1 - exp(-range))).
  const double of_metric = std::log1p(-2 * std::expm1(-p.range));
  p.highest = *high + (p.coordinate.logarithmic ? std::min(p.range, of_metric) : p.range);
  p.noise = successive_noise(p.z, p.count);
  return p;
}

Coordinate pooled_coordinate(std::span<const Trace* const> runs) {
  Extent all;
  for (const Trace* run : runs) {
    const Extent own = extent_of({run->step, run->loss});
    all.of.include(own.of.lowest);
    all.of.include(own.of.highest);
    all.points += own.points;
  }
  const Direction direction = runs.empty() ? Direction::min : runs.front()->direction;
  if (all.points == 0) all.of = {0, 1};
  const std::string_view metric = runs.empty() ? std::string_view{} : runs.front()->metric;
  Coordinate c = oriented(all.of.lowest, all.of.highest, direction, metric);
  std::vector<double> ends{c.sign * all.of.lowest + c.offset, c.sign * all.of.highest + c.offset};
  into_z(ends, {}, 0, c);
  return c;
}

Prepared first_points(const Prepared& all, std::size_t points) {
  const auto first = [&](const std::vector<double>& column) {
    return std::vector<double>(column.begin(), column.begin() + points);
  };
  Prepared p;
  p.modelled = true;
  p.coordinate = all.coordinate;
  p.step_shift = all.step_shift;
  p.step = first(all.step);
  p.z = first(all.z);
  p.count = first(all.count);
  p.last_z = p.z.back();
  const auto [low, high] = std::ranges::minmax_element(p.z);
  p.range = *high - *low;
  p.noise = successive_noise(p.z, p.count);
  return p;
}

Points bin(const Points& points, const Coordinate& coordinate, int bins) {
  const std::size_t n = points.x.size();
  const std::size_t limit = bins;
  if (n <= limit) return points;
  const std::vector<double> edges = bin_edges(points.x.front(), points.x.back(), limit / 2);
  const bool logarithmic = coordinate.logarithmic;
  Points binned;
  std::size_t edge = 0;
  for (std::size_t i = 0; i < n;) {
    const std::size_t first = i;
    while (edge < edges.size() && edges[edge] < points.x[i]) ++edge;
    double weight = 0, sum_x = 0, sum_y = 0;
    const double bound = edge < edges.size() ? edges[edge] : kInfinity;
    for (; i < n && points.x[i] <= bound; ++i) {
      const double w = points.count[i];
      weight += w;
      sum_x += w * points.x[i];
      sum_y += w * (logarithmic ? std::exp(points.z[i]) : points.z[i]);
    }
    if (weight <= 0) continue;
    binned.count.push_back(weight);
    binned.x.push_back(sum_x / weight);
    binned.step.push_back(interpolate(binned.x.back(), points.x, points.step));
    const double mean = sum_y / weight;
    if (logarithmic && mean < kMinMean) {
      const auto part = [&](const std::vector<double>& column) {
        return std::span(column).subspan(first, i - first);
      };
      binned.z.push_back(log_mean(part(points.z), part(points.count)));
    } else {
      binned.z.push_back(logarithmic ? std::log(mean) : mean);
    }
  }
  return binned;
}

}  // namespace glidepath::detail
