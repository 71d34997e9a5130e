// SPDX-License-Identifier: Apache-2.0
#include "glidepath/plan.hpp"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "plan/round.hpp"
#include "plan_cluster.hpp"

namespace glidepath {
namespace {

/// The parts of gangs that fill no node, the largest first; none where whole nodes are too many.
std::vector<std::int64_t> parts_of(const std::vector<std::int64_t>& gangs, std::int64_t size,
                                   std::int64_t& nodes) {
  std::vector<std::int64_t> parts;
  for (const std::int64_t gpus : gangs) {
    nodes -= gpus / size;
    if (gpus % size > 0) parts.push_back(gpus % size);
  }
  std::sort(parts.begin(), parts.end(), std::greater<>());
  return parts;
}

/// Each part where it leaves the least room, one by one.
bool fit_one_by_one(const std::vector<std::int64_t>& gangs, std::int64_t nodes, std::int64_t size) {
  const std::vector<std::int64_t> parts = parts_of(gangs, size, nodes);
  if (nodes < 0) return false;
  std::vector<std::int64_t> rooms(nodes, size);
  for (const std::int64_t part : parts) {
    std::sort(rooms.begin(), rooms.end());
    const auto room = std::lower_bound(rooms.begin(), rooms.end(), part);
    if (room == rooms.end()) return false;
    *room -= part;
  }
  return true;
}

/// Whether any way to put the parts into nodes exists.
bool fit_somehow(const std::vector<std::int64_t>& gangs, std::int64_t nodes, std::int64_t size) {
  const std::vector<std::int64_t> parts = parts_of(gangs, size, nodes);
  if (nodes < 0) return false;
  std::vector<std::int64_t> rooms(nodes, size);
  const std::function<bool(std::size_t)> place = [&](std::size_t i) {
    if (i == parts.size()) return true;
    return std::any_of(rooms.begin(), rooms.end(), [&](std::int64_t& room) {
      if (room < parts[i]) return false;
      room -= parts[i];
      const bool fits = place(i + 1);
      room += parts[i];
      return fits;
    });
  };
  return place(0);
}

TEST(GangsInNodesTest, AGangFitsWhereBestFitOrAnyWayPlacesThemAll) {
  Draws draw{{7}, 1};
  std::int64_t taken = 0, refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const bool few = trial % 2 == 0;
    const std::int64_t nodes = few ? 1 + draw.below(3) : 5 + draw.below(40);
    const std::int64_t size = few ? 3 + draw.below(6) : 1 + draw.below(12);
    detail::GangsInNodes counted(nodes, size);
    std::vector<std::int64_t> gangs;
    for (int k = 0; k < 200; ++k) {
      const std::int64_t gpus = 1 + draw.below(few ? size : size * 5 / 4);
      std::vector<std::int64_t> with = gangs;
      with.push_back(gpus);
      std::int64_t left = nodes;
      const std::size_t parts = parts_of(with, size, left).size();
      const bool fits = parts <= 7 ? fit_somehow(with, nodes, size)  // longer for more of them
                                   : fit_one_by_one(with, nodes, size);
      if (parts > 7 && parts <= 10 && !fits) continue;
      ASSERT_EQ(counted.have_room(gpus), fits) << gpus << " on " << nodes << " of " << size;
      ++(fits ? taken : refused);
      if (!fits) continue;
      counted.add(gpus);
      gangs = with;
      ASSERT_EQ(counted.fit(), detail::Fit::yes);
    }
  }
  EXPECT_GT(taken, 2000);
  EXPECT_GT(refused, 2000);
}

TEST(PlanTest, MemoryKeepsAJobOffASmallCard) {
  Cluster cluster;
  cluster.add(1, {100}).memory_gb = 12;
  cluster.add(2, {50}).memory_gb = 12;
  cluster.add(3, {10}).memory_gb = 12;
  const Plan plan = glidepath::plan(cluster.snapshot());
  EXPECT_EQ(plan.allocations.size(), 2u);
  for (const Allocation& a : plan.allocations) EXPECT_EQ(a.tier, 1);
}

TEST(PlanTest, QuotasAndPowerCapHold) {
  Cluster cluster = one_tier(10);
  for (std::int64_t id = 0; id < 20; ++id) {
    Job& job = add_to(cluster, id, {100.0 + static_cast<double>(id)}, 1 + static_cast<int>(id % 2));
    job.user = id % 4 == 0 ? "ada" : "bob";
    job.group = id < 15 ? "vision" : "text";
  }
  const auto gpus_of = [&](const Plan& plan, auto&& of) {
    int gpus = 0;
    for (const Allocation& a : plan.allocations) {
      if (of(cluster.jobs[static_cast<std::size_t>(a.job)])) gpus += a.gpus;
    }
    return gpus;
  };
  const auto ada = [](const Job& job) { return job.user == "ada"; };
  const auto text = [](const Job& job) { return job.group == "text"; };
  const auto all = [](const Job&) { return true; };
  EXPECT_GT(gpus_of(glidepath::plan(cluster.snapshot()), ada), 2);
  const Plan quota = glidepath::plan(
      cluster.snapshot(),
      {.limits = {.user_quota = {{"ada", 2}, {"bob", 4}}, .group_quota = {{"text", 1}}}});
  EXPECT_LE(gpus_of(quota, ada), 2);
  EXPECT_LE(gpus_of(quota, text), 1);
  EXPECT_EQ(gpus_of(quota, all), 6);
  const Plan capped = glidepath::plan(cluster.snapshot(), {.limits = {.power_cap_w = 350}});
  EXPECT_EQ(gpus_of(capped, all), 3);
}

TEST(PlanTest, JobsThatTogetherDrawThePowerCapAllRun) {
  for (const bool running : {true, false}) {
    for (int percent = 1; percent <= 100; ++percent) {
      Cluster cluster;
      cluster.tiers = {
          {.name = "one", .nodes = 1, .gpus_per_node = 8, .idle_watts = 55, .busy_watts = 400}};
      PlanOptions options;
      options.limits.power_cap_w = 0;
      for (const std::int64_t id : {0, 1, 2}) {
        Job& job = add_to(cluster, id, {1000}, 2);
        job.options[0].utilization = id == 0 ? percent / 100.0 : 0.8;
        job.preemptible = !running;
        if (running) cluster.running.push_back({.job = id, .gpus = 2});
        options.limits.power_cap_w += 2 * watts(cluster.tiers[0], job.options[0].utilization);
      }
      const Plan plan = glidepath::plan(cluster.snapshot(), options);
      EXPECT_EQ(plan.allocations.size(), 3u) << percent;
      EXPECT_TRUE(violations(cluster.snapshot(), plan, options.limits).empty()) << percent;
    }
  }
}

TEST(PlanTest, AStartIsGuaranteedItsMinimumRun) {
  Cluster cluster = one_tier(2);
  add_to(cluster, 1, {1e6}, 2).attained_s = 100;
  add_to(cluster, 2, {1.0});
  cluster.running = {{.job = 1, .tier = 0, .gpus = 2, .since_s = 900}};
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{2}));
  const Plan kept = glidepath::plan(cluster.snapshot(), {.limits = {.min_run_s = 200}});
  EXPECT_EQ(placed(kept), (std::vector<std::int64_t>{1}));  // the whole gang
  EXPECT_NE(kept.reasons[0].text.find("guaranteed run"), std::string::npos);
  cluster.jobs[0].preemptible = false;
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, AgeingLiftsALongJobThatHasWaited) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {1e5}).waiting_s = 1e5;
  add_to(cluster, 2, {100}).waiting_s = 0;
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.dynamics = {.ageing_s = 1000}})),
            (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, AfterTheLongestWaitTheBigJobGetsTheNextGpusAndOnlyShortOnesFillThem) {
  Cluster cluster = one_tier(4);
  add_to(cluster, 1, {50, 60, 70}, 3).preemptible = false;  // ends within 70 s
  cluster.running = {{.job = 1, .tier = 0, .gpus = 3, .since_s = 900}};
  add_to(cluster, 2, {1e6}, 4).waiting_s = 7200;  // the big one
  Job& filler = add_to(cluster, 3, {40});
  filler.preemptible = false;
  Job& blocker = add_to(cluster, 4, {5000});
  blocker.preemptible = false;
  blocker.weight = 1e6;
  EXPECT_NE(allocation_of(glidepath::plan(cluster.snapshot()), 4), nullptr);
  const Plan plan = glidepath::plan(cluster.snapshot(), {.dynamics = {.max_wait_s = 3600}});
  EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1, 3}));
  EXPECT_NE(plan.reasons[1].text.find("kept for it"), std::string::npos) << plan.reasons[1].text;
  cluster.running.clear();
  cluster.jobs[0].waiting_s = 0;
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.dynamics = {.max_wait_s = 3600}})),
            (std::vector<std::int64_t>{2}));
}

