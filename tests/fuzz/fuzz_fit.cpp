// SPDX-License-Identifier: Apache-2.0
// Fits of arbitrary numbers: a usable one has finite parameters and predicts finite losses where it
// was fitted.
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

void check(const FitBatch& batch) {
  for (std::size_t i = 0; i < batch.status.size(); ++i) {
    if (!usable(batch.status[i])) continue;
    for (std::size_t k = 0; k < parameter_names(batch.family).size(); ++k) {
      GLIDEPATH_HOLDS(std::isfinite(batch.parameters[k][i]));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Case given(data, size);
  const int kind = given.byte(), what = given.byte(), count = given.between(0, 24);
  FitOptions options{.family = kFamilies[given.byte() % kFamilies.size()]};
  if (kind % 64 == 63) options.family.reset();  // all families take eight times as long
  if (what & 2) options.lowest_floor = given.number();
  if (what & 4) options.from_step = given.number();
  const std::vector<double> steps = given.steps(count), losses = given.numbers(count);
  std::vector<double> weights;
  if (what & 0x20) weights = given.numbers(count);
  const TraceView trace{steps, losses, weights};
  fuzz::allow_refusal([&] {
    if (kind % 4 == 0 && options.family) {
      Rows rows(2, count);
      for (int j = 0; j < count; ++j) rows(0, j) = rows(1, count - 1 - j) = losses[j];
      return check(fit_batch(steps, rows, options, {.threads = 1}));
    }
    if (kind % 64 == 1) options.robust = Robust::huber;  // by Ceres, a hundred times slower
    check(fit(trace, options), trace);
  });
  return 0;
}
