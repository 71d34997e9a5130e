// SPDX-License-Identifier: Apache-2.0
#include "forecast/law.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/beginning.hpp"
#include "forecast/clocks.hpp"
#include "forecast/epochs.hpp"
#include "forecast/math.hpp"
#include "forecast/noise.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/past_shapes.hpp"
#include "forecast/predict.hpp"

namespace glidepath::detail {
namespace {

constexpr double kFlatScale = 0.01;  // of a constant run, relative
// Scale of a curve that is not known: kFewScale log(x)^kFewPower, the logarithm at most kFewMaxLog.
constexpr double kFewScale = 0.3, kFewPower = 0.7, kFewMaxLog = 3;
constexpr double kMinProbability = 1e-9;  // at which a quantile of the noise is taken
constexpr int kBisections = 60;
// A score below kLowScore of the highest one there is takes off with the probability `take_off`:
// with l the log of the step, the log of what it lacks falls by kTakeOffMove l^2, give or take
// kTakeOffScale l^1.5.
constexpr double kLowScore = 0.05, kTakeOffMove = 0.15, kTakeOffScale = 0.25;
// A probability between knots is found between so many levels on each side of the median, the last
// of which lies so many normal deviations out.
constexpr int kTailLevels = 60;
constexpr double kTailDeviations = 6;
constexpr double kMaxStretch = 1e100;  // of an interval: infinity times a width of 0 is none

/// A law has a knot at each step where they are few; else at `max_knots` of them, even in the log
/// of the steps by the law's clock, or, where a schedule is followed, at twice as many, even in the
/// steps.
std::vector<double> knots_for(std::span<const double> steps, const Law& law, std::size_t max_knots,
                              const Annealing& plan) {
  const double shift = law.step_shift;
  const std::size_t most = plan.known() ? 2 * max_knots : max_knots;
  std::vector<double> knots;
  if (steps.size() <= most) {
    for (const double step : steps) knots.push_back(step + shift);
    return knots;
  }
  if (plan.known()) {
    for (std::size_t i = 0; i < most; ++i) {
      knots.push_back(steps[i * (steps.size() - 1) / (most - 1)] + shift);
    }
    return knots;
  }
  const double from = steps.front() + shift, to = steps.back() + shift;
  const double log_from = std::log10(from - law.before), log_to = std::log10(to - law.before);
  knots.push_back(from);
  for (std::size_t i = 1; i + 1 < most; ++i) {
    const double at = static_cast<double>(i) / static_cast<double>(most - 1);
    const double knot = law.before + std::pow(10.0, log_from + at * (log_to - log_from));
    if (knot > knots.back() && knot < to) knots.push_back(knot);
  }
  knots.push_back(to);
  return knots;
}

/// Law of a run that cannot be modelled: the last value, with a width from outside.
void stay(const Prepared& p, Law& law) {
  const bool flat = p.step.size() >= 3;
  const std::size_t knots = law.knots.size();
  law.mixture.components = 1;
  law.mixture.queries = knots;
  law.mixture.weight = {1.0};
  law.mixture.location.assign(knots, p.last_z);
  for (const double step : law.knots) {
    law.mixture.scale.push_back(p.step.empty() ? 1.0
                                : flat         ? kFlatScale
                                               : scale_of_unknown(step / p.step.back()));
  }
  law.lowest = p.last_z - 3;
  law.highest = p.last_z + 1;
}

/// How probable it is that a score takes off which is still near the lowest one there is.
double chance_to_take_off(const Prepared& p, const ForecastConstants& constants) {
  const Coordinate& c = p.coordinate;
  const bool score = c.sign < 0 && c.ceiling > 0 && c.ceiling < kInfinity;
  if (!score || !c.logarithmic || p.z.empty()) return 0;
  const double best = c.metric(*std::ranges::min_element(p.z)) / c.ceiling;
  return constants.take_off * std::max(0.0, 1 - best / kLowScore);
}

/// Mixes in that a score takes off.
void mix_in_take_off(const Prepared& p, const ForecastConstants& constants, Use use, Law& law) {
  const double chance = use == Use::decision ? chance_to_take_off(p, constants) : 0;
  if (chance == 0) return;
  Mixture rise;
  rise.components = 1;
  rise.queries = law.knots.size();
  rise.degrees = law.mixture.degrees;
  rise.weight = {1.0};
  for (const double knot : law.knots) {
    const double ratio = std::max(knot / p.step.back(), kMinAhead);
    const double ahead = std::min(std::log(ratio), kMaxLogAhead);
    rise.location.push_back(p.last_z - kTakeOffMove * ahead * ahead);
    rise.scale.push_back(kTakeOffScale * ahead * std::sqrt(ahead));
  }
  law.mixture = mixed(rise, law.mixture, chance);
}

/// Factor of the half-widths at each knot: what grows with the distance from `last`, times what
/// past runs have taught.
std::vector<double> stretch_of(std::span<const double> knots, double last, double per_log,
                               const std::vector<double>& horizon,
                               const std::vector<double>& factor) {
  std::vector<double> stretch;
  stretch.reserve(knots.size());
  for (const double knot : knots) {
    const double ahead = std::log(knot / last);
    const double own = std::exp(per_log * std::clamp(ahead, 0.0, kMaxLogAhead));
    const double taught = factor.empty() ? 1.0 : interpolate(ahead, horizon, factor);
    stretch.push_back(std::min(own * taught, kMaxStretch));
  }
  return stretch;
}

/// The constants, as what the law is for has them.
ForecastConstants constants_for(const ForecastOptions& options, Use use) {
  ForecastConstants constants = constants_of(options);
  if (use == Use::decision) {
    constants.linear_move = 1;
    constants.width *= constants.decision_width;
  }
  return constants;
}

void refuse_bad_steps(std::span<const double> observed, std::span<const double> steps) {
  if (steps.empty()) refuse("forecast: no steps to forecast");
  double before = observed.empty() ? 0.0 : observed.back();
  for (const double step : steps) {
    if (!is_step(step)) refuse("forecast: step is ", step, ", expected ", kStepRange);
    if (!(step > before)) {
      refuse("forecast: step ", step, " is not after ", before,
             ": steps must increase past the last observed one");
    }
    before = step;
  }
}

}  // namespace

Mixture mixed(const Mixture& first, const Mixture& second, double share) {
  Mixture both;
  both.degrees = first.degrees;
  both.queries = first.queries;
  both.components = first.components + second.components;
  for (const double w : first.weight) both.weight.push_back(share * w);
  for (const double w : second.weight) both.weight.push_back((1 - share) * w);
  for (std::size_t j = 0; j < both.queries; ++j) {
    for (const MixtureView& part : {first.at(j), second.at(j)}) {
      both.location.insert(both.location.end(), part.location.begin(), part.location.end());
      both.scale.insert(both.scale.end(), part.scale.begin(), part.scale.end());
    }
  }
  return both;
}

Predicted predict_law(TraceView trace, std::span<const double> steps, std::size_t max_knots,
                      const ForecastOptions& options, Use use, std::optional<double> target) {
  const ForecastConstants constants = constants_for(options, use);
  refuse_other_direction(options.past, options.direction);
  MetricRange others = metric_range_of(options.past);
  if (target) others.include(*target);
  Predicted result{prepare(trace, options.direction, constants, others), {}, false};
  const Prepared& p = result.prepared;
  Law& law = result.law;
  refuse_bad_steps(trace.step, steps);

  static const Widths kNoWidths;
  const Widths& learned = options.past != nullptr ? options.past->widths() : kNoWidths;
  Annealing plan;
  Rates rates;
  if (options.schedule != nullptr) {
    rates = rates_of(trace, *options.schedule, steps.back());
    if (p.modelled && learned.schedule_helps) plan = annealing_of(p, rates, constants);
  }
  result.scheduled = plan.known();
  law.coordinate = p.coordinate;
  law.step_shift = p.step_shift;
  if (p.modelled) law.before = steps_before(p.step, p.count);
  law.knots = knots_for(steps, law, max_knots, plan);
  const EpochFalls falls = p.modelled && constants.epochs > 0 ? epoch_falls(p, plan) : EpochFalls{};
  if (falls.seen()) add_knots_at_falls(falls, steps, p.step_shift, law.knots);
  if (std::ranges::adjacent_find(law.knots, std::greater_equal{}) != law.knots.end()) {
    refuse("forecast: steps ", steps.front(), " to ", steps.back(),
           " cannot be told apart beside a run that begins at ", trace.step.front());
  }
  const PastKnots of_past = p.modelled ? past_knots(p, options, use, law) : PastKnots{};
  law.stretch.assign(law.knots.size(), 1.0);
  double last = p.step.empty() ? 0.0 : p.step.back();
  bool begun = false;
  if (p.status == ForecastStatus::too_few_points && options.past != nullptr) {
    begun = begin(p, trace.settings, *options.past, law);
  }
  if (begun) {
    result.prepared.status = ForecastStatus::good;
  } else if (!p.modelled) {
    stay(p, law);
    mix_in_take_off(p, constants, use, law);
  } else {
    const Observed observed(p, plan);
    const Points& seen = observed.points;
    law.noise = p.noise;
    if (use == Use::intervals) {
      law.noise += constants.lasting_noise * (lasting_noise(p.z, p.noise) - p.noise);
    }
    law.lowest = p.lowest;
    law.highest = p.highest;
    Evidence from_zero;
    law.mixture = by_clock(observed, law.knots, {}, constants, use, &from_zero);
    const LateClock late =
        late_clock(p, plan.known() ? &rates : nullptr, law.knots, constants, use, from_zero);
    law.mixture = late.mixed_into(std::move(law.mixture));
    if (falls.seen()) {
      law.mixture = mixed(law_with_falls(p, plan, falls, law.knots, constants, use), law.mixture,
                          constants.epochs);
    }
    mix_in_take_off(p, constants, use, law);  // which past runs, where they are believed, overrule
    double likeness = 0;
    if (of_past.covered > 0) {
      likeness = mix_in_past(observed, of_past, late, options, constants, use, law);
    }
    if (options.past != nullptr) {
      mix_in_beginnings(p, trace.settings, *options.past, likeness, law);
    }
    // Past runs are believed within the clip; below it no tail explodes under exp.
    if (p.coordinate.logarithmic) law.lowest = std::min(law.lowest, p.lowest - constants.max_fall);
    last = seen.step.back();
  }
  law.mixture.degrees = constants.degrees;
  if (use == Use::intervals && !p.step.empty() && !begun) {
    law.stretch = stretch_of(law.knots, last, p.modelled ? constants.stretch : 0.0, learned.horizon,
                             result.scheduled ? learned.scheduled_factor : learned.factor);
  }
  if (of_past.has_end) take_out(law, of_past.covered - 1);
  return result;
}

double scale_of_unknown(double ahead) {
  const double log_ahead = std::log(std::max(ahead, kMinAhead));
  return kFewScale * std::pow(std::min(log_ahead, kFewMaxLog), kFewPower);
}

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
  std::sort(l.level.begin(), l.level.end());
  l.level.erase(std::unique(l.level.begin(), l.level.end()), l.level.end());
  const auto index = [&](double p) {
    return static_cast<std::size_t>(std::lower_bound(l.level.begin(), l.level.end(), p) -
                                    l.level.begin());
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
    places.push_back({k, std::clamp(part, 0.0, 1.0)});
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
