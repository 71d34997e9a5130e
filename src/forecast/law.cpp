// SPDX-License-Identifier: Apache-2.0
#include "forecast/law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/beginning.hpp"
#include "forecast/gaps.hpp"
#include "forecast/math.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/predict.hpp"

namespace glidepath::detail {
namespace {

constexpr double kFlatScale = 0.01;  // of a constant run, relative
// Scale of a curve that is not known: kFewScale log(x)^kFewPower, the logarithm at most kFewMaxLog.
constexpr double kFewScale = 0.3, kFewPower = 0.7, kFewMaxLog = 3;
constexpr std::size_t kMinPastPoints = 8;  // that make a past run a shape
constexpr double kMinPastShare = 0.98;     // of the horizon, that a past run covers
constexpr std::array kQuartiles{0.25, 0.75};
constexpr double kMinProbability = 1e-9;  // at which a quantile of the noise is taken
constexpr int kBisections = 60;
// Levels between which a probability between knots is found, as far out as there are any.
constexpr int kTailLevels = 60;
constexpr double kWidestTail = 6;
constexpr double kMaxStretch = 1e100;  // of an interval: infinity times a width of 0 is none
// Of the law of a score whose log begins late, that counts time from step 0: nothing tells.
constexpr double kScoreFromZero = 0.5;
// Prior odds that a late log of a loss shows how its run falls, against a level with noise.
constexpr double kShapeOdds = 4;
// Prior odds of the clock of step 0 against that of the log.
constexpr double kZeroOdds = 10;
// Steps before the log over those in it from which the clock of step 0 is believed less: by it such
// a log is a straight line, which goes on and on.
constexpr double kLongBefore = 50;
// Share of an interval that goes by a known schedule, at most: what a rate is worth differs by kind
// of run, and before it falls nothing tells.
constexpr double kMaxScheduled = 0.7;
// Past runs are believed by the odds kPastOdds / (error^kErrorPower widening^kWideningPower).
constexpr double kPastOdds = 6, kErrorPower = 3, kWideningPower = 2, kMaxWidening = 8;

/// Whether a past run may be a shape: it has points enough, its last value is one, and it began
/// before half of the observed points.
bool may_be_shape(const Trace& run, const Prepared& p) {
  const std::size_t n = run.step.size();
  const auto ended = last_number(run.loss);
  return n >= kMinPastPoints && run.loss.size() == n && ended &&
         std::isfinite(p.coordinate.z(run.loss[*ended])) &&
         run.step[0] + step_shift_of(run) <= p.step[p.step.size() / 2];
}

/// The shifted step as far as which a run that may be a shape tells of the horizon.
double covered_by(const Trace& run) {
  return (run.step[last_number(run.loss).value()] + step_shift_of(run)) / kMinPastShare;
}

/// The shifted step as far as which past runs tell: the last knot where any of them covers it, else
/// as far as half of them go; 0 where there are none.
double end_of_past(const Prepared& p, double horizon, const ForecastOptions& options) {
  if (options.past == nullptr) return 0;
  std::vector<double> ends;
  for (const Trace& run : options.past->runs()) {
    if (may_be_shape(run, p)) ends.push_back(covered_by(run));
  }
  if (ends.empty()) return 0;
  if (*std::ranges::max_element(ends) >= horizon) return horizon;
  const auto middle = ends.begin() + (std::ssize(ends) - 1) / 2;
  std::nth_element(ends.begin(), middle, ends.end());
  return *middle;
}

/// Past runs that cover the horizon, as shapes: the newest, without what is no value.
std::vector<Template> templates_of(const Prepared& p, double horizon,
                                   const ForecastOptions& options,
                                   const ForecastConstants& constants) {
  std::vector<Template> templates;
  const std::span<const Trace> runs = options.past->runs();
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (templates.size() >= static_cast<std::size_t>(constants.templates)) break;
    if (!may_be_shape(*run, p) || covered_by(*run) < horizon) continue;
    const std::size_t n = run->step.size();
    const double shift = step_shift_of(*run);
    Template t;
    t.step.reserve(n);
    t.z.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double z = p.coordinate.z(run->loss[i]);
      const double step = run->step[i] + shift;
      if (!std::isfinite(z) || (!t.step.empty() && !(step > t.step.back()))) continue;
      t.step.push_back(step);
      t.z.push_back(z);
    }
    if (t.z.size() >= kMinPastPoints) templates.push_back(std::move(t));
  }
  std::ranges::reverse(templates);
  return templates;
}

