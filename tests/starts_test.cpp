// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "refusal.hpp"
#include "simulate/market.hpp"
#include "simulated.hpp"

namespace glidepath {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Job job_of(std::int64_t id, int gpus, std::vector<double> remaining, double submit_s = 0) {
  Job job{.id = id};
  job.submit_s = submit_s;
  job.options = {{0, gpus, 1.0}};
  job.remaining_steps = std::move(remaining);
  return job;
}

/// One tier of some GPUs, and who holds them.
struct Case {
  std::vector<Tier> tiers{};
  std::vector<Job> jobs{};
  std::vector<Allocation> running{};
  double now_s = 0;
  explicit Case(int gpus) { tiers.push_back({.name = "a", .nodes = gpus}); }
  [[nodiscard]] Snapshot view() const { return {now_s, tiers, jobs, running}; }
  void run(Job job) {
    running.push_back({job.id, 0, job.options.front().gpus, 0, -1});
    jobs.push_back(std::move(job));
  }
};

std::vector<double> row(const StartTimes& times, std::ptrdiff_t level) {
  const std::span<const double> line = times.quantiles.row(level);
  return {line.begin(), line.end()};
}

TEST(StartsTest, AlikeJobsAreWrongTogetherSoThatTheirSumIsLessCertain) {
  const auto width = [](bool alike) {
    Case one(1);
    one.run(job_of(0, 1, {10}));
    for (std::int64_t id = 1; id <= 20; ++id) {
      one.jobs.push_back(job_of(id, 1, {10, 200}, alike ? 0.0 : 1e8 * static_cast<double>(id)));
    }
    one.now_s = 3e9;
    const StartTimes times = start_times(one.view(), "fifo", {.samples = 2000});
    return row(times, 2).back() - row(times, 0).back();
  };
  EXPECT_GT(width(true), 1.15 * width(false));
}

TEST(StartsTest, JobsWhoseLawsDifferAreNotAlikeSoThatTheirSumIsMoreCertain) {
  const auto width = [](double times) {
    Case one(1);
    one.run(job_of(0, 1, {10}));
    for (std::int64_t id = 1; id <= 20; ++id) {
      const double unit = id % 2 == 0 ? times : 1;
      one.jobs.push_back(job_of(id, 1, {10 * unit, 20 * unit}));
    }
    const StartTimes times_of = start_times(one.view(), "fifo", {.samples = 2000});
    return (row(times_of, 2).back() - row(times_of, 0).back()) / (1 + times);
  };
  EXPECT_GT(width(1), 1.3 * width(4));
}

TEST(StartsTest, TheFirstOfManyJobsToEndTakesLessThanTheLeastOfManyValues) {
  std::vector<double> values;  // an even law from 0 to 1000
  for (int k = 0; k < 40; ++k) values.push_back(25 * (k + 0.5));
  constexpr int kRunning = 200;
  Case crowd(kRunning);
  for (std::int64_t id = 0; id < kRunning; ++id) {
    crowd.run(job_of(id, 1, values, -1e9 * static_cast<double>(kRunning - id)));
  }
  crowd.jobs.push_back(job_of(kRunning, 1, {1}));
  const StartTimes times = start_times(crowd.view(), "fifo", {.samples = 4000, .levels = {0.5}});
  // The least of so many draws of the law has its median at 1000 (1 - 2^(-1/200)).
  EXPECT_NEAR(row(times, 0).front(), 3.46, 0.6);
}

TEST(StartsTest, ManyEqualValuesAreACertainDurationAndABudgetIsNotExceeded) {
  Case one(1);
  one.run(job_of(0, 1, std::vector<double>(40, 100.0)));
  one.jobs.push_back(job_of(1, 1, {1}));
  const StartTimes times = start_times(one.view(), "fifo", {.levels = {0.001, 0.999}});
  EXPECT_EQ(row(times, 0).front(), 100);
  EXPECT_EQ(row(times, 1).front(), 100);

  Case budgeted(1);
  std::vector<double> values;
  for (int k = 0; k < 40; ++k) values.push_back(std::exp(0.1 * k));
  Job job = job_of(0, 1, values);
  job.budget_steps = 50;
  budgeted.run(job);
  budgeted.jobs.push_back(job_of(1, 1, {1}));
  const StartTimes until =
      start_times(budgeted.view(), "fifo", {.samples = 2000, .levels = {0.999}});
  EXPECT_LE(row(until, 0).front(), 50);
  EXPECT_GT(row(until, 0).front(), values.back());
}

TEST(StartsTest, JobsComeAsOftenAsTheyCanBeServedInTheLongRun) {
  Case one(1);
  one.run(job_of(1, 1, {100}));
  one.jobs.push_back(job_of(2, 1, {150}));
  one.now_s = 1000;
  std::vector<Job> recent;
  for (std::int64_t id = 10; id < 40; ++id) {  // three times as many as one GPU serves
    recent.push_back(job_of(id, 1, {100}, 33 * static_cast<double>(id - 10)));
  }
  const StartTimes times =
      start_times(one.view(), "srsf", {.samples = 400, .levels = {0.4, 0.9}, .recent = recent});
  EXPECT_LT(row(times, 0).front(), kInf);
  EXPECT_GT(row(times, 1).front(), 1000);
}

TEST(StartsTest, ManyJobsAtTheFirstMomentOfTheRecentPastDoNotComeAgainTogether) {
  Case one(1);
  one.run(job_of(1, 1, {100}));
  one.jobs.push_back(job_of(2, 1, {500}));
  one.now_s = 1000;
  const auto with = [&](int first) {
    std::vector<Job> recent;
    for (int k = 0; k < first; ++k) recent.push_back(job_of(50 + k, 1, {100}, 0));
    for (int k = 0; k < 5; ++k) recent.push_back(job_of(10 + k, 1, {100}, 150.0 * (k + 1)));
    return start_times(one.view(), "srsf", {.recent = recent});
  };
  EXPECT_TRUE(with(40).quantiles == with(1).quantiles);
  // Where nothing else is known they do.
  const std::vector<Job> only{job_of(50, 1, {100}, 990)};
  EXPECT_GT(start_times(one.view(), "srsf", {.recent = only}).quantiles(2, 0), 100);
}

TEST(StartsTest, KnownDurationsGiveTheMomentsAtWhichGpusComeFree) {
  Case one(1);
  one.run(job_of(1, 1, {100}));
  one.jobs.push_back(job_of(2, 1, {50}, 1));
  one.jobs.push_back(job_of(3, 1, {10}, 2));
  const StartTimes fifo = start_times(one.view(), "fifo");
  EXPECT_EQ(fifo.job, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(row(fifo, 1), (std::vector<double>{100, 150}));
  // The shorter one preempts nobody at once, then goes first.
  EXPECT_EQ(row(start_times(one.view(), "srsf"), 1), (std::vector<double>{110, 100}));
}

/// When each job is given GPUs for the first time after a moment of the simulation itself.
std::vector<double> true_starts(const Simulation& run, const std::vector<std::int64_t>& jobs,
                                double now_s) {
  std::vector<double> out;
  for (const std::int64_t job : jobs) {
    double next = kInf;
    for (const JobSpan& span : run.spans) {
      if (span.job == job && span.start_s > now_s) next = std::min(next, span.start_s);
    }
    out.push_back(next - now_s);
  }
  return out;
}

TEST(StartsTest, WithoutErrorsAndArrivalsTheyAreThoseOfTheSimulation) {
  std::size_t compared = 0;
  for (const std::string_view policy :
       {"fifo", "first_fit", "slurm_backfill", "sjf", "srtf", "srsf", "gittins"}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::string(policy) + ", seed " + std::to_string(seed));
      Workload workload = random_workload(seed);
      // Which of two orders leads is not played forward: with gangs of one size they are the same.
      for (WorkloadJob& job : workload.jobs) job.gpus = policy == "gittins" ? 2 : job.gpus;
      // No two arrivals of the last moments tie with it: what comes later would be seen by one.
      const double last = workload.jobs.back().submit_s;
      const Simulation run = simulate(workload, policy);
      const std::vector<double> at{last};
      const std::vector<Moment> moments = moments_of(workload, policy, {}, at, 0);
      ASSERT_EQ(moments.size(), 1U);
      const Moment& now = moments.front();
      const StartTimes times = start_times({now.now_s, workload.tiers, now.jobs, now.running},
                                           policy, {.samples = 3, .horizon_s = kInf});
      const std::vector<double> expected = true_starts(run, times.job, now.now_s);
      for (std::ptrdiff_t level = 0; level < 3; ++level) EXPECT_EQ(row(times, level), expected);
      compared += expected.size();
    }
  }
  EXPECT_GT(compared, 1000U);
}

