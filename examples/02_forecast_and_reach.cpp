// SPDX-License-Identifier: Apache-2.0
// What will a run log, and when does it reach its target? Usage: 02_forecast_and_reach [FILE]
#include "glidepath/glidepath.hpp"

#include <cstdio>
#include <vector>

namespace gp = glidepath;

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[1] : "data/curves/docs-transformer.csv.gz";
  const gp::Trace run = gp::read_traces(file).front();

  // Only the first third is known; the rest says afterwards how good the forecast was.
  const double budget = run.step.back();
  const gp::TraceView seen = until(run.view(), budget / 3);
  const std::vector<double> steps{budget / 2, budget};
  const gp::Forecast ahead = gp::forecast(seen, steps);
  const gp::ForecastInterval likely = gp::interval(ahead, 0.9);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    std::printf("step %6.0f: %.4f, 90%% inside [%.4f, %.4f]\n", steps[j], ahead.median[j],
                likely.low[j], likely.high[j]);
  }
  std::printf("logged in the end: %.4f\n", run.loss.back());

  const double target = ahead.median.back();
  const gp::Reach reach = gp::reach(seen, target, budget);
  std::printf("loss %.4f by step %.0f: probability %.2f\n", target, budget, reach.prob_by(budget));
}
