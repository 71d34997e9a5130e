// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/forecasts.hpp"
#include "simulate/leader.hpp"

namespace glidepath::detail {

// What decides the order of jobs: the less, the earlier. `kByFinish`: of the running jobs of one
// gang the first to end is the first in the order. `kMonotone`: no key grows while its job runs.
// `ceiling`: no less than the key of a running job, and found sooner.

/// Smallest gang first.
struct GangRank {
  static constexpr bool kByFinish = false, kMonotone = true;
  explicit GangRank(Cluster& e) : cluster(e) {}
  [[nodiscard]] double waiting(int job) const { return cluster.runs[job].gpus; }
  [[nodiscard]] double running(const Running& job) const { return job.gpus; }
  Cluster& cluster;
};

/// Earliest deadline first, jobs without one after all others in order of submission.
struct DeadlineRank {
  static constexpr bool kByFinish = false, kMonotone = true;
  explicit DeadlineRank(Cluster& e) : cluster(e) {}
  [[nodiscard]] double waiting(int job) const { return cluster.submitted(job).deadline_s; }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  Cluster& cluster;
};

/// Shortest remaining time, or time x GPUs, by forecast: what is left of it, and once it is passed
/// as long again.
template <bool times_gpus>
struct ForecastRank {
  static constexpr bool kByFinish = false, kMonotone = false;
  explicit ForecastRank(Cluster& e) : cluster(e), predict(e) {}
  [[nodiscard]] double waiting(int job) const {
    const double done = cluster.done(job);
    const double total = predict.total(job);
    return (done < total ? total - done : done) / cluster.runs[job].fastest *
           (times_gpus ? cluster.runs[job].gpus : 1);
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  Cluster& cluster;
  Predictor predict;
};

/// Shortest remaining time, exactly known. A start that is still pending does not count: a job that
/// has just started would else come after those that it came before. `delayed`: starts take time.
template <bool delayed>
struct TimeRank {
  static constexpr bool kByFinish = !delayed, kMonotone = true;
  explicit TimeRank(Cluster& e) : cluster(e) {}
  [[nodiscard]] double waiting(int job) const {
    const Run& run = cluster.runs[job];
    return (run.work - run.done) / cluster.runs[job].fastest;
  }
  [[nodiscard]] double running(const Running& running) const {
    const Tick from =
        delayed ? std::max(cluster.now, cluster.runs[running.job].resumes) : cluster.now;
    return static_cast<double>(running.finishes - from);
  }
  Cluster& cluster;
};

/// Smallest remaining time x GPUs, exactly known.
template <bool delayed>
struct ServiceRank {
  static constexpr bool kByFinish = !delayed, kMonotone = true;
  explicit ServiceRank(Cluster& e) : time(e) {}
  [[nodiscard]] double waiting(int job) const { return time.waiting(job) * gpus(job); }
  [[nodiscard]] double running(const Running& running) const {
    return time.running(running) * running.gpus;
  }
  [[nodiscard]] double gpus(int job) const { return time.cluster.runs[job].gpus; }
  TimeRank<delayed> time;
};

/// The one of these two that would have served the jobs so far better.
template <bool delayed>
struct LedRank {
  static constexpr bool kByFinish = !delayed, kMonotone = true;
  explicit LedRank(Cluster& e) : time(e), leader(e) {}
  bool refresh() {
    const bool led = leader.refresh(
        [&](int job) { return time.cluster.runs[job].work / time.cluster.runs[job].fastest; });
    time.cluster.by_gpu_time = leader.by_gpu_time();
    return led;
  }
  [[nodiscard]] double waiting(int job) const {
    return time.waiting(job) * leader.factor(time.cluster.runs[job].gpus);
  }
  [[nodiscard]] double running(const Running& running) const {
    return time.running(running) * leader.factor(running.gpus);
  }
  /// A quantile of the time still needed: for patience.
  [[nodiscard]] double left(int job, double) const {
    return (time.cluster.runs[job].work - time.cluster.done(job)) / time.cluster.runs[job].fastest;
  }
  TimeRank<delayed> time;
  Leader leader;
};

/// Smallest E[min(S, d)] / P(S <= d) x GPUs first, the inverse of the Gittins index of the GPU-time
/// that is still needed (Gittins 1989; for gangs as in Tiresias), or of the time, where that leads.
struct GittinsRank {
  static constexpr bool kByFinish = false, kMonotone = false;
  explicit GittinsRank(Cluster& e) : cluster(e), predict(e), leader(e), ceilings(e.runs.size()) {}
  bool refresh() {
    const bool learned = predict.refresh();
    const bool led = leader.refresh([&](int job) { return predict.likely(job); });
    cluster.by_gpu_time = leader.by_gpu_time();
    if (learned || led) ++changes;
    return learned || led;
  }
  [[nodiscard]] double left(int job, double p) const {
    return predict.left(job, p) / cluster.runs[job].fastest;
  }
  [[nodiscard]] double waiting(int job) const { return key(predict.gittins_rank(job), job); }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  [[nodiscard]] double ceiling(const Running& running) const {
    KnownCeiling& known = ceilings[running.job];
    const bool holds = known.finishes == running.finishes && known.changes == changes;
    if (holds && cluster.now < known.until) return known.key;
    const Predictor::Ceiling now = predict.rank_ceiling(running.job);
    const Run& run = cluster.runs[running.job];
    // In ticks, and not so long that rounding could count.
    const double length = (now.until - cluster.done(running.job)) / run.rate * (1 - 1e-9) - 2;
    known = {running.finishes, cluster.now + static_cast<Tick>(std::clamp(length, 0.0, 1e15)),
             changes, key(now.rank, running.job)};
    return known.key;
  }
  [[nodiscard]] double key(double rank, int job) const {
    const Run& run = cluster.runs[job];
    return rank / run.fastest * leader.factor(run.gpus);
  }
  /// Ceiling of a job in a run that ends at `finishes` if it is left alone: so does no other run of
  /// it but one that goes on alike. An event looks at it, and at no more, for most running jobs.
  struct KnownCeiling {
    Tick finishes = kNever, until = 0;
    std::int64_t changes = 0;
    double key = 0;
  };
  Cluster& cluster;
  Predictor predict;
  Leader leader;
  mutable std::vector<KnownCeiling> ceilings;  ///< of each job
  std::int64_t changes = 0;                    ///< of all keys
};

}  // namespace glidepath::detail
