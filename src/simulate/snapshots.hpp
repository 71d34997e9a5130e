// SPDX-License-Identifier: Apache-2.0
// What policies read of a Snapshot: what its jobs still need, and which gangs fit while a plan is
// made.
#pragma once

#include "glidepath/plan.hpp"
#include "glidepath/simulate.hpp"

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "plan/round.hpp"

namespace glidepath::detail {

/// GPUs of the gang of a job, 1 of one without options.
[[nodiscard]] int gang(const Job& job);
/// Steps per second of a job on its fastest tier.
[[nodiscard]] double fastest(const Job& job);
/// A quantile of the steps that a job needs; where it is not known, those to its budget (a job with
/// a curve) or those of the mean.
[[nodiscard]] double remaining_steps(const Job& job, double share);
/// The same in seconds on its fastest tier.
[[nodiscard]] double remaining_s(const Job& job, double share);
/// E[min(S, d)] / P(S <= d) x GPUs on the fastest tier: the inverse of the Gittins index.
[[nodiscard]] double gittins_rank(const Job& job);
/// The option on which a job runs; null where it is none of its own.
[[nodiscard]] const Option* option_of(const Job& job, const Allocation& held);

/// Whether gangs must fit in nodes.
enum class Packing : std::uint8_t { anywhere, in_nodes };
[[nodiscard]] Packing packing_of(const SimulationOptions& options);

/// Room on the tiers while a plan is made. Gangs in nodes fit where some layout of all that were
/// taken has nodes for them, as in Fill.
class Filling {
 public:
  Filling(const Snapshot& snapshot, Packing packing);

  [[nodiscard]] const Allocation* holds(const Job& job) const;

  /// Leaves the job where it runs or starts it: on its fastest tier with room, GPUs that nobody
  /// holds before others.
  void keep_or_start(const Job& job, Plan& plan);

 private:
  /// Leaves the job where it runs. False when there is no room any more.
  bool keep(const Job& job, Plan& plan);
  void start(const Job& job, Plan& plan);
  [[nodiscard]] bool fits(int tier, int gpus);
  void take(int tier, int gpus);

  const Snapshot& snapshot_;
  std::vector<int> room_, idle_;
  std::vector<GangsInNodes> gangs_;     ///< taken, where they must fit in nodes
  std::vector<std::set<int>> refused_;  ///< sizes of gangs, by tier
  std::unordered_map<std::int64_t, const Allocation*> holds_;
};

}  // namespace glidepath::detail
