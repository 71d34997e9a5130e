// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/require.hpp"
#include "forecast/interpolate.hpp"
#include "forecast/kernels.hpp"
#include "forecast/law.hpp"
#include "forecast/student.hpp"

namespace glidepath {
namespace {

constexpr std::size_t kGrid = 60;  // log-spaced steps from the last observed one to the budget
constexpr double kFar = 60;        // sd of the noise: no observation strays so far
// Probabilities between which a path lies: fine in the tails, where "never" is decided.
constexpr std::array kEdges{0.0, 0.004, 0.03, 0.15, 0.5, 0.85, 0.97, 0.996, 1.0};

/// Points of the unit Student-t, the middles between the edges, and their masses.
struct Paths {
  std::array<double, detail::kPaths> unit{}, mass{};
};

Paths paths_of(double degrees) {
  Paths paths;
  for (std::size_t i = 0; i < detail::kPaths; ++i) {
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

}  // namespace

double Reach::prob_by(double at_step) const {
  if (step.empty() || !(at_step >= step.front())) return 0;
  return detail::interpolate(at_step, step, cdf);
}

double Reach::quantile(double p, bool if_reached) const {
  if (!(p >= 0 && p <= 1)) detail::refuse("reach: probability ", p, " is not in 0 to 1");
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (cdf.empty() || (if_reached && cdf.back() == 0)) return kNever;
  if (if_reached) p *= cdf.back();
  if (p > cdf.back()) return kNever;
  const auto above = std::lower_bound(cdf.begin(), cdf.end(), p);
  const auto i = static_cast<std::size_t>(above - cdf.begin());
  if (i == 0) return step[0];
  return step[i - 1] + (step[i] - step[i - 1]) * ((p - cdf[i - 1]) / (cdf[i] - cdf[i - 1]));
}

Reach reach(TraceView trace, double target, double budget, const ForecastOptions& options) {
  validate(trace);
  if (std::isnan(target)) detail::refuse("reach: the target is NaN");
  if (!std::isfinite(budget)) detail::refuse("reach: budget ", budget, " is not finite");
  const bool rising = options.direction == Direction::max;
  Reach r;
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
  std::vector<double> log_survival(k * detail::kPaths, 0.0), survival(k * detail::kPaths, 1.0),
      left(k, 1.0);
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
        double* mine = survival.data() + i * detail::kPaths;
        detail::forecast_kernels().pass(paths.unit.data(), m, width, law.lowest, law.highest, z,
                                        inverse_noise, count,
                                        log_survival.data() + i * detail::kPaths, mine);
        left[i] = 0;
        for (std::size_t l = 0; l < detail::kPaths; ++l) left[i] += paths.mass[l] * mine[l];
      }
      never += law.weight[i] * left[i];
    }
    r.step.push_back(steps[j]);
    r.cdf.push_back(std::clamp(1 - never, r.cdf.back(), 1.0));
  }
  r.prob_never = 1 - r.cdf.back();
  return r;
}

}  // namespace glidepath
