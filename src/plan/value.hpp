// SPDX-License-Identifier: Apache-2.0
// What a second of a job under an option is worth, for each objective.
#pragma once

#include "glidepath/plan.hpp"

#include <vector>

namespace glidepath::detail {

/// Quantile of what a job still needs that backfill counts on, in plans and in the simulator.
inline constexpr double kEndQuantile = 0.9;

/// What the forecast of a job says now: its samples less the progress made since, given that the
/// job has not ended.
struct RemainingWork {
  std::vector<double> steps{};  ///< still needed, equally likely, sorted; inf = never; may be empty
  double reached = 0;           ///< share of the forecast with nothing left to do
  double never = 0;             ///< share that no number of steps reaches
  bool outrun = false;          ///< the job is past nearly all of its forecast, which is void
  double index = 0;             ///< Gittins index of the steps still needed, 1/steps

  /// P(S <= x); without a forecast exponential with the steps done so far as its mean.
  [[nodiscard]] double prob_within(double x) const;
  /// Smallest x with P(S <= x) >= p; infinity without a forecast.
  [[nodiscard]] double quantile(double p) const;

  double unknown_mean = 0;  ///< steps that a job without forecast is thought to need
};
[[nodiscard]] RemainingWork remaining_work(const Job& job, const PlanOptions& options);
/// The same in memory that is there.
void remaining_work(const Job& job, const PlanOptions& options, RemainingWork& work);

/// The objectives that were given, else jct alone.
[[nodiscard]] const std::vector<WeightedObjective>& objectives_of(const PlanOptions& options);

/// Whether all options of a job that are as fast, after the same restart, are worth the same.
[[nodiscard]] bool counts_speed_alone(Objective objective);

/// Values per second of the options of a job.
class Valuation {
 public:
  Valuation(const Snapshot& snapshot, const PlanOptions& options);

  /// Prepares for one job and those of its options that it may use.
  void set_job(const Job& job, const RemainingWork& work, const std::vector<const Option*>& usable);
  /// `restart_s`: what the job pays before it makes progress.
  [[nodiscard]] double value(Objective objective, const Option& option, double restart_s) const;
  [[nodiscard]] double power(const Option& option) const;  ///< W of the gang

 private:
  [[nodiscard]] const Tier& tier(const Option& option) const {
    return snapshot_.tiers[option.tier];
  }
  [[nodiscard]] double jct(const Option& option, double restart_s) const;
  [[nodiscard]] double known_size(const Option& option, double restart_s) const;
  [[nodiscard]] double quality(const Option& option, double restart_s) const;
  [[nodiscard]] double deadline(const Option& option, double restart_s) const;
  [[nodiscard]] double fairness(const Option& option, double restart_s) const;
  [[nodiscard]] double joules(const Option& option) const;  ///< per step
  [[nodiscard]] double money(const Option& option) const;   ///< per step

  const Snapshot& snapshot_;
  const PlanOptions& options_;
  bool counts_joules_ = false, counts_money_ = false;
  const Job* job_ = nullptr;
  const RemainingWork* work_ = nullptr;
  double fastest_ = 0;                         ///< steps per second of the best option
  double least_joules_ = 0, least_money_ = 0;  ///< per step, over the options
};

/// Seconds since the job ran last, or since it was submitted less what it ran.
[[nodiscard]] double waited_s(const Job& job, double now_s);

}  // namespace glidepath::detail
