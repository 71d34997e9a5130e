// SPDX-License-Identifier: Apache-2.0
#include "simulate/kept_plan.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/numbers.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMinJobs = 256;   // a plan of fewer costs little, and is often the best one
constexpr std::size_t kMaxShapes = 64;  // an event looks at each of them on each tier
constexpr double kLeastGain = 1e-9;     // of what is seated: more than rounding can make of nothing

/// Whether gangs that fit in number always fit in the nodes: their parts divide one another and the
/// node.
bool gangs_pack(const Cluster& cluster) {
  for (const Tier& tier : cluster.workload.tiers) {
    const int size = tier.gpus_per_node;
    std::vector<int> parts{size};
    for (const WorkloadJob& job : cluster.workload.jobs) {
      if (const int part = job.gpus % size; part > 0) parts.push_back(part);
    }
    std::sort(parts.begin(), parts.end());
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i] % parts[i - 1] != 0) return false;
    }
  }
  return true;
}

bool is_as_fast_anywhere(const Cluster& cluster, int job) {
  for (int t = 0; t < static_cast<int>(cluster.capacity.size()); ++t) {
    if (cluster.usable(job, t) && cluster.rate(job, t) != cluster.runs[job].fastest) return false;
  }
  return true;
}

}  // namespace

bool KeptPlan::serves(const Cluster& cluster) {
  const SimulationOptions& options = cluster.options;
  const bool fails = options.failures.node_every_s < Failures::kNone ||
                     options.failures.job_every_s < Failures::kNone;
  const int jobs = static_cast<int>(cluster.runs.size());
  if (cluster.capacity.size() < 2 || jobs < static_cast<int>(kMinJobs)) return false;
  if (cluster.restart > 0 || fails) return false;
  for (int job = 0; job < jobs; ++job) {
    if (!cluster.submitted(job).phases.empty() || !is_as_fast_anywhere(cluster, job)) return false;
  }
  return !options.in_nodes || gangs_pack(cluster);
}

KeptPlan::KeptPlan(const Cluster& cluster)
    : cluster_(cluster), seats_(cluster.capacity.size()), lowest_(cluster.capacity.size()) {
  for (int job = 0; job < static_cast<int>(cluster.runs.size()); ++job) {
    Shape shape{.gpus = cluster.submitted(job).gpus};
    for (int t = 0; t < static_cast<int>(cluster.capacity.size()); ++t) {
      shape.usable.push_back(cluster.usable(job, t));
    }
    const auto found = std::ranges::find(shapes_, shape);
    shape_of_.push_back(static_cast<int>(found - shapes_.begin()));
    if (found == shapes_.end() && shapes_.size() <= kMaxShapes) shapes_.push_back(std::move(shape));
  }
}

bool KeptPlan::follow(std::span<const int> live) {
  if (price_.empty() || live.size() < kMinJobs || shapes_.size() > kMaxShapes) return false;
  gather(live);
  do {
    while (fill_once()) {
    }
  } while (swap_once());
  return is_proved();
}

double KeptPlan::value(const Item& item, int tier) const {
  return item.held == tier ? kStayFactor * item.worth : item.worth;
}

/// Value per GPU of the first of those that wait.
double KeptPlan::density(const Shape& shape) const {
  return items_[shape.waiting.front()].worth / shape.gpus;
}

void KeptPlan::gather(std::span<const int> live) {
  items_.clear();
  for (Shape& shape : shapes_) shape.waiting.clear();
  for (std::vector<Seat>& seats : seats_) seats.clear();
  lowest_.assign(seats_.size(), kInfinity);
  free_ = cluster_.free;
  for (const Running& running : cluster_.running) {
    free_[cluster_.runs[running.job].tier] += running.gpus;  // until it is seated
  }
  const auto per_second = static_cast<double>(cluster_.per_second);
  for (const int job : live) {
    const Run& run = cluster_.runs[job];
    // As in plan(): no decision is finer than a second.
    const double left = (run.work - cluster_.done(job)) / (per_second * run.fastest);
    const double worth = cluster_.submitted(job).weight / std::max(1.0, left);
    items_.push_back({worth, job, shape_of_[job], run.tier, -1});
    if (run.tier >= 0) {
      seat(items_.size() - 1, run.tier);
    } else if (worth > 0) {
      wait(items_.size() - 1);
    }
  }
}

void KeptPlan::wait(std::size_t item) {
  std::vector<std::size_t>& waiting = shapes_[items_[item].shape].waiting;
  waiting.push_back(item);
  std::ranges::push_heap(waiting, {},
                         [&](std::size_t i) { return std::pair(items_[i].worth, -items_[i].job); });
}

std::size_t KeptPlan::take_first(Shape& shape) {
  std::ranges::pop_heap(shape.waiting, {},
                        [&](std::size_t i) { return std::pair(items_[i].worth, -items_[i].job); });
  const std::size_t first = shape.waiting.back();
  shape.waiting.pop_back();
  return first;
}

void KeptPlan::seat(std::size_t item, int tier) {
  const int gpus = shapes_[items_[item].shape].gpus;
  const double per_gpu = value(items_[item], tier) / gpus;
  items_[item].tier = tier;
  free_[tier] -= gpus;
  seats_[tier].push_back({per_gpu, item, gpus});
  lowest_[tier] = std::min(lowest_[tier], per_gpu);
}

void KeptPlan::unseat(std::size_t item) {
  const int tier = std::exchange(items_[item].tier, -1);
  std::vector<Seat>& seats = seats_[tier];
  const auto found = std::ranges::find(seats, item, &Seat::item);
  free_[tier] += found->gpus;
  *found = seats.back();
  seats.pop_back();
}

