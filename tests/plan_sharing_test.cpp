// SPDX-License-Identifier: Apache-2.0
#include "glidepath/plan.hpp"

#include <gtest/gtest.h>

#include "plan_cluster.hpp"

namespace glidepath {
namespace {

TEST(PlanTest, AWaitingJobMayShareTheGpusOfALightOne) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {1000}).sm_activity = 0.05;
  add_to(cluster, 2, {1200}).sm_activity = 0.8;
  add_to(cluster, 3, {1300}).sm_activity = 0.9;
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.size(), 1u);
  const Plan plan = glidepath::plan(cluster.snapshot(), {.limits = {.sharing = Sharing::mps}});
  ASSERT_EQ(placed(plan), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(plan.allocations[0].partner, 2);
  EXPECT_EQ(plan.allocations[1].partner, 1);
  EXPECT_LE(plan.value, plan.bound);
  EXPECT_TRUE(violations(cluster.snapshot(), plan, {.sharing = Sharing::mps}).empty());
  EXPECT_NE(plan.reasons[1].text.find("with job 1 (mps)"), std::string::npos);
  for (Job& job : cluster.jobs) job.memory_gb = 13;  // 26 GB on a card of 24
  EXPECT_EQ(
      glidepath::plan(cluster.snapshot(), {.limits = {.sharing = Sharing::mps}}).allocations.size(),
      1u);
}

TEST(PlanTest, MeasuredPairsDecideWhoJoins) {
  Cluster cluster = one_tier(1);
  cluster.tiers[0].gpu = "A100";
  const char* kinds[] = {"host", "loud", "quiet"};
  for (std::int64_t id = 1; id <= 3; ++id) {
    Job& job = add_to(cluster, id, {1000.0 + 100 * static_cast<double>(id)});
    job.kind = kinds[id - 1];
    job.sm_activity = 0.5;
  }
  const std::vector<KindPair> measured{{"A100", Sharing::mps, "host", "loud", 4.0, 4.0},
                                       {"A100", Sharing::mps, "host", "quiet", 1.1, 1.2}};
  const Pairs pairs = learn_pairs(measured);
  const PlanOptions options{.pairs = &pairs, .limits = {.sharing = Sharing::mps}};
  const Plan plan = glidepath::plan(cluster.snapshot(), options);
  EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1, 3}));
  EXPECT_NE(plan.reasons[2].text.find("at 83 % of its speed, the other at 91 %"),
            std::string::npos);
  EXPECT_LE(plan.value, plan.bound);
  // The measured speeds are those of another card: the activities are equal, the shortest joins.
  cluster.tiers[0].gpu = "H100";
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), options)),
            (std::vector<std::int64_t>{1, 2}));
}

TEST(PlanTest, AJobThatListsSharedOptionsIsPairedAsTheySay) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {1000}).sm_activity = 0.05;
  add_to(cluster, 2, {1200}).sm_activity = 0.1;
  const PlanOptions mps{.limits = {.sharing = Sharing::mps}};
  const auto together = [&] {
    const Plan plan = glidepath::plan(cluster.snapshot(), mps);
    EXPECT_TRUE(violations(cluster.snapshot(), plan, mps.limits).empty());
    return plan.allocations.size() == 2;
  };
  const Plan pair = glidepath::plan(cluster.snapshot(), mps);
  EXPECT_TRUE(together());
  Option shared = cluster.jobs[1].options[0];
  shared.steps_per_s *= 0.9;
  shared.sharing = Sharing::mig;
  cluster.jobs[1].options.push_back(shared);
  EXPECT_FALSE(together());
  EXPECT_EQ(violations(cluster.snapshot(), pair, mps.limits).size(), 1u);
  cluster.jobs[1].options.back().sharing = Sharing::mps;
  EXPECT_TRUE(together());
  cluster.jobs[1].options.back().gpus = 2;
  EXPECT_FALSE(together());
}

TEST(PlanTest, APairStaysTogetherFromRoundToRound) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {1000}).sm_activity = 0.05;
  add_to(cluster, 2, {1200}).sm_activity = 0.8;
  add_to(cluster, 3, {1250}).sm_activity = 0.8;
  const PlanOptions mps{.limits = {.sharing = Sharing::mps}};
  const Plan first = glidepath::plan(cluster.snapshot(), mps);
  ASSERT_EQ(placed(first), (std::vector<std::int64_t>{1, 2}));
  cluster.running = first.allocations;
  cluster.now_s += 360;
  cluster.jobs[2].remaining_steps = {1190};  // a little better: not enough to break the pair
  const Plan second = glidepath::plan(cluster.snapshot(), mps);
  EXPECT_EQ(second.allocations, first.allocations);
  // Neither may be preempted: the pair keeps its one GPU, whatever is asked of new ones.
  for (Job& job : cluster.jobs) job.preemptible = false;
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), mps).allocations, first.allocations);
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations, first.allocations);
}

TEST(PlanTest, AGuestCountsAgainstQuotasAndPower) {
  Cluster cluster = one_tier(1);
  for (std::int64_t id = 1; id <= 2; ++id) {
    Job& job = add_to(cluster, id, {1000.0 + static_cast<double>(id)});
    job.user = "ada";
    job.sm_activity = 0.2;
    job.options[0].utilization = 0.2;
  }
  PlanOptions options{.limits = {.sharing = Sharing::mps}};
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), options).allocations.size(), 2u);
  options.limits.user_quota = {{"ada", 1}};
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), options).allocations.size(), 1u);
  options.limits.user_quota.clear();
  options.limits.power_cap_w = 30;  // 20 W for one, 40 W for both
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), options).allocations.size(), 1u);
}

TEST(PlanTest, AJobThatNoPartnerCouldNameIsRefusedWhereGpusAreShared) {
  Cluster cluster = one_tier(1);
  for (const std::int64_t id : {-2, -3}) add_to(cluster, id, {1000}).sm_activity = 0.2;
  EXPECT_EQ(refusal([&] {
              (void)glidepath::plan(cluster.snapshot(), {.limits = {.sharing = Sharing::mps}});
            }),
            "plan: job -2 has an id below 0, which no partner on shared GPUs can name");
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.size(), 1u);
}

}  // namespace
}  // namespace glidepath
