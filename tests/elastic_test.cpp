// SPDX-License-Identifier: Apache-2.0
// Jobs that may run on several numbers of GPUs: what the simulator does with them, and what
// policies make of them, against schedules worked out by hand and by trying everything.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "refusal.hpp"
#include "simulate/policy_table.hpp"
#include "simulated.hpp"

namespace glidepath {
namespace {

/// A job of 100 steps, one a second on a GPU and three on four of them.
Workload one_elastic_job() {
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 4}};
  workload.jobs.push_back({.id = 1,
                           .budget_steps = 100,
                           .steps_per_s = {1},
                           .gangs = {{.gpus = 4, .steps_per_s = {3}}}});
  return workload;
}

/// Gives the only job one GPU, and four from `from_s` on.
Policy grows_at(double from_s) {
  return [from_s](const Snapshot& seen) {
    Plan plan;
    const int gpus = seen.now_s < from_s ? 1 : 4;
    for (const Job& job : seen.jobs) plan.allocations.push_back({job.id, 0, gpus});
    return plan;
  };
}

TEST(ElasticTest, AnotherGangIsASuspensionAndAStart) {
  // 10 s on one GPU make 10 steps; then 7 s without progress, and 90 steps at 3 a second.
  SimulationOptions options{.restart_s = 7, .round_s = 10};
  const Simulation run = simulate(one_elastic_job(), grows_at(10), options);
  EXPECT_DOUBLE_EQ(run.mean_jct_s, 10 + 7 + 30);
  EXPECT_EQ(run.preemptions, 1);
  EXPECT_DOUBLE_EQ(run.gpu_seconds, 10 * 1 + 37 * 4);
  ASSERT_EQ(run.spans.size(), 2);
  EXPECT_EQ(run.spans[0], (JobSpan{1, 0, 1, 0, 10}));
  EXPECT_EQ(run.spans[1], (JobSpan{1, 0, 4, 10, 47}));
}

TEST(ElasticTest, ARestartOfItsOwnGoesBeforeThatOfTheSimulation) {
  Workload workload = one_elastic_job();
  SimulationOptions options{.restart_s = 7, .round_s = 10};
  workload.jobs.front().restart_s = 2.5;
  EXPECT_DOUBLE_EQ(simulate(workload, grows_at(10), options).mean_jct_s, 10 + 2.5 + 30);
  workload.jobs.front().restart_s = 0;
  EXPECT_DOUBLE_EQ(simulate(workload, grows_at(10), options).mean_jct_s, 10 + 30);
}

TEST(ElasticTest, ARestartOfItsOwnIsPaidUnderPoliciesWithQueuesToo) {
  // Under srtf the second job takes the GPU at 10 s; the first one needs 30 s to come back.
  Workload workload = on_gpus(1, {{0, 100}, {10, 20}});
  workload.jobs[0].restart_s = 30;
  for (const std::string_view policy : {"srtf", "gittins", "best_value"}) {
    const Simulation run = simulate(workload, policy);
    if (run.preemptions == 0) continue;  // it may be patient
    EXPECT_DOUBLE_EQ(result_of(run, 1).end_s, 10 + 20 + 30 + 90) << policy;
  }
  EXPECT_EQ(simulate(workload, "srtf").preemptions, 1);
}

TEST(ElasticTest, APlanWithAGangThatTheJobDoesNotHaveIsRefused) {
  const auto plan_of = [](int tier, int gpus) {
    return [=](const Snapshot& seen) {
      Plan plan;
      plan.allocations.push_back({seen.jobs.front().id, tier, gpus});
      return plan;
    };
  };
  Workload workload = one_elastic_job();
  EXPECT_EQ(refusal([&] { (void)simulate(workload, plan_of(0, 2)); }),
            "simulate: the policy gives job 1 2 GPUs, it asks for 1 or another of its gangs");
  workload.tiers.push_back({.name = "b", .nodes = 4});
  workload.jobs.front().steps_per_s = {1, 1};
  workload.jobs.front().gangs = {{.gpus = 4, .steps_per_s = {3, 0}}};
  EXPECT_EQ(refusal([&] { (void)simulate(workload, plan_of(1, 4)); }),
            "simulate: the policy puts job 1 on tier 'b', where it cannot run");
}

