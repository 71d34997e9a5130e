// SPDX-License-Identifier: Apache-2.0
#include "glidepath/plan.hpp"

#include "glidepath/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "plan/order.hpp"

namespace glidepath {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Columns of a round.
struct Columns {
  std::vector<std::int64_t> job{}, tier{}, gpus{};
  std::vector<double> value{};
  std::vector<std::int64_t> capacity{};
  std::vector<double> watts{};
  double power_cap_w = kInfinity;
  std::vector<std::int64_t> user{}, group{}, user_quota{}, group_quota{}, node_gpus{};

  void add(std::int64_t j, std::int64_t t, std::int64_t k, double v) {
    job.push_back(j), tier.push_back(t), gpus.push_back(k), value.push_back(v);
  }
  [[nodiscard]] RoundView view() const {
    return {.job = job,
            .tier = tier,
            .gpus = gpus,
            .value = value,
            .capacity = capacity,
            .watts = watts,
            .power_cap_w = power_cap_w,
            .user = user,
            .group = group,
            .user_quota = user_quota,
            .group_quota = group_quota,
            .node_gpus = node_gpus};
  }
};

/// Numbers of one random instance, one draw after the other.
struct Draws {
  detail::Rng rng;
  std::uint64_t id, next = 0;
  double uniform() { return rng.uniform(id, next++); }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
  }
};

/// Instances of every kind: gangs of any size, ties, values over many decades, idle clusters.
Columns random_round(std::uint64_t id, std::int64_t max_jobs) {
  Draws draw{{11}, id};
  Columns round;
  const std::int64_t jobs = 1 + draw.below(max_jobs);
  const std::int64_t tiers = 1 + draw.below(4);
  const std::int64_t largest = std::int64_t{1} << draw.below(5);
  const int kind = static_cast<int>(draw.below(4));
  const double scale = std::pow(10.0, 18 * draw.uniform() - 9);
  std::int64_t total = 0;
  for (std::int64_t j = 0; j < jobs; ++j) {
    for (std::int64_t n = 1 + draw.below(8); n > 0; --n) {
      const std::int64_t k = 1 + draw.below(largest);
      const double u = draw.uniform();
      const double v = kind == 0   ? u
                       : kind == 1 ? static_cast<double>(k) * (1 + 0.1 * u)  // hard: v close to k
                       : kind == 2 ? static_cast<double>(1 + draw.below(3))  // ties
                                   : std::pow(10.0, 6 * u - 3);
      round.add(j, draw.below(tiers), k, v * scale);
      total += k;
    }
  }
  for (std::int64_t t = 0; t < tiers; ++t) {
    round.capacity.push_back(draw.below(2 + total / (4 * tiers)));
  }
  return round;
}

/// Adds limits beyond the tiers: each kind to about every other instance.
void add_limits(Columns& c, std::uint64_t id) {
  Draws draw{{12}, id};
  const bool power = draw.below(2) == 1, users = draw.below(2) == 1, groups = draw.below(2) == 1,
             nodes = draw.below(2) == 1;
  double watts = 0;
  for (std::size_t o = 0; o < c.job.size(); ++o) {
    if (users) c.user.push_back(c.job[o] % 3);
    if (groups) c.group.push_back(c.job[o] % 2);
    if (power) c.watts.push_back(static_cast<double>(c.gpus[o] * (50 + draw.below(250))));
    if (power) watts += c.watts.back();
  }
  if (power) c.power_cap_w = watts * 0.2 * draw.uniform();
  if (users) c.user_quota = {draw.below(12), draw.below(12), 1000};
  if (groups) c.group_quota = {draw.below(20), draw.below(20)};
  if (nodes) {
    for (std::size_t t = 0; t < c.capacity.size(); ++t) c.node_gpus.push_back(draw.below(7));
  }
}

/// Whether the gangs fit in nodes, by trying every node for every part.
bool can_pack(std::vector<std::int64_t> parts, std::vector<std::int64_t>& room) {
  if (parts.empty()) return true;
  const std::int64_t part = parts.back();
  parts.pop_back();
  for (std::int64_t& r : room) {
    if (r < part) continue;
    r -= part;
    const bool fits = can_pack(parts, room);
    r += part;
    if (fits) return true;
  }
  return false;
}

/// Whether a set of options can be carried out, from the definition alone.
bool feasible(const Columns& c, const std::vector<std::size_t>& chosen) {
  std::vector<std::int64_t> tier = c.capacity, user = c.user_quota, group = c.group_quota;
  double power = 0;
  bool good = true;
  for (const std::size_t o : chosen) {
    good = good && (tier[static_cast<std::size_t>(c.tier[o])] -= c.gpus[o]) >= 0;
    if (!user.empty()) good = good && (user[static_cast<std::size_t>(c.user[o])] -= c.gpus[o]) >= 0;
    if (!group.empty()) {
      good = good && (group[static_cast<std::size_t>(c.group[o])] -= c.gpus[o]) >= 0;
    }
    if (!c.watts.empty()) power += c.watts[o];
  }
  if (!good || power > c.power_cap_w) return false;
  for (std::size_t t = 0; t < c.node_gpus.size(); ++t) {
    const std::int64_t size = c.node_gpus[t];
    if (size < 1) continue;
    std::int64_t nodes = c.capacity[t] / size;
    std::vector<std::int64_t> parts;
    for (const std::size_t o : chosen) {
      if (static_cast<std::size_t>(c.tier[o]) != t) continue;
      nodes -= c.gpus[o] / size;
      if (c.gpus[o] % size > 0) parts.push_back(c.gpus[o] % size);
    }
    if (nodes < 0) return false;
    std::vector<std::int64_t> room(static_cast<std::size_t>(std::min<std::int64_t>(nodes, 8)),
                                   size);
    if (!can_pack(parts, room)) return false;
  }
  return true;
}

/// Best value over every choice: the oracle. Options of a job are neighbours in Columns.
double exhaustive(const Columns& c, std::size_t from = 0, std::vector<std::size_t> chosen = {}) {
  if (!feasible(c, chosen)) return -kInfinity;
  if (from == c.job.size()) {
    double value = 0;
    for (const std::size_t o : chosen) value += c.value[o];
    return value;
  }
  std::size_t end = from;
  while (end < c.job.size() && c.job[end] == c.job[from]) ++end;
  double best = exhaustive(c, end, chosen);
  for (std::size_t o = from; o < end; ++o) {
    chosen.push_back(o);
    best = std::max(best, exhaustive(c, end, chosen));
    chosen.pop_back();
  }
  return best;
}