Annealing annealing_of(const Prepared& p, Rates rates, const ForecastConstants& constants) {
  for (double& step : rates.before_step) step += p.step_shift;
  for (double& step : rates.ahead_step) step += p.step_shift;
  Annealing plan = annealing(p.step, p.count, rates, constants);
  if (!plan.known()) return plan;
  // Time must pass while the run is observed, or there is nothing to fit in this clock.
  return plan.moves(p.step) ? plan : Annealing{};
}

/// A law has a knot at each step where they are few; else at `max_knots` of them, even in the log
/// of the steps by the law's clock, or, as a schedule is followed, at twice as many, even in them.
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

/// The mixture by one clock: with the plan, where it has one, and without as far as its backtest
/// says.
Mixture by_clock(const Observed& observed, std::span<const double> knots,
                 std::span<const Template> past, const ForecastConstants& constants, Use use,
                 Evidence* evidence = nullptr) {
  const Prepared& p = observed.run;
  const Backtest tested = backtest(p, observed.plan, constants);
  const double narrowing = use == Use::intervals ? tested.width : 1.0;
  Mixture mixture = predict(observed, knots, past, constants, narrowing, evidence);
  const bool hedged = use == Use::intervals && observed.plan.known() && !shows_too_little(p);
  const double scheduled = tested.scheduled * (hedged ? kMaxScheduled : 1.0);
  if (scheduled == 1) return mixture;
  return mixed(mixture, predict(Observed(p, {}), knots, past, constants), scheduled);
}

/// A mixture at the first queries alone.
Mixture first_queries(Mixture mixture, std::size_t queries) {
  mixture.queries = queries;
  mixture.location.resize(queries * mixture.components);
  mixture.scale.resize(queries * mixture.components);
  return mixture;
}

/// The law of a log that begins late by a clock of its own, which counts from one logging interval
/// before the log, as of a run that began with it.
struct LateClock {
  Mixture law{};
  double share = 0;  ///< of the law: a loss keeps the clock of step 0 as far as its log shows a
                     ///< shape; that of noise shows no rate that the many steps before could be
                     ///< told by

  /// Mixed into a law by the clock of step 0, of which past runs, whose clock is known, have a
  /// part.
  [[nodiscard]] Mixture mixed_into(Mixture from_zero, double past = 0) const {
    const double part = share * (1 - past);
    if (!(part > 0)) return from_zero;
    Mixture own = first_queries(law, from_zero.queries);
    return part == 1 ? own : mixed(from_zero, own, 1 - part);
  }
};

LateClock late_clock(const Prepared& p, const Rates* rates, std::span<const double> knots,
                     const ForecastConstants& constants, Use use, const Evidence& from_zero) {
  const double before = steps_before(p.step, p.count);
  if (before == 0) return {};
  Prepared run = p;
  std::vector<double> queries(knots.begin(), knots.end());
  for (double& step : run.step) step -= before;
  for (double& step : queries) step -= before;
  run.step_shift -= before;
  const Annealing plan = rates != nullptr ? annealing_of(run, *rates, constants) : Annealing{};
  Evidence evidence;
  LateClock late{by_clock(Observed(run, plan), queries, {}, constants, use, &evidence)};
  const bool rising = p.coordinate.sign < 0;
  const double shows = kShapeOdds * std::exp(evidence.log_gain_over_level);
  const double shape = rising ? kScoreFromZero : 1 - 1 / (1 + shows);  // shows may be infinite
  // A fall of the rate looks like a beginning: where rates are known the clocks are not compared.
  const double better =
      rates != nullptr ? -kInfinity : evidence.log_gain_over_level - from_zero.log_gain_over_level;
  const double zero = kZeroOdds / (kZeroOdds + std::exp(better));
  const double before_by_seen = before / (p.step.back() - p.step.front());
  const double near = std::min(1.0, kLongBefore / before_by_seen);
  late.share = 1 - shape * zero * near * near;
  if (late.share < constants.tail_mass) late.share = 0;
  if (late.share > 1 - constants.tail_mass) late.share = 1;
  return late;
}

/// How wide a law is at a knot, in z: the deviation of its components and of the noise, as far as
/// quantiles are not clipped.
double spread_at(const Law& law, const Mixture& mixture, std::size_t knot) {
  const MixtureView at = mixture.at(knot);
  const double origin = law.clip(at.location.front());  // near all of them: squares must not cancel
  double mean = 0, square = law.noise * law.noise;
  for (std::size_t i = 0; i < at.weight.size(); ++i) {
    const double location = law.clip(at.location[i]) - origin;
    const double scale = std::min(at.scale[i], law.highest - law.lowest);
    mean += at.weight[i] * location;
    square += at.weight[i] * (location * location + scale * scale);
  }
  return std::sqrt(std::max(square - mean * mean, 1e-30));
}

