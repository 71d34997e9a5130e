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

bool best_sets(const AlikeOptions& tiles, const double* cost, double* value, double* times) {
  const hn::CappedTag<double, kTileJobs> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN double best[kTileJobs];
  HWY_ALIGN int64_t set[kTileJobs];
  double sum = *value;
  auto ties = hn::Zero(d);
  for (size_t tile = 0; tile < tiles.tiles; ++tile) {
    for (size_t lane = 0; lane < kTileJobs; lane += lanes) {
      auto top = hn::Zero(d);
      auto top_set = hn::Zero(di);
      for (size_t s = tiles.first[tile]; s < tiles.first[tile + 1]; ++s) {
        const auto own = hn::LoadU(di, tiles.set + s * kTileJobs + lane);
        const auto v = hn::LoadU(d, tiles.value + s * kTileJobs + lane);
        const auto profit = hn::Sub(v, hn::GatherIndex(d, cost, own));
        ties = hn::IfThenElse(hn::Eq(profit, top), hn::Max(ties, top), ties);
        const auto better = hn::Gt(profit, top);
        top = hn::IfThenElse(better, profit, top);
        top_set = hn::IfThenElse(hn::RebindMask(di, better), own, top_set);
      }
      hn::Store(top, d, best + lane);
      hn::Store(top_set, di, set + lane);
    }
    for (size_t i = 0; i < kTileJobs; ++i) {
      sum += best[i];
      times[static_cast<size_t>(set[i]) * kTileJobs + i] += 1;
    }
  }
  *value = sum;
  return hn::AllTrue(d, hn::Eq(ties, hn::Zero(d)));
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

size_t highest_cut(size_t n, size_t dimensions, size_t stride, const double* b, const double* g,
                   const double* x, double floor, double* above) {
  constexpr size_t kMaxLanes = 8;
  const hn::CappedTag<double, kMaxLanes> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN double high[kMaxLanes];
  HWY_ALIGN int64_t place[kMaxLanes];
  double best = *above;
  size_t first = n, i = 0;
  auto top = hn::Set(d, best);
  auto top_at = hn::Set(di, static_cast<int64_t>(n));
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::LoadU(d, b + i);
    for (size_t t = 0; t < dimensions; ++t) {
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, g + t * stride + i), hn::Set(d, x[t])));
    }
    const auto height = hn::Sub(sum, hn::Set(d, floor));
    const auto higher = hn::Gt(height, top);
    top = hn::IfThenElse(higher, height, top);
    top_at =
        hn::IfThenElse(hn::RebindMask(di, higher), hn::Iota(di, static_cast<int64_t>(i)), top_at);
  }
  hn::Store(top, d, high);
  hn::Store(top_at, di, place);
  for (size_t lane = 0; lane < lanes; ++lane) {
    const auto at = static_cast<size_t>(place[lane]);
    if (at == n || high[lane] < best || (high[lane] == best && at > first)) continue;
    best = high[lane];
    first = at;
  }
  for (; i < n; ++i) {
    double sum = b[i];
    for (size_t t = 0; t < dimensions; ++t) sum += g[t * stride + i] * x[t];
    if (sum - floor > best) best = sum - floor, first = i;
  }
  *above = best;
  return first;
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

PlanKernels plan_table() {
  return {best_options, best_sets, cuts_at, highest_cut, combine_rows, eliminate};
}

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