TEST(ElasticTest, AGangThatMakesNoSenseIsRefused) {
  const auto with = [](const std::vector<Gang>& gangs, double restart_s = -1) {
    Workload workload = one_elastic_job();
    workload.jobs.front().gangs = gangs;
    workload.jobs.front().restart_s = restart_s;
    return refusal([&] { validate(workload); });
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({{0, {1}}}), "workload: job 1 has a gang of 0 GPUs, expected at least 1");
  EXPECT_EQ(with({{1, {1}}}), "workload: job 1 has its gang of 1 GPUs twice");
  EXPECT_EQ(with({{2, {1}}, {2, {1}}}), "workload: job 1 has its gang of 2 GPUs twice");
  EXPECT_EQ(with({{2, {}}}),
            "workload: job 1 has 0 step rates with 2 GPUs, expected 1, one for each tier");
  EXPECT_EQ(with({{2, {-1}}}),
            "workload: job 1 has steps_per_s -1 with 2 GPUs, expected 0 or more and finite");
  EXPECT_NE(with({}, INFINITY), "");
  EXPECT_NE(with({}, NAN), "");
}

/// Jobs of one to three gangs on two tiers, of concave speeds, with restarts of their own.
Workload random_elastic(std::uint64_t seed, int jobs = 30) {
  const detail::Rng rng{seed};
  Workload out;
  out.name = "elastic";
  out.tiers = {{.name = "slow", .nodes = 3, .gpus_per_node = 4},
               {.name = "fast", .nodes = 1, .gpus_per_node = 8}};
  for (int i = 0; i < jobs; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    const double tail = 0.4 + 0.6 * rng.uniform(id, 0), faster = 0.5 + 3 * rng.uniform(id, 1);
    const auto rates = [&](int gpus) {
      return std::vector<double>{std::pow(gpus, tail), faster * std::pow(gpus, tail)};
    };
    WorkloadJob job{.id = i};
    job.submit_s = 60 * rng.uniform(id, 2) * i;
    job.budget_steps = std::exp(3 + 6 * rng.uniform(id, 3));
    job.gpus = 1 << (rng.bits(id, 4) % 3);
    job.steps_per_s = rates(job.gpus);
    for (const int gpus : {1, 2, 4, 8}) {
      if (gpus != job.gpus && rng.uniform(id, 10 + gpus) < 0.7) {
        job.gangs.push_back({gpus, rates(gpus)});
      }
    }
    if (rng.uniform(id, 5) < 0.5) job.restart_s = 30 * rng.uniform(id, 6);
    out.jobs.push_back(job);
  }
  return out;
}

/// Each run makes the steps of its seconds after the restart, and all of them are the job's work.
void expect_work_conserved(const Workload& workload, const Simulation& run, double restart_s) {
  std::map<std::int64_t, double> steps;
  for (const JobSpan& span : run.spans) {
    const WorkloadJob& job = *jobs_by_id(workload).at(span.job);
    std::vector<double> rates = job.steps_per_s;
    for (const Gang& gang : job.gangs) {
      if (gang.gpus == span.gpus) rates = gang.steps_per_s;
    }
    const double pause_s = job.restart_s < 0 ? restart_s : job.restart_s;
    const double runs_s = span.end_s - span.start_s - (steps.contains(job.id) ? pause_s : 0);
    steps[job.id] += rates[static_cast<std::size_t>(span.tier)] * std::max(0.0, runs_s);
  }
  for (const WorkloadJob& job : workload.jobs) {
    ASSERT_NEAR(steps[job.id], job.budget_steps, 1e-4 * job.budget_steps + 1e-3) << job.id;
  }
}

