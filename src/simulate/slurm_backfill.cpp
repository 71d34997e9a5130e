// SPDX-License-Identifier: Apache-2.0
// Slurm's way: the order of arrival, with EASY backfill.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "plan/value.hpp"
#include "simulate/policy_table.hpp"
#include "simulate/snapshots.hpp"

namespace glidepath::detail {

namespace {

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

/// EASY backfill (Lifka 1995) by priority, then order of arrival, as Slurm's: the first job that
/// does not fit gets a reservation for when running jobs will have made room; later ones run before
/// it if they end in time or leave it room enough. A user at the limit is passed over. No
/// preemption.
class Backfill {
 public:
  Backfill(const Snapshot& snapshot, std::optional<int> user_gpus, const NodeLayout& layout)
      : snapshot_(snapshot), user_gpus_(user_gpus) {
    for (std::size_t t = 0; t < snapshot.tiers.size(); ++t) {
      const Tier& tier = snapshot.tiers[t];
      if (layout.free.empty()) {
        rooms_.emplace_back(tier.gpus(), std::vector{tier.gpus()});
      } else {
        rooms_.emplace_back(tier.gpus_per_node, layout.free[t]);
      }
    }
    std::unordered_map<std::int64_t, const Allocation*> holds;
    for (const Allocation& held : snapshot.running) holds.emplace(held.job, &held);
    for (const Job& job : snapshot.jobs) {
      const auto found = holds.find(job.id);
      if (found == holds.end()) {
        waiting_.push_back(&job);
        continue;
      }
      const Allocation& held = *found->second;
      if (layout.free.empty()) rooms_[held.tier].take(Seats{{0, held.gpus}});
      run(job, held, layout.free.empty() ? Seats{{0, held.gpus}} : layout.of_job.at(job.id));
    }
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Job* a, const Job* b) { return a->priority > b->priority; });
  }

  Plan plan() {
    std::optional<Reservation> kept;
    for (const Job* job : waiting_) {
      if (user_gpus_ && of_user_[job->user] + gang(*job) > *user_gpus_) continue;
      if (kept) {
        start_before(*job, *kept);
      } else if (const Option* option = fastest_with_room(*job); option != nullptr) {
        start(*job, *option, rooms_[option->tier].take(option->gpus));
      } else {
        kept = reserve(*job);
      }
    }
    return std::move(plan_);
  }

 private:
  struct Running {
    const Job* job;
    Allocation held;
    Seats seats;
  };
  /// Kept for the first job that does not fit: on a tier from so many seconds on, and what is left
  /// of its nodes beside the job then.
  struct Reservation {
    double from_s = kInfinity;
    int tier = 0;
    std::optional<Room> left{};
  };

  void run(const Job& job, const Allocation& held, Seats seats) {
    plan_.allocations.push_back(held);
    of_user_[job.user] += gang(job);
    running_.push_back({&job, held, std::move(seats)});
  }
  void start(const Job& job, const Option& option, Seats seats) {
    run(job, {job.id, option.tier, option.gpus, snapshot_.now_s, -1}, std::move(seats));
  }

  template <class May>
  const Option* fastest_with_room(const Job& job, May&& may) {
    const Option* best = nullptr;
    for (const Option& option : job.options) {
      if (best != nullptr && option.steps_per_s <= best->steps_per_s) continue;
      if (rooms_[option.tier].fits(option.gpus) && may(option)) best = &option;
    }
    return best;
  }
  const Option* fastest_with_room(const Job& job) {
    return fastest_with_room(job, [](const Option&) { return true; });
  }

  /// Starts a job that ends before the reservation begins, or leaves it its room.
  void start_before(const Job& job, Reservation& kept) {
    if (fastest_with_room(job) == nullptr) return;  // so for most jobs: its work is not looked at
    const double steps = remaining_s(job, kEndQuantile) * fastest(job);
    const auto late = [&](const Option& option) {
      return option.tier == kept.tier && steps / option.steps_per_s > kept.from_s;
    };
    const Option* taken = fastest_with_room(job, [&](const Option& option) {
      return !late(option) || kept.left->has(Room(rooms_[option.tier]).take(option.gpus));
    });
    if (taken == nullptr) return;
    Seats seats = rooms_[taken->tier].take(taken->gpus);
    if (late(*taken)) kept.left->take(seats);
    start(job, *taken, std::move(seats));
  }

  /// On the tier where running jobs will first have made room for the job.
  [[nodiscard]] Reservation reserve(const Job& job) const {
    Reservation out;
    for (const Option& option : job.options) {
      struct End {
        double at;
        int gpus;
        const Seats* seats;
      };
      std::vector<End> ends;
      for (const Running& other : running_) {
        if (other.held.tier != option.tier) continue;
        const double steps = remaining_s(*other.job, kEndQuantile) * fastest(*other.job);
        const Option* on = option_of(*other.job, other.held);
        const double rate = on != nullptr ? on->steps_per_s : fastest(*other.job);
        ends.push_back({steps / rate, other.held.gpus, &other.seats});
      }
      std::ranges::stable_sort(ends, {},
                               [](const End& end) { return std::pair(end.at, end.gpus); });
      Room room = rooms_[option.tier];
      double when = 0;
      for (const End& end : ends) {
        if (room.fits(option.gpus)) break;
        room.give(*end.seats);
        when = end.at;
      }
      if (!room.fits(option.gpus) || when >= out.from_s) continue;
      (void)room.take(option.gpus);
      out = {when, option.tier, std::move(room)};
    }
    return out;
  }

  const Snapshot& snapshot_;
  std::optional<int> user_gpus_;
  std::vector<Room> rooms_;
  std::vector<const Job*> waiting_;
  std::vector<Running> running_;
  std::unordered_map<std::string_view, int> of_user_;  // GPUs
  Plan plan_;
};

}  // namespace

Policy make_slurm_backfill(const PolicySetup& setup) {
  return [user_gpus = setup.options.user_gpus, layout = setup.facts.layout](const Snapshot& s) {
    return Backfill(s, user_gpus, layout()).plan();
  };
}

}  // namespace glidepath::detail
