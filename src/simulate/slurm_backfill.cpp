// SPDX-License-Identifier: Apache-2.0
// Slurm's way: the order of arrival, with EASY backfill.
#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "plan/value.hpp"
#include "simulate/observer.hpp"
#include "simulate/policy_table.hpp"
#include "simulate/sessions.hpp"
#include "simulate/snapshots.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

namespace {

/// GPUs of one node.
struct Seat {
  int node = 0, gpus = 0;
};
using Seats = std::vector<Seat>;

/// Nodes of a tier by what is left of them. Where gangs may spread over a tier, it is one node.
class Room {
 public:
  Room(int size, std::vector<int> free) : size_(size), free_(std::move(free)) {}

  [[nodiscard]] bool fits(int gpus) const {
    if (size_ == 0) return false;
    const int rest = gpus % size_;
    int whole = gpus / size_ + (rest > 0 ? 1 : 0);
    bool part = rest == 0;  // beside others on a node
    for (const int free : free_) {
      if (free == size_) {
        --whole;
      } else if (!part && free >= rest) {
        part = true;
        --whole;
      }
    }
    return whole <= 0;
  }
  /// Seats a gang that fits: its parts go where they leave least, as in Nodes::place().
  Seats take(int gpus) {
    Seats seats;
    for (int left = gpus; left > 0; left -= size_) {
      const int part = std::min(left, size_);
      std::size_t best = free_.size();
      for (std::size_t n = 0; n < free_.size(); ++n) {
        if (free_[n] >= part && (best == free_.size() || free_[n] < free_[best])) best = n;
      }
      free_[best] -= part;
      seats.push_back({static_cast<int>(best), part});
    }
    return seats;
  }
  [[nodiscard]] bool has(const Seats& seats) const {
    return std::ranges::all_of(seats, [&](const Seat& s) { return free_[s.node] >= s.gpus; });
  }
  void take(const Seats& seats) {
    for (const Seat& seat : seats) free_[seat.node] -= seat.gpus;
  }
  void give(const Seats& seats) {
    for (const Seat& seat : seats) free_[seat.node] += seat.gpus;
  }

 private:
  int size_;
  std::vector<int> free_;
};

/// What backfill counts on: a high quantile of what each job still needs. Of a running job it is
/// kept when that comes to an end, which stays as it is for as long as the job stays in a cell of
/// its law: an event looks at no more of most running jobs.
class Needs {
 public:
  explicit Needs(const Cluster& cluster)
      : cluster_(cluster), predict_(cluster), known_(cluster.runs.size()) {
    if (!cluster.workload.curves.empty()) observer_.emplace(cluster, Foresight{});
  }
  void arrive(int job) {
    if (observer_) observer_->arrive(job);
  }
  void leave(int job) {
    if (observer_) observer_->leave(job);
  }
  void start(int job) { renew({cluster_.runs[job].finishes, job, cluster_.runs[job].gpus}); }

  /// Begins an event. The laws of running jobs are made anew when it is time for it, whoever waits:
  /// the cells of a law depend on what was done by then.
  void look() {
    if (observer_) {
      (void)observer_->snapshot();
      return;
    }
    predict_.meet();
    if (predict_.refresh()) ++changes_;
    for (const Running& running : cluster_.running) {
      const Known& known = known_[running.job];
      const bool holds = known.finishes == running.finishes && known.changes == changes_;
      if (!holds || cluster_.now >= known.until) renew(running);
    }
  }
  /// Seconds at rate 1.
  [[nodiscard]] double steps(int job) const {
    if (observer_) return remaining_steps(observer_->seen(job), kEndQuantile);
    return predict_.sample(job, kEndQuantile).left / static_cast<double>(cluster_.per_second);
  }
  /// Seconds until a running job ends, at least, counted as steps() over its rate.
  [[nodiscard]] double least_s(int job) const {
    if (observer_) return 0;
    return cluster_.seconds(std::max<Tick>(0, known_[job].ends - cluster_.now));
  }

 private:
  struct Known {
    Tick finishes = kNever, until = 0, ends = 0;
    std::int64_t changes = 0;
  };

  void renew(const Running& running) {
    if (observer_) return;
    const Predictor::Quantile now = predict_.sample(running.job, kEndQuantile);
    known_[running.job] = {running.finishes, cluster_.tick_before(running.job, now.until),
                           cluster_.tick_before(running.job, now.work), changes_};
  }

