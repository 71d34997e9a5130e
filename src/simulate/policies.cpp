// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "plan/power.hpp"
#include "plan/round.hpp"
#include "plan/value.hpp"
#include "simulate/fair_finish.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {

namespace {

/// Whether gangs must fit in nodes.
enum class Packing : std::uint8_t { anywhere, in_nodes };

Packing packing_of(const SimulationOptions& options) {
  return options.in_nodes ? Packing::in_nodes : Packing::anywhere;
}

/// Room on the tiers while a plan is made. Gangs in nodes fit where some layout of all that were
/// taken has nodes for them, as in Fill.
class Filling {
 public:
  Filling(const Snapshot& snapshot, Packing packing) : snapshot_(snapshot) {
    for (const Tier& tier : snapshot.tiers) {
      room_.push_back(tier.gpus());
      if (packing == Packing::in_nodes) gangs_.emplace_back(tier.nodes, tier.gpus_per_node);
    }
    refused_.resize(gangs_.size());
    idle_ = room_;
    for (const Allocation& held : snapshot.running) {
      idle_[held.tier] -= held.gpus;
      holds_.emplace(held.job, &held);
    }
  }

  [[nodiscard]] const Allocation* holds(const Job& job) const {
    const auto it = holds_.find(job.id);
    return it == holds_.end() ? nullptr : it->second;
  }

  /// Leaves the job where it runs. False when there is no room any more.
  bool keep(const Job& job, Plan& plan) {
    const Allocation* held = holds(job);
    if (held == nullptr || !fits(held->tier, held->gpus)) return false;
    take(held->tier, held->gpus);
    plan.allocations.push_back(*held);
    return true;
  }

  void keep_or_start(const Job& job, Plan& plan) {
    if (!keep(job, plan)) start(job, plan);
  }
  /// Starts the job on its fastest tier with room, GPUs that nobody holds before others; null
  /// without room.
  const Option* start(const Job& job, Plan& plan) {
    const Option* best = nullptr;
    bool best_idle = false;
    for (const Option& option : job.options) {
      if (!fits(option.tier, option.gpus)) continue;
      const bool idle = idle_[option.tier] >= option.gpus;
      if (best == nullptr || idle > best_idle ||
          (idle == best_idle && option.steps_per_s > best->steps_per_s)) {
        best = &option;
        best_idle = idle;
      }
    }
    if (best == nullptr) return nullptr;
    take(best->tier, best->gpus);
    idle_[best->tier] -= best->gpus;
    plan.allocations.push_back({job.id, best->tier, best->gpus, snapshot_.now_s, -1});
    return best;
  }

 private:
  [[nodiscard]] bool fits(int tier, int gpus) {
    if (room_[tier] < gpus) return false;
    if (gangs_.empty()) return true;
    if (refused_[tier].contains(gpus)) return false;  // room only shrinks
    const bool has_room = gangs_[tier].have_room(gpus);
    if (!has_room) refused_[tier].insert(gpus);
    return has_room;
  }
  void take(int tier, int gpus) {
    room_[tier] -= gpus;
    if (!gangs_.empty()) gangs_[tier].add(gpus);
  }

  const Snapshot& snapshot_;
  std::vector<int> room_, idle_;
  std::vector<GangsInNodes> gangs_;     ///< taken, where they must fit in nodes
  std::vector<std::set<int>> refused_;  ///< sizes of gangs, by tier
  std::unordered_map<std::int64_t, const Allocation*> holds_;
};

double fastest(const Job& job) {
  double rate = 0;
  for (const Option& option : job.options) rate = std::max(rate, option.steps_per_s);
  return rate;
}

int gang(const Job& job) { return job.options.empty() ? 1 : job.options.front().gpus; }

/// Seconds that a job needs on its fastest tier: to its budget (a job with a curve) or as it is
/// forecast.
double expected_s(const Job& job) {
  const double steps =
      job.budget_steps > 0 ? job.budget_steps - job.steps_done
      : job.remaining_steps.empty()
          ? 0
          : std::accumulate(job.remaining_steps.begin(), job.remaining_steps.end(), 0.0) /
                static_cast<double>(job.remaining_steps.size());
  return std::max(0.0, steps) / fastest(job);
}

/// E[min(S, d)] / P(S <= d) x GPUs on the fastest tier: the inverse of the Gittins index.
double gittins_rank(const Job& job) {
  const double index = job.remaining_steps.empty() ? kInfinity : gittins_index(job.remaining_steps);
  return index > 0 ? gang(job) / (index * fastest(job)) : kInfinity;
}

/// Greedy fill, ties by submission.
Plan by_gittins_index(const Snapshot& snapshot, Packing packing) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
    order.emplace_back(gittins_rank(snapshot.jobs[i]), i);
  }
  std::sort(order.begin(), order.end());
  Plan plan;
  Filling filling(snapshot, packing);
  for (const auto& [value, i] : order) filling.keep_or_start(snapshot.jobs[i], plan);
  return plan;
}

