// SPDX-License-Identifier: Apache-2.0
// The round inside the solver: maximise sum v x, at most one option per job, use of every row
// within its capacity. Rows are the tiers, then power, groups and users where they are limited.
// Values, uses and prices are integers, so that a sum has one value and the bound is a bound.
#pragma once

#include "glidepath/plan.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/kept.hpp"

namespace glidepath::detail {

struct Choice {
  std::int64_t value = 0;  ///< in quanta
  std::int32_t tier = 0;
  std::int32_t gpus = 0;
};

inline constexpr std::int32_t kNone = -1;  ///< a job without option, an option without row

/// Rows of an option beyond its tier.
struct Limits {
  std::int64_t draw = 0;  ///< of power, in whole units
  std::int32_t power = kNone, group = kNone, user = kNone;
};

struct Round {
  std::vector<std::int32_t> first;     ///< options of job j: first[j] <= o < first[j + 1]
  std::vector<Choice> option;          ///< those that fit an empty cluster
  std::vector<Limits> limits;          ///< of each option; empty when only tiers are limited
  std::vector<std::int64_t> original;  ///< index of each option in the RoundView
  std::vector<std::int64_t> capacity;  ///< of each row
  /// GPUs per node of each tier where gangs could fail to pack, else 0; its nodes; gangs on them.
  std::vector<std::int64_t> node, nodes;
  std::vector<std::vector<std::int64_t>> taken;
  std::vector<bool> closed;  ///< tiers where those are not found to fit: the bound alone has them
  std::int32_t tiers = 0;
  std::int32_t first_user = 0;  ///< rows from here on are users
  double quantum = 1;           ///< a power of two: value = max(1, floor(v / quantum))
  bool exact = true;            ///< every v is a whole number of quanta
  bool packs = true;            ///< no tier in `node`

  [[nodiscard]] std::size_t bytes() const {
    return bytes_of(first, option, limits, original, capacity);
  }
  [[nodiscard]] std::int32_t jobs() const { return static_cast<std::int32_t>(first.size()) - 1; }
  [[nodiscard]] const Choice& at(std::int32_t o) const { return option[o]; }
  [[nodiscard]] bool on_closed_tier(std::int32_t o) const { return closed[option[o].tier]; }
};

using Prices = std::vector<std::int64_t>;  ///< quanta per unit of each row
__extension__ using Wide = __int128;       ///< sums of price x use

/// body(row, amount) for every row that option o uses.
template <class Body>
void for_each_use(const Round& round, std::int32_t o, Body&& body) {
  const Choice& choice = round.at(o);
  body(choice.tier, std::int64_t{choice.gpus});
  if (round.limits.empty()) return;
  const Limits& limits = round.limits[o];
  if (limits.power != kNone) body(limits.power, limits.draw);
  if (limits.group != kNone) body(limits.group, std::int64_t{choice.gpus});
  if (limits.user != kNone) body(limits.user, std::int64_t{choice.gpus});
}

/// v - sum_r lambda_r a_r, 0 for kNone
[[nodiscard]] inline Wide reduced(const Round& round, std::int32_t o, const Prices& price) {
  if (o == kNone) return 0;
  Wide profit = round.at(o).value;
  for_each_use(round, o, [&](std::size_t r, std::int64_t a) { profit -= Wide{price[r]} * a; });
  return profit;
}

/// Whether the reduced value of each option is a 64-bit number, and the difference of two of them.
[[nodiscard]] inline bool is_narrow(const Round& round, const Prices& price) {
  if (!round.limits.empty()) return false;
  std::int64_t top_price = 0, top_gpus = 0;
  for (const std::int64_t p : price) top_price = std::max(top_price, p);
  for (const Choice& o : round.option) top_gpus = std::max<std::int64_t>(top_gpus, o.gpus);
  return Wide{top_price} * top_gpus < Wide{1} << 61;  // values are less
}
/// reduced() where it is.
[[nodiscard]] inline std::int64_t narrow_reduced(const Round& round, std::int32_t o,
                                                 const Prices& price) {
  if (o == kNone) return 0;
  const Choice& choice = round.at(o);
  return choice.value - price[choice.tier] * choice.gpus;
}

/// Checks the columns, groups them by job, counts values in quanta: fills a round as it was left.
void read_round(const RoundView& view, Round& round);

/// Prices near the minimum of D(lambda) = lambda' C + sum_j max(0, max_o v_o - lambda' a_o).
/// `start` holds a price for each tier, or nothing.
[[nodiscard]] Prices minimise_dual(const Round& round, std::span<const double> start,
                                   Execution execution);

/// What the prices say: the best option of each job and the bound.
struct Inner {
  std::vector<std::int32_t> best;   ///< option or kNone for each job
  std::vector<std::int64_t> usage;  ///< what these take of each row
  Wide bound = 0;                   ///< D(lambda), exact
};
[[nodiscard]] Inner inner_solution(const Round& round, const Prices& price);

/// A feasible choice near the inner solution.
[[nodiscard]] std::vector<std::int32_t> repair(const Round& round, const Prices& price,
                                               const Inner& inner);

/// Improves a feasible `choice` by a search over the jobs that lose least by another option. True
/// when no better choice exists.
bool search_core(const Round& round, const Prices& price, const Inner& inner, double gap,
                 std::vector<std::int32_t>& choice);

/// What is known of gangs in nodes: more parts than are packed in every way may fit all the same.
enum class Fit : std::uint8_t { yes, no, unknown };

/// Gangs that are to fit in nodes of one size, counted by the part of each that fills no node: a
/// question costs the same for any number of them.
class GangsInNodes {
 public:
  GangsInNodes(std::int64_t nodes, std::int64_t size);
  /// None are there, and so many nodes.
  void clear(std::int64_t nodes);
  void add(std::int64_t gpus);
  [[nodiscard]] Fit fit();
  /// Whether they fit with one more.
  [[nodiscard]] bool have_room(std::int64_t gpus);

 private:
  void count(std::int64_t gpus, std::int64_t times);
  bool best_fit();
  [[nodiscard]] std::int64_t spare() const;
  std::int64_t nodes_, count_ = 0;   ///< not filled by whole nodes of gangs; parts
  std::int64_t spare_ = 0;           ///< gangs of less GPUs fit for sure
  std::vector<std::int64_t> parts_;  ///< of each size
  std::vector<std::int64_t> rooms_;  ///< nodes by what is left of them
};

/// Whether gangs fit in `nodes` nodes of `size` GPUs.
[[nodiscard]] Fit gangs_fit(std::span<const std::int64_t> gangs, std::int64_t nodes,
                            std::int64_t size);

/// Whether the gangs of a choice fit in the nodes of each tier beside those that are there. A tier
/// that takes none of them is not asked: what is there is there.
[[nodiscard]] Fit fits_nodes(const Round& round, std::span<const std::int32_t> choice);

[[nodiscard]] std::int64_t value_of(const Round& round, std::span<const std::int32_t> choice);

}  // namespace glidepath::detail
