// SPDX-License-Identifier: Apache-2.0
// Preemptive schedulers that keep the live jobs in one order. A `Place` is where a job stands in
// it: its key by the scheduler's Rank (remaining time, ...), ties by submission. A greedy fill in
// that order runs each job that still fits. The waiting jobs are kept apart by size of gang,
// because room only shrinks along a fill: the first job of each size is its `Head`, and only a head
// can be next. A `Taken` is a running job, whose GPUs a head before it in the order may take; what
// lies behind the first head that has room is all that an event looks at. `Patient` does not take
// at once: it sees running jobs as `Tenure`s, GPUs with the time until they come free by
// themselves, and weighs waiting for them against what a preemption costs.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <type_traits>
#include <utility>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/fill.hpp"

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
  /// All keys have changed.
  void rebuild() {
    std::vector<int> all;
    for (auto& of : heaps_) {
      for (; !of.queue.empty(); of.queue.pop()) all.push_back(of.queue.top().job);
    }
    for (const int job : all) heaps_[job].push({rank_.waiting(job), job});
  }
  [[nodiscard]] bool is_head(int job) { return heaps_[job].top().job == job; }
  void look() { heaps_.look(); }
  ByKind<Heap>::Of* first() {
    return heaps_.first([](const Heap& heap) { return heap.top(); });
  }
  auto begin() { return heaps_.begin(); }
  auto end() { return heaps_.end(); }

 private:
  Rank& rank_;
  ByKind<Heap> heaps_;
};

/// The running jobs by place where those of one gang have the order in which they end, whatever the
/// time: a question costs a search for each size of gang.
template <class Rank>
class ByFinish {
 public:
  ByFinish(Cluster& cluster, const Rank& rank) : cluster_(cluster), rank_(rank), jobs_(cluster) {}

  void start(int job) {
    const End end{cluster_.runs[job].finishes, job};
    std::vector<End>& ends = gang(job).ends;
    ends.insert(std::lower_bound(ends.begin(), ends.end(), end, std::greater<>()), end);
  }
  /// A job has ended, and so before all others of its gang.
  void end(int job) { gang(job).ends.pop_back(); }
  /// To be called while it runs.
  void suspend(int job) {
    const End end{cluster_.runs[job].finishes, job};
    std::vector<End>& ends = gang(job).ends;
    ends.erase(std::lower_bound(ends.begin(), ends.end(), end, std::greater<>()));
  }

  /// Begins an event, in which only the jobs after a place matter.
  void look(const Place&) {
    for (auto& of : jobs_) of.queue.taken = 0;
  }
  /// Whether the jobs after a place hold so many GPUs.
  [[nodiscard]] bool hold_after(const Place& place, int gpus) {
    for (auto& of : jobs_) {
      for (const End& end : of.queue.ends) {
        if (!(place < place_of(end, of.gpus))) break;
        if ((gpus -= of.gpus) <= 0) return true;
      }
    }
    return false;
  }
  /// The last job after a place that was not given yet in this event.
  [[nodiscard]] std::optional<Taken> last_after(const Place& place) {
    std::optional<Taken> last;
    for (auto& of : jobs_) {
      if (of.queue.taken == of.queue.ends.size()) continue;
      const Place here = place_of(of.queue.ends[of.queue.taken], of.gpus);
      if (place < here && (!last || last->place < here)) last = {here, of.gpus};
    }
    return last;
  }
  void take(const Taken& job) { ++jobs_[job.place.job].taken; }

 private:
  struct End {
    Tick finishes;
    int job;
    auto operator<=>(const End&) const = default;
  };
  struct Ends {
    std::vector<End> ends;  ///< the last first
    std::size_t taken = 0;  ///< of them, in this event
  };
  Ends& gang(int job) { return jobs_[job]; }
  [[nodiscard]] Place place_of(const End& end, int gpus) const {
    return {rank_.running({end.finishes, end.job, gpus}), end.job};
  }
  Cluster& cluster_;
  const Rank& rank_;
  ByKind<Ends> jobs_;
};

/// The same for any rank: at each event the running jobs are looked at anew.
template <class Rank>
class Scanned {
 public:
  Scanned(Cluster& cluster, const Rank& rank) : cluster_(cluster), rank_(rank) {}
  void start(int) {}
  void end(int) {}
  void suspend(int) {}

