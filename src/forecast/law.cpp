// SPDX-License-Identifier: Apache-2.0
#include "forecast/law.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/math.hpp"

namespace glidepath::detail {
namespace {

constexpr double kMinProbability = 1e-9;  // at which a quantile of the noise is taken
constexpr int kBisections = 60;
// A probability between knots is found between so many levels on each side of the median, the last
// of which lies so many normal deviations out.
constexpr int kTailLevels = 60;
constexpr double kTailDeviations = 6;

}  // namespace

Levels prepare_levels(std::span<const double> levels, double degrees, Direction best) {
  Levels l;
  double before = 0;
  for (const double p : levels) {
    if (!(p > before && p < 1)) {
      refuse("forecast: level ", p, " after ", before,
             ": levels must increase and lie between 0 and 1");
    }
    before = p;
    l.level.push_back(best == Direction::max ? 1 - p : p);
  }
  const std::vector<double> given = l.level;
  l.level.push_back(0.5);
  std::ranges::sort(l.level);
  l.level.erase(std::unique(l.level.begin(), l.level.end()), l.level.end());
  const auto index = [&](double p) {
    return static_cast<std::size_t>(std::ranges::lower_bound(l.level, p) - l.level.begin());
  };
  l.median = index(0.5);
  for (const double p : given) l.row.push_back(index(p));
  for (const double p : l.level) {
    l.unit.push_back(student_quantile(degrees, p));
    l.noise.push_back(student_quantile(kNoiseDegrees, p));
  }
  return l;
}

Law::Ends Law::ends(std::size_t knot) const {
  const double middle = median(knot);
  const auto below = [&](double end) {  // the quantile of the curve that comes to lie there
    return mixture_cdf(mixture.at(knot), middle + (end - middle) / stretch[knot]);
  };
  // The noise goes on beyond the clip, but where that holds the median, see raw_quantile().
  Ends found{-kInfinity, kInfinity};
  if (noise == 0 || middle == lowest) {
    found.low = middle + half_width(knot, middle, -kInfinity);
    found.at_low = below(found.low);
  }
  if (noise == 0 || middle == highest) {
    found.high = middle + half_width(knot, middle, kInfinity);
    found.below_high = below(found.high);
  }
  return found;
}

Law::Ends Law::between(const Ends& a, const Ends& b, double part) {
  if (part == 0) return a;
  if (part == 1) return b;
  Ends found{-kInfinity, kInfinity};
  if (std::isfinite(a.low) && std::isfinite(b.low)) {
    found.low = a.low + part * (b.low - a.low);
    found.at_low = std::min(a.at_low, b.at_low);  // the levels that both have there
  }
  if (std::isfinite(a.high) && std::isfinite(b.high)) {
    found.high = a.high + part * (b.high - a.high);
    found.below_high = std::max(a.below_high, b.below_high);
  }
  return found;
}

double Law::z_of(double value, const Ends& ends) const {
  const double rounding = kValueRounding * std::max(std::abs(value), std::abs(coordinate.offset));
  for (const double end : {ends.low, ends.high}) {
    if (!std::isfinite(end) || !std::isfinite(value)) continue;
    const double there = coordinate.metric(end);
    const bool inside = there > coordinate.floor && there < coordinate.ceiling;
    if (inside && std::abs(there - value) <= rounding) return end;
  }
  return std::clamp(coordinate.z(value), -1e300, 1e300);
}

double Law::cdf(std::size_t knot, double z, Bound bound) const {
  const MixtureView curve = mixture.at(knot);
  const double middle = median(knot), factor = stretch[knot];
  const Ends end = ends(knot);
  if (z < end.low || (z == end.low && bound == Bound::below)) return 0;
  if (z > end.high || (z == end.high && bound == Bound::at_most)) return 1;
  if (z == end.low) return end.at_low;
  if (z == end.high) return end.below_high;
  if (z == middle) return 0.5;
  // The raw half-width at the curve's own quantile x grows with |x - middle|: find the x whose
  // half-width is the one wanted.
  const auto raw_half_width = [&](double x) {
    const double half = half_width(knot, middle, x);
    if (noise == 0) return std::abs(half);
    const double p = std::clamp(mixture_cdf(curve, x), kMinProbability, 1 - kMinProbability);
    const double wide = factor * noise * student_quantile(kNoiseDegrees, p);
    return std::sqrt(half * half + wide * wide);
  };
  const double side = z < middle ? -1.0 : 1.0;
  const double limit = std::abs(z - middle);
  const double edge = (side < 0 ? middle - lowest : highest - middle) / std::max(factor, 1.0);
  double inside = 0, outside = limit / factor;  // the noise only widens: none is beyond
  if (raw_half_width(middle + side * outside) < limit && outside >= edge) {
    // Beyond the clip of the curve, where the noise alone goes on.
    const double clipped = half_width(knot, middle, side < 0 ? -kInfinity : kInfinity);
    const double noisy = std::sqrt(std::max(limit * limit - clipped * clipped, 0.0));
    return noise == 0 ? (side < 0 ? 0.0 : 1.0)
                      : student_cdf(kNoiseDegrees, side * noisy / (factor * noise));
  }
  for (int i = 0; i < kBisections; ++i) {
    const double x = 0.5 * (inside + outside);
    (raw_half_width(middle + side * x) < limit ? inside : outside) = x;
  }
  return mixture_cdf(curve, middle + side * outside);
}

void Law::quantiles(const Levels& levels, std::vector<double>& curve,
                    std::vector<double>& raw) const {
  const std::size_t count = levels.level.size();
  curve.resize(count * knots.size());
  raw.resize(count * knots.size());
  std::vector<double> q(count);
  MixtureQuantiles mixture_quantiles(levels.level, levels.unit);
  for (std::size_t j = 0; j < knots.size(); ++j) {
    mixture_quantiles.find(mixture.at(j), std::log(knots[j] - before), q);
    const double middle = clip(q[levels.median]);
    for (std::size_t i = 0; i < count; ++i) {
      const double half = half_width(j, middle, q[i]);
      curve[i * knots.size() + j] = middle + half;
      raw[i * knots.size() + j] = raw_quantile(middle, half, stretch[j] * noise * levels.noise[i]);
    }
  }
}

std::vector<Law::Place> Law::places_of(std::span<const double> steps) const {
  if (knots.size() < 2) {
    refuse("forecast: this is not a stored forecast, its one knot is not at its ", steps.size(),
           steps.size() == 1 ? " step" : " steps");
  }
  std::vector<Place> places;
  places.reserve(steps.size());
  std::size_t k = 0;  // knots[k] <= step < knots[k + 1]
  for (const double at : steps) {
    const double step = at + step_shift;
    while (k + 2 < knots.size() && knots[k + 1] <= step) ++k;
    const double from = knots[k] - before, to = knots[k + 1] - before;
    const double cell = std::log(to / from);  // 0 between the largest steps
    const double part = cell > 0 ? std::log((step - before) / from) / cell : 0.0;
    // NaN where numbers that were changed put a step before the clock began.
    places.push_back({k, part > 0 ? std::min(part, 1.0) : 0.0});
  }
  return places;
}

// As many of them as there are steps need not be these: falls at epochs add some.
bool Law::has_knots_at(std::span<const double> steps) const {
  return std::ranges::equal(knots, steps, {}, {}, [&](double at) { return at + step_shift; });
}

void Law::spread(std::span<const double> z, std::span<const double> steps,
                 std::span<double> metric) const {
  if (has_knots_at(steps)) {
    for (std::size_t i = 0; i < steps.size(); ++i) metric[i] = coordinate.metric(z[i]);
    return;
  }
  const std::vector<Place> places = places_of(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto [k, part] = places[i];
    metric[i] = coordinate.metric(z[k] + part * (z[k + 1] - z[k]));
  }
}

void Law::prob_below(double value, std::span<const double> steps,
                     std::span<double> probability) const {
  const bool rising = direction() == Direction::max;
  const Bound bound = rising ? Bound::below : Bound::at_most;
  std::vector<Ends> end;
  std::vector<double> at_knots;
  for (std::size_t j = 0; j < knots.size(); ++j) {
    end.push_back(ends(j));
    at_knots.push_back(cdf(j, z_of(value, end[j]), bound));
  }
  if (has_knots_at(steps)) {
    std::ranges::copy(at_knots, probability.begin());
  } else {
    spread_cdf(value, bound, steps, end, at_knots, probability);
  }
  for (double& p : probability) {
    if (rising) p = 1 - p;
  }
}

void Law::spread_cdf(double value, Bound bound, std::span<const double> steps,
                     std::span<const Ends> end, std::span<const double> at_knots,
                     std::span<double> probability) const {
  std::vector<double> normal, level;
  for (int i = -kTailLevels; i <= kTailLevels; ++i) {
    normal.push_back(kTailDeviations * i / kTailLevels);
    level.push_back(0.5 * std::erfc(-normal.back() / std::numbers::sqrt2));
  }
  std::vector<double> curve, raw;
  quantiles(prepare_levels(level, mixture.degrees, Direction::min), curve, raw);
  const std::vector<Place> places = places_of(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Place& at = places[i];
    const auto quantile = [&](std::size_t l) {
      const double* row = raw.data() + l * knots.size() + at.knot;
      return row[0] + at.part * (row[1] - row[0]);
    };
    const Ends here = between(end[at.knot], end[at.knot + 1], at.part);
    const double z = z_of(value, here);
    std::size_t low = 0, high = level.size() - 1;
    if (z <= here.low) {
      probability[i] = z < here.low || bound == Bound::below ? 0.0 : here.at_low;
      continue;
    }
    if (z >= here.high) {
      probability[i] = z > here.high || bound == Bound::at_most ? 1.0 : here.below_high;
      continue;
    }
    if (!(quantile(low) <= z && z < quantile(high))) {  // so far out both knots agree
      const double p = at_knots[at.knot] + at.part * (at_knots[at.knot + 1] - at_knots[at.knot]);
      const bool below = z < quantile(low);
      probability[i] = below ? std::min(p, level[low]) : std::max(p, level[high]);
      continue;
    }
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (quantile(middle) <= z ? low : high) = middle;
    }
    const double from = quantile(low), to = quantile(high), share = (z - from) / (to - from);
    if (here.has(from) || here.has(to)) {  // whose levels lie between two of these
      const double p = here.has(from) ? here.at_low : level[low];
      probability[i] = p + share * ((here.has(to) ? here.below_high : level[high]) - p);
      continue;
    }
    const double x = normal[low] + share * (normal[high] - normal[low]);
    probability[i] =
        std::clamp(0.5 * std::erfc(-x / std::numbers::sqrt2), here.at_low, here.below_high);
  }
}

}  // namespace glidepath::detail
