// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

/// The running jobs behind a place, the last one first. A rank may give a `ceiling` of a key, which
/// costs less than the key: then only those are ranked that may come next.
template <class Rank>
class Behind {
 public:
  Behind(const Cluster& cluster, const Rank& rank) : cluster_(cluster), rank_(rank) {}

  /// Begins an event, in which only the jobs after a place matter.
  void look(const Place& first) {
    first_ = first;
    known_.clear();
    others_.clear();
    for (const Running& running : cluster_.running) {
      const Other other = seen(running);
      if (other.key >= first.key) others_.push_back(other);
    }
    std::make_heap(others_.begin(), others_.end());
  }
  /// The i-th of them; null where there are fewer.
  [[nodiscard]] const Taken* at(std::size_t i) {
    while (known_.size() <= i && !others_.empty()) find_next();
    return i < known_.size() ? &known_[i] : nullptr;
  }
  /// Without one that at() has given.
  void remove(int job) {
    known_.erase(std::ranges::find(known_, job, [](const Taken& at) { return at.place.job; }));
  }

 private:
  struct Other {
    double key;  ///< its own, or no less
    const Running* running;
    bool ranked;
    friend bool operator<(const Other& a, const Other& b) {
      if (a.key != b.key) return a.key < b.key;
      if (a.ranked != b.ranked) return a.ranked;
      return a.running->job < b.running->job;
    }
  };
  [[nodiscard]] Other seen(const Running& running) const {
    if constexpr (requires { rank_.ceiling(running); }) {
      return {rank_.ceiling(running), &running, false};
    } else {
      return {rank_.running(running), &running, true};
    }
  }
  void find_next() {
    std::pop_heap(others_.begin(), others_.end());
    Other& last = others_.back();
    if (!last.ranked) {
      last = {rank_.running(*last.running), last.running, true};
      std::push_heap(others_.begin(), others_.end());
      return;
    }
    const Taken taken{{last.key, last.running->job}, last.running->gpus};
    if (first_ < taken.place) {
      known_.push_back(taken);
      others_.pop_back();
    } else {
      others_.clear();
    }
  }

  const Cluster& cluster_;
  const Rank& rank_;
  Place first_{};
  std::vector<Taken> known_;
  std::vector<Other> others_;  ///< a heap
};

}  // namespace glidepath::detail
