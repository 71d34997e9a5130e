// SPDX-License-Identifier: Apache-2.0
// The order of running jobs by a number of which most are known by a ceiling alone, against a sort
// of the numbers themselves, and the time until GPUs come free, against a sort of all ends.
#include "simulate/running_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "common/numbers.hpp"
#include "common/rng.hpp"
#include "simulate/cluster.hpp"
#include "simulate/patient.hpp"

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

/// First come, first served; some running jobs are suspended.
struct Served {
  explicit Served(Cluster& c) : cluster(c) {}
  void arrive(int job) { waiting.push_back(job); }
  void leave(int) {}
  void fail(int) {}
  [[nodiscard]] Tick wake() const { return cluster.live > 0 ? cluster.now + 1 : kNever; }

  void serve() {
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

  Cluster& cluster;
  std::deque<int> waiting{};
};

/// At each event the order is compared with a sort.
struct Compared : Served {
  Compared(Cluster& c, double per_tick)
      : Served(c), number{&c, per_tick, &epoch, &asked}, order(c, number) {}
  void schedule() {
    if (rng.bits(cluster.now, 2) % 50 == 0) ++epoch;
    compare();
    serve();
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

  std::int64_t epoch = 0;
  int asked = 0;
  Stepped number;
  RunningOrder<Stepped> order;
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

/// A rank by which a job takes a given time in all, of which now and then another is said.
struct Medians {
  const Cluster* cluster;
  const std::int64_t* epoch;

  [[nodiscard]] double left(int job, double) const {
    const double all = static_cast<double>(1 + rng.bits(job, 8 + *epoch % 3) % 400) + 0.3;
    return std::max(0.0, all * static_cast<double>(cluster->per_second) - cluster->done(job));
  }
  [[nodiscard]] Lasting median(const Running& running) const {
    const double now = left(running.job, kMedianQuantile);
    return {now, now > 0 ? cluster->now + static_cast<Tick>(now) : cluster->now};
  }
  [[nodiscard]] std::int64_t changes() const { return *epoch; }
};

/// At each event the time until GPUs come free is compared with a sort of the ends of all jobs.
struct Awaited : Served {
  explicit Awaited(Cluster& c) : Served(c), rank{&c, &epoch}, tenures(c, rank) {}
  void schedule() {
    if (rng.bits(cluster.now, 9) % 50 == 0) ++epoch;
    ends.clear();
    for (const Running& running : cluster.running) {
      const Tick pending = std::max<Tick>(0, cluster.runs[running.job].resumes - cluster.now);
      pending_seen += pending > 0 ? 1 : 0;
      ends.push_back({static_cast<double>(pending) + rank.left(running.job, kMedianQuantile),
                      running.gpus, running.job});
    }
    tenures.look();
    compare();
    if (ends.size() > 3) {
      const std::size_t gone = rng.bits(cluster.now, 10) % ends.size();
      tenures.remove(ends[gone].job);
      ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(gone));
      compare();
      const End more{static_cast<double>(rng.bits(cluster.now, 11) % 300), 2, kJobs};
      tenures.add(more.left, more.gpus, more.job);
      ends.push_back(more);
      compare();
    }
    serve();
  }

 private:
  struct End {
    double left;
    int gpus, job;
  };
  void compare() {
    std::ranges::sort(ends, {}, &End::left);
    for (int i = 0; i < 3; ++i) {
      const int room = static_cast<int>(rng.bits(cluster.now, 12 + i) % 5);
      const int gpus = 1 + static_cast<int>(rng.bits(cluster.now, 15 + i) % (kGpus + 10));
      int got = room;
      double wait = kInfinity;
      for (const End& end : ends) {
        got += end.gpus;
        if (got < gpus) continue;
        wait = end.left;
        break;
      }
      const double found = tenures.wait_for(gpus, room);
      if (wait == kInfinity) {
        EXPECT_EQ(found, kInfinity);
      } else {
        EXPECT_NEAR(found, wait, 0.51) << "to a tick, at " << cluster.now;
        ++compared;
      }
    }
  }
  std::int64_t epoch = 0;
  Medians rank;
  Tenures<Medians> tenures;
  std::vector<End> ends;

 public:
  int compared = 0, pending_seen = 0;
};

TEST(TenuresTest, GpusComeFreeAsASortOfTheEndsOfAllJobsSaysStartsThatArePendingIncluded) {
  const Workload workload = many_jobs();
  SimulationOptions options;
  options.restart_s = 7;
  Cluster cluster(workload, options);
  Awaited awaited(cluster);
  run(cluster, awaited);
  EXPECT_GT(awaited.compared, 1000);
  EXPECT_GT(awaited.pending_seen, 100);
}

}  // namespace
}  // namespace glidepath::detail
