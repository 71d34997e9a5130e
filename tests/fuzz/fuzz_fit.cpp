// SPDX-License-Identifier: Apache-2.0
// Fits of arbitrary numbers: a usable one has finite parameters and predicts finite losses where it
// was fitted, a batch says the same as its rows.
#include "glidepath/fit.hpp"

#include <vector>

#include "case.hpp"

namespace {

using namespace glidepath;

void check(const Fit& fit, const TraceView& trace) {
  if (!usable(fit.status)) return;
  const std::size_t count = parameter_names(fit.curve.family).size();
  GLIDEPATH_HOLDS(fuzz::finite({fit.curve.parameters.data(), count}));
  GLIDEPATH_HOLDS(fit.sigma >= 0 && fit.rss >= 0);
  if (!trace.step.empty()) GLIDEPATH_HOLDS(std::isfinite(evaluate(fit.curve, trace.step.back())));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Case given(data, size);
  const int what = given.byte(), count = given.between(0, 40);
  FitOptions options;
  if (what & 1) options.family = kFamilies[given.byte() % kFamilies.size()];
  if (what & 2) options.lowest_floor = given.number();
  if (what & 4) options.from_step = given.number();
  if ((what & 0x18) == 0x18) options.robust = Robust::huber;
  const std::vector<double> steps = given.steps(count), losses = given.numbers(count);
  std::vector<double> weights;
  if (what & 0x20) weights = given.numbers(count);
  const TraceView trace{steps, losses, weights};
  fuzz::allow_refusal([&] { check(fit(trace, options), trace); });
  fuzz::allow_refusal([&] {
    const Cleaned cleaned = clean({.step = steps, .loss = losses}, {.max_points = 1 + what % 64});
    check(fit(cleaned.trace.view(), options), cleaned.trace.view());
  });
  if (!options.family || options.robust != Robust::none) return 0;
  fuzz::allow_refusal([&] {
    Rows rows(2, count);
    for (int j = 0; j < count; ++j) rows(0, j) = rows(1, count - 1 - j) = losses[j];
    const FitBatch batch = fit_batch(steps, rows, options, {.threads = 1});
    for (std::size_t i = 0; i < 2; ++i) {
      if (!usable(batch.status[i])) continue;
      for (std::size_t k = 0; k < parameter_names(batch.family).size(); ++k) {
        GLIDEPATH_HOLDS(std::isfinite(batch.parameters[k][i]));
      }
    }
  });
  return 0;
}
