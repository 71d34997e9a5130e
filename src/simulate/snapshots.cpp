// SPDX-License-Identifier: Apache-2.0
#include "simulate/snapshots.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/numbers.hpp"
#include "common/statistics.hpp"

namespace glidepath::detail {

namespace {

/// Steps that a job needs: to its budget (a job with a curve) or as it is forecast.
double expected_steps(const Job& job) {
  const double steps =
      job.budget_steps > 0 ? job.budget_steps - job.steps_done
      : job.remaining_steps.empty()
          ? 0
          : std::accumulate(job.remaining_steps.begin(), job.remaining_steps.end(), 0.0) /
                static_cast<double>(job.remaining_steps.size());
  return std::max(0.0, steps);
}

}  // namespace

int gang(const Job& job) { return job.options.empty() ? 1 : job.options.front().gpus; }

double fastest(const Job& job) {
  double rate = 0;
  for (const Option& option : job.options) rate = std::max(rate, option.steps_per_s);
  return rate;
}

double remaining_steps(const Job& job, double share) {
  if (job.remaining_steps.empty()) return expected_steps(job);
  const std::size_t at = quantile_index(job.remaining_steps.size(), share);
  double steps = job.remaining_steps[at];
  if (!std::ranges::is_sorted(job.remaining_steps)) {  // as those of the simulator are
    std::vector<double> copy = job.remaining_steps;
    std::ranges::nth_element(copy, copy.begin() + static_cast<std::ptrdiff_t>(at));
    steps = copy[at];
  }
  return std::isfinite(steps) ? steps : expected_steps(job);
}

double remaining_s(const Job& job, double share) {
  return remaining_steps(job, share) / fastest(job);
}

double gittins_rank(const Job& job) {
  const double index = job.remaining_steps.empty() ? kInfinity : gittins_index(job.remaining_steps);
  return index > 0 ? gang(job) / (index * fastest(job)) : kInfinity;
}

const Option* option_of(const Job& job, const Allocation& held) {
  for (const Option& option : job.options) {
    if (option.tier == held.tier && option.gpus == held.gpus) return &option;
  }
  return nullptr;
}

Packing packing_of(const SimulationOptions& options) {
  return options.in_nodes ? Packing::in_nodes : Packing::anywhere;
}

Filling::Filling(const Snapshot& snapshot, Packing packing) : snapshot_(snapshot) {
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

const Allocation* Filling::holds(const Job& job) const {
  const auto it = holds_.find(job.id);
  return it == holds_.end() ? nullptr : it->second;
}

void Filling::keep_or_start(const Job& job, Plan& plan) {
  if (!keep(job, plan)) start(job, plan);
}

bool Filling::keep(const Job& job, Plan& plan) {
  const Allocation* held = holds(job);
  if (held == nullptr || !fits(held->tier, held->gpus)) return false;
  take(held->tier, held->gpus);
  plan.allocations.push_back(*held);
  return true;
}

void Filling::start(const Job& job, Plan& plan) {
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
  if (best == nullptr) return;
  take(best->tier, best->gpus);
  idle_[best->tier] -= best->gpus;
  plan.allocations.push_back({job.id, best->tier, best->gpus, snapshot_.now_s, -1});
}

bool Filling::fits(int tier, int gpus) {
  if (room_[tier] < gpus) return false;
  if (gangs_.empty()) return true;
  if (refused_[tier].contains(gpus)) return false;  // room only shrinks
  const bool has_room = gangs_[tier].have_room(gpus);
  if (!has_room) refused_[tier].insert(gpus);
  return has_room;
}

void Filling::take(int tier, int gpus) {
  room_[tier] -= gpus;
  if (!gangs_.empty()) gangs_[tier].add(gpus);
}

}  // namespace glidepath::detail