/// Any of the plans that can be carried out.
Policy at_random(std::uint64_t seed) {
  return [seed](const Snapshot& seen) {
    const detail::Rng rng{seed};
    const auto now = static_cast<std::uint64_t>(seen.now_s * 1000);
    std::vector<int> room;
    for (const Tier& tier : seen.tiers) room.push_back(tier.gpus());
    Plan plan;
    for (const Job& job : seen.jobs) {
      const std::uint64_t draw = rng.bits(now, static_cast<std::uint64_t>(job.id));
      const Option& option = job.options[draw % job.options.size()];
      if (room[option.tier] < option.gpus) continue;
      room[option.tier] -= option.gpus;
      plan.allocations.push_back({job.id, option.tier, option.gpus});
    }
    return plan;
  };
}

TEST(ElasticTest, WhateverThePolicyGpusAreNotOversubscribedAndWorkIsConserved) {
  int other_gangs = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Workload workload = random_elastic(seed);
    SimulationOptions options{.restart_s = 12, .round_s = 45, .in_nodes = seed % 3 == 0};
    std::vector<Simulation> runs{simulate(workload, at_random(seed), options)};
    for (const std::string_view policy : {"best_value", "goodput", "sia", "pollux"}) {
      runs.push_back(simulate(workload, policy, options));
    }
    for (const Simulation& run : runs) {
      SCOPED_TRACE(run.policy + " " + std::to_string(seed));
      expect_capacities_kept(workload, run);
      expect_spans_possible(workload, run);
      expect_columns_of_spans(workload, run, 12);
      expect_accounts_agree(run);
      expect_work_conserved(workload, run, 12);
      EXPECT_TRUE(all_finished(run));
      EXPECT_GE(run.mean_jct_s, run.lower_bound_jct_s * (1 - 1e-9));
      for (const JobSpan& span : run.spans) {
        other_gangs += span.gpus != jobs_by_id(workload).at(span.job)->gpus;
      }
    }
  }
  EXPECT_GT(other_gangs, 1000);
}

TEST(ElasticTest, FailuresLeaveTheWorkOfTheLastCheckpoint) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Workload workload = random_elastic(seed);
    SimulationOptions options{.seed = seed, .restart_s = 12, .round_s = 45};
    options.failures = {.node_every_s = 4000, .repair_s = 300, .job_every_s = 2000};
    for (const std::string_view policy : {"goodput", "sia", "pollux"}) {
      const Simulation run = simulate(workload, policy, options);
      expect_capacities_kept(workload, run);
      EXPECT_TRUE(all_finished(run));
      EXPECT_GT(run.failures, 0);
    }
  }
}

TEST(ElasticTest, PoliciesThatChooseNoGangKeepTheOneAskedFor) {
  const Workload workload = random_elastic(3);
  Workload rigid = workload;
  for (WorkloadJob& job : rigid.jobs) job.gangs.clear();
  for (const PolicyInfo& policy : policies()) {
    if (policy.elastic) continue;
    const Simulation with = simulate(workload, policy.name), without = simulate(rigid, policy.name);
    EXPECT_EQ(with.jobs.end_s, without.jobs.end_s) << policy.name;
    EXPECT_EQ(with.spans, without.spans) << policy.name;
  }
}

// ---- plans against all choices

struct Choice {
  double value;
  int tier, gpus;
};

/// The best sum over all choices of at most one option each.
double best_of_all(const std::vector<std::vector<Choice>>& options, std::vector<int> room,
                   std::size_t job = 0) {
  if (job == options.size()) return 0;
  double best = best_of_all(options, room, job + 1);
  for (const Choice& choice : options[job]) {
    if (room[choice.tier] < choice.gpus) continue;
    room[choice.tier] -= choice.gpus;
    best = std::max(best, choice.value + best_of_all(options, room, job + 1));
    room[choice.tier] += choice.gpus;
  }
  return best;
}

