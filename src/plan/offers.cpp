// SPDX-License-Identifier: Apache-2.0
// What the options of every job are worth now: their values by the objectives, what a restart costs
// taken into account.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "common/interrupt.hpp"
#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/order.hpp"
#include "plan/planner.hpp"

namespace glidepath::detail {

namespace {

constexpr double kMaxOfferValue = 1e12;  // in a round: where one is larger, all are scaled down
constexpr double kMaxValue = 1e100;      // per second: sums of many are finite

/// Steps of its budget, 0 without a budget that ends.
double budget_left(const Job& job) {
  return job.budget_steps < kInfinity ? job.budget_steps - job.steps_done : 0;
}

}  // namespace

void Planner::find_work(const Job& job, const LearnedValues* values, RemainingWork& work) const {
  remaining_work(job, options_, work);
  if (values == nullptr) return;
  const double left = budget_left(job);
  double fastest = 0;
  for (const Option& option : job.options) fastest = std::max(fastest, option.steps_per_s);
  if (!(left > 0 && fastest > 0)) return;
  if (!work.steps.empty() && work.steps.back() < kInfinity) return;
  work.steps = within_budget(std::move(work.steps), std::max(left, fastest), *values);
  work.index = gittins_index(work.steps);
}

std::string Planner::find_usable(const Candidate& candidate,
                                 std::vector<const Option*>& usable) const {
  const Job& job = *candidate.job;
  usable.clear();
  for (const Option& option : job.options) {
    if (can_use(job, option, snapshot_.tiers[option.tier], Asked::own_gpus)) {
      usable.push_back(&option);
    }
  }
  if (usable.empty()) return why_unfit(job, snapshot_, Asked::own_gpus);
  const Allocation* held = candidate.held;
  if (held == nullptr || job.preemptible) return {};
  const auto same = [held](const Option* option) {
    return option->tier == held->tier && option->gpus == held->gpus;
  };
  if (std::any_of(usable.begin(), usable.end(), same)) return {};
  return sentence("job ", job.id, " may not be preempted and holds ", held->gpus, " GPUs of tier ",
                  held->tier, ", not one of its options");
}

void Planner::look_at_crowd() {
  const auto learns = [](const WeightedObjective& each) {
    return each.objective == Objective::learned;
  };
  if (std::none_of(options_.objectives.begin(), options_.objectives.end(), learns)) return;
  const LearnedValues values(options_.learned);
  crowd_ = Crowd(snapshot_.tiers.size());
  bool budgets = false;
  std::vector<const Option*>& usable = memory_->usable;
  RemainingWork& work = memory_->work;
  for (Candidate& candidate : candidates_) {
    const Job& job = *candidate.job;
    // One that cannot be planned is none of the crowd: the others are planned as without it.
    if (!is_sound(candidate) || !find_usable(candidate, usable).empty()) continue;
    find_work(job, &values, work);
    budgets = budgets || budget_left(job) > 0;
    if (!(budget_left(job) > 0) &&
        (job.remaining_steps.empty() || work.never > 0 || !(work.index > 0))) {
      plan_.fallback = sentence(
          "job ", job.id, job.remaining_steps.empty() ? " has no forecast" : " may never be done",
          " and no budget is left");
      return;
    }
    double fastest = 0;
    for (const Option& option : job.options) fastest = std::max(fastest, option.steps_per_s);
    if (!(fastest > 0)) continue;
    const int gpus = candidate.held ? candidate.held->gpus : job.options.front().gpus;
    crowd_.add(gpus, std::log(std::max(1.0, 1 / (fastest * work.index))), spread_of(work.steps),
               job.restart_s);
    for (const Option& option : job.options) {
      if (option.steps_per_s > 0) {
        crowd_.add_speed(option.tier, std::log(option.steps_per_s / fastest));
      }
    }
  }
  if (crowd_.empty()) return;  // nobody is there for whom the values might not hold
  double gpus = 0;
  for (const Tier& tier : snapshot_.tiers) gpus += tier.gpus();
  crowd_.close(gpus);
  plan_.fallback = out_of_range(values, crowd_);
  if (plan_.fallback.empty()) learned_ = values;
  weights_ = values.round;
  if (budgets) weights_ = values.budget;
}

double Planner::corrected(const Candidate& candidate, const RemainingWork& work,
                          const Option& option, double fastest) const {
  if (!learned_ || option.steps_per_s <= 0 || !(work.index > 0)) return 1;
  const Job& job = *candidate.job;
  const Allocation* held = candidate.held;
  const bool keeps = held && held->tier == option.tier && held->gpus == option.gpus;
  const Prospect prospect{
      .gpus = static_cast<double>(option.gpus),
      .share = static_cast<double>(option.gpus) / snapshot_.tiers[option.tier].gpus(),
      .rank_s = 1 / (fastest * work.index),
      .spread = spread_of(work.steps),
      .attained_s = job.attained_s,
      .waited_s = waited_s(job, snapshot_.now_s),
      .advantage = std::log(option.steps_per_s / fastest) - crowd_.log_speed(option.tier),
      .keeps = keeps,
      .moves = held && !keeps};
  return std::exp(correction(weights_.first<kTerms>(), prospect, crowd_));
}

double Planner::done_s(const Candidate& candidate, const Offer& offer) const {
  const Job& job = *candidate.job;
  const double steps_per_s = offer.option->steps_per_s;
  const double ends_s =
      steps_per_s > 0 ? restart_s(candidate, offer.keeps) + candidate.likely_steps / steps_per_s
                      : kInfinity;
  if (!job.preemptible) return ends_s;
  const double ran_s = offer.keeps ? std::max(0.0, snapshot_.now_s - candidate.held->since_s) : 0;
  return std::min(std::max(0.0, stays_s(job) - ran_s), ends_s);
}

void Planner::add_offers(Candidate& candidate, const RemainingWork& work,
                         const std::vector<const Option*>& usable) {
  const Job& job = *candidate.job;
  const Allocation* held = candidate.held;
  valuation_.set_job(job, work, usable);
  const double age = waited_s(job, snapshot_.now_s) / options_.dynamics.ageing_s;
  const bool stays = guaranteed(candidate);
  double fastest = 0, largest = 0;
  for (const Option* option : usable) fastest = std::max(fastest, option->steps_per_s);
  for (const Option* option : usable) {
    const bool keeps = held && held->tier == option->tier && held->gpus == option->gpus;
    const bool alike = by_speed_alone_ && offers_.size() > candidate.first &&
                       offers_.back().keeps == keeps &&
                       offers_.back().option->steps_per_s == option->steps_per_s;
    const double worth = (keeps ? 1 + options_.dynamics.hysteresis : 1.0) * (1 + age * age);
    for (std::size_t g = 0; g < by_objective_.size(); ++g) {
      if (alike) {
        by_objective_[g].push_back(by_objective_[g].back());
        continue;
      }
      const Objective objective = options_.objectives[g].objective;
      const double learned =
          objective == Objective::learned ? corrected(candidate, work, *option, fastest) : 1;
      const double restart = restart_s(candidate, keeps);
      double v = worth * learned * valuation_.value(objective, *option, restart);
      if (stays && !(v <= kMaxValue)) v = kMaxValue;  // whatever it is worth
      largest = std::isnan(v) ? kInfinity : std::max(largest, v);
      by_objective_[g].push_back(v);
    }
    offers_.push_back({option, 0, keeps});
  }
  candidate.end = offers_.size();
  if (largest > kMaxValue) {
    for (std::vector<double>& values : by_objective_) values.resize(candidate.first);
    offers_.resize(candidate.first);
    leave_out(candidate,
              sentence("job ", job.id, " is worth ", largest, " per second, expected at most ",
                       kMaxValue, ": its weight is ", job.weight));
  }
}

void Planner::evaluate() {
  look_at_crowd();
  std::vector<const Option*>& usable = memory_->usable;
  RemainingWork& work = memory_->work;
  by_objective_.resize(options_.objectives.size());
  by_speed_alone_ =
      std::ranges::all_of(options_.objectives, counts_speed_alone, &WeightedObjective::objective);
  offers_.clear();
  for (std::vector<double>& values : by_objective_) values.clear();
  for (Candidate& candidate : candidates_) {
    check_interrupt();
    const Job& job = *candidate.job;
    candidate.first = candidate.end = offers_.size();
    if (!is_sound(candidate)) continue;
    find_work(job, learned_ ? &*learned_ : nullptr, work);
    if (std::max(work.reached, work.never) >= options_.stop_probability &&
        !job.remaining_steps.empty()) {
      candidate.fate = Fate::ended;
      plan_.stop.push_back(job.id);
      continue;
    }
    if (std::string fault = find_usable(candidate, usable); !fault.empty()) {
      leave_out(candidate, std::move(fault));
      continue;
    }
    candidate.priority = job.priority;
    candidate.index = work.index;
    candidate.likely_steps = work.quantile(kEndQuantile);
    add_offers(candidate, work, usable);
  }
  combine();
  charge_restarts();
  double top = 0;
  for (const Offer& offer : offers_) {
    if (!std::isfinite(offer.value)) {
      refuse("plan: with these weights of the objectives an option is worth ", offer.value,
             " per second, expected a finite number");
    }
    top = std::max(top, offer.value);
  }
  if (top > kMaxOfferValue) scale_ = std::ldexp(1.0, -std::ilogb(top / kMaxOfferValue) - 1);
}

void Planner::combine() {
  for (std::size_t g = 0; g < by_objective_.size(); ++g) {
    std::vector<double>& values = by_objective_[g];
    const auto top = [](const std::vector<double>& of) {
      return of.empty() ? 0.0 : *std::max_element(of.begin(), of.end());
    };
    double share = in_order() ? 1.0 : options_.objectives[g].weight;
    if (in_order() && g > 0) {
      share = top(values) > 0 ? std::ldexp(top(by_objective_[0]) / top(values), -kTieExponent) : 0;
    } else if (by_objective_.size() > 1 && !in_order()) {
      double sum = std::accumulate(values.begin(), values.end(), 0.0);
      const auto count = static_cast<double>(values.size());
      if (sum > 0 && std::isinf(count / sum)) {  // the mean is a unit: a power of two changes none
        for (double& v : values) v = std::ldexp(v, 1000);
        sum = std::ldexp(sum, 1000);
      }
      share *= sum > 0 ? count / sum : 0;
    }
    for (std::size_t o = 0; o < offers_.size(); ++o) {
      const double joules = g == 0 && in_order() ? joules_of(o) : 0;
      values[o] = std::max(0.0, values[o] - joules);
      offers_[o].value += share * values[o];
    }
  }
  if (in_order()) return;
  for (std::vector<double>& values : by_objective_) values.clear();  // the offers have them
  for (std::size_t o = 0; o < offers_.size(); ++o) {
    offers_[o].value = std::max(0.0, offers_[o].value - joules_of(o));
  }
}

double Planner::joules_of(std::size_t o) const {  // value of what its power costs
  return options_.joule_value == 0 ? 0 : options_.joule_value * watts_of(offers_[o]);
}

void Planner::charge_restarts() {
  const auto pays = [&](const Candidate& candidate) {
    return candidate.held && candidate.fate != Fate::ended && candidate.fate != Fate::broken &&
           candidate.job->restart_s > 0 &&
           (candidate.job->attained_s > 0 || candidate.held->since_s < snapshot_.now_s);
  };
  if (std::none_of(candidates_.begin(), candidates_.end(), pays)) return;
  struct Challenger {
    double density = 0, gpus = 0, gpu_s = 0;
  };
  // Only the jobs of one class compete by what they are worth.
  using Tiers = std::vector<std::vector<Challenger>>;
  std::map<int, Tiers> of_class;
  const auto density = [](const Offer& offer) { return offer.value / offer.option->gpus; };
  std::vector<const Candidate*> last(snapshot_.tiers.size(), nullptr);
  for (const Candidate& candidate : candidates_) {
    if (candidate.held || candidate.fate == Fate::ended) continue;
    Tiers& of_tier = of_class.try_emplace(candidate.job->priority, last.size()).first->second;
    for (std::size_t o = candidate.first; o < candidate.end; ++o) {
      const Offer& offer = offers_[o];
      if (offer.value <= 0) continue;
      // A job counts once on a tier, with the option worth most per GPU.
      const std::size_t t = offer.option->tier;
      if (last[t] != &candidate) of_tier[t].emplace_back();
      last[t] = &candidate;
      if (density(offer) <= of_tier[t].back().density) continue;
      const double gpus = offer.option->gpus;
      of_tier[t].back() = {density(offer), gpus, gpus * time_s(candidate, offer)};
    }
  }
  for (auto& [priority, of_tier] : of_class) {
    for (auto& tier : of_tier) {
      std::sort(tier.begin(), tier.end(),
                [](const Challenger& a, const Challenger& b) { return a.density > b.density; });
      for (std::size_t i = 1; i < tier.size(); ++i) {
        tier[i].gpus += tier[i - 1].gpus;
        tier[i].gpu_s += tier[i - 1].gpu_s;
      }
    }
  }
  for (const Candidate& candidate : candidates_) {
    const auto others = of_class.find(candidate.job->priority);
    if (!pays(candidate) || others == of_class.end()) continue;
    for (std::size_t o = candidate.first; o < candidate.end; ++o) {
      Offer& offer = offers_[o];
      if (!offer.keeps || offer.value <= 0) continue;
      const std::size_t t = offer.option->tier;
      const double own = density(offer);
      const std::vector<Challenger>& rivals = others->second[t];
      const auto better =
          std::partition_point(rivals.begin(), rivals.end(),
                               [own](const Challenger& other) { return other.density > own; });
      if (better == rivals.begin()) continue;
      const Challenger& all = *(better - 1);
      const double held_s = all.gpu_s / std::min(all.gpus, static_cast<double>(free_[t]));
      const double factor = 1 + candidate.job->restart_s / held_s;
      offer.value *= factor;
      for (auto& values : by_objective_) {
        if (in_order()) values[o] *= factor;
      }
    }
  }
}

}  // namespace glidepath::detail
