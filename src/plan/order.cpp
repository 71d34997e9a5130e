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

double top_of(const std::vector<double>& value) {
  return value.empty() ? 0 : *std::max_element(value.begin(), value.end());
}

}  // namespace

Ordered solve_in_order(const RoundView& view, std::span<const std::vector<double>> values,
                       double slack, const RoundOptions& options) {
  RoundView round = view;
  round.value = values.front();
  Ordered best{solve_round(round, options), std::vector<double>(values.size(), 0.0)};
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
      round.value = trial;
      RoundPlan found = solve_round(round, options);
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
