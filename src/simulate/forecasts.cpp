// SPDX-License-Identifier: Apache-2.0
#include "simulate/forecasts.hpp"

#include "glidepath/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/rng.hpp"

namespace glidepath::detail {

namespace {

constexpr int kSamples = 20;        ///< equally likely values of a law
constexpr std::size_t kFewest = 5;  ///< points before the first forecast of a curve

}  // namespace

double normal_quantile(double p) {
  // Bisection on erfc: 60 halvings of [-40, 40] exhaust a double's digits; nothing here is hot.
  double low = -40;
  double high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

Predictor::Predictor(const Engine& engine)
    : engine_(engine), sigma_(engine.options.forecast_sigma.value_or(0)) {
  const Rng rng{engine.options.seed};
  total_.reserve(engine.runs.size());
  for (std::size_t i = 0; i < engine.runs.size(); ++i) {
    total_.push_back(engine.runs[i].work * std::exp(sigma_ * rng.normal(i, 0)));
  }
  if (!engine.workload.curves.empty()) known_.resize(engine.runs.size());
}

void Predictor::curve(int job, Job& seen) {
  Known& known = known_[Engine::index(job)];
  const std::size_t points = seen.observed.step.size();
  if (points < kFewest) return;
  if (known.reached_at.empty() ||
      points >= known.points + std::max<std::size_t>(2, known.points / 4)) {
    // The schedule of the learning rate is part of what the user submitted, unlike the losses.
    const Trace& curve = engine_.workload.curves[Engine::index(engine_.asked(job).truth)];
    ForecastOptions options;
    if (!curve.lr.empty()) {
      const std::span<const double> lr = curve.lr, step = curve.step;
      options.learning_rate = {lr.first(points), lr.subspan(points), step.subspan(points)};
    }
    const Reach law = reach(seen.observed, seen.target_loss, seen.budget_steps, options);
    known.points = points;
    known.reached_at.resize(kSamples);
    for (int i = 0; i < kSamples; ++i) {
      known.reached_at[Engine::index(i)] = law.quantile((i + 0.5) / kSamples);
    }
  }
  // Steps at which it should have happened by now, and did not, tell nothing any more.
  seen.remaining_steps.clear();
  for (const double step : known.reached_at) {
    if (step > seen.steps_done) seen.remaining_steps.push_back(step - seen.steps_done);
  }
  if (seen.remaining_steps.empty()) known.points = 0;  // forecast again at the next decision
}

void Predictor::service(int job, Job& seen) const {
  const auto per_second = static_cast<double>(engine_.per_second);
  const double done = engine_.done(job);
  const double total = total_[Engine::index(job)];
  seen.remaining_steps.clear();
  if (sigma_ == 0) {
    seen.remaining_steps.push_back(std::max(0.0, total - done) / per_second);
    return;
  }
  // True total = forecast x exp(sigma z): quantiles of its law beyond what has been done.
  const double passed =
      done <= 0 ? 0 : 0.5 * std::erfc(-std::log(done / total) / sigma_ / std::numbers::sqrt2);
  if (passed > 1 - 1e-12) {
    seen.remaining_steps.push_back(done / per_second);
    return;
  }
  for (int i = 0; i < kSamples; ++i) {
    const double z = normal_quantile(passed + (1 - passed) * (i + 0.5) / kSamples);
    seen.remaining_steps.push_back(std::max(1.0, total * std::exp(sigma_ * z) - done) / per_second);
  }
}

}  // namespace glidepath::detail