double remaining_s(const Job& job, double share) {  // a quantile of the time on the fastest tier
  if (job.remaining_steps.empty()) return expected_s(job);
  std::vector<double> sorted = job.remaining_steps;
  std::sort(sorted.begin(), sorted.end());
  const double steps = sorted[quantile_index(sorted.size(), share)];
  return std::isfinite(steps) ? steps / fastest(job) : expected_s(job);
}

/// The option on which a job runs; null where it is none of its own.
const Option* option_of(const Job& job, const Allocation& held) {
  for (const Option& option : job.options) {
    if (option.tier == held.tier && option.gpus == held.gpus) return &option;
  }
  return nullptr;
}

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

double gpus_of(const Snapshot& snapshot) {
  double gpus = 0;
  for (const Tier& tier : snapshot.tiers) gpus += tier.gpus();
  return gpus;
}

/// What a job heads for by a quantile of its forecast, as if there had always been so many jobs.
Heading heading(const Snapshot& snapshot, const Job& job, double quantile, double gpus) {
  double even = 0;
  for (const Option& option : job.options) {
    even += option.steps_per_s * snapshot.tiers[option.tier].gpus() / gpus;
  }
  const double age_s = snapshot.now_s - job.submit_s;
  const double left_s = remaining_s(job, quantile);
  const auto live = static_cast<double>(snapshot.jobs.size());
  return {.total = age_s + left_s,
          .alone = (job.steps_done + left_s * fastest(job)) / even,
          .live_before = live * age_s,
          .live = live,
          .left = left_s,
          .share = gang(job) / gpus};
}

/// GPUs of the tiers that the jobs may use.
double usable_gpus(const Snapshot& snapshot) {
  std::set<int> tiers;
  for (const Job& job : snapshot.jobs) {
    for (const Option& option : job.options) {
      if (option.steps_per_s > 0) tiers.insert(option.tier);
    }
  }
  double gpus = 0;
  for (const int tier : tiers) gpus += snapshot.tiers[tier].gpus();
  return std::max(1.0, gpus);
}

/// Finish-time fairness that a job heads for by the jobs that are live now.
double heads_for(const Snapshot& snapshot, const Job& job, double gpus) {
  const Heading now = heading(snapshot, job, FairFinish::kMedian, gpus);
  return now.total / (now.alone * std::max(1.0, now.live * gang(job) / gpus));
}

