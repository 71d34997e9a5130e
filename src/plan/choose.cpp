// SPDX-License-Identifier: Apache-2.0
// The knapsack of one class of jobs, beside the GPUs that are kept for the one that is owed them.
#include <algorithm>

#include "plan/order.hpp"
#include "plan/planner.hpp"

namespace glidepath::detail {

bool Planner::in_the_way(const Offer& offer) const {
  return offer.option->tier == reservation_.tier && offer.done_s > reservation_.shadow_s;
}

void Planner::solve(const std::vector<std::size_t>& members) {
  std::vector<bool> barred(offers_.size(), false);
  for (;;) {
    std::vector<std::size_t> offer_of;
    const RoundPlan round = best_choice(columns(members, barred, offer_of), offer_of);
    std::vector<std::pair<double, std::size_t>> late;
    std::int64_t late_gpus = 0;
    for (const std::int64_t i : round.chosen) {
      const std::size_t o = offer_of[i];
      if (!in_the_way(offers_[o])) continue;
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
    adopt(round, offer_of);
    return;
  }
}

RoundPlan Planner::best_choice(const RoundView& round, const std::vector<std::size_t>& offer_of) {
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

RoundView Planner::columns(const std::vector<std::size_t>& members, const std::vector<bool>& barred,
                           std::vector<std::size_t>& offer_of) {
  job_.clear(), tier_.clear(), gpus_.clear(), value_.clear();
  watts_.clear(), users_.clear(), groups_.clear();
  std::size_t options = 0;
  for (const std::size_t c : members) options += candidates_[c].end - candidates_[c].first;
  offer_of.reserve(options), value_.reserve(options);
  for (auto* column : {&job_, &tier_, &gpus_}) column->reserve(options);
  for (const std::size_t c : members) {
    for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
      const Offer& offer = offers_[o];
      if (barred[o] || too_late(offer)) continue;
      offer_of.push_back(o);
      job_.push_back(static_cast<std::int64_t>(c));
      tier_.push_back(offer.option->tier);
      gpus_.push_back(offer.option->gpus);
      value_.push_back(scale_ * offer.value);
      if (power_left_ < kInfinity) watts_.push_back(offer.watts);
      if (!user_.left.empty()) users_.push_back(user_.of_job[c]);
      if (!group_.left.empty()) groups_.push_back(group_.of_job[c]);
    }
  }
  RoundView round{.job = job_,
                  .tier = tier_,
                  .gpus = gpus_,
                  .value = value_,
                  .capacity = free_,
                  .watts = watts_,
                  .power_cap_w = std::max(0.0, power_left_),
                  .user = users_,
                  .group = groups_,
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

void Planner::adopt(const RoundPlan& round, const std::vector<std::size_t>& offer_of) {
  for (const std::int64_t i : round.chosen) {
    const std::size_t row = i;
    take(job_[row], offer_of[row], Fate::runs);
  }
  plan_.bound += std::max(0.0, round.bound - round.value) / scale_;
  for (std::size_t t = 0; t < round.prices.size(); ++t) {
    plan_.prices[t] = std::max(plan_.prices[t], round.prices[t] / scale_);
  }
}

}  // namespace glidepath::detail