TEST(StartsTest, WithoutErrorsAndArrivalsQueuesByServiceAreThoseOfTheSimulation) {
  std::size_t compared = 0, late = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Workload workload = random_workload(seed);
    for (WorkloadJob& job : workload.jobs) job.submit_s = std::floor(job.submit_s / 30);
    workload.jobs.front().duration_s += 0.001;  // ticks of the simulation
    const std::vector<double> at{workload.jobs.back().submit_s};
    const Simulation run = simulate(workload, "las");
    const Moment now = moments_of(workload, "las", {}, at, 0).front();
    const StartTimes times = start_times({now.now_s, workload.tiers, now.jobs, now.running}, "las",
                                         {.samples = 1, .horizon_s = kInf});
    const std::vector<double> expected = true_starts(run, times.job, now.now_s);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(times.quantiles(1, i), expected[i], 0.1);
      late += expected[i] > 7200 / 8 ? 1 : 0;
    }
    compared += expected.size();
  }
  EXPECT_GT(compared, 500U);
  EXPECT_GT(late, 250U);  // after somebody was demoted
}

TEST(StartsTest, RestartsThatGoOnAndThoseToComeAreThoseOfTheSimulation) {
  std::size_t compared = 0, restarting = 0;
  for (const std::string_view policy : {"sjf", "srtf", "srsf"}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::string(policy) + ", seed " + std::to_string(seed));
      const Workload workload = random_workload(seed);
      const SimulationOptions options{.restart_s = 60};
      const std::vector<double> at{workload.jobs.back().submit_s};
      const Moment now = moments_of(workload, policy, options, at, 0).front();
      const StartTimes times = start_times({now.now_s, workload.tiers, now.jobs, now.running},
                                           policy, {.samples = 1, .horizon_s = kInf});
      const Simulation run = simulate(workload, policy, options);
      const std::vector<double> expected = true_starts(run, times.job, now.now_s);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(times.quantiles(1, i), expected[i], 0.01);
      }
      compared += expected.size();
      restarting += std::count_if(now.running.begin(), now.running.end(), [&](const auto& held) {
        return held.since_s == now.now_s &&
               std::any_of(now.jobs.begin(), now.jobs.end(), [&](const Job& job) {
                 return job.id == held.job && job.attained_s > 0;
               });
      });
    }
  }
  EXPECT_GT(compared, 500U);
  EXPECT_GT(restarting, 5U);
}

