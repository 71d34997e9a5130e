// SPDX-License-Identifier: Apache-2.0
#include "glidepath/curve.hpp"
#include "glidepath/fit.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/rng.hpp"

namespace glidepath {
namespace {

Rows losses(Family family, int m, int n) {
  Rows rows(m, n);
  const detail::Rng rng{7};
  for (int i = 0; i < m; ++i) {
    const double floor = 0.1 + 1.9 * rng.uniform(i, 0),
                 scale = 0.5 * std::pow(10, rng.uniform(i, 1));
    const double rate =
        family == Family::exp3 ? (2 + 6 * rng.uniform(i, 2)) / n : 0.3 + 0.9 * rng.uniform(i, 2);
    for (int j = 0; j < n; ++j) {
      const double t = j + 1.0,
                   phi = family == Family::exp3 ? std::exp(-rate * t) : std::pow(t, -rate);
      rows(i, j) = floor + scale * (phi + 0.01 * rng.normal(i, j));
    }
  }
  return rows;
}

std::vector<double> counting(int n) {
  std::vector<double> t(n);
  std::iota(t.begin(), t.end(), 1.0);
  return t;
}

void BM_Fit(benchmark::State& state) {
  const auto family = static_cast<Family>(state.range(0));
  const int n = static_cast<int>(state.range(1)), m = 128;
  const Rows y = losses(family == Family::exp3 ? family : Family::pow3, m, n);
  const auto t = counting(n);
  int i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        fit({t, std::span(y.data() + static_cast<std::ptrdiff_t>(i) * n, n)}, {.family = family}));
    i = (i + 1) % m;
  }
  state.SetLabel(std::string(name(family)));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Fit)
    ->ArgNames({"family", "n"})
    ->ArgsProduct({{int(Family::pow3), int(Family::exp3), int(Family::pow4)}, {50, 200, 1000}});

void BM_FitBatch(benchmark::State& state) {
  const int m = 10000, n = static_cast<int>(state.range(0)),
            threads = static_cast<int>(state.range(1));
  const Rows y = losses(Family::pow3, m, n);
  const auto t = counting(n);
  for (auto _ : state) {
    benchmark::DoNotOptimize(fit_batch(t, y, {.family = Family::pow3}, {.threads = threads}));
  }
  state.SetItemsProcessed(state.iterations() * m);
}
BENCHMARK(BM_FitBatch)
    ->ArgNames({"n", "threads"})
    ->ArgsProduct({{50, 200}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_EvaluateBatch(benchmark::State& state) {
  const int m = 4096, h = 1024;
  std::vector<double> floor(m, 1.0), scale(m, 3.0), rate(m), steps(h);
  for (int i = 0; i < m; ++i) rate[i] = 0.3 + 0.0002 * i;
  for (int j = 0; j < h; ++j) {
    steps[j] =
        state.range(0) != 0 ? 100 * std::exp(9.2 * j / (h - 1)) : 100 + 11.0 * j + 0.1 * (j % 3);
  }
  Rows out(m, h);
  for (auto _ : state) {
    evaluate_batch({Family::pow3, {floor, scale, rate}}, steps, out, {.threads = 1});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * m * h);
}
BENCHMARK(BM_EvaluateBatch)->ArgName("log_spaced")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace glidepath

BENCHMARK_MAIN();
