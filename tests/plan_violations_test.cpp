// SPDX-License-Identifier: Apache-2.0
#include "glidepath/plan.hpp"

#include <gtest/gtest.h>

#include "plan_cluster.hpp"

namespace glidepath {
namespace {

TEST(ViolationsTest, EveryWayToBreakAPlanIsReported) {
  Cluster cluster;
  for (std::int64_t id = 1; id <= 4; ++id) cluster.add(id, {1000});
  const Plan good = glidepath::plan(cluster.snapshot());
  ASSERT_TRUE(violations(cluster.snapshot(), good).empty());
  const auto found = [&](auto&& spoil) {
    Plan plan = good;
    spoil(plan);
    return violations(cluster.snapshot(), plan).size();
  };
  EXPECT_EQ(found([](Plan& p) { p.allocations[0].job = 99; }), 1u);
  EXPECT_EQ(found([](Plan& p) { p.allocations[0].job = p.allocations[1].job; }), 1u);
  EXPECT_EQ(found([](Plan& p) { p.allocations[0].tier = 7; }), 1u);
  EXPECT_EQ(found([](Plan& p) { p.allocations[0].gpus = 0; }), 1u);
  EXPECT_EQ(found([](Plan& p) {
              for (Allocation& a : p.allocations) {
                if (a.tier == 0) {
                  a.gpus = 2;
                  break;
                }
              }
            }),
            1u);
  EXPECT_EQ(found([](Plan& p) { p.allocations[0].since_s = 1e9; }), 1u);
  EXPECT_EQ(found([](Plan& p) { p.stop = {p.allocations[0].job}; }), 1u);
  EXPECT_EQ(found([](Plan& p) { p.stop = {99, 99}; }), 3u);
  EXPECT_EQ(found([](Plan& p) { p.bound = p.value / 2; }), 1u);
  EXPECT_EQ(found([](Plan& p) { p.prices[0] = -1; }), 1u);
  EXPECT_EQ(found([](Plan& p) {
              for (Allocation& a : p.allocations) a.tier = 1;
            }),
            1u);
  cluster.jobs[0].memory_gb = 1000;
  EXPECT_EQ(violations(cluster.snapshot(), good).size(), 1u);
}

TEST(ViolationsTest, EveryLimitThatAPlanExceedsIsReported) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 2, .gpus_per_node = 4, .busy_watts = 100}};
  for (std::int64_t id = 1; id <= 2; ++id) {
    Job& job = cluster.add(id, {1000}, 3);
    job.options.pop_back();
    job.user = "ada", job.group = "vision";
  }
  cluster.add(3, {1000}, 2).options.pop_back();
  const auto found = [&](std::initializer_list<std::int64_t> jobs, const PlanLimits& limits) {
    Plan plan;
    for (const std::int64_t id : jobs) {
      const int gpus = cluster.jobs[static_cast<std::size_t>(id - 1)].options[0].gpus;
      plan.allocations.push_back({.job = id, .tier = 0, .gpus = gpus});
    }
    const auto sentences = violations(cluster.snapshot(), plan, limits);
    return sentences.size() == 1 ? sentences[0] : std::to_string(sentences.size());
  };
  EXPECT_EQ(found({1, 2, 3}, {}), "0");
  EXPECT_EQ(found({1, 2, 3}, {.in_nodes = true}), "the gangs on tier one do not fit in its nodes");
  EXPECT_EQ(found({1, 2}, {.in_nodes = true}), "0");
  EXPECT_EQ(found({1, 2}, {.user_quota = {{"ada", 5}}}),
            "the user 'ada' holds 6 GPUs, the quota is 5");
  EXPECT_EQ(found({1, 2}, {.group_quota = {{"vision", 5}}}),
            "the group 'vision' holds 6 GPUs, the quota is 5");
  EXPECT_EQ(found({1, 2}, {.power_cap_w = 599}), "the GPUs in use draw 600 W, the cap is 599");
  cluster.running = {{.job = 1, .tier = 0, .gpus = 3, .since_s = 950}};
  EXPECT_EQ(found({2}, {.min_run_s = 40}), "0");
  EXPECT_EQ(found({2}, {.min_run_s = 60}), "job 1 loses its GPUs, its guaranteed run is not over");
  cluster.jobs[0].preemptible = false;
  EXPECT_EQ(found({2}, {}), "job 1 loses its GPUs, it may not be preempted");
}