TEST(StartsTest, AJobThatFitsNowhereChangesNoStartOfTheOthers) {
  Case one(1);
  one.tiers.front().memory_gb = 16;
  one.run(job_of(0, 1, {10, 100, 400}));
  one.jobs.push_back(job_of(1, 1, {20, 50, 300}, 10));
  one.jobs.push_back(job_of(2, 1, {30, 80, 200}, 20));
  one.jobs.push_back(job_of(3, 1, {5}, 30));
  one.now_s = 40;
  const StartTimes without = start_times(one.view(), "fifo");
  Job large = job_of(9, 1, {10, 500}, 15);
  large.memory_gb = 20;
  one.jobs.push_back(large);
  const StartTimes with = start_times(one.view(), "fifo");
  for (std::ptrdiff_t level = 0; level < 3; ++level) {
    std::vector<double> expected = row(without, level);
    expected.push_back(kInf);
    EXPECT_EQ(row(with, level), expected);
  }
}

TEST(StartsTest, AJobThatRanInItsQueueOfServiceGoesBeforeOneThatCameToItLater) {
  Case one(1);
  one.now_s = 20000;
  one.run(job_of(1, 1, {100}, 19999));
  Job ran = job_of(2, 1, {1000}, 0), came = job_of(3, 1, {1000}, 1);
  ran.attained_s = ran.attained_gpu_s = 4250;
  ran.waiting_s = 5000;  // lost its GPU at 15 000 s and passed the limit a thousand seconds before
  came.attained_s = came.attained_gpu_s = 3300;
  came.waiting_s = 9000;
  one.jobs.push_back(ran);
  one.jobs.push_back(came);
  EXPECT_EQ(row(start_times(one.view(), "las"), 1), (std::vector<double>{1100, 100}));
  // Somebody was submitted in between, when it would have been moved had it not run there.
  one.jobs.push_back(job_of(4, 1, {10}, 14500));
  EXPECT_EQ(row(start_times(one.view(), "las"), 1), (std::vector<double>{110, 1110, 100}));
}

TEST(StartsTest, TheLawOfTheRunningJobIsThatOfTheNextStart) {
  Case one(1);
  one.run(job_of(1, 1, {10, 1000}));
  one.jobs.push_back(job_of(2, 1, {5}, 1));
  const StartTimes times = start_times(one.view(), "fifo", {.samples = 400});
  EXPECT_EQ(times.quantiles(0, 0), 10);
  EXPECT_EQ(times.quantiles(2, 0), 1000);
}

TEST(StartsTest, TheSamplesThatPlayOnStandForThoseThatStop) {
  // One after the other: the last of many starts when most samples have stopped.
  Case one(1);
  one.run(job_of(0, 1, {100}));
  for (int k = 1; k <= 64; ++k) one.jobs.push_back(job_of(k, 1, {100}, k));
  const StartTimes times = start_times(one.view(), "fifo");
  for (int k = 1; k <= 64; ++k) EXPECT_EQ(times.quantiles(1, k - 1), 100 * k);
  // Half of the time the first of them takes 1000 s and all others wait for that as well.
  one.jobs.front().remaining_steps = {100, 1000};
  const StartTimes either = start_times(one.view(), "fifo", {.samples = 1000});
  for (int k = 2; k <= 64; ++k) {
    EXPECT_EQ(either.quantiles(0, k - 1), 100 * k) << k;
    EXPECT_EQ(either.quantiles(2, k - 1), 100 * k + 900) << k;
  }
}

TEST(StartsTest, ForecastsAreWrongTogetherSoManyJobsDoNotAverageTheirErrorsAway) {
  Case one(1);
  std::vector<double> law;
  for (int k = 0; k < 100; ++k) law.push_back(50.0 + k);
  one.run(job_of(1, 1, law));
  for (int k = 0; k < 400; ++k) one.jobs.push_back(job_of(2 + k, 1, law, 1 + k));
  const StartTimes times = start_times(one.view(), "fifo", {.samples = 1000});
  // Independent ones would have 1.28 x 2 x sqrt(400) x 29 = 1 480 s between the outer quantiles.
  const double width = times.quantiles(2, 399) - times.quantiles(0, 399);
  EXPECT_GT(width, 3000);
  EXPECT_NEAR(times.quantiles(1, 399), 400 * 99.5, 1000);
}

TEST(StartsTest, SameBytesForAnyNumberOfThreadsAndAnySeedOfItsOwn) {
  const Workload workload = random_workload(3, 200, 16);
  SimulationOptions noisy;
  noisy.forecast_sigma = 1;
  const std::vector<double> at{workload.jobs[150].submit_s};
  const Moment now = moments_of(workload, "srsf", noisy, at, 100).front();
  const Snapshot snapshot{now.now_s, workload.tiers, now.jobs, now.running};
  StartOptions options{.samples = 37, .recent = now.recent};
  for (const std::string_view policy : {"first_fit", "las", "srsf", "best_value"}) {
    if (policy == "srsf") options.believed = now.believed;  // this one and the next look at sizes
    const StartTimes one = start_times(snapshot, policy, options, Execution{1});
    const StartTimes three = start_times(snapshot, policy, options, Execution{3});
    EXPECT_TRUE(one.quantiles == three.quantiles) << policy;
  }
  const StartTimes first = start_times(snapshot, "srsf", options);
  options.seed = 1;
  const StartTimes second = start_times(snapshot, "srsf", options);
  EXPECT_FALSE(first.quantiles == second.quantiles);
}

