// SPDX-License-Identifier: Apache-2.0
// Evaluates a batch of pow3 curves with glidepath and with the usual loops, beside filling the same
// memory; prints one JSON object a line as fit_rivals does. Thread CPU time, median of interleaved
// rounds. Error: largest relative error of a value against long double.
#include "glidepath/curve.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#ifdef __SSE2__
#include <immintrin.h>
#endif

void by_pow(const double* p, const double* t, int n, double* out);
void by_exp(const double* p, const double* log_t, int n, double* out);

namespace {

constexpr int kCurves = 4096, kSteps = 1024;

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Writes past the caches where the machine can.
void fill(glidepath::Rows& out) {
#ifdef __SSE2__
  const __m128d value = _mm_set1_pd(1.0);
  for (std::ptrdiff_t i = 0; i + 2 <= out.size(); i += 2) _mm_stream_pd(out.data() + i, value);
  _mm_sfence();
#else
  std::fill_n(out.data(), out.size(), 1.0);
#endif
}

struct Row {
  std::string what;
  std::function<void(glidepath::Rows&)> run;
  const std::vector<double>* steps;  // null: nothing to check
  std::vector<double> seconds{};
  double error = 0;
};

}  // namespace

int main() {
  std::vector<double> floor(kCurves), scale(kCurves), rate(kCurves);
  for (int i = 0; i < kCurves; ++i) {
    floor[i] = 0.1 + 1.9 * i / kCurves;
    scale[i] = 0.5 + 4.5 * ((i * 37) % kCurves) / kCurves;
    rate[i] = 0.3 + 0.9 * ((i * 101) % kCurves) / kCurves;
  }
  std::vector<double> spaced(kSteps), arbitrary(kSteps), log_arbitrary(kSteps);
  for (int j = 0; j < kSteps; ++j) {
    spaced[j] = 100.0 * std::exp(9.2 * j / (kSteps - 1));
    arbitrary[j] = 100.0 + 900.0 * j + 300.0 * std::sin(j);
    log_arbitrary[j] = std::log(arbitrary[j]);
  }
  const glidepath::CurvesView curves{glidepath::Family::pow3, {floor, scale, rate}};
  const auto each = [&](auto loop, const std::vector<double>& x) {
    return [&, loop](glidepath::Rows& out) {
      for (int i = 0; i < kCurves; ++i) {
        const double p[3] = {floor[i], scale[i], rate[i]};
        loop(p, x.data(), kSteps, out.data() + static_cast<std::ptrdiff_t>(i) * kSteps);
      }
    };
  };
  std::vector<Row> rows{
      {"limit: fill the memory", fill, nullptr},
      {"evaluate, log-spaced",
       [&](glidepath::Rows& out) { evaluate_batch(curves, spaced, out, {.threads = 1}); }, &spaced},
      {"evaluate, arbitrary",
       [&](glidepath::Rows& out) { evaluate_batch(curves, arbitrary, out, {.threads = 1}); },
       &arbitrary},
      {"std::pow loop", each(by_pow, arbitrary), &arbitrary},
  };
#ifdef GLIDEPATH_HAS_AVX2_LOOP
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    rows.push_back({"libmvec AVX2 exp loop", each(by_exp, log_arbitrary), &arbitrary});
  }
#endif
  glidepath::Rows out(kCurves, kSteps);
  for (int round = 0; round < 7; ++round) {
    for (Row& row : rows) {
      const double begin = now();
      row.run(out);
      row.seconds.push_back(now() - begin);
      for (int i = 0; row.steps != nullptr && round == 0 && i < kCurves; i += 61) {
        for (int j = 0; j < kSteps; ++j) {
          const long double t = (*row.steps)[j];
          const long double value =
              floor[i] + scale[i] * std::pow(t, -static_cast<long double>(rate[i]));
          row.error = std::max(row.error, static_cast<double>(std::abs(out(i, j) / value - 1)));
        }
      }
    }
  }
  for (Row& row : rows) {
    std::ranges::sort(row.seconds);
    std::printf(
        "{\"what\": \"%s\", \"family\": \"pow3\", \"n\": %d, \"per_second\": %.6g, \"error\": "
        "%.3g}\n",
        row.what.c_str(), kSteps, 1.0 * kCurves * kSteps / row.seconds[row.seconds.size() / 2],
        row.error);
  }
  return 0;
}