  void look(const Place& first) {
    behind_.clear();
    sorted_ = false;
    for (const Running& running : cluster_.running) {
      const Place place{rank_.running(running), running.job};
      if (first < place) behind_.push_back({place, running.gpus});
    }
  }
  [[nodiscard]] bool hold_after(const Place& place, int gpus) const {
    for (const Taken& job : behind_) {
      if (place < job.place && (gpus -= job.gpus) <= 0) return true;
    }
    return false;
  }
  [[nodiscard]] std::optional<Taken> last_after(const Place& place) {
    if (!sorted_) std::make_heap(behind_.begin(), behind_.end(), before);
    sorted_ = true;
    if (behind_.empty() || !(place < behind_.front().place)) return {};
    return behind_.front();
  }
  void take(const Taken&) {
    std::pop_heap(behind_.begin(), behind_.end(), before);
    behind_.pop_back();
  }

 private:
  static bool before(const Taken& a, const Taken& b) { return a.place < b.place; }
  Cluster& cluster_;
  const Rank& rank_;
  std::vector<Taken> behind_;
  bool sorted_ = false;  ///< as a heap, the last first
};

/// At each event the live jobs are taken in the order of their key, each that still fits runs, the
/// others wait. `Rank` gives the key of a job; it must not grow while the job runs, nor change
/// while it waits. Then nothing can change but by an arrival or an end, and only from the first
/// waiting job that fits onward: the event costs what lies behind that job.
template <class Rank>
class Preemptive {
 public:
  explicit Preemptive(Cluster& cluster)
      : cluster_(cluster), rank_(cluster), waiting_(cluster, rank_), running_(cluster, rank_) {}
  void arrive(int job) {
    waiting_.add(job);
    arrivals_.push_back(job);
  }
  void leave(int job) {
    running_.end(job);
    left_ = true;
  }
  void fail(int job) {
    running_.suspend(job);
    failed_.push_back(job);
  }
  [[nodiscard]] Tick wake() const { return wake_of(rank_); }

  void schedule() {
    for (const int job : failed_) waiting_.add(job);
    // A node that is out or back is news of its own.
    const int capacity = std::exchange(capacity_, cluster_.capacity[0]);
    const bool nothing_new = Rank::kMonotone && !left_ && failed_.empty() &&
                             capacity == capacity_ && !an_arrival_is_a_head();
    arrivals_.clear();
    failed_.clear();
    left_ = false;
    if (nothing_new) return;
    if constexpr (requires { rank_.refresh(); }) {
      if (rank_.refresh())
        waiting_.rebuild();  // what is known of durations changed, and so did all keys
    }
    heads_.clear();
    for (auto& of : waiting_) {
      if (!of.queue.empty()) heads_.push_back({of.queue.top(), of.gpus, &of.queue});
    }
    if (heads_.empty()) return;
    const Place first =
        std::min_element(heads_.begin(), heads_.end(), [](const Head& a, const Head& b) {
          return a.place < b.place;
        })->place;
    running_.look(first);
    suspended_.clear();
    started_.clear();
    // The first head that has room where it stands: nothing changes before it. Mostly there is
    // none, or free GPUs are enough for it, and nothing has to be sorted.
    int room = cluster_.free[0];
    Head* start = first_with_room(room);
    while (start != nullptr && start->gpus <= room) {
      room -= start->gpus;
      started_.push_back(start->place.job);
      advance(*start);
      start = first_with_room(room);
    }
    if (start != nullptr) preempt_for(*start, room);
    for (const int job : suspended_) {
      running_.suspend(job);
      cluster_.suspend(job);
      waiting_.add(job);
    }
    for (const int job : started_) {
      cluster_.start(job, 0);
      running_.start(job);
    }
  }

 private:
  struct Head {
    Place place;
    int gpus;
    Heap* queue;
  };

  /// Starts a head on GPUs of those behind it. Wherever some GPUs are left nobody before that place
  /// is touched: the last ones are enough, up to the next head that has room where it stands.
  void preempt_for(Head& start, int room) {
    const Place from = start.place;
    room -= start.gpus;
    started_.push_back(from.job);
    advance(start);
    const Head* next = first_with_room(room);
    last_.clear();
    for (auto last = running_.last_after(from);
         last && (room < 0 || (next != nullptr && next->place < last->place));
         last = running_.last_after(from)) {
      room += last->gpus;
      last_.push_back(*last);
      running_.take(*last);
    }
    Head* head = first_fitting(room);
    for (auto running = last_.rbegin(); running != last_.rend() || head != nullptr;) {
      if (running != last_.rend() && (head == nullptr || running->place < head->place)) {
        if (running->gpus <= room) {
          room -= running->gpus;
          if (head != nullptr && head->gpus > room) head = first_fitting(room);
        } else {
          suspended_.push_back(running->place.job);
        }
        ++running;
      } else {
        room -= head->gpus;
        started_.push_back(head->place.job);
        advance(*head);
        head = first_fitting(room);
      }
    }
  }

