// SPDX-License-Identifier: Apache-2.0
// The order of running jobs by a number of which most are known by a ceiling alone, against a sort
// of the numbers themselves.
#include "simulate/running_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "simulate/cluster.hpp"

namespace glidepath::detail {
namespace {

constexpr int kJobs = 400;
constexpr int kGpus = 150;
const Rng rng{5};

/// Jobs of 1 to 3 GPUs and ten seconds to five minutes, which come faster than they can be served.
Workload many_jobs() {
  Workload workload;
  workload.tiers.push_back({.name = "all", .nodes = kGpus});
  for (int i = 0; i < kJobs; ++i) {
    WorkloadJob& job = workload.jobs.emplace_back();
    job.id = i;
    job.submit_s = i / 2;
    job.gpus = 1 + i % 3;
    job.duration_s = static_cast<double>(10 + rng.bits(i, 0) % 300);
  }
  return workload;
}

/// A number that is the same for several jobs, falls by steps while a job runs, and grows with time
/// by so much a tick. Its ceiling is what it is now, for 20 ticks.
struct Stepped {
  const Cluster* cluster;
  double per_tick;
  const std::int64_t* epoch;
  int* asked;

  [[nodiscard]] double at(int job, Tick now) const {
    const Tick ran = now - cluster->runs[job].began;
    return static_cast<double>(rng.bits(job, 1) % 40) - static_cast<double>(ran / 5) +
           static_cast<double>(*epoch % 3 * (job % 7)) + growth(now);
  }
  [[nodiscard]] double exact(const Running& running) const {
    ++*asked;
    return at(running.job, cluster->now);
  }
  [[nodiscard]] Ceiling ceiling(const Running& running) const {
    ++*asked;
    return {at(running.job, cluster->now), cluster->now + 20};
  }
  [[nodiscard]] double growth(Tick now) const { return per_tick * static_cast<double>(now); }
  [[nodiscard]] std::int64_t changes() const { return *epoch; }
};

/// First come, first served; some running jobs are suspended, and at each event the order is
/// compared with a sort.
struct Compared {
  Compared(Cluster& c, double per_tick)
      : cluster(c), number{&c, per_tick, &epoch, &asked}, order(c, number) {}
  void arrive(int job) { waiting.push_back(job); }
  void leave(int) {}
  void fail(int) {}
  [[nodiscard]] Tick wake() const { return cluster.live > 0 ? cluster.now + 1 : kNever; }

  void schedule() {
    if (rng.bits(cluster.now, 2) % 50 == 0) ++epoch;
    compare();
    if (rng.bits(cluster.now, 3) % 4 == 0 && !cluster.running.empty()) {
      const int job = cluster.running[rng.bits(cluster.now, 4) % cluster.running.size()].job;
      cluster.suspend(job);
      waiting.push_back(job);
    }
    while (!waiting.empty() && cluster.submitted(waiting.front()).gpus <= cluster.free[0]) {
      cluster.start(waiting.front(), 0);
      waiting.pop_front();
    }
  }
  void compare() {
    std::vector<Place> sorted;
    for (const Running& running : cluster.running) {
      sorted.push_back({number.at(running.job, cluster.now), running.job});
    }
    std::ranges::sort(sorted, std::greater<>());
    const std::size_t some = rng.bits(cluster.now, 5) % 6;
    const int before = asked;
    order.look();
    for (std::size_t i = 0; i < std::min(some, sorted.size()); ++i) same(order.at(i), sorted[i]);
    asked_per_event.push_back(asked - before);
    lengths.push_back(static_cast<int>(sorted.size()));
    if (some == 0 || sorted.size() < 8) return;
    // One less, before or behind those that are known, and one more.
    const std::size_t gone = rng.bits(cluster.now, 6) % 8;
    order.remove(sorted[gone].job);
    sorted.erase(sorted.begin() + static_cast<std::ptrdiff_t>(gone));
    const Place more{sorted[rng.bits(cluster.now, 7) % 7].key - 0.5, kJobs};
    order.add({more, 1});
    sorted.insert(std::ranges::upper_bound(sorted, more, std::greater<>()), more);
    for (std::size_t i = 0; i < sorted.size(); ++i) same(order.at(i), sorted[i]);
    EXPECT_EQ(order.at(sorted.size()), nullptr);
  }
  void same(const Taken* found, const Place& expected) const {
    ASSERT_NE(found, nullptr) << "at " << cluster.now;
    EXPECT_EQ(found->place.key, expected.key) << "at " << cluster.now;
    EXPECT_EQ(found->place.job, expected.job) << "at " << cluster.now;
  }

  Cluster& cluster;
  std::int64_t epoch = 0;
  int asked = 0;
  Stepped number;
  RunningOrder<Stepped> order;
  std::deque<int> waiting{};
  std::vector<int> asked_per_event{}, lengths{};
};

TEST(RunningOrderTest, GivesTheJobsAsASortOfTheirNumbersDoesAndAsksFewOfThem) {
  const Workload workload = many_jobs();
  for (const double per_tick : {0.0, 1.0}) {
    const SimulationOptions options;
    Cluster cluster(workload, options);
    Compared compared(cluster, per_tick);
    run(cluster, compared);
    double asked = 0, jobs = 0;
    for (std::size_t i = 0; i < compared.lengths.size(); ++i) {
      asked += compared.asked_per_event[i];
      jobs += compared.lengths[i];
    }
    EXPECT_GT(*std::ranges::max_element(compared.lengths), 64) << "several blocks of jobs";
    EXPECT_LT(asked, 0.3 * jobs) << "most ceilings hold from one event to the next";
  }
}

TEST(RunningOrderTest, GivesNoneWhoseNumberIsLessThanWhatMatters) {
  const Workload workload = many_jobs();
  const SimulationOptions options;
  Cluster cluster(workload, options);
  struct Least : Compared {
    using Compared::Compared;
    void schedule() {
      Compared::schedule();
      order.look();
      const Taken* first = order.at(0);
      if (first == nullptr) return;
      const double least = first->place.key + 1;
      order.look();
      EXPECT_EQ(order.at(0, least), nullptr);
      ASSERT_NE(order.at(0, least - 1), nullptr);
      ++looked;
    }
    int looked = 0;
  } compared(cluster, 0.0);
  run(cluster, compared);
  EXPECT_GT(compared.looked, 100);
}

}  // namespace
}  // namespace glidepath::detail