TEST(StartsTest, ShortJobsThatGoOnComingHoldALongOneBack) {
  Case one(1);
  one.now_s = 1000;
  one.run(job_of(1, 1, {100}));
  one.jobs.push_back(job_of(2, 1, {1e6}, 900));
  std::vector<Job> recent;
  for (int k = 0; k < 10; ++k) recent.push_back(job_of(10 + k, 1, {50}, 100.0 * k));
  const StartTimes alone = start_times(one.view(), "srsf");
  EXPECT_EQ(alone.quantiles(1, 0), 100);
  // One job of 50 s comes every 100 s: the long one starts in the first gap.
  const StartTimes crowded = start_times(one.view(), "srsf", {.samples = 2000, .recent = recent});
  EXPECT_GT(crowded.quantiles(2, 0), 140);
  // They do not go before it where the order is that of arrival.
  EXPECT_EQ(start_times(one.view(), "fifo", {.recent = recent}).quantiles(2, 0), 100);
  // With twice as many as the GPU can serve gaps are rare.
  for (Job& job : recent) job.remaining_steps = {200};
  const StartTimes full =
      start_times(one.view(), "srsf", {.samples = 2000, .horizon_s = 1e5, .recent = recent});
  EXPECT_GT(full.quantiles(2, 0), crowded.quantiles(2, 0));
}

TEST(StartsTest, WhatAPolicyBelievesOrdersTheJobsNotWhatTheyNeed) {
  Case one(1);
  one.run(job_of(1, 1, {100}));
  one.jobs.push_back(job_of(2, 1, {50}, 1));
  one.jobs.push_back(job_of(3, 1, {10}, 2));
  const std::vector<BelievedSteps> wrong{{2, 5}, {3, 500}};
  for (const std::string_view policy : {"srtf", "srsf", "gittins", "best_value"}) {
    const StartTimes times = start_times(one.view(), policy, {.believed = wrong});
    EXPECT_EQ(row(times, 1), (std::vector<double>{100, 150})) << policy;
  }
}

/// When a gang of two starts under an order by index, its size known, beside a job of some law and
/// one that ends at `look`: in the samples in which the law has its last finite value.
double start_beside(const std::vector<double>& law, double look, double size,
                    std::string_view policy) {
  Case two(2);
  two.run(job_of(0, 1, law));
  two.run(job_of(1, 1, {look}));
  two.jobs.push_back(job_of(2, 2, {size}, 0));
  const bool ends = law.back() < kInf;
  const StartTimes times = start_times(two.view(), policy, {.samples = 64, .levels = {0.3, 0.97}});
  return times.quantiles(ends ? 1 : 0, 0);
}

TEST(StartsTest, TheIndexOfAJobIsFollowedToItsLastValue) {
  struct Law {
    std::vector<double> left;
    double look, last;
  };
  for (const auto& [policy, stays] : {std::pair{"gittins", 1.0}, std::pair{"best_value", 1.05}}) {
    for (const Law& law : {Law{{100000}, 60000, 100000}, Law{{100000, 100000}, 60000, 100000},
                           Law{{100, 100000}, 40000, 100000}, Law{{100, 300, 5000}, 1000, 5000},
                           Law{{200, 500, 500, 500}, 400, 500}, Law{{1000, kInf}, 300, 1000}}) {
      std::vector<double> left;  // at the time of the look
      for (const double value : law.left) {
        if (value > law.look) left.push_back(value - law.look);
      }
      // Per GPU it is worth as much as a job of known size of 1 / index.
      const double same = 1 / gittins_index(left) / stays / 2;
      SCOPED_TRACE(std::string(policy) + ", " + std::to_string(law.look));
      EXPECT_EQ(start_beside(law.left, law.look, 0.999 * same, policy), law.look);
      EXPECT_EQ(start_beside(law.left, law.look, 1.001 * same, policy), law.last);
    }
  }
}

TEST(StartsTest, ABudgetAloneIsALawOfOneValue) {
  for (const std::string_view policy : {"gittins", "best_value"}) {
    Case two(2);
    const double budgets[] = {100000, 60000, 45000};
    for (int k = 0; k < 3; ++k) {
      Job job = job_of(k, k < 2 ? 1 : 2, {});
      job.budget_steps = budgets[k];
      if (k < 2) {
        two.run(job);
      } else {
        two.jobs.push_back(job);
      }
    }
    EXPECT_EQ(start_times(two.view(), policy).quantiles(1, 0), 100000) << policy;
  }
}

TEST(StartsTest, AJobThatOutlivesItsForecastGivesWay) {
  Case two(2);
  two.run(job_of(1, 1, {100}));
  two.run(job_of(2, 1, {40}));
  two.jobs.push_back(job_of(3, 2, {15}, 1));
  // At 40 s the first one has had 40 s and counts as 40 more, the third one as 2 x 15.
  const std::vector<BelievedSteps> believed{{1, 10}};
  EXPECT_EQ(row(start_times(two.view(), "srsf", {.believed = believed}), 1),
            std::vector<double>{40});
  EXPECT_EQ(row(start_times(two.view(), "srsf", {.believed = {{{1, 50}}}}), 1),
            std::vector<double>{100});
}

TEST(StartsTest, JobsThatEndTogetherMakeRoomTogether) {
  Case many(40);
  for (int job = 0; job < 40; ++job) many.run(job_of(job, 1, {job < 20 ? 50.0 : 60.0}));
  many.jobs.push_back(job_of(40, 20, {10}, 1));
  many.jobs.push_back(job_of(41, 1, {1}, 2));
  for (const std::string_view policy : {"fifo", "las", "srsf", "best_value"}) {
    // Where the short one goes first, 19 are free until it ends.
    const bool by_size = policy == "srsf" || policy == "best_value";
    EXPECT_EQ(start_times(many.view(), policy).quantiles(1, 0), by_size ? 51 : 50) << policy;
  }
}

