// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>

#include "common/require.hpp"
#include "simulate/engine.hpp"
#include "simulate/live.hpp"
#include "simulate/queues.hpp"
#include "simulate/rounds.hpp"

namespace glidepath {

namespace {

using detail::refuse;

constexpr std::array<std::string_view, 19> kPolicies{
    "fifo",    "first_fit", "slurm_backfill",  "sjf",       "srtf",      "srsf",   "las",
    "gittins", "max_min",   "max_min_unaware", "fifo_perf", "isolated",  "themis", "optimus",
    "slaq",    "makespan",  "session_fifo",    "dare",      "best_value"};

/// Linear interpolation between order statistics, as numpy does.
double percentile(std::vector<double>& values, double p) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double place = p * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), values.begin() + low, values.end());
  const double a = values[static_cast<std::size_t>(low)];
  if (static_cast<std::size_t>(low) + 1 == values.size()) return a;
  const double b = *std::min_element(values.begin() + low + 1, values.end());
  return a + (place - static_cast<double>(low)) * (b - a);
}

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
}

/// Finish-time fairness (Themis, Mahajan et al., NSDI 2020): JCT over the time that the job would
/// have taken with an equal share of the cluster, A max(1, n g / C): A its time alone with the same
/// share of each tier, g its gang, C all GPUs, n the mean number of live jobs while it lived.
std::vector<double> finish_time_fairness(const detail::Engine& engine) {
  std::vector<std::pair<detail::Tick, int>> changes;
  for (const detail::Run& run : engine.runs) {
    if (run.end < 0) continue;
    changes.emplace_back(run.submit, 1);
    changes.emplace_back(run.end, -1);
  }
  std::sort(changes.begin(), changes.end());
  // area[k]: job-ticks before changes[k]
  std::vector<double> area(changes.size() + 1, 0.0);
  double live = 0;
  for (std::size_t k = 0; k < changes.size(); ++k) {
    const auto gap = k == 0 ? 0.0 : static_cast<double>(changes[k].first - changes[k - 1].first);
    area[k + 1] = area[k] + live * gap;
    live += changes[k].second;
  }
  const auto area_at = [&](detail::Tick tick) {
    const auto it = std::lower_bound(changes.begin(), changes.end(), std::pair{tick, -2});
    return area[static_cast<std::size_t>(it - changes.begin()) + 1];
  };
  double all_gpus = 0;
  for (const int gpus : engine.capacity) all_gpus += gpus;
  std::vector<double> out;
  out.reserve(engine.runs.size());
  for (std::size_t i = 0; i < engine.runs.size(); ++i) {
    const detail::Run& run = engine.runs[i];
    if (run.end <= run.submit) {
      out.push_back(run.end < 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0);
      continue;
    }
    double even = 0;
    for (std::size_t t = 0; t < engine.capacity.size(); ++t) {
      const int tier = static_cast<int>(t);
      const bool fits = engine.fits_memory(static_cast<int>(i), tier);
      even += (fits ? engine.rate(static_cast<int>(i), tier) : 0) * engine.capacity[t] / all_gpus;
    }
    const auto jct = static_cast<double>(run.end - run.submit);
    const double n = (area_at(run.end) - area_at(run.submit)) / jct;
    const double alone = run.done / even;  // what it did, for a job that was stopped
    out.push_back(jct / (alone * std::max(1.0, n * run.gpus / all_gpus)));
  }
  return out;
}

Simulation results(const detail::Engine& engine, std::string policy) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Simulation out;
  out.policy = std::move(policy);
  const std::size_t n = engine.runs.size();
  JobColumns& jobs = out.jobs;
  for (auto* column : {&jobs.submit_s, &jobs.start_s, &jobs.end_s, &jobs.jct_s, &jobs.wait_s,
                       &jobs.gpu_seconds, &jobs.energy_j}) {
    column->reserve(n);
  }
  jobs.job.reserve(n);
  jobs.user.reserve(n);
  jobs.preemptions.reserve(n);
  jobs.outcome.reserve(n);
  std::vector<double> jct;
  std::map<std::string_view, double> user_wait;
  jct.reserve(n);
  detail::Tick first = detail::kNever;
  detail::Tick last = 0;
  double held_energy_j = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const detail::Run& run = engine.runs[i];
    const WorkloadJob& asked = engine.workload.jobs[engine.order[i]];
    const bool ended = run.end >= 0;
    jobs.job.push_back(asked.id);
    jobs.user.push_back(asked.user);
    jobs.submit_s.push_back(engine.seconds(run.submit));
    jobs.start_s.push_back(run.first_start < 0 ? nan : engine.seconds(run.first_start));
    jobs.end_s.push_back(ended ? engine.seconds(run.end) : nan);
    jobs.jct_s.push_back(ended ? engine.seconds(run.end - run.submit) : nan);
    jobs.wait_s.push_back(ended ? engine.seconds(run.end - run.submit - run.held) : nan);
    jobs.preemptions.push_back(run.suspensions);
    jobs.gpu_seconds.push_back(engine.seconds(run.held) * run.gpus);
    jobs.energy_j.push_back(run.energy_j);
    jobs.outcome.push_back(run.outcome);
    out.preemptions += run.suspensions;
    out.gpu_seconds += jobs.gpu_seconds.back();
    held_energy_j += run.energy_j;
    first = std::min(first, run.submit);
    if (!ended) continue;
    last = std::max(last, run.end);
    jct.push_back(jobs.jct_s.back());
    out.total_wait_s += jobs.wait_s.back();
    user_wait[asked.user] += jobs.wait_s.back();
  }
  const auto ended = static_cast<double>(jct.size());
  if (jct.empty()) {
    out.mean_jct_s = out.median_jct_s = out.p95_jct_s = out.mean_wait_s = nan;
    return out;
  }
  for (const double value : jct) out.mean_jct_s += value;
  out.mean_jct_s /= ended;
  out.mean_wait_s = out.total_wait_s / ended;
  out.mean_wait_per_user_s = out.total_wait_s / static_cast<double>(user_wait.size());
  out.median_jct_s = percentile(jct, 0.5);
  out.p95_jct_s = percentile(jct, 0.95);
  out.makespan_s = engine.seconds(last - first);
  double idle_j = 0;
  double gpus = 0;
  for (std::size_t t = 0; t < engine.workload.tiers.size(); ++t) {
    const Tier& tier = engine.workload.tiers[t];
    gpus += tier.gpus();
    idle_j += tier.idle_watts * (tier.gpus() * out.makespan_s - engine.held_gpu_s[t]);
  }
  out.utilization = out.makespan_s > 0 ? out.gpu_seconds / (gpus * out.makespan_s) : 0;
  out.energy_kwh = (held_energy_j + idle_j) / 3.6e6;
  jobs.ftf = finish_time_fairness(engine);
  for (const double rho : jobs.ftf) {
    if (rho > out.worst_ftf) out.worst_ftf = rho;  // false for NaN
  }
  out.lower_bound_jct_s = lower_bound_jct_s(engine.workload);
  out.decisions = engine.events;
  return out;
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
    if (!(job.utilisation >= 0 && job.utilisation <= 1)) {
      refuse_job("has utilisation ", job.utilisation, ", expected 0 to 1");
    }
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

