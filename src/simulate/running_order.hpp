// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/cluster.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

/// What a number of a running job does not exceed until a tick, if the run goes on as it does: for
/// this event only, where that tick has come.
struct Ceiling {
  double value = 0;
  Tick until = 0;
  bool exact = false;  ///< it is the number itself
};

/// The running jobs by a number of each, the largest first, ties by submission. Most ceilings hold
/// from one event to the next, and only the jobs that may come next are looked at exactly. `Number`
/// has ceiling(running), growth(now), by which ceilings have grown until then, changes(), another
/// count whenever all of them lapse, and exact(running), unless all ceilings are exact.
template <class Number>
class RunningOrder {
 public:
  RunningOrder(const Cluster& cluster, Number number)
      : cluster_(cluster), number_(std::move(number)) {}

  /// Begins an event. Until the next one no running job starts, ends or moves.
  void look() {
    if (const std::int64_t now = number_.changes(); now != changes_) {
      changes_ = now;
      kept_.clear();
    }
    const std::span<const Running> running = cluster_.running;
    if (kept_.size() < running.size()) kept_.resize(running.size());
    found_.clear();
    added_.clear();
    keys_.resize(running.size());
    stages_.assign(running.size(), Stage::bounded);
    tops_.clear();
    const double growth = number_.growth(cluster_.now);
    for (std::size_t i = 0; i < running.size(); ++i) {
      Kept& kept = kept_[i];
      const bool holds = kept.finishes == running[i].finishes && kept.job == running[i].job;
      if (!holds || cluster_.now >= kept.until) {
        const Ceiling now = number_.ceiling(running[i]);
        kept = {running[i].finishes, now.until, now.value - growth, running[i].job, now.exact};
      }
      if (kept.exact) stages_[i] = Stage::exact;
      keys_[i] = kept.value + growth;
      offer(i);
    }
    play();
  }
  /// The i-th of them; null where there are fewer with a number that is not less than `least`.
  [[nodiscard]] const Taken* at(std::size_t i, double least = -kInfinity) {
    while (found_.size() <= i && find_next(least)) {
    }
    return i < found_.size() ? &found_[i] : nullptr;
  }
  /// One more in this event.
  void add(const Taken& job) {
    if (!found_.empty() && found_.back().place < job.place) {
      const auto after = [](const Taken& a, const Taken& b) { return b.place < a.place; };
      found_.insert(std::upper_bound(found_.begin(), found_.end(), job, after), job);
      return;
    }
    added_.push_back({0, job.place.job, job.gpus});
    keys_.push_back(job.place.key);
    stages_.push_back(Stage::exact);
    offer(keys_.size() - 1);
    play();
  }
  /// One less of the running jobs in this event.
  void remove(int job) {
    const auto known = std::ranges::find(found_, job, [](const Taken& at) { return at.place.job; });
    if (known != found_.end()) {
      found_.erase(known);
    } else {
      drop(static_cast<std::size_t>(cluster_.runs[job].slot));
    }
  }

 private:
  /// How the key of a job is known in this event; of equal ones the last of these is looked at
  /// first, as one that is only bounded may be less than it seems.
  enum class Stage : std::uint8_t { gone, exact, bounded };
  /// What is known of the job in a slot of Cluster::running: a job goes on as it does while
  /// `finishes` stays.
  struct Kept {
    Tick finishes = kNever, until = 0;
    double value = 0;
    int job = -1;
    bool exact = false;
  };
  static constexpr std::size_t kBlock = 16;  ///< slots, of which the largest is known