TEST(StartsTest, BackfillFillsTheGapBeforeAReservationWithWhatItBelievesEndsInTime) {
  Case two(2);
  two.run(job_of(1, 1, {100}));
  two.jobs.push_back(job_of(2, 2, {50}, 1));
  two.jobs.push_back(job_of(3, 1, {80}, 2));
  two.jobs.push_back(job_of(4, 1, {60}, 3));
  EXPECT_EQ(row(start_times(two.view(), "slurm_backfill"), 1), (std::vector<double>{100, 0, 150}));
  const std::vector<BelievedSteps> long_limit{{3, 800}};
  EXPECT_EQ(row(start_times(two.view(), "slurm_backfill", {.believed = long_limit}), 1),
            (std::vector<double>{100, 150, 0}));
}

TEST(StartsTest, AReservationCountsOnTheLargestOfFewValuesOfWhatRunningJobsNeed) {
  Case four(4);
  four.run(job_of(1, 3, {10, 1000}));
  four.jobs.push_back(job_of(2, 4, {50}, 1));
  four.jobs.push_back(job_of(3, 1, {100}, 2));
  EXPECT_EQ(start_times(four.view(), "slurm_backfill").quantiles(1, 1), 0);
}

TEST(StartsTest, AJobThatMayNotBePreemptedKeepsItsGpus) {
  Case one(1);
  one.run(job_of(1, 1, {1000}));
  one.jobs.push_back(job_of(2, 1, {500}, 1));
  one.jobs.push_back(job_of(3, 1, {10}, 2));
  std::vector<Job> recent{job_of(9, 1, {1}, -10)};  // comes soon, and every 10 s
  const StartTimes may = start_times(one.view(), "srsf", {.recent = recent});
  one.jobs.front().preemptible = false;
  const StartTimes may_not = start_times(one.view(), "srsf", {.recent = recent});
  EXPECT_LT(may.quantiles(2, 1), 100);
  EXPECT_GE(may_not.quantiles(0, 1), 1000);
}

TEST(StartsTest, BeyondTheHorizonOrWithoutATierThatHoldsThemJobsDoNotStart) {
  Case one(1);
  one.run(job_of(1, 1, {100}));
  one.jobs.push_back(job_of(2, 1, {50}, 1));
  one.jobs.push_back(job_of(3, 1, {50}, 2));
  one.jobs.push_back(job_of(4, 2, {50}, 3));
  EXPECT_EQ(row(start_times(one.view(), "first_fit", {.horizon_s = 120}), 1),
            (std::vector<double>{100, kInf, kInf}));
  // One that never reaches its target holds its GPUs until its budget, or for good.
  one.jobs.front().remaining_steps = {kInf};
  EXPECT_EQ(row(start_times(one.view(), "first_fit"), 1), (std::vector<double>{kInf, kInf, kInf}));
  one.jobs.front().budget_steps = 70;
  EXPECT_EQ(start_times(one.view(), "first_fit").quantiles(1, 0), 70);
}

TEST(StartsTest, WithoutTiersNobodyStarts) {
  Case none(1);
  none.tiers.clear();
  for (const std::string_view policy : {"fifo", "slurm_backfill", "sjf", "las", "best_value"}) {
    EXPECT_TRUE(start_times(none.view(), policy).job.empty()) << policy;
  }
  Job job = job_of(1, 1, {10});
  job.options.clear();
  none.jobs.push_back(job);
  job.submit_s = -10;
  const std::vector<Job> recent{job};
  for (const std::string_view policy : {"fifo", "slurm_backfill", "sjf", "las", "best_value"}) {
    const StartTimes times = start_times(none.view(), policy, {.recent = recent});
    EXPECT_EQ(row(times, 1), std::vector<double>{kInf}) << policy;
  }
}

TEST(StartsTest, JobsStartOnlyOnCardsThatHoldThem) {
  Case both(1);
  both.tiers = {{.name = "big", .nodes = 1, .memory_gb = 80},
                {.name = "small", .nodes = 1, .memory_gb = 16}};
  Job either = job_of(1, 1, {100}), large = job_of(2, 1, {100}, 1);
  either.options.push_back({1, 1, 1.0});
  either.memory_gb = large.memory_gb = 40;
  both.jobs = {either, large};
  for (const std::string_view policy : {"fifo", "slurm_backfill", "srsf", "best_value"}) {
    EXPECT_EQ(row(start_times(both.view(), policy), 1), (std::vector<double>{0, 100})) << policy;
  }
  both.tiers.front().memory_gb = 0;  // not known, so it holds any
  EXPECT_EQ(row(start_times(both.view(), "fifo"), 1), (std::vector<double>{0, 100}));
  both.tiers.front().memory_gb = 16;
  EXPECT_EQ(row(start_times(both.view(), "fifo"), 1), (std::vector<double>{kInf, kInf}));
}

TEST(StartsTest, NoGpusAreKeptForJobsThatComeAndFitNowhere) {
  Case two(2);
  two.run(job_of(1, 1, {100}));
  two.run(job_of(2, 1, {1000}));
  two.jobs.push_back(job_of(3, 2, {10}, 1));
  two.now_s = 10;
  std::vector<Job> recent;
  for (int k = 0; k < 10; ++k) recent.push_back(job_of(20 + k, 1, {1000}, k));
  const auto starts = [&] {
    return start_times(two.view(), "slurm_backfill", {.horizon_s = 1e5, .recent = recent});
  };
  const double behind_all = starts().quantiles(2, 0);
  EXPECT_EQ(behind_all, 1000);  // those who come later may not delay it
  recent[5].priority = 1;
  recent[5].options.front().gpus = 3;
  EXPECT_EQ(starts().quantiles(2, 0), behind_all);
}