/// What a RoundPlan promises, checked from the columns alone.
void expect_sound(const Columns& c, const RoundPlan& plan, const std::string& label) {
  std::map<std::int64_t, int> times;
  std::vector<std::size_t> chosen;
  double value = 0;
  for (const std::int64_t i : plan.chosen) {
    const auto o = static_cast<std::size_t>(i);
    ASSERT_LT(o, c.job.size()) << label;
    EXPECT_EQ(++times[c.job[o]], 1) << label;
    chosen.push_back(o);
    value += c.value[o];
  }
  if (c.node_gpus.empty() || chosen.size() <= 8) {
    EXPECT_TRUE(feasible(c, chosen)) << label;
  }
  EXPECT_TRUE(std::is_sorted(plan.chosen.begin(), plan.chosen.end())) << label;
  EXPECT_DOUBLE_EQ(plan.value, value) << label;
  EXPECT_LE(plan.value, plan.bound) << label;
  EXPECT_GE(plan.gap, 0) << label;
  EXPECT_LE(plan.gap, 1) << label;
  ASSERT_EQ(plan.prices.size(), c.capacity.size()) << label;
  for (const double price : plan.prices) EXPECT_GE(price, 0) << label;
}

// ---- solve_round

TEST(SolveRoundTest, UpToEightJobsEqualExhaustiveSearchAlways) {
  for (std::uint64_t id = 0; id < 1500; ++id) {
    const Columns c = random_round(id, id % 10 == 0 ? 8 : 6);
    const RoundPlan plan = solve_round(c.view());
    const double best = exhaustive(c);
    const std::string label = "instance " + std::to_string(id);
    expect_sound(c, plan, label);
    EXPECT_NEAR(plan.value, best, 1e-12 * best) << label;
    EXPECT_GE(plan.bound, best * (1 - 1e-15)) << label;
    EXPECT_LE(plan.gap, 1e-12) << label;
  }
}