  const Cluster& cluster_;
  Predictor predict_;
  std::optional<Observer> observer_;  ///< where jobs have curves
  std::vector<Known> known_;          ///< of each job
  std::int64_t changes_ = 0;          ///< of what is known of durations
};

/// EASY backfill (Lifka 1995) by priority, then order of arrival, as Slurm's: the first job that
/// does not fit gets a reservation for when running jobs will have made room; later ones run before
/// it if they end in time or leave it room enough. A user at the limit is passed over. No
/// preemption.
class Backfill {
 public:
  explicit Backfill(Cluster& cluster)
      : cluster_(cluster), needs_(cluster), sessions_(cluster), waiting_(cluster) {}
  void arrive(int job) {
    needs_.arrive(job);
    wait(job);
  }
  void leave(int job) {
    needs_.leave(job);
    sessions_.leave(job);
    count(job, -gang(job));
  }
  void fail(int job) {
    count(job, -gang(job));
    wait(job);
  }
  [[nodiscard]] Tick wake() const { return sessions_.wake(); }

  void schedule() {
    if (cluster_.live == 0) return;
    needs_.look();
    if (std::cmp_less(cluster_.running.size(), cluster_.live)) fill();
    sessions_.begin();
  }

 private:
  struct Waits {
    int priority, job;
    friend bool operator<(const Waits& a, const Waits& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.job < b.job;
    }
  };
  /// The waiting jobs of one kind in order; in this event those from `next` on are still to come.
  struct Line {
    std::deque<Waits> jobs;
    std::size_t next = 0;
    [[nodiscard]] bool empty() const { return next == jobs.size(); }
  };
  struct Start {
    int job, tier;
    Seats seats;
  };
  /// When a running job gives its GPUs back.
  struct End {
    double at_s;  ///< exactly, or no later
    bool exact;
    int gpus;
    int start;  ///< index of one that starts in this event, after all others among equals
    int job;
    auto operator<=>(const End&) const = default;
  };
  /// Kept for the first job that does not fit: on a tier from so many seconds on, and what is left
  /// of its nodes beside the job then.
  struct Reservation {
    double from_s = kInfinity;
    int tier = 0;
    std::optional<Room> left{};
  };

  [[nodiscard]] int gang(int job) const { return cluster_.submitted(job).gpus; }
  void count(int job, int gpus) {
    if (cluster_.options.user_gpus) of_user_[cluster_.submitted(job).user] += gpus;
  }
  [[nodiscard]] bool exceeds_limit(int job) {
    const std::optional<int> most = cluster_.options.user_gpus;
    return most && of_user_[cluster_.submitted(job).user] + gang(job) > *most;
  }
  void wait(int job) {
    std::deque<Waits>& jobs = waiting_[job].jobs;
    const Waits waits{cluster_.submitted(job).priority, job};
    jobs.insert(std::lower_bound(jobs.begin(), jobs.end(), waits), waits);
  }

  void fill() {
    look_at_rooms();
    std::optional<int> blocked;
    std::optional<Reservation> kept;  // for it, once another job could run before it
    while (auto* first = waiting_.first([](const Line& line) { return line.jobs[line.next]; })) {
      Line& line = first->queue;
      const int job = line.jobs[line.next].job;
      if (exceeds_limit(job)) {
        ++line.next;
        continue;
      }
      const int tier = fastest_with_room(job);
      if (tier < 0) {  // nor has any other of this kind room, as it only shrinks
        first->passed = true;
        if (!blocked && cluster_.in_service(job)) blocked = job;
        continue;
      }
      if (blocked && !kept) kept = reserve(*blocked);
      if (!kept) {
        start(job, tier);
      } else if (!start_before(job, *kept)) {
        ++line.next;
        continue;
      }
      line.jobs.erase(line.jobs.begin() + static_cast<std::ptrdiff_t>(line.next));
    }
    start_in_order();
  }

  void look_at_rooms() {
    rooms_.clear();
    const bool in_nodes = cluster_.options.in_nodes;
    for (int t = 0; t < static_cast<int>(cluster_.capacity.size()); ++t) {
      if (in_nodes) {
        rooms_.emplace_back(cluster_.nodes->size(t), cluster_.nodes->free_by_node(t));
      } else {
        rooms_.emplace_back(cluster_.capacity[t], std::vector{cluster_.free[t]});
      }
    }
    waiting_.look();
    for (auto& of : waiting_) of.queue.next = 0;
  }

