// SPDX-License-Identifier: Apache-2.0
// A scheduling policy of one's own, beside two of the library's. Usage: 05_write_a_policy [FOLDER]
#include "glidepath/glidepath.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>
#include <vector>

namespace gp = glidepath;

namespace {

/// Seconds that a job is likely to need still on its fastest tier, by the median of its forecast.
double likely_seconds(const gp::Job& job) {
  double rate = 0;
  for (const gp::Option& option : job.options) rate = std::max(rate, option.steps_per_s);
  if (job.remaining_steps.empty() || rate == 0) return std::numeric_limits<double>::infinity();
  std::vector<double> steps = job.remaining_steps;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle / rate;
}

/// The job with the least left goes first, to the fastest tier that has room. Nothing is
/// interrupted. A policy is any function from what may be known to what shall run.
gp::Plan shortest_first(const gp::Snapshot& now) {
  gp::Plan plan;
  std::vector<int> free;
  for (const gp::Tier& tier : now.tiers) free.push_back(tier.gpus());
  std::set<std::int64_t> running;
  for (const gp::Allocation& held : now.running) {
    free[static_cast<std::size_t>(held.tier)] -= held.gpus;
    running.insert(held.job);
    plan.allocations.push_back(held);
  }

  std::vector<const gp::Job*> waiting;
  for (const gp::Job& job : now.jobs) {
    if (!running.contains(job.id)) waiting.push_back(&job);
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const gp::Job* a, const gp::Job* b) {
    return likely_seconds(*a) < likely_seconds(*b);
  });

  for (const gp::Job* job : waiting) {
    const gp::Option* best = nullptr;
    for (const gp::Option& option : job->options) {
      if (option.gpus > free[static_cast<std::size_t>(option.tier)]) continue;
      if (best == nullptr || option.steps_per_s > best->steps_per_s) best = &option;
    }
    if (best == nullptr) continue;
    free[static_cast<std::size_t>(best->tier)] -= best->gpus;
    plan.allocations.push_back(
        {.job = job->id, .tier = best->tier, .gpus = best->gpus, .since_s = now.now_s});
  }
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  const gp::Workload workload = gp::read_workload(argc > 1 ? argv[1] : "data/workloads/supercom");
  const auto show = [](const char* name, const gp::Simulation& run) {
    std::printf("%-14s mean wait %8.2f h, mean JCT %8.2f h\n", name, run.mean_wait_s / 3600,
                run.mean_jct_s / 3600);
  };
  show("fifo", gp::simulate(workload, "fifo"));
  show("srtf", gp::simulate(workload, "srtf"));
  show("shortest_first", gp::simulate(workload, shortest_first));
}
