// SPDX-License-Identifier: Apache-2.0
#include "simulate/leader.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "simulate/queues.hpp"

namespace glidepath::detail {

namespace {

constexpr int kMostJobs = 1000;
constexpr double kLongestS = 1e8;  ///< three years: a forecast of more says no more

double mean_jct(const Workload& workload, std::string_view policy) {
  SimulationOptions options;
  options.spans = false;
  Engine engine(workload, options, false);
  run_queue(engine, policy);
  double sum = 0;
  for (const Run& run : engine.runs) sum += engine.seconds(run.end - run.submit);
  return sum / static_cast<double>(engine.runs.size());
}

}  // namespace

bool Leader::due() {
  if (led_) return engine_.arrived >= look_at_;
  // Nobody has led yet: as soon as somebody has to wait.
  const int waiting = engine_.live - static_cast<int>(engine_.running.size());
  const int arrivals = engine_.arrived - std::exchange(arrived_, engine_.arrived);
  return waiting > arrivals || (waiting > 0 && engine_.free[0] == 0);
}

bool Leader::refresh(const std::function<double(int)>& work) {
  if (!due()) return false;
  look_at_ = 2 * engine_.arrived;
  Workload past;
  past.tiers.push_back({.name = "past", .nodes = engine_.capacity[0]});
  for (int job = std::max(0, engine_.arrived - kMostJobs); job < engine_.arrived; ++job) {
    const Run& run = engine_.runs[Engine::index(job)];
    const double ticks = std::max(1.0, run.end >= 0 ? run.work : work(job));
    WorkloadJob& played = past.jobs.emplace_back();
    played.id = job;
    played.submit_s = engine_.seconds(run.submit);
    played.gpus = run.gpus;
    played.duration_s = std::min(kLongestS, ticks / static_cast<double>(engine_.per_second));
  }
  const double time = mean_jct(past, "srtf");
  const double gpu_time = mean_jct(past, "srsf");
  const bool before = by_gpu_time_;
  if (time != gpu_time) {
    by_gpu_time_ = gpu_time < time;
    led_ = true;
  }
  return by_gpu_time_ != before;
}

}  // namespace glidepath::detail
