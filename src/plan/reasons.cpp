// SPDX-License-Identifier: Apache-2.0
// One line for each job, for a person.
#include <algorithm>
#include <cstdio>

#include "plan/planner.hpp"

namespace glidepath::detail {

namespace {

template <class... Parts>
std::string line(const char* format, Parts... parts) {
  char text[256];
  std::snprintf(text, sizeof text, format, parts...);
  return text;
}

}  // namespace

double Planner::rent(const Offer& offer) const {  // what its GPUs cost at today's prices
  return plan_.prices[offer.option->tier] * offer.option->gpus;
}

std::string Planner::reason(std::size_t c) const {
  const Candidate& candidate = candidates_[c];
  if (candidate.fate == Fate::broken) return "cannot be planned: " + faults_.at(c);
  if (candidate.fate == Fate::ended) return reason_of_end(*candidate.job);
  if (candidate.fate == Fate::waits) return reason_of_wait(c);
  const Offer& offer = offers_[candidate.offer];
  const int k = offer.option->gpus;
  const char* where = snapshot_.tiers[offer.option->tier].name.c_str();
  switch (candidate.fate) {
    case Fate::pinned:
      return line(candidate.job->preemptible ? "keeps %d x %s: its guaranteed run is not over"
                                             : "keeps %d x %s: it cannot be preempted",
                  k, where);
    case Fate::owed:
      return line("gets %d x %s: it has waited %.3g h, the limit is %.3g h", k, where,
                  waited_s(*candidate.job, snapshot_.now_s) / 3600,
                  options_.dynamics.max_wait_s / 3600);
    case Fate::guest: {
      const Pair& pair = partner_.at(c);
      return line(
          "shares %d x %s with job %lld (%s): at %.0f %% of its speed, the other at %.0f %%", k,
          where, static_cast<long long>(candidates_[pair.host].job->id),
          std::string(name(options_.limits.sharing)).c_str(), 100 * pair.guest_speed,
          100 * pair.host_speed);
    }
    default:
      if (guaranteed(candidate) && !offer.keeps) {
        return line("moves to %d x %s although %s", k, where, why_not_kept(c).c_str());
      }
      const char* verb = offer.keeps ? "keeps" : (candidate.held ? "moves to" : "gets");
      if (rent(offer) > 0) {
        return line("%s %d x %s: worth %.3g times what these GPUs cost now", verb, k, where,
                    offer.value / rent(offer));
      }
      return line(waiting_ == 0 ? "%s %d x %s: there are enough for all"
                                : "%s %d x %s: these GPUs cost nothing now",
                  verb, k, where);
  }
}

std::string Planner::reason_of_end(const Job& job) const {
  const RemainingWork work = remaining_work(job, options_);
  return work.reached >= work.never
             ? line("ends: target reached with probability %.3g", work.reached)
             : line("ends: target out of reach with probability %.3g", work.never);
}

bool Planner::guaranteed(const Candidate& candidate) const {
  return candidate.held && (!candidate.job->preemptible ||
                            snapshot_.now_s - candidate.held->since_s < options_.limits.min_run_s);
}

std::string Planner::why_not_kept(std::size_t c) const {
  const Candidate& candidate = candidates_[c];
  const Allocation& held = *candidate.held;
  const char* promise =
      candidate.job->preemptible ? "its guaranteed run is not over" : "it cannot be preempted";
  const auto keeps = [](const Offer& offer) { return offer.keeps; };
  if (std::none_of(offers_.begin() + candidate.first, offers_.begin() + candidate.end, keeps)) {
    return line("%s: the %d x %s that it holds are none of its options", promise, held.gpus,
                snapshot_.tiers[held.tier].name.c_str());
  }
  // Those before it, and its own, unless the one that it shares them with has them.
  std::int64_t pinned = pinned_partner(c) == candidates_.size() ? held.gpus : 0;
  for (const Candidate& other : candidates_) {
    if (other.fate != Fate::pinned) continue;
    const Option& option = *offers_[other.offer].option;
    if (option.tier == held.tier) pinned += option.gpus;
  }
  return line(pinned > all_[held.tier] ? "%s: the GPUs do not suffice for all such jobs"
                                       : "%s: the limits leave it no room",
              promise);
}

std::string Planner::reason_of_wait(std::size_t c) const {
  const Candidate& candidate = candidates_[c];
  const char* what = candidate.held ? "gives way" : "waits";
  if (guaranteed(candidate)) return "gives way although " + why_not_kept(c);
  if (reservation_.tier >= 0 && reservation_.candidate == c) {
    return line("waits: GPUs on %s are kept for it, free within %.3g h",
                snapshot_.tiers[reservation_.tier].name.c_str(), reservation_.shadow_s / 3600);
  }
  const Offer* best = &offers_[candidate.first];
  bool kept_for_another = false;
  for (std::size_t o = candidate.first; o < candidate.end; ++o) {
    if (offers_[o].value * rent(*best) > best->value * rent(offers_[o])) best = &offers_[o];
    kept_for_another =
        kept_for_another || (offers_[o].value > 0 && in_the_way(candidate, offers_[o]) &&
                             !options_.limits.in_nodes && fits(c, offers_[o]));
  }
  const int k = best->option->gpus;
  const char* where = snapshot_.tiers[best->option->tier].name.c_str();
  if (best->value <= 0) return line("%s: running it now is worth nothing", what);
  if (best->value <= rent(*best)) {
    return line("%s: on %d x %s worth %.3g times what these GPUs cost now", what, k, where,
                best->value / rent(*best));
  }
  if (kept_for_another) return line("%s: the GPUs that are free are kept for another job", what);
  return line("%s: no gang of %d is left on %s within the limits", what, k, where);
}

}  // namespace glidepath::detail
