// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_set>

#include "common/require.hpp"
#include "simulate/engine.hpp"
#include "simulate/live.hpp"
#include "simulate/metrics.hpp"
#include "simulate/queues.hpp"
#include "simulate/rounds.hpp"

namespace glidepath {

namespace {

using detail::refuse;

constexpr std::array<std::string_view, 19> kPolicies{
    "fifo",    "first_fit", "slurm_backfill",  "sjf",       "srtf",      "srsf",   "las",
    "gittins", "max_min",   "max_min_unaware", "fifo_perf", "isolated",  "themis", "optimus",
    "slaq",    "makespan",  "session_fifo",    "dare",      "best_value"};

void check(const SimulationOptions& options) {
  const auto positive = [](const char* what, const std::optional<double>& value) {
    if (value && !(*value > 0 && std::isfinite(*value))) {
      refuse("simulate: ", what, " is ", *value, ", expected a time above 0");
    }
  };
  if (!(options.restart_s >= 0 && std::isfinite(options.restart_s))) {
    refuse("simulate: restart_s is ", options.restart_s, ", expected 0 or more");
  }
  positive("session_s", options.session_s);
  positive("round_s", options.round_s);
  if (options.forecast_sigma &&
      !(*options.forecast_sigma >= 0 && std::isfinite(*options.forecast_sigma))) {
    refuse("simulate: forecast_sigma is ", *options.forecast_sigma, ", expected 0 or more");
  }
  const auto at_least = [](const char* what, double value, double least) {
    if (!(value >= least)) refuse("simulate: ", what, " is ", value, ", expected at least ", least);
  };
  at_least("failures.node_every_s", options.failures.node_every_s, 1);
  at_least("failures.job_every_s", options.failures.job_every_s, 1);
  at_least("failures.repair_s", options.failures.repair_s, 0);
  at_least("failures.checkpoint_s", options.failures.checkpoint_s, 0);
  at_least("sleep.after_s", options.sleep.after_s, 0);
  at_least("sleep.watts", options.sleep.watts, 0);
  at_least("sleep.wake_s", options.sleep.wake_s, 0);
  at_least("user_gpus", options.user_gpus.value_or(1), 1);
  for (const double grams : options.carbon_g_per_kwh) at_least("carbon_g_per_kwh", grams, 0);
}

/// Whether best_value has only an order to choose: one tier, and nothing asked but completion
/// times.
bool only_orders(const Workload& workload, const SimulationOptions& options) {
  const PlanOptions& asked = options.planner;
  const PlanOptions plain;
  const bool limited =
      asked.limits.power_cap_w != plain.limits.power_cap_w || !asked.limits.user_quota.empty() ||
      !asked.limits.group_quota.empty() || options.user_gpus ||
      asked.dynamics.max_wait_s != plain.dynamics.max_wait_s || asked.limits.min_run_s > 0 ||
      asked.dynamics.ageing_s != plain.dynamics.ageing_s ||
      asked.dynamics.hysteresis != plain.dynamics.hysteresis || asked.joule_value != 0;
  return !limited && asked.objectives.size() == 1 &&
         asked.objectives.front().objective == Objective::jct &&
         options.sharing == Sharing::exclusive && !options.round_s && !options.session_s &&
         std::all_of(workload.jobs.begin(), workload.jobs.end(),
                     [](const WorkloadJob& job) { return job.weight == 1 && job.priority == 0; });
}

}  // namespace

std::string_view name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::unfinished:
      return "unfinished";
    case Outcome::finished:
      return "finished";
    case Outcome::target:
      return "target";
    case Outcome::never:
      return "never";
  }
  return "";
}

std::span<const std::string_view> policy_names() noexcept { return kPolicies; }

