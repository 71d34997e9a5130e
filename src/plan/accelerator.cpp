// SPDX-License-Identifier: Apache-2.0
// Which accelerator for one job: the forecast of the steps still needed becomes a law of hours,
// energy and money for each option, and a limit on those becomes a probability.
#include "glidepath/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/value.hpp"

namespace glidepath {
namespace {

void check(const Need& need) {
  for (const auto& [what, x] :
       {std::pair{"max_hours", need.max_hours}, std::pair{"max_watts", need.max_watts},
        std::pair{"max_kwh", need.max_kwh}, std::pair{"max_cost", need.max_cost}}) {
    if (!(x >= 0)) detail::refuse("choose_accelerator: ", what, " is ", x);
  }
  if (!(need.confidence >= 0 && need.confidence <= 1)) {
    detail::refuse("choose_accelerator: confidence is ", need.confidence);
  }
}

AcceleratorChoice judge(const Option& option, const Tier& tier, const detail::Outlook& outlook,
                        const Need& need) {
  AcceleratorChoice choice{.option = option};
  const double steps_per_hour = 3600 * option.steps_per_s;
  const double price = option.gpus * tier.price_per_gpu_hour;
  const auto hours = [&](double p) { return outlook.quantile(p) / steps_per_hour; };
  choice.watts = option.gpus * watts(tier, option.utilization);
  choice.hours = hours(0.5);
  choice.hours_low = hours(0.1);
  choice.hours_high = hours(0.9);
  choice.kwh = choice.watts > 0 ? choice.hours * choice.watts / 1000 : 0;
  choice.cost = price > 0 ? choice.hours * price : 0;
  // Hours, kWh and money all grow with the steps: the tightest limit is one on the steps.
  double limit = need.max_hours;
  if (choice.watts > 0) limit = std::min(limit, 1000 * need.max_kwh / choice.watts);
  if (price > 0) limit = std::min(limit, need.max_cost / price);
  if (choice.watts <= need.max_watts) {
    // Never is beyond every limit.
    choice.probability =
        outlook.prob_within(std::min(limit * steps_per_hour, std::numeric_limits<double>::max()));
  }
  choice.good = choice.probability >= need.confidence;
  const char* short_of = "may take too long or never get there";
  if (choice.good) {
    short_of = "keeps to every limit";
  } else if (choice.watts > need.max_watts) {
    short_of = "draws too much power";
  } else if (limit < need.max_hours) {
    short_of = price > 0 && limit == need.max_cost / price ? "may cost too much"
                                                           : "may use too much energy";
  }
  char verdict[96];
  std::snprintf(verdict, sizeof verdict, "%s (probability %.2f)", short_of, choice.probability);
  const bool alone = option.sharing == Sharing::exclusive;
  choice.reason =
      detail::sentence(option.gpus, " x ", tier.name, alone ? "" : ", shared (",
                       alone ? "" : name(option.sharing), alone ? ": " : "): ", verdict);
  return choice;
}

bool dominates(const AcceleratorChoice& a, const AcceleratorChoice& b) {
  const bool no_worse = a.probability >= b.probability && a.hours <= b.hours &&
                        a.watts <= b.watts && a.kwh <= b.kwh && a.cost <= b.cost;
  const bool better = a.probability > b.probability || a.hours < b.hours || a.watts < b.watts ||
                      a.kwh < b.kwh || a.cost < b.cost;
  return no_worse && better;
}

double preferred(const AcceleratorChoice& choice, Prefer prefer) {
  switch (prefer) {
    case Prefer::kwh:
      return choice.kwh;
    case Prefer::cost:
      return choice.cost;
    case Prefer::watts:
      return choice.watts;
    case Prefer::hours:
      break;
  }
  return choice.hours;
}

}  // namespace

std::vector<AcceleratorChoice> choose_accelerator(const Job& job, std::span<const Tier> tiers,
                                                  const Need& need, Prefer prefer) {
  check(need);
  const Snapshot snapshot{.tiers = tiers};
  const PlanOptions options;
  for (const Tier& tier : tiers) validate(tier);
  detail::check_job(job, snapshot);
  const detail::Outlook outlook = detail::outlook_of(job, options);
  if (outlook.steps.empty()) {
    detail::refuse("choose_accelerator: job ", job.id, " has no forecast of its remaining steps");
  }
  std::vector<AcceleratorChoice> choices;
  for (const Option& option : job.options) {
    const Tier& tier = tiers[static_cast<std::size_t>(option.tier)];
    if (option.gpus > tier.gpus() || option.steps_per_s <= 0) continue;
    if (tier.memory_gb > 0 && job.memory_gb > tier.memory_gb) continue;
    choices.push_back(judge(option, tier, outlook, need));
  }
  if (choices.empty()) detail::refuse_unfit(job, snapshot);
  for (AcceleratorChoice& choice : choices) {
    choice.pareto = std::none_of(choices.begin(), choices.end(),
                                 [&](const AcceleratorChoice& o) { return dominates(o, choice); });
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const AcceleratorChoice& a, const AcceleratorChoice& b) {
                     if (a.good != b.good) return a.good;
                     if (!a.good && a.probability != b.probability) {
                       return a.probability > b.probability;
                     }
                     return preferred(a, prefer) < preferred(b, prefer);
                   });
  return choices;
}

}  // namespace glidepath
