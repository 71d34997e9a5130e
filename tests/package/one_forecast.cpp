// SPDX-License-Identifier: Apache-2.0
// One forecast with every digit: what one_forecast.c prints, in C++.
#include <cstdio>
#include <vector>

#include <glidepath/glidepath.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const glidepath::Trace run = glidepath::read_long_csv(argv[1]).front();
  const double budget = run.step.back();
  const glidepath::TraceView seen = until(run.view(), budget / 3);
  const std::vector<double> at{budget / 2, budget};
  const glidepath::Forecast ahead = glidepath::forecast(seen, at);
  const std::vector<double> low = glidepath::quantile(ahead, 0.1);
  const std::vector<double> high = glidepath::quantile(ahead, 0.9);
  for (std::size_t j = 0; j < at.size(); ++j) {
    std::printf("%.17g %.17g %.17g %.17g\n", at[j], low[j], ahead.median[j], high[j]);
  }
  const glidepath::Reach reach = glidepath::reach(seen, ahead.median.back(), budget);
  std::printf("%.17g\n", reach.prob_by(budget));
}