/// What share of the mixture goes by past runs: the less, the worse they would have forecast each
/// other (`error`, see mix_in_analogy()) and the less sure they leave the forecast.
double belief(const Law& law, const Mixture& with, const Mixture& without, double error) {
  double widening = 1;
  for (const std::size_t knot : {with.queries / 2, with.queries - 1}) {
    widening = std::max(widening, spread_at(law, with, knot) / spread_at(law, without, knot));
  }
  const double doubt = std::pow(error, kErrorPower) *
                       std::pow(std::min(widening, kMaxWidening), kWideningPower) / kPastOdds;
  return 1 / (1 + doubt);
}

/// At each knot the scale of a component whose quartiles lie as far apart as those of the curve.
std::vector<double> scales_of(const Law& law) {
  const Levels quartiles = prepare_levels(kQuartiles, law.mixture.degrees, Direction::min);
  std::vector<double> curve, raw;
  law.quantiles(quartiles, curve, raw);
  const std::size_t knots = law.knots.size(), last = quartiles.level.size() - 1;
  std::vector<double> scales;
  for (std::size_t j = 0; j < knots; ++j) {
    scales.push_back((curve[last * knots + j] - curve[j]) /
                     (quartiles.unit[last] - quartiles.unit[0]));
  }
  return scales;
}

/// Carries a mixture beyond its last knot, as far as past runs go: from there on it moves and
/// widens as the law without them.
void go_on_as(const Law& without, Mixture& mixture) {
  if (mixture.queries == without.knots.size()) return;
  const std::size_t n = mixture.components, from = mixture.queries - 1;
  const double median = without.median(from);
  const std::vector<double> scales = scales_of(without);
  for (; mixture.queries < without.knots.size(); ++mixture.queries) {
    const std::size_t j = mixture.queries;
    const double moved = without.median(j) - median;
    const double widened =
        std::sqrt(std::max(scales[j] * scales[j] - scales[from] * scales[from], 0.0));
    for (std::size_t i = 0; i < n; ++i) {
      mixture.location.push_back(mixture.location[from * n + i] + moved);
      mixture.scale.push_back(std::hypot(mixture.scale[from * n + i], widened));
    }
  }
}

/// The first knots, of which past runs tell.
struct PastKnots {
  std::size_t covered = 0;
  bool has_end = false;  ///< the last of them is where past runs end, and is none of the law's own
};

/// Adds a knot where past runs end before the horizon, to be taken out again: so the law goes on
/// from there in any list of steps. What is decided is decided by how past runs ended, where none
/// of them goes so far.
PastKnots past_knots(const Prepared& p, const ForecastOptions& options, Use use, Law& law) {
  const double end = end_of_past(p, law.knots.back(), options);
  const auto after = std::ranges::upper_bound(law.knots, end);
  const auto covered = static_cast<std::size_t>(after - law.knots.begin());
  if (covered == law.knots.size()) return {.covered = covered};
  if (end == 0 || use == Use::decision) return {};
  const double before = covered == 0 ? p.step.back() : law.knots[covered - 1];
  if (!(end > before * kMinAhead)) return {.covered = covered};
  law.knots.insert(after, end);
  return {.covered = covered + 1, .has_end = true};
}

/// Mixes in the law with past runs as far as it is believed, and says how far what they became is
/// of this run too: the less, the worse they would have forecast each other. The best value that
/// one of them had from this step on is in reach.
double mix_in_past(const Observed& observed, const PastKnots& of_past, const LateClock& late,
                   const ForecastOptions& options, const ForecastConstants& constants, Use use,
                   Law& law) {
  const std::span<const double> near = std::span(law.knots).first(of_past.covered);
  const std::vector<Template> past = templates_of(observed.run, near.back(), options, constants);
  for (const Template& run : past) {
    for (std::size_t i = 0; i < run.z.size(); ++i) {
      if (run.step[i] >= observed.run.step.back()) law.lowest = std::min(law.lowest, run.z[i]);
    }
  }
  Evidence evidence;
  Mixture with = by_clock(observed, near, past, constants, use, &evidence);
  with = late.mixed_into(std::move(with), evidence.past);
  const Points& seen = observed.points;
  const double error = mix_in_analogy(seen.step, seen.z, near, past, constants, with);
  const double share = belief(law, with, law.mixture, error);
  go_on_as(law, with);
  if (share > 1 - constants.tail_mass) {
    law.mixture = std::move(with);
  } else if (share > constants.tail_mass) {
    law.mixture = mixed(with, law.mixture, share);
  }
  return share * std::max(0.0, 1 - error);
}

