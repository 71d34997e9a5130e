// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "plan/learned.hpp"
#include "simulate/ranks.hpp"

namespace glidepath::detail {

/// GittinsRank over exp(z) of the objective `learned`. z looks at all live jobs, so every key is
/// made anew at each event; the law of a job only where it has run or durations were learned.
struct LearnedRank {
  static constexpr bool kByFinish = false, kMonotone = false;
  static constexpr double kMaxRankS = 1e12;  ///< for a rank that may be infinite
  explicit LearnedRank(Cluster& e)
      : gittins_(e), values_(given(e.options)), outlooks_(e.runs.size()) {}

  bool refresh() {
    Cluster& cluster = gittins_.cluster;
    if (gittins_.predict.refresh()) ++learned_;
    (void)gittins_.leader.refresh([&](int job) { return gittins_.predict.likely(job); });
    for (; arrived_ < cluster.arrived; ++arrived_) live_.push_back(arrived_);
    std::erase_if(live_, [&](int job) { return cluster.runs[job].end >= 0; });
    if (live_.empty()) return true;  // nothing to decide
    crowd_ = Crowd();
    for (const int job : live_) {
      const Known& known = outlook(job);
      crowd_.add(cluster.runs[job].gpus, known.log_rank, known.spread,
                 cluster.seconds(cluster.restart_of(job)));
    }
    crowd_.close(cluster.capacity[0]);
    const std::string why = out_of_range(values_, crowd_);
    holds_ = why.empty();
    cluster.fallback.note(why);
    return true;
  }
  [[nodiscard]] double left(int job, double p) const { return gittins_.left(job, p); }
  [[nodiscard]] double waiting(int job) const {
    const Run& run = gittins_.cluster.runs[job];
    const double rank = outlook(job).rank / run.fastest * gittins_.leader.factor(run.gpus);
    return holds_ ? rank / std::exp(correction(values_.queue, prospect(job), crowd_)) : rank;
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  /// What a preemption for the job costs, over what it does under GittinsRank.
  [[nodiscard]] double preemption(int job) const {
    if (!holds_) return 1;
    const double size = std::clamp(outlook(job).log_rank - crowd_.log_rank(), -6.0, 6.0) / 2;
    return std::exp(values_.patience[0] + values_.patience[1] * size);
  }
  /// After which a job is late, over those of GittinsRank.
  [[nodiscard]] double fair_shares() const { return holds_ ? std::exp(values_.patience[2]) : 1; }

 private:
  [[nodiscard]] static std::span<const double> given(const SimulationOptions& options) {
    if (!options.planner) return {};
    return options.planner->learned;
  }
  struct Known {
    double done = -1, rank = 0, log_rank = 0, spread = 0;
    std::int64_t learned = -1;
  };

  [[nodiscard]] const Known& outlook(int job) const {
    const Cluster& cluster = gittins_.cluster;
    Known& known = outlooks_[job];
    const double done = cluster.done(job);
    if (known.done == done && known.learned == learned_) return known;
    const Predictor::Outlook seen = gittins_.predict.outlook(job);
    const double seconds =
        seen.rank / cluster.runs[job].fastest / static_cast<double>(cluster.per_second);
    return known = {done, seen.rank, std::log(std::clamp(seconds, 1.0, kMaxRankS)), seen.spread,
                    learned_};
  }

  [[nodiscard]] Prospect prospect(int job) const {
    const Cluster& cluster = gittins_.cluster;
    const Run& run = cluster.runs[job];
    const Known& known = outlook(job);
    const double attained_s = cluster.seconds(cluster.attained(job));
    return {.gpus = static_cast<double>(run.gpus),
            .share = static_cast<double>(run.gpus) / std::max(1, cluster.capacity[0]),
            .rank_s = std::exp(known.log_rank),
            .spread = known.spread,
            .attained_s = attained_s,
            .waited_s = std::max(0.0, cluster.seconds(cluster.now - run.submit) - attained_s),
            .keeps = run.tier >= 0};
  }

  GittinsRank gittins_;
  LearnedValues values_;
  std::vector<int> live_;  ///< in order of submission
  int arrived_ = 0;
  Crowd crowd_;
  bool holds_ = false;        ///< the values, for the crowd as it is
  std::int64_t learned_ = 0;  ///< how often what is known of durations has changed
  mutable std::vector<Known> outlooks_;
};

}  // namespace glidepath::detail
