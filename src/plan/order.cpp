// SPDX-License-Identifier: Apache-2.0
// A later objective v_2 enters the round with a weight: maximise v_1 + w v_2. A choice that is
// optimal there and still worth V_1, the optimum of v_1, is worth most to v_2 among all that are
// worth V_1: any other such y has V_1 + w v_2(y) <= V_1 + w v_2(x). So the order needs no further
// constraint, only a weight that is small enough; with slack, the largest one that keeps to v_1 >=
// (1 - slack) V_1. Where V_1 is not proved optimal, a choice may be short of it by what the proof
// leaves open.
#include "plan/order.hpp"

#include <algorithm>
#include <cmath>

namespace glidepath::detail {
namespace {

constexpr int kFinestTieExponent = 30;  // tried where the first weight was not small enough
constexpr int kSlackExponent = -10;     // of the largest weight tried where slack is left

double worth(std::span<const std::int64_t> chosen, const std::vector<double>& value) {
  double sum = 0;
  for (const std::int64_t o : chosen) sum += value[o];
  return sum;
}

double top_of(std::span<const double> value) {
  return value.empty() ? 0 : *std::max_element(value.begin(), value.end());
}

/// The weights of several objectives multiply beyond what a round takes: it is then solved in
/// another unit, a power of two, so that no bit of a value changes.
RoundPlan solve_in_unit(RoundView view, std::span<const double> value,
                        const RoundOptions& options) {
  constexpr double kLargest = 1e12;
  const double top = top_of(value);
  view.value = value;
  if (top <= kLargest) return solve_round(view, options);
  const int down = std::ilogb(top / kLargest) + 1;
  const auto scaled = [down](std::span<const double> of, int by) {
    std::vector<double> out(of.begin(), of.end());
    for (double& x : out) x = std::ldexp(x, by * down);
    return out;
  };
  const std::vector<double> values = scaled(value, -1), prices = scaled(options.prices, -1);
  view.value = values;
  RoundOptions in_unit = options;
  in_unit.prices = prices;
  RoundPlan plan = solve_round(view, in_unit);
  plan.value = std::ldexp(plan.value, down);
  plan.bound = std::ldexp(plan.bound, down);
  plan.prices = scaled(plan.prices, 1);
  return plan;
}

}  // namespace

Ordered solve_in_order(const RoundView& view, std::span<const std::vector<double>> values,
                       double slack, const RoundOptions& options) {
  Ordered best{solve_in_unit(view, values.front(), options),
               std::vector<double>(values.size(), 0.0)};
  best.weight.front() = 1;
  std::vector<double> combined = values.front(),
                      trial;        // the objectives so far, with their weights
  std::vector<double> floor, open;  // of each objective so far: least worth, and what is not proved
  const auto settle = [&](double value) {
    floor.push_back((1 - slack) * value * (1 - 1e-12));
    open.push_back(best.round.gap * value);
  };
  settle(best.round.value);
  for (std::size_t g = 1; g < values.size(); ++g) {
    const double top = top_of(values[g]), top_before = top_of(combined);
    const double unit = top > 0 ? (top_before > 0 ? top_before / top : 1) : 0;
    double weight = 0;
    const auto attempt = [&](int smallness) {
      const double w = std::ldexp(unit, -smallness);
      trial = combined;
      for (std::size_t o = 0; o < trial.size(); ++o) trial[o] += w * values[g][o];
      RoundPlan found = solve_in_unit(view, trial, options);
      for (std::size_t l = 0; l < g; ++l) {
        const double least = floor[l] - (smallness == kFinestTieExponent ? open[l] : 0);
        if (worth(found.chosen, values[l]) < least) return false;
      }
      best.round = std::move(found);
      weight = w;
      return true;
    };
    if (unit > 0) {
      const bool kept = attempt(kTieExponent) || attempt(kFinestTieExponent);
      // Find the largest weight that keeps to the floors; they fall as it grows.
      for (int low = kSlackExponent, high = kTieExponent; kept && slack > 0 && high - low > 1;) {
        const int middle = (low + high) / 2;
        (attempt(middle) ? high : low) = middle;
      }
    }
    best.weight[g] = weight;
    for (std::size_t o = 0; o < combined.size(); ++o) combined[o] += weight * values[g][o];
    settle(worth(best.round.chosen, values[g]));
  }
  return best;
}

}  // namespace glidepath::detail
