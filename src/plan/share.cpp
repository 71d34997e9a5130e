// SPDX-License-Identifier: Apache-2.0
#include "plan/share.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace glidepath::detail {
namespace {

// Enough to find good pairs; the work stays below their product.
constexpr std::size_t kMostHosts = 64;     // of one tier and gang, the least active ones
constexpr std::size_t kMostGuests = 2000;  // the most valuable ones

}  // namespace

std::vector<Pair> match(std::span<const Seat> hosts, std::span<const Seat> guests,
                        std::span<const Tier> tiers, Sharing sharing, double& bound) {
  std::map<std::pair<int, int>, std::vector<const Seat*>> hosts_of;  // by tier and gang
  for (const Seat& host : hosts) hosts_of[{host.tier, host.gpus}].push_back(&host);
  for (auto& [where, seats] : hosts_of) {
    std::stable_sort(seats.begin(), seats.end(), [](const Seat* a, const Seat* b) {
      return a->profile.sm_activity < b->profile.sm_activity;
    });
    seats.resize(std::min(seats.size(), kMostHosts));
  }
  std::vector<const Seat*> order;
  for (const Seat& guest : guests) {
    if (guest.value > 0) order.push_back(&guest);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Seat* a, const Seat* b) { return a->value > b->value; });
  order.resize(std::min(order.size(), kMostGuests));

  std::vector<Pair> pairs;
  for (const Seat* seat : order) {
    const Seat& guest = *seat;
    const auto found = hosts_of.find({guest.tier, guest.gpus});
    if (found == hosts_of.end()) continue;
    const double memory = tiers[static_cast<std::size_t>(guest.tier)].memory_gb;
    double most = 0;
    for (const Seat* host : found->second) {
      const SharedSpeeds speed = shared_speeds(host->profile, guest.profile, sharing, memory);
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

}  // namespace glidepath::detail
