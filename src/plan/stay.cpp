// SPDX-License-Identifier: Apache-2.0
// Who keeps its GPUs whatever else happens, and who has waited for too long.
#include <algorithm>
#include <limits>
#include <tuple>

#include "plan/planner.hpp"

namespace glidepath::detail {

std::size_t Planner::pinned_partner(std::size_t c) const {
  const Allocation& held = *candidates_[c].held;
  const std::size_t place = held.partner < 0 ? candidates_.size() : place_of(held.partner);
  if (place == candidates_.size()) return place;
  const Candidate& other = candidates_[place];
  const bool there = other.fate == Fate::pinned && other.held && other.held->partner == held.job &&
                     other.held->tier == held.tier && other.held->gpus == held.gpus;
  return there ? place : candidates_.size();
}

bool Planner::rejoin(std::size_t c) {
  const Allocation& held = *candidates_[c].held;
  const std::size_t place = pinned_partner(c);
  if (place == candidates_.size()) return false;
  const Candidate& host = candidates_[place];
  for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
    if (!offers_[o].keeps) continue;
    const Option& guest = *offers_[o].option;
    if (!allowed(c, guest.gpus, watts_of_guest(*offers_[host.offer].option, guest))) return false;
    const Sharing sharing =
        options_.limits.sharing == Sharing::exclusive ? Sharing::naive : options_.limits.sharing;
    // They are together, so what memory they need does not matter any more.
    Tier tier = snapshot_.tiers[held.tier];
    tier.memory_gb = 0;
    const SharedSpeeds speed = shared_speeds(profile_of(*host.job), profile_of(*candidates_[c].job),
                                             sharing, tier, options_.pairs);
    const double gain =
        offers_[host.offer].value * (speed.first - 1) + offers_[o].value * speed.second;
    seat({place, c, o, speed.first, speed.second, gain});
    plan_.bound += gain;
    return true;
  }
  return false;
}

double Planner::stays_s(const Job& job) const {
  const double max_wait_s = options_.dynamics.max_wait_s;
  const bool owed = max_wait_s < kInfinity && waited_s(job, snapshot_.now_s) >= max_wait_s;
  return std::max(options_.limits.min_run_s, owed ? max_wait_s : 0.0);
}

void Planner::pin() {
  // Those that only waited for long come last: they keep their GPUs where there is room.
  std::vector<std::tuple<bool, double, std::size_t>> pinned;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    if (!candidate.held || candidate.fate == Fate::ended) continue;
    const double since = candidate.held->since_s, ran = snapshot_.now_s - since;
    const bool guaranteed = !candidate.job->preemptible || ran < options_.limits.min_run_s;
    if (guaranteed || ran < stays_s(*candidate.job)) pinned.emplace_back(!guaranteed, since, c);
  }
  std::sort(pinned.begin(), pinned.end());
  for (const auto& [owed, since, c] : pinned) {
    if (!owed && rejoin(c)) continue;
    for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
      if (offers_[o].keeps && fits(c, offers_[o])) {
        take(c, o, Fate::pinned);
        break;
      }
    }
  }
}

void Planner::place_owed() {
  if (options_.dynamics.max_wait_s == kInfinity) return;
  std::vector<std::pair<double, std::size_t>> owed;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    const double waited = waited_s(*candidate.job, snapshot_.now_s);
    if (candidate.fate != Fate::waits || candidate.held || waited < options_.dynamics.max_wait_s)
      continue;
    owed.emplace_back(-waited, c);
  }
  std::sort(owed.begin(), owed.end());
  for (const auto& [waited, c] : owed) {
    const Candidate& candidate = candidates_[c];
    std::size_t best = candidate.end;
    for (std::size_t o = candidate.first; o < candidate.end; ++o) {
      if (!fits(c, offers_[o]) || offers_[o].option->steps_per_s <= 0) continue;
      if (best != candidate.end && offers_[o].value <= offers_[best].value) continue;
      if (too_late(candidate, offers_[o])) continue;
      if (packs(offers_[o])) best = o;
    }
    if (best < candidate.end) {
      if (in_the_way(candidate, offers_[best])) reservation_.spare -= offers_[best].option->gpus;
      take(c, best, Fate::owed);
    } else if (reservation_.tier < 0) {
      reserve(c);
    }
  }
}

void Planner::reserve(std::size_t c) {
  struct Left {
    std::int64_t gpus = 0;
    double watts = 0;
    std::int64_t of_user = 0, of_group = 0;
  };
  std::vector<std::tuple<double, int, std::size_t>> ends;
  for (std::size_t k = 0; k < candidates_.size(); ++k) {
    const Fate fate = candidates_[k].fate;
    if (fate != Fate::pinned && fate != Fate::owed && fate != Fate::guest) continue;
    const Offer& offer = offers_[candidates_[k].offer];
    ends.emplace_back(done_s(candidates_[k], offer), offer.option->gpus, k);
  }
  std::sort(ends.begin(), ends.end());
  double soonest = kInfinity;
  for (std::size_t o = candidates_[c].first; o < candidates_[c].end; ++o) {
    const Option& option = *offers_[o].option;
    if (option.steps_per_s <= 0) continue;
    Left left{free_[option.tier], power_left_, left_of(user_, c), left_of(group_, c)};
    const auto enough = [&] {
      return std::min({left.gpus, left.of_user, left.of_group}) >= option.gpus &&
             left.watts >= watts_of(offers_[o]);
    };
    double shadow = 0;
    for (const auto& [end, gpus, k] : ends) {
      if (enough()) break;
      const Offer& offer = offers_[candidates_[k].offer];
      const bool is_guest = candidates_[k].fate == Fate::guest;
      left.gpus += offer.option->tier == option.tier && !is_guest ? gpus : 0;
      left.watts += is_guest ? watts_of_guest(host_of(k), *offer.option) : watts_of(offer);
      left.of_user += shares(user_, c, k) ? gpus : 0;
      left.of_group += shares(group_, c, k) ? gpus : 0;
      shadow = end;
    }
    if (!enough() || shadow >= soonest) continue;
    soonest = shadow;
    reservation_ = {c, option.tier, shadow, left.gpus - option.gpus};
  }
}

std::int64_t Planner::left_of(const Quotas& quotas, std::size_t c) {
  return quotas.left.empty() ? std::numeric_limits<std::int64_t>::max() / 2
                             : quotas.left[quotas.of_job[c]];
}

}  // namespace glidepath::detail
