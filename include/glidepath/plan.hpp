// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/hardware.hpp"
#include "glidepath/trace.hpp"

#include <cstdint>
#include <limits>
#include <optional>
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
  /// Gangs that stay where they are: they take of `capacity` and of the nodes.
  std::span<const std::int64_t> taken_tier{}, taken_gpus{};
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
  double utilization = 1.0;  ///< of each GPU, for power
  /// Other than exclusive: the rate is that beside a partner. `plan` takes these as a permission to
  /// pair the job on this tier and gang, and works out the rates of the pairs that it makes; a job
  /// without any may be paired wherever it may run.
  Sharing sharing = Sharing::exclusive;

  friend bool operator==(const Option&, const Option&) = default;
};

/// What, beside its scaling, says how a job may run.
struct Ways {
  Profile alone{};          ///< its memory keeps it off small cards
  double batch = 0;         ///< of all GPUs together, in units of StepTime::batch_per_gpu; 0 = the
                            ///< batch of each GPU stays what it was measured with
  int most_gpus = 1 << 20;  ///< of a gang
  double utilization = 1;   ///< of each GPU when alone
  Sharing sharing = Sharing::exclusive;  ///< how it may share GPUs with `partner`
  std::optional<Profile> partner{};
  const Pairs* pairs = nullptr;  ///< measured ones, borrowed
};

/// The options of a job from its scaling on each tier (one without measurements = it does not run
/// there): every tier that has the memory, gangs of 1, 2, 4, ... GPUs on as few nodes as they need,
/// up to twice the largest that was measured and while each is faster than the one before; then the
/// same shared with the partner, where the pair fits the card. Throws InputError naming the value.
[[nodiscard]] std::vector<Option> options_of(std::span<const Tier> tiers,
                                             std::span<const Scaling> scaling,
                                             const Ways& ways = {});

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

  double forecast_at_steps = -1;  ///< steps_done when remaining_steps was made; < 0 = now
  std::string group{};
  int priority = 0;         ///< a higher class is served strictly first
  bool preemptible = true;  ///< false: keeps its GPUs until it ends
  double waiting_s = -1;    ///< since it ran last; < 0 = since submission, less what it ran
  double deadline_s = std::numeric_limits<double>::infinity();
  /// Expected loss at steps from now on (`ahead_steps` increasing from 0), for total quality.
  std::vector<double> ahead_steps{}, ahead_loss{};
  double sm_activity = 1;  ///< alone, on average over time: for sharing
  std::string kind{};      ///< as measured pairs name it; empty = of no measured kind
};

/// GPUs that a job holds.
struct Allocation {
  std::int64_t job = 0;
  int tier = 0;
  int gpus = 0;
  double since_s = 0;
  std::int64_t partner = -1;  ///< job that shares the same GPUs; -1 = they are its own

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

/// What a second of a job is worth, r; mu = rate of the option, S = steps still needed, w = weight.
enum class Objective : std::uint8_t {
  jct,         ///< mean completion time on forecasts: w mu G, G = Gittins index of S
  known_size,  ///< mean completion time on expected sizes (Smith 1956): w mu / E[S]
  quality,     ///< total quality (SLAQ): w x expected loss reduction / (loss range so far)
  deadline,    ///< w x what running now adds to P(S done by the deadline)
  fairness,    ///< max-min of finish-time fairness (Themis) by multiplicative weights
  energy,      ///< w mu_best G x (least joules per step of the job's options / own)
  edp,   ///< energy-delay product: w mu G x (least joules per step / own), in order of mu^2 / power
  cost,  ///< w mu_best G x (least price per step / own)
};
[[nodiscard]] std::string_view name(Objective objective) noexcept;
/// Throws InputError naming the text and the known objectives.
[[nodiscard]] Objective objective_named(std::string_view text);

/// One of several objectives.
struct Goal {
  Objective objective = Objective::jct;
  double weight = 1;  ///< each objective is brought to mean 1 before; not used with `in_order`
};

/// GPUs, of all tiers together, that the jobs of a user or group may hold.
struct Quota {
  std::string name{};
  std::int64_t gpus = 0;
};

struct PlanOptions {
  std::vector<Goal> goals{{}};
  bool in_order = false;  ///< the goals count one after the other, not by weight: a later one only
                          ///< chooses among plans that are best by those before it,
  double slack = 0;       ///< or within this share of the best
  double round_s = 360;   ///< until the next plan
  double gap = 0.02;      ///< as in RoundOptions
  double stop_probability = 0.98;    ///< a job ends once P(reached) or P(never) is at least this
  double outrun_probability = 0.95;  ///< past this quantile of its forecast a job is served by LAS
  bool reasons = true;               ///< write a line for each job
  std::span<const double> prices{};  ///< of the plan before