struct Moment {
  std::vector<Tier> tiers;
  std::vector<Job> jobs;
  std::vector<Allocation> running;

  [[nodiscard]] Snapshot seen() const { return {600, tiers, jobs, running}; }
  [[nodiscard]] std::vector<int> room() const {
    std::vector<int> out;
    for (const Tier& tier : tiers) out.push_back(tier.gpus());
    return out;
  }
};

/// Five jobs with up to six options on two small tiers; every other one runs.
Moment random_moment(std::uint64_t seed) {
  const detail::Rng rng{seed};
  Moment out;
  out.tiers = {{.name = "slow", .nodes = 5}, {.name = "fast", .nodes = 3}};
  std::vector<int> room = out.room();
  for (int i = 0; i < 5; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    Job job{.id = i, .submit_s = 500 * rng.uniform(id, 0)};
    for (const int tier : {0, 1}) {
      for (const int gpus : {1, 2, 4}) {
        if (gpus > out.tiers[tier].gpus()) continue;
        const double rate = (1 + tier) * std::pow(gpus, 0.3 + 0.7 * rng.uniform(id, 1 + tier));
        job.options.push_back({tier, gpus, rate});
      }
    }
    job.remaining_steps = {10 + 1000 * rng.uniform(id, 5)};
    const Option& option = job.options[rng.bits(id, 6) % job.options.size()];
    if (i % 2 == 0 && room[option.tier] >= option.gpus) {
      room[option.tier] -= option.gpus;
      job.attained_s = 50;
      job.restart_s = 20 * rng.uniform(id, 7);
      out.running.push_back({i, option.tier, option.gpus, 540});
    }
    out.jobs.push_back(job);
  }
  return out;
}

TEST(ElasticTest, ThePlannerFindsTheBestOfAllChoicesAmongGangs) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Moment moment = random_moment(seed);
    moment.running.clear();  // so that a second is worth rate / steps left, without restarts
    std::vector<std::vector<Choice>> options;
    for (Job& job : moment.jobs) {
      job.attained_s = 0;
      options.emplace_back();
      for (const Option& option : job.options) {
        options.back().push_back(
            {option.steps_per_s / job.remaining_steps.front(), option.tier, option.gpus});
      }
    }
    const double best = best_of_all(options, moment.room());
    const Plan plan = glidepath::plan(moment.seen(), {.gap = 0});
    ASSERT_NEAR(plan.value, best, 1e-9 * best) << seed;
    ASSERT_GE(plan.bound, best * (1 - 1e-12)) << seed;
    ASSERT_TRUE(violations(moment.seen(), plan).empty()) << seed;
  }
}

/// The policy's plan of a moment is the best of all choices to a gap, where an option of scaled
/// goodput x is worth `worth(x)`, a waiting job may take up to `least_gpus`, another `growth` times
/// what it has. Returns how many running jobs change.
int expect_program_solved(std::string_view policy, std::uint64_t seed, double gap, int least_gpus,
                          int growth, double (*worth)(double)) {
  const Moment moment = random_moment(seed);
  std::vector<std::vector<Choice>> options;
  for (const Job& job : moment.jobs) {
    const auto held = std::ranges::find(moment.running, job.id, &Allocation::job);
    const bool runs = held != moment.running.end();
    double least = INFINITY;
    for (const Option& option : job.options) least = std::min(least, option.steps_per_s);
    const double age_s = 600 - job.submit_s;
    options.emplace_back();
    for (const Option& option : job.options) {
      if (option.gpus > std::max(least_gpus, growth * (runs ? held->gpus : 0))) continue;
      const bool keeps = runs && option.tier == held->tier && option.gpus == held->gpus;
      // No restart so far, so r = T / (T + S).
      const double r = keeps || !runs ? 1 : age_s / (age_s + job.restart_s);
      const double value = worth(r * option.steps_per_s / least);
      if (value > 0) options.back().push_back({value, option.tier, option.gpus});
    }
  }
  const detail::PolicyTraits& traits = detail::policy_named(policy);
  const SimulationOptions how;
  const detail::PairTable alone;
  const Policy decide = traits.make({traits.info, how, alone});
  const double best = best_of_all(options, moment.room());
  const Plan plan = decide(moment.seen());
  EXPECT_LE(plan.value, best * (1 + 1e-9)) << seed;
  EXPECT_GE(plan.value, best * (1 - gap)) << seed;
  EXPECT_GE(plan.bound, best * (1 - 1e-12)) << seed;
  EXPECT_TRUE(violations(moment.seen(), plan).empty()) << seed;
  int moved = 0;
  for (const Allocation& held : moment.running) {
    const auto now = std::ranges::find(plan.allocations, held.job, &Allocation::job);
    moved += now == plan.allocations.end() || now->gpus != held.gpus;
  }
  return moved;
}

