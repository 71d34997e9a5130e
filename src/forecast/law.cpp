// SPDX-License-Identifier: Apache-2.0
#include "forecast/law.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/require.hpp"
#include "forecast/analogy.hpp"
#include "forecast/backtest.hpp"
#include "forecast/interpolate.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/rates.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {
namespace {

constexpr double kNoiseDegrees = 8;     // Student-t of a raw observation around the curve
constexpr double kFlatScale = 0.01;     // of a constant run, relative
constexpr double kFewScale = 0.3;       // of a run of 1 or 2 points, times log(x)^0.7
constexpr std::size_t kPastPoints = 8;  // fewest that make a past run a shape

/// Past runs that cover the horizon and began before half of the observed points, as shapes.
std::vector<Template> templates_of(const Prepared& p, double horizon,
                                   const ForecastOptions& options,
                                   const ForecastConstants& constants) {
  std::vector<Template> templates;
  if (options.past == nullptr) return templates;
  for (const Trace& run : options.past->runs()) {
    if (templates.size() >= static_cast<std::size_t>(constants.templates)) break;
    const std::size_t n = run.step.size();
    if (n < kPastPoints || run.loss.size() != n) continue;
    const double shift = run.step[0] <= 0 ? run.step[1] - 2 * run.step[0] : 0.0;
    if (run.step[n - 1] + shift < 0.98 * horizon ||
        run.step[0] + shift > p.step[p.step.size() / 2]) {
      continue;
    }
    Template t;
    t.step.reserve(n);
    t.z.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double z = p.coordinate.z(run.loss[i]);
      const double step = run.step[i] + shift;
      if (!std::isfinite(z) || !std::isfinite(step) || (i > 0 && !(step > t.step.back()))) break;
      t.step.push_back(step);
      t.z.push_back(z);
    }
    if (t.z.size() == n) templates.push_back(std::move(t));
  }
  return templates;
}

Annealing annealing_of(const Prepared& p, Rates rates, const ForecastConstants& constants) {
  for (double& step : rates.ahead_step) step += p.step_shift;
  Annealing plan =
      annealing(p.step, p.count, rates.observed, rates.ahead_step, rates.ahead, constants);
  if (!plan.known()) return plan;
  // Time must pass while the run is observed, or there is nothing to fit in this clock.
  return plan.moves(p.step) ? plan : Annealing{};
}

/// Law of a run that cannot be modelled: the last value, with a width from outside.
void stay(const Prepared& p, std::span<const double> knots, ForecastLaw& law) {
  const bool flat = p.step.size() >= 3;
  law.weight = {1.0};
  law.location.assign(knots.size(), p.last_z);
  for (const double step : knots) {
    const double log_x = p.step.empty() ? 1.0 : std::log(std::max(step / p.step.back(), 1.0001));
    law.scale.push_back(p.step.empty() ? 1.0
                        : flat         ? kFlatScale
                                       : kFewScale * std::pow(std::min(log_x, 3.0), 0.7));
  }
  law.noise.assign(knots.size(), 0.0);
  law.lowest = p.last_z - 3;
  law.highest = p.last_z + 1;
}

}  // namespace

Coordinate coordinate_of(const ForecastLaw& law) {
  Coordinate c;
  c.sign = law.sign;
  c.unit = law.unit;
  c.offset = law.offset;
  c.logarithmic = law.logarithmic;
  c.floor = law.floor;
  c.ceiling = law.ceiling;
  return c;
}

