// SPDX-License-Identifier: Apache-2.0
#include "forecast/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "forecast/predict.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {
namespace {

// Share of the clock of step 0 in the law of a score whose log begins late: nothing tells which
// clock is right.
constexpr double kZeroShareOfScore = 0.5;
// Prior odds that a late log of a loss shows how its run falls, against a level with noise.
constexpr double kShapeOdds = 4;
// Prior odds of the clock of step 0 against that of the log.
constexpr double kZeroOdds = 10;
// Ratio of the steps before a log to those in it above which the clock of step 0 is believed less:
// by that clock such a log is a straight line, which goes on and on.
constexpr double kMaxBeforeRatio = 50;
// Share of an interval that goes by a known schedule, at most: what a rate is worth differs by kind
// of run, and before it falls nothing tells.
constexpr double kMaxScheduledShare = 0.7;
// An interval that is widened is so by this power of the factor times the log of the distance,
// which is at most kMaxWideningLog: what went wrong goes wrong far ahead, not at the next point.
constexpr double kWidthPower = 1.75, kMaxWideningLog = 1;
// Half-widths of a logarithm between which one of the metric itself can be told.
constexpr double kMinHalf = 1e-12, kMaxHalf = 30;

/// A mixture at the first queries alone.
Mixture first_queries(Mixture mixture, std::size_t queries) {
  mixture.queries = queries;
  mixture.location.resize(queries * mixture.components);
  mixture.scale.resize(queries * mixture.components);
  return mixture;
}

/// Factor of distances in z that multiplies half of the 80 % interval of the metric by `factor`:
/// that of a logarithm is multiplied as the metric itself, so that no loss is given a width of
/// many times its level.
double factor_in_z(double half, double factor, const Coordinate& coordinate) {
  if (!coordinate.logarithmic || !(half > kMinHalf)) return factor;
  return half < kMaxHalf ? std::log1p(factor * std::expm1(half)) / half : 1.0;
}

/// The mixture with its half-widths multiplied in the metric, by `factor` where they shrink and by
/// the more of it the further ahead of `last` where they grow; medians stay.
Mixture rescaled(Mixture mixture, double factor, double last, std::span<const double> knots,
                 const Coordinate& coordinate) {
  const double level = 0.5, at_median = 0, unit = student_quantile(mixture.degrees, 0.9);
  MixtureQuantiles medians({&level, 1}, {&at_median, 1});
  for (std::size_t j = 0; j < mixture.queries; ++j) {
    double middle = 0;
    medians.find(mixture.at(j), std::log(knots[j]), {&middle, 1});
    const double half = unit * mean_distance(mixture.at(j), middle);
    const double ahead = std::clamp(std::log(knots[j] / last), 0.0, kMaxWideningLog);
    const double at_knot = factor > 1 ? std::pow(factor, kWidthPower * ahead) : factor;
    const double in_z = factor_in_z(half, at_knot, coordinate);
    for (std::size_t i = j * mixture.components; i < (j + 1) * mixture.components; ++i) {
      mixture.location[i] = middle + in_z * (mixture.location[i] - middle);
      mixture.scale[i] *= in_z;
    }
  }
  return mixture;
}

}  // namespace

Annealing annealing_of(const Prepared& p, Rates rates, const ForecastConstants& constants) {
  for (double& step : rates.before_step) step += p.step_shift;
  for (double& step : rates.ahead_step) step += p.step_shift;
  Annealing plan = annealing(p.step, p.count, rates, constants);
  if (!plan.known()) return plan;
  // Time must pass while the run is observed, or there is nothing to fit in this clock.
  return plan.moves(p.step) ? plan : Annealing{};
}

Mixture by_clock(const Observed& observed, std::span<const double> knots,
                 std::span<const Template> past, const ForecastConstants& constants, Use use,
                 Evidence* evidence) {
  const Prepared& p = observed.run;
  if (!observed.plan.known() && use == Use::intervals) {
    Evidence seen;
    Mixture mixture = predict(observed, knots, past, constants, 1, &seen);
    if (evidence != nullptr) *evidence = seen;
    // The backtests are those of the shapes alone.
    const double width = std::pow(width_by_backtest(p, constants), 1 - seen.past);
    return width == 1 ? mixture
                      : rescaled(std::move(mixture), width, observed.last(), knots, p.coordinate);
  }
  const Backtest tested = backtest(p, observed.plan, constants);
  const double narrowing = use == Use::intervals ? tested.width : 1.0;
  Mixture mixture = predict(observed, knots, past, constants, narrowing, evidence);
  const bool hedged = use == Use::intervals && observed.plan.known() && !shows_too_little(p);
  const double scheduled = tested.scheduled * (hedged ? kMaxScheduledShare : 1.0);
  if (scheduled == 1) return mixture;
  return mixed(mixture, predict(Observed(p, {}), knots, past, constants), scheduled);
}

Mixture LateClock::mixed_into(Mixture from_zero, double past) const {
  const double part = share * (1 - past);
  if (!(part > 0)) return from_zero;
  Mixture own = first_queries(law, from_zero.queries);
  return part == 1 ? own : mixed(from_zero, own, 1 - part);
}

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
  const double shape = rising ? kZeroShareOfScore : 1 - 1 / (1 + shows);  // shows may be infinite
  // A fall of the rate looks like a beginning: where rates are known the clocks are not compared.
  const double better =
      rates != nullptr ? -kInfinity : evidence.log_gain_over_level - from_zero.log_gain_over_level;
  const double zero = kZeroOdds / (kZeroOdds + std::exp(better));
  const double before_by_seen = before / (p.step.back() - p.step.front());
  const double near = std::min(1.0, kMaxBeforeRatio / before_by_seen);
  late.share = 1 - shape * zero * near * near;
  if (late.share < constants.tail_mass) late.share = 0;
  if (late.share > 1 - constants.tail_mass) late.share = 1;
  return late;
}

}  // namespace glidepath::detail