TEST(StartsTest, AMomentKnowsNothingOfTheFuture) {
  const Workload workload = random_workload(5, 80);
  SimulationOptions noisy;
  noisy.forecast_sigma = 1;
  const std::vector<double> at{workload.jobs[40].submit_s};
  const Moment now = moments_of(workload, "fifo", noisy, at, 20).front();
  // The same without the jobs that are still to come.
  Workload past = workload;
  std::erase_if(past.jobs, [&](const WorkloadJob& job) { return job.submit_s > now.now_s; });
  const Moment same = moments_of(past, "fifo", noisy, at, 20).front();
  ASSERT_EQ(now.jobs.size(), same.jobs.size());
  for (std::size_t i = 0; i < now.jobs.size(); ++i) {
    EXPECT_EQ(now.jobs[i].remaining_steps, same.jobs[i].remaining_steps);
  }
  ASSERT_EQ(now.recent.size(), 20U);
  for (std::size_t i = 0; i < now.recent.size(); ++i) {
    EXPECT_EQ(now.recent[i].remaining_steps, same.recent[i].remaining_steps);
    EXPECT_LT(now.recent[i].id, 0);
  }
}

TEST(StartsTest, TheOrderThatLeadsChangesInMomentsOnlyWhereTheSimulationLooksAgain) {
  SimulationOptions noisy;
  noisy.forecast_sigma = 1;
  int orders = 0, changes = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Workload workload = random_workload(seed, 200, 12);
    std::vector<double> at;
    for (const WorkloadJob& job : workload.jobs) {
      if (at.empty() || job.submit_s > at.back()) at.push_back(job.submit_s);
    }
    std::optional<bool> before;
    std::size_t led_at = 0;  // arrivals when the order changed last
    for (const Moment& now : moments_of(workload, "best_value", noisy, at, 200)) {
      const auto gang = std::ranges::find_if(
          now.recent, [](const Job& job) { return job.options.front().gpus > 1; });
      if (gang == now.recent.end()) continue;
      const bool by_gpu_time = gang->weight == 1;
      if (before && by_gpu_time != *before) {
        EXPECT_GE(now.recent.size(), 2 * led_at) << "seed " << seed;
        led_at = now.recent.size();
        ++changes;
      }
      before = by_gpu_time;
      ++orders;
    }
  }
  EXPECT_GT(orders, 500);
  EXPECT_GT(changes, 5);
}

TEST(StartsTest, AMomentShowsTheGangsThatThePolicyMayChoose) {
  Workload workload = on_gpus(4, {{0, 300}, {0, 400}, {10, 50}});
  for (WorkloadJob& job : workload.jobs) {
    job.gpus = 2;
    job.steps_per_s = {2};
    job.gangs = {{1, {1.2}}, {4, {3}}};
  }
  Workload rigid = workload;
  for (WorkloadJob& job : rigid.jobs) job.gangs.clear();
  const std::vector<double> at{10};
  const auto moment = [&](const Workload& given, std::string_view policy) {
    return moments_of(given, policy, {}, at, 2).front();
  };
  for (const std::string_view policy : {"fifo", "las", "srsf", "gittins"}) {
    const Moment now = moment(workload, policy), same = moment(rigid, policy);
    for (std::size_t i = 0; i < now.jobs.size(); ++i) {
      EXPECT_EQ(now.jobs[i].options, same.jobs[i].options) << policy;
    }
    EXPECT_EQ(now.recent.front().options, same.recent.front().options) << policy;
  }
  const Moment now = moment(workload, "best_value");
  ASSERT_EQ(now.jobs.size(), 3U);
  EXPECT_EQ(now.jobs.front().options.size(), 3U);
  EXPECT_EQ(now.recent.front().options.size(), 3U);
  // Whatever the gangs that run, each waiting job starts once they make room.
  const StartTimes starts = start_times(
      {.now_s = now.now_s, .tiers = workload.tiers, .jobs = now.jobs, .running = now.running},
      "best_value", {.samples = 20});
  EXPECT_EQ(starts.job.size(), now.jobs.size() - now.running.size());
  for (std::size_t k = 0; k < starts.job.size(); ++k) EXPECT_LT(starts.quantiles(1, k), 700);
}

/// Jobs of random_workload() that may run on 1, 2, 4 or 8 GPUs, faster by 1.4 to 1.9 at each.
Workload elastic_workload(std::uint64_t seed, int gpus_there, double restart_s) {
  Workload workload = random_workload(seed, 60, gpus_there);
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    WorkloadJob& job = workload.jobs[i];
    job.submit_s = std::floor(job.submit_s * 8 / gpus_there);
    job.steps_per_s = {1};
    job.restart_s = restart_s;
    const double exponent = 0.5 + 0.05 * static_cast<double>(i % 10);
    for (const int gpus : {1, 2, 4, 8}) {
      if (gpus == job.gpus) continue;
      job.gangs.push_back({gpus, {std::pow(static_cast<double>(gpus) / job.gpus, exponent)}});
    }
  }
  return workload;
}

/// Starts of the jobs that wait as the last one comes: how long on average, how much later the
/// median of one sample is than the simulation, and how far off.
struct Starts {
  double wait_s = 0, late_s = 0, off_s = 0;
};

template <class Draw>
Starts starts_of_elastic_jobs(const Draw& draw) {
  Starts sum;
  double count = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Workload workload = draw(seed);
    const std::vector<double> at{workload.jobs.back().submit_s};
    const Moment now = moments_of(workload, "best_value", {}, at, 0).front();
    const StartTimes times = start_times({now.now_s, workload.tiers, now.jobs, now.running},
                                         "best_value", {.samples = 1, .horizon_s = kInf});
    const std::vector<double> expected =
        true_starts(simulate(workload, "best_value"), times.job, now.now_s);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ++count;
      sum.wait_s += expected[i];
      sum.late_s += times.quantiles(1, i) - expected[i];
      sum.off_s += std::abs(times.quantiles(1, i) - expected[i]);
    }
  }
  EXPECT_GT(count, 50);
  return {sum.wait_s / count, sum.late_s / count, sum.off_s / count};
}