Predicted predict_law(TraceView trace, std::span<const double> steps, std::size_t max_knots,
                      const ForecastOptions& options, Use use) {
  const ForecastConstants& constants = constants_of(options);
  Predicted result{prepare(trace, options.direction, constants), {}, false};
  Prepared& p = result.prepared;
  ForecastLaw& law = result.law;
  if (steps.empty()) refuse("forecast: no steps to forecast");
  double before = trace.step.empty() ? 0.0 : trace.step.back();
  for (const double step : steps) {
    if (!std::isfinite(step) || !(step > before || trace.step.empty())) {
      refuse("forecast: step ", step, " is not after ", before,
             ": steps must increase past the last observed one");
    }
    before = step;
  }

  law.degrees = constants.degrees;
  law.sign = p.coordinate.sign;
  law.unit = p.coordinate.unit;
  law.offset = p.coordinate.offset;
  law.logarithmic = p.coordinate.logarithmic;
  law.floor = p.coordinate.floor;
  law.ceiling = p.coordinate.ceiling;

  refuse_other_direction(options.past, options.direction);
  static const Widths kNoWidths;
  const Widths& learned = options.past != nullptr ? options.past->widths() : kNoWidths;
  Annealing plan;
  if (options.schedule != nullptr) {
    Rates rates = rates_of(trace, *options.schedule, steps.back());
    if (p.modelled && learned.schedule_helps) plan = annealing_of(p, std::move(rates), constants);
  }
  result.scheduled = plan.known();
  // Knots: the steps themselves where they are few; else even in log step, or, as a schedule is
  // followed, even in the steps.
  std::vector<double>& knots = law.knots;
  const std::size_t most = plan.known() ? 2 * max_knots : max_knots;
  const double shift = p.step_shift;
  if (steps.size() <= most) {
    for (const double step : steps) knots.push_back(step + shift);
  } else if (plan.known()) {
    for (std::size_t i = 0; i < most; ++i) {
      knots.push_back(steps[i * (steps.size() - 1) / (most - 1)] + shift);
    }
  } else {
    const double from = steps.front() + shift, to = steps.back() + shift;
    const double log_from = std::log10(from), log_to = std::log10(to);
    knots.push_back(from);
    for (std::size_t i = 1; i + 1 < most; ++i) {
      const double at = static_cast<double>(i) / static_cast<double>(most - 1);
      const double knot = std::pow(10.0, log_from + at * (log_to - log_from));
      if (knot > knots.back() && knot < to) knots.push_back(knot);
    }
    knots.push_back(to);
  }
  law.stretch.assign(knots.size(), 1.0);
  if (!p.modelled) {
    stay(p, knots, law);
  } else {
    const std::vector<Template> past = templates_of(p, knots.back(), options, constants);
    const double narrowing = use == Use::intervals ? backtest_width(p, plan, constants) : 1.0;
    Mixture mixture = predict(p, knots, plan, past, constants, narrowing);
    mix_in_analogy(p.step, p.z, knots, past, constants, mixture);
    law.weight = std::move(mixture.weight);
    law.location = std::move(mixture.location);
    law.scale = std::move(mixture.scale);
    law.noise.assign(knots.size(), p.noise);
    law.lowest = p.lowest;
    law.highest = p.highest;
  }
  const std::vector<double>& factor = result.scheduled ? learned.scheduled_factor : learned.factor;
  if (!factor.empty() && !p.step.empty()) {
    for (std::size_t j = 0; j < knots.size(); ++j) {
      law.stretch[j] = interpolate(std::log(knots[j] / p.step.back()), learned.horizon, factor);
    }
  }
  return result;
}

Levels prepare_levels(std::span<const double> levels, double degrees, bool falling) {
  Levels l;
  double before = 0;
  for (const double p : levels) {
    if (!(p > before && p < 1)) {
      refuse("forecast: level ", p, " after ", before,
             ": levels must increase and lie between 0 and 1");
    }
    before = p;
    l.level.push_back(falling ? 1 - p : p);
  }
  const std::vector<double> asked = l.level;
  l.level.push_back(0.5);
  std::sort(l.level.begin(), l.level.end());
  l.level.erase(std::unique(l.level.begin(), l.level.end()), l.level.end());
  const auto index = [&](double p) {
    return static_cast<std::size_t>(std::lower_bound(l.level.begin(), l.level.end(), p) -
                                    l.level.begin());
  };
  l.median = index(0.5);
  for (const double p : asked) l.row.push_back(index(p));
  for (const double p : l.level) {
    l.unit.push_back(student_quantile(degrees, p));
    l.noise.push_back(student_quantile(kNoiseDegrees, p));
  }
  return l;
}

void law_quantiles(const ForecastLaw& law, const Levels& levels, std::vector<double>& curve,
                   std::vector<double>& raw) {
  const std::size_t count = levels.level.size(), knots = law.knots.size();
  const std::size_t components = law.weight.size();
  curve.resize(count * knots);
  raw.resize(count * knots);
  thread_local std::vector<double> guess, q;
  guess.clear();
  q.resize(count);
  for (std::size_t j = 0; j < knots; ++j) {
    const MixtureView mixture{law.weight,
                              {law.location.data() + j * components, components},
                              {law.scale.data() + j * components, components},
                              law.degrees};
    mixture_quantiles(mixture, levels.level, levels.unit, guess, q);
    const double median = std::clamp(q[levels.median], law.lowest, law.highest);
    for (std::size_t i = 0; i < count; ++i) {
      const double half = std::clamp(q[i], law.lowest, law.highest) - median;
      const double noise = law.noise[j] * levels.noise[i];
      const double wide = law.stretch[j] * std::sqrt(half * half + noise * noise);
      curve[i * knots + j] = median + law.stretch[j] * half;
      raw[i * knots + j] = half == 0 ? median : median + std::copysign(wide, half);
    }
  }
}

void spread_to_steps(const ForecastLaw& law, double step_shift, std::span<const double> steps,
                     std::span<const double> z, std::span<double> metric) {
  const Coordinate coordinate = coordinate_of(law);
  if (steps.size() == law.knots.size()) {
    for (std::size_t i = 0; i < steps.size(); ++i) metric[i] = coordinate.metric(z[i]);
    return;
  }
  std::size_t k = 0;  // knots[k] <= step < knots[k + 1]
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double step = steps[i] + step_shift;
    while (k + 2 < law.knots.size() && law.knots[k + 1] <= step) ++k;
    const double part = std::log(step / law.knots[k]) / std::log(law.knots[k + 1] / law.knots[k]);
    metric[i] = coordinate.metric(z[k] + std::clamp(part, 0.0, 1.0) * (z[k + 1] - z[k]));
  }
}

}  // namespace glidepath::detail
