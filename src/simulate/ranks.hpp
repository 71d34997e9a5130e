// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/forecasts.hpp"
#include "simulate/leader.hpp"
#include "simulate/running_order.hpp"

namespace glidepath::detail {

// What decides the order of jobs: the less, the earlier. `kByFinish`: of the running jobs of one
// gang the first to end is the first in the order. `kMonotone`: no key grows while its job runs.
// `ceiling`: no less than the key of a running job, and found sooner; `changes`: another count
// whenever those of before lapse.

inline constexpr double kMedianQuantile = 0.5;  ///< of the time still needed

/// A time still needed in ticks. Until a tick it gives the same end, if the run goes on as it does.
struct Lasting {
  double left = 0;
  Tick until = 0;
};

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
  [[nodiscard]] Lasting median(const Running& running) const {
    return {left(running.job, kMedianQuantile), kNever};
  }
  TimeRank<delayed> time;
  Leader leader;
};

/// Smallest E[min(S, d)] / P(S <= d) x GPUs first, the inverse of the Gittins index of the GPU-time
/// that is still needed (Gittins 1989; for gangs as in Tiresias), or of the time, where that leads.
struct GittinsRank {
  static constexpr bool kByFinish = false, kMonotone = false;
  explicit GittinsRank(Cluster& e) : cluster(e), predict(e), leader(e) {}
  bool refresh() {
    const bool learned = predict.refresh();
    const bool led = leader.refresh([&](int job) { return predict.likely(job); });
    cluster.by_gpu_time = leader.by_gpu_time();
    if (learned || led) ++changes_;
    return learned || led;
  }
  /// A change of all keys counts.
  [[nodiscard]] std::int64_t changes() const { return changes_; }
  [[nodiscard]] double left(int job, double p) const {
    return predict.left(job, p) / cluster.runs[job].fastest;
  }
  [[nodiscard]] Lasting median(const Running& running) const {
    const Predictor::Quantile now = predict.quantile(running.job, kMedianQuantile);
    return {now.left / cluster.runs[running.job].fastest,
            cluster.tick_before(running.job, now.until)};
  }
  [[nodiscard]] double waiting(int job) const { return key(predict.gittins_rank(job), job); }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  [[nodiscard]] Ceiling ceiling(const Running& running) const {
    const Predictor::Ceiling now = predict.rank_ceiling(running.job);
    return {key(now.rank, running.job), cluster.tick_before(running.job, now.until)};
  }
  [[nodiscard]] double key(double rank, int job) const {
    const Run& run = cluster.runs[job];
    return rank / run.fastest * leader.factor(run.gpus);
  }

  Cluster& cluster;
  Predictor predict;
  Leader leader;

 private:
  std::int64_t changes_ = 0;
};

}  // namespace glidepath::detail