TEST(SolveRoundTest, UpToEightJobsUnderPowerQuotasAndNodesEqualExhaustiveSearchToo) {
  for (std::uint64_t id = 0; id < 1500; ++id) {
    Columns c = random_round(30'000 + id, 6);
    add_limits(c, id);
    const RoundPlan plan = solve_round(c.view());
    const double best = exhaustive(c);
    const std::string label = "instance " + std::to_string(id);
    expect_sound(c, plan, label);
    EXPECT_NEAR(plan.value, best, 1e-12 * best) << label;
    EXPECT_GE(plan.bound, best * (1 - 1e-15)) << label;
    EXPECT_LE(plan.gap, 1e-12) << label;
  }
}

TEST(SolveRoundTest, TenThousandRandomPlansAreSound) {
  for (std::uint64_t id = 0; id < 10'000; ++id) {
    Columns c = random_round(100'000 + id, 40);
    if (id % 2 == 1) add_limits(c, id);
    expect_sound(c, solve_round(c.view(), {.gap = 0.02}), "instance " + std::to_string(id));
  }
}

TEST(SolveRoundTest, GangsOfThreeInNodesOfFourArePackedNotJustCounted) {
  Columns c;
  c.capacity = {8};
  c.node_gpus = {4};
  for (std::int64_t j = 0; j < 12; ++j) c.add(j, 0, 3, 1.0);
  for (std::int64_t j = 12; j < 24; ++j) c.add(j, 0, 2, 0.5);
  const RoundPlan plan = solve_round(c.view());
  EXPECT_DOUBLE_EQ(plan.value, 2.0);  // two gangs of 3, or one of 3 and two of 2
}

TEST(SolveRoundTest, ManyQuotasStayCertified) {
  Draws draw{{13}, 1};
  Columns c;
  c.capacity = {400, 300};
  for (std::int64_t j = 0; j < 2000; ++j) {
    for (std::int64_t k = 1; k <= 8; k *= 2) {
      c.add(j, draw.below(2), k, draw.uniform() * std::pow(static_cast<double>(k), 0.8));
      c.user.push_back(j % 40);
      c.group.push_back(j % 5);
      c.watts.push_back(static_cast<double>(k) * 250);
    }
  }
  c.user_quota.assign(40, 20);
  c.group_quota.assign(5, 150);
  c.power_cap_w = 140'000;
  const RoundPlan plan = solve_round(c.view());
  expect_sound(c, plan, "quotas");
  EXPECT_LE(plan.gap, 0.01);
}

TEST(SolveRoundTest, WholeQuantaAreProvedOptimalWithGapZero) {
  Columns c;
  c.capacity = {5};
  c.add(1, 0, 3, 30), c.add(2, 0, 3, 30), c.add(3, 0, 2, 19), c.add(3, 0, 1, 4);
  const RoundPlan plan = solve_round(c.view());
  EXPECT_EQ(plan.chosen, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(plan.value, 49);
  EXPECT_EQ(plan.bound, 49);
  EXPECT_EQ(plan.gap, 0);
}

TEST(SolveRoundTest, ChoiceDoesNotDependOnThreadsNorOnTheOrderOfOptions) {
  const Columns c = random_round(4242, 3000);
  const RoundPlan one = solve_round(c.view(), {.threads = 1});
  for (const int threads : {2, 7}) {
    const RoundPlan other = solve_round(c.view(), {.threads = threads});
    EXPECT_EQ(one.chosen, other.chosen);
    EXPECT_EQ(one.bound, other.bound);
    EXPECT_EQ(one.prices, other.prices);
  }
  // The same options with the jobs dealt like cards: option o of every job, then option o + 1.
  std::vector<std::size_t> order(c.job.size());
  std::iota(order.begin(), order.end(), 0u);
  std::map<std::int64_t, int> seen;
  std::vector<int> rank;
  for (const std::int64_t j : c.job) rank.push_back(seen[j]++);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank[a] < rank[b]; });
  Columns dealt;
  dealt.capacity = c.capacity;
  for (const std::size_t o : order) dealt.add(c.job[o], c.tier[o], c.gpus[o], c.value[o]);
  const RoundPlan other = solve_round(dealt.view());
  std::vector<std::int64_t> chosen;
  for (const std::int64_t o : other.chosen) {
    chosen.push_back(static_cast<std::int64_t>(order[static_cast<std::size_t>(o)]));
  }
  std::sort(chosen.begin(), chosen.end());
  EXPECT_EQ(one.chosen, chosen);
  EXPECT_EQ(one.prices, other.prices);
}

TEST(SolveRoundTest, WarmPricesOfAnyQualityKeepTheBoundABound) {
  for (std::uint64_t id = 0; id < 200; ++id) {
    const Columns c = random_round(20'000 + id, 8);
    const double best = exhaustive(c);
    for (const double price : {0.0, 1e-12, 1.0, 1e300}) {
      const std::vector<double> prices(c.capacity.size(), price);
      const RoundPlan plan = solve_round(c.view(), {.prices = prices});
      expect_sound(c, plan, "instance " + std::to_string(id));
      EXPECT_NEAR(plan.value, best, 1e-12 * best) << id << " from price " << price;
    }
  }
}

TEST(SolveRoundTest, ValuesUpTo1e15DoNotOverflow) {
  Columns c;
  c.capacity = {1'000'000'000'000, 50};
  for (std::int64_t j = 0; j < 5000; ++j) {
    c.add(j, 0, 1'000'000'000, 1e15 - static_cast<double>(j));
    c.add(j, 1, 1, 1e15 - 3 * static_cast<double>(j));
  }
  const RoundPlan plan = solve_round(c.view());
  expect_sound(c, plan, "large");
  EXPECT_EQ(plan.chosen.size(), 1050u);
  EXPECT_LE(plan.gap, 1e-4);
}

TEST(SolveRoundTest, WhatIsWorthNextToNothingIsStillPlacedWhereNothingElseIs) {
  Columns c;
  c.capacity = {2};
  c.add(1, 0, 1, 1e15);
  c.add(2, 0, 1, 1e-15);
  c.add(3, 0, 1, 0.0);
  EXPECT_EQ(solve_round(c.view()).chosen, (std::vector<std::int64_t>{0, 1}));
}

TEST(SolveRoundTest, AMillionOptionsOfOneJobAreSolved) {
  Columns c;
  c.capacity = {700'000};
  for (std::int64_t o = 0; o < 1'000'000; ++o) c.add(1, 0, o + 1, static_cast<double>(o % 900'000));
  const RoundPlan plan = solve_round(c.view());
  EXPECT_EQ(plan.chosen, (std::vector<std::int64_t>{699'999}));
}

TEST(SolveRoundTest, NothingToChooseGivesTheEmptyPlan) {
  Columns c;
  EXPECT_TRUE(solve_round(c.view()).chosen.empty());
  c.capacity = {0, 4};
  EXPECT_EQ(solve_round(c.view()).prices.size(), 2u);
  c.add(1, 0, 1, 5.0);  // no capacity
  c.add(2, 1, 5, 9.0);  // larger than its tier
  c.add(3, 1, 1, 0.0);  // worth nothing
  const RoundPlan plan = solve_round(c.view());
  EXPECT_TRUE(plan.chosen.empty());
  EXPECT_EQ(plan.value, 0);
  EXPECT_EQ(plan.bound, 0);
  EXPECT_EQ(plan.gap, 0);
}

TEST(SolveRoundTest, BrokenColumnsAreRefusedByName) {
  const auto refused = [](const Columns& c, const RoundOptions& options = {}) {
    try {
      (void)solve_round(c.view(), options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Columns good;
  good.capacity = {4};
  good.add(7, 0, 1, 1.0);
  Columns c = good;
  c.add(8, 0, 1, -1.0);
  EXPECT_EQ(refused(c), "solve_round: option 1 of job 8 has value -1, expected 0 to 1e15");
  c = good;
  c.value[0] = std::nan("");
  EXPECT_NE(refused(c), "");
  c.value[0] = kInfinity;
  EXPECT_NE(refused(c), "");
  c = good;
  c.tier[0] = 1;
  EXPECT_EQ(refused(c), "solve_round: option 0 of job 7 names tier 1, there are 1");
  c = good;
  c.gpus[0] = 0;
  EXPECT_EQ(refused(c), "solve_round: option 0 of job 7 asks 0 GPUs");
  c = good;
  c.capacity = {-1};
  EXPECT_NE(refused(c), "");
  c = good;
  c.gpus.pop_back();
  EXPECT_NE(refused(c), "");
  EXPECT_NE(refused(good, {.gap = -1}), "");
  const std::vector<double> prices{1, 2};
  EXPECT_NE(refused(good, {.prices = prices}), "");
  const std::vector<double> negative{-1};
  EXPECT_NE(refused(good, {.prices = negative}), "");
}

TEST(SolveRoundTest, GangsThatStayTakeOfTheNodes) {
  Columns c;
  c.capacity = {12};
  c.node_gpus = {4};
  c.add(1, 0, 4, 1.0);
  RoundView round = c.view();
  const std::vector<std::int64_t> tier{0, 0, 0}, gpus{2, 3, 3};  // a part of each of the 3 nodes
  round.taken_tier = tier;
  round.taken_gpus = gpus;
  EXPECT_TRUE(solve_round(round).chosen.empty());
  c.gpus = {2};
  EXPECT_EQ(solve_round(round).chosen.size(), 1u);
}

TEST(SolveRoundTest, GoalsInOrderEqualExhaustiveSearchOfTheBestByTheFirst) {
  int ties = 0;
  for (std::uint64_t id = 0; id < 400; ++id) {
    Columns c = random_round(50'000 + id, 5);
    Draws draw{{14}, id};
    std::vector<std::vector<double>> goal(3);
    for (std::size_t o = 0; o < c.job.size(); ++o) {
      goal[0].push_back(static_cast<double>(draw.below(3)));  // ties, and options worth nothing
      goal[1].push_back(draw.below(2) == 0 ? 0 : draw.uniform());
      goal[2].push_back(draw.uniform());
    }
    // The oracle: whole numbers are apart by 1, values of the second goal hardly ever by 1e-6.
    c.value = goal[0];
    for (std::size_t o = 0; o < c.job.size(); ++o) {
      c.value[o] += 1e-3 * (goal[1][o] + 1e-5 * goal[2][o]);
    }
    const double best = exhaustive(c);
    const detail::Ordered ordered = detail::solve_in_order(c.view(), goal, 0, {});
    double first = 0, value = 0;
    for (const std::int64_t i : ordered.round.chosen) {
      first += goal[0][static_cast<std::size_t>(i)];
      value += c.value[static_cast<std::size_t>(i)];
    }
    EXPECT_NEAR(value, best, 1e-10) << id;
    c.value = goal[0];
    EXPECT_EQ(first, exhaustive(c)) << id;
    ties += solve_round(c.view()).chosen != ordered.round.chosen;
  }
  EXPECT_GT(ties, 50);  // the later goals decided
}

TEST(SolveRoundTest, SlackOfAGoalInOrderIsSpentOnTheNextAndNeverExceeded) {
  const Columns c = random_round(4243, 300);
  Draws draw{{15}, 1};
  std::vector<std::vector<double>> goal{c.value, {}};
  for (std::size_t o = 0; o < c.job.size(); ++o) goal[1].push_back(draw.uniform());
  const auto worth = [&](const RoundPlan& plan, std::size_t g) {
    double sum = 0;
    for (const std::int64_t i : plan.chosen) sum += goal[g][static_cast<std::size_t>(i)];
    return sum;
  };
  const RoundPlan alone = solve_round(c.view());
  double before = worth(alone, 1);
  for (const double slack : {0.01, 0.1, 0.5}) {
    const RoundPlan plan = detail::solve_in_order(c.view(), goal, slack, {}).round;
    EXPECT_GE(worth(plan, 0), (1 - slack) * alone.value * (1 - 1e-9)) << slack;
    EXPECT_GE(worth(plan, 1), before * (1 - 1e-9)) << slack;
    before = worth(plan, 1);
  }
  EXPECT_GT(before, worth(alone, 1));
}

// ---- gittins_index

TEST(GittinsTest, AKnownSizeHasTheIndexOfShortestRemainingTime) {
  const std::vector<double> samples(5, 20.0);
  EXPECT_DOUBLE_EQ(gittins_index(samples), 1.0 / 20);
}

TEST(GittinsTest, EqualsTheSupremumOverAFineGridOfD) {
  for (std::uint64_t id = 0; id < 200; ++id) {
    Draws draw{{5}, id};
    std::vector<double> samples(static_cast<std::size_t>(1 + draw.below(12)));
    for (double& s : samples) s = draw.uniform() < 0.2 ? kInfinity : 0.01 + 10 * draw.uniform();
    double best = 0;
    for (const double d : samples) {
      if (d == kInfinity) continue;
      double done = 0, served = 0;
      for (const double s : samples) {
        done += s <= d;
        served += std::min(s, d);
      }
      best = std::max(best, done / served);
    }
    for (double d = 0.01; d < 11; d += 0.01) {  // no d between the samples is better
      double done = 0, served = 0;
      for (const double s : samples) {
        done += s <= d;
        served += std::min(s, d);
      }
      EXPECT_LE(done / served, best * (1 + 1e-12));
    }
    EXPECT_NEAR(gittins_index(samples), best, 1e-12 * best) << id;
  }
}

TEST(GittinsTest, HopelessIsWorthNothingAndDoneIsWorthEverything) {
  EXPECT_EQ(gittins_index(std::vector{kInfinity, kInfinity}), 0);
  EXPECT_EQ(gittins_index(std::vector{0.0, 5.0}), kInfinity);
  EXPECT_THROW((void)gittins_index(std::vector<double>{}), InputError);
  EXPECT_THROW((void)gittins_index(std::vector{1.0, -1.0}), InputError);
  EXPECT_THROW((void)gittins_index(std::vector{1.0, std::nan("")}), InputError);
}

// ---- plan

/// Two tiers, and jobs that may run on either.
struct Cluster {
  std::vector<Tier> tiers{{.name = "slow", .nodes = 2, .gpus_per_node = 2, .memory_gb = 11},
                          {.name = "fast", .nodes = 1, .gpus_per_node = 2, .memory_gb = 24}};
  std::vector<Job> jobs{};
  std::vector<Allocation> running{};
  double now_s = 1000;

  Job& add(std::int64_t id, std::vector<double> remaining, int gpus = 1) {
    jobs.push_back({.id = id,
                    .memory_gb = 8,
                    .options = {{.tier = 0, .gpus = gpus, .steps_per_s = 1.0},
                                {.tier = 1, .gpus = gpus, .steps_per_s = 2.0}},
                    .remaining_steps = std::move(remaining)});
    return jobs.back();
  }
  [[nodiscard]] Snapshot snapshot() const { return {now_s, tiers, jobs, running}; }
};

const Allocation* allocation_of(const Plan& plan, std::int64_t job) {
  for (const Allocation& a : plan.allocations) {
    if (a.job == job) return &a;
  }
  return nullptr;
}

TEST(PlanTest, ShortJobsGoFirstAndTheShortestOnTheFastTier) {
  Cluster cluster;
  for (std::int64_t id = 1; id <= 8; ++id) cluster.add(id, {1000.0 * static_cast<double>(id)});
  const Plan plan = glidepath::plan(cluster.snapshot());
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
  EXPECT_EQ(plan.allocations.size(), 6u);
  EXPECT_EQ(allocation_of(plan, 1)->tier, 1);
  EXPECT_EQ(allocation_of(plan, 2)->tier, 1);
  EXPECT_EQ(allocation_of(plan, 7), nullptr);
  EXPECT_EQ(allocation_of(plan, 8), nullptr);
  EXPECT_LE(plan.value, plan.bound);
  ASSERT_EQ(plan.reasons.size(), 8u);
  EXPECT_EQ(plan.reasons[0].text.substr(0, 12), "gets 1 x fas");
  EXPECT_EQ(plan.reasons[7].text.substr(0, 6), "waits:");
}

TEST(PlanTest, AJobThatReachedItsTargetOrNeverWillIsEndedWithItsProbability) {
  Cluster cluster;
  cluster.add(1, {0, 0, 0, 0});
  cluster.add(2, {kInfinity, kInfinity, kInfinity, kInfinity});
  cluster.add(3, {100, kInfinity, kInfinity, kInfinity});
  const Plan plan = glidepath::plan(cluster.snapshot(), {.stop_probability = 0.9});
  EXPECT_EQ(plan.stop, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(plan.reasons[0].text, "ends: target reached with probability 1");
  EXPECT_EQ(plan.reasons[1].text, "ends: target out of reach with probability 1");
  EXPECT_NE(allocation_of(plan, 3), nullptr);
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
}

TEST(PlanTest, ARestartIsPaidForOnlyByAClearlyBetterChallenger) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 1, .memory_gb = 24}};
  Job& old = cluster.add(1, {1000});
  old.options.pop_back();
  old.attained_s = 50;
  Job& fresh = cluster.add(2, {990});
  fresh.options.pop_back();
  cluster.running = {{.job = 1, .tier = 0, .gpus = 1, .since_s = 950}};
  Plan plan = glidepath::plan(cluster.snapshot());
  ASSERT_NE(allocation_of(plan, 1), nullptr);
  EXPECT_EQ(allocation_of(plan, 1)->since_s, 950);
  cluster.jobs[1].remaining_steps = {200};
  plan = glidepath::plan(cluster.snapshot());
  EXPECT_NE(allocation_of(plan, 2), nullptr);
  cluster.jobs[1].attained_s = 10;  // the challenger itself would pay a restart of an hour
  cluster.jobs[1].restart_s = 3600;
  plan = glidepath::plan(cluster.snapshot());
  EXPECT_NE(allocation_of(plan, 1), nullptr);
}

TEST(PlanTest, AJobGivesWayOnlyWhereItsOwnRestartIsWonBack) {
  // One GPU, job 1 runs with T left and would pay kappa later, job 2 needs T2: giving way is
  // better for the sum of their completion times where T2 + kappa < T.
  for (std::uint64_t id = 0; id < 200; ++id) {
    Draws draw{{16}, id};
    const double left = 10 + 1000 * draw.uniform(), other = 10 + 1000 * draw.uniform();
    const double kappa = 500 * draw.uniform();
    if (std::abs(other + kappa - left) < 1) continue;
    Cluster cluster;
    cluster.tiers = {{.name = "one", .nodes = 1, .memory_gb = 24}};
    for (const double steps : {left, other}) {
      Job& job = cluster.add(std::ssize(cluster.jobs) + 1, {steps});
      job.options.pop_back();
      job.restart_s = kappa;
    }
    cluster.jobs[0].attained_s = 50;
    cluster.running = {{.job = 1, .tier = 0, .gpus = 1, .since_s = 900}};
    const Plan plan = glidepath::plan(cluster.snapshot(), {.hysteresis = 0});
    EXPECT_EQ(plan.allocations.at(0).job, other + kappa < left ? 2 : 1)
        << left << " against " << other << " + " << kappa;
  }
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

TEST(PlanTest, WithoutForecastsTheLeastServedJobGoesFirst) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 1, .memory_gb = 24}};
  for (std::int64_t id = 1; id <= 3; ++id) {
    Job& job = cluster.add(id, {});
    job.options.pop_back();
    job.steps_done = 1e6 / static_cast<double>(id);
  }
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.at(0).job, 3);
}

/// One tier of `gpus` GPUs on which every job runs one step per second.
Cluster one_tier(int gpus) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = gpus, .memory_gb = 24, .busy_watts = 100}};
  return cluster;
}
Job& add_to(Cluster& cluster, std::int64_t id, std::vector<double> remaining, int gpus = 1) {
  Job& job = cluster.add(id, std::move(remaining), gpus);
  job.options.pop_back();
  return job;
}

std::vector<std::int64_t> placed(const Plan& plan) {
  std::vector<std::int64_t> ids;
  for (const Allocation& a : plan.allocations) ids.push_back(a.job);
  return ids;
}

TEST(PlanTest, ProgressSinceTheForecastIsTakenOffIt) {
  Cluster cluster = one_tier(1);
  Job& far = add_to(cluster, 1, {10'000});
  far.steps_done = 9'950;
  far.forecast_at_steps = 0;  // 50 steps are left
  add_to(cluster, 2, {100});
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, AJobThatOutrunsItsForecastFallsBackToLeastAttainedService) {
  Cluster cluster = one_tier(1);
  Job& late = add_to(cluster, 1, {10, 20, 30, 40});
  late.forecast_at_steps = 0;
  late.steps_done = 50'000;
  add_to(cluster, 2, {40'000});
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{2}));
  cluster.jobs[0].steps_done = 25;  // between its samples: 5 or 15 left
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, AHigherClassIsServedStrictlyFirst) {
  Cluster cluster = one_tier(3);
  add_to(cluster, 1, {1});
  add_to(cluster, 2, {1e9}, 2).priority = 1;
  add_to(cluster, 3, {1e9}, 2).priority = 1;
  const Plan plan = glidepath::plan(cluster.snapshot());
  EXPECT_EQ(plan.allocations.size(), 2u);
  EXPECT_NE(allocation_of(plan, 1), nullptr);  // takes what the class above could not
  EXPECT_LE(plan.value, plan.bound);
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
      cluster.snapshot(), {.user_quota = {{"ada", 2}, {"bob", 4}}, .group_quota = {{"text", 1}}});
  EXPECT_LE(gpus_of(quota, ada), 2);
  EXPECT_LE(gpus_of(quota, text), 1);
  EXPECT_EQ(gpus_of(quota, all), 6);
  const Plan capped = glidepath::plan(cluster.snapshot(), {.power_cap_w = 350});
  EXPECT_EQ(gpus_of(capped, all), 3);
}

TEST(PlanTest, AStartIsGuaranteedItsMinimumRun) {
  Cluster cluster = one_tier(2);
  add_to(cluster, 1, {1e6}, 2).attained_s = 100;
  add_to(cluster, 2, {1.0});
  cluster.running = {{.job = 1, .tier = 0, .gpus = 2, .since_s = 900}};
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot())), (std::vector<std::int64_t>{2}));
  const Plan kept = glidepath::plan(cluster.snapshot(), {.min_run_s = 200});
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
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.ageing_s = 1000})),
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
  const Plan plan = glidepath::plan(cluster.snapshot(), {.max_wait_s = 3600});
  EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1, 3}));
  EXPECT_NE(plan.reasons[1].text.find("kept for it"), std::string::npos) << plan.reasons[1].text;
  cluster.running.clear();
  cluster.jobs[0].waiting_s = 0;
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.max_wait_s = 3600})),
            (std::vector<std::int64_t>{2}));
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
      const Plan plan = glidepath::plan(cluster.snapshot(), {.max_wait_s = max_wait_s});
      if (allocation_of(plan, 0)) return waited;
      waited += 100;
      cluster.jobs.resize(1);
    }
    return kInfinity;
  };
  EXPECT_EQ(longest_wait(kInfinity), kInfinity);
  EXPECT_EQ(longest_wait(5000), 5000);
}