/// Longest remaining time first, each where it is worth most: the knapsack of the planner with the
/// value (rate / best rate) x GPUs x ((remaining time)^2 + u), so that the longest chain is cut
/// first. A running job counts as longer by a lead of d = 4 sqrt(work x restart), for all work W is
/// done with W / d changes then: a smaller d costs more restarts, a larger one leaves more to do
/// for one job alone. u grows for those that are about to take longer than a fair share would have,
/// as far as the time that all work takes leaves room beside the longest chain and four leads:
/// short jobs that displace long ones lengthen the end, and restarts for their sake do so too.
/// Without room they still go before the jobs that are clearly shorter than the longest one, unless
/// a restart costs as much as it lasts.
Plan least_makespan(const Snapshot& snapshot, Packing packing) {
  constexpr double kLead = 4, kLeadsOfRoom = 4, kLateFrom = 1.2, kLateWeight = 4,
                   kLateMost = 0.8;  // of the longest job
  std::vector<std::int64_t> job, tier, gpus, capacity, node_gpus;
  std::vector<double> value;
  double longest = 0, work = 0;
  for (const Job& live : snapshot.jobs) {
    longest = std::max(longest, remaining_s(live, 0.5));
    work += remaining_s(live, 0.5) * gang(live);
  }
  const double usable = usable_gpus(snapshot);
  const double all_s = std::max(longest, work / usable);
  const auto lead_of = [&](const Job& live) { return kLead * std::sqrt(all_s * live.restart_s); };
  std::unordered_map<std::int64_t, const Allocation*> holds;
  for (const Allocation& held : snapshot.running) holds.emplace(held.job, &held);
  double dearest = 0;
  for (const Job& live : snapshot.jobs) {
    if (holds.contains(live.id)) dearest = std::max(dearest, lead_of(live));
  }
  const double left_s = all_s - longest - kLeadsOfRoom * dearest;
  const double room = left_s > 0 ? left_s / all_s : 0;
  const double most = kLateMost * std::max(0.0, 1 - dearest / std::max(longest, 1e-300));
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
    const Job& live = snapshot.jobs[i];
    const auto held = holds.find(live.id);
    const double lead = held == holds.end() ? 0 : lead_of(live);
    const double share = longest > 0 ? (remaining_s(live, 0.5) + lead) / longest : 1;
    double worth = share * share;
    const double late = std::max(0.0, heads_for(snapshot, live, usable) - kLateFrom);
    const double bonus = kLateWeight * late * late;
    worth = std::max(worth + room * bonus, std::min(bonus, most));
    for (const Option& option : live.options) {
      job.push_back(static_cast<std::int64_t>(i));
      tier.push_back(option.tier);
      gpus.push_back(option.gpus);
      const bool here = held != holds.end() && held->second->tier == option.tier;
      value.push_back(option.steps_per_s / fastest(live) * option.gpus * worth *
                      (here ? kStayFactor : 1.0));
    }
  }
  for (const Tier& each : snapshot.tiers) {
    capacity.push_back(each.gpus());
    if (packing == Packing::in_nodes) node_gpus.push_back(each.gpus_per_node);
  }
  const RoundPlan round = solve_round({.job = job,
                                       .tier = tier,
                                       .gpus = gpus,
                                       .value = value,
                                       .capacity = capacity,
                                       .node_gpus = node_gpus});
  Plan plan;
  for (const std::int64_t o : round.chosen) {
    const std::size_t k = o;
    const Job& live = snapshot.jobs[job[k]];
    const auto held = holds.find(live.id);
    if (held != holds.end() && held->second->tier == tier[k]) {
      plan.allocations.push_back(*held->second);
    } else {
      plan.allocations.push_back(
          {live.id, static_cast<int>(tier[k]), static_cast<int>(gpus[k]), snapshot.now_s, -1});
    }
  }
  return plan;
}

/// See FairFinish; the time that jobs have been live is that between its decisions. On several
/// tiers an order is not enough: there the planner places the late jobs as a class of their own
/// before the long ones and the others, each class for completion times.
class FairOrder {
 public:
  explicit FairOrder(const SimulationOptions& options)
      : rule_(options), packing_(packing_of(options)) {
    planner_.limits.in_nodes = options.in_nodes;
    planner_.reasons = false;
    if (options.round_s) planner_.round_s = *options.round_s;
  }

