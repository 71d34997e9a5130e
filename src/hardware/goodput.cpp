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
#include "hardware/gang.hpp"

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
    detail::refuse("best_batch: noise_scale is ", limits.noise_scale,
                   ", expected 0 or more and finite");
  }
}

/// Seconds of a step by examples per GPU.
struct Line {
  double fixed, each;
  [[nodiscard]] double at(double per_gpu) const { return fixed + each * per_gpu; }
};
Line line_of(const Scaling& scaling, int gpus, int nodes) {
  const double first = step_seconds(scaling, gpus, nodes, 1);
  const double each = (step_seconds(scaling, gpus, nodes, kMaxBatch) - first) / (kMaxBatch - 1);
  return {std::max(0.0, first - each), each};
}

}  // namespace

double statistical_efficiency(const BatchLimits& limits, double batch) noexcept {
  return (limits.noise_scale + limits.reference) / (limits.noise_scale + batch);
}

std::optional<BatchChoice> best_batch(const Scaling& scaling, int gpus, int nodes,
                                      const BatchLimits& limits) {
  check(limits);
  if (!detail::is_gang(gpus, nodes)) {
    detail::refuse("best_batch: ", gpus, " GPUs on ", nodes, " nodes, expected ",
                   detail::kGangRange);
  }
  const double most_per_pass = std::floor(limits.largest_per_gpu);
  const double most = std::floor(limits.largest / gpus);  // of a GPU in all passes
  const double least = std::ceil(limits.reference / gpus);
  std::optional<BatchChoice> best;
  const auto consider = [&](double passes, double per_gpu) {
    BatchChoice choice{
        .batch = passes * gpus * per_gpu, .per_gpu = per_gpu, .passes = static_cast<int>(passes)};
    choice.step_s = (passes - 1) * step_seconds(scaling, 1, 1, per_gpu) +
                    step_seconds(scaling, gpus, nodes, per_gpu);
    choice.efficiency = statistical_efficiency(limits, choice.batch);
    choice.steps_per_s = choice.batch / limits.reference * choice.efficiency / choice.step_s;
    if (!best || choice.steps_per_s > best->steps_per_s) best = choice;
  };
  // T is a line in b and a line in s. With the other one given, goodput falls on both sides of
  //
  //   x* = sqrt(phi fixed / (each examples)),   T = fixed + each x,   M = examples x
  //
  // so the best whole x is beside x* or at an end.
  const auto best_whole = [&](double fixed, double each, double examples, double from, double to) {
    const double worth = limits.noise_scale * fixed;
    const double top = worth > 0 ? std::sqrt(worth / (each * examples)) : 0;
    const double below = std::clamp(std::floor(top), from, to);
    return std::pair{below, std::min(below + 1, to)};
  };
  const Line alone = line_of(scaling, 1, 1), gang = line_of(scaling, gpus, nodes);
  const auto next = [](double whole) { return std::max(whole + 1, std::floor(whole * kSpacing)); };
  for (double b = 1; b <= std::min(most_per_pass, most); b = next(b)) {
    const double from = std::ceil(least / b), to = std::floor(most / b);
    if (from > to) continue;
    const double pass_s = alone.at(b);
    const auto [below, above] = best_whole(gang.at(b) - pass_s, pass_s, gpus * b, from, to);
    consider(below, b);
    consider(above, b);
  }
  for (double s = std::ceil(least / most_per_pass); s <= most; s = next(s)) {
    const double from = std::ceil(least / s), to = std::min(most_per_pass, std::floor(most / s));
    if (from > to) continue;
    const auto [below, above] = best_whole((s - 1) * alone.fixed + gang.fixed,
                                           (s - 1) * alone.each + gang.each, gpus * s, from, to);
    consider(s, below);
    consider(s, above);
  }
  return best;
}

}  // namespace glidepath