TEST(PlanTest, DeadlinesGoToTheJobThatStillCanMissOrMeetIts) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {900}).deadline_s = cluster.now_s + 1e6;   // time enough
  add_to(cluster, 2, {900}).deadline_s = cluster.now_s + 1000;  // now or never
  add_to(cluster, 3, {900}).deadline_s = cluster.now_s + 100;   // too late
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.goals = {{Objective::deadline}}})),
            (std::vector<std::int64_t>{2}));
}

TEST(PlanTest, QualityGoesToTheJobWhoseLossFallsMost) {
  Cluster cluster = one_tier(1);
  Job& flat = add_to(cluster, 1, {10});
  flat.ahead_steps = {0, 1000};
  flat.ahead_loss = {1.0, 0.99};
  Job& steep = add_to(cluster, 2, {1e6});
  steep.ahead_steps = {0, 1000};
  steep.ahead_loss = {1.0, 0.5};
  const std::vector<double> step{1, 2}, loss{3.0, 1.0};
  for (Job& job : cluster.jobs) job.observed = {step, loss};
  const auto served = [&](Objective objective) {
    return placed(glidepath::plan(cluster.snapshot(), {.goals = {{objective}}}));
  };
  EXPECT_EQ(served(Objective::quality), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(served(Objective::jct), (std::vector<std::int64_t>{1}));
}

TEST(PlanTest, KnownSizeTakesTheMeanWhereGittinsTakesTheChance) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {10, 4000});  // half done in 10 s
  add_to(cluster, 2, {1000});
  const auto served = [&](Objective objective) {
    return placed(glidepath::plan(cluster.snapshot(), {.goals = {{objective}}}));
  };
  EXPECT_EQ(served(Objective::jct), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(served(Objective::known_size), (std::vector<std::int64_t>{2}));
}

