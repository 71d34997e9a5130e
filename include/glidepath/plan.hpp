// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/hardware.hpp"
#include "glidepath/trace.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath {

// ---- the bare round: a multiple-choice knapsack, columns in, columns out

/// Options as columns: option i lets job[i] hold gpus[i] GPUs of tier[i] for value[i]. Options of a
/// job need not be neighbours, but are found faster when they are. An option larger than its tier
/// is never chosen. The columns after `capacity` are limits beyond it; empty = without.
struct RoundView {
  std::span<const std::int64_t> job, tier, gpus;
  std::span<const double> value;
  std::span<const std::int64_t> capacity;  ///< GPUs of each tier

  std::span<const double> watts{};  ///< of each option, counted in whole milliwatts
  double power_cap_w = std::numeric_limits<double>::infinity();
  std::span<const std::int64_t> user{};   ///< of each option: an index into user_quota
  std::span<const std::int64_t> group{};  ///< of each option: an index into group_quota
  std::span<const std::int64_t> user_quota{}, group_quota{};  ///< GPUs of all tiers together
  /// GPUs per node of each tier; 0 = anywhere. A gang up to a node fits in one node, a larger one
  /// takes whole nodes and its rest a part of another.
  std::span<const std::int64_t> node_gpus{};
};

struct RoundOptions {
  double gap = 1e-3;                 ///< search on while (bound - value) / bound is above this
  std::span<const double> prices{};  ///< of the round before, to start from
  int threads = 1;                   ///< of the bound's sweep over the jobs; changes no byte
};

/// value <= optimum <= bound, always.
struct RoundPlan {
  std::vector<std::int64_t> chosen;  ///< indices into the options, increasing; at most one per job
  double value = 0, bound = 0;
  double gap = 0;              ///< (bound - value) / bound, 0 when both are 0
  std::vector<double> prices;  ///< value of one more GPU of each tier
};

/// Most valuable choice of at most one option per job within the capacities: Lagrangian prices,
/// repair, and a bounded search that makes up to 8 jobs exact. Throws InputError naming the option
/// on a negative or NaN value, a value above 1e15, an unknown tier or a gang below 1.
[[nodiscard]] RoundPlan solve_round(const RoundView& round, const RoundOptions& options = {});

// ---- the plan of live jobs

/// One way to run a job.
struct Option {
  int tier = 0;
  int gpus = 1;
  double steps_per_s = 0;
  double utilisation = 1.0;  ///< of each GPU, for power

  friend bool operator==(const Option&, const Option&) = default;
};

/// A live job as a scheduler may see it: what was asked, what was observed, what is forecast.
struct Job {
  std::int64_t id = 0;
  std::string user{};
  double submit_s = 0;
  double weight = 1;
  double memory_gb = 0;  ///< per GPU
  std::vector<Option> options{};
  double steps_done = 0;
  double attained_s = 0;  ///< seconds it has run
  double attained_gpu_s = 0;
  double target_loss = 0;
  double budget_steps = 0;
  TraceView observed{};                   ///< the curve so far; empty for a job without one
  std::vector<double> remaining_steps{};  ///< equally likely values of the steps still needed;
                                          ///< inf = never, empty = nothing is known
  double restart_s = 0;                   ///< cost of a start after a preemption
};

/// GPUs that a job holds.
struct Allocation {
  std::int64_t job = 0;
  int tier = 0;
  int gpus = 0;
  double since_s = 0;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// All that a policy may know. There is no path from here to the truth of a simulation.
struct Snapshot {
  double now_s = 0;
  std::span<const Tier> tiers{};
  std::span<const Job> jobs{};
  std::span<const Allocation> running{};
};

/// Why a job waits, runs or ends, in one line.
struct Reason {
  std::int64_t job = 0;
  std::string text;
};

struct Plan {
  std::vector<Allocation> allocations;  ///< every job that shall run now, the kept ones included
  std::vector<std::int64_t> stop;       ///< jobs to end for good: target reached, or out of reach
  double value = 0, bound = 0, gap = 0;
  std::vector<double> prices;   ///< value of a GPU-second of each tier now
  std::vector<Reason> reasons;  ///< one for each job, in the order of the snapshot
};

/// What a second of a job is worth.
enum class Objective : std::uint8_t {
  jct,  ///< mean job completion time: weight x rate x Gittins index of the forecast
};
[[nodiscard]] std::string_view name(Objective objective) noexcept;
/// Throws InputError naming the text and the known objectives.
[[nodiscard]] Objective objective_named(std::string_view text);

struct PlanOptions {
  Objective objective = Objective::jct;
  double round_s = 360;              ///< until the next plan
  double gap = 1e-3;                 ///< as in RoundOptions
  double hysteresis = 0.05;          ///< a challenger's value must exceed the running by this share
  double stop_probability = 0.98;    ///< a job ends once P(reached) or P(never) is at least this
  bool reasons = true;               ///< write a line for each job
  std::span<const double> prices{};  ///< of the plan before
};

/// The plan of one round. Throws InputError naming the job on a job that fits no tier, a negative
/// rate or weight, a repeated id, or an allocation of an unknown job.
[[nodiscard]] Plan plan(const Snapshot& snapshot, const PlanOptions& options = {});

/// What is wrong with a plan, one sentence each: empty means that it can be carried out.
/// Shares no code with the solver.
[[nodiscard]] std::vector<std::string> violations(const Snapshot& snapshot, const Plan& plan);

/// sup over d of P(S <= d) / E[min(S, d)] over equally likely samples of remaining service S
/// (infinity allowed); the optimal index for mean JCT in the M/G/1 queue (Gittins 1989; Aalto,
/// Ayesta, Righter 2009). 0 when every sample is infinite, infinity when one is 0. Sorts a copy
/// unless the samples are sorted. Throws InputError on a negative or NaN sample, or none.
[[nodiscard]] double gittins_index(std::span<const double> samples);

}  // namespace glidepath
