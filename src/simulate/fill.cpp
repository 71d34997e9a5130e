// SPDX-License-Identifier: Apache-2.0
#include "simulate/fill.hpp"

#include <algorithm>
#include <bit>

namespace glidepath::detail {

Fill::Fill(const Cluster& cluster) : cluster_(cluster) {
  for (const Tier& tier : cluster.workload.tiers) {
    rooms_.push_back({.gangs = GangsInNodes(tier.nodes, tier.gpus_per_node)});
  }
}

void Fill::begin() {
  for (std::size_t t = 0; t < rooms_.size(); ++t) {
    rooms_[t].gpus = cluster_.capacity[t];
    rooms_[t].idle = cluster_.free[t];
    rooms_[t].even = true;
    rooms_[t].gangs.clear(cluster_.capacity[t] / cluster_.workload.tiers[t].gpus_per_node);
  }
}

/// Parts that are powers of two and divide a node leave no gaps, the largest first.
bool Fill::even(int tier, int gpus) const {
  const int size = cluster_.workload.tiers[tier].gpus_per_node;
  const int rest = gpus % size;
  return rest == 0 || (std::has_single_bit(static_cast<unsigned>(rest)) && size % rest == 0);
}

bool Fill::fits(int tier, int gpus) {
  Room& room = rooms_[tier];
  if (gpus > room.gpus) return false;
  if (!cluster_.options.in_nodes || (room.even && even(tier, gpus))) return true;
  return room.gangs.have_room(gpus);
}

void Fill::take(int tier, int gpus) {
  rooms_[tier].gpus -= gpus;
  if (!cluster_.options.in_nodes) return;
  rooms_[tier].even &= even(tier, gpus);
  rooms_[tier].gangs.add(gpus);
}

bool Fill::keep(int job) {
  const Run& run = cluster_.runs[job];
  if (!fits(run.tier, run.gpus)) return false;
  take(run.tier, run.gpus);
  return true;
}

int Fill::place(int job) {
  const int gpus = cluster_.runs[job].gpus;
  int best = -1;
  bool best_idle = false;
  for (int t = 0; t < static_cast<int>(rooms_.size()); ++t) {
    if (gpus > rooms_[t].gpus || !cluster_.usable(job, t)) continue;
    const bool idle = rooms_[t].idle >= gpus;
    const bool better = best < 0 || idle > best_idle ||
                        (idle == best_idle && cluster_.rate(job, t) > cluster_.rate(job, best));
    if (!better || !fits(t, gpus)) continue;
    best = t;
    best_idle = idle;
  }
  if (best < 0) return best;
  take(best, gpus);
  rooms_[best].idle -= gpus;
  return best;
}

void Changes::clear() {
  suspended.clear();
  started.clear();
}

std::vector<int> carry_out(Cluster& cluster, Changes& changes) {
  for (const int job : changes.suspended) cluster.suspend(job);
  if (cluster.options.in_nodes) {  // what needs the most room looks for it first
    std::stable_sort(changes.started.begin(), changes.started.end(),
                     [&](const Start& a, const Start& b) {
                       return cluster.runs[a.first].gpus > cluster.runs[b.first].gpus;
                     });
  }
  std::vector<int> waits = changes.suspended;
  for (const auto& [job, tier] : changes.started) {
    if (!cluster.start_moving(job, tier)) waits.push_back(job);
  }
  std::erase_if(waits, [&](int job) { return cluster.runs[job].tier >= 0; });
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  return waits;
}

}  // namespace glidepath::detail
