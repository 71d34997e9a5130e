// SPDX-License-Identifier: Apache-2.0
// The round inside the solver: maximise sum v x, at most one option per job, gpus per tier within
// capacity. Values and prices are integers, so that a sum has one value and the bound is a bound.
#pragma once

#include "glidepath/plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace glidepath::detail {

struct Choice {
  std::int64_t value = 0;  ///< in quanta
  std::int32_t tier = 0;
  std::int32_t gpus = 0;
};

struct Round {
  std::vector<std::int32_t> first;     ///< options of job j: first[j] <= o < first[j + 1]
  std::vector<Choice> option;          ///< those that fit an empty cluster
  std::vector<std::int64_t> original;  ///< their index in the RoundView
  std::vector<std::int64_t> capacity;  ///< no more than the options could use
  double quantum = 1;                  ///< a power of two: value = floor(v / quantum)
  bool exact = true;                   ///< every v is a whole number of quanta

  [[nodiscard]] std::int32_t jobs() const { return static_cast<std::int32_t>(first.size()) - 1; }
  [[nodiscard]] std::int32_t tiers() const { return static_cast<std::int32_t>(capacity.size()); }
};

inline constexpr std::int32_t kNone = -1;  ///< the job takes no option

using Prices = std::vector<std::int64_t>;  ///< quanta per GPU of each tier
__extension__ using Wide = __int128;       ///< sums of price x GPUs

/// v - lambda_t k
[[nodiscard]] inline Wide reduced(const Choice& o, const Prices& price) {
  return Wide{o.value} - Wide{price[static_cast<std::size_t>(o.tier)]} * o.gpus;
}

/// Checks the columns, groups them by job, counts values in quanta.
[[nodiscard]] Round read_round(const RoundView& view);

/// Prices near the minimum of D(lambda) = lambda' C + sum_j max(0, max_o v_o - lambda_t(o) k_o).
[[nodiscard]] Prices minimise_dual(const Round& round, std::span<const double> start, int threads);

/// What the prices say: the best option of each job and the bound.
struct Inner {
  std::vector<std::int32_t> best;   ///< option or kNone for each job
  std::vector<std::int64_t> usage;  ///< GPUs that these take of each tier
  Wide bound = 0;                   ///< D(lambda), exact
};
[[nodiscard]] Inner inner_solution(const Round& round, const Prices& price);

/// A feasible choice near the inner solution.
[[nodiscard]] std::vector<std::int32_t> repair(const Round& round, const Prices& price,
                                               const Inner& inner);

/// Improves `choice` by a search over the jobs that lose least by another option. True when no
/// better choice exists.
bool search_core(const Round& round, const Prices& price, const Inner& inner, double gap,
                 std::vector<std::int32_t>& choice);

[[nodiscard]] std::int64_t value_of(const Round& round, std::span<const std::int32_t> choice);

}  // namespace glidepath::detail