  [[nodiscard]] const Running& job_of(std::size_t i) const {
    const std::size_t running = cluster_.running.size();
    return i < running ? cluster_.running[i] : added_[i - running];
  }
  [[nodiscard]] bool larger(std::size_t a, std::size_t b) const {
    if (keys_[a] != keys_[b]) return keys_[a] > keys_[b];
    if (stages_[a] != stages_[b]) return stages_[a] > stages_[b];
    return job_of(a).job > job_of(b).job;
  }
  void offer(std::size_t i) {
    if (i % kBlock == 0) {
      tops_.push_back(i);
    } else if (std::size_t& top = tops_.back(); larger(i, top)) {
      top = i;
    }
  }
  /// The tournament of the blocks: match m is between the winners of 2 m and 2 m + 1, which beyond
  /// the last match are the blocks in their order.
  void play() {
    winners_.resize(tops_.size());
    for (std::size_t match = tops_.size(); match-- > 1;) play(match);
  }
  void play(std::size_t match) {
    const std::size_t a = player(2 * match), b = player(2 * match + 1);
    winners_[match] = larger(b, a) ? b : a;
  }
  [[nodiscard]] std::size_t player(std::size_t i) const {
    return i < tops_.size() ? winners_[i] : tops_[i - tops_.size()];
  }
  /// The key of a slot has fallen.
  void renew(std::size_t i) {
    const std::size_t block = i / kBlock, from = block * kBlock;
    std::size_t top = from;
    for (std::size_t k = from + 1; k < std::min(from + kBlock, keys_.size()); ++k) {
      if (larger(k, top)) top = k;
    }
    tops_[block] = top;
    for (std::size_t match = (tops_.size() + block) / 2; match > 0; match /= 2) play(match);
  }
  void drop(std::size_t i) {
    keys_[i] = -kInfinity;
    stages_[i] = Stage::gone;
    renew(i);
  }
  bool find_next(double least) {
    while (!tops_.empty()) {
      const std::size_t top = player(1);
      if (stages_[top] == Stage::gone || keys_[top] < least) return false;
      const Running& job = job_of(top);
      if (stages_[top] == Stage::exact) {
        found_.push_back({{keys_[top], job.job}, job.gpus});
        drop(top);
        return true;
      }
      if constexpr (requires { number_.exact(job); }) keys_[top] = number_.exact(job);
      stages_[top] = Stage::exact;
      renew(top);
    }
    return false;
  }

  const Cluster& cluster_;
  Number number_;
  std::int64_t changes_ = -1;
  std::vector<Kept> kept_;  ///< by slot
  // In this event, by slot, and after those what was added:
  std::vector<double> keys_;
  std::vector<Stage> stages_;
  std::vector<std::size_t> tops_;     ///< the largest of each block
  std::vector<std::size_t> winners_;  ///< by match: match 1 is the final
  std::vector<Running> added_;
  std::vector<Taken> found_;  ///< the first ones
};

/// The running jobs behind a place of an order, the last one first. A rank may give a `ceiling` of
/// a key, which costs less than the key.
template <class Rank>
class Behind {
 public:
  Behind(const Cluster& cluster, const Rank& rank) : order_(cluster, Keys{rank}) {}

  /// Begins an event, in which only the jobs after a place matter.
  void look(const Place& first) {
    first_ = first;
    order_.look();
  }
  /// The i-th of them; null where there are fewer.
  [[nodiscard]] const Taken* at(std::size_t i) {
    const Taken* last = order_.at(i, first_.key);
    return last != nullptr && first_ < last->place ? last : nullptr;
  }
  /// Without one that at() has given.
  void remove(int job) { order_.remove(job); }

 private:
  struct Keys {
    const Rank& rank;
    [[nodiscard]] Ceiling ceiling(const Running& running) const {
      if constexpr (requires { rank.ceiling(running); }) {
        return rank.ceiling(running);
      } else {
        return {.value = exact(running), .exact = true};
      }
    }
    [[nodiscard]] double exact(const Running& running) const { return rank.running(running); }
    [[nodiscard]] static double growth(Tick) { return 0; }
    [[nodiscard]] std::int64_t changes() const { return changes_of(rank); }
  };
  RunningOrder<Keys> order_;
  Place first_{};
};

}  // namespace glidepath::detail
