// SPDX-License-Identifier: Apache-2.0
// What jobs tell of each other's durations, passed along from one look to the next, and what is
// kept of the laws of running jobs between two looks.
#include "simulate/durations.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "simulate/cluster.hpp"
#include "simulate/forecasts.hpp"

namespace glidepath::detail {
namespace {

constexpr int kJobs = 60;
constexpr double kSigma = 0.8;

/// Jobs of two users in runs of alike ones, some of which take long.
Workload alike_jobs() {
  Workload workload;
  workload.tiers.push_back({.name = "all", .nodes = 12});
  const Rng rng{7};
  for (int i = 0; i < kJobs; ++i) {
    WorkloadJob& job = workload.jobs.emplace_back();
    job.id = i;
    job.user = i / 5 % 2 == 0 ? "ada" : "bob";
    job.submit_s = 40 * i;
    job.duration_s = std::ceil(std::exp(4 + 0.5 * (i / 10) + 0.2 * rng.normal(i, 0)));
  }
  return workload;
}

/// First come, first served; one observer looks at each event, the other twice.
struct Watched {
  explicit Watched(Cluster& c) : cluster(c), often(make()), seldom(make()) {}
  [[nodiscard]] Durations make() const {
    const Rng rng{11};
    std::vector<double> log_forecast;
    for (int i = 0; i < kJobs; ++i) {
      log_forecast.push_back(std::log(cluster.runs[i].work) + kSigma * rng.normal(i, 0));
    }
    return {cluster, kSigma, log_forecast};
  }
  void arrive(int job) { waiting.push_back(job); }
  void leave(int) {}
  void fail(int) {}
  [[nodiscard]] Tick wake() const { return kNever; }
  void schedule() {
    while (!waiting.empty() && cluster.free[0] > 0) {
      cluster.start(waiting.front(), 0);
      waiting.pop_front();
    }
    const bool looked = often.refresh();
    // At the 37th arrival, and not again before the 47th, both learn the law of durations.
    if (cluster.arrived == 37 && !learned) learned = looked && seldom.refresh();
    if (cluster.arrived == 46 && !compared) compared = looked && seldom.refresh() && compare();
  }
  bool compare() {
    int ended = 0;
    for (int job = 0; job < cluster.arrived; ++job) {
      ended += cluster.runs[job].end >= 0 ? 1 : 0;
      often.recall(job);
      seldom.recall(job);
      std::array<double, Durations::kGrid> one{}, other{};
      often.log_weights(job, often.lowest(), Durations::kGridStep, one);
      seldom.log_weights(job, seldom.lowest(), Durations::kGridStep, other);
      for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_NEAR(one[i], other[i], 1e-4) << job << " " << i;
      }
    }
    EXPECT_GT(ended, 10);
    EXPECT_LT(ended, 40);
    return true;
  }
  Cluster& cluster;
  Durations often, seldom;
  std::deque<int> waiting{};
  bool learned = false, compared = false;
};

TEST(DurationsTest, WhatIsNewAloneIsPassedOnAndGivesWhatAFullLookGives) {
  const Workload workload = alike_jobs();
  const SimulationOptions options;
  Cluster cluster(workload, options);
  Watched watched(cluster);
  run(cluster, watched);
  EXPECT_TRUE(watched.learned);
  EXPECT_TRUE(watched.compared);
}

/// First come, first served; every few seconds two predictors are asked of each running job, one of
/// them by turns for another quantile, which leaves it nothing to remember.
struct Asked {
  explicit Asked(Cluster& c) : cluster(c), remembers(c), looks_up(c) {}
  void arrive(int job) { waiting.push_back(job); }
  void leave(int) {}
  void fail(int) {}
  [[nodiscard]] Tick wake() const {
    return cluster.live > 0 ? cluster.now + 3 * cluster.per_second : kNever;
  }
  void schedule() {
    while (!waiting.empty() && cluster.free[0] > 0) {
      cluster.start(waiting.front(), 0);
      waiting.pop_front();
    }
    remembers.refresh();
    looks_up.refresh();
    for (const Running& running : cluster.running) {
      const double ceiling = remembers.rank_ceiling(running.job).rank;
      const double rank = looks_up.gittins_rank(running.job);
      EXPECT_LE(rank, ceiling) << running.job << " at " << cluster.now;
      times += rank > 0 ? ceiling / rank : 1;
      ++asked;
      (void)looks_up.left(running.job, 0.01);
      EXPECT_EQ(remembers.left(running.job, 0.5), looks_up.left(running.job, 0.5))
          << running.job << " at " << cluster.now;
    }
  }
  Cluster& cluster;
  Predictor remembers, looks_up;
  std::deque<int> waiting{};
  double times = 0;
  int asked = 0;
};

TEST(DurationsTest, ACeilingIsNotBelowTheIndexAndAMedianThatIsKeptIsTheMedian) {
  const Workload workload = alike_jobs();
  for (const double sigma : {0.25, 1.0, 3.0}) {
    SimulationOptions options;
    options.forecast_sigma = sigma;
    Cluster cluster(workload, options);
    Asked asked(cluster);
    run(cluster, asked);
    EXPECT_GT(asked.asked, 1000);
    EXPECT_LT(asked.times / asked.asked, 2) << "a ceiling far above the index spares nothing";
  }
}

}  // namespace
}  // namespace glidepath::detail