TEST(PlanTest, FairnessServesTheJobThatSuffersMost) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {100}).submit_s = 990;
  Job& old = add_to(cluster, 2, {500});
  old.submit_s = -5000;
  old.attained_s = 100;
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.goals = {{Objective::fairness}}})),
            (std::vector<std::int64_t>{2}));
}

TEST(PlanTest, EnergyAndCostMoveAJobToTheFrugalTier) {
  Cluster cluster;
  cluster.tiers[0].busy_watts = 70, cluster.tiers[0].price_per_gpu_hour = 1;
  cluster.tiers[1].busy_watts = 400, cluster.tiers[1].price_per_gpu_hour = 9;
  cluster.add(1, {1000});
  const auto tier = [&](const PlanOptions& options) {
    return glidepath::plan(cluster.snapshot(), options).allocations.at(0).tier;
  };
  EXPECT_EQ(tier({}), 1);
  EXPECT_EQ(tier({.goals = {{Objective::energy}}}), 0);
  EXPECT_EQ(tier({.goals = {{Objective::cost}}}), 0);
  EXPECT_EQ(tier({.goals = {{Objective::edp}}}), 0);  // 70 / 1^2 < 400 / 2^2
  cluster.tiers[1].busy_watts = 200;
  EXPECT_EQ(tier({.goals = {{Objective::energy}}}), 0);
  EXPECT_EQ(tier({.goals = {{Objective::edp}}}), 1);
  EXPECT_EQ(tier({.joule_value = 1e-5}), 0);
  EXPECT_EQ(tier({.goals = {{Objective::jct, 1}, {Objective::energy, 1e-3}}}), 1);
  EXPECT_EQ(tier({.goals = {{Objective::jct, 1e-3}, {Objective::energy, 1}}}), 0);
}