TEST(ViolationsTest, AGuaranteedJobThatTheLimitsLeaveNoRoomIsNotReported) {
  Cluster cluster = one_tier(2);
  for (const std::int64_t id : {1, 2}) {
    Job& job = add_to(cluster, id, {1000});
    job.preemptible = id == 1;
    job.user = "ada", job.group = "vision";
    cluster.running.push_back({.job = id, .gpus = 1, .since_s = 990});
  }
  for (PlanLimits limits :
       {PlanLimits{.user_quota = {{"ada", 1}}}, PlanLimits{.group_quota = {{"vision", 1}}},
        PlanLimits{.power_cap_w = 150}}) {
    limits.min_run_s = 60;
    const Plan plan = glidepath::plan(cluster.snapshot(), {.limits = limits});
    EXPECT_EQ(plan.allocations.size(), 1u);
    EXPECT_TRUE(violations(cluster.snapshot(), plan, limits).empty());
    Plan none = plan;  // there is room for one of the two
    none.allocations.clear();
    EXPECT_EQ(violations(cluster.snapshot(), none, limits).size(), 2u);
    EXPECT_EQ(violations(cluster.snapshot(), plan, {.min_run_s = 60}).size(), 1u);
  }
}

TEST(ViolationsTest, AGangListedTwiceCountsByTheOptionThatDrawsLeast) {
  for (const auto& [first, second] : {std::pair{0.5, 1.0}, std::pair{1.0, 0.5}}) {
    Cluster cluster = one_tier(2);
    for (const std::int64_t id : {1, 2}) {
      Job& job = add_to(cluster, id, {1000});
      job.options.push_back(job.options.front());
      job.options.front().utilization = first;
      job.options.back().utilization = second;
      job.preemptible = false;  // so that the two stay a pair
    }
    PlanOptions options;
    options.limits.power_cap_w = 100;
    const Plan plan = glidepath::plan(cluster.snapshot(), options);
    ASSERT_EQ(plan.allocations.size(), 2u);
    EXPECT_TRUE(violations(cluster.snapshot(), plan, options.limits).empty()) << first;
    PlanLimits less;
    less.power_cap_w = 99;
    EXPECT_EQ(violations(cluster.snapshot(), plan, less).size(), 1u);
    Plan pair = plan;
    pair.allocations[0].partner = 2, pair.allocations[1].partner = 1;
    cluster.running = pair.allocations;
    EXPECT_TRUE(violations(cluster.snapshot(), pair, options.limits).empty()) << first;
  }
}

TEST(ViolationsTest, ANewPairIsReportedWhereNobodyMayShare) {
  Cluster cluster = one_tier(1);
  for (const std::int64_t id : {1, 2}) add_to(cluster, id, {1000}).sm_activity = 0.2;
  PlanOptions options;
  options.limits.sharing = Sharing::mps;
  const Plan plan = glidepath::plan(cluster.snapshot(), options);
  ASSERT_EQ(plan.allocations.size(), 2u);
  EXPECT_TRUE(violations(cluster.snapshot(), plan, options.limits).empty());
  EXPECT_EQ(violations(cluster.snapshot(), plan),
            std::vector<std::string>{"jobs 1 and 2 share GPUs, sharing is exclusive"});
  cluster.running = plan.allocations;
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());  // they share them already
  cluster.running.front().gpus = 2;
  EXPECT_EQ(violations(cluster.snapshot(), plan).size(), 1u);
}

TEST(ViolationsTest, LimitsThatPlanRefusesAreRefused) {
  const Cluster cluster;
  const auto refused = [&](const PlanLimits& limits) {
    return refusal([&] { (void)violations(cluster.snapshot(), {}, limits); });
  };
  EXPECT_EQ(refused({.user_quota = {{"ada", -1}}}),
            "violations: the quota of 'ada' is -1, expected 0 or more");
  EXPECT_EQ(refused({.group_quota = {{"vision", -1}}}),
            "violations: the quota of 'vision' is -1, expected 0 or more");
  EXPECT_EQ(refused({.sharing = static_cast<Sharing>(9)}),
            "violations: sharing is value 9, expected one of exclusive, naive, mps, mig");
  EXPECT_EQ(refused({.power_cap_w = -1}), "violations: power_cap_w is -1, expected 0 or more");
  EXPECT_EQ(refused({.min_run_s = kInfinity}),
            "violations: min_run_s is inf, expected 0 or more and finite");
}

