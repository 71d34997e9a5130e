// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/names.hpp"
#include "hardware/sharing.hpp"
#include "plan/check.hpp"
#include "plan/learned.hpp"
#include "plan/value.hpp"
#include "simulate/live.hpp"
#include "simulate/moments.hpp"

namespace glidepath {

namespace {

using detail::refuse;

bool fails(const SimulationOptions& options) {
  return options.failures.node_every_s < Failures::kNone ||
         options.failures.job_every_s < Failures::kNone;
}

/// Refuses what nothing would read: times of failures that never come, of nodes that never sleep.
void refuse_idle(const SimulationOptions& options) {
  const Failures& failures = options.failures;
  const bool nodes_fail = failures.node_every_s < Failures::kNone;
  const bool jobs_fail = failures.job_every_s < Failures::kNone;
  if (!nodes_fail && failures.repair_s != Failures{}.repair_s) {
    refuse("simulate: failures.repair_s without failures.node_every_s");
  }
  if (!nodes_fail && !jobs_fail && failures.checkpoint_s != Failures{}.checkpoint_s) {
    refuse("simulate: failures.checkpoint_s without node_every_s or job_every_s");
  }
  const bool asleep = options.sleep.after_s < std::numeric_limits<double>::infinity();
  if (!asleep && (options.sleep.watts != 0 || options.sleep.wake_s != 0)) {
    refuse("simulate: sleep.watts and sleep.wake_s need sleep.after_s");
  }
  if (options.planner && options.planner->round_s != PlanOptions{}.round_s) {
    refuse("simulate: planner.round_s, say round_s in its place");
  }
  if (options.planner && options.planner->limits.in_nodes) {
    refuse("simulate: planner.in_nodes, say in_nodes in its place");
  }
  if (options.planner && options.planner->limits.sharing != Sharing::exclusive) {
    refuse("simulate: planner.sharing, say sharing in its place");
  }
  if (options.planner && !options.planner->limits.group_quota.empty()) {
    refuse("simulate: planner.group_quota, the jobs of a workload have no groups");
  }
}

void check_phases(const Workload& workload, const SimulationOptions& options) {
  if (options.knows_phases) return;
  if (options.forecast_sigma.value_or(0) > 0) {
    refuse("simulate: knows_phases is off and forecast_sigma is ", *options.forecast_sigma,
           ", expected one of them");
  }
  if (std::ranges::all_of(workload.jobs, &std::vector<Phase>::empty, &WorkloadJob::phases)) {
    refuse("simulate: knows_phases is off, no job has phases");
  }
}

/// Whether a policy that plans has only an order to choose: no limits, no gangs, and only
/// completion times.
bool only_orders(const PolicyInfo& policy, const Workload& workload,
                 const SimulationOptions& options) {
  const PlanOptions plain, submitted = options.planner.value_or(plain);
  const bool limited =
      submitted.limits.power_cap_w != plain.limits.power_cap_w ||
      !submitted.limits.user_quota.empty() || !submitted.limits.group_quota.empty() ||
      options.user_gpus || submitted.dynamics.max_wait_s != plain.dynamics.max_wait_s ||
      submitted.limits.min_run_s > 0 || submitted.dynamics.ageing_s != plain.dynamics.ageing_s ||
      submitted.dynamics.hysteresis != plain.dynamics.hysteresis || submitted.joule_value != 0;
  return !limited && detail::for_completion(detail::objectives_of(submitted)) &&
         options.sharing == Sharing::exclusive && !options.round_s && !options.session_s &&
         !detail::chooses_gangs(policy, workload) &&
         std::ranges::all_of(workload.jobs, [](const WorkloadJob& job) {
           return job.weight == 1 && job.priority == 0;
         });
}

/// An error of forecasts is one of jobs without a curve.
void check_sigma(const Workload& workload, const SimulationOptions& options) {
  if (!(options.forecast_sigma.value_or(0) > 0)) return;
  const auto has_curve = [](const WorkloadJob& job) { return job.truth >= 0; };
  if (!std::ranges::all_of(workload.jobs, has_curve)) return;
  refuse("simulate: forecast_sigma is ", *options.forecast_sigma,
         ", it is for jobs without a curve and every job has one");
}

/// A target is that of a curve.
void check_targets(const Workload& workload, const SimulationOptions& options) {
  if (!options.stop_at_target.value_or(false) || !workload.curves.empty()) return;
  refuse("simulate: stop_at_target is for jobs with curves, the workload has none");
}

/// Carbon is that of energy.
void check_carbon(const Workload& workload, const SimulationOptions& options) {
  if (options.carbon_g_per_kwh.empty() || detail::has_power(workload.tiers)) return;
  refuse("simulate: carbon_g_per_kwh is given, no tier has idle_watts or busy_watts");
}

/// Shares of time have neither failures nor nodes, and no node sleeps.
void check_shares(const PolicyInfo& policy, const SimulationOptions& options) {
  if (fails(options) || options.in_nodes) {
    refuse("simulate: '", policy.name,
           "' divides time among all GPUs, without failures or in_nodes");
  }
  if (options.sleep.wake_s > 0) {
    refuse("simulate: '", policy.name, "' wakes no nodes, sleep.wake_s is ", options.sleep.wake_s,
           ", expected 0");
  }
}

/// Refuses what plan() would, also where no decision of this run will ask it: which one does
/// depends on the workload.
void check_planner(const detail::PolicyTraits& traits, const Workload& workload,
                   const SimulationOptions& options) {
  if (!options.planner) return;
  PlanOptions asked = *options.planner;
  if (traits.order_queue == &detail::run_learned) asked.objectives = {{Objective::learned, 1.0}};
  asked.limits.sharing = options.sharing;
  detail::check_options(asked, {.tiers = workload.tiers});
  if (!asked.learned.empty()) (void)detail::LearnedValues(asked.learned);
}

bool has_restarts(const Workload& workload, const SimulationOptions& options) {
  return std::ranges::any_of(workload.jobs, [&](const WorkloadJob& job) {
    return (job.restart_s < 0 ? options.restart_s : job.restart_s) > 0;
  });
}

/// The scheduler that works without Snapshots; null where the policy needs them.
detail::QueueKernel* queue_for(const detail::PolicyTraits& traits, const Workload& workload,
                               const SimulationOptions& options) {
  // Where starts cost time the patience of the queue saves more of them than the planner does;
  // where durations are forecast an index of each job is all that there is to go by.
  const bool asks = has_restarts(workload, options) || options.forecast_sigma.value_or(0) > 0 ||
                    !options.knows_phases;
  const bool ordered = traits.order_queue != nullptr && asks && detail::plain(workload, options) &&
                       only_orders(traits.info, workload, options);
  if (ordered) {
    const bool learned =
        options.planner &&
        detail::objectives_of(*options.planner).front().objective == Objective::learned;
    return learned ? &detail::run_learned : traits.order_queue;
  }
  // But for that of slurm_backfill no queue forecasts curves, or decides at the ends of sessions.
  const bool needs_snapshots =
      traits.make != nullptr && (!workload.curves.empty() || options.session_s ||
                                 (traits.plans_tiers && workload.tiers.size() > 1));
  return needs_snapshots ? nullptr : traits.queue;
}

}  // namespace

void detail::check_options(const SimulationOptions& options) {
  const auto bounded = [](const char* what, double value) {
    if (!(value >= 0)) refuse("simulate: ", what, " is ", value, ", expected 0 or more");
    detail::refuse_above_max_seconds("simulate", what, value);
  };
  const auto positive = [&](const char* what, const std::optional<double>& value) {
    if (value && !(*value > 0 && std::isfinite(*value))) {
      refuse("simulate: ", what, " is ", *value, ", expected a time above 0");
    }
    bounded(what, value.value_or(0));
  };
  const auto finite = [](const char* what, double value) {
    if (value >= 0 && std::isfinite(value)) return;
    refuse("simulate: ", what, " is ", value, ", expected 0 or more and finite");
  };
  bounded("restart_s", options.restart_s);
  refuse_unknown(options.sharing, "simulate: sharing");
  positive("session_s", options.session_s);
  positive("round_s", options.round_s);
  finite("forecast_sigma", options.forecast_sigma.value_or(0));
  const auto at_least = [](const char* what, double value, double least) {
    if (!(value >= least)) refuse("simulate: ", what, " is ", value, ", expected at least ", least);
  };
  at_least("failures.node_every_s", options.failures.node_every_s, 1);
  at_least("failures.job_every_s", options.failures.job_every_s, 1);
  bounded("failures.repair_s", options.failures.repair_s);
  at_least("failures.checkpoint_s", options.failures.checkpoint_s, 0);
  at_least("sleep.after_s", options.sleep.after_s, 0);
  finite("sleep.watts", options.sleep.watts);
  bounded("sleep.wake_s", options.sleep.wake_s);
  const auto ratio = [](const char* what, double value) {
    if (value > 0 && std::isfinite(value)) return;
    refuse("simulate: ", what, " is ", value, ", expected a number above 0");
  };
  ratio("max_ftf", options.max_ftf.value_or(1));
  ratio("unfair_above", options.unfair_above);
  if (const double share = options.long_share.value_or(0); !(share >= 0 && share <= 1)) {
    refuse("simulate: long_share is ", share, ", expected 0 to 1");
  }
  at_least("user_gpus", options.user_gpus.value_or(1), 1);
  for (const double grams : options.carbon_g_per_kwh) bounded("carbon_g_per_kwh", grams);
  refuse_idle(options);
}

void detail::check_run(const Workload& workload, const SimulationOptions& options) {
  validate(workload);
  check_phases(workload, options);
  check_sigma(workload, options);
  check_targets(workload, options);
  check_carbon(workload, options);
}

std::string_view name(JobOutcome outcome) noexcept {
  return detail::name_in(detail::Names<4>{"unfinished", "finished", "target", "never"}, outcome);
}

Simulation detail::simulate_watched(const Workload& workload, std::string_view policy,
                                    const SimulationOptions& given,
                                    const std::function<void(const Cluster&)>& look) {
  const std::size_t colon = policy.find(':');  // best_value:objective
  const detail::PolicyTraits& traits = detail::policy_named(policy.substr(0, colon));
  const PolicyInfo& info = traits.info;
  SimulationOptions options = given;
  if (colon != std::string_view::npos && !traits.takes_objective) {
    refuse("simulate: '", info.name, "' has no objectives, best_value has");
  }
  detail::check_options(options);
  detail::refuse_unread(options, "'" + std::string(info.name) + "'", info.reads);
  const bool has_objective = colon != std::string_view::npos || !traits.takes_objective;
  if (has_objective && options.planner && !options.planner->objectives.empty()) {
    refuse("simulate: '", policy, "' has its own objective, leave that of planner out");
  }
  if (colon != std::string_view::npos) {
    if (!options.planner) options.planner.emplace();
    options.planner->objectives = {{objective_named(policy.substr(colon + 1)), 1.0}};
  }
  detail::check_run(workload, options);
  check_planner(traits, workload, options);
  if (traits.shares) check_shares(info, options);
  detail::QueueKernel* const queue = queue_for(traits, workload, options);
  const bool patient =
      queue != nullptr && detail::plain(workload, options) && has_restarts(workload, options);
  if (!options.patience && !patient) {
    refuse("simulate: patience is off, '", info.name,
           "' has none here: it needs restart_s and no more to choose than an order");
  }
  options = detail::with_defaults_of(info, workload, std::move(options));
  detail::Cluster cluster(workload, options);
  if (look) {
    options.progress = [&](std::int64_t ended, std::int64_t jobs) {
      if (given.progress) given.progress(ended, jobs);
      look(cluster);
    };
  }
  if (traits.shares) {
    detail::run_rounds(cluster, *traits.shares);
  } else if (queue != nullptr) {
    queue(cluster);
  } else {
    detail::run_named(cluster, traits);
  }
  return detail::results(cluster, std::string(policy));
}

Simulation simulate(const Workload& workload, std::string_view policy,
                    const SimulationOptions& options) {
  return detail::simulate_watched(workload, policy, options, {});
}

Simulation simulate(const Workload& workload, const Policy& policy,
                    const SimulationOptions& options) {
  if (!policy) refuse("simulate: the policy is empty");
  detail::check_options(options);
  detail::refuse_unread(options, "a policy of one's own", kPolicyReads);
  detail::check_run(workload, options);
  detail::Cluster cluster(workload, options);
  detail::run_policy(cluster, policy);
  return detail::results(cluster, "custom");
}

}  // namespace glidepath
