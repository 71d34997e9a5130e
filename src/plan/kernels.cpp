// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set by Highway's foreach_target; see fit/kernels.cpp.
#include "plan/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plan/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double best_options(const OptionTiles& tiles, const double* price, double value, double* usage) {
  const hn::CappedTag<double, kTileJobs> d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN double best[kTileJobs], gpus[kTileJobs], tier[kTileJobs];
  for (size_t tile = 0; tile < tiles.tiles; ++tile) {
    for (size_t lane = 0; lane < kTileJobs; lane += lanes) {
      auto top = hn::Zero(d), top_gpus = hn::Zero(d), top_tier = hn::Zero(d);
      for (size_t s = tiles.first[tile]; s < tiles.first[tile + 1]; ++s) {
        const auto t = tiles.tier[s];
        const auto k = hn::LoadU(d, tiles.gpus + s * kTileJobs + lane);
        const auto v = hn::LoadU(d, tiles.value + s * kTileJobs + lane);
        const auto profit = hn::Sub(v, hn::Mul(hn::Set(d, price[t]), k));
        const auto better = hn::Gt(profit, top);
        top = hn::IfThenElse(better, profit, top);
        top_gpus = hn::IfThenElse(better, k, top_gpus);
        top_tier = hn::IfThenElse(better, hn::Set(d, static_cast<double>(t)), top_tier);
      }
      hn::Store(top, d, best + lane);
      hn::Store(top_gpus, d, gpus + lane);
      hn::Store(top_tier, d, tier + lane);
    }
    for (size_t i = 0; i < kTileJobs; ++i) {
      value += best[i];
      usage[static_cast<size_t>(static_cast<int32_t>(tier[i])) * kTileJobs + i] += gpus[i];
    }
  }
  return value;
}

void cuts_at(size_t n, size_t dimensions, size_t stride, const double* b, const double* g,
             const double* x, double* out) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::LoadU(d, b + i);
    for (size_t t = 0; t < dimensions; ++t) {
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, g + t * stride + i), hn::Set(d, x[t])));
    }
    hn::StoreU(sum, d, out + i);
  }
  for (; i < n; ++i) {
    double sum = b[i];
    for (size_t t = 0; t < dimensions; ++t) sum += g[t * stride + i] * x[t];
    out[i] = sum;
  }
}

void combine_rows(size_t n, const double* a, const double* m, double* y) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  size_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    auto sum = hn::Zero(d);
    for (size_t r = 0; r < n; ++r) {
      sum = hn::Add(sum, hn::Mul(hn::Set(d, a[r]), hn::LoadU(d, m + r * n + c)));
    }
    hn::StoreU(sum, d, y + c);
  }
  for (; c < n; ++c) {
    double sum = 0;
    for (size_t r = 0; r < n; ++r) sum += a[r] * m[r * n + c];
    y[c] = sum;
  }
}

void eliminate(size_t n, const double* a, const double* x, double* m) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < n; ++r) {
    if (a[r] == 0) continue;
    double* row = m + r * n;
    size_t c = 0;
    for (; c + lanes <= n; c += lanes) {
      const auto product = hn::Mul(hn::Set(d, a[r]), hn::LoadU(d, x + c));
      hn::StoreU(hn::Sub(hn::LoadU(d, row + c), product), d, row + c);
    }
    for (; c < n; ++c) row[c] -= a[r] * x[c];
  }
}

PlanKernels plan_table() { return {best_options, cuts_at, combine_rows, eliminate}; }

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace glidepath::detail {

HWY_EXPORT(plan_table);

const PlanKernels& plan_kernels() {
  static const PlanKernels best = HWY_DYNAMIC_DISPATCH(plan_table)();
  return best;
}

}  // namespace glidepath::detail
#endif