TEST(ViolationsTest, TenThousandPlansOfRandomSnapshotsHaveNone) {
  for (std::uint64_t id = 0; id < 10'000; ++id) {
    Draws draw{{77}, id};
    Cluster cluster;
    cluster.now_s = 1e5;
    cluster.tiers[0].busy_watts = 200, cluster.tiers[1].busy_watts = 300;
    cluster.tiers[0].price_per_gpu_hour = 1, cluster.tiers[1].price_per_gpu_hour = 2;
    std::int64_t idle = cluster.tiers[0].gpus();
    const std::int64_t jobs = draw.below(id % 20 == 0 ? 60 : 20);
    for (std::int64_t j = 0; j < jobs; ++j) {
      std::vector<double> remaining(static_cast<std::size_t>(draw.below(20)));
      for (double& s : remaining) s = draw.uniform() < 0.3 ? kInfinity : 1e5 * draw.uniform();
      Job& job = cluster.add(j, std::move(remaining), 1 + static_cast<int>(draw.below(2)));
      job.weight = draw.uniform();
      job.attained_s = 1000 * draw.uniform();
      job.restart_s = 100 * draw.uniform();
      job.priority = static_cast<int>(draw.below(2));
      job.preemptible = draw.below(4) > 0;
      job.memory_gb = 4;
      job.sm_activity = draw.uniform();
      job.deadline_s = 2e5 * draw.uniform();
      job.user = draw.below(2) == 0 ? "ada" : "bob";
      const int gang = job.options[0].gpus;
      if (draw.below(4) == 0) {
        job.options.push_back({.tier = static_cast<int>(draw.below(2)),
                               .gpus = gang,
                               .steps_per_s = 0.5,
                               .sharing = static_cast<Sharing>(1 + draw.below(3))});
      }
      if (draw.below(3) > 0 || gang > idle) continue;
      cluster.running.push_back(
          {.job = j, .tier = 0, .gpus = gang, .since_s = 1e5 * draw.uniform()});
      const Allocation* before = j > 0 ? &cluster.running.front() : nullptr;
      if (before && before->partner < 0 && before->gpus == gang && before->job != j) {
        cluster.running.back().partner = before->job;
        cluster.running.front().partner = j;
      } else {
        idle -= gang;
      }
    }
    PlanOptions options{.objectives = {{static_cast<Objective>(id % 8)}}};
    if (id % 3 == 0) options.objectives.push_back({Objective::edp, 0.5});
    options.combine = draw.below(2) == 1 ? Combine::in_order : Combine::weighted;
    const double slack = 0.1 * draw.uniform();
    if (options.combine == Combine::in_order) options.slack = slack;
    const bool must_stay = draw.below(2) == 1;
    for (Job& job : cluster.jobs) job.preemptible = job.preemptible || !must_stay;
    if (id % 2 == 0) options.limits.user_quota = {{"ada", draw.below(4)}};
    if (id % 3 == 0) options.limits.group_quota = {{"", draw.below(5)}};
    if (id % 5 == 0) options.limits.power_cap_w = 1000 * draw.uniform();
    options.limits.sharing = static_cast<Sharing>(draw.below(4));
    if (must_stay) options.limits.min_run_s = 2e5 * draw.uniform();
    options.dynamics.max_wait_s = 2e5 * draw.uniform();
    options.limits.in_nodes = draw.below(2) == 1;
    const Plan plan = glidepath::plan(cluster.snapshot(), options);
    const std::vector<std::string> found = violations(cluster.snapshot(), plan, options.limits);
    EXPECT_TRUE(found.empty()) << id << ": " << found.front();
    EXPECT_EQ(plan.reasons.size(), cluster.jobs.size());
  }
}

}  // namespace
}  // namespace glidepath
