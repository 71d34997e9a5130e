// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/hardware.hpp"
#include "glidepath/plan.hpp"
#include "glidepath/rows.hpp"
#include "glidepath/trace.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace glidepath {

// ---- what is simulated

/// Another number of GPUs that a job may run on.
struct Gang {
  int gpus = 1;
  std::vector<double> steps_per_s{};  ///< per tier, 0 where it cannot run

  friend bool operator==(const Gang&, const Gang&) = default;
};

/// From this share of its work on, the job's rates are multiplied by `speed`.
struct Phase {
  double from = 0;  ///< of all work, 0 <= from < 1
  double speed = 1;

  friend bool operator==(const Phase&, const Phase&) = default;
};

/// A job with its truth. Its work is `duration_s` seconds at rate 1, or, where that is 0,
/// `budget_steps` steps; with a curve its progress is the recorded loss along those steps.
struct WorkloadJob {
  std::int64_t id = 0;
  std::string user{}, job_class{};
  double submit_s = 0;
  int gpus = 1;
  double memory_gb = 0;         ///< per GPU
  double duration_s = 0;        ///< on the reference GPU with `gpus`; 0 = see budget_steps
  int truth = -1;               ///< index into Workload::curves, -1 without one
  double target_loss = 0;       ///< what the user wants of the curve
  double budget_steps = 0;      ///< after which it ends at the latest
  double utilization = 1;       ///< of each GPU while it runs, for power
  double sm_activity = 1;       ///< alone, on average over time: for sharing
  double memory_activity = -1;  ///< the same of the card's memory; < 0 = not known
  double weight = 1;
  int priority = 0;  ///< a higher class goes first, where a policy knows classes
  double deadline_s = std::numeric_limits<double>::infinity();
  std::vector<double> steps_per_s{};  ///< per tier, 0 where it cannot run; empty = 1 on each
  /// Beside `gpus`, which is the gang of policies that choose none. Steps are useful ones: a larger
  /// batch is worth less than its examples, see best_batch().
  std::vector<Gang> gangs{};
  /// In order of `from`, of a job without a curve: a batch that grows during training. Its speed is
  /// 1 before the first.
  std::vector<Phase> phases{};
  double restart_s = -1;  ///< of its own; < 0 = SimulationOptions::restart_s
};

/// Measured speeds of two jobs on the same GPUs of a tier, each as a share of its own speed alone.
struct PairSpeeds {
  std::string first{}, second{};  ///< WorkloadJob::job_class
  int tier = 0;
  double first_speed = 0, second_speed = 0;

  friend bool operator==(const PairSpeeds&, const PairSpeeds&) = default;
};

struct Workload {
  std::string name{};
  std::vector<Tier> tiers{};
  std::vector<WorkloadJob> jobs{};
  std::vector<Trace> curves{};
  std::vector<PairSpeeds> pairs{};   ///< where a pair is not here, shared_speeds() predicts it
  std::vector<std::string> notes{};  ///< what its files hold beyond it, a sentence each
};

/// One tier of `gpus` GPUs and the jobs of a CSV with the columns `job,submit_s,gpus,duration_s`
/// and perhaps others of `jobs.csv`, plain or gzip. Jobs of 0 GPUs are left out, with a note.
/// Throws IoError naming file and line.
[[nodiscard]] Workload workload_from_trace(const std::filesystem::path& file, int gpus,
                                           std::optional<int> gpus_per_node = {});

/// `tiers.csv`, `jobs.csv`, perhaps `gangs.csv` and `phases.csv`, and the curves of `truth/` of a
/// folder. Throws IoError naming file and line.
[[nodiscard]] Workload read_workload(const std::filesystem::path& folder);

/// The users of `classes.csv` and `habits.csv` of a folder beside its tiers and curves, drawn anew:
/// the same jobs for the same (users, seed) anywhere. InputError on users out of 1 to 100000.
[[nodiscard]] Workload generate_workload(const std::filesystem::path& folder, int users,
                                         std::uint64_t seed = 0);

/// Writes the jobs as `jobs.csv` is read, and beside it `gangs.csv` and `phases.csv` where jobs
/// have them. Throws IoError, and InputError on a workload that validate() refuses.
void write_jobs(const Workload& workload, const std::filesystem::path& file);

