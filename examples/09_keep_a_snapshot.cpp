// SPDX-License-Identifier: Apache-2.0
// What does a scheduler keep from one round to the next? Usage: 09_keep_a_snapshot
#include "glidepath/glidepath.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace gp = glidepath;

int main() {
  // A live job is a run of which a third is known; it may take one to four GPUs of either tier.
  const std::vector<gp::Trace> runs = gp::read_traces("data/curves/docs-transformer.csv.gz");
  std::vector<gp::TraceView> seen;
  std::vector<double> budgets;
  for (const gp::Trace& run : runs) {
    budgets.push_back(run.step.back());
    seen.push_back(until(run.view(), run.step.back() / 3));
  }
  const std::vector<gp::Reach> reaches = gp::reach_batch(seen, std::vector{2.0}, budgets);

  const std::vector<gp::Tier> tiers{gp::make_tier("fast", "A100 SXM4 40GB", 1, 4),
                                    gp::make_tier("slow", "V100 SXM2", 2, 4)};
  std::vector<gp::Job> jobs(runs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    gp::Job& job = jobs[i];
    job.id = static_cast<std::int64_t>(i);
    job.steps_done = seen[i].step.back();
    job.budget_steps = budgets[i];
    job.remaining_steps = reaches[i].remaining_steps(64);
    job.forecast_at_steps = job.steps_done;  // what it does from here on is taken off
    for (const int gpus : {1, 2, 4}) {
      job.options.push_back({.tier = 0, .gpus = gpus, .steps_per_s = 0.2 * gpus});
      job.options.push_back({.tier = 1, .gpus = gpus, .steps_per_s = 0.1 * gpus});
    }
  }

  // Between rounds live the jobs, who runs and the prices: a Snapshot borrows all of them.
  constexpr double kRoundS = 360;
  std::vector<gp::Allocation> running;
  std::vector<double> prices;
  for (int round = 0; round < 3; ++round) {
    const double now_s = round * kRoundS;
    gp::Plan plan = gp::plan({now_s, tiers, jobs, running}, {.round_s = kRoundS, .prices = prices});
    std::printf("round %d: %zu jobs run, %zu end\n", round, plan.allocations.size(),
                plan.stop.size());
    for (const gp::Allocation& held : plan.allocations) {  // until the next round
      gp::Job& job = *std::ranges::find(jobs, held.job, &gp::Job::id);
      for (const gp::Option& option : job.options) {
        if (option.tier != held.tier || option.gpus != held.gpus) continue;
        job.steps_done += kRoundS * option.steps_per_s;
      }
      job.attained_s += kRoundS;
      job.attained_gpu_s += kRoundS * held.gpus;
    }
    std::erase_if(jobs, [&](const gp::Job& job) {
      return std::ranges::find(plan.stop, job.id) != plan.stop.end();
    });
    running = std::move(plan.allocations);
    prices = std::move(plan.prices);
  }
}