void take_out(Law& law, std::size_t knot) {
  const auto at = static_cast<std::ptrdiff_t>(knot);
  const auto n = static_cast<std::ptrdiff_t>(law.mixture.components);
  law.knots.erase(law.knots.begin() + at);
  law.stretch.erase(law.stretch.begin() + at);
  for (std::vector<double>* rows : {&law.mixture.location, &law.mixture.scale}) {
    rows->erase(rows->begin() + at * n, rows->begin() + (at + 1) * n);
  }
  --law.mixture.queries;
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

void refuse_bad_steps(std::span<const double> observed, std::span<const double> steps) {
  if (steps.empty()) refuse("forecast: no steps to forecast");
  double before = observed.empty() ? 0.0 : observed.back();
  for (const double step : steps) {
    if (!is_step(step)) refuse("forecast: step ", step, " is not ", kStepRange);
    if (!(step > before)) {
      refuse("forecast: step ", step, " is not after ", before,
             ": steps must increase past the last observed one");
    }
    before = step;
  }
}

/// Throws InputError unless the numbers can be those of a law: all that is computed from one is
/// then finite and in order.
void validate(const Law& law) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) refuse("forecast: this is not a stored forecast, ", what);
  };
  const auto not_negative = [](double x) { return x >= 0 && is_location(x); };
  const auto ahead = [](double x) { return x > 0 && std::isfinite(x); };
  const auto every = [](const std::vector<double>& column, auto holds) {
    return std::all_of(column.begin(), column.end(), holds);
  };
  const Coordinate& c = law.coordinate;
  const Mixture& m = law.mixture;
  require(std::abs(c.sign) == 1, "its sign is neither 1 nor -1");
  require(ahead(c.unit) && std::isfinite(c.offset), "its unit or offset cannot be");
  require(c.floor <= c.ceiling, "its floor is above its ceiling");
  constexpr double kLargest = std::numeric_limits<double>::max();
  require(c.floor <= kLargest && c.ceiling >= -kLargest, "no value lies within its bounds");
  require(std::isfinite(law.step_shift), "its shift is not finite");
  require(not_negative(law.noise), "its noise cannot be");
  require(is_location(law.lowest) && is_location(law.highest),
          "its lowest or highest value cannot be");
  require(law.lowest <= law.highest, "its lowest value is above its highest");
  require(not_negative(law.before), "its steps before the log cannot be");
  require(every(law.knots, [&](double knot) { return ahead(knot - law.before); }),
          "a knot is not positive");
  require(std::adjacent_find(law.knots.begin(), law.knots.end(), std::greater_equal{}) ==
              law.knots.end(),
          "its knots do not increase");
  require(every(law.stretch, is_scale), "a stretch cannot be");
  require(m.degrees >= kMinDegrees && is_location(m.degrees), "its degrees of freedom cannot be");
  const double sum = std::accumulate(m.weight.begin(), m.weight.end(), 0.0);
  require(every(m.weight, not_negative) && std::abs(sum - 1) < 1e-6, "its weights are no shares");
  require(every(m.location, is_location), "a location cannot be");
  require(every(m.scale, is_scale), "a scale cannot be");
}

