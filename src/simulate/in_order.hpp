// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/fill.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

/// Preemptive on several tiers, or where gangs must fit in nodes: at each event all running jobs
/// and the heads of those that wait are laid out anew. A job that loses its GPUs may get others.
template <class Rank>
class InOrder {
 public:
  explicit InOrder(Cluster& cluster)
      : cluster_(cluster), rank_(cluster), waiting_(cluster, rank_), fill_(cluster) {}
  void arrive(int job) { waiting_.add(job); }
  void leave(int) {}
  void fail(int job) { failed_.push_back(job); }
  [[nodiscard]] Tick wake() const { return wake_of(rank_); }

  void schedule() {
    waiting_.begin_event(failed_);
    running_.clear();
    for (const Running& running : cluster_.running) {
      running_.push_back({rank_.running(running), running.job});
    }
    std::sort(running_.begin(), running_.end());
    waiting_.look();
    fill_.begin();
    changes_.clear();
    for (auto running = running_.begin();;) {
      Head* head = waiting_.first();
      if (running != running_.end() && (head == nullptr || *running < head->queue.top())) {
        go_on((running++)->job);
      } else if (head != nullptr) {
        begin(*head);
      } else {
        break;
      }
    }
    for (const int job : carry_out(cluster_, changes_)) waiting_.add(job);
  }

 private:
  using Head = ByKind<Heap>::Of;

  void go_on(int job) {
    if (fill_.keep(job)) return;
    changes_.suspended.push_back(job);
    const int tier = fill_.place(job);
    if (tier >= 0) changes_.started.emplace_back(job, tier);
  }

  void begin(Head& head) {
    const int job = head.queue.top().job;
    const int tier = fill_.place(job);
    head.passed = tier < 0;
    if (tier < 0) return;
    head.queue.pop();
    changes_.started.emplace_back(job, tier);
  }

  Cluster& cluster_;
  Rank rank_;
  Waiting<Rank> waiting_;
  Fill fill_;
  Changes changes_;
  std::vector<Place> running_;
  std::vector<int> failed_;
};

}  // namespace glidepath::detail
