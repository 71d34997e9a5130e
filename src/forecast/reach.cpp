// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/require.hpp"
#include "forecast/interpolate.hpp"
#include "forecast/law.hpp"
#include "forecast/student.hpp"

namespace glidepath {
namespace {

constexpr std::size_t kGrid = 60;  // log-spaced steps from the last observed one to the budget

}  // namespace

double Reach::prob_by(double at_step) const {
  if (step.empty() || !(at_step >= step.front())) return 0;
  return detail::interpolate(at_step, step, cdf);
}

double Reach::quantile(double p) const {
  if (!(p >= 0 && p <= 1)) detail::refuse("reach: probability ", p, " is not in 0 to 1");
  if (cdf.empty() || p > cdf.back()) return std::numeric_limits<double>::infinity();
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
  const detail::Predicted predicted = detail::predict_law(trace, steps, kGrid, options);
  const ForecastLaw& law = predicted.law;
  r.status = predicted.prepared.status;

  const detail::Coordinate coordinate = detail::coordinate_of(law);
  const bool impossible = rising ? target > coordinate.ceiling : target < coordinate.floor;
  const double z = coordinate.z(target);
  r.step.push_back(last);
  r.cdf.push_back(0.0);
  const std::size_t k = law.weight.size();
  for (std::size_t j = 0; j < steps.size(); ++j) {
    double p = 0;
    if (!impossible && z >= law.lowest) {
      const detail::MixtureView mixture{
          law.weight, {law.location.data() + j * k, k}, {law.scale.data() + j * k, k}, law.degrees};
      double at = z;
      if (law.stretch[j] != 1) {
        const double levels[] = {0.5};
        const double unit[] = {0.0};
        double median[] = {0.0};
        std::vector<double> guess;
        detail::mixture_quantiles(mixture, levels, unit, guess, median);
        at = median[0] + (z - median[0]) / law.stretch[j];
      }
      p = detail::mixture_cdf(mixture, at);
    }
    r.step.push_back(steps[j]);
    r.cdf.push_back(std::max(r.cdf.back(), p));
  }
  r.prob_never = 1 - r.cdf.back();
  return r;
}

}  // namespace glidepath
