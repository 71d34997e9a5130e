// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"
#include "glidepath/forecast.hpp"
#include "glidepath/hardware.hpp"
#include "glidepath/trace.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace glidepath {

// ---- the bare round: a multiple-choice knapsack, columns in, columns out

/// Options as columns: option i lets job[i] hold gpus[i] GPUs of tier[i] for value[i]. Options of a
/// job need not be neighbours, but are found faster when they are. An option larger than its tier
/// is never chosen. The columns after `capacity` are limits beyond it; empty = without.
struct RoundView {
  std::span<const std::int64_t> job{}, tier{}, gpus{};
  std::span<const double> value{};
  std::span<const std::int64_t> capacity{};  ///< GPUs of each tier

  /// The draw of each option. The sum may exceed the cap by rounding only: by 1e-10 of the cap and,
  /// for each job, 1e-8 of the largest draw.
  std::span<const double> watts{};
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
  /// Search on while (bound - value) / bound is above this. A larger one is faster, a smaller one
  /// finds a little more value; 0 searches until its limits.
  double gap = 1e-3;
  /// Prices of the round before, one per tier: when little has changed they save half of the time.
  /// Borrowed: must outlive the call.
  std::span<const double> prices{};
};

/// value <= optimum <= bound, always.
struct RoundPlan {
  /// Indices into the options, increasing; at most one per job.
  std::vector<std::int64_t> chosen{};
  double value = 0, bound = 0;
  double gap = 0;                ///< (bound - value) / bound, 0 when both are 0
  std::vector<double> prices{};  ///< value of one more GPU of each tier
};

/// Most valuable choice of at most one option per job within the capacities: Lagrangian prices,
/// repair, and a bounded search that makes up to 8 jobs exact. Throws InputError naming the option
/// on a negative or NaN value, a value above 1e15, an unknown tier or a gang below 1 or above
/// 2^31 - 1. Threads pay from some 10 000 jobs and change no byte; the instruction set is not used.
[[nodiscard]] RoundPlan solve_round(const RoundView& round, const RoundOptions& options = {},
                                    Execution execution = Execution{1});

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

/// Where and how a job may be placed, beside its scaling.
struct PlacementOptions {
  /// The job when it runs alone: its memory keeps it off small cards, its activity and kind say how
  /// it shares.
  Profile alone{};
  /// Batch of all GPUs together, in units of StepTime::batch_per_gpu. Set it where the global batch
  /// is fixed; 0 = the batch of each GPU stays what it was measured with.
  double batch = 0;
  /// Where the batch may be chosen for each gang: rates are then goodput, see best_batch(). Not
  /// with `batch`.
  std::optional<BatchLimits> batches{};
  /// GPUs of a gang at most: lower it where larger batches or slower links hurt the job.
  int max_gpus = 1 << 20;
  /// Utilization of each GPU when alone, in [0, 1]: for power and energy.
  double utilization = 1;
  /// How the job may share GPUs with `partner`; neither without the other.
  Sharing sharing = Sharing::exclusive;
  /// With one, each gang comes a second time at the speed beside it, where the pair fits the card.
  std::optional<Profile> partner{};
  /// Measured pairs; others are predicted from the activities. Borrowed: must outlive the call.
  const Pairs* pairs = nullptr;
};

/// The options of a job from its scaling on each tier (one without measurements = it does not run
/// there): every tier that has the memory, gangs of 1, 2, 4, ... GPUs on as few nodes as they need,
/// up to twice the largest that was measured, those that are faster than every smaller one; then
/// the same shared with the partner, where the pair fits the card. Throws InputError naming the
/// value.
[[nodiscard]] std::vector<Option> options_of(std::span<const Tier> tiers,
                                             std::span<const Scaling> scaling,
                                             const PlacementOptions& options = {});

