// SPDX-License-Identifier: Apache-2.0
#include "plan/check.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "common/names.hpp"
#include "common/numbers.hpp"
#include "hardware/sharing.hpp"

namespace glidepath {
namespace {

constexpr detail::Names<9> kObjectives{"jct",    "known_size", "quality", "deadline", "fairness",
                                       "energy", "edp",        "cost",    "learned"};
constexpr detail::Names<2> kCombines{"weighted", "in_order"};

constexpr std::string_view kFromZero = ", expected 0 or more and finite";

bool finite_from_zero(double x) { return x >= 0 && std::isfinite(x); }

/// What an option does not have for a job.
enum class Lack : std::uint8_t { nothing, own_gpus, speed, gpus, memory };

Lack lack_of(const Job& job, const Option& option, const Tier& tier, detail::Asked asked) {
  if (asked == detail::Asked::own_gpus && option.sharing != Sharing::exclusive) {
    return Lack::own_gpus;
  }
  if (asked == detail::Asked::speed && option.steps_per_s <= 0) return Lack::speed;
  if (option.gpus > tier.gpus()) return Lack::gpus;
  if (tier.memory_gb > 0 && job.memory_gb > tier.memory_gb) return Lack::memory;
  return Lack::nothing;
}

}  // namespace

std::string_view name(Objective objective) noexcept {
  return detail::name_in(kObjectives, objective);
}

Objective objective_named(std::string_view text) {
  return detail::value_named<Objective>(kObjectives, text, "plan: objective is '",
                                        "', expected one of " + detail::listed(kObjectives));
}

namespace detail {

std::string expected_place(std::string_view noun, std::size_t count) {
  if (count == 0) return sentence(", expected none: there are no ", noun, "s");
  if (count == 1) return ", expected 0";
  return sentence(", expected 0 to ", count - 1);
}

void check_gap(std::string_view verb, double gap) {
  if (gap >= 0 && gap <= 1) return;
  refuse(verb, ": gap is ", gap, ", expected 0 to 1");
}

bool has_power(std::span<const Tier> tiers) {
  return std::ranges::any_of(
      tiers, [](const Tier& tier) { return tier.idle_watts > 0 || tier.busy_watts > 0; });
}

bool has_prices(std::span<const Tier> tiers) {
  return std::ranges::any_of(tiers, [](const Tier& tier) { return tier.price_per_gpu_hour > 0; });
}

void check_limits(std::string_view verb, const PlanLimits& limits, std::span<const Tier> tiers) {
  refuse_unknown(limits.sharing, std::string(verb) + ": sharing");
  if (!finite_from_zero(limits.min_run_s)) {
    refuse(verb, ": min_run_s is ", limits.min_run_s, kFromZero);
  }
  if (!(limits.power_cap_w >= 0)) {
    refuse(verb, ": power_cap_w is ", limits.power_cap_w, ", expected 0 or more");
  }
  if (limits.power_cap_w < kInfinity && !tiers.empty() && !has_power(tiers)) {
    refuse(verb, ": power_cap_w is ", limits.power_cap_w, ", no tier has idle_watts or busy_watts");
  }
  for (const auto* quotas : {&limits.user_quota, &limits.group_quota}) {
    for (const Quota& quota : *quotas) {
      if (quota.gpus >= 0) continue;
      refuse(verb, ": the quota of '", quota.name, "' is ", quota.gpus, ", expected 0 or more");
    }
  }
}

void check_options(const PlanOptions& options, const Snapshot& snapshot) {
  if (!(options.round_s > 0 && std::isfinite(options.round_s))) {
    refuse("plan: round_s is ", options.round_s, ", expected more than 0 and finite");
  }
  check_gap("plan", options.gap);
  if (!options.prices.empty() && options.prices.size() != snapshot.tiers.size()) {
    refuse("plan: prices has ", options.prices.size(), " values, expected ", snapshot.tiers.size(),
           ", one for each tier");
  }
  for (const double price : options.prices) {
    if (!finite_from_zero(price)) refuse("plan: a price is ", price, kFromZero);
  }
  for (const WeightedObjective& each : options.objectives) {
    if (!finite_from_zero(each.weight)) {
      refuse("plan: objective '", name(each.objective), "' has weight ", each.weight, kFromZero);
    }
    refuse_unnamed(kObjectives, each.objective, "plan: objective");
  }
  refuse_unnamed(kCombines, options.combine, "plan: combine");
  check_limits("plan", options.limits, snapshot.tiers);
  if (options.combine == Combine::weighted && !options.objectives.empty() &&
      std::ranges::all_of(options.objectives,
                          [](const WeightedObjective& each) { return each.weight == 0; })) {
    refuse("plan: every objective has weight 0, expected one above 0");
  }
  if (!(options.slack >= 0 && options.slack < 1)) {
    refuse("plan: slack is ", options.slack, ", expected 0 to less than 1");
  }
  if (options.slack > 0 && options.combine != Combine::in_order) {
    refuse("plan: slack is ", options.slack, ", expected 0 without objectives in order");
  }
  if (options.pairs != nullptr && options.limits.sharing == Sharing::exclusive) {
    refuse("plan: pairs without a way of sharing");
  }
  const bool learned = std::ranges::find(options.objectives, Objective::learned,
                                         &WeightedObjective::objective) != options.objectives.end();
  if (!options.learned.empty() && !learned) {
    refuse("plan: learned is for the objective 'learned'");
  }
  for (const auto& [what, x] : {std::pair{"hysteresis", options.dynamics.hysteresis},
                                std::pair{"joule_value", options.joule_value}}) {
    if (!finite_from_zero(x)) refuse("plan: ", what, " is ", x, kFromZero);
  }
  if (options.joule_value > 0 && !snapshot.tiers.empty() && !has_power(snapshot.tiers)) {
    refuse("plan: joule_value is ", options.joule_value, ", no tier has idle_watts or busy_watts");
  }
  for (const auto& [what, x] : {std::pair{"max_wait_s", options.dynamics.max_wait_s},
                                std::pair{"stop_probability", options.stop_probability},
                                std::pair{"outrun_probability", options.outrun_probability}}) {
    if (!(x >= 0)) refuse("plan: ", what, " is ", x, ", expected 0 or more");
  }
  if (!(options.dynamics.ageing_s > 0)) {
    refuse("plan: ageing_s is ", options.dynamics.ageing_s, ", expected more than 0");
  }
  for (const Tier& tier : snapshot.tiers) validate(tier);
  if (!std::isfinite(snapshot.now_s)) {
    refuse("plan: now_s is ", snapshot.now_s, ", expected a finite number");
  }
}

std::string fault_of(const Job& job, const Snapshot& snapshot) {
  for (const auto& [what, x] :
       {std::pair{"weight", job.weight}, std::pair{"restart_s", job.restart_s},
        std::pair{"memory_gb", job.memory_gb}, std::pair{"steps_done", job.steps_done},
        std::pair{"attained_s", job.attained_s}, std::pair{"attained_gpu_s", job.attained_gpu_s}}) {
    if (!finite_from_zero(x)) return sentence("job ", job.id, " has ", what, " ", x, kFromZero);
  }
  for (const auto& [what, x] :
       {std::pair{"deadline_s", job.deadline_s}, std::pair{"target_loss", job.target_loss},
        std::pair{"waiting_s", job.waiting_s},
        std::pair{"forecast_at_steps", job.forecast_at_steps}}) {
    if (std::isnan(x)) return sentence("job ", job.id, " has ", what, " nan, expected a number");
  }
  if (!(job.budget_steps >= 0)) {
    return sentence("job ", job.id, " has budget_steps ", job.budget_steps, ", expected 0 or more");
  }
  if (job.waiting_s == kInfinity) {
    return sentence("job ", job.id, " has waiting_s inf, expected a finite number");
  }
  if (!std::isfinite(job.submit_s)) {
    return sentence("job ", job.id, " has submit_s ", job.submit_s, ", expected a finite number");
  }
  if (!(job.sm_activity >= 0 && job.sm_activity <= 1)) {
    return sentence("job ", job.id, " has sm_activity ", job.sm_activity, ", expected 0 to 1");
  }
  if (!(job.memory_activity <= 1)) {
    return sentence("job ", job.id, " has memory_activity ", job.memory_activity,
                    ", expected 1 at most");
  }
  for (const Option& option : job.options) {
    if (option.tier < 0 || option.tier >= static_cast<int>(snapshot.tiers.size())) {
      return sentence("job ", job.id, " names tier ", option.tier,
                      expected_place("tier", snapshot.tiers.size()));
    }
    if (option.gpus < 1) {
      return sentence("job ", job.id, " asks ", option.gpus, " GPUs, expected at least 1");
    }
    if (!finite_from_zero(option.steps_per_s)) {
      return sentence("job ", job.id, " runs at ", option.steps_per_s, " steps per second",
                      kFromZero);
    }
    if (option.sharing != Sharing::exclusive && name(option.sharing) == kNoName) {
      return sentence("job ", job.id, " has an option with sharing value ",
                      static_cast<int>(option.sharing), ", expected exclusive, naive, mps or mig");
    }
    if (!(option.utilization >= 0 && option.utilization <= 1)) {
      return sentence("job ", job.id, " has utilization ", option.utilization, ", expected 0 to 1");
    }
  }
  for (const double s : job.remaining_steps) {
    if (s >= 0) continue;
    return sentence("job ", job.id, " has ", s, " remaining steps, expected 0 or more");
  }
  if (job.ahead_steps.size() != job.ahead_loss.size()) {
    return sentence("job ", job.id, " has ", job.ahead_steps.size(), " steps and ",
                    job.ahead_loss.size(), " losses ahead, expected as many of each");
  }
  for (std::size_t i = 0; i < job.ahead_steps.size(); ++i) {
    if (!finite_from_zero(job.ahead_steps[i]) || !std::isfinite(job.ahead_loss[i]) ||
        (i > 0 && job.ahead_steps[i] <= job.ahead_steps[i - 1])) {
      return sentence("job ", job.id, " has loss ", job.ahead_loss[i], " ahead at step ",
                      job.ahead_steps[i], ", expected finite losses at steps that increase from 0");
    }
  }
  return {};
}

bool can_use(const Job& job, const Option& option, const Tier& tier, Asked asked) {
  return lack_of(job, option, tier, asked) == Lack::nothing;
}

std::string why_unfit(const Job& job, const Snapshot& snapshot, Asked asked) {
  if (job.options.empty()) return sentence("job ", job.id, " has no options");
  const auto tier = [&](const Option& option) -> const Tier& {
    return snapshot.tiers[option.tier];
  };
  const auto missing = [&](const Option& option) { return option.gpus - tier(option).gpus(); };
  const Option *idle = nullptr, *large = nullptr, *tight = nullptr;
  for (const Option& option : job.options) {
    const Lack lack = lack_of(job, option, tier(option), asked);
    if (lack == Lack::speed && idle == nullptr) idle = &option;
    if (lack == Lack::gpus && (large == nullptr || missing(option) < missing(*large))) {
      large = &option;
    }
    if (lack == Lack::memory &&
        (tight == nullptr || tier(option).memory_gb > tier(*tight).memory_gb)) {
      tight = &option;
    }
  }
  std::vector<std::string> lacks;
  if (idle != nullptr) {
    lacks.push_back(sentence("runs at 0 steps per second on tier '", tier(*idle).name, "'"));
  }
  if (large != nullptr) {
    lacks.push_back(sentence("asks ", large->gpus, " GPUs, tier '", tier(*large).name, "' has ",
                             tier(*large).gpus()));
  }
  if (tight != nullptr) {
    lacks.push_back(sentence("needs ", job.memory_gb, " GB per GPU, tier '", tier(*tight).name,
                             "' has ", tier(*tight).memory_gb));
  }
  if (lacks.empty()) return sentence("job ", job.id, " has no option with GPUs of its own");
  std::string all = std::move(lacks.front());
  for (std::size_t i = 1; i < lacks.size(); ++i) all += ", and " + lacks[i];
  return sentence("job ", job.id, " ", all);
}

}  // namespace detail
}  // namespace glidepath
