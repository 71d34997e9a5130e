// SPDX-License-Identifier: Apache-2.0
// What a policy is, in one row: a new policy is a row of policy_table.cpp and the function it
// names.
#pragma once

#include "glidepath/simulate.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// GPU-seconds attained at which `las` moves a job to its second and third queue.
inline constexpr std::array<double, 2> kLasLimitsGpuS{3250, 7200};

/// What staying where it runs is worth to a job, as a factor: fewer moves.
inline constexpr double kStayFactor = 1 + PlanDynamics{}.hysteresis;

/// Measured speeds of two live jobs on the same GPUs of a tier: what a profile of the pair says.
using PairTable = std::function<SharedSpeeds(std::int64_t first, std::int64_t second, int tier)>;

/// Whether a running job is inside a session of so many seconds. They are counted from when it
/// began to make progress: after a restart, and once its nodes were awake.
using InSession = std::function<bool(std::int64_t job, double session_s)>;

/// What a policy may ask of its simulation beside what a Snapshot says. Without a simulation each
/// decision begins a round and no job is inside a session.
struct Facts {
  std::function<bool()> begins_round = [] { return true; };
  InSession in_session = [](std::int64_t, double) { return false; };
};

/// What a policy is made of. `pairs` is empty where jobs may not share.
struct PolicySetup {
  const PolicyInfo& info;
  const SimulationOptions& options;
  const PairTable& pairs;
  Facts facts{};
};
using MakePolicy = Policy(const PolicySetup& setup);

/// What puts the jobs of a policy in order, the least first.
enum class PlayOrder : std::uint8_t {
  arrival,  ///< submission
  gang,     ///< GPUs
  time,     ///< believed time that is left
  service,  ///< the same x GPUs
  level,    ///< queue by attained GPU-seconds
  index,    ///< GPUs / Gittins index of what is left
};

/// What a waiting job does that does not fit.
enum class Unfit : std::uint8_t { is_passed_over, blocks };

/// A policy as start_times() plays it forward.
struct PlayRule {
  PlayOrder order = PlayOrder::arrival;
  bool preempts = false;
  Unfit unfit = Unfit::is_passed_over;
  bool reserves = false;  ///< GPUs are kept for the first that does not fit: EASY backfill
  bool classes = false;   ///< Job::priority goes before the order
  bool weighs = false;    ///< Job::weight counts
  double stays = 1;       ///< the key of a running job is divided by this

  /// Whether it looks at what jobs are believed to need.
  [[nodiscard]] bool reads_sizes() const {
    return reserves || order == PlayOrder::time || order == PlayOrder::service ||
           order == PlayOrder::index;
  }
};

/// How a policy of Gavel divides the time of each tier among jobs.
enum class Shares : std::uint8_t { in_order, equal, max_min, max_min_unaware };

/// A scheduler that works on the cluster itself, without Snapshots.
using QueueKernel = void(Cluster& cluster);

struct PolicyTraits {
  PolicyInfo info;
  MakePolicy* make = nullptr;  ///< the policy as a function of Snapshots
  QueueKernel* queue =
      nullptr;  ///< instead, but where a policy with both needs forecasts of curves
  /// Instead of `make` where there is only an order to choose, and starts cost time or durations
  /// are forecast.
  QueueKernel* order_queue = nullptr;
  std::optional<Shares> shares{};  ///< set for a policy of shares of time, which has neither
  bool takes_objective = false;    ///< its name may be followed by ':' and an objective of plan()
  bool looks_ahead = false;        ///< also forecast the losses on the way
  bool packs =
      false;  ///< its plans are for nodes filled anew: with in_nodes gangs may have to move
  std::optional<PlayRule> play{};  ///< empty where start_times() does not know it
  bool plans_tiers = false;        ///< on several tiers it decides from Snapshots
  bool follows_leader = false;     ///< of SRTF and SRSF, on one tier, for mean completion times
  bool rests = false;  ///< with default options its plan keeps the jobs that run at their best
};

/// The row of a policy. Throws InputError naming the text and the known policies.
[[nodiscard]] const PolicyTraits& policy_named(std::string_view name);

/// How start_times() plays a policy. Throws InputError naming it and those that can be played.
[[nodiscard]] const PlayRule& play_rule_named(std::string_view policy);

/// Whether mean completion time alone counts.
[[nodiscard]] bool for_completion(const std::vector<WeightedObjective>& goals);

/// Whether gangs of one tier may spread over its GPUs, and no job has a curve: then a job that ends
/// makes room for any other.
[[nodiscard]] bool plain(const Workload& workload, const SimulationOptions& options);

/// Whether the policy chooses gangs and some job has several.
[[nodiscard]] bool chooses_gangs(const PolicyInfo& policy, const Workload& workload);

/// Throws InputError naming an option that is given and not among those that the policy reads.
void refuse_unread(const SimulationOptions& options, std::string_view policy,
                   std::span<const std::string_view> reads);

/// The options with the sessions and rounds of the policy where they have none of their own.
[[nodiscard]] SimulationOptions with_defaults_of(const PolicyInfo& policy, const Workload& workload,
                                                 SimulationOptions options);

// ---- what the rows name: slurm_backfill.cpp, gittins_policies.cpp, fair_finish.cpp, makespan.cpp,
// planner_policies.cpp, elastic.cpp, pollux.cpp, queues.cpp and rounds.cpp

MakePolicy make_gittins, make_fair_finish, make_themis, make_optimus, make_slaq, make_makespan,
    make_dare, make_best_value, make_learned, make_goodput, make_sia, make_pollux;

/// The planner under goals that may change between decisions; both must outlive the policy.
[[nodiscard]] Policy steered_planner(const SimulationOptions& options,
                                     const std::vector<WeightedObjective>& goals);

/// run_session_fifo: sessions of SimulationOptions::session_s, which must be set. run_gittins: the
/// better of SRTF and SRSF so far, or by Gittins index where durations are forecast; with patience
/// where starts cost.
QueueKernel run_fifo, run_first_fit, run_slurm_backfill, run_sjf, run_srtf, run_srsf, run_edf,
    run_las, run_session_fifo, run_gittins, run_learned, run_fair_finish;

/// Runs a policy of shares of time in rounds of SimulationOptions::round_s, which must be set, as
/// the simulator of Gavel does (Narayanan et al., OSDI 2020).
void run_rounds(Cluster& cluster, Shares shares);

}  // namespace glidepath::detail
