// SPDX-License-Identifier: Apache-2.0
// Pairs of jobs on the same GPUs: who may join whom, and what that is worth.
#include <algorithm>
#include <map>
#include <set>

#include "plan/planner.hpp"

namespace glidepath::detail {
namespace {

// Enough to find good pairs; the work stays below their product.
constexpr std::size_t kMaxHosts = 64;     // of one tier and gang, the least active ones
constexpr std::size_t kMaxGuests = 2000;  // the most valuable ones

/// A job on one of its offers: a host that has its GPUs, or a guest that would join one.
struct SharedSeat {
  std::size_t job = 0, offer = 0;
  int tier = 0, gpus = 0;
  double value = 0;  ///< alone
  Profile profile{};
};

/// Pairs of a host and a guest with the same tier and gang and v_h s_h|g + v_g s_g|h > v_h, by
/// falling gain, each job at most once. Adds to `bound` no less than any matching can gain.
std::vector<Pair> match(std::span<const SharedSeat> hosts, std::span<const SharedSeat> guests,
                        std::span<const Tier> tiers, const PlanOptions& options, double& bound) {
  std::map<std::pair<int, int>, std::vector<const SharedSeat*>> hosts_of;  // by tier and gang
  for (const SharedSeat& host : hosts) hosts_of[{host.tier, host.gpus}].push_back(&host);
  for (auto& [where, seats] : hosts_of) {
    std::stable_sort(seats.begin(), seats.end(), [](const SharedSeat* a, const SharedSeat* b) {
      return a->profile.sm_activity < b->profile.sm_activity;
    });
    seats.resize(std::min(seats.size(), kMaxHosts));
  }
  std::vector<const SharedSeat*> order;
  for (const SharedSeat& guest : guests) {
    if (guest.value > 0) order.push_back(&guest);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const SharedSeat* a, const SharedSeat* b) { return a->value > b->value; });
  order.resize(std::min(order.size(), kMaxGuests));

  std::vector<Pair> pairs;
  for (const SharedSeat* seat : order) {
    const SharedSeat& guest = *seat;
    const auto found = hosts_of.find({guest.tier, guest.gpus});
    if (found == hosts_of.end()) continue;
    const Tier& tier = tiers[guest.tier];
    double most = 0;
    for (const SharedSeat* host : found->second) {
      const SharedSpeeds speed =
          shared_speeds(host->profile, guest.profile, options.limits.sharing, tier, options.pairs);
      const double gain = host->value * (speed.first - 1) + guest.value * speed.second;
      if (gain <= 0) continue;
      pairs.push_back({host->job, guest.job, guest.offer, speed.first, speed.second, gain});
      most = std::max(most, gain);
    }
    bound += most;
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    if (a.gain != b.gain) return a.gain > b.gain;
    if (a.host != b.host) return a.host < b.host;
    return a.guest != b.guest ? a.guest < b.guest : a.guest_offer < b.guest_offer;
  });
  std::set<std::size_t> taken;
  std::vector<Pair> matched;
  for (const Pair& pair : pairs) {
    if (taken.contains(pair.host) || taken.contains(pair.guest)) continue;
    taken.insert(pair.host);
    taken.insert(pair.guest);
    matched.push_back(pair);
  }
  return matched;
}

}  // namespace

double Planner::watts_of_guest(const Option& host, const Option& guest) const {
  const Tier& tier = snapshot_.tiers[host.tier];
  const double both = std::min(1.0, host.utilization + guest.utilization);
  return host.gpus * (watts(tier, both) - watts(tier, host.utilization));
}

void Planner::seat(const Pair& pair) {
  const Option& guest = *offers_[pair.guest_offer].option;
  charge(pair.guest, guest.gpus,
         watts_of_guest(*offers_[candidates_[pair.host].offer].option, guest));
  candidates_[pair.guest].fate = Fate::guest;
  candidates_[pair.guest].offer = pair.guest_offer;
  partner_[pair.guest] = partner_[pair.host] = pair;
  plan_.value += pair.gain;
}

std::vector<std::size_t> Planner::offers_to_share(const Candidate& candidate) const {
  std::set<std::pair<int, int>> permitted;  // tier and gang
  bool silent = true;
  for (const Option& option : candidate.job->options) {
    if (option.sharing == Sharing::exclusive) continue;
    silent = false;
    if (option.sharing == options_.limits.sharing) permitted.emplace(option.tier, option.gpus);
  }
  const bool waits = candidate.fate == Fate::waits;
  const std::size_t first = waits ? candidate.first : candidate.offer;
  const std::size_t end = waits ? candidate.end : candidate.offer + 1;
  std::vector<std::size_t> offers;
  for (std::size_t o = first; o < end; ++o) {
    const Option& option = *offers_[o].option;
    if (silent || permitted.contains({option.tier, option.gpus})) offers.push_back(o);
  }
  return offers;
}

void Planner::share() {
  std::vector<SharedSeat> hosts, guests;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    if (candidate.fate == Fate::ended || candidate.fate == Fate::broken || partner_.contains(c))
      continue;
    for (const std::size_t o : offers_to_share(candidate)) {
      const Option& option = *offers_[o].option;
      (candidate.fate == Fate::waits ? guests : hosts)
          .push_back(
              {c, o, option.tier, option.gpus, offers_[o].value, profile_of(*candidate.job)});
    }
  }
  for (const Pair& pair : match(hosts, guests, snapshot_.tiers, options_, plan_.bound)) {
    const Option& guest = *offers_[pair.guest_offer].option;
    const Option& host = *offers_[candidates_[pair.host].offer].option;
    if (!allowed(pair.guest, guest.gpus, watts_of_guest(host, guest))) continue;
    seat(pair);
    --waiting_;
  }
  plan_.bound = std::max(plan_.bound, plan_.value);
}

}  // namespace glidepath::detail