double lower_bound_jct_s(const Workload& workload) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double speed = 0;  // of the pool: GPUs at the best rate any job has
  double best = 0;
  for (const WorkloadJob& job : workload.jobs) {
    if (job.truth >= 0) return nan;
    best = std::max(best, job.steps_per_s.empty()
                              ? 1.0
                              : *std::max_element(job.steps_per_s.begin(), job.steps_per_s.end()));
  }
  (void)best;
  for (const Tier& tier : workload.tiers) speed += tier.gpus();
  if (speed <= 0 || workload.jobs.empty()) return nan;

  struct Item {
    double submit, size;
  };
  std::vector<Item> items;
  double mean_alone = 0;
  for (const WorkloadJob& job : workload.jobs) {
    // A job's fastest tier, for every GPU of the pool: nothing real is faster.
    const double rate = job.steps_per_s.empty()
                            ? 1.0
                            : *std::max_element(job.steps_per_s.begin(), job.steps_per_s.end());
    const double alone = (job.duration_s > 0 ? job.duration_s : job.budget_steps) / rate;
    items.push_back({job.submit_s, alone * job.gpus / speed});
    mean_alone += alone;
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.submit < b.submit; });
  const auto n = static_cast<double>(items.size());
  // SRPT: a heap of remaining sizes, the smallest is served.
  std::vector<double> heap;
  const auto larger = std::greater<>();
  double now = 0;
  double ends = 0;
  double submits = 0;
  std::size_t next = 0;
  while (next < items.size() || !heap.empty()) {
    if (heap.empty()) now = std::max(now, items[next].submit);
    while (next < items.size() && items[next].submit <= now) {
      heap.push_back(items[next].size);
      std::push_heap(heap.begin(), heap.end(), larger);
      submits += items[next++].submit;
    }
    std::pop_heap(heap.begin(), heap.end(), larger);
    const double left = heap.back();
    heap.pop_back();
    const double until = next < items.size() ? items[next].submit : 1e300;
    if (now + left <= until) {
      now += left;
      ends += now;
    } else {
      heap.push_back(left - (until - now));
      std::push_heap(heap.begin(), heap.end(), larger);
      now = until;
    }
  }
  return std::max((ends - submits) / n, mean_alone / n);
}

Simulation simulate(const Workload& workload, std::string_view policy,
                    const SimulationOptions& options) {
  if (std::find(kPolicies.begin(), kPolicies.end(), policy) == kPolicies.end()) {
    std::string known;
    for (const std::string_view name : kPolicies) {
      known += known.empty() ? "" : ", ";
      known += name;
    }
    refuse("simulate: unknown policy '", policy, "', known are ", known);
  }
  check(options);
  validate(workload);
  const bool learns = detail::stops_at_target(policy);
  detail::Engine engine(workload, options, options.stop_at_target.value_or(learns));
  const bool one_tier = workload.tiers.size() == 1 && workload.curves.empty();
  if (one_tier && detail::has_queue(policy)) {
    detail::run_queue(engine, policy);
  } else if (detail::is_round_policy(policy)) {
    detail::run_rounds(engine, policy, options.round_s.value_or(360));
  } else {
    detail::run_named(engine, policy);
  }
  Simulation out = results(engine, std::string(policy));
  out.events = std::move(engine.spans);
  return out;
}

Simulation simulate(const Workload& workload, const Policy& policy,
                    const SimulationOptions& options) {
  if (!policy) refuse("simulate: the policy is empty");
  check(options);
  validate(workload);
  detail::Engine engine(workload, options, options.stop_at_target.value_or(false));
  detail::run_policy(engine, policy);
  Simulation out = results(engine, "custom");
  out.events = std::move(engine.spans);
  return out;
}

}  // namespace glidepath
