// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "common/numbers.hpp"
#include "common/parallel.hpp"
#include "common/require.hpp"
#include "forecast/interpolate.hpp"
#include "forecast/law.hpp"
#include "forecast/math.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/student.hpp"

namespace glidepath {
namespace {

using detail::kInfinity;

constexpr std::size_t kGrid = 60;  // log-spaced steps from the last observed one to the budget
constexpr std::size_t kPaths = 8;  // that stand for the Student-t of a component
constexpr double kFar = 60;        // sd of the noise: no observation strays so far
// Probabilities between which a path lies: fine in the tails, where "never" is decided.
constexpr std::array kEdges{0.0, 0.004, 0.03, 0.15, 0.5, 0.85, 0.97, 0.996, 1.0};

/// Points of the unit Student-t, the middles between the edges, and their masses.
struct Paths {
  std::array<double, kPaths> unit{}, mass{};
};

Paths paths_of(double degrees) {
  Paths paths;
  for (std::size_t i = 0; i < kPaths; ++i) {
    paths.unit[i] = detail::student_quantile(degrees, 0.5 * (kEdges[i] + kEdges[i + 1]));
    paths.mass[i] = kEdges[i + 1] - kEdges[i];
  }
  return paths;
}

/// Observations per step over the later half of the trace.
double density_of(TraceView trace) {
  const std::size_t n = trace.step.size(), half = n / 2;
  if (n < 2) return 1;
  double points = 0;
  for (std::size_t i = half; i < n; ++i) points += trace.weight.empty() ? 1.0 : trace.weight[i];
  return points / (trace.step[n - 1] - trace.step[half - 1]);
}

/// Multiplies the survival of each path of a component by the chance that `count` observations with
/// t_8 noise around it all stay above the target.
GLIDEPATH_CLONES void pass(const double* unit, double location, double scale, double lowest,
                           double highest, double target, double inverse_noise, double count,
                           double* log_survival, double* survival) {
  for (std::size_t i = 0; i < kPaths; ++i) {
    double path = location + scale * unit[i];
    path = path < lowest ? lowest : path;
    path = path > highest ? highest : path;
    // F_8(u) = 1/2 + s/2 (1 + c/2 + 3/8 c^2 + 5/16 c^3), s = u / sqrt(8 + u^2), c = 1 - s^2
    double u = (path - target) * inverse_noise;
    u = u < -1e8 ? -1e8 : u;
    u = u > 1e8 ? 1e8 : u;
    const double r = 1 / (8 + u * u), s = u * std::sqrt(r), c = 8 * r;
    const double above = 0.5 + 0.5 * s * (1 + c * (0.5 + c * (0.375 + c * 0.3125)));
    log_survival[i] += count * detail::fast_log(above < 1e-12 ? 1e-12 : above);
    survival[i] = detail::fast_exp(log_survival[i]);
  }
}

}  // namespace

double Reach::prob_by(double at_step) const {
  if (step.empty() || !(at_step >= step.front())) return 0;
  return detail::interpolate(at_step, step, cdf);
}

double Reach::quantile(double p) const {
  if (!(p >= 0 && p <= 1)) detail::refuse("reach: probability ", p, " is not in 0 to 1");
  if (cdf.empty() || p > cdf.back()) return kInfinity;
  const auto above = std::lower_bound(cdf.begin(), cdf.end(), p);
  const auto i = static_cast<std::size_t>(above - cdf.begin());
  if (i == 0) return step[0];
  return step[i - 1] + (step[i] - step[i - 1]) * ((p - cdf[i - 1]) / (cdf[i] - cdf[i - 1]));
}

double Reach::quantile_if_reached(double p) const {
  if (!(p >= 0 && p <= 1)) detail::refuse("reach: probability ", p, " is not in 0 to 1");
  if (cdf.empty() || cdf.back() == 0) return kInfinity;
  return quantile(p * cdf.back());
}

std::vector<double> Reach::remaining_steps(int count) const {
  if (count < 1) detail::refuse("reach: ", count, " remaining steps, expected at least 1");
  std::vector<double> remaining;
  remaining.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double at = quantile((i + 0.5) / count);
    remaining.push_back(std::isinf(at) ? kInfinity : std::max(at - step.front(), 0.0));
  }
  return remaining;
}

