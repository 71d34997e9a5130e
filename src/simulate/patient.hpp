// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/cluster.hpp"
#include "simulate/ranks.hpp"
#include "simulate/running_order.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

/// The running jobs by when their GPUs come free by themselves, the soonest first: after the median
/// of the time still needed, to a tick. The order is that of these times with their sign turned.
template <class Rank>
class Tenures {
 public:
  Tenures(const Cluster& cluster, const Rank& rank) : order_(cluster, Turned{cluster, rank}) {}

  void look() {
    order_.look();
    free_by_.clear();
  }
  void add(double left, int gpus, int job) {
    order_.add({{-std::round(left), job}, gpus});
    free_by_.clear();
  }
  void remove(int job) {
    order_.remove(job);
    free_by_.clear();
  }
  /// Until so many GPUs have come free, from `room` that are; infinite where there are fewer.
  [[nodiscard]] double wait_for(int gpus, int room) {
    const int missing = gpus - room;
    while (free_by_.empty() || free_by_.back() < missing) {
      const Taken* next = order_.at(free_by_.size());
      if (next == nullptr) return kInfinity;
      free_by_.push_back((free_by_.empty() ? 0 : free_by_.back()) + next->gpus);
    }
    const auto last = std::ranges::lower_bound(free_by_, missing);
    return -order_.at(static_cast<std::size_t>(last - free_by_.begin()))->place.key;
  }

 private:
  struct Turned {
    const Cluster& cluster;
    const Rank& rank;
    [[nodiscard]] Ceiling ceiling(const Running& running) const {
      const Lasting now = rank.median(running);
      const Tick pending = cluster.runs[running.job].resumes - cluster.now;
      const double left = std::max(0.0, static_cast<double>(pending)) + now.left;
      return {.value = -std::round(left), .until = now.until, .exact = true};
    }
    [[nodiscard]] static double growth(Tick now) { return static_cast<double>(now); }
    [[nodiscard]] std::int64_t changes() const { return changes_of(rank); }
  };
  RunningOrder<Turned> order_;
  std::vector<int> free_by_;  ///< GPUs of the first of them, of the first two, and so on
};

/// Preemptive where a start costs something. A job for which the free GPUs are not enough would get
/// some of those that come free by themselves, see `Tenures`; it takes the GPUs of later jobs only
/// where that saves it more than each preemption costs: the start, a quarter of a mean completion
/// time, and half of the time that the others lose meanwhile, in part only since they may find GPUs
/// elsewhere.
///
/// A short job must not pay for it with many times its own length: one that would take longer than
/// its fair share if it waited does not wait, unless a job whose GPUs it would take loses more of
/// its own fair share by that. So jobs of seconds do not make each other start anew in turn. Where
/// times are forecast, GPUs come free by the medians, and a job may be as short as its forecast
/// makes it with a probability of one in a hundred: fairness is that of the worst of many jobs.
template <class Rank>
class Patient {
 public:
  explicit Patient(Cluster& cluster)
      : cluster_(cluster),
        rank_(cluster),
        waiting_(cluster, rank_),
        seats_(cluster, rank_),
        running_(cluster, rank_) {}
  void arrive(int job) { waiting_.add(job); }
  void leave(int job) {
    if constexpr (requires { rank_.leave(job); }) rank_.leave(job);
    const Run& run = cluster_.runs[job];
    jct_ += static_cast<double>(run.end - run.submit);
    ++ended_;
  }
  void fail(int job) { failed_.push_back(job); }
  [[nodiscard]] Tick wake() const { return std::min(wake_, wake_of(rank_)); }

  void schedule() {
    waiting_.begin_event(failed_);
    wake_ = kNever;
    if (!look()) return;
    int room = cluster_.free[0];
    int ahead = 0;  // GPUs that earlier jobs wait for
    for (Heap* queue = next(room); queue != nullptr; queue = next(room)) {
      const Place place = queue->top();
      const int gpus = cluster_.runs[place.job].gpus;
      queue->pop();
      if (gpus <= room || make_room(place, gpus, ahead, room)) {
        room -= gpus;
        started_.push_back(place.job);
        if (seated_) seat(place.job);
      } else {
        ahead += gpus;
        passed_.push_back(place);
      }
    }
    for (const Place& place : passed_) waiting_.add(place);
    for (const int job : suspended_) {
      cluster_.suspend(job);
      waiting_.add(job);
    }
    for (const int job : started_) cluster_.start(job, 0);
  }

 private:
  static constexpr double kPreemptionJcts = 0.25;  ///< mean completion times that each costs
  static constexpr double kOthersLoss = 0.5;       ///< weight of time that others lose
  static constexpr double kShortQuantile = 0.01;   ///< of the time still needed

  /// The running jobs behind the first that waits; whether any does.
  bool look() {
    Heap* first = nullptr;
    for (auto& of : waiting_) {
      if (of.queue.empty()) continue;
      if (first == nullptr || of.queue.top() < first->top()) first = &of.queue;
    }
    if (first == nullptr) return false;
    seated_ = false;
    running_.look(first->top());
    passed_.clear();
    suspended_.clear();
    started_.clear();
    return true;
  }

