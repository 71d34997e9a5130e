// SPDX-License-Identifier: Apache-2.0
// Goodput = throughput x statistical efficiency (Pollux, Qiao et al., OSDI 2021). With k GPUs, b
// examples per GPU and pass and s passes, M = s k b is the batch and
//
//   T = (s - 1) T_1(b) + T_k(b),   goodput = M / T x (phi + M0) / (phi + M)
//
// T_k the time of a step, T_1 that of one on a single GPU, which exchanges nothing.
#include "glidepath/hardware.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "common/require.hpp"

namespace glidepath {
namespace {

constexpr double kSpacing = 1.015;  // of what is tried, where that is more than one
constexpr double kMaxBatch = 1e9;   // so that passes and batches stay whole in a double

void check(const BatchLimits& limits) {
  double least = 1;
  for (const auto& [what, value] :
       {std::pair{"largest_per_gpu", limits.largest_per_gpu},
        std::pair{"reference", limits.reference}, std::pair{"largest", limits.largest}}) {
    if (!(value >= least && value <= kMaxBatch)) {
      detail::refuse("best_batch: ", what, " is ", value, ", expected ", least, " to ", kMaxBatch);
    }
    if (std::string_view(what) == "reference") least = value;
  }
  if (!(limits.noise_scale >= 0 && std::isfinite(limits.noise_scale))) {
    detail::refuse("best_batch: noise_scale is ", limits.noise_scale, ", expected 0 or more");
  }
}

}  // namespace

double statistical_efficiency(const BatchLimits& limits, double batch) noexcept {
  return (limits.noise_scale + limits.reference) / (limits.noise_scale + batch);
}

std::optional<BatchChoice> best_batch(const Scaling& scaling, int gpus, int nodes,
                                      const BatchLimits& limits) {
  check(limits);
  if (gpus < 1 || nodes < 1 || nodes > gpus) {
    detail::refuse("best_batch: ", gpus, " GPUs on ", nodes, " nodes");
  }
  const double most_per_pass = std::floor(limits.largest_per_gpu);
  const double most = std::floor(limits.largest / gpus);  // of a GPU in all passes
  const double least = std::ceil(limits.reference / gpus);
  std::optional<BatchChoice> best;
  const auto next = [](double whole) { return std::max(whole + 1, std::floor(whole * kSpacing)); };
  const auto consider = [&](double passes, double per_gpu) {
    BatchChoice choice{
        .batch = passes * gpus * per_gpu, .per_gpu = per_gpu, .passes = static_cast<int>(passes)};
    choice.step_s = (passes - 1) * step_seconds(scaling, 1, 1, per_gpu) +
                    step_seconds(scaling, gpus, nodes, per_gpu);
    choice.efficiency = statistical_efficiency(limits, choice.batch);
    choice.steps_per_s = choice.batch / limits.reference * choice.efficiency / choice.step_s;
    if (!best || choice.steps_per_s > best->steps_per_s) best = choice;
  };
  for (double passes = std::ceil(least / most_per_pass); passes <= most; passes = next(passes)) {
    const double from = std::max(1.0, std::ceil(least / passes));
    const double to = std::min(most_per_pass, std::floor(most / passes));
    for (double b = from; b <= to; b = next(b)) consider(passes, b);
    if (to >= from) consider(passes, to);
    // The largest batch fits: more passes make it no larger, and a pass costs what does not shrink.
    if (to < most_per_pass) break;
  }
  return best;
}

}  // namespace glidepath
