// SPDX-License-Identifier: Apache-2.0
// The order of preemptive schedulers. A `Place` is where a job stands in it: its key by the
// scheduler's Rank (remaining time, ...), ties by submission. A greedy fill in that order runs each
// job that still fits. The waiting jobs are kept apart by size of gang, because room only shrinks
// along a fill: only the first job of each size can be next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// Waiting jobs by size of gang and the tiers that can run them. Room only shrinks along a greedy
/// fill, so that of the jobs of one kind only the first can be next: a fill looks at one head for
/// each kind.
template <class Queue>
class ByKind {
 public:
  explicit ByKind(const Cluster& cluster) : cluster_(cluster) {}
  Queue& operator[](int job) {
    const int gpus = cluster_.runs[job].gpus;
    if (cluster_.capacity.size() > 1) {
      return of(index_.try_emplace(kind(job), next()).first->second, gpus);
    }
    if (of_gang_.empty()) of_gang_.assign(cluster_.workload.tiers[0].gpus() + 1, -1);
    if (of_gang_[gpus] < 0) of_gang_[gpus] = next();
    return of(of_gang_[gpus], gpus);
  }
  struct Of {
    int gpus;
    Queue queue;
    bool passed = false;  ///< in this event: none of them fits any more
  };
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }
  /// A new event: of each kind some may fit.
  void look() {
    for (Of& of : queues_) of.passed = false;
  }
  /// The kind whose first job is least; null where none may fit any more.
  template <class First>
  Of* first(First&& first_of) {
    Of* least = nullptr;
    for (Of& of : queues_) {
      if (of.passed || of.queue.empty()) continue;
      if (least == nullptr || first_of(of.queue) < first_of(least->queue)) least = &of;
    }
    return least;
  }

 private:
  using Kind = std::pair<int, std::vector<bool>>;
  [[nodiscard]] Kind kind(int job) const {
    Kind out{cluster_.runs[job].gpus, {}};
    for (int t = 0; t < static_cast<int>(cluster_.capacity.size()); ++t) {
      out.second.push_back(cluster_.usable(job, t));
    }
    return out;
  }
  [[nodiscard]] int next() const { return static_cast<int>(queues_.size()); }
  Queue& of(int place, int gpus) {
    if (place == next()) queues_.push_back({gpus, {}});
    return queues_[place].queue;
  }
  const Cluster& cluster_;
  std::vector<Of> queues_;
  std::vector<int> of_gang_;   ///< on one tier
  std::map<Kind, int> index_;  ///< on several
};

/// When a rank has to look at its jobs again by itself.
template <class Rank>
Tick wake_of(const Rank& rank) {
  if constexpr (requires { rank.wake(); }) return rank.wake();
  return kNever;
}

/// Another count whenever what a rank said of running jobs lapses.
template <class Rank>
std::int64_t changes_of(const Rank& rank) {
  if constexpr (requires { rank.changes(); }) return rank.changes();
  return 0;
}

/// Place of a job in a total order: smaller runs first.
struct Place {
  double key;
  int job;
  friend bool operator<(const Place& a, const Place& b) {
    return a.key != b.key ? a.key < b.key : a.job < b.job;
  }
  friend bool operator>(const Place& a, const Place& b) { return b < a; }
};

/// A running job and its place.
struct Taken {
  Place place;
  int gpus;
};

using Heap = std::priority_queue<Place, std::vector<Place>, std::greater<>>;

/// The waiting jobs of each kind, by place.
template <class Rank>
class Waiting {
 public:
  Waiting(const Cluster& cluster, Rank& rank) : rank_(rank), heaps_(cluster) {}

  void add(int job) {
    if constexpr (requires { rank_.begin_wait(job); }) rank_.begin_wait(job);
    heaps_[job].push({rank_.waiting(job), job});
  }
  /// Back with the place it had.
  void add(const Place& place) { heaps_[place.job].push(place); }
  /// A new event: jobs that failed wait again; where what the rank knows changed, so did all keys.
  void begin_event(std::vector<int>& failed) {
    for (const int job : failed) add(job);
    failed.clear();
    if constexpr (requires { rank_.refresh(); }) {
      if (rank_.refresh()) rebuild();
    }
  }
  [[nodiscard]] bool is_head(int job) { return heaps_[job].top().job == job; }
  void look() { heaps_.look(); }
  ByKind<Heap>::Of* first() {
    return heaps_.first([](const Heap& heap) { return heap.top(); });
  }
  auto begin() { return heaps_.begin(); }
  auto end() { return heaps_.end(); }

 private:
  /// All keys have changed.
  void rebuild() {
    std::vector<int> all;
    for (auto& of : heaps_) {
      for (; !of.queue.empty(); of.queue.pop()) all.push_back(of.queue.top().job);
    }
    for (const int job : all) heaps_[job].push({rank_.waiting(job), job});
  }

  Rank& rank_;
  ByKind<Heap> heaps_;
};

}  // namespace glidepath::detail
