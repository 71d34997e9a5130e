// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

/// Preemptive where a start costs something. It sees running jobs as `Tenure`s, GPUs with the time
/// until they come free by themselves. A job for which the free GPUs are not enough would get some
/// of those; it takes the GPUs of later jobs only where that saves it more than each preemption
/// costs: the start, a quarter of a mean completion time, and half of the time that the others lose
/// meanwhile, in part only since they may find GPUs elsewhere.
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
      : cluster_(cluster), rank_(cluster), waiting_(cluster, rank_) {}
  void arrive(int job) { waiting_.add(job); }
  void leave(int job) {
    const Run& run = cluster_.runs[job];
    jct_ += static_cast<double>(run.end - run.submit);
    ++ended_;
  }
  void fail(int job) { failed_.push_back(job); }
  [[nodiscard]] Tick wake() const { return std::min(wake_, wake_of(rank_)); }

  void schedule() {
    waiting_.begin_event(failed_);
    look();
    wake_ = kNever;
    int room = cluster_.free[0];
    int ahead = 0;  // GPUs that earlier jobs wait for
    for (Heap* queue = next(room); queue != nullptr; queue = next(room)) {
      const Place place = queue->top();
      const int gpus = cluster_.runs[place.job].gpus;
      queue->pop();
      if (gpus <= room || make_room(place, gpus, ahead, room)) {
        room -= gpus;
        started_.push_back(place.job);
        const Tenure seat{rank_.left(place.job, kMedianQuantile) +
                              static_cast<double>(cluster_.restart_of(place.job)),
                          gpus, -1};
        seats_.insert(std::upper_bound(seats_.begin(), seats_.end(), seat, sooner), seat);
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
  static constexpr double kMedianQuantile = 0.5,
                          kShortQuantile = 0.01;  ///< quantiles of the time still needed
  struct Tenure {                                 ///< GPUs in use, and for how long
    double left;
    int gpus, job;
  };
  static bool sooner(const Tenure& a, const Tenure& b) { return a.left < b.left; }

  void look() {
    seats_.clear();
    running_.clear();
    for (const Running& running : cluster_.running) {
      seats_.push_back({rank_.left(running.job, kMedianQuantile), running.gpus, running.job});
      running_.push_back({{rank_.running(running), running.job}, running.gpus});
    }
    std::sort(seats_.begin(), seats_.end(), sooner);
    std::sort(running_.begin(), running_.end(),
              [](const Taken& a, const Taken& b) { return b.place < a.place; });
    passed_.clear();
    suspended_.clear();
    started_.clear();
  }

  /// The first waiting job that fits, or that has later ones running.
  [[nodiscard]] Heap* next(int room) {
    Heap* first = nullptr;
    for (auto& of : waiting_) {
      if (of.queue.empty() || of.gpus > cluster_.capacity[0]) continue;
      const Place& place = of.queue.top();
      if (of.gpus > room && (running_.empty() || running_.front().place < place)) continue;
      if (first == nullptr || place < first->top()) first = &of.queue;
    }
    return first;
  }

  /// Suspends the last jobs after a place that make room for a gang, if that is worth it.
  bool make_room(const Place& place, int gpus, int ahead, int& room) {
    taken_.clear();
    int got = room;
    for (const Taken& running : running_) {
      if (got >= gpus || running.place < place) break;
      taken_.push_back(running);
      got += running.gpus;
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
      const auto is_it = [&](const auto& other) { return job_of(other) == running.place.job; };
      std::erase_if(seats_, is_it);
      std::erase_if(running_, is_it);
    }
    room = got;
    return true;
  }

  /// Whether it is worth more to wait for so many GPUs, those for the jobs before it included, than
  /// to take the ones of `taken_`.
  [[nodiscard]] bool had_better_wait(int job, int gpus, int ahead, int room) {
    const double wait = wait_for(gpus, room);
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
      saved -= kOthersLoss * std::min(own, wait_for(other.gpus + ahead, room));
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

  [[nodiscard]] double preemption_cost(int job) const {
    double weighed = ended_ > 0 ? kPreemptionJcts * jct_ / static_cast<double>(ended_) : 0;
    if constexpr (requires { rank_.preemption(job); }) weighed *= rank_.preemption(job);
    return static_cast<double>(cluster_.restart_of(job)) + weighed;
  }
  static int job_of(const Tenure& seat) { return seat.job; }
  static int job_of(const Taken& running) { return running.place.job; }

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

  /// Until so many GPUs have come free by themselves.
  [[nodiscard]] double wait_for(int gpus, int room) const {
    for (const Tenure& seat : seats_) {
      room += seat.gpus;
      if (room >= gpus) return seat.left;
    }
    return std::numeric_limits<double>::infinity();
  }

  Cluster& cluster_;
  Rank rank_;
  Waiting<Rank> waiting_;
  std::vector<Tenure> seats_;   ///< the first to be given back first
  std::vector<Taken> running_;  ///< the last in the order first
  std::vector<Taken> taken_;
  std::vector<Place> passed_;
  std::vector<int> suspended_, started_, failed_;
  double jct_ = 0;
  Tick wake_ = kNever;  ///< when the next job that waits will be late
  std::int64_t ended_ = 0;
};

}  // namespace glidepath::detail