TEST(StartsTest, ElasticJobsStartAsThePlanDividesTheGpusAmongThem) {
  struct Crowd {
    int gpus = 0;
    double restart_s = 0;
  };
  for (const Crowd crowd : {Crowd{8, 0}, Crowd{8, 60}, Crowd{24, 0}, Crowd{24, 60}}) {
    SCOPED_TRACE(std::to_string(crowd.gpus) + " GPUs, restart_s " +
                 std::to_string(crowd.restart_s));
    const Starts starts = starts_of_elastic_jobs(
        [&](std::uint64_t seed) { return elastic_workload(seed, crowd.gpus, crowd.restart_s); });
    EXPECT_LT(std::abs(starts.late_s), 0.05 * starts.wait_s);
    EXPECT_LT(starts.off_s, 0.05 * starts.wait_s);
  }
}

/// The same with a second tier, on which jobs are 1.4 to 2.8 times as fast.
Workload elastic_on_two_tiers(std::uint64_t seed, double restart_s) {
  Workload workload = elastic_workload(seed, 8, restart_s);
  workload.tiers.push_back({.name = "fast", .nodes = 1, .gpus_per_node = 8});
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    WorkloadJob& job = workload.jobs[i];
    const double faster = 1.4 + 0.2 * static_cast<double>(i % 8);
    job.submit_s = std::floor(job.submit_s / 4);
    job.steps_per_s.push_back(faster);
    for (Gang& gang : job.gangs) gang.steps_per_s.push_back(faster * gang.steps_per_s.front());
  }
  return workload;
}

TEST(StartsTest, ElasticJobsGoToTheTierThatThePlanGivesThem) {
  for (const double restart_s : {0.0, 60.0}) {
    SCOPED_TRACE("restart_s " + std::to_string(restart_s));
    const Starts starts = starts_of_elastic_jobs(
        [&](std::uint64_t seed) { return elastic_on_two_tiers(seed, restart_s); });
    EXPECT_LT(std::abs(starts.late_s), 0.03 * starts.wait_s);
    EXPECT_LT(starts.off_s, 0.12 * starts.wait_s);
  }
}

using Bids = std::vector<std::vector<detail::Market::Bid>>;

/// The most that GPUs of two tiers are worth to the jobs from the i-th on, in every way.
double most_of(const Bids& bids, std::size_t i, std::vector<int> room) {
  if (i == bids.size()) return 0;
  double most = most_of(bids, i + 1, room);
  for (const detail::Market::Bid& bid : bids[i]) {
    if (bid.gpus > room[bid.tier]) continue;
    std::vector<int> left = room;
    left[bid.tier] -= bid.gpus;
    most = std::max(most, bid.value + most_of(bids, i + 1, left));
  }
  return most;
}

TEST(StartsTest, NoDivisionOfFewGpusIsWorthMoreThanTheOneByPrices) {
  detail::Market market;  // prices are those of the case before
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const detail::Rng rng{seed};
    std::vector<int> room{static_cast<int>(rng.bits(0, 0) % 9),
                          static_cast<int>(rng.bits(0, 1) % 9)};
    Bids bids(1 + rng.bits(0, 2) % 6);
    market.open(room);
    for (std::size_t i = 0; i < bids.size(); ++i) {
      market.come(static_cast<int>(i));
      for (int w = 0; w < 8; ++w) {
        const std::uint64_t draw = 8 * i + static_cast<std::uint64_t>(w);
        const double value = std::exp(4 * rng.uniform(draw, 3)) * (1 << w % 4);
        bids[i].push_back({.tier = w / 4, .gpus = 1 << w % 4, .way = w, .value = value});
        market.bid(bids[i].back());
      }
    }
    market.divide();
    double sum = 0;
    std::vector<int> left = room;
    for (std::size_t i = 0; i < market.size(); ++i) {
      if (market.way(i) < 0) continue;
      const detail::Market::Bid& bid = bids[static_cast<std::size_t>(market.job(i))][market.way(i)];
      sum += bid.value;
      left[bid.tier] -= bid.gpus;
    }
    EXPECT_GE(left[0], 0);
    EXPECT_GE(left[1], 0);
    EXPECT_NEAR(sum, most_of(bids, 0, room), 1e-9 * sum);
  }
}

/// Waiting jobs of 400 s on four GPUs, so many times as fast on all of them.
Case elastic_on_four(std::int64_t jobs, double faster) {
  Case four(4);
  for (std::int64_t id = 0; id < jobs; ++id) {
    four.jobs.push_back(job_of(id, 4, {400}, static_cast<double>(id)));
    four.jobs.back().options = {{0, 4, faster}, {0, 1, 1}};
  }
  return four;
}

TEST(StartsTest, ElasticJobsHaveOneGpuEachWhereManyWait) {
  Case four = elastic_on_four(8, 2);
  // On all four GPUs each would take half as long.
  EXPECT_EQ(row(start_times(four.view(), "best_value"), 1),
            (std::vector<double>{0, 0, 0, 0, 400, 400, 400, 400}));
}

TEST(StartsTest, AGangThatNeedsAllGpusGoesBeforeElasticJobsThatWouldLeaveSome) {
  Case four = elastic_on_four(2, 1.5);
  four.jobs.push_back(job_of(9, 4, {120}, 9));
  // Of the first GPU each elastic job makes more, two of them less than the gang of all four.
  EXPECT_EQ(row(start_times(four.view(), "best_value"), 1), (std::vector<double>{120, 120, 0}));
}

