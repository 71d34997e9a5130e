// SPDX-License-Identifier: Apache-2.0
// The plan of live jobs.
#include "glidepath/plan.hpp"

#include <cmath>
#include <limits>
#include <unordered_map>

#include "c/boundary.hpp"

struct glidepath_plan_t {
  glidepath::Plan plan{};
  std::vector<std::int64_t> job{}, tier{}, gpus{};
  std::vector<const char*> reasons{};
};

namespace glidepath::c {
namespace {

/// Value i of a column that may be left out.
template <class T>
T value_or(const T* values, std::size_t i, T otherwise) {
  return values == nullptr ? otherwise : values[i];
}

int int_of(std::int64_t value, const char* name) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    detail::refuse(name, " is ", value, ", expected a number of 32 bits");
  }
  return static_cast<int>(value);
}

/// A flag. Another value than 0 and 1 was meant for another field, or for a later version.
bool flag_of(std::int32_t value, const char* name) {
  if (value != 0 && value != 1) detail::refuse(name, " is ", value, ", expected 0 or 1");
  return value == 1;
}

std::vector<Tier> tiers_of(const glidepath_snapshot_t& s) {
  const auto nodes = column(s.nodes, s.tiers, "snapshot: nodes");
  std::vector<Tier> tiers(s.tiers);
  for (std::size_t i = 0; i < s.tiers; ++i) {
    tiers[i].name = "tier " + std::to_string(i);
    tiers[i].nodes = int_of(nodes[i], "snapshot: nodes");
    tiers[i].gpus_per_node =
        int_of(value_or<std::int64_t>(s.gpus_per_node, i, 1), "snapshot: gpus_per_node");
    tiers[i].idle_watts = value_or(s.idle_watts, i, 0.0);
    tiers[i].busy_watts = value_or(s.busy_watts, i, 0.0);
    tiers[i].price_per_gpu_hour = value_or(s.price_per_gpu_hour, i, 0.0);
    validate(tiers[i]);
  }
  return tiers;
}

std::vector<Job> jobs_of(const glidepath_snapshot_t& s) {
  const auto ids = column(s.job, s.jobs, "snapshot: job");
  column(s.remaining_steps, s.remaining_steps == nullptr ? 0 : s.samples, "snapshot: samples");
  if (s.remaining_steps != nullptr && s.samples == 0 && s.jobs > 0) {
    detail::refuse("snapshot: remaining_steps without samples");
  }
  if (s.remaining_steps == nullptr && s.samples > 0) {
    detail::refuse("snapshot: samples is ", s.samples, " without remaining_steps, expected 0");
  }
  std::vector<Job> jobs(s.jobs);
  for (std::size_t i = 0; i < s.jobs; ++i) {
    Job& job = jobs[i];
    job.id = ids[i];
    job.submit_s = value_or(s.submit_s, i, job.submit_s);
    job.weight = value_or(s.weight, i, job.weight);
    job.priority = int_of(value_or<std::int64_t>(s.priority, i, 0), "snapshot: priority");
    job.steps_done = value_or(s.steps_done, i, job.steps_done);
    job.attained_s = value_or(s.attained_s, i, job.attained_s);
    job.attained_gpu_s = value_or(s.attained_gpu_s, i, job.attained_gpu_s);
    job.restart_s = value_or(s.restart_s, i, job.restart_s);
    job.deadline_s = value_or(s.deadline_s, i, job.deadline_s);
    if (s.remaining_steps != nullptr && s.samples > 0) {
      const std::span row(s.remaining_steps + i * s.samples, s.samples);
      if (!std::isnan(row.front())) job.remaining_steps.assign(row.begin(), row.end());
    }
  }
  return jobs;
}

void add_options(const glidepath_snapshot_t& s, std::vector<Job>& jobs) {
  const auto owner = column(s.option_job, s.options, "snapshot: option_job");
  const auto tier = column(s.option_tier, s.options, "snapshot: option_tier");
  const auto gpus = column(s.option_gpus, s.options, "snapshot: option_gpus");
  const auto rate = column(s.option_steps_per_s, s.options, "snapshot: option_steps_per_s");
  std::unordered_map<std::int64_t, Job*> by_id;
  for (Job& job : jobs) by_id[job.id] = &job;
  for (std::size_t i = 0; i < s.options; ++i) {
    const auto found = by_id.find(owner[i]);
    if (found == by_id.end()) {
      detail::refuse("snapshot: option ", i, " is of job ", owner[i], ", which is not there");
    }
    found->second->options.push_back({.tier = int_of(tier[i], "snapshot: option_tier"),
                                      .gpus = int_of(gpus[i], "snapshot: option_gpus"),
                                      .steps_per_s = rate[i]});
  }
}