/// A live job as a scheduler may see it: what its user wants, what was observed, what is forecast.
struct Job {
  std::int64_t id = 0;
  std::string user{};
  double submit_s = 0;  ///< when it was submitted, on the clock of Snapshot::now_s
  double weight = 1;
  double memory_gb = 0;  ///< per GPU
  std::vector<Option> options{};
  double steps_done = 0;
  double attained_s = 0;      ///< seconds for which it has held GPUs
  double attained_gpu_s = 0;  ///< the same times the GPUs that it held
  double target_loss = 0;     ///< the loss at which it would be done
  double budget_steps = 0;    ///< the step at which it ends at the latest; 0 = no budget
  TraceView observed{};       ///< the curve so far; empty for a job without one
  std::vector<double> remaining_steps{};  ///< equally likely values of the steps still needed;
                                          ///< inf = never, empty = nothing is known
  double restart_s = 0;                   ///< cost of a start after a preemption

  double forecast_at_steps = -1;  ///< steps_done when remaining_steps was made; < 0 = now
  std::string group{};
  int priority = 0;         ///< a higher class is served strictly first
  bool preemptible = true;  ///< false: keeps its GPUs until it ends
  double waiting_s = -1;    ///< since it ran last; < 0 = since submission, less what it ran
  /// When it should be done, on the clock of Snapshot::now_s.
  double deadline_s = std::numeric_limits<double>::infinity();
  /// Expected loss at steps from now on (`ahead_steps` increasing from 0), for total quality.
  std::vector<double> ahead_steps{}, ahead_loss{};
  double sm_activity = 1;       ///< alone, on average over time: for sharing
  std::string kind{};           ///< as measured pairs name it; empty = of no measured kind
  double memory_activity = -1;  ///< as in Profile; < 0 = not known
};

/// GPUs that a job holds.
struct Allocation {
  std::int64_t job = 0;  ///< its id
  int tier = 0;          ///< index into the snapshot's tiers
  int gpus = 0;          ///< the whole gang
  double since_s = 0;    ///< when it got them, on the clock of Snapshot::now_s; where that clock is
                         ///< behind and it is later, plan() takes it for now
  std::int64_t partner = -1;  ///< job that shares the same GPUs; -1 = they are its own

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// All that a policy may know, borrowed. No path leads from here to the truth of a simulation.
struct Snapshot {
  double now_s = 0;
  std::span<const Tier> tiers{};
  std::span<const Job> jobs{};
  std::span<const Allocation> running{};
};

/// Why a job waits, runs or ends, in one line.
struct Reason {
  std::int64_t job = 0;
  std::string text{};

  friend bool operator==(const Reason&, const Reason&) = default;
};

struct Plan {
  std::vector<Allocation> allocations{};  ///< every job that shall run now, the kept ones included
  std::vector<std::int64_t> stop{};       ///< jobs to end for good: target reached, or out of reach
  double value = 0, bound = 0, gap = 0;
  std::vector<double> prices{};   ///< value of a GPU-second of each tier now
  std::vector<Reason> reasons{};  ///< one for each job, in the order of the snapshot
  std::string fallback{};         ///< why `learned` was taken for jct; empty = it was not
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
  learned,  ///< w mu G exp(z), z a small function that was learned; jct where it does not hold
};
[[nodiscard]] std::string_view name(Objective objective) noexcept;
/// Throws InputError naming the text and the known objectives.
[[nodiscard]] Objective objective_named(std::string_view text);

/// One of the objectives of a plan. Where they are added, not all may have weight 0.
struct WeightedObjective {
  Objective objective = Objective::jct;
  double weight = 1;  ///< of its values, brought to mean 1; not used with Combine::in_order

  friend bool operator==(const WeightedObjective&, const WeightedObjective&) = default;
};

/// How several objectives make one plan.
enum class Combine : std::uint8_t {
  weighted,  ///< their weighted values are added
  in_order,  ///< a later one only chooses among plans that are best by those before it
};

/// GPUs, of all tiers together, that the jobs of a user or group may hold.
struct Quota {
  std::string name{};
  std::int64_t gpus = 0;

