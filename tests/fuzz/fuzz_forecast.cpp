// SPDX-License-Identifier: Apache-2.0
// Forecasts, reach and a watched run on arbitrary numbers: quantiles are finite and in order,
// probabilities are probabilities, and a refusal is a sentence.
#include "glidepath/forecast.hpp"
#include "glidepath/watch.hpp"

#include <vector>

#include "case.hpp"
#include "forecast/stored_law.hpp"
#include "small_table.hpp"

namespace {

using namespace glidepath;
using fuzz::Case;

bool probability(double p) { return p >= 0 && p <= 1; }

void check(const Forecast& f) {
  GLIDEPATH_HOLDS(fuzz::finite(f.median));
  for (const Rows* quantiles : {&f.quantiles, &f.curve_quantiles}) {
    for (std::ptrdiff_t j = 0; j < quantiles->cols(); ++j) {
      for (std::ptrdiff_t i = 0; i < quantiles->rows(); ++i) {
        GLIDEPATH_HOLDS(std::isfinite((*quantiles)(i, j)));
        GLIDEPATH_HOLDS(i == 0 || (*quantiles)(i - 1, j) <= (*quantiles)(i, j));
      }
    }
  }
}

void check(const Reach& r) {
  GLIDEPATH_HOLDS(!r.step.empty() && r.step.size() == r.cdf.size() && probability(r.prob_never));
  for (std::size_t i = 0; i < r.step.size(); ++i) {
    GLIDEPATH_HOLDS(std::isfinite(r.step[i]) && probability(r.cdf[i]));
    GLIDEPATH_HOLDS(i == 0 || (r.step[i - 1] < r.step[i] && r.cdf[i - 1] <= r.cdf[i]));
  }
  double before = -std::numeric_limits<double>::infinity();
  for (const double p : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    const double at = r.quantile(p);
    GLIDEPATH_HOLDS(at >= before);
    before = at;
  }
}

void watch(Case& given, const std::vector<double>& steps, const std::vector<double>& losses,
           double target, double budget, Direction direction) {
  Watch watched({.target = target, .budget = budget, .direction = direction});
  for (std::size_t i = 0; i < steps.size(); ++i) {
    watched.add(given.byte() % 16 == 0 ? given.number() : steps[i], losses[i]);
  }
  const Decision decision = watched.decision();
  GLIDEPATH_HOLDS(probability(decision.probability));
  GLIDEPATH_HOLDS(!decision.reason.empty());
  for (const double ahead : decision.steps_to_target) GLIDEPATH_HOLDS(ahead >= 0);
  WatchState state = watched.state();
  watched.restore(state);
  if (state.step.empty()) return;
  state.loss[given.byte() % state.loss.size()] = given.number();
  state.weight[given.byte() % state.weight.size()] = given.number();
  watched.restore(state);
  GLIDEPATH_HOLDS(probability(watched.decision().probability));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Case given(data, size);
  const int kind = given.byte(), what = given.byte(), count = given.between(0, 40);
  const std::vector<double> steps = given.steps(count), losses = given.numbers(count);
  std::vector<double> weights;
  if (what & 8) weights = given.numbers(count);
  ForecastOptions options{.direction = what & 1 ? Direction::max : Direction::min};
  if (what & 16) options.constants = fuzz::small_table();
  const TraceView trace{steps, losses, weights};
  const double target = given.number(), budget = given.number();
  fuzz::allow_refusal([&] {
    if (kind % 16 == 0) return watch(given, steps, losses, target, budget, options.direction);
    if (kind % 2 == 0) {
      options.reached_by = what & 4 ? ReachedBy::point : ReachedBy::curve;
      return check(reach(trace, target, budget, options));
    }
    std::vector<double> at = given.steps(given.between(1, 20));
    if (what & 2 && !steps.empty()) {
      for (double& step : at) step += steps.back();
    }
    const Forecast made = forecast(trace, at, options);
    check(made);
    GLIDEPATH_HOLDS(detail::pack_law(detail::unpack_law(detail::pack_law(*made.law))) ==
                    detail::pack_law(*made.law));
  });
  return 0;
}
