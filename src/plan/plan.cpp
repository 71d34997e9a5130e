// SPDX-License-Identifier: Apache-2.0
// The plan of one round: who ends, who must stay, who is owed a place, and for the others the
// knapsack of solve_round over what their options are worth.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "common/require.hpp"
#include "plan/check.hpp"
#include "plan/planner.hpp"
#include "plan/power.hpp"
#include "plan/round.hpp"

namespace glidepath::detail {

Plan Planner::run() {
  check_options(options_, snapshot_);
  candidates();
  for (const Tier& tier : snapshot_.tiers) {
    all_.push_back(tier.gpus());
    nodes_.push_back(tier.gpus_per_node);
  }
  free_ = all_;
  power_left_ = most_watts(options_.limits.power_cap_w);
  quotas(options_.limits.user_quota, &Job::user, user_);
  quotas(options_.limits.group_quota, &Job::group, group_);
  evaluate();
  pin();
  place_owed();
  // Strict classes: each one takes from what the classes above it leave.
  std::map<int, std::vector<std::size_t>, std::greater<>> classes;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    if (candidates_[c].fate == Fate::waits) classes[candidates_[c].priority].push_back(c);
  }
  plan_.prices.assign(snapshot_.tiers.size(), 0.0);
  for (const auto& [priority, members] : classes) solve(members);
  if (options_.limits.sharing != Sharing::exclusive) share();
  write();
  return std::move(plan_);
}

std::size_t PlanMemory::bytes() const {
  std::size_t sum = bytes_of(places, candidates, usable, work.steps, offers) +
                    bytes_of(columns.job, columns.tier, columns.gpus, columns.user, columns.group) +
                    bytes_of(columns.value, columns.watts, columns.offer);
  for (const std::vector<double>& values : by_objective) sum += bytes_of(values);
  return sum;
}

bool Planner::find_places() {
  auto& places = memory_->places;
  places.clear();
  for (std::size_t j = 0; j < snapshot_.jobs.size(); ++j) {
    places.emplace_back(snapshot_.jobs[j].id, j);
  }
  if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  return std::adjacent_find(places.begin(), places.end(), same) != places.end();
}

std::size_t Planner::place_of(std::int64_t id) const {
  const auto& places = memory_->places;
  const auto found = std::lower_bound(places.begin(), places.end(), std::pair{id, std::size_t{0}});
  return found != places.end() && found->first == id ? found->second : candidates_.size();
}

void Planner::candidates() {
  candidates_.assign(snapshot_.jobs.size(), {});
  const bool repeats = find_places();
  std::unordered_set<std::int64_t> seen;
  for (std::size_t j = 0; j < candidates_.size(); ++j) {
    const Job& job = snapshot_.jobs[j];
    if (repeats && !seen.insert(job.id).second) refuse("plan: job ", job.id, " appears twice");
    if (job.id < 0 && options_.limits.sharing != Sharing::exclusive) {
      refuse("plan: job ", job.id, " has an id below 0, which no partner on shared GPUs can name");
    }
    candidates_[j].job = &job;
  }
  for (const Allocation& held : snapshot_.running) {
    const std::size_t place = place_of(held.job);
    if (place == candidates_.size()) {
      refuse("plan: job ", held.job, " runs but is not in the queue");
    }
    Candidate& candidate = candidates_[place];
    if (candidate.held) refuse("plan: job ", held.job, " holds two allocations");
    if (held.gpus < 1) {
      refuse("plan: job ", held.job, " runs on ", held.gpus, " GPUs, expected at least 1");
    }
    if (held.tier < 0 || held.tier >= std::ssize(snapshot_.tiers)) {
      refuse("plan: job ", held.job, " runs on ", held.gpus, " GPUs of tier ", held.tier,
             expected_place("tier", snapshot_.tiers.size()));
    }
    if (!std::isfinite(held.since_s)) {
      refuse("plan: job ", held.job, " runs since ", held.since_s, " s, expected a finite number");
    }
    candidate.held = &held;
  }
}

