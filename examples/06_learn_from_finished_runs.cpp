// SPDX-License-Identifier: Apache-2.0
// What do finished runs teach about a live one? Usage: 06_learn_from_finished_runs [FILE]
#include "glidepath/glidepath.hpp"

#include <cstdio>
#include <optional>
#include <span>
#include <vector>

namespace gp = glidepath;

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[1] : "data/curves/digits-cnn.csv.gz";
  std::vector<gp::Trace> finished = gp::read_traces(file);
  const gp::Trace run = finished.back();
  finished.pop_back();

  // A third of the last run is known, and the learning rate that is planned for the rest of it.
  const gp::TraceView seen = until(run.view(), run.step.back() / 3);
  const std::span<const double> ahead = std::span(run.step).subspan(seen.step.size());
  const std::optional<gp::Schedule> schedule = gp::Schedule::logged(run);
  gp::ForecastOptions options;
  if (schedule) options.schedule = &*schedule;

  const auto print = [&](const char* name, const gp::Forecast& f) {
    const gp::ForecastInterval likely = gp::interval(f, 0.8);
    std::printf("%-6s: %.4f, 80%% inside [%.4f, %.4f]\n", name, f.median.back(), likely.low.back(),
                likely.high.back());
  };
  print("alone", gp::forecast(seen, ahead, options));
  const gp::PastRuns past(finished);
  options.past = &past;
  print("taught", gp::forecast(seen, ahead, options));
  std::printf("logged: %.4f\n", run.loss.back());
}
