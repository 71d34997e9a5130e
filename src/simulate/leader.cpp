// SPDX-License-Identifier: Apache-2.0
#include "simulate/leader.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "simulate/policy_table.hpp"

namespace glidepath::detail {

namespace {

constexpr int kReplayedJobs = 1000;
constexpr double kMaxForecastS = 1e8;  ///< three years: a forecast of more says no more

double mean_jct(const Workload& workload, QueueKernel* play) {
  SimulationOptions options;
  options.spans = false;
  Cluster cluster(workload, options);
  play(cluster);
  double sum = 0;
  for (const Run& run : cluster.runs) sum += cluster.seconds(run.end - run.submit);
  return sum / static_cast<double>(cluster.runs.size());
}

/// Whether both orders are surely the same: nobody has to wait, or from then on all gangs are of
/// one size. Until then each job runs from its submission on, a second more or less.
bool alike(const Workload& past) {
  using End = std::pair<double, int>;
  std::priority_queue<End, std::vector<End>, std::greater<>> live;  // when, GPUs
  int free = past.tiers.front().nodes, gang = 0;
  bool waits = false;
  for (const WorkloadJob& job : past.jobs) {
    for (; !waits && !live.empty() && live.top().first < job.submit_s - 1; live.pop()) {
      free += live.top().second;
    }
    if (!waits) {
      live.emplace(job.submit_s + job.duration_s, job.gpus);
      free -= job.gpus;
      waits = free < 0;
      if (!waits) continue;
      for (gang = job.gpus; !live.empty(); live.pop()) {
        if (live.top().second != gang) return false;
      }
    }
    if (job.gpus != gang) return false;
  }
  return true;
}

}  // namespace

bool Leader::due() {
  if (cluster_.capacity.size() > 1) return false;
  if (led_) return cluster_.arrived >= look_at_;
  // Nobody has led yet: as soon as somebody has to wait.
  const int waiting = cluster_.live - static_cast<int>(cluster_.running.size());
  const int arrivals = cluster_.arrived - std::exchange(arrived_, cluster_.arrived);
  return waiting > arrivals || (waiting > 0 && cluster_.free[0] == 0);
}

/// Whether the jobs from this one on are all of one size: both orders are the same then.
bool Leader::have_one_gang(int first) {
  for (; compared_ < cluster_.arrived; ++compared_) {
    if (cluster_.runs[compared_].gpus != cluster_.runs[compared_ - 1].gpus) changed_ = compared_;
  }
  return changed_ <= first;
}

bool Leader::refresh(const std::function<double(int)>& work) {
  if (!due()) return false;
  look_at_ = 2 * cluster_.arrived;
  const int first = std::max(0, cluster_.arrived - kReplayedJobs);
  if (have_one_gang(first)) return false;
  Workload past;
  past.tiers.push_back({.name = "past", .nodes = cluster_.capacity[0]});
  for (int job = first; job < cluster_.arrived; ++job) {
    const Run& run = cluster_.runs[job];
    const double ticks = std::max(1.0, run.end >= 0 ? run.work : work(job));
    WorkloadJob& played = past.jobs.emplace_back();
    played.id = job;
    played.submit_s = cluster_.seconds(run.submit);
    played.gpus = run.gpus;
    // With nodes out a gang may be larger than what is left.
    past.tiers.front().nodes = std::max(past.tiers.front().nodes, run.gpus);
    played.duration_s = std::min(kMaxForecastS, ticks / static_cast<double>(cluster_.per_second));
  }
  if (alike(past)) return false;
  const double time = mean_jct(past, &run_srtf);
  const double gpu_time = mean_jct(past, &run_srsf);
  const bool before = by_gpu_time_;
  if (time != gpu_time) {
    by_gpu_time_ = gpu_time < time;
    led_ = true;
  }
  return by_gpu_time_ != before;
}

}  // namespace glidepath::detail