/// The tier on which a gang leaves the least room; -1 where none has room for it.
int KeptPlan::tightest(const Shape& shape) const {
  int tier = -1;
  for (int t = 0; t < static_cast<int>(free_.size()); ++t) {
    if (free_[t] < shape.gpus || !shape.usable[t]) continue;
    if (tier < 0 || free_[t] < free_[tier]) tier = t;
  }
  return tier;
}

/// Starts the one that is worth most per GPU of those that find room; false where none does.
bool KeptPlan::fill_once() {
  Shape* best = nullptr;
  int tier = -1;
  for (Shape& shape : shapes_) {
    if (shape.waiting.empty()) continue;
    if (best != nullptr &&
        std::pair(density(shape), shape.gpus) <= std::pair(density(*best), best->gpus)) {
      continue;
    }
    const int place = tightest(shape);
    if (place < 0) continue;
    best = &shape;
    tier = place;
  }
  if (best == nullptr) return false;
  seat(take_first(*best), tier);
  return true;
}

/// Notes the swap that puts the first of a shape on a tier, out of which those go that are worth
/// least per GPU, where it can be worth it: what is left of their GPUs is worth at most what the
/// densest that waits would make of it.
void KeptPlan::look_at(int s, int t) {
  const Shape& shape = shapes_[s];
  const double own = items_[shape.waiting.front()].worth;
  const int need = shape.gpus - free_[t];
  if (own <= lowest_[t] * need && highest_ <= lowest_[t]) return;
  std::vector<Seat>& seats = seats_[t];
  const std::size_t most = std::min<std::size_t>(seats.size(), need);  // each has a GPU at least
  std::ranges::partial_sort(seats, seats.begin() + static_cast<std::ptrdiff_t>(most), {},
                            [](const Seat& at) { return std::pair(at.density, at.item); });
  lowest_[t] = seats.empty() ? kInfinity : seats.front().density;
  int freed = 0;
  std::size_t n = 0;
  for (; n < most && freed < need; ++n) freed += seats[n].gpus;
  if (freed < need) return;
  double cost = 0;
  std::vector<std::size_t> out;
  while (n-- > 0) {
    if (freed - seats[n].gpus >= need) {  // the others are enough
      freed -= seats[n].gpus;
      continue;
    }
    cost += seats[n].density * seats[n].gpus;
    out.push_back(seats[n].item);
  }
  const double profit = own - cost + (freed - need) * highest_;
  if (profit > 0) swaps_.push_back({profit, s, t, std::move(out)});
}

/// Carries a swap out and fills what it leaves of the tier, if that is worth it.
bool KeptPlan::carry_out(const Swap& swap) {
  double gain = 0, seated = 0;
  for (const std::size_t item : swap.out) {
    gain -= value(items_[item], swap.tier);
    unseat(item);
  }
  std::vector<std::size_t> in;
  for (Shape* next = &shapes_[swap.shape]; next != nullptr;) {
    in.push_back(take_first(*next));
    seat(in.back(), swap.tier);
    seated += value(items_[in.back()], swap.tier);
    next = nullptr;
    for (Shape& shape : shapes_) {
      const bool fits = shape.gpus <= free_[swap.tier] && shape.usable[swap.tier];
      if (!fits || shape.waiting.empty()) continue;
      if (next == nullptr || density(shape) > density(*next)) next = &shape;
    }
  }
  if (gain + seated > kLeastGain * seated) {
    for (const std::size_t item : swap.out) wait(item);
    return true;
  }
  for (const std::size_t item : in) {
    unseat(item);
    wait(item);
  }
  for (const std::size_t item : swap.out) seat(item, swap.tier);
  return false;
}

/// Carries out the first swap that is worth it; false where none is.
bool KeptPlan::swap_once() {
  swaps_.clear();
  highest_ = 0;
  for (const Shape& shape : shapes_) {
    if (!shape.waiting.empty()) highest_ = std::max(highest_, density(shape));
  }
  for (int s = 0; s < static_cast<int>(shapes_.size()); ++s) {
    const Shape& shape = shapes_[s];
    for (int t = 0; t < static_cast<int>(free_.size()) && !shape.waiting.empty(); ++t) {
      if (shape.usable[t] && shape.gpus > free_[t]) look_at(s, t);
    }
  }
  std::ranges::stable_sort(swaps_, std::greater(), &Swap::profit);
  return std::ranges::any_of(swaps_, [&](const Swap& swap) { return carry_out(swap); });
}

/// Sum of what each job loses against its best option at the prices, and of what is free of each
/// tier at its price, against the gap that plan() may leave.
bool KeptPlan::is_proved() const {
  std::vector<double> cheapest;  // price on the tiers of each shape
  for (const Shape& shape : shapes_) {
    double least = kInfinity;
    for (std::size_t t = 0; t < price_.size(); ++t) {
      if (shape.usable[t]) least = std::min(least, price_[t]);
    }
    cheapest.push_back(least);
  }
  double gap = 0, total = 0;
  for (std::size_t t = 0; t < price_.size(); ++t) gap += price_[t] * free_[t];
  for (const Item& item : items_) {
    const int gpus = shapes_[item.shape].gpus;
    double top = std::max(0.0, item.worth - cheapest[item.shape] * gpus);
    if (item.held >= 0) top = std::max(top, value(item, item.held) - price_[item.held] * gpus);
    gap += top;
    if (item.tier < 0) continue;
    gap -= value(item, item.tier) - price_[item.tier] * gpus;
    total += value(item, item.tier);
  }
  return gap <= PlanOptions{}.gap * (total + gap);
}

}  // namespace glidepath::detail
