// SPDX-License-Identifier: Apache-2.0
#include "forecast/past_shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "forecast/gaps.hpp"
#include "forecast/past_runs.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMinPastPoints = 8;  // of a past run that is a shape
constexpr double kMinPastShare = 0.98;     // of the horizon, which a past run covers
constexpr std::array kQuartiles{0.25, 0.75};
// Past runs are believed by the odds kPastOdds / (error^kErrorPower widening^kWideningPower).
constexpr double kPastOdds = 6, kErrorPower = 3, kWideningPower = 2, kMaxWidening = 8;

/// Whether a past run may be a shape: it has points enough, its end is a value of the metric, and
/// it began before half of the observed points.
bool may_be_shape(const Trace& run, const Prepared& p) {
  const std::size_t n = run.step.size();
  const auto ended = last_number(run.loss);
  return n >= kMinPastPoints && run.loss.size() == n && ended &&
         std::isfinite(p.coordinate.z(run.loss[*ended])) &&
         run.step[0] + step_shift_of(run) <= p.step[p.step.size() / 2];
}

/// The shifted step up to which a run that may be a shape tells of the horizon.
double covered_by(const Trace& run) {
  return (run.step[last_number(run.loss).value()] + step_shift_of(run)) / kMinPastShare;
}

/// The shifted step up to which past runs tell: the last knot where any of them covers it, else the
/// step that half of them reach; 0 where there are none.
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

/// The newest past runs that cover the horizon, as shapes: their points that have a value.
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

}  // namespace

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

}  // namespace glidepath::detail
