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
      : base(e), rule(e.options), worst(rule.max_ftf), seen(e.runs.size()) {
    for (const Tier& tier : e.workload.tiers) gpus += tier.gpus();
  }

  /// To be called when a job begins to wait.
  void begin_wait(int job) {
    pass_time();
    for (; arrived <= job; ++arrived) arrive(arrived);
    if (!is_late(job)) await(job);
  }
  /// When some waiting job has to be looked at.
  [[nodiscard]] Tick wake() const { return looks.empty() ? kNever : looks.top().first; }

  bool refresh() {
    pass_time();
    bool changed = false;
    // Ends and arrivals tell of durations and of the work there is; a look alone does not.
    if (const int news = 2 * arrived - base.cluster.live; news != known) {
      known = news;
      changed = base.refresh();
      changed |= rule.long_share > 0 && find_long();
    }
    changed |= look();
    std::erase_if(late, [&](int job) { return base.cluster.runs[job].end >= 0; });
    double most = rule.max_ftf;
    for (const int job : late) most = std::max(most, heading(job).ftf());
    if (most > FairFinish::kResortFactor * worst || most < worst / FairFinish::kResortFactor) {
      worst = most;
      changed = true;
    }
    return changed;
  }
  [[nodiscard]] double waiting(int job) const {
    if (is_late(job)) {
      const double deadline = static_cast<double>(run(job).submit) + worst * seen[job].fair;
      return std::min(deadline, kHorizon) - 2 * kHorizon;
    }
    return seen[job].is_long ? -1 : base.waiting(job) / base.cluster.submitted(job).weight;
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }

  // ---- for patience
  [[nodiscard]] double left(int job, double p) const { return base.left(job, p); }
  [[nodiscard]] bool is_late(int job) const { return seen[job].fair >= 0; }

 private:
  static constexpr double kHorizon = 4503599627370496.0;  ///< ticks, 2^52: after any deadline
  /// Shares of what is left of the way to max_ftf, and of the fair time: between two looks at
  /// least.
  static constexpr double kLookAhead = 0.05, kLookApart = 0.01;
  struct Seen {
    Tick look_at = kNever;
    double live_at = 0;  ///< `live_sum` at its submission
    double even = 0;     ///< rate with the same share of each tier
    double fair = -1;    ///< time with a fair share, of a late one
    bool is_long = false;
  };

  [[nodiscard]] const Run& run(int job) const { return base.cluster.runs[job]; }

  void pass_time() {
    live_sum += live * static_cast<double>(base.cluster.now - then);
    then = base.cluster.now;
    live = base.cluster.live;
  }
  void arrive(int job) {
    seen[job].live_at = live_sum;
    for (int t = 0; t < static_cast<int>(base.cluster.workload.tiers.size()); ++t) {
      if (!base.cluster.usable(job, t)) continue;
      seen[job].even += base.cluster.rate(job, t) * base.cluster.workload.tiers[t].gpus() / gpus;
    }
    present.push_back(job);
  }

  [[nodiscard]] Heading heading(int job) const {
    const Cluster& cluster = base.cluster;
    const double needs = std::max(1.0, base.left(job, FairFinish::kQuantile));
    const bool again = run(job).tier < 0 && run(job).first_start >= 0;
    const double left = needs + (again ? static_cast<double>(cluster.restart_of(job)) : 0);
    return {.total = static_cast<double>(cluster.now - run(job).submit) + left,
            .alone = (cluster.done(job) + needs * run(job).fastest) / seen[job].even,
            .live_before = live_sum - seen[job].live_at,
            .live = live,
            .left = left,
            .share = run(job).gpus / gpus};
  }

  /// At the waiting jobs that it is time for; whether one is late.
  bool look() {
    bool changed = false;
    for (; !looks.empty(); looks.pop()) {
      const auto [at, job] = looks.top();
      const bool waits = run(job).end < 0 && run(job).tier < 0 && at == seen[job].look_at;
      if (waits && at > base.cluster.now) break;
      if (at == seen[job].look_at) seen[job].look_at = kNever;
      if (!waits) continue;
      due.push_back(job);
    }
    for (const int job : due) {
      const Heading now = heading(job);
      if (now.ftf() >= rule.max_ftf) {
        seen[job].fair = now.fair();
        late.push_back(job);
        changed = true;
      } else {
        await(job);
      }
    }
    due.clear();
    return changed;
  }
  /// It gets to max_ftf no sooner than if all other jobs ended now, and likely with those there
  /// are.
  void await(int job) {
    const Heading now = heading(job);
    const double alone = rule.max_ftf * now.alone;
    const double least =
        std::max(alone, std::sqrt(alone * now.share * (now.live_before + now.left)));
    const double likely = kLookAhead * (rule.max_ftf * now.fair() - now.total);
    const double wait = std::max({least - now.total, likely, kLookApart * alone, 1.0});
    const bool at_once = now.ftf() >= rule.max_ftf && run(job).first_start < 0;
    const Tick at = then + (at_once ? 0 : static_cast<Tick>(std::ceil(std::min(wait, kHorizon))));
    if (at >= seen[job].look_at) return;
    seen[job].look_at = at;
    looks.emplace(at, job);
  }

  bool find_long() {
    std::erase_if(present, [&](int job) { return run(job).end >= 0; });
    std::vector<Length> lengths;
    for (const int job : present) {
      lengths.push_back({base.left(job, FairFinish::kMedian), run(job).gpus, job});
    }
    for (const int job : longest) seen[job].is_long = false;
    const std::vector<int> before =
        std::exchange(longest, long_jobs(std::move(lengths), gpus, rule.long_share));
    for (const int job : longest) seen[job].is_long = true;
    return longest != before;
  }

  GittinsRank base;
  FairFinish rule;
  double worst;
  std::vector<Seen> seen;  ///< of each job
  double gpus = 0;
  double live_sum = 0, live = 0;  ///< job-ticks until `then`, jobs since
  Tick then = 0;
  int arrived = 0, known = -1;
  std::vector<int> present;        ///< jobs that have not ended, and some that have
  std::vector<int> late, longest;  ///< of them
  std::vector<int> due;
  using Look = std::pair<Tick, int>;
  std::priority_queue<Look, std::vector<Look>, std::greater<>> looks;
};

}  // namespace glidepath::detail