  Plan operator()(const Snapshot& snapshot) {
    live_sum_ += live_ * (snapshot.now_s - then_s_);
    then_s_ = snapshot.now_s;
    live_ = static_cast<double>(snapshot.jobs.size());
    double worst = rule_.max_ftf;
    for (const Job& job : snapshot.jobs) worst = std::max(worst, look(snapshot, job));
    const std::vector<int> longest = long_ones(snapshot);
    // Kind (0 late, 1 long, 2 the others), key, index.
    Order order;
    for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
      const Job& job = snapshot.jobs[i];
      const Seen& seen = seen_.at(job.id);
      const bool is_long = std::binary_search(longest.begin(), longest.end(), static_cast<int>(i));
      if (seen.fair_s >= 0) {
        order.emplace_back(0, job.submit_s + worst * seen.fair_s, i);
      } else if (is_long) {
        order.emplace_back(1, 0.0, i);
      } else {
        order.emplace_back(2, gittins_rank(job) / job.weight, i);
      }
    }
    std::sort(order.begin(), order.end());
    if (snapshot.tiers.size() > 1) return planned(snapshot, order);
    Plan plan;
    Filling filling(snapshot, packing_);
    for (const auto& [kind, key, i] : order) filling.keep_or_start(snapshot.jobs[i], plan);
    return plan;
  }

 private:
  using Order = std::vector<std::tuple<int, double, std::size_t>>;
  [[nodiscard]] Plan planned(const Snapshot& snapshot, const Order& order) const {
    std::vector<Job> jobs(snapshot.jobs.begin(), snapshot.jobs.end());
    for (const auto& [kind, key, i] : order) jobs[i].priority = -kind;
    Snapshot classed = snapshot;
    classed.jobs = jobs;
    return plan(classed, planner_);
  }
  struct Seen {
    double live_at = 0;  ///< `live_sum_` when it was new
    double fair_s = -1;  ///< time with a fair share, of a late one
  };
  /// What a late job heads for; 0 for another one.
  double look(const Snapshot& snapshot, const Job& job) {
    Seen& seen = seen_.try_emplace(job.id, Seen{live_sum_}).first->second;
    Heading now = heading(snapshot, job, FairFinish::kQuantile, gpus_of(snapshot));
    now.live_before = live_sum_ - seen.live_at;
    if (!(now.alone > 0)) return 0;  // nothing is left, or nothing known
    if (seen.fair_s < 0 && now.ftf() >= rule_.max_ftf) seen.fair_s = now.fair();
    return seen.fair_s < 0 ? 0 : now.ftf();
  }
  [[nodiscard]] std::vector<int> long_ones(const Snapshot& snapshot) const {
    std::vector<Length> lengths;
    for (const Job& job : snapshot.jobs) {
      lengths.push_back(
          {remaining_s(job, FairFinish::kMedian), gang(job), static_cast<int>(lengths.size())});
    }
    return long_jobs(std::move(lengths), gpus_of(snapshot), rule_.long_share);
  }

  FairFinish rule_;
  Packing packing_;
  PlanOptions planner_;
  double live_sum_ = 0, live_ = 0, then_s_ = 0;
  std::unordered_map<std::int64_t, Seen> seen_;
};

/// What the limits of a plan leave for guests.
class Leeway {
 public:
  Leeway(const Snapshot& snapshot, const PlanLimits& limits, const Plan& plan)
      : snapshot_(snapshot), power_w_(detail::most_watts(limits.power_cap_w)) {
    for (const Quota& quota : limits.user_quota) of_user_.emplace(quota.name, quota.gpus);
    for (const Quota& quota : limits.group_quota) of_group_.emplace(quota.name, quota.gpus);
    std::unordered_map<std::int64_t, const Job*> of_id;
    for (const Job& job : snapshot.jobs) of_id.emplace(job.id, &job);
    for (const Allocation& held : plan.allocations) {
      const Job& job = *of_id.at(held.job);
      power_w_ -= held.gpus * watts(snapshot.tiers[held.tier], busy(job, held));
      take_quota(job, held.gpus);
    }
  }

  /// Seats a guest where its quotas and the power cap allow it.
  [[nodiscard]] bool seat(const Job& host, const Job& guest, const Allocation& held) {
    const double own = busy(host, held), both = std::min(1.0, own + busy(guest, held));
    const Tier& tier = snapshot_.tiers[held.tier];
    const double more_w = held.gpus * (watts(tier, both) - watts(tier, own));
    const auto within = [&](const auto& left, const std::string& name) {
      const auto found = left.find(name);
      return found == left.end() || held.gpus <= found->second;
    };
    if (more_w > power_w_ || !within(of_user_, guest.user) || !within(of_group_, guest.group)) {
      return false;
    }
    power_w_ -= more_w;
    take_quota(guest, held.gpus);
    return true;
  }

 private:
  static double busy(const Job& job, const Allocation& held) {
    const Option* option = option_of(job, held);
    return option != nullptr ? option->utilization : 1;
  }
  void take_quota(const Job& job, int gpus) {
    if (const auto user = of_user_.find(job.user); user != of_user_.end()) user->second -= gpus;
    if (const auto group = of_group_.find(job.group); group != of_group_.end())
      group->second -= gpus;
  }
  const Snapshot& snapshot_;
  double power_w_;
  std::unordered_map<std::string, std::int64_t> of_user_, of_group_;  ///< GPUs left
};