void validate(const Workload& workload) {
  if (workload.tiers.empty()) refuse("simulate: the workload has no tier");
  if (workload.jobs.empty()) refuse("simulate: the workload has no job");
  for (const Tier& tier : workload.tiers) validate(tier);
  for (const PairSpeeds& pair : workload.pairs) {
    if (pair.tier < 0 || pair.tier >= static_cast<int>(workload.tiers.size()) ||
        !(pair.speeds.first >= 0 && pair.speeds.second >= 0)) {
      refuse("simulate: the pair of '", pair.first, "' and '", pair.second, "' has tier ",
             pair.tier, " and speeds ", pair.speeds.first, " and ", pair.speeds.second);
    }
  }
  std::unordered_set<std::int64_t> ids;
  for (const WorkloadJob& job : workload.jobs) {
    const auto refuse_job = [&](const auto&... parts) {
      refuse("simulate: job ", job.id, " ", parts...);
    };
    if (!ids.insert(job.id).second) refuse_job("is there twice");
    if (!(std::isfinite(job.submit_s) && job.submit_s >= 0)) {
      refuse_job("has submit_s ", job.submit_s, ", expected 0 or more");
    }
    if (!(std::isfinite(job.duration_s) && job.duration_s >= 0)) {
      refuse_job("has duration_s ", job.duration_s, ", expected more than 0");
    }
    if (!(std::isfinite(job.budget_steps) && job.budget_steps >= 0)) {
      refuse_job("has budget_steps ", job.budget_steps, ", expected more than 0");
    }
    if (job.duration_s == 0 && job.budget_steps == 0) {
      refuse_job("has neither duration_s nor budget_steps above 0");
    }
    if (job.duration_s > 1e12 || job.submit_s > 1e12) refuse_job("lies beyond 1e12 seconds");
    if (job.gpus < 1) refuse_job("asks ", job.gpus, " GPUs");
    if (!(job.utilization >= 0 && job.utilization <= 1)) {
      refuse_job("has utilization ", job.utilization, ", expected 0 to 1");
    }
    if (!(job.sm_activity >= 0 && job.sm_activity <= 1)) {
      refuse_job("has sm_activity ", job.sm_activity, ", expected 0 to 1");
    }
    if (!(job.weight >= 0 && std::isfinite(job.weight))) refuse_job("has weight ", job.weight);
    if (std::isnan(job.deadline_s)) refuse_job("has deadline_s nan");
    if (!(job.memory_gb >= 0)) refuse_job("has memory_gb ", job.memory_gb);
    if (job.truth >= static_cast<int>(workload.curves.size()) || job.truth < -1) {
      refuse_job("names curve ", job.truth, " of ", workload.curves.size());
    }
    if (!job.steps_per_s.empty() && job.steps_per_s.size() != workload.tiers.size()) {
      refuse_job("has ", job.steps_per_s.size(), " step rates for ", workload.tiers.size(),
                 " tiers");
    }
    for (const double rate : job.steps_per_s) {
      if (!(rate >= 0 && std::isfinite(rate))) refuse_job("has steps_per_s ", rate);
    }
    int largest = 0;
    double memory = 0;
    bool runs = false;
    for (std::size_t t = 0; t < workload.tiers.size(); ++t) {
      const Tier& tier = workload.tiers[t];
      largest = std::max(largest, tier.gpus());
      memory = std::max(memory, tier.memory_gb);
      runs |= job.gpus <= tier.gpus() && (tier.memory_gb <= 0 || job.memory_gb <= tier.memory_gb) &&
              (job.steps_per_s.empty() || job.steps_per_s[t] > 0);
    }
    if (job.gpus > largest) {
      refuse_job("asks ", job.gpus, " GPUs, the largest tier has ", largest);
    }
    if (!runs) {
      refuse_job("fits no tier: it asks ", job.gpus, " GPUs of ", job.memory_gb,
                 " GB each (largest memory ", memory, " GB) and a step rate above 0");
    }
  }
}

Simulation simulate(const Workload& workload, std::string_view policy,
                    const SimulationOptions& given) {
  const std::size_t colon = policy.find(':');  // best_value:objective
  const std::string_view rule = policy.substr(0, colon);
  if (std::find(kPolicies.begin(), kPolicies.end(), rule) == kPolicies.end()) {
    std::string known;
    for (const std::string_view name : kPolicies) {
      known += known.empty() ? "" : ", ";
      known += name;
    }
    refuse("simulate: unknown policy '", policy, "', known are ", known);
  }
  SimulationOptions options = given;
  if (colon != std::string_view::npos) {
    if (rule != "best_value") refuse("simulate: '", rule, "' has no objectives, best_value has");
    options.planner.objectives = {{objective_named(policy.substr(colon + 1)), 1.0}};
  }
  check(options);
  validate(workload);
  const bool learns = detail::stops_at_target(rule);
  detail::Engine engine(workload, options, options.stop_at_target.value_or(learns));
  const bool fails = options.failures.node_every_s < Failures::kNone ||
                     options.failures.job_every_s < Failures::kNone;
  if (detail::is_round_policy(rule)) {
    if (fails || options.in_nodes) {
      refuse("simulate: '", rule, "' divides time among all GPUs, without failures or in_nodes");
    }
    detail::run_rounds(engine, rule, options.round_s.value_or(360));
  } else if (workload.tiers.size() == 1 && workload.curves.empty() && !fails && !options.in_nodes) {
    // Where starts cost time the patience of the queue saves more of them than the planner does.
    const bool patient =
        rule == "best_value" && options.restart_s > 0 && only_orders(workload, options);
    if (patient || detail::has_queue(rule)) {
      detail::run_queue(engine, patient ? "gittins" : rule);
    } else {
      detail::run_named(engine, rule);
    }
  } else {
    detail::run_named(engine, rule);
  }
  return detail::results(engine, std::string(policy));
}

Simulation simulate(const Workload& workload, const Policy& policy,
                    const SimulationOptions& options) {
  if (!policy) refuse("simulate: the policy is empty");
  check(options);
  validate(workload);
  detail::Engine engine(workload, options, options.stop_at_target.value_or(false));
  detail::run_policy(engine, policy);
  return detail::results(engine, "custom");
}

}  // namespace glidepath
