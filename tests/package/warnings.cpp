// SPDX-License-Identifier: Apache-2.0
// What programs write that are compiled with more warnings than ours, each of them an error.
#include <vector>

#include <glidepath/eigen.hpp>
#include <glidepath/glidepath.h>
#include <glidepath/glidepath.hpp>

int main() {
  GLIDEPATH_INIT(glidepath_trace_t, trace);
  const glidepath::RoundView round{.capacity = {}};
  const glidepath::RoundPlan solved{.value = 1};
  const glidepath::Plan plan{.value = 1};
  const glidepath::Fit fit{.sigma = 1};
  const glidepath::Forecast forecast{.at = {1}};
  glidepath::EigenRows losses = glidepath::EigenRows::Ones(2, 30);
  std::vector<double> step, at{40};
  for (int t = 1; t <= 30; ++t) step.push_back(t);
  const auto batch = glidepath::forecast_batch(step, glidepath::as_rows(losses), at);
  return static_cast<int>(trace.points + round.job.size() + solved.chosen.size() +
                          plan.stop.size() + fit.scores.size() + forecast.levels.size()) +
         static_cast<int>(batch.median(0, 0));
}
