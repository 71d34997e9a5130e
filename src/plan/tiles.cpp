// SPDX-License-Identifier: Apache-2.0
#include "plan/tiles.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace glidepath::detail {

bool Tiled::fill(const Round& round, std::span<const std::int32_t> jobs) {
  std::size_t options = 0;
  for (const std::int32_t j : jobs) options += round.first[j + 1] - round.first[j];
  const std::size_t max_slots = kMaxSlots + options / kMinOptionsOfSlot;
  first_.clear(), tier_.clear();
  for (std::size_t j = 0; j < jobs.size(); j += kTileJobs) {
    first_.push_back(static_cast<std::uint32_t>(tier_.size()));
    const auto tile = jobs.subspan(j, std::min(kTileJobs, jobs.size() - j));
    if (!add_tile(round, tile) || tier_.size() > max_slots) return false;
  }
  first_.push_back(static_cast<std::uint32_t>(tier_.size()));
  return true;
}

/// A tier has as many slots as the most options that a job has on it.
bool Tiled::add_tile(const Round& round, std::span<const std::int32_t> jobs) {
  slots_.assign(round.tiers, 0);
  for (const std::int32_t j : jobs) {
    std::int32_t tier = kNone, same = 0;
    for (std::int32_t o = round.first[j]; o < round.first[j + 1]; ++o) {
      const std::int32_t next = round.at(o).tier;
      if (next < tier) return false;
      same = next == tier ? same + 1 : 1;
      tier = next;
      slots_[tier] = std::max(slots_[tier], same);
    }
  }
  const std::size_t begin = tier_.size();
  for (std::int32_t tier = 0; tier < round.tiers; ++tier) {
    const std::int32_t slots = std::exchange(slots_[tier], static_cast<std::int32_t>(tier_.size()));
    tier_.insert(tier_.end(), slots, tier);
  }
  const std::size_t size = tier_.size() * kTileJobs;
  if (value_.size() < size) value_.resize(2 * size), gpus_.resize(2 * size);
  std::fill(value_.begin() + begin * kTileJobs, value_.begin() + size, 0.0);
  std::fill(gpus_.begin() + begin * kTileJobs, gpus_.begin() + size, 0.0);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::int32_t tier = kNone;
    std::size_t slot = 0;
    for (std::int32_t o = round.first[jobs[i]]; o < round.first[jobs[i] + 1]; ++o) {
      const Choice& choice = round.at(o);
      slot = choice.tier == tier ? slot + 1 : slots_[choice.tier];
      tier = choice.tier;
      value_[slot * kTileJobs + i] = static_cast<double>(choice.value);
      gpus_[slot * kTileJobs + i] = choice.gpus;
    }
  }
  return true;
}

double Tiled::add(std::size_t begin, std::size_t end, const double* price, double value,
                  std::span<double> usage) const {
  std::vector<double> lanes(usage.size() * kTileJobs, 0.0);
  const OptionTiles tiles{(end - begin + kTileJobs - 1) / kTileJobs, &first_[begin / kTileJobs],
                          tier_.data(), value_.data(), gpus_.data()};
  value = plan_kernels().best_options(tiles, price, value, lanes.data());
  for (std::size_t i = 0; i < lanes.size(); ++i) usage[i / kTileJobs] += lanes[i];
  return value;
}