TEST(StartsTest, AMomentCanBePlayedThatRoundingPutsBeforeTheJobThatCame) {
  Workload workload = on_gpus(1, {{5.1729953294, 400}, {20.7314151265, 50}});
  for (const double at_s : {5.0, 20.0}) {
    const std::vector<double> at{at_s};
    const Moment now = moments_of(workload, "fifo", {}, at, 10).front();
    for (const Job& job : now.recent) EXPECT_LE(job.submit_s, now.now_s);
    EXPECT_NO_THROW((void)start_times({now.now_s, workload.tiers, now.jobs, now.running}, "fifo",
                                      {.recent = now.recent}));
  }
}

TEST(StartsTest, MomentsAreThoseOfIncreasingTimes) {
  const Workload workload = random_workload(1, 5);
  const auto said = [&](const std::vector<double>& at_s) {
    return refusal([&] { (void)moments_of(workload, "fifo", {}, at_s, 0); });
  };
  EXPECT_EQ(said({100, std::nan("")}), "moments_of: at_s[1] is nan, expected a time");
  EXPECT_EQ(said({300, 100}), "moments_of: at_s must increase, at_s[1] is 100 after 300");
  EXPECT_EQ(said({100, 100}), "moments_of: at_s must increase, at_s[1] is 100 after 100");
  EXPECT_EQ(said({}), "");
}

TEST(StartsTest, RecentJobsThatAllCameJustNowSayNothingOfThoseToCome) {
  Workload workload;
  workload.tiers = {{.name = "a", .nodes = 1}};
  for (std::int64_t id = 0; id < 3; ++id) {
    workload.jobs.push_back({.id = id, .submit_s = 10 + static_cast<double>(id), .duration_s = 50});
  }
  workload.jobs[1].submit_s = 10;
  const std::vector<double> at_s{0};
  const Moment first = moments_of(workload, "fifo", {}, at_s, 3).at(0);
  ASSERT_EQ(first.recent.size(), 2u);
  const Snapshot snapshot{first.now_s, workload.tiers, first.jobs, first.running};
  const StartTimes times = start_times(snapshot, "fifo", {.recent = first.recent});
  EXPECT_EQ(times.quantiles, start_times(snapshot, "fifo").quantiles);
}

TEST(StartsTest, TwoBeliefsOfOneJobAreRefused) {
  Case one(1);
  one.jobs.push_back(job_of(1, 1, {100}));
  const std::vector<BelievedSteps> believed{{1, 10}, {1, 20}};
  EXPECT_EQ(refusal([&] { (void)start_times(one.view(), "sjf", {.believed = believed}); }),
            "start_times: two believed steps of job 1");
}

TEST(StartsTest, WhatCannotBePlayedIsRefusedByName) {
  Case one(1);
  one.run(job_of(1, 1, {100}));
  one.jobs.push_back(job_of(2, 1, {50}, 1));
  const auto said = [&](std::string_view policy, const StartOptions& options) {
    return refusal([&] { (void)start_times(one.view(), policy, options); });
  };
  EXPECT_EQ(said("dare", {}),
            "start_times: policy is 'dare', expected one that is played forward: fifo, first_fit, "
            "slurm_backfill, sjf, srtf, srsf, las, gittins, best_value");
  EXPECT_EQ(said("fifo", {.samples = 0}), "start_times: samples is 0, expected 1 to 1000000");
  EXPECT_EQ(said("fifo", {.horizon_s = -1}),
            "start_times: horizon_s is -1, expected a time above 0");
  EXPECT_EQ(said("fifo", {.levels = {1.5}}),
            "start_times: level 1.5 after 0: levels must increase and lie between 0 and 1");
  const std::vector<Job> future{job_of(9, 1, {1}, 5)};
  EXPECT_EQ(said("fifo", {.recent = future}),
            "start_times: the recent jobs were submitted from 5 to 5 s, expected times until now, "
            "0 s");
  one.jobs.back().remaining_steps.clear();
  EXPECT_EQ(said("fifo", {}), "start_times: job 2 has neither remaining_steps nor budget_steps");
  one.jobs.back().remaining_steps = {1};
  one.jobs.back().weight = -1;
  EXPECT_EQ(said("fifo", {}), "start_times: job 2 has weight -1, expected 0 or more and finite");
  one.jobs.back().weight = 1;
  one.running.front().gpus = 3;
  EXPECT_EQ(said("fifo", {}),
            "start_times: job 1 runs on 3 GPUs of tier 0, which is none of the options that it can "
            "use");
  one.running.front().gpus = 1;
  one.running.front().partner = 2;
  EXPECT_EQ(said("fifo", {}),
            "start_times: job 1 shares the GPUs of job 2; pairs are not played forward");
}

TEST(StartsTest, MoreGpusHeldThanATierHasAreRefused) {
  Case two(2);
  two.run(job_of(1, 1, {100}));
  two.run(job_of(2, 1, {100}));
  EXPECT_EQ(refusal([&] { (void)start_times(two.view(), "fifo"); }), "");
  two.run(job_of(3, 2, {100}));
  EXPECT_EQ(refusal([&] { (void)start_times(two.view(), "fifo"); }),
            "start_times: the snapshot holds 4 GPUs of tier 'a', expected at most 2");
}

TEST(StartsTest, AJobThatHoldsTwoAllocationsIsRefused) {
  Case two(2);
  two.run(job_of(1, 1, {100}));
  two.running.push_back(two.running.front());
  two.jobs.push_back(job_of(2, 1, {50}, 1));
  EXPECT_EQ(refusal([&] { (void)start_times(two.view(), "fifo"); }),
            "start_times: job 1 holds two allocations");
}

}  // namespace
}  // namespace glidepath
