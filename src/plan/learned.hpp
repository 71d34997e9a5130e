// SPDX-License-Identifier: Apache-2.0
// The objective `learned`: the value of jct times exp(z), where z is a small function of the job,
// the option and the crowd. What a forecast leaves open is taken from the job's budget. With
// weights of zero it is jct to the last digit where nothing is open.
#pragma once

#include "glidepath/plan.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "plan/value.hpp"

namespace glidepath::detail {

inline constexpr std::size_t kTerms = 17;         ///< of z
inline constexpr std::size_t kPatienceTerms = 3;  ///< see LearnedValues::patience
inline constexpr std::size_t kShares = 2;         ///< see LearnedValues::shares
inline constexpr std::size_t kRanges = 5;         ///< see Crowd::inputs
inline constexpr std::size_t kLearnedValues = 3 * kTerms + kPatienceTerms + kShares + 2 * kRanges;

/// PlanOptions::learned, or what is built in, by what its values are for.
struct LearnedValues {
  /// Throws InputError on another number of values than kLearnedValues, and on one that is not
  /// finite.
  explicit LearnedValues(std::span<const double> given);

  std::span<const double, kTerms> round;  ///< for plans: the knapsack of the planner
  std::span<const double, kTerms> queue;  ///< where there is only an order of the jobs to choose
  /// In such an order with patience: log factors of what a preemption costs and of the fair shares
  /// after which a job is late.
  std::span<const double, kPatienceTerms> patience;
  std::span<const double, kTerms> budget;  ///< for plans in which a job has a budget
  /// Log shares of what is left of a budget: what a job without a forecast still needs at most, and
  /// what is taken for a sample that never arrives.
  std::span<const double, kShares> shares;
  std::span<const double, kRanges> low, high;  ///< what Crowd::inputs were in training
};

/// A job under an option, as z sees it.
struct Prospect {
  double gpus = 1;
  double share = 0;   ///< of the GPUs of its tier
  double rank_s = 1;  ///< seconds on its fastest tier: 1 / (mu G)
  double spread = 0;  ///< of the steps still needed, see spread_of
  double attained_s = 0, waited_s = 0;
  double advantage = 0;  ///< log(mu / mu_best) less its mean over the jobs of the tier
  bool keeps = false;    ///< it has these GPUs
  bool moves = false;    ///< it has others
};

/// All live jobs, as z sees them.
class Crowd {
 public:
  explicit Crowd(std::size_t tiers = 1) : speed_(tiers), members_(tiers) {}
  void add(double gpus, double log_rank, double spread, double restart_s);
  void add_speed(int tier, double log_speed);
  void close(double gpus);  ///< all have been added; so many GPUs are in service
  /// What inputs() reads of a crowd on one tier of so many GPUs.
  struct Sums {
    double gpus = 0, largest = 0, spread = 0, restart_s = 0;
  };
  [[nodiscard]] static Crowd on_one_tier(const Sums& sums, double gpus);

  [[nodiscard]] bool empty() const { return jobs_ == 0; }
  [[nodiscard]] double log_rank() const { return log_rank_; }  ///< mean over jobs
  [[nodiscard]] double load() const { return load_; }          ///< log of GPUs wanted over GPUs
  [[nodiscard]] double log_speed(int tier) const { return speed_[tier]; }  ///< mean over its jobs
  /// What must be as in training: GPUs wanted over GPUs, largest gang, mean spread, largest
  /// restart in seconds, least speed of a job as a share of its best.
  [[nodiscard]] std::array<double, kRanges> inputs() const;

 private:
  double jobs_ = 0, asked_ = 0, largest_ = 0, log_rank_ = 0, spread_ = 0, restart_s_ = 0;
  double load_ = 0, slowest_ = 0;
  std::vector<double> speed_, members_;
};

/// z. Between -8 and 8.
[[nodiscard]] double correction(std::span<const double, kTerms> weights, const Prospect& job,
                                const Crowd& crowd);

/// The steps that are thought to be needed, sorted, where `left` are left of the budget, above 0: a
/// quarter, a half, three or all of its share for a job without samples, one share for those at
/// infinity.
[[nodiscard]] std::vector<double> within_budget(std::vector<double> samples, double left,
                                                const LearnedValues& values);

/// log(high / low) over that of the quartiles of a normal law; 0 where `low` is not above 0.
[[nodiscard]] double spread_between(double low, double high);

/// log(q75 / q25) of increasing samples over that of a normal law; 0 for fewer than four.
[[nodiscard]] double spread_of(std::span<const double> sorted);

/// Why the values do not hold here, "" where they do.
[[nodiscard]] std::string out_of_range(const LearnedValues& values, const Crowd& crowd);

}  // namespace glidepath::detail