/// The numbers and the columns of a law, in the order in which they are stored.
struct Parts {
  std::array<double*, 11> numbers;
  std::array<std::vector<double>*, 5> columns;
};
Parts parts_of(Law& law) {
  Coordinate& c = law.coordinate;
  Mixture& m = law.mixture;
  return {{&c.sign, &c.unit, &c.offset, &c.floor, &c.ceiling, &law.step_shift, &law.before,
           &law.noise, &law.lowest, &law.highest, &m.degrees},
          {&law.knots, &law.stretch, &m.weight, &m.location, &m.scale}};
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
  ForecastConstants constants = constants_of(options);
  if (use == Use::decision) constants.linear_move = 1;
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
  } else {
    const Observed observed(p, plan);
    const Points& seen = observed.points;
    law.noise = p.noise;
    law.lowest = p.lowest;
    law.highest = p.highest;
    Evidence from_zero;
    law.mixture = by_clock(observed, law.knots, {}, constants, use, &from_zero);
    const LateClock late =
        late_clock(p, plan.known() ? &rates : nullptr, law.knots, constants, use, from_zero);
    law.mixture = late.mixed_into(std::move(law.mixture));
    double likeness = 0;
    if (of_past.covered > 0) {
      likeness = mix_in_past(observed, of_past, late, options, constants, use, law);
    }
    if (options.past != nullptr) {
      mix_in_beginnings(p, trace.settings, *options.past, likeness, law);
    }
    last = seen.step.back();
  }
  law.mixture.degrees = constants.degrees;
  const std::vector<double>& factor = result.scheduled ? learned.scheduled_factor : learned.factor;
  if (use == Use::intervals && !p.step.empty() && !begun) {
    const double stretch = p.modelled ? constants.stretch : 0.0;
    for (std::size_t j = 0; j < law.knots.size(); ++j) {
      const double ahead = std::log(law.knots[j] / last);
      const double own = std::exp(stretch * std::clamp(ahead, 0.0, kMaxLogAhead));
      const double taught = factor.empty() ? 1.0 : interpolate(ahead, learned.horizon, factor);
      law.stretch[j] = std::min(own * taught, kMaxStretch);
    }
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

double Law::cdf(std::size_t knot, double z) const {
  const MixtureView curve = mixture.at(knot);
  const double middle = median(knot), factor = stretch[knot];
  // Where the clip holds the median all levels beyond it are there, see raw_quantile().
  if (middle == lowest && z <= middle) return z < middle ? 0.0 : mixture_cdf(curve, middle);
  if (middle == highest && z >= middle) return 1;
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

void Law::spread(std::span<const double> z, std::span<const double> steps,
                 std::span<double> metric) const {
  if (steps.size() == knots.size()) {
    for (std::size_t i = 0; i < steps.size(); ++i) metric[i] = coordinate.metric(z[i]);
    return;
  }
  const std::vector<Place> places = places_of(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto [k, part] = places[i];
    metric[i] = coordinate.metric(z[k] + part * (z[k + 1] - z[k]));
  }
}

void Law::spread_cdf(double z, std::span<const double> steps, std::span<double> probability) const {
  std::vector<double> normal, level;
  for (int i = -kTailLevels; i <= kTailLevels; ++i) {
    normal.push_back(kWidestTail * i / kTailLevels);
    level.push_back(0.5 * std::erfc(-normal.back() / std::numbers::sqrt2));
  }
  std::vector<double> curve, raw;
  quantiles(prepare_levels(level, mixture.degrees, Direction::min), curve, raw);
  std::vector<double> at_knots(knots.size());
  for (std::size_t j = 0; j < knots.size(); ++j) at_knots[j] = cdf(j, z);
  const std::vector<Place> places = places_of(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Place& at = places[i];
    const auto quantile = [&](std::size_t l) {
      const double* row = raw.data() + l * knots.size() + at.knot;
      return row[0] + at.part * (row[1] - row[0]);
    };
    std::size_t low = 0, high = level.size() - 1;
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
    const double from = quantile(low), share = (z - from) / (quantile(high) - from);
    const double x = normal[low] + share * (normal[high] - normal[low]);
    probability[i] = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  }
}

std::vector<double> pack_law(const Law& law) {
  Law copy = law;
  const Parts parts = parts_of(copy);
  std::vector<double> numbers{static_cast<double>(law.knots.size()),
                              static_cast<double>(law.mixture.components),
                              law.coordinate.logarithmic ? 1.0 : 0.0};
  for (const double* number : parts.numbers) numbers.push_back(*number);
  for (const auto* column : parts.columns) {
    numbers.insert(numbers.end(), column->begin(), column->end());
  }
  return numbers;
}

Law unpack_law(std::span<const double> numbers) {
  Law law;
  const Parts parts = parts_of(law);
  const auto size = static_cast<double>(numbers.size()), head = 3.0 + parts.numbers.size();
  const double knots = size > head ? numbers[0] : 0, components = size > head ? numbers[1] : 0;
  if (!(knots >= 1 && components >= 1) || knots != std::floor(knots) ||
      size != head + 2 * knots + components + 2 * knots * components) {
    refuse("forecast: these ", numbers.size(), " numbers are not a stored forecast");
  }
  law.mixture.queries = static_cast<std::size_t>(knots);
  law.mixture.components = static_cast<std::size_t>(components);
  law.coordinate.logarithmic = numbers[2] != 0;
  auto next = numbers.begin() + 3;
  for (double* number : parts.numbers) *number = *next++;
  const double cells = knots * components;
  const std::array sizes{knots, knots, components, cells, cells};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
    parts.columns[i]->assign(next, end);
    next = end;
  }
  validate(law);
  return law;
}

}  // namespace glidepath::detail
