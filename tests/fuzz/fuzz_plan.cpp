// SPDX-License-Identifier: Apache-2.0
// The round solver and the planner on arbitrary numbers: what is chosen can be carried out, is
// worth what it says, and no more than the bound.
#include "glidepath/plan.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "case.hpp"

namespace {

using namespace glidepath;
using fuzz::Case;

void solve(Case& given) {
  const int jobs = given.between(0, 9), tiers = given.between(1, 3);
  std::vector<std::int64_t> job, tier, gpus, capacity, user, quota;
  std::vector<double> value, watts;
  for (int j = 0; j < jobs; ++j) {
    for (int o = given.between(0, 3); o > 0; --o) {
      job.push_back(j);
      tier.push_back(given.between(0, tiers - 1));
      gpus.push_back(given.between(0, 9) == 0 ? given.byte() - 8 : given.between(1, 8));
      value.push_back(given.number());
      watts.push_back(given.number());
      user.push_back(j % 3);
    }
  }
  for (int t = 0; t < tiers; ++t) capacity.push_back(given.between(0, 16));
  for (int u = 0; u < 3; ++u) quota.push_back(given.between(0, 16));
  const int limits = given.byte();
  RoundView round{.job = job, .tier = tier, .gpus = gpus, .value = value, .capacity = capacity};
  if (limits & 1) round.watts = watts, round.power_cap_w = given.number();
  if (limits & 2) round.user = user, round.user_quota = quota;
  const RoundPlan plan = solve_round(round, {.gap = limits & 4 ? 0.0 : 0.01}, {.threads = 1});

  double worth = 0;
  std::int64_t milliwatts = 0;
  std::set<std::int64_t> seen;
  std::array<std::int64_t, 3> used{}, held{};
  for (const std::int64_t i : plan.chosen) {
    GLIDEPATH_HOLDS(seen.insert(job[i]).second);
    GLIDEPATH_HOLDS((used[tier[i]] += gpus[i]) <= capacity[tier[i]]);
    if (limits & 2) GLIDEPATH_HOLDS((held[user[i]] += gpus[i]) <= quota[user[i]]);
    if (limits & 1) milliwatts += std::llround(watts[i] * 1e3);
    worth += value[i];
  }
  GLIDEPATH_HOLDS(std::isfinite(plan.value) && plan.value == worth);
  GLIDEPATH_HOLDS(plan.value <= plan.bound && plan.gap >= 0);
  if (limits & 1) GLIDEPATH_HOLDS(static_cast<double>(milliwatts) <= round.power_cap_w * 1e3 + 0.5);
}

Job job_of(Case& given, std::int64_t id, int tiers) {
  Job job{.id = id};
  for (int o = given.between(0, 3); o > 0; --o) {
    job.options.push_back({.tier = given.between(0, tiers - 1),
                           .gpus = given.between(1, 8),
                           .steps_per_s = given.number()});
  }
  job.remaining_steps = given.numbers(given.between(0, 6));
  job.user = given.byte() % 2 == 0 ? "ada" : "bob";
  if (given.byte() % 4 == 0) job.weight = given.number();
  if (given.byte() % 4 == 0) job.steps_done = given.number();
  if (given.byte() % 4 == 0) job.submit_s = given.number();
  if (given.byte() % 4 == 0) job.deadline_s = given.number();
  if (given.byte() % 8 == 0) job.priority = given.between(0, 2);
  return job;
}

void plan_live(Case& given) {
  const int count = given.between(0, 6), how = given.byte();
  std::vector<Tier> tiers;
  for (int t = given.between(1, 3); t > 0; --t) {
    tiers.push_back({.name = std::string(1, static_cast<char>('a' + t)),
                     .nodes = given.between(1, 3),
                     .gpus_per_node = given.between(1, 4),
                     .idle_watts = 20,
                     .busy_watts = 300,
                     .price_per_gpu_hour = 2});
  }
  std::vector<Job> jobs;
  for (int j = 0; j < count; ++j) jobs.push_back(job_of(given, j, static_cast<int>(tiers.size())));
  const Snapshot snapshot{.now_s = how & 1 ? given.number() : 0, .tiers = tiers, .jobs = jobs};
  PlanOptions options{.objectives = {{static_cast<Objective>(how / 2 % 8)}}};
  if (how & 16) options.limits.user_quota = {{"ada", given.between(0, 8)}};
  if (how & 32) options.limits.in_nodes = true;
  const Plan made = plan(snapshot, options);
  GLIDEPATH_HOLDS(std::isfinite(made.value) && made.value <= made.bound);
  GLIDEPATH_HOLDS(violations(snapshot, made, options.limits).empty());
  GLIDEPATH_HOLDS(std::ssize(made.reasons) == count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Case given(data, size);
  const bool live = given.byte() % 2 == 1;
  fuzz::allow_refusal([&] { live ? plan_live(given) : solve(given); });
  return 0;
}