  /// When GPUs come free, for the first question of an event: nobody has lost any in it.
  void look_at_seats() {
    if (std::exchange(seated_, true)) return;
    seats_.look();
    for (const int job : started_) seat(job);
  }
  /// One that starts in this event.
  void seat(int job) {
    const auto start = static_cast<double>(cluster_.restart_of(job));
    seats_.add(rank_.left(job, kMedianQuantile) + start, cluster_.runs[job].gpus, job);
  }

  /// The first waiting job that fits, or that has later ones running.
  [[nodiscard]] Heap* next(int room) {
    Heap* first = nullptr;
    for (auto& of : waiting_) {
      if (of.queue.empty() || of.gpus > cluster_.capacity[0]) continue;
      const Place& place = of.queue.top();
      const Taken* last = of.gpus > room ? running_.at(0) : nullptr;
      if (of.gpus > room && (last == nullptr || last->place < place)) continue;
      if (first == nullptr || place < first->top()) first = &of.queue;
    }
    return first;
  }

  /// Suspends the last jobs after a place that make room for a gang, if that is worth it.
  bool make_room(const Place& place, int gpus, int ahead, int& room) {
    taken_.clear();
    int got = room;
    const Taken* last = running_.at(0);
    for (std::size_t i = 0; last != nullptr && got < gpus && place < last->place;
         last = running_.at(++i)) {
      taken_.push_back(*last);
      got += last->gpus;
    }
    if (got < gpus) return false;
    std::erase_if(taken_, [&](const Taken& running) {  // the others are enough
      if (got - running.gpus < gpus) return false;
      got -= running.gpus;
      return true;
    });
    if (had_better_wait(place.job, gpus + ahead, ahead, room)) return false;
    for (const Taken& running : taken_) {
      suspended_.push_back(running.place.job);
      seats_.remove(running.place.job);
      running_.remove(running.place.job);
    }
    room = got;
    return true;
  }

  /// Whether it is worth more to wait for so many GPUs, those for the jobs before it included, than
  /// to take the ones of `taken_`.
  [[nodiscard]] bool had_better_wait(int job, int gpus, int ahead, int room) {
    look_at_seats();
    const double wait = seats_.wait_for(gpus, room);
    const double late = late_at(job);
    if (late - wait > static_cast<double>(cluster_.now)) {
      look_at(late);
    } else if (!others_lose_more(job, wait)) {
      return false;
    } else {
      const auto start = static_cast<double>(cluster_.restart_of(job));
      look_at(static_cast<double>(cluster_.now) + std::max({1.0, wait, start}));
    }
    const double own = rank_.left(job, kMedianQuantile);
    double saved = wait;
    for (const Taken& other : taken_) {
      saved -= kOthersLoss * std::min(own, seats_.wait_for(other.gpus + ahead, room));
    }
    return saved <= preemption_cost(job) * static_cast<double>(taken_.size());
  }
  void look_at(double tick) {
    wake_ = std::min(wake_, static_cast<Tick>(std::ceil(std::min(tick, 1e18))));
  }

  /// Whether a job of `taken_` would lose more of its fair time than this one does by its wait.
  [[nodiscard]] bool others_lose_more(int job, double wait) const {
    const double meanwhile = std::min(wait, rank_.left(job, kShortQuantile));
    const double fair = fair_time(job);
    return std::ranges::any_of(taken_, [&](const Taken& other) {
      const auto start = static_cast<double>(cluster_.restart_of(other.place.job));
      return (start + meanwhile) * fair > wait * fair_time(other.place.job);
    });
  }

  [[nodiscard]] double preemption_cost(int job) {
    double weighed = ended_ > 0 ? kPreemptionJcts * jct_ / static_cast<double>(ended_) : 0;
    if constexpr (requires { rank_.preemption(job); }) weighed *= rank_.preemption(job);
    return static_cast<double>(cluster_.restart_of(job)) + weighed;
  }

  /// How long a job takes with a fair share, see Simulation::worst_ftf.
  [[nodiscard]] double fair_time(int job) const {
    const Run& run = cluster_.runs[job];
    const double crowd = static_cast<double>(cluster_.live) * run.gpus / cluster_.capacity[0];
    return (cluster_.done(job) / run.fastest + rank_.left(job, kShortQuantile)) *
           std::max(1.0, crowd);
  }

  /// When the job has to start for an end within its fair shares.
  [[nodiscard]] double late_at(int job) const {
    if constexpr (requires { rank_.is_late(job); }) {
      if (rank_.is_late(job)) return 0;
    }
    double shares = 1;
    if constexpr (requires { rank_.fair_shares(); }) shares = rank_.fair_shares();
    return static_cast<double>(cluster_.runs[job].submit) + shares * fair_time(job) -
           rank_.left(job, kShortQuantile);
  }

  Cluster& cluster_;
  Rank rank_;
  Waiting<Rank> waiting_;
  Tenures<Rank> seats_;
  bool seated_ = false;  ///< seats_ are those of this event
  Behind<Rank> running_;
  std::vector<Taken> taken_;
  std::vector<Place> passed_;
  std::vector<int> suspended_, started_, failed_;
  double jct_ = 0;
  Tick wake_ = kNever;  ///< when the next job that waits will be late
  std::int64_t ended_ = 0;
};

}  // namespace glidepath::detail