/// Throws InputError naming the job: a gang below 1 or larger than every tier that it could use, a
/// gang that is there twice, phases out of order, a negative or non-finite time, one above 1e12
/// seconds on some tier, no work, a curve that is not there or broken, a repeated id.
void validate(const Workload& workload);

// ---- how

/// A stretch of time during which a job held GPUs of a tier.
struct JobSpan {
  std::int64_t job = 0;
  int tier = 0, gpus = 0;
  double start_s = 0, end_s = 0;
  std::int64_t partner = -1;  ///< job on the same GPUs; a stretch ends where that changes

  friend bool operator==(const JobSpan&, const JobSpan&) = default;
};

using Policy = std::function<Plan(const Snapshot&)>;

/// The members of SimulationOptions that a Policy reads, among those that not every policy reads;
/// for a policy with a name see PolicyInfo::reads. Another one that is given is refused.
inline constexpr std::array<std::string_view, 3> kPolicyReads{"session_s", "round_s", "sharing"};

/// Failures at exponential times, fixed by the seed whatever the policy does. A job that fails, or
/// whose node does, waits again with the work of its last checkpoint.
struct Failures {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double node_every_s = kNone;  ///< mean time that a node is up
  double repair_s = 3600;       ///< time that it is out then
  double job_every_s = kNone;   ///< mean running time between crashes of a job
  double checkpoint_s = 0;      ///< between checkpoints; a suspension always makes one
};

/// Nodes that nobody uses go to sleep.
struct NodeSleep {
  double after_s = std::numeric_limits<double>::infinity();
  double watts = 0;   ///< of a GPU asleep
  double wake_s = 0;  ///< GPUs held without progress by a start on a node asleep
};

/// Forecasts of curves that simulations have made, for other simulations of the same jobs: give one
/// memo to several runs and each forecast is made once. Changes no number; threads may share it.
class ForecastMemo;
[[nodiscard]] std::shared_ptr<ForecastMemo> make_forecast_memo();

struct SimulationOptions {
  std::uint64_t seed = 0;
  double restart_s = 0;               ///< GPUs held without progress at each start after the first
  std::optional<double> session_s{};  ///< length of a session; empty = that of the policy
  std::optional<double> round_s{};    ///< also decide every so often; empty = as the policy does
  std::optional<double> forecast_sigma{};  ///< policies see duration exp(N(0, sigma)) of a job
                                           ///< without a curve, not its duration
  bool knows_phases = true;  ///< false = to policies a job goes on at the speed of its present
                             ///< phase; then without forecast_sigma
  std::optional<bool> stop_at_target{};  ///< a job with a curve ends at its target; empty = as
                                         ///< the policy does; true is refused without curves
  Failures failures{};
  NodeSleep sleep{};
  bool in_nodes = false;  ///< a gang up to a node sits on one node, a larger one on whole nodes and
                          ///< a part of another; one that the policy starts and no nodes have room
                          ///< for waits on
  Sharing sharing = Sharing::exclusive;  ///< how two jobs share GPUs, where a plan says they do
  std::optional<int> user_gpus{};        ///< GPUs one user may hold, under slurm_backfill and plans
  std::vector<double> carbon_g_per_kwh{};  ///< of each hour from time 0 on, repeated; empty =
                                           ///< unknown; refused where no tier has watts
  /// Of policies that call plan(), refused as plan() would. Its sharing, in_nodes and round_s are
  /// those above and refused here, as is group_quota: the jobs of a workload have no groups.
  std::optional<PlanOptions> planner{};
  /// Under `fair_finish`: finish-time fairness at which a job goes before all others, see
  /// Simulation::worst_ftf; empty = 2.
  std::optional<double> max_ftf{};
  /// Under `fair_finish`: share of the GPUs for jobs that take longer than all live work would take
  /// on all GPUs, for an earlier end of it all; empty = 0.
  std::optional<double> long_share{};
  /// Where starts cost time: jobs wait for GPUs that soon come free rather than take those of
  /// others; only under policies that read it, and only when they choose nothing but an order.
  bool patience = true;
  double unfair_above = 1;               ///< finish-time fairness of a job that counts as unfair
  std::shared_ptr<ForecastMemo> memo{};  ///< shared between runs; empty = one of its own
  bool spans = true;                     ///< keep Simulation::spans and timeline
  std::function<void(const JobSpan&)> stream{};  ///< each stretch as it ends, kept or not
  std::function<void(std::int64_t ended, std::int64_t jobs)> progress{};
};