TEST(PlanTest, GoalsInOrderServeTheFirstAndLetTheOthersChooseAmongItsBest) {
  Cluster cluster = one_tier(2);
  for (std::int64_t id = 1; id <= 3; ++id) add_to(cluster, id, {900}).deadline_s = kInfinity;
  cluster.jobs[0].deadline_s = cluster.now_s + 1000;  // now or never
  cluster.jobs[1].remaining_steps = {500};
  cluster.jobs[2].remaining_steps = {400};
  const std::vector<Goal> goals{{Objective::deadline}, {Objective::jct}};
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.goals = goals, .in_order = true})),
            (std::vector<std::int64_t>{1, 3}));
  const std::vector<Goal> turned{{Objective::jct}, {Objective::deadline}};
  EXPECT_EQ(placed(glidepath::plan(cluster.snapshot(), {.goals = turned, .in_order = true})),
            (std::vector<std::int64_t>{2, 3}));
  // Energy first, time second: of two tiers of equal power per step the faster one.
  Cluster two;
  two.tiers[0].busy_watts = 100, two.tiers[1].busy_watts = 200;
  two.add(1, {1000});
  const auto tier = [&](double watts) {
    two.tiers[1].busy_watts = watts;
    return glidepath::plan(two.snapshot(),
                           {.goals = {{Objective::energy}, {Objective::jct}}, .in_order = true})
        .allocations.at(0)
        .tier;
  };
  EXPECT_EQ(tier(200), 1);
  EXPECT_EQ(tier(201), 0);
  EXPECT_THROW((void)glidepath::plan(two.snapshot(), {.slack = 1}), InputError);
}

TEST(PlanTest, ValuesOfAnySizeAreScaledIntoARound) {
  for (const double weight : {1e-15, 1e15, 1e60}) {  // 1e15 and more in a round would be refused
    Cluster cluster;
    for (std::int64_t id = 1; id <= 8; ++id) {
      cluster.add(id, {1000 * static_cast<double>(id)}).weight = weight;
    }
    const Plan plan = glidepath::plan(cluster.snapshot());
    EXPECT_EQ(placed(plan), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6})) << weight;
    EXPECT_NEAR(plan.value / weight, glidepath::plan(cluster.snapshot()).value / weight, 1e-9);
    EXPECT_LE(plan.value, plan.bound);
    EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
    const Plan again = glidepath::plan(cluster.snapshot(), {.prices = plan.prices});
    EXPECT_EQ(placed(again), placed(plan));
  }
}

TEST(PlanTest, AWaitingJobMayShareTheGpusOfALightOne) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {1000}).sm_activity = 0.05;
  add_to(cluster, 2, {1200}).sm_activity = 0.8;
  add_to(cluster, 3, {1300}).sm_activity = 0.9;
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.size(), 1u);
  const Plan plan = glidepath::plan(cluster.snapshot(), {.sharing = Sharing::mps});
  ASSERT_EQ(placed(plan), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(plan.allocations[0].partner, 2);
  EXPECT_EQ(plan.allocations[1].partner, 1);
  EXPECT_LE(plan.value, plan.bound);
  EXPECT_TRUE(violations(cluster.snapshot(), plan).empty());
  EXPECT_NE(plan.reasons[1].text.find("with job 1 (mps)"), std::string::npos);
  for (Job& job : cluster.jobs) job.memory_gb = 13;  // 26 GB on a card of 24
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), {.sharing = Sharing::mps}).allocations.size(), 1u);
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
  const PlanOptions options{.sharing = Sharing::mps, .pairs = &pairs};
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
  const PlanOptions mps{.sharing = Sharing::mps};
  const auto together = [&] {
    const Plan plan = glidepath::plan(cluster.snapshot(), mps);
    EXPECT_TRUE(violations(cluster.snapshot(), plan, mps).empty());
    return plan.allocations.size() == 2;
  };
  const Plan pair = glidepath::plan(cluster.snapshot(), mps);
  EXPECT_TRUE(together());
  Option shared = cluster.jobs[1].options[0];
  shared.steps_per_s *= 0.9;
  shared.sharing = Sharing::mig;
  cluster.jobs[1].options.push_back(shared);
  EXPECT_FALSE(together());
  EXPECT_EQ(violations(cluster.snapshot(), pair, mps).size(), 1u);
  cluster.jobs[1].options.back().sharing = Sharing::mps;
  EXPECT_TRUE(together());
  cluster.jobs[1].options.back().gpus = 2;
  EXPECT_FALSE(together());
}

// ---- options

/// Step time 0.1 + 0.8 / k seconds, measured up to `largest` GPUs of nodes of 4.
Scaling scaling_up_to(int largest, double scale = 1) {
  std::vector<StepTime> measured;
  for (int k = 1; k <= largest; k *= 2) {
    measured.push_back({k, (k + 3) / 4, 64.0 / k, scale * (0.1 + 0.8 / k)});
  }
  return fit_scaling(measured);
}

TEST(OptionsTest, EveryTierAndGangComesWithTheRateOfItsStepTime) {
  const std::vector<Tier> tiers{{.name = "small", .nodes = 1, .gpus_per_node = 4, .memory_gb = 11},
                                {.name = "none", .nodes = 8, .gpus_per_node = 4, .memory_gb = 80},
                                {.name = "large", .nodes = 8, .gpus_per_node = 4, .memory_gb = 40}};
  const std::vector<Scaling> scaling{scaling_up_to(8), Scaling{}, scaling_up_to(4, 0.5)};
  const std::vector<Option> options = options_of(tiers, scaling, {.batch = 64, .utilization = 0.9});
  ASSERT_EQ(options.size(), 3u + 4u);  // 1, 2, 4 of 4 GPUs; 1, 2, 4, 8 = twice what was measured
  for (const Option& option : options) {
    const double seconds = (option.tier == 0 ? 1.0 : 0.5) * (0.1 + 0.8 / option.gpus);
    EXPECT_NE(option.tier, 1);
    EXPECT_NEAR(option.steps_per_s * seconds, 1, option.gpus <= 4 ? 0.03 : 0.2);
    EXPECT_EQ(option.utilization, 0.9);
    EXPECT_EQ(option.sharing, Sharing::exclusive);
  }
  const Ways large{.alone = {.memory_gb = 20}, .batch = 64, .most_gpus = 2};
  EXPECT_EQ(options_of(tiers, scaling, large).size(), 2u);  // the small cards have 11 GB
}

