// SPDX-License-Identifier: Apache-2.0
// Google Benchmark of the planner. CPU time of one thread; `gap` is the certified gap in per cent.
#include "glidepath/plan.hpp"

#include <cmath>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/rng.hpp"

namespace {

using namespace glidepath;

struct Columns {
  std::vector<std::int64_t> job, tier, gpus, capacity;
  std::vector<double> value;
  [[nodiscard]] RoundView view() const { return {job, tier, gpus, value, capacity}; }
};

/// 3 tiers, gangs of 1, 2, 4 and 8, about 8.5 options per job, GPUs for half of the demand.
Columns busy_cluster(std::int64_t jobs) {
  const detail::Rng rng{7};
  Columns c;
  for (std::int64_t j = 0; j < jobs; ++j) {
    const auto id = static_cast<std::uint64_t>(j);
    const double worth = std::exp(rng.normal(id, 0));
    const double power = 0.6 + 0.38 * rng.uniform(id, 1);
    for (std::int64_t t = 0; t < 3; ++t) {
      const auto draw = static_cast<std::uint64_t>(10 * (t + 1));
      const double speed = (1 + 0.5 * static_cast<double>(t)) * (0.7 + 0.6 * rng.uniform(id, draw));
      for (std::int64_t size = 0; size < 4; ++size) {
        if (rng.uniform(id, draw + 1 + static_cast<std::uint64_t>(size)) > 8.5 / 12) continue;
        const auto k = std::int64_t{1} << size;
        c.job.push_back(j);
        c.tier.push_back(t);
        c.gpus.push_back(k);
        c.value.push_back(worth * speed * std::pow(static_cast<double>(k), power));
      }
    }
  }
  c.capacity.assign(3, jobs * 5 / 8);
  return c;
}

void BM_SolveRound(benchmark::State& state) {
  const Columns columns = busy_cluster(state.range(0));
  const std::vector<double> prices =
      state.range(1) ? solve_round(columns.view()).prices : std::vector<double>{};
  RoundPlan plan;
  for (auto _ : state) {
    plan = solve_round(columns.view(), {.prices = prices});
    benchmark::DoNotOptimize(plan.value);
  }
  state.counters["gap"] = 100 * plan.gap;
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_SolveRound)
    ->ArgNames({"jobs", "warm"})
    ->ArgsProduct({{100, 1'000, 10'000, 100'000}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

void BM_Plan(benchmark::State& state) {
  const Columns columns = busy_cluster(state.range(0));
  const detail::Rng rng{9};
  std::vector<Tier> tiers;
  for (const std::int64_t gpus : columns.capacity) {
    tiers.push_back({.name = "tier", .nodes = static_cast<int>(gpus), .memory_gb = 24});
  }
  std::vector<Job> jobs(static_cast<std::size_t>(state.range(0)));
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    jobs[j].id = static_cast<std::int64_t>(j);
    jobs[j].options = {{.tier = 0, .gpus = 1, .steps_per_s = 1}};
    for (std::uint64_t s = 0; s < 64; ++s) {
      jobs[j].remaining_steps.push_back(
          std::exp(9 + rng.normal(j, 0) + 0.01 * static_cast<double>(s)));
    }
  }
  for (std::size_t o = 0; o < columns.job.size(); ++o) {
    jobs[static_cast<std::size_t>(columns.job[o])].options.push_back(
        {.tier = static_cast<int>(columns.tier[o]),
         .gpus = static_cast<int>(columns.gpus[o]),
         .steps_per_s = columns.value[o]});
  }
  const Snapshot snapshot{.tiers = tiers, .jobs = jobs};
  const std::vector<double> prices = plan(snapshot).prices;
  Plan result;
  for (auto _ : state) {
    result = plan(snapshot, {.prices = prices});
    benchmark::DoNotOptimize(result.value);
  }
  state.counters["gap"] = 100 * result.gap;
}
BENCHMARK(BM_Plan)->ArgName("jobs")->Arg(100)->Arg(10'000)->Unit(benchmark::kMicrosecond);

void BM_GittinsIndex(benchmark::State& state) {
  std::vector<double> samples;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    samples.push_back(std::exp(0.005 * static_cast<double>(i)));
  }
  for (auto _ : state) benchmark::DoNotOptimize(gittins_index(samples));
}
BENCHMARK(BM_GittinsIndex)->ArgName("samples")->Arg(1'000);

}  // namespace

BENCHMARK_MAIN();