/// Lets waiting jobs join those of a plan on GPUs of their own, by falling gain in the sum of rate
/// x Gittins index at the measured speeds; a pair that is there already is worth a little more.
void pair_up(const Snapshot& snapshot, const PairTable& speeds, const PlanLimits& limits,
             Plan& plan) {
  struct Join {
    double gain;
    std::size_t host;
    const Job* guest;
  };
  std::unordered_map<std::int64_t, const Job*> waiting;
  std::unordered_map<std::int64_t, std::int64_t> partner;
  for (const Job& job : snapshot.jobs) waiting.emplace(job.id, &job);
  for (const Allocation& held : snapshot.running) partner.emplace(held.job, held.partner);
  std::vector<const Job*> hosts;
  for (const Allocation& held : plan.allocations) {
    hosts.push_back(waiting.at(held.job));
    waiting.erase(held.job);
  }
  for (const std::int64_t id : plan.stop) waiting.erase(id);
  const auto value = [](const Job& job, int tier) {
    const auto option = std::find_if(job.options.begin(), job.options.end(),
                                     [&](const Option& o) { return o.tier == tier; });
    if (option == job.options.end() || job.remaining_steps.empty()) return 0.0;
    return job.weight * option->steps_per_s * gittins_index(job.remaining_steps);
  };
  std::vector<Join> joins;
  for (const Job& job : snapshot.jobs) {
    if (!waiting.contains(job.id)) continue;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const Allocation& held = plan.allocations[h];
      if (held.gpus != gang(job)) continue;
      const double own = value(job, held.tier);
      if (!(own > 0)) continue;
      const SharedSpeeds speed = speeds(held.job, job.id, held.tier);
      if (!(speed.first > 0 && speed.second > 0)) continue;
      const auto had = partner.find(job.id);
      const double kept = had != partner.end() && had->second == held.job ? kStayFactor : 1.0;
      const double gain =
          kept * speed.second * own - (1 - speed.first) * value(*hosts[h], held.tier);
      if (gain > 0) joins.push_back({gain, h, &job});
    }
  }
  std::stable_sort(joins.begin(), joins.end(),
                   [](const Join& a, const Join& b) { return a.gain > b.gain; });
  Leeway leeway(snapshot, limits, plan);
  for (const Join& join : joins) {
    Allocation& host = plan.allocations[join.host];
    if (host.partner >= 0 || !waiting.contains(join.guest->id)) continue;
    if (!leeway.seat(*hosts[join.host], *join.guest, host)) continue;
    waiting.erase(join.guest->id);
    host.partner = join.guest->id;
    plan.allocations.push_back({join.guest->id, host.tier, host.gpus, snapshot.now_s, host.job});
  }
}

/// The running jobs without guests, which are planned anew, as those that wait: a guest may join
/// the same host. Of a pair the one is the owner that keeps its GPUs for sure, or else the smaller
/// id; where both keep them they stay a pair.
std::vector<Allocation> owners_of(const Snapshot& snapshot, double min_run_s) {
  std::unordered_map<std::int64_t, bool> stays;
  std::unordered_map<std::int64_t, bool> preemptible;
  for (const Job& job : snapshot.jobs) preemptible.emplace(job.id, job.preemptible);
  for (const Allocation& held : snapshot.running) {
    const bool is_new = snapshot.now_s - held.since_s < min_run_s;
    stays.emplace(held.job, is_new || !preemptible.at(held.job));
  }
  std::vector<Allocation> owners;
  for (const Allocation& held : snapshot.running) {
    owners.push_back(held);
    if (held.partner < 0) continue;
    const bool own = stays.at(held.job), other = stays.at(held.partner);
    if (own && other) continue;
    if (own != other ? other : held.job > held.partner) {
      owners.pop_back();
    } else {
      owners.back().partner = -1;
    }
  }
  return owners;
}

Policy planner(const SimulationOptions& how, std::vector<WeightedObjective> objectives,
               const PairTable& pairs) {
  PlanOptions options = how.planner.value_or(PlanOptions{});
  options.objectives = std::move(objectives);
  options.limits.sharing =
      pairs ? Sharing::exclusive : how.sharing;  // measured pairs, or predicted ones
  options.limits.in_nodes = how.in_nodes;
  options.reasons = false;
  if (how.round_s) options.round_s = *how.round_s;
  const bool shares = how.sharing != Sharing::exclusive;
  return [options, shares, pairs, user_gpus = how.user_gpus](const Snapshot& snapshot) {
    PlanOptions now = options;
    if (user_gpus) {
      std::set<std::string> users;
      for (const Job& job : snapshot.jobs) users.insert(job.user);
      std::vector<Quota>& quotas = now.limits.user_quota;  // of two limits the smaller holds
      for (Quota& quota : quotas) {
        quota.gpus = std::min<std::int64_t>(quota.gpus, *user_gpus);
        users.erase(quota.name);
      }
      for (const std::string& user : users) quotas.push_back({user, *user_gpus});
    }
    if (!shares) return plan(snapshot, now);
    const std::vector<Allocation> owners = owners_of(snapshot, now.limits.min_run_s);
    Snapshot alone = snapshot;
    alone.running = owners;
    Plan out = plan(alone, now);
    if (pairs) pair_up(snapshot, pairs, now.limits, out);
    return out;
  };
}