Reach reach(TraceView trace, double target, double budget, const ForecastOptions& options) {
  validate(trace);
  if (std::isnan(target)) detail::refuse("reach: the target is NaN");
  if (!std::isfinite(budget)) detail::refuse("reach: budget ", budget, " is not finite");
  detail::refuse_other_direction(options.past, options.direction);
  if (options.schedule != nullptr) options.schedule->validate();
  const bool rising = options.direction == Direction::max;
  Reach r{.target = target, .budget = budget};
  for (std::size_t i = 0; i < trace.step.size(); ++i) {
    const double loss = trace.loss[i];
    if (!std::isfinite(loss) || !(rising ? loss >= target : loss <= target)) continue;
    if (trace.step[i] > budget) break;
    r.step = {trace.step[i]};
    r.cdf = {1.0};
    r.prob_never = 0;
    return r;
  }
  const double last = trace.step.empty() ? 0.0 : trace.step.back();
  if (trace.step.empty() || budget <= last) {
    r.step = {last};
    r.cdf = {0.0};
    if (trace.step.empty()) r.status = ForecastStatus::too_few_points;
    return r;
  }
  // Shifted so that steps are positive, as the forecast does it.
  const double shift = trace.step[0] > 0       ? 0.0
                       : trace.step.size() > 1 ? trace.step[1] - 2 * trace.step[0]
                                               : 1.0 - trace.step[0];
  std::vector<double> steps;
  const double from = last + shift, ratio = (budget + shift) / from;
  for (std::size_t i = 1; i < kGrid; ++i) {
    const double step =
        from * std::pow(ratio, static_cast<double>(i) / static_cast<double>(kGrid)) - shift;
    if (step > (steps.empty() ? last : steps.back()) && step < budget) steps.push_back(step);
  }
  steps.push_back(budget);
  const detail::Predicted predicted =
      detail::predict_law(trace, steps, kGrid, options, detail::Use::decision);
  const ForecastLaw& law = predicted.law;
  r.status = predicted.prepared.status;

  const detail::Coordinate coordinate = detail::coordinate_of(law);
  const bool impossible = rising ? target > coordinate.ceiling : target < coordinate.floor;
  const double z = coordinate.z(target);
  r.step.push_back(last);
  r.cdf.push_back(0.0);
  if (impossible || z < law.lowest) {
    r.step.insert(r.step.end(), steps.begin(), steps.end());
    r.cdf.resize(r.step.size(), 0.0);
    return r;
  }
  const Paths paths = paths_of(law.degrees);
  const double density = density_of(trace);
  const std::size_t k = law.weight.size();
  std::vector<double> log_survival(k * kPaths, 0.0), survival(k * kPaths, 1.0), left(k, 1.0);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    const double* location = law.location.data() + j * k;
    const double* scale = law.scale.data() + j * k;
    double middle = 0;
    if (law.stretch[j] != 1) {
      const detail::MixtureView mixture{law.weight, {location, k}, {scale, k}, law.degrees};
      const double levels[] = {0.5};
      const double unit[] = {0.0};
      double median[] = {0.0};
      std::vector<double> guess;
      detail::mixture_quantiles(mixture, levels, unit, guess, median);
      middle = median[0];
    }
    const double inverse_noise = 1 / std::max(law.stretch[j] * law.noise[j], 1e-12);
    const double count = std::max(density * (steps[j] - r.step.back()), 1e-9);
    double never = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const double m = middle + law.stretch[j] * (location[i] - middle);
      const double width = law.stretch[j] * scale[i];
      const bool above = (m + width * paths.unit[0] - z) * inverse_noise > kFar;
      if (!above && left[i] > 1e-9) {
        double* mine = survival.data() + i * kPaths;
        pass(paths.unit.data(), m, width, law.lowest, law.highest, z, inverse_noise, count,
             log_survival.data() + i * kPaths, mine);
        left[i] = 0;
        for (std::size_t l = 0; l < kPaths; ++l) left[i] += paths.mass[l] * mine[l];
      }
      never += law.weight[i] * left[i];
    }
    r.step.push_back(steps[j]);
    r.cdf.push_back(std::clamp(1 - never, r.cdf.back(), 1.0));
  }
  r.prob_never = 1 - r.cdf.back();
  return r;
}

std::vector<Reach> reach_batch(std::span<const TraceView> traces, std::span<const double> targets,
                               std::span<const double> budgets, const ForecastOptions& options,
                               const Execution& execution) {
  const auto fits = [&](std::span<const double> values, const char* name) {
    if (values.size() != 1 && values.size() != traces.size()) {
      detail::refuse("reach_batch: ", traces.size(), " traces but ", values.size(), ' ', name);
    }
  };
  fits(targets, "targets");
  fits(budgets, "budgets");
  const auto value = [](std::span<const double> values, std::size_t i) {
    return values.size() == 1 ? values[0] : values[i];
  };
  std::vector<Reach> found(traces.size());
  detail::for_each_block(
      std::ssize(traces), 1, execution, [&](std::ptrdiff_t begin, std::ptrdiff_t) {
        const auto i = static_cast<std::size_t>(begin);
        found[i] = reach(traces[i], value(targets, i), value(budgets, i), options);
      });
  return found;
}

}  // namespace glidepath
