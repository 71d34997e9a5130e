// SPDX-License-Identifier: Apache-2.0
// Which accelerator for one job: the forecast of the steps still needed becomes a law of hours,
// energy and money for each option, and a limit on those becomes a probability.
#include "glidepath/plan.hpp"
#include "glidepath/watch.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "common/names.hpp"
#include "forecast/level.hpp"
#include "plan/check.hpp"
#include "plan/value.hpp"

namespace glidepath {
namespace {

constexpr detail::Names<4> kPreferences{"hours", "kwh", "cost", "watts"};
/// Equally likely steps to a target: more of them than a plan or the simulator has for each of many
/// jobs, as the probability that comes of them is shown.
constexpr int kForecastSamples = 64;

void check(const RunLimits& limits) {
  for (const auto& [what, x] :
       {std::pair{"max_hours", limits.max_hours}, std::pair{"max_watts", limits.max_watts},
        std::pair{"max_node_watts", limits.max_node_watts}, std::pair{"max_kwh", limits.max_kwh},
        std::pair{"max_cost", limits.max_cost}}) {
    if (!(x >= 0)) detail::refuse("choose_accelerator: ", what, " is ", x, ", expected 0 or more");
  }
  if (!(limits.confidence >= 0 && limits.confidence <= 1)) {
    detail::refuse("choose_accelerator: confidence is ", limits.confidence, ", expected 0 to 1");
  }
  if (!limits.reached_by) return;
  detail::refuse_unknown(*limits.reached_by, "choose_accelerator: reached_by");
  if (!limits.target) detail::refuse("choose_accelerator: reached_by without target");
}

/// The job with the steps that its own curve still needs to the target, as of the curve's last
/// step.
Job forecast_to(double target, std::optional<ReachedBy> reached_by, const Job& job) {
  const std::span<const double> step = job.observed.step;
  if (step.empty()) {
    detail::refuse("choose_accelerator: job ", job.id, " has no curve to forecast the target ",
                   target, " from");
  }
  const double budget =
      job.budget_steps > 0 ? job.budget_steps : open_budget(step.front(), step.back());
  Job out = job;
  out.remaining_steps = reach(job.observed, target, budget, {.reached_by = reached_by})
                            .remaining_steps(kForecastSamples);
  const bool reached = out.remaining_steps.back() == 0;  // and no step since then takes it back
  out.forecast_at_steps = reached ? -1 : std::max(0.0, step.back());
  return out;
}

/// Refuses limits that no option would be held to, and a preference by which all are alike.
void check_known(const RunLimits& limits, Preference prefer, std::span<const Tier> tiers) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto needs = [](const char* what, double limit, const char* known) {
    if (limit < kNone) {
      detail::refuse("choose_accelerator: ", what, " is ", limit, ", no tier has ", known);
    }
  };
  const auto preferred = [&](Preference by, const char* known) {
    if (prefer != by) return;
    detail::refuse("choose_accelerator: prefer is '", name(prefer), "', no tier has ", known);
  };
  if (!detail::has_power(tiers)) {
    constexpr const char* kPower = "idle_watts or busy_watts";
    needs("max_watts", limits.max_watts, kPower);
    needs("max_node_watts", limits.max_node_watts, kPower);
    needs("max_kwh", limits.max_kwh, kPower);
    preferred(Preference::kwh, kPower);
    preferred(Preference::watts, kPower);
  }
  if (!detail::has_prices(tiers)) {
    needs("max_cost", limits.max_cost, "price_per_gpu_hour");
    preferred(Preference::cost, "price_per_gpu_hour");
  }
}

AcceleratorChoice judge(const Option& option, const Tier& tier, const detail::RemainingWork& work,
                        const RunLimits& limits) {
  AcceleratorChoice choice{.option = option};
  const double steps_per_hour = 3600 * option.steps_per_s;
  const double price = option.gpus * tier.price_per_gpu_hour;
  const auto hours = [&](double p) { return work.quantile(p) / steps_per_hour; };
  choice.watts = option.gpus * watts(tier, option.utilization);
  choice.node_watts = std::min(option.gpus, tier.gpus_per_node) * watts(tier, 1);
  choice.hours = hours(0.5);
  choice.hours_low = hours(kShownLevels.front());
  choice.hours_high = hours(kShownLevels.back());
  choice.kwh = choice.watts > 0 ? choice.hours * choice.watts / 1000 : 0;
  choice.cost = price > 0 ? choice.hours * price : 0;
  // Hours, kWh and money all grow with the steps: the tightest limit is one on the steps.
  double limit = limits.max_hours;
  if (choice.watts > 0) limit = std::min(limit, 1000 * limits.max_kwh / choice.watts);
  if (price > 0) limit = std::min(limit, limits.max_cost / price);
  const bool within_watts = choice.watts <= limits.max_watts;
  const bool within_node = choice.node_watts <= limits.max_node_watts;
  if (within_watts && within_node) {
    // Never is beyond every limit.
    choice.probability =
        work.prob_within(std::min(limit * steps_per_hour, std::numeric_limits<double>::max()));
  }
  choice.good = choice.probability >= limits.confidence;
  const char* short_of = "may take too long or never get there";
  if (choice.good) {
    short_of = "keeps to every limit";
  } else if (!within_watts) {
    short_of = "draws too much power";
  } else if (!within_node) {
    short_of = "may draw too much power in a node";
  } else if (limit < limits.max_hours) {
    short_of = price > 0 && limit == limits.max_cost / price ? "may cost too much"
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
  const auto paid = [](const AcceleratorChoice& choice) {
    return std::array{-choice.probability, choice.hours, choice.watts, choice.kwh, choice.cost};
  };
  const auto by_a = paid(a), by_b = paid(b);
  return by_a != by_b && std::ranges::equal(by_a, by_b, std::less_equal<>());
}

/// What is preferred, for each step: it orders as the medians do, also where those are infinite.
double preferred(const AcceleratorChoice& choice, const Tier& tier, Preference prefer) {
  const Option& option = choice.option;
  const std::array by_time{1.0, choice.watts, option.gpus * tier.price_per_gpu_hour};
  if (prefer == Preference::watts) return choice.watts;
  return by_time[static_cast<std::size_t>(prefer)] / option.steps_per_s;
}

}  // namespace

std::string_view name(Preference preference) noexcept {
  return detail::name_in(kPreferences, preference);
}

Preference preference_named(std::string_view text) {
  return detail::value_named<Preference>(kPreferences, text, "choose_accelerator: prefer is '",
                                         "', expected one of " + detail::listed(kPreferences));
}

std::vector<AcceleratorChoice> choose_accelerator(const Job& given, std::span<const Tier> tiers,
                                                  const RunLimits& limits, Preference prefer) {
  check(limits);
  detail::refuse_unnamed(kPreferences, prefer, "choose_accelerator: prefer");
  const Job job = limits.target ? forecast_to(*limits.target, limits.reached_by, given) : given;
  const Snapshot snapshot{.tiers = tiers};
  const PlanOptions options;
  for (const Tier& tier : tiers) validate(tier);
  check_known(limits, prefer, tiers);
  if (const std::string fault = detail::fault_of(job, snapshot); !fault.empty()) {
    detail::refuse("choose_accelerator: ", fault);
  }
  const detail::RemainingWork work = detail::remaining_work(job, options);
  if (work.outrun && !job.remaining_steps.empty()) {
    detail::refuse("choose_accelerator: job ", job.id, " is at step ", job.steps_done,
                   ", by which its forecast as of step ", job.forecast_at_steps,
                   " had it done: it needs a newer one");
  }
  if (work.steps.empty()) {
    detail::refuse("choose_accelerator: job ", job.id, " has no forecast of its remaining steps");
  }
  std::vector<AcceleratorChoice> choices;
  for (const Option& option : job.options) {
    const Tier& tier = tiers[option.tier];
    if (!detail::can_use(job, option, tier, detail::Asked::speed)) continue;
    choices.push_back(judge(option, tier, work, limits));
  }
  if (choices.empty()) {
    detail::refuse("choose_accelerator: ", detail::why_unfit(job, snapshot, detail::Asked::speed));
  }
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
                     return preferred(a, tiers[a.option.tier], prefer) <
                            preferred(b, tiers[b.option.tier], prefer);
                   });
  return choices;
}

}  // namespace glidepath