// ---- what came out

/// How a job ended.
enum class JobOutcome : std::uint8_t {
  unfinished,  ///< the policy never ran it to an end
  finished,    ///< its work, or its whole budget, is done
  target,      ///< stopped with the target reached
  never,       ///< stopped by the policy as out of reach
};
[[nodiscard]] std::string_view name(JobOutcome outcome) noexcept;

/// Columns over jobs in order of submission; times in seconds, NaN where a job never started or
/// ended.
struct JobColumns {
  std::vector<std::int64_t> job{};
  std::vector<std::string> user{};
  std::vector<double> submit_s{}, start_s{}, end_s{};
  std::vector<double> jct_s{};              ///< end - submit
  std::vector<double> wait_s{};             ///< without GPUs between submission and end
  std::vector<std::int64_t> preemptions{};  ///< by the policy, ends of sessions included
  std::vector<std::int64_t> failures{};     ///< of the job, or of a node under it
  std::vector<double> gpu_seconds{};        ///< held, restart cost included; half of shared GPUs
  std::vector<double> energy_j{};           ///< of the GPUs while held
  std::vector<double> ftf{};                ///< finish-time fairness, see Simulation::worst_ftf
  std::vector<double> ftf_static{};         ///< the same by static contention
  std::vector<JobOutcome> outcome{};
};

/// Sums over the jobs of a user.
struct UserAccount {
  std::string name{};
  std::int64_t jobs = 0;
  double mean_jct_s = 0, wait_s = 0;  ///< of the jobs that ended
  double gpu_seconds = 0, energy_kwh = 0;
};

/// Sums over a tier: idle and sleeping GPUs count in its energy.
struct TierAccount {
  std::string name{};
  std::int64_t starts = 0;
  double gpu_seconds = 0, utilization = 0, energy_kwh = 0;
};

/// The cluster from `time_s` to the next row's.
struct TimelineRow {
  double time_s = 0;
  std::int64_t running = 0, queued = 0;  ///< jobs
  double busy = 0;                       ///< GPUs held
};

struct Simulation {
  std::string policy{}, workload{};  ///< their names
  std::vector<std::string> tiers{};  ///< their names
  JobColumns jobs{};
  std::vector<JobSpan> spans{};              ///< in order of their end
  std::vector<TimelineRow> timeline{};       ///< one row for each change
  std::vector<UserAccount> user_accounts{};  ///< in order of first submission
  std::vector<TierAccount> tier_accounts{};
  double mean_jct_s = 0, median_jct_s = 0, p95_jct_s = 0;  ///< p95 by linear interpolation
  double mean_wait_s = 0, total_wait_s = 0;
  double mean_wait_per_user_s = 0;  ///< mean over users of the sum of their jobs' waits
  double makespan_s = 0;            ///< last end - first submission
  std::int64_t preemptions = 0;
  double gpu_seconds = 0;   ///< held
  double utilization = 0;   ///< gpu_seconds / (GPUs x makespan)
  double energy_kwh = 0;    ///< held GPUs at their utilization, the others idle, over the makespan
  double carbon_kg = 0;     ///< NaN without an intensity
  double worst_ftf = 0;     ///< largest over jobs of JCT / (time with a fair share of the cluster)
  double share_unfair = 0;  ///< share of jobs that have more than SimulationOptions::unfair_above
  /// The same two where a fair share is 1 / (jobs of the whole workload) of the GPUs throughout, as
  /// Shockwave reports them (Zheng et al., NSDI 2023).
  double worst_ftf_static = 0, share_unfair_static = 0;
  double share_in_time = 0;     ///< of the jobs with a deadline that ended by then; NaN without any
  std::int64_t failures = 0;    ///< of jobs, those of nodes included
  double lost_gpu_seconds = 0;  ///< work done again after them
  double lower_bound_jct_s = 0;  ///< no schedule has a smaller mean JCT; NaN where jobs have curves
  std::int64_t events = 0;  ///< ends, arrivals, failures, repairs, and times for which a policy or
                            ///< a round asked; it decides once for all of an instant
  std::string fallback{};   ///< why `learned` left decisions to jct, and how many; empty = none
};