TEST(ElasticTest, SiaFindsTheBestOfAllChoicesOfItsProgram) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    moved += expect_program_solved("sia", seed, 1e-4, 1, 2,
                                   [](double x) { return 1.1 - 1 / std::sqrt(x); });
  }
  EXPECT_GT(moved, 100);
}

TEST(ElasticTest, GoodputFindsTheLargestSumOfLogarithms) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    moved += expect_program_solved("goodput", seed, PlanOptions{}.gap, 4, 4,
                                   [](double x) { return 1 + std::log(x); });
  }
  EXPECT_GT(moved, 100);
}

TEST(ElasticTest, SiaGrowsAGangToTwiceTheLargestSoFarAndOnlyInRounds) {
  Workload workload = one_elastic_job();
  workload.tiers = {{.name = "a", .nodes = 8}};
  workload.jobs.front().budget_steps = 1e5;
  workload.jobs.front().gangs = {{2, {2}}, {4, {4}}, {8, {8}}};
  workload.jobs.front().submit_s = 30;
  const Simulation run = simulate(workload, "sia");
  std::vector<std::pair<double, int>> starts;
  for (const JobSpan& span : run.spans) starts.emplace_back(span.start_s, span.gpus);
  const std::vector<std::pair<double, int>> expected{{60, 1}, {120, 2}, {180, 4}, {240, 8}};
  EXPECT_EQ(starts, expected);
}

// ---- Pollux

/// What Pollux gives a job for an option: 1 / (speedup over a fair share + 0.001).
double pollux_cost(const Moment& moment, const Job& job, const Option& option) {
  const int fair = (8 + 4) / 5;  // GPUs over jobs, rounded up
  const auto mean_rate = [&](int gpus) {
    double sum = 0;
    int tiers = 0;
    for (const Option& each : job.options) {
      if (each.gpus == gpus) sum += each.steps_per_s, ++tiers;
    }
    return sum / tiers;
  };
  const double share = std::max(mean_rate(1), mean_rate(fair));
  const auto held = std::ranges::find(moment.running, job.id, &Allocation::job);
  const bool keeps =
      held != moment.running.end() && held->tier == option.tier && held->gpus == option.gpus;
  const double age_s = 600 - job.submit_s;
  const double factor = keeps ? 1 : age_s / (age_s + job.restart_s);
  return 1 / (factor * mean_rate(option.gpus) / share + 1e-3);
}

