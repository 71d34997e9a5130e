// SPDX-License-Identifier: Apache-2.0
// Preemptive schedulers that keep the live jobs in one order on one tier. The first waiting job of
// each size of gang is its `Head`, and a running job behind it in the order is a `Taken`, whose
// GPUs it may take; what lies behind the first head that has room is all that an event looks at.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "simulate/cluster.hpp"
#include "simulate/running_order.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

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
  Scanned(Cluster& cluster, const Rank& rank) : behind_(cluster, rank) {}
  void start(int) {}
  void end(int) {}
  void suspend(int) {}

  void look(const Place& first) {
    behind_.look(first);
    taken_ = 0;
  }
  [[nodiscard]] bool hold_after(const Place& place, int gpus) {
    const Taken* last = behind_.at(0);
    for (std::size_t i = 0; last != nullptr && place < last->place; last = behind_.at(++i)) {
      if ((gpus -= last->gpus) <= 0) return true;
    }
    return false;
  }
  [[nodiscard]] std::optional<Taken> last_after(const Place& place) {
    const Taken* last = behind_.at(taken_);
    if (last == nullptr || !(place < last->place)) return {};
    return *last;
  }
  void take(const Taken&) { ++taken_; }

 private:
  Behind<Rank> behind_;
  std::size_t taken_ = 0;  ///< in this event
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
    if constexpr (requires { rank_.leave(job); }) rank_.leave(job);
    running_.end(job);
    left_ = true;
  }
  void fail(int job) {
    running_.suspend(job);
    failed_.push_back(job);
  }
  [[nodiscard]] Tick wake() const { return wake_of(rank_); }

  void schedule() {
    // A node that is out or back is news of its own.
    const int capacity = std::exchange(capacity_, cluster_.capacity[0]);
    const bool nothing_new = Rank::kMonotone && !left_ && failed_.empty() &&
                             capacity == capacity_ && !an_arrival_is_a_head();
    arrivals_.clear();
    left_ = false;
    if (nothing_new) return;
    waiting_.begin_event(failed_);
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

}  // namespace glidepath::detail