  /// Without an end the room of waiting jobs does not grow: only a new head can change anything.
  [[nodiscard]] bool an_arrival_is_a_head() {
    return std::any_of(arrivals_.begin(), arrivals_.end(),
                       [&](int job) { return waiting_.is_head(job); });
  }

  /// The first waiting job that fits into the room.
  [[nodiscard]] Head* first_fitting(int room) {
    Head* first = nullptr;
    for (Head& head : heads_) {
      if (head.gpus > room || head.queue->empty()) continue;
      if (first == nullptr || head.place < first->place) first = &head;
    }
    return first;
  }

  static void advance(Head& head) {
    head.queue->pop();
    if (!head.queue->empty()) head.place = head.queue->top();
  }

  /// The first head with enough GPUs among the free ones and those behind it.
  [[nodiscard]] Head* first_with_room(int free) {
    Head* first = nullptr;
    for (Head& head : heads_) {
      if (head.queue->empty() || (first != nullptr && first->place < head.place)) continue;
      if (head.gpus <= free || running_.hold_after(head.place, head.gpus - free)) first = &head;
    }
    return first;
  }

  Cluster& cluster_;
  Rank rank_;
  Waiting<Rank> waiting_;
  std::conditional_t<Rank::kByFinish, ByFinish<Rank>, Scanned<Rank>> running_;
  std::vector<Head> heads_;
  std::vector<Taken> last_;
  std::vector<int> suspended_, started_, arrivals_, failed_;
  int capacity_ = 0;
  bool left_ = false;
};

/// The same on several tiers, or where gangs must fit in nodes: at each event all running jobs and
/// the heads of those that wait are laid out anew. A job that loses its GPUs may get others.
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
    for (const int job : failed_) waiting_.add(job);
    failed_.clear();
    if constexpr (requires { rank_.refresh(); }) {
      if (rank_.refresh()) waiting_.rebuild();
    }
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

/// The same where a start costs something. A job for which the free GPUs are not enough would get
/// some of those that running jobs give back; it takes those of later jobs only where that saves it
/// more than each preemption costs: the start, and a quarter of a mean completion time. On most
/// clusters of Philly this saves about half of the preemptions for at most one or two per cent of
/// the mean. A short job must not pay for it with many times its own length: once it would take
/// longer than its fair share it waits no more. Where times are forecast, GPUs come free by the
/// medians, and a job may be as short as its forecast makes it with a probability of one in a
/// hundred: fairness is that of the worst of many jobs.
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
    for (const int job : failed_) waiting_.add(job);
    failed_.clear();
    if constexpr (requires { rank_.refresh(); }) {
      if (rank_.refresh()) waiting_.rebuild();
    }
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
    const Tick late = late_at(place.job);
    if (late > cluster_.now) {
      wake_ = std::min(wake_, late);
      const double cost = preemption_cost(place.job) * static_cast<double>(taken_.size());
      if (wait_for(gpus + ahead, room) <= cost) return false;
    }
    for (const Taken& running : taken_) {
      suspended_.push_back(running.place.job);
      const auto is_it = [&](const auto& other) { return job_of(other) == running.place.job; };
      std::erase_if(seats_, is_it);
      std::erase_if(running_, is_it);
    }
    room = got;
    return true;
  }
  [[nodiscard]] double preemption_cost(int job) const {
    double weighed = ended_ > 0 ? kPreemptionJcts * jct_ / static_cast<double>(ended_) : 0;
    if constexpr (requires { rank_.preemption(job); }) weighed *= rank_.preemption(job);
    return static_cast<double>(cluster_.restart_of(job)) + weighed;
  }
  static int job_of(const Tenure& seat) { return seat.job; }
  static int job_of(const Taken& running) { return running.place.job; }

  /// From when on the job would take longer than with a fair share, see Simulation::worst_ftf, if
  /// it started only then.
  [[nodiscard]] Tick late_at(int job) const {
    if constexpr (requires { rank_.is_late(job); }) {
      if (rank_.is_late(job)) return cluster_.now;
    }
    const Run& run = cluster_.runs[job];
    const double left = rank_.left(job, kShortQuantile);
    const double crowd = static_cast<double>(cluster_.live) * run.gpus / cluster_.capacity[0];
    const double fair = (cluster_.done(job) + left) * std::max(1.0, crowd);
    double shares = 1;
    if constexpr (requires { rank_.fair_shares(); }) shares = rank_.fair_shares();
    return run.submit + static_cast<Tick>(std::min(shares * fair - left, 1e18));
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
