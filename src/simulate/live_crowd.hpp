// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "plan/learned.hpp"
#include "simulate/cluster.hpp"
#include "simulate/forecasts.hpp"

namespace glidepath::detail {

/// The live jobs as `learned` sees them on one tier. How far the laws of what they need spread
/// changes with all that is done, and so does the mean; but while a job stays in a cell of its law
/// its spread lies between bounds. Their sums are kept, so that an event looks at no more of most
/// running jobs. They are whole numbers, which add up the same in any order.
class LiveCrowd {
 public:
  /// What a number lies between.
  template <typename Number>
  struct Bounds {
    Number low = 0, high = 0;
  };

  LiveCrowd(const Cluster& cluster, const Predictor& predict)
      : cluster_(cluster),
        predict_(predict),
        seen_(cluster.runs.size()),
        bounds_(cluster.runs.size()) {}

  /// A job has arrived, or waits again.
  void wait(int job) {
    if (job == arrived_) {
      ++arrived_;
      live_.push_back(job);
      count(job, 1);
    }
    renew(job, kNever);
  }
  void leave(int job) {
    add(bounds_[job], -1);
    count(job, -1);
    ended_ = true;
  }
  /// In order of submission.
  [[nodiscard]] const std::vector<int>& live() {
    if (ended_) std::erase_if(live_, [&](int job) { return cluster_.runs[job].end >= 0; });
    ended_ = false;
    return live_;
  }

  /// What is known of the durations of some jobs has changed.
  void renew_known() {
    for (const int job : live()) {
      if (seen_[job].version != predict_.version(job)) renew(job, cluster_.runs[job].finishes);
    }
  }
  /// To be called at each event, for the running jobs.
  void look() {
    for (const Running& running : cluster_.running) {
      const Seen& seen = seen_[running.job];
      const bool holds = seen.finishes == running.finishes && cluster_.now < seen.until;
      if (!holds) renew(running.job, running.finishes);
    }
  }

  /// What the mean spread of the live jobs lies between; there must be one.
  [[nodiscard]] Bounds<double> spread() const { return {mean(sums_.low), mean(sums_.high)}; }

  /// As out_of_range() reads it, with that mean spread.
  [[nodiscard]] Crowd with_spread(double spread) const {
    const double restart_s = cluster_.seconds(restarts_.rbegin()->first);
    return Crowd::on_one_tier({.gpus = static_cast<double>(asked_),
                               .largest = static_cast<double>(gangs_.rbegin()->first),
                               .spread = spread,
                               .restart_s = restart_s},
                              cluster_.capacity[0]);
  }

 private:
  static constexpr double kUnit = 1 << 20;  ///< of what the bounds are counted in
  /// The run for which the bounds hold, and until when.
  struct Seen {
    Tick finishes = kNever, until = 0;
    std::int64_t version = -1;  ///< of what was known of the job
  };

  void renew(int job, Tick finishes) {
    const Predictor::SpreadWithin now = predict_.spread_within(job);
    seen_[job] = {finishes, cluster_.tick_before(job, now.until), predict_.version(job)};
    add(bounds_[job], -1);
    bounds_[job] = {below(now.low), above(now.high)};
    add(bounds_[job], 1);
  }
  // A unit more than rounding may change.
  static std::int64_t below(double value) {
    return static_cast<std::int64_t>(std::floor(value * kUnit)) - 1;
  }
  static std::int64_t above(double value) {
    return static_cast<std::int64_t>(std::ceil(value * kUnit)) + 1;
  }
  void add(const Bounds<std::int64_t>& bounds, int times) {
    sums_.low += times * bounds.low;
    sums_.high += times * bounds.high;
  }
  [[nodiscard]] double mean(std::int64_t sum) const {
    return static_cast<double>(sum) / kUnit / cluster_.live;
  }
  void count(int job, int times) {
    const int gpus = cluster_.submitted(job).gpus;
    const Tick restart = cluster_.restart_of(job);
    asked_ += times * gpus;
    if ((gangs_[gpus] += times) == 0) gangs_.erase(gpus);
    if ((restarts_[restart] += times) == 0) restarts_.erase(restart);
  }

  const Cluster& cluster_;
  const Predictor& predict_;
  std::vector<int> live_;  ///< in order of submission, and where `ended_` some that have ended
  bool ended_ = false;
  int arrived_ = 0;
  std::int64_t asked_ = 0;                    ///< GPUs
  std::map<int, int> gangs_;                  ///< live jobs by GPUs
  std::map<Tick, int> restarts_;              ///< and by the ticks of a restart
  std::vector<Seen> seen_;                    ///< of each job
  std::vector<Bounds<std::int64_t>> bounds_;  ///< of each job; none of one that has not arrived
  Bounds<std::int64_t> sums_;                 ///< over the live jobs
};

}  // namespace glidepath::detail