TEST(OptionsTest, ALargerGangThatIsNoFasterIsNotListed) {
  std::vector<StepTime> measured;
  for (int k = 1; k <= 16; k *= 2) measured.push_back({k, 1, 1.0, 0.2 + 0.1 * k});
  const std::vector<Tier> tiers{{.name = "one", .nodes = 1, .gpus_per_node = 16}};
  const std::vector<Option> options = options_of(tiers, std::vector{fit_scaling(measured)});
  ASSERT_EQ(options.size(), 1u);
  EXPECT_EQ(options[0].gpus, 1);
}

TEST(OptionsTest, SharedOptionsFollowWhereThePairFitsTheCard) {
  const std::vector<Tier> tiers{{.name = "a", .gpu = "A", .nodes = 1, .memory_gb = 16},
                                {.name = "b", .gpu = "B", .nodes = 1, .memory_gb = 40}};
  const std::vector<Scaling> scaling{scaling_up_to(1), scaling_up_to(1)};
  const std::vector<KindPair> measured{{"B", Sharing::mps, "x", "y", 1.25, 1.5}};
  const Pairs pairs = learn_pairs(measured);
  const Ways ways{.alone = {0.5, 10, "x"},
                  .sharing = Sharing::mps,
                  .partner = Profile{0.5, 10, "y"},
                  .pairs = &pairs};
  const std::vector<Option> options = options_of(tiers, scaling, ways);
  ASSERT_EQ(options.size(), 3u);  // 20 GB do not fit on 16
  EXPECT_EQ(options[2].tier, 1);
  EXPECT_EQ(options[2].sharing, Sharing::mps);
  EXPECT_NEAR(options[2].steps_per_s, 0.8 * options[1].steps_per_s, 1e-12);
  // They may go into a job as they are.
  const Job job{.id = 1, .options = options, .remaining_steps = {100}};
  EXPECT_EQ(choose_accelerator(job, tiers).size(), 3u);
  const Snapshot snapshot{.tiers = tiers, .jobs = {&job, 1}};
  EXPECT_EQ(glidepath::plan(snapshot).allocations.size(), 1u);
}

TEST(OptionsTest, BrokenWaysAreRefusedByValue) {
  const std::vector<Tier> tiers{{.name = "a", .nodes = 1}};
  const std::vector<Scaling> scaling{scaling_up_to(1)};
  EXPECT_THROW((void)options_of(tiers, {}), InputError);
  EXPECT_THROW((void)options_of(tiers, scaling, {.alone = {.memory_gb = -1}}), InputError);
  EXPECT_THROW((void)options_of(tiers, scaling, {.batch = kInfinity}), InputError);
  EXPECT_THROW((void)options_of(tiers, scaling, {.most_gpus = 0}), InputError);
  EXPECT_THROW((void)options_of(tiers, scaling, {.utilization = 2}), InputError);
  EXPECT_TRUE(options_of({}, {}).empty());
}

TEST(PlanTest, APairStaysTogetherFromRoundToRound) {
  Cluster cluster = one_tier(1);
  add_to(cluster, 1, {1000}).sm_activity = 0.05;
  add_to(cluster, 2, {1200}).sm_activity = 0.8;
  add_to(cluster, 3, {1250}).sm_activity = 0.8;
  const PlanOptions mps{.sharing = Sharing::mps};
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
  PlanOptions options{.sharing = Sharing::mps};
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), options).allocations.size(), 2u);
  options.user_quota = {{"ada", 1}};
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), options).allocations.size(), 1u);
  options.user_quota.clear();
  options.power_cap_w = 30;  // 20 W for one, 40 W for both
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), options).allocations.size(), 1u);
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
  EXPECT_EQ(glidepath::plan(cluster.snapshot(), {.in_nodes = true}).allocations.size(), 3u);
  cluster.jobs[3].priority = 1;
  cluster.jobs[3].waiting_s = 1e6;
  EXPECT_EQ(
      glidepath::plan(cluster.snapshot(), {.in_nodes = true, .max_wait_s = 10}).allocations.size(),
      3u);
}

TEST(PlanTest, GangsFitInNodesOnRequest) {
  Cluster cluster;
  cluster.tiers = {{.name = "one", .nodes = 2, .gpus_per_node = 4}};
  for (std::int64_t id = 1; id <= 4; ++id) {
    cluster.add(id, {100}, id <= 2 ? 3 : 2).options.pop_back();
  }
  EXPECT_EQ(glidepath::plan(cluster.snapshot()).allocations.size(), 3u);
  const Plan plan = glidepath::plan(cluster.snapshot(), {.in_nodes = true});
  int threes = 0;
  for (const Allocation& a : plan.allocations) threes += a.gpus == 3;
  EXPECT_TRUE(threes == 0 || plan.allocations.size() <= 3);
  EXPECT_TRUE(threes < 2 || plan.allocations.size() == 2);
}

TEST(PlanTest, AnEmptyQueueOrClusterGivesTheObviousPlan) {
  EXPECT_TRUE(glidepath::plan({}).allocations.empty());
  Cluster cluster;
  EXPECT_TRUE(glidepath::plan(cluster.snapshot()).allocations.empty());
}

