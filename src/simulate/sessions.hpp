// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <unordered_map>

#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// Sessions of SimulationOptions::session_s: at the end of each of a running job the scheduler
/// decides again, and none takes GPUs by itself.
class Sessions {
 public:
  explicit Sessions(const Cluster& cluster)
      : cluster_(cluster),
        length_(cluster.options.session_s
                    ? std::max<Tick>(1, cluster.ticks(*cluster.options.session_s))
                    : kNever) {}

  [[nodiscard]] Tick wake() const {
    Tick next = kNever;
    if (length_ == kNever) return next;
    for (const auto& [finish, job] : cluster_.ends) next = std::min(next, end_.at(job));
    return next;
  }
  void leave(int job) { end_.erase(job); }

  /// To be called when the scheduler has decided.
  void begin() {
    if (length_ == kNever) return;
    for (const auto& [finish, job] : cluster_.ends) {
      const Run& run = cluster_.runs[job];
      Tick& end = end_[job];
      if (run.since == cluster_.now) {  // by this decision, or moved to other nodes
        end = run.resumes + length_;
      } else if (end <= cluster_.now) {  // runs on
        end = cluster_.now + length_;
      }
    }
  }

 private:
  const Cluster& cluster_;
  Tick length_;
  std::unordered_map<int, Tick> end_;  ///< of the running jobs, and of some that wait again
};

}  // namespace glidepath::detail