std::vector<Allocation> running_of(const glidepath_snapshot_t& s) {
  const auto job = column(s.running_job, s.running, "snapshot: running_job");
  const auto tier = column(s.running_tier, s.running, "snapshot: running_tier");
  const auto gpus = column(s.running_gpus, s.running, "snapshot: running_gpus");
  std::vector<Allocation> running;
  for (std::size_t i = 0; i < s.running; ++i) {
    running.push_back({.job = job[i],
                       .tier = int_of(tier[i], "snapshot: running_tier"),
                       .gpus = int_of(gpus[i], "snapshot: running_gpus"),
                       .since_s = value_or(s.running_since_s, i, 0.0)});
  }
  return running;
}

PlanOptions plan_options(const glidepath_plan_options_t* given) {
  const auto read_in = read_or_default(given, "plan options");
  PlanOptions options;
  if (read_in.objective != nullptr) {
    options.objectives = {{.objective = objective_named(read_in.objective)}};
  }
  if (read_in.round_s != 0) options.round_s = read_in.round_s;
  if (read_in.hysteresis != nullptr) options.dynamics.hysteresis = *read_in.hysteresis;
  if (read_in.max_wait_s != nullptr) options.dynamics.max_wait_s = *read_in.max_wait_s;
  if (read_in.power_cap_w != nullptr) options.limits.power_cap_w = *read_in.power_cap_w;
  options.limits.min_run_s = read_in.min_run_s;
  options.limits.in_nodes = flag_of(read_in.in_nodes, "plan options: in_nodes");
  return options;
}

std::unique_ptr<glidepath_plan_t> columns_of(Plan plan) {
  auto made = std::make_unique<glidepath_plan_t>();
  made->plan = std::move(plan);
  for (const Allocation& each : made->plan.allocations) {
    made->job.push_back(each.job);
    made->tier.push_back(each.tier);
    made->gpus.push_back(each.gpus);
  }
  for (const Reason& each : made->plan.reasons) made->reasons.push_back(each.text.c_str());
  return made;
}

}  // namespace
}  // namespace glidepath::c

using namespace glidepath;     // NOLINT(google-build-using-namespace)
using namespace glidepath::c;  // NOLINT(google-build-using-namespace)

glidepath_status glidepath_plan(const glidepath_snapshot_t* snapshot,
                                const glidepath_plan_options_t* options, glidepath_plan_t** plan) {
  return handed_over(plan, "plan", [&] {
    const glidepath_snapshot_t s = read(needed(snapshot, "snapshot"), "snapshot");
    const std::vector<Tier> tiers = tiers_of(s);
    std::vector<Job> jobs = jobs_of(s);
    add_options(s, jobs);
    const std::vector<Allocation> running = running_of(s);
    const Snapshot now{.now_s = s.now_s, .tiers = tiers, .jobs = jobs, .running = running};
    return columns_of(glidepath::plan(now, plan_options(options)));
  });
}

glidepath_status glidepath_plan_get(const glidepath_plan_t* plan, glidepath_plan_view_t* view) {
  return guarded([&] {
    const glidepath_plan_t& made = needed(plan, "plan");
    glidepath_plan_view_t out{};
    out.allocations = made.job.size();
    out.job = made.job.data();
    out.tier = made.tier.data();
    out.gpus = made.gpus.data();
    out.stop_count = made.plan.stop.size();
    out.stop = made.plan.stop.data();
    out.reason_count = made.reasons.size();
    out.reasons = made.reasons.data();
    out.value = made.plan.value;
    out.bound = made.plan.bound;
    out.gap = made.plan.gap;
    write(out, view, "view");
  });
}

void glidepath_plan_free(glidepath_plan_t* plan) { delete plan; }