TEST(PlanTest, BrokenSnapshotsAreRefusedByName) {
  const auto refused = [](const Cluster& cluster, const PlanOptions& options = {}) {
    try {
      (void)glidepath::plan(cluster.snapshot(), options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Cluster cluster;
  cluster.add(17, {100}, 9);
  EXPECT_EQ(refused(cluster), "plan: job 17 asks 9 GPUs, largest tier 'slow' has 4");
  cluster.jobs[0] = {.id = 17};
  EXPECT_EQ(refused(cluster), "plan: job 17 has no options");
  cluster.jobs.clear();
  cluster.add(17, {100}).memory_gb = 80;
  EXPECT_EQ(refused(cluster),
            "plan: job 17 needs 80 GB per GPU, more than the tiers it may run on");
  cluster.jobs.clear();
  cluster.add(5, {100}), cluster.add(5, {100});
  EXPECT_EQ(refused(cluster), "plan: job 5 appears twice");
  cluster.jobs.pop_back();
  cluster.running = {{.job = 6, .tier = 0, .gpus = 1}};
  EXPECT_EQ(refused(cluster), "plan: job 6 runs but is not in the queue");
  cluster.running = {{.job = 5, .tier = 0, .gpus = 1}, {.job = 5, .tier = 0, .gpus = 1}};
  EXPECT_EQ(refused(cluster), "plan: job 5 holds two allocations");
  cluster.running = {{.job = 5, .tier = 2, .gpus = 1}};
  EXPECT_EQ(refused(cluster), "plan: job 5 runs on 1 GPUs of tier 2, there are 2 tiers");
  cluster.running.clear();
  for (const auto& spoil : std::initializer_list<void (*)(Job&)>{
           [](Job& j) { j.weight = -1; }, [](Job& j) { j.weight = std::nan(""); },
           [](Job& j) { j.options[0].tier = 9; }, [](Job& j) { j.options[0].gpus = 0; },
           [](Job& j) { j.options[0].steps_per_s = -1; }, [](Job& j) { j.restart_s = -1; },
           [](Job& j) { j.remaining_steps = {-5}; }, [](Job& j) { j.memory_gb = kInfinity; }}) {
    Cluster broken;
    spoil(broken.add(3, {100}));
    EXPECT_EQ(refused(broken).substr(0, 12), "plan: job 3 ") << refused(broken);
  }
  EXPECT_NE(refused(cluster, {.round_s = 0}), "");
  EXPECT_NE(refused(cluster, {.goals = {}}), "");
  EXPECT_NE(refused(cluster, {.goals = {{Objective::jct, -1}}}), "");
  EXPECT_NE(refused(cluster, {.power_cap_w = -1}), "");
  EXPECT_NE(refused(cluster, {.user_quota = {{"ada", -1}}}), "");
  EXPECT_NE(refused(cluster, {.user_quota = {{"ada", 1}, {"ada", 2}}}), "");
  EXPECT_NE(refused(cluster, {.hysteresis = std::nan("")}), "");
}

// ---- choose_accelerator

struct TwoCards {
  std::vector<Tier> tiers{
      {.name = "small", .nodes = 4, .memory_gb = 11, .busy_watts = 250, .price_per_gpu_hour = 0.5},
      {.name = "large", .nodes = 4, .memory_gb = 24, .busy_watts = 400, .price_per_gpu_hour = 2}};
  Job job{.id = 1,
          .memory_gb = 8,
          .options = {{.tier = 0, .gpus = 1, .steps_per_s = 1},
                      {.tier = 1, .gpus = 1, .steps_per_s = 2}},
          .remaining_steps = {3600, 7200, 10'800, 14'400}};
};

TEST(AcceleratorTest, ProbabilitiesAreThoseOfTheForecastWithinTheLimits) {
  const TwoCards c;
  const auto by_hours = choose_accelerator(c.job, c.tiers, {.max_hours = 2, .confidence = 0.7});
  ASSERT_EQ(by_hours.size(), 2u);
  EXPECT_EQ(by_hours[0].option.tier, 1);
  EXPECT_DOUBLE_EQ(by_hours[0].probability, 1.0);
  EXPECT_DOUBLE_EQ(by_hours[0].hours, 1.0);
  EXPECT_DOUBLE_EQ(by_hours[0].kwh, 0.4);
  EXPECT_DOUBLE_EQ(by_hours[0].cost, 2.0);
  EXPECT_DOUBLE_EQ(by_hours[1].probability, 0.5);
  EXPECT_FALSE(by_hours[1].good);
  const auto by_power = choose_accelerator(c.job, c.tiers, {.max_watts = 300});
  EXPECT_EQ(by_power[0].option.tier, 0);
  EXPECT_EQ(by_power[1].probability, 0);
  EXPECT_NE(by_power[1].reason.find("too much power"), std::string::npos);
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {}, Prefer::cost)[0].option.tier, 0);
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {}, Prefer::hours)[0].option.tier, 1);
  EXPECT_EQ(choose_accelerator(c.job, c.tiers, {.max_kwh = 0.4})[0].probability, 0.5);
}

TEST(AcceleratorTest, TheFrontHoldsWhatNothingElseBeats) {
  TwoCards c;
  c.job.options.push_back({.tier = 1, .gpus = 2, .steps_per_s = 2});  // dearer, not faster
  for (const AcceleratorChoice& choice : choose_accelerator(c.job, c.tiers)) {
    EXPECT_EQ(choice.pareto, choice.option.gpus == 1);
  }
}

TEST(AcceleratorTest, ANewProfileDecidesAgain) {
  TwoCards c;
  EXPECT_EQ(choose_accelerator(c.job, c.tiers)[0].option.tier, 1);
  c.job.options[1].steps_per_s = 0.5;  // measured: the large card is slow for it
  EXPECT_EQ(choose_accelerator(c.job, c.tiers)[0].option.tier, 0);
  c.job.memory_gb = 20;
  EXPECT_EQ(choose_accelerator(c.job, c.tiers).size(), 1u);
}

TEST(AcceleratorTest, ATargetThatIsOftenMissedIsInNoOptionsReach) {
  TwoCards c;
  c.job.remaining_steps = {100, kInfinity, kInfinity, kInfinity};
  for (const AcceleratorChoice& choice : choose_accelerator(c.job, c.tiers)) {
    EXPECT_DOUBLE_EQ(choice.probability, 0.25);
    EXPECT_EQ(choice.hours, kInfinity);
    EXPECT_FALSE(choice.good);
  }
  c.job.remaining_steps.clear();
  EXPECT_THROW((void)choose_accelerator(c.job, c.tiers), InputError);
  c.job.remaining_steps = {100};
  EXPECT_THROW((void)choose_accelerator(c.job, c.tiers, {.max_hours = -1}), InputError);
  c.job.memory_gb = 80;
  EXPECT_THROW((void)choose_accelerator(c.job, c.tiers), InputError);
}

// ---- violations

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
  const auto found = [&](std::initializer_list<std::int64_t> jobs, const PlanOptions& limits) {
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

TEST(ViolationsTest, TenThousandPlansOfRandomSnapshotsHaveNone) {
  for (std::uint64_t id = 0; id < 10'000; ++id) {
    Draws draw{{77}, id};
    Cluster cluster;
    cluster.now_s = 1e5;
    cluster.tiers[0].busy_watts = 200, cluster.tiers[1].busy_watts = 300;
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
    PlanOptions options{.goals = {{static_cast<Objective>(id % 8)}}};
    if (id % 3 == 0) options.goals.push_back({Objective::edp, 0.5});
    options.in_order = draw.below(2) == 1;
    options.slack = 0.1 * draw.uniform();
    // Jobs that must stay go before a limit that is lowered, so limits and they take turns.
    const bool must_stay = draw.below(2) == 1;
    for (Job& job : cluster.jobs) job.preemptible = job.preemptible || !must_stay;
    if (!must_stay && id % 2 == 0) options.user_quota = {{"ada", draw.below(4)}};
    if (!must_stay && id % 3 == 0) options.group_quota = {{"", draw.below(5)}};
    if (!must_stay && id % 5 == 0) options.power_cap_w = 1000 * draw.uniform();
    options.sharing = static_cast<Sharing>(draw.below(4));
    if (must_stay) options.min_run_s = 2e5 * draw.uniform();
    options.max_wait_s = 2e5 * draw.uniform();
    options.in_nodes = draw.below(2) == 1;
    const Plan plan = glidepath::plan(cluster.snapshot(), options);
    const std::vector<std::string> found = violations(cluster.snapshot(), plan, options);
    EXPECT_TRUE(found.empty()) << id << ": " << found.front();
    EXPECT_EQ(plan.reasons.size(), cluster.jobs.size());
  }
}

}  // namespace
}  // namespace glidepath