bool AlikeTiles::fill(const Round& round, std::span<const std::int32_t> jobs) {
  if (round.tiers > kMaxTiers) return false;
  first_.clear(), set_.clear(), value_.clear();
  sets_.assign(1, {});
  place_.assign(kPlaces, 0);
  std::size_t options = 0;
  for (std::size_t j = 0; j < jobs.size(); j += kTileJobs) {
    const std::size_t begin = set_.size();
    first_.push_back(static_cast<std::uint32_t>(begin / kTileJobs));
    for (std::size_t i = 0; i < kTileJobs && j + i < jobs.size(); ++i) {
      const std::size_t parts = split(round, jobs[j + i]);
      if (parts == 0) return false;
      options += round.first[jobs[j + i] + 1] - round.first[jobs[j + i]];
      for (std::size_t p = 0; p < parts; ++p) {
        const std::size_t place = begin + p * kTileJobs + i;
        if (set_.size() <= place) {
          set_.resize(begin + (p + 1) * kTileJobs, 0), value_.resize(set_.size(), 0.0);
        }
        const std::size_t set = index_of(part_[p].set);
        if (set == kMaxSets) return false;
        set_[place] = static_cast<std::int64_t>(set);
        value_[place] = static_cast<double>(part_[p].value);
      }
    }
    const bool tried = j >= kTrialJobs || j + kTileJobs >= jobs.size();
    if (tried && set_.size() * kMinOptionsOfPlace > options) return false;
  }
  first_.push_back(static_cast<std::uint32_t>(set_.size() / kTileJobs));
  return true;
}

std::size_t AlikeTiles::split(const Round& round, std::int32_t job) {
  std::size_t parts = 0;
  std::int32_t tier = kNone;
  for (std::int32_t o = round.first[job]; o < round.first[job + 1]; ++o) {
    const Choice& choice = round.at(o);
    if (choice.tier <= tier) return 0;
    tier = choice.tier;
    std::size_t p = 0;
    while (p < parts && (part_[p].value != choice.value || part_[p].set.gpus != choice.gpus)) ++p;
    if (p == kMaxParts) return 0;
    if (p == parts) part_[parts++] = {choice.value, {0, choice.gpus}};
    part_[p].set.tiers |= std::uint64_t{1} << tier;
  }
  return parts;
}

std::size_t AlikeTiles::index_of(const TierSet& set) {
  std::uint64_t hash =
      (set.tiers ^ static_cast<std::uint64_t>(set.gpus) << 40) * 0x9e3779b97f4a7c15ULL;
  std::size_t at = hash >> 32 & (kPlaces - 1);
  for (; place_[at] != 0; at = (at + 1) & (kPlaces - 1)) {
    if (sets_[place_[at] - 1U] == set) return place_[at] - 1U;
  }
  if (sets_.size() == kMaxSets) return kMaxSets;
  sets_.push_back(set);
  place_[at] = static_cast<std::uint16_t>(sets_.size());
  return sets_.size() - 1;
}

bool AlikeTiles::set_prices(const double* price) {
  // Values are whole numbers below 2^52: what is left of one after a cost is exact to half of one.
  constexpr double kNearCosts = 1;
  cost_.assign(sets_.size(), 0.0);
  tier_.assign(sets_.size(), 0);
  for (std::size_t s = 1; s < sets_.size(); ++s) {
    const double gpus = sets_[s].gpus;
    std::uint64_t tiers = sets_[s].tiers;
    std::int32_t best = std::countr_zero(tiers);
    double cost = price[best] * gpus;
    for (tiers &= tiers - 1; tiers != 0; tiers &= tiers - 1) {
      const std::int32_t t = std::countr_zero(tiers);
      const double other = price[t] * gpus;
      if (other >= cost) continue;
      if (cost - other < kNearCosts) return false;
      cost = other;
      best = t;
    }
    cost_[s] = cost;
    tier_[s] = best;
  }
  return true;
}

bool AlikeTiles::add(std::size_t begin, std::size_t end, double& value, double* usage) const {
  const AlikeOptions tiles{(end - begin + kTileJobs - 1) / kTileJobs, &first_[begin / kTileJobs],
                           set_.data(), value_.data()};
  std::vector<double> times(sets_.size() * kTileJobs, 0.0);
  if (!plan_kernels().best_sets(tiles, cost_.data(), &value, times.data())) return false;
  for (std::size_t s = 1; s < sets_.size(); ++s) {
    double jobs = 0;
    for (std::size_t i = 0; i < kTileJobs; ++i) jobs += times[s * kTileJobs + i];
    usage[tier_[s]] += jobs * sets_[s].gpus;
  }
  return true;
}

}  // namespace glidepath::detail