TEST(PlanTest, ThoseThatAreOwedAPlaceKeepOffTheGpusOfWhoWaitedLonger) {
  Cluster cluster = one_tier(5);
  Job& ending = add_to(cluster, 1, {400}, 2);
  ending.preemptible = false;
  ending.waiting_s = 0;
  cluster.running = {{.job = 1, .tier = 0, .gpus = 2, .since_s = 900}};
  add_to(cluster, 2, {1000}, 4).waiting_s = 5000;
  add_to(cluster, 3, {10000}, 2).waiting_s = 4500;  // would stay for longer than those 400 s
  add_to(cluster, 4, {10000}, 1).waiting_s = 4000;  // there is one more
  add_to(cluster, 5, {10000}, 1).waiting_s = 3900;
  add_to(cluster, 6, {300}, 1).waiting_s = 3800;  // ends before
  const Plan plan = glidepath::plan(cluster.snapshot(), {.dynamics = {.max_wait_s = 3600}});
  EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1, 4, 6}));
}

TEST(PlanTest, NoGpusAreKeptForAJobThatTheLimitsNeverLetRun) {
  Cluster cluster = one_tier(4);
  Job& large = add_to(cluster, 1, {1000}, 3);
  large.user = "a";
  large.waiting_s = 5000;
  Job& other = add_to(cluster, 2, {1000}, 4);
  other.group = "b";
  other.options[0].utilization = 0.5;
  const PlanDynamics dynamics{.max_wait_s = 3600};
  for (const PlanLimits& limits : {PlanLimits{.user_quota = {{"a", 2}}, .min_run_s = 300},
                                   PlanLimits{.group_quota = {{"", 2}}, .min_run_s = 300},
                                   PlanLimits{.power_cap_w = 250, .min_run_s = 300}}) {
    const Plan plan = glidepath::plan(cluster.snapshot(), {.limits = limits, .dynamics = dynamics});
    EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{2}));
  }
}

