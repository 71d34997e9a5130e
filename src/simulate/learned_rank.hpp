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
      : gittins(e), values(given(e.options)), outlooks(e.runs.size()) {}

  bool refresh() {
    Cluster& cluster = gittins.cluster;
    if (gittins.predict.refresh()) ++learned;
    (void)gittins.leader.refresh([&](int job) { return gittins.predict.likely(job); });
    for (; arrived < cluster.arrived; ++arrived) live.push_back(arrived);
    std::erase_if(live, [&](int job) { return cluster.runs[job].end >= 0; });
    crowd = Crowd();
    for (const int job : live) {
      const Known& known = outlook(job);
      crowd.add(cluster.runs[job].gpus, known.log_rank, known.spread,
                cluster.seconds(cluster.restart_of(job)));
    }
    crowd.close(cluster.capacity[0]);
    const std::string why = out_of_range(values, crowd);
    holds = why.empty();
    cluster.fallback.note(why);
    return true;
  }
  [[nodiscard]] double left(int job, double p) const { return gittins.left(job, p); }
  [[nodiscard]] double waiting(int job) const {
    const Run& run = gittins.cluster.runs[job];
    const double rank = outlook(job).rank / run.fastest * gittins.leader.factor(run.gpus);
    return holds ? rank / std::exp(correction(values.queue, prospect(job), crowd)) : rank;
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  /// What a preemption for the job costs, over what it does under GittinsRank.
  [[nodiscard]] double preemption(int job) const {
    if (!holds) return 1;
    const double size = std::clamp(outlook(job).log_rank - crowd.log_rank(), -6.0, 6.0) / 2;
    return std::exp(values.patience[0] + values.patience[1] * size);
  }
  /// After which a job is late, over those of GittinsRank.
  [[nodiscard]] double fair_shares() const { return holds ? std::exp(values.patience[2]) : 1; }

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
    const Cluster& cluster = gittins.cluster;
    Known& known = outlooks[job];
    const double done = cluster.done(job);
    if (known.done == done && known.learned == learned) return known;
    const Predictor::Outlook seen = gittins.predict.outlook(job);
    const double seconds =
        seen.rank / cluster.runs[job].fastest / static_cast<double>(cluster.per_second);
    return known = {done, seen.rank, std::log(std::clamp(seconds, 1.0, kMaxRankS)), seen.spread,
                    learned};
  }

  [[nodiscard]] Prospect prospect(int job) const {
    const Cluster& cluster = gittins.cluster;
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

  GittinsRank gittins;
  LearnedValues values;
  std::vector<int> live;  ///< in order of submission
  int arrived = 0;
  Crowd crowd;
  bool holds = false;        ///< the values, for the crowd as it is
  std::int64_t learned = 0;  ///< how often what is known of durations has changed
  mutable std::vector<Known> outlooks;
};

}  // namespace glidepath::detail
