// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "common/parallel.hpp"
#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/round.hpp"

namespace glidepath {
namespace {

void check(const RoundView& view, const RoundOptions& options) {
  using detail::refuse;
  detail::check_gap("solve_round", options.gap);
  if (options.prices.empty()) return;
  if (options.prices.size() != view.capacity.size()) {
    refuse("solve_round: prices has ", options.prices.size(), " values, expected ",
           view.capacity.size(), ", one for each tier");
  }
  for (std::size_t t = 0; t < options.prices.size(); ++t) {
    if (!(options.prices[t] >= 0 && std::isfinite(options.prices[t]))) {
      refuse("solve_round: the price of tier ", t, " is ", options.prices[t],
             ", expected 0 or more and finite");
    }
  }
}

}  // namespace

RoundPlan solve_round(const RoundView& view, const RoundOptions& options, Execution execution) {
  using namespace detail;
  detail::check(execution);
  ::glidepath::check(view, options);
  const Kept<Round> memory;
  const Round& round = *memory;
  read_round(view, *memory);
  Prices price = minimise_dual(round, options.prices, execution);
  const Inner inner = inner_solution(round, price);
  std::vector<std::int32_t> choice = repair(round, price, inner);
  const bool optimal = search_core(round, price, inner, options.gap, choice);

  RoundPlan plan;
  for (const std::int32_t o : choice) {
    if (o != kNone) plan.chosen.push_back(round.original[o]);
  }
  std::sort(plan.chosen.begin(), plan.chosen.end());
  for (const std::int64_t i : plan.chosen) plan.value += view.value[i];
  // A job's value is less than one quantum above its count of quanta.
  const Wide bound =
      (optimal ? Wide{value_of(round, choice)} : inner.bound) + (round.exact ? 0 : round.jobs());
  plan.bound = std::max(plan.value, static_cast<double>(bound) * round.quantum * (1 + 1e-15));
  if (optimal && round.exact) plan.bound = plan.value;
  plan.gap = plan.bound > 0 ? (plan.bound - plan.value) / plan.bound : 0.0;
  for (std::int32_t t = 0; t < round.tiers; ++t) {
    plan.prices.push_back(static_cast<double>(price[t]) * round.quantum);
  }
  return plan;
}

}  // namespace glidepath