TEST(ElasticTest, PolluxMostlyFindsTheFittestOfAllChoicesAndElseOneNearIt) {
  const detail::PolicyTraits& traits = detail::policy_named("pollux");
  const SimulationOptions how;
  const detail::PairTable alone;
  int missed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Moment moment = random_moment(seed);
    std::vector<std::vector<Choice>> options;
    for (const Job& job : moment.jobs) {
      const auto held = std::ranges::find(moment.running, job.id, &Allocation::job);
      const int most = held == moment.running.end() ? 1 : 2 * held->gpus;
      options.emplace_back();
      for (const Option& option : job.options) {
        if (option.gpus > most) continue;
        options.back().push_back(
            {1e3 - pollux_cost(moment, job, option), option.tier, option.gpus});
      }
    }
    const double cost = 5 * 1e3 - best_of_all(options, moment.room());
    const Policy decide = traits.make({traits.info, how, alone});
    const Plan plan = decide(moment.seen());
    EXPECT_LE(plan.value, 5 / cost * (1 + 1e-8)) << seed;
    EXPECT_GE(plan.value, 5 / cost * 0.99) << seed;
    missed += plan.value < 5 / cost * (1 - 1e-8);
    EXPECT_GE(plan.bound, 5 / cost * (1 - 1e-8)) << seed;
    EXPECT_TRUE(violations(moment.seen(), plan).empty()) << seed;
    double planned = 5 * 1e3;
    for (const Allocation& given : plan.allocations) {
      const Job& job = moment.jobs[given.job];
      const auto option = std::ranges::find_if(job.options, [&](const Option& each) {
        return each.tier == given.tier && each.gpus == given.gpus;
      });
      planned -= 1e3 - pollux_cost(moment, job, *option);
    }
    EXPECT_NEAR(plan.value, 5 / planned, 1e-8 * plan.value) << seed;
  }
  EXPECT_LE(missed, 6);
}

TEST(ElasticTest, AloneAJobGrowsUnderPolluxToItsBestGangAndNoFurther) {
  Workload workload = one_elastic_job();
  workload.tiers = {{.name = "a", .nodes = 2, .gpus_per_node = 8}};
  workload.jobs.front().budget_steps = 1e5;
  workload.jobs.front().gangs = {{2, {2}}, {4, {3.5}}, {8, {3}}, {16, {2}}};
  const Simulation run = simulate(workload, "pollux");
  std::vector<std::pair<double, int>> starts;
  for (const JobSpan& span : run.spans) starts.emplace_back(span.start_s, span.gpus);
  const std::vector<std::pair<double, int>> expected{{0, 1}, {60, 2}, {120, 4}};
  EXPECT_EQ(starts, expected);
}

TEST(ElasticTest, UnderPolluxAGangOfSeveralNodesSharesNoneWithAnotherSuchGang) {
  // Three jobs of six GPUs on four nodes of four: two of them would share a node.
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 4, .gpus_per_node = 4}};
  for (int id = 0; id < 3; ++id) {
    workload.jobs.push_back({.id = id, .gpus = 6, .duration_s = 1000});
  }
  const Simulation run = simulate(workload, "pollux");
  EXPECT_EQ(run.spans.size(), 3);
  EXPECT_EQ(std::ranges::count(run.jobs.start_s, 0), 2);
  // Two of five and two of three GPUs: a part of a node may go to a gang within it.
  workload.jobs = {{.id = 0, .gpus = 5, .duration_s = 1000},
                   {.id = 1, .gpus = 5, .duration_s = 1000},
                   {.id = 2, .gpus = 3, .duration_s = 1000},
                   {.id = 3, .gpus = 3, .duration_s = 1000}};
  EXPECT_EQ(std::ranges::count(simulate(workload, "pollux").jobs.start_s, 0), 4);
}

TEST(ElasticTest, TheLowerBoundHoldsForSchedulesAtRandom) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Workload workload = random_elastic(seed, 2);
    for (WorkloadJob& job : workload.jobs) job.submit_s = job.restart_s = 0;
    const double bound = lower_bound_jct_s(workload);
    for (std::uint64_t draw = 0; draw < 20; ++draw) {
      SimulationOptions options{.round_s = 5};
      ASSERT_GE(simulate(workload, at_random(100 * seed + draw), options).mean_jct_s,
                bound * (1 - 1e-9));
    }
  }
}

}  // namespace
}  // namespace glidepath
