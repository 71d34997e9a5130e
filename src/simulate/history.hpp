// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/plan.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "common/numbers.hpp"

namespace glidepath::detail {

/// What the live jobs have had so far, as a policy of rounds sees it in one Snapshot after another.
class History {
 public:
  struct Known {
    double since_s = -kInfinity;  ///< of its last start
    int starts = 0, largest = 0;  ///< gang so far
    const Allocation* held = nullptr;

    [[nodiscard]] int restarts() const { return std::max(0, starts - 1); }
  };

  /// Takes in what runs now; `held` points into the Snapshot until the next look.
  void look(const Snapshot& snapshot) {
    std::unordered_map<std::int64_t, Known> live;
    for (const Job& job : snapshot.jobs) {
      Known& known = live[job.id];
      const auto had = known_.find(job.id);
      if (had != known_.end()) known = had->second;
      known.held = nullptr;
    }
    for (const Allocation& held : snapshot.running) {
      Known& known = live.at(held.job);
      known.held = &held;
      known.largest = std::max(known.largest, held.gpus);
      if (known.since_s != held.since_s) ++known.starts;
      known.since_s = held.since_s;
    }
    known_ = std::move(live);
  }

  [[nodiscard]] const Known& of(std::int64_t job) const { return known_.at(job); }

 private:
  std::unordered_map<std::int64_t, Known> known_;
};

/// What runs goes on.
[[nodiscard]] inline Plan go_on(const Snapshot& snapshot) {
  Plan plan;
  plan.allocations.assign(snapshot.running.begin(), snapshot.running.end());
  return plan;
}

/// The allocation that a job has, or a new one of these GPUs.
[[nodiscard]] inline Allocation kept_or_new(const Snapshot& snapshot, const Job& job,
                                            const Allocation* held, int tier, int gpus) {
  const bool keeps = held != nullptr && held->tier == tier && held->gpus == gpus;
  return keeps ? *held : Allocation{job.id, tier, gpus, snapshot.now_s};
}

}  // namespace glidepath::detail