/// What a policy knows of the future of jobs: nothing; how long jobs without a curve take, as far
/// as SimulationOptions::forecast_sigma lets it; or that and where curves will go.
enum class Forecasts : std::uint8_t { none, durations, all };
[[nodiscard]] std::string_view name(Forecasts forecasts) noexcept;

/// A policy that simulate() knows by name.
struct PolicyInfo {
  std::string_view name{}, description{};
  std::string_view source{};      ///< of the idea
  std::string_view checked_on{};  ///< traces on which tests compare it, and (with whose answers)
  Forecasts sees = Forecasts::none;
  bool stops_at_target = false;       ///< where SimulationOptions::stop_at_target is empty
  bool compared = false;              ///< one of those to compare where nobody names any
  std::optional<double> session_s{};  ///< where SimulationOptions::session_s is empty; of a policy
                                      ///< that stops at targets only where jobs have curves
  std::optional<double> round_s{};    ///< where SimulationOptions::round_s is empty; event-driven
                                      ///< without
  bool elastic = false;  ///< chooses among WorkloadJob::gangs; others keep WorkloadJob::gpus
  /// The members of SimulationOptions that it reads, among those that not every policy reads: a run
  /// with another one is refused.
  std::span<const std::string_view> reads{};
};
[[nodiscard]] std::span<const PolicyInfo> policies() noexcept;
[[nodiscard]] std::span<const std::string_view> policy_names() noexcept;

/// Runs the workload to its end under a policy by name, or under "best_value:" and the name of an
/// Objective. Throws InputError naming an unknown policy and the known ones, an option that it does
/// not read or that has nothing to act on in this workload, and as validate() does.
[[nodiscard]] Simulation simulate(const Workload& workload, std::string_view policy,
                                  const SimulationOptions& options = {});
/// The same under any policy, which decides at each arrival, end of a job, end of a session and
/// round, and sees no more than a Snapshot. A plan may give a running job another of its gangs: a
/// suspension and a start. Throws InputError with the violation on a plan that cannot be carried
/// out, and naming an option that is none of kPolicyReads.
[[nodiscard]] Simulation simulate(const Workload& workload, const Policy& policy,
                                  const SimulationOptions& options = {});

/// No schedule without sharing has a smaller mean JCT. The largest of three bounds: preemptive SRPT
/// on one pooled server of the cluster's speed, where a job's size is gpus x duration on its
/// fastest tier; the mean of those durations; and, where speeds differ by tier, a Lagrangian bound
/// of the linear program over (job, tier, interval of time). NaN where jobs have curves, and
/// without GPUs or jobs. Throws InputError as validate() does.
[[nodiscard]] double lower_bound_jct_s(const Workload& workload);

// ---- when the waiting jobs will start

/// What a policy takes a job to need from now on, where that is not what its forecast says: a time
/// limit, or a point forecast with an error.
struct BelievedSteps {
  std::int64_t job = 0;  ///< of the snapshot or of StartOptions::recent
  double steps = 0;      ///< once they are done and the job is not, it counts as long again
};

struct StartOptions {
  int samples = 200;
  std::uint64_t seed = 0;
  /// A job that has not started by then counts as infinity; so does one that still waits when 20
  /// jobs have come for each job of the snapshot and of `recent`.
  double horizon_s = 30 * 86400.0;
  std::vector<double> levels{kShownLevels.begin(), kShownLevels.end()};
  /// Jobs that were submitted of late, ended or not, each with the law of its steps. New jobs keep
  /// arriving as these did since the first of them; none arrive where there is none, or where all
  /// came just now. Borrowed.
  std::span<const Job> recent{};
  /// Where a policy looks at sizes. Borrowed.
  std::span<const BelievedSteps> believed{};
};

/// When each waiting job of a snapshot, in its order, will have GPUs.
struct StartTimes {
  std::vector<std::int64_t> job{};
  std::vector<double> levels{};
  Rows quantiles{};  ///< levels x jobs: seconds from now, infinity = not within the horizon
};

/// The law of each waiting job's start: each sample draws what the running and the waiting jobs
/// still need from Job::remaining_steps, and which jobs will come from the recent ones, and plays
/// the policy forward. The j-th job of sample s depends on (seed, samples, s, j) alone: the same
/// bytes for any thread count. Throws InputError naming the policy and those that can be played, a
/// job without remaining_steps or budget_steps, one that shares GPUs, one with two BelievedSteps,
/// or an option out of range.
[[nodiscard]] StartTimes start_times(const Snapshot& snapshot,
                                     std::string_view policy = "best_value",
                                     const StartOptions& options = {}, Execution execution = {});