void Planner::quotas(const std::vector<Quota>& given, std::string Job::*key, Quotas& out) const {
  if (given.empty()) return;
  std::map<std::string_view, std::int64_t> index;
  for (const Quota& quota : given) {
    if (!index.emplace(quota.name, std::ssize(out.left)).second) {
      refuse("plan: two quotas for '", quota.name, "'");
    }
    out.left.push_back(quota.gpus);
  }
  out.left.push_back(std::numeric_limits<std::int64_t>::max());  // of everyone else
  for (const Job& job : snapshot_.jobs) {
    const auto found = index.find(job.*key);
    out.of_job.push_back(found != index.end() ? found->second : std::ssize(out.left) - 1);
  }
}

bool Planner::allowed(std::size_t c, int gpus, double watts) const {
  const auto within = [&](const Quotas& quotas) {
    return quotas.left.empty() || gpus <= quotas.left[quotas.of_job[c]];
  };
  return watts <= power_left_ && within(user_) && within(group_);
}

void Planner::charge(std::size_t c, int gpus, double watts) {
  power_left_ -= watts;
  for (Quotas* quotas : {&user_, &group_}) {
    if (quotas->left.empty()) continue;
    std::int64_t& left = quotas->left[quotas->of_job[c]];
    left = std::max<std::int64_t>(0, left - gpus);
  }
}

bool Planner::fits(std::size_t c, const Offer& offer) const {
  const int gpus = offer.option->gpus;
  return gpus <= free_[offer.option->tier] && allowed(c, gpus, watts_of(offer));
}

bool Planner::packs(const Offer& offer) const {
  if (!options_.limits.in_nodes) return true;
  const Tier& tier = snapshot_.tiers[offer.option->tier];
  std::vector<std::int64_t> gangs{offer.option->gpus};
  for (std::size_t i = 0; i < taken_tier_.size(); ++i) {
    if (taken_tier_[i] == offer.option->tier) gangs.push_back(taken_gpus_[i]);
  }
  return gangs_fit(gangs, tier.nodes, tier.gpus_per_node) == Fit::yes;
}

void Planner::take(std::size_t c, std::size_t o, Fate fate) {
  const Offer& offer = offers_[o];
  free_[offer.option->tier] -= offer.option->gpus;
  charge(c, offer.option->gpus, watts_of(offer));
  taken_tier_.push_back(offer.option->tier);
  taken_gpus_.push_back(offer.option->gpus);
  candidates_[c].fate = fate;
  candidates_[c].offer = o;
  plan_.value += offer.value;
  plan_.bound += offer.value;
}

bool Planner::is_sound(Candidate& candidate) {
  std::string fault = fault_of(*candidate.job, snapshot_);
  if (!fault.empty()) leave_out(candidate, std::move(fault));
  return candidate.fate != Fate::broken;
}

void Planner::leave_out(Candidate& candidate, std::string fault) {
  candidate.fate = Fate::broken;
  faults_[&candidate - candidates_.data()] = std::move(fault);
  candidate.end = candidate.first;
}

void Planner::write() {
  plan_.gap = plan_.bound > 0 ? (plan_.bound - plan_.value) / plan_.bound : 0.0;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    if (candidate.fate != Fate::waits && candidate.fate != Fate::ended &&
        candidate.fate != Fate::broken) {
      const Offer& offer = offers_[candidate.offer];
      const auto pair = partner_.find(c);
      const std::size_t other =
          pair == partner_.end() ? c : pair->second.host ^ pair->second.guest ^ c;
      const double since_s = offer.keeps ? candidate.held->since_s : snapshot_.now_s;
      plan_.allocations.push_back({candidate.job->id, offer.option->tier, offer.option->gpus,
                                   std::min(since_s, snapshot_.now_s),  // clocks may differ
                                   other == c ? -1 : candidates_[other].job->id});
    }
    if (options_.reasons) plan_.reasons.push_back({candidate.job->id, reason(c)});
  }
}

}  // namespace glidepath::detail

namespace glidepath {

Plan plan(const Snapshot& snapshot, const PlanOptions& options) {
  if (!options.objectives.empty()) return detail::Planner(snapshot, options).run();
  PlanOptions whole = options;
  whole.objectives = detail::objectives_of(options);
  return detail::Planner(snapshot, whole).run();
}

}  // namespace glidepath