  /// -1 where there is none.
  template <class May>
  int fastest_with_room(int job, May&& may) const {
    int best = -1;
    for (int t = 0; t < static_cast<int>(rooms_.size()); ++t) {
      if (gang(job) > cluster_.capacity[t] || !cluster_.usable(job, t)) continue;
      if (best >= 0 && cluster_.rate(job, t) <= cluster_.rate(job, best)) continue;
      if (rooms_[t].fits(gang(job)) && may(t)) best = t;
    }
    return best;
  }
  int fastest_with_room(int job) const {
    return fastest_with_room(job, [](int) { return true; });
  }

  void start(int job, int tier) {
    count(job, gang(job));
    starts_.push_back({job, tier, rooms_[tier].take(gang(job))});
  }

  /// Starts a job that ends before the reservation begins, or leaves it its room.
  bool start_before(int job, Reservation& kept) {
    const double work_s = needs_s(job);
    const auto late = [&](int tier) {
      return tier == kept.tier && work_s / cluster_.rate(job, tier) > kept.from_s;
    };
    const int tier = fastest_with_room(
        job, [&](int t) { return !late(t) || kept.left->has(Room(rooms_[t]).take(gang(job))); });
    if (tier < 0) return false;
    start(job, tier);
    if (late(tier)) kept.left->take(starts_.back().seats);
    return true;
  }

  /// Seconds at rate 1, as a policy that counts by the fastest tier in service would have them.
  [[nodiscard]] double needs_s(int job) const {
    double fastest = 0;
    for (int t = 0; t < static_cast<int>(cluster_.capacity.size()); ++t) {
      if (gang(job) > cluster_.capacity[t] || !cluster_.usable(job, t)) continue;
      fastest = std::max(fastest, cluster_.rate(job, t));
    }
    return needs_.steps(job) / fastest * fastest;
  }

  /// On the tier where running jobs will first have made room for the job.
  [[nodiscard]] Reservation reserve(int job) {
    Reservation out;
    for (int t = 0; t < static_cast<int>(rooms_.size()); ++t) {
      if (gang(job) > cluster_.capacity[t] || !cluster_.usable(job, t)) continue;
      Room room = rooms_[t];
      const double when = wait_for(gang(job), t, room);
      if (!room.fits(gang(job)) || when >= out.from_s) continue;
      (void)room.take(gang(job));
      out = {when, t, std::move(room)};
    }
    return out;
  }

  /// Gives back what running jobs hold of a tier, the first to end first, until a gang fits.
  double wait_for(int gpus, int tier, Room& room) {
    ends_.clear();
    for (const Running& running : cluster_.running) {
      if (cluster_.runs[running.job].tier != tier) continue;
      ends_.push_back({needs_.least_s(running.job), false, running.gpus, -1, running.job});
    }
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      const Start& start = starts_[i];
      if (start.tier != tier) continue;
      ends_.push_back({0, false, gang(start.job), static_cast<int>(i), start.job});
    }
    std::ranges::make_heap(ends_, std::greater());
    double when = 0;
    while (!room.fits(gpus) && !ends_.empty()) {
      std::ranges::pop_heap(ends_, std::greater());
      End& next = ends_.back();
      if (next.exact) {
        when = next.at_s;
        room.give(next.start < 0 ? seats_of(next.job) : starts_[next.start].seats);
        ends_.pop_back();
      } else {
        next.at_s = needs_s(next.job) / cluster_.rate(next.job, tier);
        next.exact = true;
        std::ranges::push_heap(ends_, std::greater());
      }
    }
    return when;
  }
  [[nodiscard]] Seats seats_of(int job) const {
    if (!cluster_.options.in_nodes) return {{0, gang(job)}};
    Seats seats;
    for (const Nodes::Part& part : cluster_.nodes->parts_of(job)) {
      seats.push_back({part.node, part.gpus});
    }
    return seats;
  }

  /// In order of submission. Where nodes turn out to have no room the job waits on.
  void start_in_order() {
    std::ranges::sort(starts_, {}, &Start::job);
    for (const auto& [job, tier, seats] : starts_) {
      if (cluster_.start(job, tier)) {
        needs_.start(job);
      } else {
        count(job, -gang(job));
        wait(job);
      }
    }
    starts_.clear();
  }

  Cluster& cluster_;
  Needs needs_;
  Sessions sessions_;
  ByKind<Line> waiting_;
  std::unordered_map<std::string_view, int> of_user_;  ///< GPUs, where users have a limit
  std::vector<Room> rooms_;                            ///< of each tier, in this event
  std::vector<Start> starts_;                          ///< in this event
  std::vector<End> ends_;                              ///< a heap
};

}  // namespace

void run_slurm_backfill(Cluster& cluster) {
  Backfill backfill(cluster);
  run(cluster, backfill);
}

}  // namespace glidepath::detail