/// A moment of a simulation as start_times() takes it.
struct Moment {
  double now_s = 0;
  std::vector<Job> jobs{};  ///< in order of submission
  std::vector<Allocation> running{};
  std::vector<Job> recent{};              ///< the last to arrive as they were then, by negative ids
  std::vector<BelievedSteps> believed{};  ///< the forecasts themselves, of both
};

/// What was known just after the first event at or after each of the increasing times, of jobs
/// without curves; fewer where the simulation ends before. Throws InputError as simulate() does,
/// and on a workload with curves.
[[nodiscard]] std::vector<Moment> moments_of(const Workload& workload, std::string_view policy,
                                             const SimulationOptions& options,
                                             std::span<const double> at_s, int recent);

// ---- an environment for learning

struct EnvironmentOptions {
  /// stop_at_target is on unless it is false. Refused are `seed`, which reset() takes, and the
  /// options that only some policies read: session_s, round_s, sharing, user_gpus, planner,
  /// max_ftf, long_share and patience.
  SimulationOptions simulation{};
  int slots = 32;   ///< waiting jobs that are seen and can be started, in order of submission
  int running = 8;  ///< running jobs that are seen and can be preempted, the longest first
  double energy_weight = 0;  ///< job-hours that a kWh costs in the reward
  double weights_for_s = 0;  ///< above 0 an action is a weight for each objective of the planner
                             ///< but `learned`, which decides by them for so long
};

/// The simulator as a game of one decision after the other: start a waiting job, preempt a running
/// one, or let time pass to the next event at which jobs wait; or else weigh the objectives of the
/// planner, which starts and preempts. The sum of all rewards is -(sum of JCT + energy_weight x
/// kWh) in job-hours.
class Environment {
 public:
  /// Throws InputError on an option out of range or refused.
  explicit Environment(const EnvironmentOptions& options = {});
  ~Environment();
  Environment(Environment&&) noexcept;
  Environment& operator=(Environment&&) noexcept;

  /// Begins a workload, which must live and stay as it is until the next reset() or the end of the
  /// environment, at its first decision. `seed` is that of forecast errors and failures. Until it
  /// is called, all that follows but the sizes throws InputError. It throws too where simulate()
  /// would refuse the workload or an option, and then the episode before goes on.
  void reset(const Workload& workload, std::uint64_t seed);
  /// Takes an action: 0 .. slots-1 start, then `running` preempt, the last one lets time pass. An
  /// action that cannot be taken lets time pass. Returns the reward.
  double step(int action);
  /// The same with weights_for_s: a weight of 0 or more for each Objective but `learned`, in their
  /// order; all 0 is jct alone. Time passes to the first event after that time.
  double step(std::span<const double> weights);
  [[nodiscard]] bool done() const;

  /// Number of actions; with weights_for_s, number of weights.
  [[nodiscard]] int actions() const;
  /// Which actions can be taken, one byte each: exactly actions() of them.
  void mask(std::span<std::uint8_t> out) const;

  /// Numbers in [0, 1]: of each slot, of each running job, of each tier, then of the cluster.
  /// Logarithmic times are log(1 + s) / 16.
  static constexpr std::array<std::string_view, 7> kSlotFeatureNames{
      "present", "remaining", "reached", "gpus", "age", "attained", "speed"};
  static constexpr std::array<std::string_view, 6> kRunningFeatureNames{
      "present", "remaining", "reached", "gpus", "since", "speed"};
  static constexpr int kSlotFeatures = static_cast<int>(kSlotFeatureNames.size()),
                       kRunningFeatures = static_cast<int>(kRunningFeatureNames.size()),
                       kTierFeatures = 2, kClusterFeatures = 3;
  [[nodiscard]] int observation_size(std::size_t tiers) const;
  /// Exactly observation_size() numbers for the tiers of the workload.
  void observe(std::span<float> out) const;

  /// The run so far; complete when done().
  [[nodiscard]] Simulation simulation();

 private:
  struct State;
  [[nodiscard]] State& state() const;
  EnvironmentOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace glidepath
#pragma GCC visibility pop
