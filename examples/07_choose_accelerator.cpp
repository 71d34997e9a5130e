// SPDX-License-Identifier: Apache-2.0
// Which accelerator for a run, and when does that change? Usage: 07_choose_accelerator [FILE]
#include "glidepath/glidepath.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <vector>

namespace gp = glidepath;

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[1] : "data/curves/docs-transformer.csv.gz";
  const gp::Trace run = gp::read_traces(file).front();
  const double target = 2.0, allowed_h = 8;

  const std::vector<gp::Tier> tiers{{.name = "T4",
                                     .nodes = 4,
                                     .gpus_per_node = 4,
                                     .memory_gb = 16,
                                     .idle_watts = 10,
                                     .busy_watts = 70,
                                     .price_per_gpu_hour = 0.5},
                                    {.name = "A100",
                                     .nodes = 2,
                                     .gpus_per_node = 8,
                                     .memory_gb = 40,
                                     .idle_watts = 60,
                                     .busy_watts = 400,
                                     .price_per_gpu_hour = 4.1}};
  // Measured steps per second of each gang; `options_of` makes more of them from a few.
  const std::vector<gp::Option> ways{{.tier = 0, .gpus = 1, .steps_per_s = 0.007},
                                     {.tier = 0, .gpus = 4, .steps_per_s = 0.024},
                                     {.tier = 1, .gpus = 1, .steps_per_s = 0.04},
                                     {.tier = 1, .gpus = 4, .steps_per_s = 0.13}};

  const std::size_t tenth = run.step.size() / 10;
  const gp::TraceView start = until(run.view(), run.step[tenth - 1]);
  for (const gp::Option& way : ways) {
    const double steps = 3600 * way.steps_per_s * allowed_h;
    const std::vector<double> ends{std::min(run.step.back(), run.step[tenth - 1] + steps)};
    std::printf("%d x %s gets to step %.0f and a loss of %.2f\n", way.gpus,
                tiers[way.tier].name.c_str(), ends[0], gp::forecast(start, ends).median[0]);
  }

  const gp::ForecastOptions by_point{.reached_by = gp::ReachedBy::point};
  std::optional<gp::Option> held;
  double spent_h = 0, before = 0;
  for (std::size_t k = tenth; k < run.step.size(); k += tenth) {
    const double now = run.step[k - 1];
    if (held) spent_h += (now - before) / (3600 * held->steps_per_s);
    before = now;
    if (std::ranges::min(std::span(run.loss).first(k)) <= target) {
      std::printf("step %4.0f: %g is reached, after %.1f h\n", now, target, spent_h);
      break;
    }
    const gp::TraceView seen = until(run.view(), now);
    const gp::Reach law = gp::reach(seen, target, run.step.back(), by_point);
    const gp::Job job{.id = 1,
                      .memory_gb = 12,
                      .options = ways,
                      .steps_done = now,
                      .remaining_steps = law.remaining_steps(64)};
    const gp::RunLimits limits{.max_hours = std::max(0.0, allowed_h - spent_h),
                               .max_node_watts = 1000};
    const gp::AcceleratorChoice best =
        gp::choose_accelerator(job, tiers, limits, gp::Preference::cost).front();
    if (best.option != held) {
      std::printf("step %4.0f: %s; %.1f h, %.1f kWh, %.0f $, at peak %.0f W in a node\n", now,
                  best.reason.c_str(), best.hours, best.kwh, best.cost, best.node_watts);
    }
    held = best.option;
  }
}
