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

void best_options(const OptionTiles& tiles, const double* price, double* best, double* gpus,
                  double* tier) {
  const hn::CappedTag<double, kTileJobs> d;
  const size_t lanes = hn::Lanes(d);
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
      const size_t job = tile * kTileJobs + lane;
      hn::StoreU(top, d, best + job);
      hn::StoreU(top_gpus, d, gpus + job);
      hn::StoreU(top_tier, d, tier + job);
    }
  }
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

void add_multiple(size_t n, double a, const double* x, double* y) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto product = hn::Mul(hn::Set(d, a), hn::LoadU(d, x + i));
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), product), d, y + i);
  }
  for (; i < n; ++i) y[i] += a * x[i];
}

PlanKernels plan_table() { return {best_options, cuts_at, add_multiple}; }

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
