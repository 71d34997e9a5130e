// SPDX-License-Identifier: Apache-2.0
// How the law of a run comes about: by its own curve, by when it falls, and by past runs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/beginning.hpp"
#include "forecast/clocks.hpp"
#include "forecast/epochs.hpp"
#include "forecast/law.hpp"
#include "forecast/noise.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/past_shapes.hpp"
#include "forecast/predict.hpp"

namespace glidepath::detail {
namespace {

constexpr double kFlatScale = 0.01;  // of a constant run, relative
// Scale of a curve that is not known: kFewScale log(x)^kFewPower, the logarithm at most kFewMaxLog.
constexpr double kFewScale = 0.3, kFewPower = 0.7, kFewMaxLog = 3;
// A score below kLowScore of the highest one there is takes off with the probability `take_off`:
// with l the log of the step, the log of what it lacks falls by kTakeOffMove l^2, give or take
// kTakeOffScale l^1.5.
constexpr double kLowScore = 0.05, kTakeOffMove = 0.15, kTakeOffScale = 0.25;
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

/// What the law of a run is made from.
struct Sources {
  const Prepared& run;
  const Settings* settings;
  const ForecastOptions& options;
  const ForecastConstants& constants;
  Use use;
  Rates rates{};
  Annealing plan{};
  EpochFalls falls{};
  PastKnots of_past{};
};

/// Finds the falls at epochs, and gives the law its knots.
void place_knots(TraceView trace, std::span<const double> steps, std::size_t max_knots,
                 Sources& from, Law& law) {
  const Prepared& p = from.run;
  if (p.modelled) law.before = steps_before(p.step, p.count);
  law.knots = knots_for(steps, law, max_knots, from.plan);
  if (p.modelled && from.constants.epochs > 0) from.falls = epoch_falls(p, from.plan);
  if (from.falls.seen()) add_knots_at_falls(from.falls, steps, p.step_shift, law.knots);
  if (std::ranges::adjacent_find(law.knots, std::greater_equal{}) != law.knots.end()) {
    refuse("forecast: steps ", steps.front(), " to ", steps.back(),
           " cannot be told apart beside a run that begins at ", trace.step.front());
  }
  if (p.modelled) from.of_past = past_knots(p, from.options, from.use, law);
  law.stretch.assign(law.knots.size(), 1.0);
}

/// The law of a run that can be modelled. Returns the last step at which time passes by its clock.
double follow(const Sources& from, Law& law) {
  const auto& [p, settings, options, constants, use, rates, plan, falls, of_past] = from;
  const Observed observed(p, plan);
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
  if (options.past != nullptr) mix_in_beginnings(p, settings, *options.past, likeness, law);
  // Past runs are believed within the clip; below it no tail explodes under exp.
  if (p.coordinate.logarithmic) law.lowest = std::min(law.lowest, p.lowest - constants.max_fall);
  return observed.points.step.back();
}

}  // namespace

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
  Sources from{p, trace.settings, options, constants, use};
  if (options.schedule != nullptr) {
    from.rates = rates_of(trace, *options.schedule, steps.back());
    if (p.modelled && learned.schedule_helps) from.plan = annealing_of(p, from.rates, constants);
  }
  result.scheduled = from.plan.known();
  law.coordinate = p.coordinate;
  law.step_shift = p.step_shift;
  place_knots(trace, steps, max_knots, from, law);
  double last = p.step.empty() ? 0.0 : p.step.back();
  const bool begun = p.status == ForecastStatus::too_few_points && options.past != nullptr &&
                     begin(p, trace.settings, *options.past, law);
  if (begun) {
    result.prepared.status = ForecastStatus::good;
  } else if (p.modelled) {
    last = follow(from, law);
  } else {
    stay(p, law);
    mix_in_take_off(p, constants, use, law);
  }
  law.mixture.degrees = constants.degrees;
  if (use == Use::intervals && !p.step.empty() && !begun) {
    law.stretch = stretch_of(law.knots, last, p.modelled ? constants.stretch : 0.0, learned.horizon,
                             result.scheduled ? learned.scheduled_factor : learned.factor);
  }
  if (from.of_past.has_end) take_out(law, from.of_past.covered - 1);
  return result;
}

double scale_of_unknown(double ahead) {
  const double log_ahead = std::log(std::max(ahead, kMinAhead));
  return kFewScale * std::pow(std::min(log_ahead, kFewMaxLog), kFewPower);
}

}  // namespace glidepath::detail