  friend bool operator==(const Quota&, const Quota&) = default;
};

/// What a plan must keep to, whatever it would be worth otherwise; `violations` checks the same.
struct PlanLimits {
  /// Power of all GPUs in use together. Set it to what the room or the contract allows. Refused
  /// where no tier has watts.
  double power_cap_w = std::numeric_limits<double>::infinity();
  /// Users and groups without an entry are not limited.
  std::vector<Quota> user_quota{}, group_quota{};
  /// Gangs must fit in nodes, see RoundView::node_gpus. Set it where jobs cannot span nodes freely.
  bool in_nodes = false;
  /// How waiting jobs may join running ones on the same GPUs.
  Sharing sharing = Sharing::exclusive;
  /// Seconds for which a job that was started is not preempted: raise it where starts are dear.
  double min_run_s = 0;
};

/// How plans follow each other: when a running job gives way, and how long a job may wait.
struct PlanDynamics {
  /// A challenger's value must exceed that of the running job by this share. 0 follows every
  /// change of a forecast; a larger one preempts less.
  double hysteresis = 0.05;
  /// tau in w (1 + (waited / tau)^2): set it where long jobs starve.
  double ageing_s = std::numeric_limits<double>::infinity();
  /// After this wait a job is placed before all others, and if it does not fit yet, the next GPUs
  /// are kept for it: only jobs that end before it starts may use them. This bounds the wait of
  /// each job and costs mean completion time.
  double max_wait_s = std::numeric_limits<double>::infinity();
};

struct PlanOptions {
  /// What a second of a job is worth; with `combine` = in_order the first counts most. Empty = jct.
  std::vector<WeightedObjective> objectives{};
  Combine combine = Combine::weighted;
  /// Share of its best value that each objective in order may give up for those after it.
  double slack = 0;
  /// Seconds until the next plan: the horizon of `quality`, `deadline` and `fairness`, and the time
  /// that a job without a forecast is taken to need at least.
  double round_s = 360;
  /// As in RoundOptions; plans of live jobs rest on forecasts and need less.
  double gap = 0.02;
  /// A job ends once P(reached) or P(never) is at least this. Above 1 no job is ended.
  double stop_probability = 0.98;
  /// Past this quantile of its forecast a job is served by least attained service: its forecast was
  /// wrong. Lower it where forecasts are poor.
  double outrun_probability = 0.95;
  /// Value of a joule saved, taken off every option: for a trade of time against energy. Refused
  /// where no tier has watts.
  double joule_value = 0;
  /// Measured pairs for `limits.sharing`; others are predicted. Borrowed: must outlive the call.
  const Pairs* pairs = nullptr;
  /// Write a line for each job. A simulation of many plans saves its time.
  bool reasons = true;
  /// Values of the objective `learned`, as learned_values() has them; empty = those.
  std::vector<double> learned{};
  /// Prices of the plan before, to start from. Borrowed: must outlive the call.
  std::span<const double> prices{};
  PlanLimits limits{};
  PlanDynamics dynamics{};
};

/// The plan of one round. A job that is broken (a negative or NaN number, an option of an unknown
/// tier, none that fits, GPUs that it may not lose and that match none of its options) gets no GPU
/// and the reason "cannot be planned: ..."; the plan of the others is that without it. Throws
/// InputError naming the job on a repeated id, or an allocation of an unknown job or tier; naming
/// an option that is out of range or has nothing to act on: `power_cap_w` and `joule_value` where
/// no tier has watts, `slack` without objectives in order, `pairs` without sharing, `learned`
/// without that objective. Where no tier has watts, or a price, all are alike to `energy` and
/// `edp`, or to `cost`.
[[nodiscard]] Plan plan(const Snapshot& snapshot, const PlanOptions& options = {});

/// The built-in values of the objective `learned`: weights, and the ranges in which they hold.
[[nodiscard]] std::span<const double> learned_values() noexcept;
/// Values for PlanOptions::learned from a file of write_learned_values(). Throws IoError naming the
/// file, and line or checksum, on anything else.
[[nodiscard]] std::vector<double> read_learned_values(const std::filesystem::path& path);
/// Throws InputError on values that cannot be used, IoError on a file that cannot be written.
void write_learned_values(std::span<const double> values, const std::filesystem::path& path);

/// What one run must keep to; infinity = no limit.
struct RunLimits {
  double max_hours = std::numeric_limits<double>::infinity();
  double max_watts = std::numeric_limits<double>::infinity();  ///< of the gang
  /// At peak, of the gang's GPUs in one node, whatever their utilization is on average.
  double max_node_watts = std::numeric_limits<double>::infinity();
  double max_kwh = std::numeric_limits<double>::infinity();
  double max_cost = std::numeric_limits<double>::infinity();
  double confidence = 0.9;  ///< an option is good when it keeps to all limits with this probability
  /// Loss to reach: the steps still needed are then forecast from the curve that the job has
  /// observed, up to its budget or, where it has none, ten times the steps seen. What it has done
  /// since the curve's last step (Job::steps_done) is taken off.
  std::optional<double> target{};
  std::optional<ReachedBy> reached_by{};  ///< by what `target` is reached, as of reach()
};
/// What is to be least among the options that keep to every limit.
enum class Preference : std::uint8_t { hours, kwh, cost, watts };
[[nodiscard]] std::string_view name(Preference preference) noexcept;
/// Throws InputError naming the text and the known preferences.
[[nodiscard]] Preference preference_named(std::string_view text);

/// One option of a job judged against limits. Hours, kWh and cost are medians of the way to the
/// target, infinity where the target is more likely never reached.
struct AcceleratorChoice {
  Option option{};
  double probability = 0;                           ///< of reaching the target within every limit
  double hours = 0, hours_low = 0, hours_high = 0;  ///< median, 0.1 and 0.9 quantile
  double watts = 0, kwh = 0, cost = 0;
  double node_watts = 0;  ///< at peak, of the gang's GPUs in one node, in as few nodes as they need
  bool good = false;      ///< probability >= confidence
  bool pareto = false;    ///< no other option is better in one of (probability, hours, watts, kWh,
                          ///< cost) and as good in the others
  std::string reason{};
};

/// The job's options that fit in memory: the good ones first, by what is preferred, then the others
/// by falling probability. No state is kept: a call with a new profile or forecast decides anew.
/// Throws InputError on a job that cannot be planned, one without a forecast or that has
/// outrun it, or, with a target, without a curve, a limit that is negative or NaN, and `reached_by`
/// without a target.
[[nodiscard]] std::vector<AcceleratorChoice> choose_accelerator(
    const Job& job, std::span<const Tier> tiers, const RunLimits& limits = {},
    Preference prefer = Preference::hours);

/// What is wrong with a plan, one sentence each: empty means that it can be carried out and keeps
/// to the limits (power, quotas, nodes, memory under sharing, guaranteed runs). Shares no code with
/// the solver. Throws InputError on limits that plan() refuses.
[[nodiscard]] std::vector<std::string> violations(const Snapshot& snapshot, const Plan& plan,
                                                  const PlanLimits& limits = {});

/// sup over d of P(S <= d) / E[min(S, d)] over equally likely samples of remaining service S
/// (infinity allowed); the optimal index for mean JCT in the M/G/1 queue (Gittins 1989; Aalto,
/// Ayesta, Righter 2009). 0 when every sample is infinite, infinity when one is 0. Sorts a copy
/// unless the samples are sorted. Throws InputError on a negative or NaN sample, or none.
[[nodiscard]] double gittins_index(std::span<const double> samples);

}  // namespace glidepath
#pragma GCC visibility pop