  // Limits.
  double power_cap_w = std::numeric_limits<double>::infinity();  ///< of the GPUs in use
  std::vector<Quota> user_quota{}, group_quota{};                ///< the others are not limited
  bool in_nodes = false;                 ///< gangs must fit in nodes, see RoundView::node_gpus
  Sharing sharing = Sharing::exclusive;  ///< how waiting jobs may join running ones
  const Pairs* pairs = nullptr;          ///< measured ones, borrowed; the others are predicted
  double joule_value = 0;                ///< value of a joule saved, taken off every option

  // Dynamics.
  double hysteresis = 0.05;  ///< a challenger's value must exceed the running by this share
  double min_run_s = 0;      ///< a start is not preempted before
  double ageing_s = std::numeric_limits<double>::infinity();  ///< tau in w (1 + (waited / tau)^2)
  /// After this wait a job is placed before all others, and if it does not fit yet, the next GPUs
  /// are kept for it: only jobs that are out of the way in time may fill them.
  double max_wait_s = std::numeric_limits<double>::infinity();
};

/// The plan of one round. Throws InputError naming the job on a job that fits no tier, a negative
/// rate or weight, a repeated id, or an allocation of an unknown job.
[[nodiscard]] Plan plan(const Snapshot& snapshot, const PlanOptions& options = {});

/// What a run must keep to; infinity = no limit.
struct Need {
  double max_hours = std::numeric_limits<double>::infinity();
  double max_watts = std::numeric_limits<double>::infinity();  ///< of the gang
  double max_kwh = std::numeric_limits<double>::infinity();
  double max_cost = std::numeric_limits<double>::infinity();
  double confidence = 0.9;  ///< an option is good when it keeps to all limits with this probability
};
enum class Prefer : std::uint8_t { hours, kwh, cost, watts };

/// One option of a job judged against a need. Hours, kWh and cost are medians of the way to the
/// target, infinity where the target is more likely missed.
struct AcceleratorChoice {
  Option option{};
  double probability = 0;                           ///< of reaching the target within every limit
  double hours = 0, hours_low = 0, hours_high = 0;  ///< median, 0.1 and 0.9 quantile
  double watts = 0, kwh = 0, cost = 0;
  bool good = false;    ///< probability >= confidence
  bool pareto = false;  ///< no other option is better in one of (probability, hours, watts, kWh,
                        ///< cost) and as good in the others
  std::string reason{};
};

/// The job's options that fit in memory: the good ones first, by what is preferred, then the others
/// by falling probability. Nothing is kept, so asking again with a new profile or forecast decides
/// again. Throws InputError on a job that `plan` would refuse, one without a forecast, and a
/// limit that is negative or NaN.
[[nodiscard]] std::vector<AcceleratorChoice> choose_accelerator(const Job& job,
                                                                std::span<const Tier> tiers,
                                                                const Need& need = {},
                                                                Prefer prefer = Prefer::hours);

/// What is wrong with a plan, one sentence each: empty means that it can be carried out and keeps
/// to the limits of `options` (power, quotas, nodes, memory under `sharing`, guaranteed runs).
/// Shares no code with the solver.
[[nodiscard]] std::vector<std::string> violations(const Snapshot& snapshot, const Plan& plan,
                                                  const PlanOptions& options = {});

/// sup over d of P(S <= d) / E[min(S, d)] over equally likely samples of remaining service S
/// (infinity allowed); the optimal index for mean JCT in the M/G/1 queue (Gittins 1989; Aalto,
/// Ayesta, Righter 2009). 0 when every sample is infinite, infinity when one is 0. Sorts a copy
/// unless the samples are sorted. Throws InputError on a negative or NaN sample, or none.
[[nodiscard]] double gittins_index(std::span<const double> samples);

}  // namespace glidepath
