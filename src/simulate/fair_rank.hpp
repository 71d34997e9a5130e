// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "simulate/fair_finish.hpp"
#include "simulate/ranks.hpp"

namespace glidepath::detail {

/// The order of GittinsRank over the weight, behind the jobs that head for more than max_ftf fair
/// shares, see FairFinish, and behind long ones. A waiting job is looked at again no later than it
/// can get there: between looks nothing is done for it.
struct FairRank {
  static constexpr bool kByFinish = false, kMonotone = false;
  explicit FairRank(Cluster& e)
      : base_(e), rule_(e.options), worst_(rule_.max_ftf), seen_(e.runs.size()) {
    for (const Tier& tier : e.workload.tiers) gpus_ += tier.gpus();
  }

  /// To be called when a job begins to wait.
  void begin_wait(int job) {
    pass_time();
    for (; arrived_ <= job; ++arrived_) arrive(arrived_);
    if (!is_late(job)) await(job);
  }
  /// When some waiting job has to be looked at.
  [[nodiscard]] Tick wake() const { return looks_.empty() ? kNever : looks_.top().first; }

  bool refresh() {
    pass_time();
    bool changed = false;
    // Ends and arrivals tell of durations and of the work there is; a look alone does not.
    if (const int news = 2 * arrived_ - base_.cluster.live; news != known_) {
      known_ = news;
      changed = base_.refresh();
      changed |= rule_.long_share > 0 && find_long();
    }
    if (changed) ++changes_;
    changed |= look();
    std::erase_if(late_, [&](int job) { return base_.cluster.runs[job].end >= 0; });
    double most = rule_.max_ftf;
    for (const int job : late_) most = std::max(most, heading(job).ftf());
    if (most > FairFinish::kResortFactor * worst_ || most < worst_ / FairFinish::kResortFactor) {
      worst_ = most;
      changed = true;
      ++changes_;
    }
    return changed;
  }
  [[nodiscard]] double waiting(int job) const {
    if (is_late(job)) {
      const double deadline = static_cast<double>(run(job).submit) + worst_ * seen_[job].fair;
      return std::min(deadline, kHorizon) - 2 * kHorizon;
    }
    return seen_[job].is_long ? -1 : base_.waiting(job) / base_.cluster.submitted(job).weight;
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  /// The key of a job that is late or long stays until the next of the changes.
  [[nodiscard]] Ceiling ceiling(const Running& running) const {
    if (is_late(running.job) || seen_[running.job].is_long) {
      return {.value = waiting(running.job), .until = kNever};
    }
    Ceiling of = base_.ceiling(running);
    of.value /= base_.cluster.submitted(running.job).weight;
    return of;
  }
  [[nodiscard]] std::int64_t changes() const { return changes_; }

  // ---- for patience
  [[nodiscard]] double left(int job, double p) const { return base_.left(job, p); }
  [[nodiscard]] Lasting median(const Running& running) const { return base_.median(running); }
  [[nodiscard]] bool is_late(int job) const { return seen_[job].fair >= 0; }

 private:
  static constexpr double kHorizon = 4503599627370496.0;  ///< ticks, 2^52: after any deadline
  /// Shares of what is left of the way to max_ftf, and of the fair time: between two looks at
  /// least.
  static constexpr double kLookAhead = 0.05, kLookApart = 0.01;
  struct Seen {
    Tick look_at = kNever;
    double live_at = 0;  ///< `live_sum_` at its submission
    double even = 0;     ///< rate with the same share of each tier
    double fair = -1;    ///< time with a fair share, of a late one
    bool is_long = false;
  };

  [[nodiscard]] const Run& run(int job) const { return base_.cluster.runs[job]; }

  void pass_time() {
    live_sum_ += live_ * static_cast<double>(base_.cluster.now - then_);
    then_ = base_.cluster.now;
    live_ = base_.cluster.live;
  }
  void arrive(int job) {
    seen_[job].live_at = live_sum_;
    for (int t = 0; t < static_cast<int>(base_.cluster.workload.tiers.size()); ++t) {
      if (!base_.cluster.usable(job, t)) continue;
      seen_[job].even +=
          base_.cluster.rate(job, t) * base_.cluster.workload.tiers[t].gpus() / gpus_;
    }
    present_.push_back(job);
  }

  [[nodiscard]] Heading heading(int job) const {
    const Cluster& cluster = base_.cluster;
    const double needs = std::max(1.0, base_.left(job, FairFinish::kQuantile));
    const bool again = run(job).tier < 0 && run(job).first_start >= 0;
    const double left = needs + (again ? static_cast<double>(cluster.restart_of(job)) : 0);
    return {.total = static_cast<double>(cluster.now - run(job).submit) + left,
            .alone = (cluster.done(job) + needs * run(job).fastest) / seen_[job].even,
            .live_before = live_sum_ - seen_[job].live_at,
            .live = live_,
            .left = left,
            .share = run(job).gpus / gpus_};
  }

  /// At the waiting jobs that it is time for; whether one is late.
  bool look() {
    bool changed = false;
    for (; !looks_.empty(); looks_.pop()) {
      const auto [at, job] = looks_.top();
      const bool waits = run(job).end < 0 && run(job).tier < 0 && at == seen_[job].look_at;
      if (waits && at > base_.cluster.now) break;
      if (at == seen_[job].look_at) seen_[job].look_at = kNever;
      if (!waits) continue;
      due_.push_back(job);
    }
    for (const int job : due_) {
      const Heading now = heading(job);
      if (now.ftf() >= rule_.max_ftf) {
        seen_[job].fair = now.fair();
        late_.push_back(job);
        changed = true;
      } else {
        await(job);
      }
    }
    due_.clear();
    return changed;
  }
  /// It gets to max_ftf no sooner than if all other jobs ended now, and likely with those there
  /// are.
  void await(int job) {
    const Heading now = heading(job);
    const double alone = rule_.max_ftf * now.alone;
    const double least =
        std::max(alone, std::sqrt(alone * now.share * (now.live_before + now.left)));
    const double likely = kLookAhead * (rule_.max_ftf * now.fair() - now.total);
    const double wait = std::max({least - now.total, likely, kLookApart * alone, 1.0});
    const bool at_once = now.ftf() >= rule_.max_ftf && run(job).first_start < 0;
    const Tick at = then_ + (at_once ? 0 : static_cast<Tick>(std::ceil(std::min(wait, kHorizon))));
    if (at >= seen_[job].look_at) return;
    seen_[job].look_at = at;
    looks_.emplace(at, job);
  }

  bool find_long() {
    std::erase_if(present_, [&](int job) { return run(job).end >= 0; });
    std::vector<Length> lengths;
    for (const int job : present_) {
      lengths.push_back({base_.left(job, FairFinish::kMedian), run(job).gpus, job});
    }
    for (const int job : longest_) seen_[job].is_long = false;
    const std::vector<int> before =
        std::exchange(longest_, long_jobs(std::move(lengths), gpus_, rule_.long_share));
    for (const int job : longest_) seen_[job].is_long = true;
    return longest_ != before;
  }

  GittinsRank base_;
  FairFinish rule_;
  double worst_;
  std::vector<Seen> seen_;  ///< of each job
  double gpus_ = 0;
  double live_sum_ = 0, live_ = 0;  ///< job-ticks until `then_`, jobs since
  Tick then_ = 0;
  int arrived_ = 0, known_ = -1;
  std::int64_t changes_ = 0;         ///< of keys of running jobs
  std::vector<int> present_;         ///< jobs that have not ended, and some that have
  std::vector<int> late_, longest_;  ///< of them
  std::vector<int> due_;
  using Look = std::pair<Tick, int>;
  std::priority_queue<Look, std::vector<Look>, std::greater<>> looks_;
};

}  // namespace glidepath::detail