/// DARE: every job is profiled for a session at once, then forecast; it ends when the forecast says
/// that the target is out of reach, and runs by Gittins index of its remaining time, for sessions,
/// until the target is reached.
class DarePolicy {
 public:
  explicit DarePolicy(const PolicySetup& setup)
      : session_s_(setup.options.session_s.value_or(*setup.info.session_s)),
        in_session_(setup.facts.in_session),
        packing_(packing_of(setup.options)) {}

  Plan operator()(const Snapshot& snapshot) const {
    Plan plan;
    Filling filling(snapshot, packing_);
    std::vector<Turn> order;
    for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
      const Job& job = snapshot.jobs[i];
      if (out_of_reach(job)) {
        plan.stop.push_back(job.id);
      } else {
        order.push_back(turn_of(job, i, filling.holds(job)));
      }
    }
    std::sort(order.begin(), order.end());
    for (const auto& [stage, key, i] : order) filling.keep_or_start(snapshot.jobs[i], plan);
    return plan;
  }

 private:
  /// Those inside a session go first, then those to be profiled, then those with a forecast.
  enum class Stage : std::uint8_t { in_session, unprofiled, forecast };
  using Turn = std::tuple<Stage, double, std::size_t>;  // key within the stage, index of the job

  [[nodiscard]] Turn turn_of(const Job& job, std::size_t index, const Allocation* held) const {
    if (held != nullptr && in_session_(job.id, session_s_)) {
      return {Stage::in_session, 0, index};
    }
    if (job.remaining_steps.empty()) return {Stage::unprofiled, job.attained_s, index};
    return {Stage::forecast, gittins_rank(job), index};
  }

  [[nodiscard]] static bool out_of_reach(const Job& job) {
    if (job.budget_steps <= 0 || job.remaining_steps.empty()) return false;
    const auto never =
        std::count(job.remaining_steps.begin(), job.remaining_steps.end(), kInfinity);
    return static_cast<double>(never) >=
           PlanOptions{}.stop_probability * static_cast<double>(job.remaining_steps.size());
  }

  double session_s_;
  InSession in_session_;
  Packing packing_;
};

}  // namespace

Policy steered_planner(const SimulationOptions& options,
                       const std::vector<WeightedObjective>& goals) {
  return [&options, &goals](const Snapshot& s) { return planner(options, goals, {})(s); };
}

Policy make_slurm_backfill(const PolicySetup& setup) {
  return [user_gpus = setup.options.user_gpus, layout = setup.facts.layout](const Snapshot& s) {
    return Backfill(s, user_gpus, layout()).plan();
  };
}

Policy make_gittins(const PolicySetup& setup) {
  return [packing = packing_of(setup.options)](const Snapshot& s) {
    return by_gittins_index(s, packing);
  };
}

Policy make_dare(const PolicySetup& setup) { return DarePolicy(setup); }

Policy make_fair_finish(const PolicySetup& setup) { return FairOrder(setup.options); }

Policy make_makespan(const PolicySetup& setup) {
  return [packing = packing_of(setup.options)](const Snapshot& s) {
    return least_makespan(s, packing);
  };
}
Policy make_themis(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::fairness, 1.0}}, setup.pairs);
}
Policy make_optimus(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::known_size, 1.0}}, setup.pairs);
}
Policy make_slaq(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::quality, 1.0}, {Objective::jct, 1e-3}}, setup.pairs);
}
Policy make_best_value(const PolicySetup& setup) {
  const PlanOptions plans = setup.options.planner.value_or(PlanOptions{});
  return planner(setup.options, objectives_of(plans), setup.pairs);
}

Policy make_learned(const PolicySetup& setup) {
  return planner(setup.options, {{Objective::learned, 1.0}}, setup.pairs);
}

}  // namespace glidepath::detail
