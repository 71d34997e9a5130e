// SPDX-License-Identifier: Apache-2.0
// Small clusters for the tests of the planner.
#pragma once

#include "glidepath/plan.hpp"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "common/rng.hpp"
#include "refusal.hpp"

namespace glidepath {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Numbers of one random instance, one draw after the other.
struct Draws {
  detail::Rng rng;
  std::uint64_t id, next = 0;
  double uniform() { return rng.uniform(id, next++); }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
  }
};

/// Two tiers, and jobs that may run on either.
struct Cluster {
  std::vector<Tier> tiers{{.name = "slow", .nodes = 2, .gpus_per_node = 2, .memory_gb = 11},
                          {.name = "fast", .nodes = 1, .gpus_per_node = 2, .memory_gb = 24}};
  std::vector<Job> jobs{};
  std::vector<Allocation> running{};
  double now_s = 1000;

  Job& add(std::int64_t id, std::vector<double> remaining, int gpus = 1) {
    jobs.push_back({.id = id,
                    .memory_gb = 8,
                    .options = {{.tier = 0, .gpus = gpus, .steps_per_s = 1.0},
                                {.tier = 1, .gpus = gpus, .steps_per_s = 2.0}},
                    .remaining_steps = std::move(remaining)});
    return jobs.back();
  }
  [[nodiscard]] Snapshot snapshot() const { return {now_s, tiers, jobs, running}; }
};

inline const Allocation* allocation_of(const Plan& plan, std::int64_t job) {
  for (const Allocation& a : plan.allocations) {
    if (a.job == job) return &a;
  }
  return nullptr;
}

/// One tier of `gpus` GPUs on which every job runs one step per second.
inline Cluster one_tier(int gpus) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = gpus, .memory_gb = 24, .busy_watts = 100}};
  return cluster;
}
inline Job& add_to(Cluster& cluster, std::int64_t id, std::vector<double> remaining, int gpus = 1) {
  Job& job = cluster.add(id, std::move(remaining), gpus);
  job.options.pop_back();
  return job;
}

inline std::vector<std::int64_t> placed(const Plan& plan) {
  std::vector<std::int64_t> ids;
  for (const Allocation& a : plan.allocations) ids.push_back(a.job);
  return ids;
}

}  // namespace glidepath
