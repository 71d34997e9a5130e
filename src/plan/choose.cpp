// SPDX-License-Identifier: Apache-2.0
// The knapsack of one class of jobs, beside the GPUs that are kept for the one that is owed them.
#include <algorithm>

#include "plan/order.hpp"
#include "plan/planner.hpp"

namespace glidepath::detail {

bool Planner::in_the_way(const Candidate& candidate, const Offer& offer) const {
  return offer.option->tier == reservation_.tier &&
         done_s(candidate, offer) > reservation_.shadow_s;
}

void Planner::solve(const std::vector<std::size_t>& members) {
  std::vector<bool> barred(offers_.size(), false);
  for (;;) {
    const RoundPlan round = best_choice(columns(members, barred));
    std::vector<std::pair<double, std::size_t>> late;
    std::int64_t late_gpus = 0;
    for (const std::int64_t i : round.chosen) {
      const std::size_t o = columns_.offer[i];
      if (!in_the_way(candidates_[columns_.job[i]], offers_[o])) continue;
      late.emplace_back(offers_[o].value / offers_[o].option->gpus, o);
      late_gpus += offers_[o].option->gpus;
    }
    if (late_gpus > reservation_.spare && !late.empty()) {
      std::sort(late.begin(), late.end());
      for (const auto& [density, o] : late) {
        if (late_gpus <= reservation_.spare) break;
        barred[o] = true;
        late_gpus -= offers_[o].option->gpus;
      }
      continue;
    }
    reservation_.spare -= late_gpus;
    waiting_ += members.size() - round.chosen.size();
    adopt(round);
    return;
  }
}

RoundPlan Planner::best_choice(const RoundView& round) {
  const std::vector<std::size_t>& offer_of = columns_.offer;
  std::vector<double> prices(options_.prices.begin(), options_.prices.end());
  for (double& price : prices) price *= scale_;
  const RoundOptions options{.gap = options_.gap, .prices = prices};
  if (!in_order()) return solve_round(round, options);
  std::vector<std::vector<double>> values(by_objective_.size());
  for (std::size_t g = 0; g < by_objective_.size(); ++g) {
    for (const std::size_t o : offer_of) values[g].push_back(scale_ * by_objective_[g][o]);
  }
  Ordered ordered = solve_in_order(round, values, options_.slack, options);
  for (const std::size_t o : offer_of) {
    offers_[o].value = 0;
    for (std::size_t g = 0; g < by_objective_.size(); ++g) {
      offers_[o].value += ordered.weight[g] * by_objective_[g][o];
    }
  }
  return std::move(ordered.round);
}

RoundView Planner::columns(const std::vector<std::size_t>& members,
                           const std::vector<bool>& barred) {
  const bool power = power_left_ < kInfinity;
  const bool users = !user_.left.empty(), groups = !group_.left.empty();
  const auto resize = [&](std::size_t options) {
    for (auto* column : {&columns_.job, &columns_.tier, &columns_.gpus}) column->resize(options);
    columns_.user.resize(users ? options : 0), columns_.group.resize(groups ? options : 0);
    columns_.value.resize(options), columns_.watts.resize(power ? options : 0);
    columns_.offer.resize(options);
  };
  std::size_t most = 0, n = 0;
  for (const std::size_t c : members) most += candidates_[c].end - candidates_[c].first;
  resize(most);
  auto& [job, tier, gpus, user, group, value, watts, offer_of] = columns_;
  for (const std::size_t c : members) {
    const Candidate& candidate = candidates_[c];
    for (std::size_t o = candidate.first; o < candidate.end; ++o) {
      const Offer& offer = offers_[o];
      if (barred[o] || too_late(candidate, offer)) continue;
      offer_of[n] = o;
      job[n] = static_cast<std::int64_t>(c);
      tier[n] = offer.option->tier;
      gpus[n] = offer.option->gpus;
      value[n] = scale_ * offer.value;
      if (power) watts[n] = watts_of(offer);
      if (users) user[n] = user_.of_job[c];
      if (groups) group[n] = group_.of_job[c];
      ++n;
    }
  }
  resize(n);
  RoundView round{.job = job,
                  .tier = tier,
                  .gpus = gpus,
                  .value = value,
                  .capacity = free_,
                  .watts = watts,
                  .power_cap_w = std::max(0.0, power_left_),
                  .user = user,
                  .group = group,
                  .user_quota = user_.left,
                  .group_quota = group_.left};
  if (options_.limits.in_nodes) {
    round.capacity = all_;
    round.node_gpus = nodes_;
    round.taken_tier = taken_tier_;
    round.taken_gpus = taken_gpus_;
  }
  return round;
}

void Planner::adopt(const RoundPlan& round) {
  for (const std::int64_t i : round.chosen) {
    const std::size_t row = i;
    take(columns_.job[row], columns_.offer[row], Fate::runs);
  }
  plan_.bound += std::max(0.0, round.bound - round.value) / scale_;
  for (std::size_t t = 0; t < round.prices.size(); ++t) {
    plan_.prices[t] = std::max(plan_.prices[t], round.prices[t] / scale_);
  }
}

}  // namespace glidepath::detail
