// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/learned.hpp"
#include "simulate/live_crowd.hpp"
#include "simulate/ranks.hpp"

namespace glidepath::detail {

/// GittinsRank over exp(z) of the objective `learned`. z looks at all live jobs, so that every key
/// is made anew at each event, unless its weights are all 0, as those that are built in are: then
/// keys are those of GittinsRank, and bounds mostly decide whether the values hold for the crowd.
struct LearnedRank {
  static constexpr bool kByFinish = false, kMonotone = false;
  explicit LearnedRank(Cluster& e)
      : gittins_(e),
        values_(given(e.options)),
        weighs_(std::ranges::any_of(values_.queue, [](double weight) { return weight != 0; })),
        crowd_of_(e, gittins_.predict),
        outlooks_(e.runs.size()) {}

  void begin_wait(int job) { crowd_of_.wait(job); }
  void leave(int job) { crowd_of_.leave(job); }
  bool refresh() {
    const bool changed = gittins_.refresh();
    crowd_known_ = false;
    if (gittins_.cluster.live == 0) return true;  // nothing to decide
    if (changed) crowd_of_.renew_known();
    crowd_of_.look();
    judge();
    return weighs_ || changed;
  }
  [[nodiscard]] double left(int job, double p) const { return gittins_.left(job, p); }
  [[nodiscard]] Lasting median(const Running& running) const { return gittins_.median(running); }
  [[nodiscard]] double waiting(int job) const {
    if (!weighs_) return gittins_.waiting(job);
    const double rank = gittins_.key(outlook(job).rank, job);
    return holds_ ? rank / std::exp(correction(values_.queue, prospect(job), crowd_)) : rank;
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  [[nodiscard]] Ceiling ceiling(const Running& job) const {
    if (weighs_) return {.value = running(job), .exact = true};
    return gittins_.ceiling(job);
  }
  [[nodiscard]] std::int64_t changes() const { return gittins_.changes(); }

  // ---- for patience

  /// What a preemption for the job costs, over what it does under GittinsRank.
  [[nodiscard]] double preemption(int job) {
    if (!holds_) return 1;
    const double by_size = values_.patience[1];
    if (by_size == 0) return std::exp(values_.patience[0]);
    const double size = std::clamp(outlook(job).log_rank - crowd().log_rank(), -6.0, 6.0) / 2;
    return std::exp(values_.patience[0] + by_size * size);
  }
  /// After which a job is late, over those of GittinsRank.
  [[nodiscard]] double fair_shares() const { return holds_ ? std::exp(values_.patience[2]) : 1; }

 private:
  static constexpr double kMaxRankS = 1e12;  ///< for a rank that may be infinite
  [[nodiscard]] static std::span<const double> given(const SimulationOptions& options) {
    if (!options.planner) return {};
    return options.planner->learned;
  }
  struct Known {
    double done = -1, rank = 0, log_rank = 0, spread = 0;
    std::int64_t changes = -1;
  };

  /// Whether the values hold for the crowd as it is. Its spread is within bounds; the rest is known
  /// without a look at each job.
  void judge() {
    Fallback& fallback = gittins_.cluster.fallback;
    const auto holds = [&](double spread) {
      return out_of_range(values_, crowd_of_.with_spread(spread)).empty();
    };
    const auto spread = crowd_of_.spread();
    if (!weighs_ && holds(spread.low) && holds(spread.high)) {
      holds_ = true;
      fallback.note("");
      return;
    }
    const std::string why = out_of_range(values_, crowd());
    holds_ = why.empty();
    fallback.note(why);
  }

  /// With a look at each live job.
  const Crowd& crowd() {
    if (std::exchange(crowd_known_, true)) return crowd_;
    const Cluster& cluster = gittins_.cluster;
    crowd_ = Crowd();
    for (const int job : crowd_of_.live()) {
      const Known& known = outlook(job);
      crowd_.add(cluster.runs[job].gpus, known.log_rank, known.spread,
                 cluster.seconds(cluster.restart_of(job)));
    }
    crowd_.close(cluster.capacity[0]);
    return crowd_;
  }

  [[nodiscard]] const Known& outlook(int job) const {
    Known& known = outlooks_[job];
    const Cluster& cluster = gittins_.cluster;
    const double done = cluster.done(job);
    if (known.done == done && known.changes == gittins_.changes()) return known;
    const Predictor::Outlook seen = gittins_.predict.outlook(job);
    const double seconds =
        seen.rank / cluster.runs[job].fastest / static_cast<double>(cluster.per_second);
    return known = {done, seen.rank, std::log(std::clamp(seconds, 1.0, kMaxRankS)), seen.spread,
                    gittins_.changes()};
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
  bool weighs_;
  LiveCrowd crowd_of_;
  Crowd crowd_;  ///< in this event, once it is known
  bool crowd_known_ = false;
  bool holds_ = false;  ///< the values, for the crowd as it is
  mutable std::vector<Known> outlooks_;
};

}  // namespace glidepath::detail