TEST(PlanTest, GpusAreKeptForWhenAQuotaLeavesAJobRoom) {
  Cluster cluster = one_tier(4);
  Job& first = add_to(cluster, 1, {400}, 2);
  first.user = "a";
  first.preemptible = false;
  first.waiting_s = 0;
  cluster.running = {{.job = 1, .tier = 0, .gpus = 2, .since_s = 900}};
  Job& second = add_to(cluster, 2, {1000}, 2);
  second.user = "a";
  second.waiting_s = 5000;
  add_to(cluster, 3, {300}, 2).preemptible = false;  // ends before the quota has room
  const PlanOptions options{.limits = {.user_quota = {{"a", 2}}}, .dynamics = {.max_wait_s = 3600}};
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), options)),
            (std::vector<std::int64_t>{1, 3}));
}

TEST(PlanTest, EveryWaitIsBounded) {
  // Short jobs arrive for ever on one GPU; one long job would never run by value alone.
  const auto longest_wait = [](double max_wait_s) {
    Cluster cluster = one_tier(1);
    add_to(cluster, 0, {1e7});
    double waited = 0;
    for (int round = 1; round <= 400; ++round) {
      cluster.now_s = 100.0 * round;
      add_to(cluster, round, {90}).submit_s = cluster.now_s;
      cluster.jobs[0].waiting_s = waited;
      const Plan plan =
          glidepath::plan(cluster.snapshot(), {.dynamics = {.max_wait_s = max_wait_s}});
      if (allocation_of(plan, 0)) return waited;
      waited += 100;
      cluster.jobs.resize(1);
    }
    return kInfinity;
  };
  EXPECT_EQ(longest_wait(kInfinity), kInfinity);
  EXPECT_EQ(longest_wait(5000), 5000);
}

TEST(PlanTest, GangsFitInNodesBesideThoseThatStay) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 3, .gpus_per_node = 4}};
  for (std::int64_t id = 1; id <= 3; ++id) {
    cluster.add(id, {100}, id == 1 ? 2 : 3).preemptible = false;
    cluster.running.push_back({.job = id, .tier = 0, .gpus = id == 1 ? 2 : 3, .since_s = 0});
  }
  cluster.add(4, {100}, 4);
  for (Job& job : cluster.jobs) job.options.pop_back();
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.size(), 4u);
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), {.limits = {.in_nodes = true}}).allocations.size(),
            3u);
  cluster.jobs[3].priority = 1;
  cluster.jobs[3].waiting_s = 1e6;
  EXPECT_EQ(glidepath::plan(cluster.snapshot(),
                            {.limits = {.in_nodes = true}, .dynamics = {.max_wait_s = 10}})
                .allocations.size(),
            3u);
}

TEST(PlanTest, JobsStartOnATierBesideOneWhoseGangsAreNotFoundToPack) {
  Cluster cluster;
  cluster.tiers = {{.name = "old", .nodes = 6, .gpus_per_node = 8},
                   {.name = "new", .nodes = 4, .gpus_per_node = 8}};
  std::int64_t id = 0;
  for (const int gpus : {4, 4, 4, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2}) {
    add_to(cluster, id, {1000}, gpus).preemptible = false;
    cluster.running.push_back({.job = id++, .tier = 0, .gpus = gpus, .since_s = 0});
  }
  for (; id < 22; ++id) add_to(cluster, id, {1000}, 3).options[0].tier = 1;
  const PlanOptions options{.limits = {.in_nodes = true}};
  const Plan plan = glidepath::plan(cluster.snapshot(), options);
  EXPECT_EQ(plan.allocations.size(), 22u);
  EXPECT_TRUE(violations(cluster.snapshot(), plan, options.limits).empty());
}

TEST(PlanTest, GangsFitInNodesOnRequest) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 2, .gpus_per_node = 4}};
  for (std::int64_t id = 1; id <= 4; ++id) {
    cluster.add(id, {100}, id <= 2 ? 3 : 2).options.pop_back();
  }
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.size(), 3u);
  const Plan plan = glidepath::plan(cluster.snapshot(), {.limits = {.in_nodes = true}});
  int threes = 0;
  for (const Allocation& a : plan.allocations) threes += a.gpus == 3;
  EXPECT_TRUE(threes == 0 || plan.allocations.size() <= 3);
  EXPECT_TRUE(threes < 2 || plan.allocations.size() == 2);
}

}  // namespace
}  // namespace glidepath
