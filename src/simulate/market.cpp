// SPDX-License-Identifier: Apache-2.0
#include "simulate/market.hpp"

#include <algorithm>

#include "common/numbers.hpp"

namespace glidepath::detail {

namespace {

constexpr int kMaxPasses = 2;
constexpr std::size_t kMaxSteps = 20'000;  // of a search
constexpr double kRounding = 1e-9;         // of sums of values

}  // namespace

void Market::open(std::span<const int> room) {
  room_.assign(room.begin(), room.end());
  prices.resize(room.size(), 0.0);
  jobs_.clear();
  first_.clear();
  bids_.clear();
}

void Market::come(int job) {
  jobs_.push_back(job);
  first_.push_back(static_cast<int>(bids_.size()));
}

void Market::divide() {
  first_.push_back(static_cast<int>(bids_.size()));
  double most = -1;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    rise_.assign(room_.size(), 0);
    fall_.assign(room_.size(), 0);
    choose();
    shed();
    fill();
    double sum = 0;
    for (const int bid : given_) sum += value(bid);
    if (sum > most) {
      most = sum;
      best_ = given_;
    }
    bool moved = false;
    for (std::size_t t = 0; t < prices.size(); ++t) {
      const double price = std::max(0.0, prices[t] + rise_[t] - fall_[t]);
      moved = moved || price != prices[t];
      prices[t] = price;
    }
    if (!moved) break;
  }
  search(most);
}

/// What is worth most to each job at the prices.
void Market::choose() {
  free_ = room_;
  profits_.resize(bids_.size());
  for (std::size_t b = 0; b < bids_.size(); ++b) {
    profits_[b] = bids_[b].value - prices[bids_[b].tier] * bids_[b].gpus;
  }
  given_.assign(jobs_.size(), kNoBid);
  tops_.assign(jobs_.size(), 0);
  bound_ = 0;
  for (std::size_t t = 0; t < prices.size(); ++t) bound_ += prices[t] * room_[t];
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    double best = 0;
    for (int b = first_[i]; b < first_[i + 1]; ++b) {
      if (!(profits_[b] > best) || bids_[b].gpus > room_[bids_[b].tier]) continue;
      best = profits_[b];
      given_[i] = b;
    }
    tops_[i] = best;
    bound_ += best;
    if (given_[i] != kNoBid) free_[bids_[given_[i]].tier] -= bids_[given_[i]].gpus;
  }
}

void Market::move(const Move& move) {
  int& given = given_[move.job];
  if (given != kNoBid) free_[bids_[given].tier] += bids_[given].gpus;
  given = move.bid;
  if (given != kNoBid) free_[bids_[given].tier] -= bids_[given].gpus;
}

int Market::more(std::size_t i, int bid) const {
  const int given = given_[i];
  const bool same = given != kNoBid && bids_[given].tier == bids_[bid].tier;
  return bids_[bid].gpus - (same ? bids_[given].gpus : 0);
}

/// From tiers that give more than they have, by the moves that lose least for each GPU that they
/// give back: by so much the price is too low.
void Market::shed() {
  while (std::any_of(free_.begin(), free_.end(), [](int gpus) { return gpus < 0; })) {
    Move least{.cost = kInfinity};
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const int given = given_[i];
      if (given == kNoBid || free_[bids_[given].tier] >= 0) continue;
      const int tier = bids_[given].tier;
      const auto consider = [&](int bid, int relief) {
        const double cost = (profits_[given] - profit(bid)) / relief;
        if (cost < least.cost) least = {i, bid, cost};
      };
      consider(kNoBid, bids_[given].gpus);
      for (int b = first_[i]; b < first_[i + 1]; ++b) {
        const int own = more(i, b);
        if (bids_[b].tier == tier) {
          if (own < 0) consider(b, -own);
        } else if (own <= free_[bids_[b].tier]) {
          consider(b, bids_[given].gpus);
        }
      }
    }
    const int tier = bids_[given_[least.job]].tier;
    rise_[tier] = std::max(rise_[tier], least.cost);
    move(least);
  }
}

/// What is left goes to those who make more of it, at the least loss: by so much the price is too
/// high.
void Market::fill() {
  while (std::any_of(free_.begin(), free_.end(), [](int gpus) { return gpus > 0; })) {
    Move least{.cost = kInfinity};
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const int given = given_[i];
      const int tier = given == kNoBid ? -1 : bids_[given].tier;
      const int held = given == kNoBid ? 0 : bids_[given].gpus;
      const double from = profit(given), had = value(given);
      for (int b = first_[i]; b < first_[i + 1]; ++b) {
        const Bid& bid = bids_[b];
        const int room = free_[bid.tier] + (bid.tier == tier ? held : 0);
        if (bid.gpus > room || !(bid.value > had)) continue;
        const double cost = from - profits_[b];
        if (cost < least.cost) least = {i, b, cost};
      }
    }
    if (least.bid == kNoBid) return;
    const int tier = bids_[least.bid].tier, gpus = more(least.job, least.bid);
    if (gpus > 0) fall_[tier] = std::max(fall_[tier], least.cost / gpus);
    move(least);
  }
}

/// The jobs that a division which is worth more may give one bid or another; what it gives the
/// others is given, and what that is worth is returned. It loses less than the gap to the bound, so
/// only bids that lose less can be in it (Balas and Zemel 1980).
double Market::find_open(double gap) {
  free_ = room_;
  open_.clear();
  open_bids_.clear();
  double sum = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const std::size_t begin = open_bids_.size();
    for (int b = first_[i]; b < first_[i + 1]; ++b) {
      if (tops_[i] - profits_[b] < gap && bids_[b].gpus <= room_[bids_[b].tier]) {
        open_bids_.push_back(b);
      }
    }
    const std::size_t count = open_bids_.size() - begin;
    const bool may_wait = tops_[i] < gap;
    given_[i] = kNoBid;
    if (count == 0) continue;
    if (count > 1 || may_wait) {
      open_.push_back({i, begin, open_bids_.size()});
      continue;
    }
    given_[i] = open_bids_.back();
    open_bids_.pop_back();
    free_[bids_[given_[i]].tier] -= bids_[given_[i]].gpus;
    sum += bids_[given_[i]].value;
  }
  return sum;
}

/// Whether a division is worth more: where it does not take long, the best one of 0, 1, 2, ... GPUs
/// of each tier among the jobs for which there is a choice, one after the other.
void Market::search(double most) {
  const double gap = bound_ - most;
  if (!(gap > kRounding * most)) return;
  const double fixed = find_open(gap);
  if (open_.empty()) return;
  std::size_t states = 1;  // numbers of GPUs
  strides_.clear();
  for (const int gpus : free_) {
    if (gpus < 0) return;
    strides_.push_back(states);
    states *= static_cast<std::size_t>(gpus) + 1;
    if (states * open_bids_.size() > kMaxSteps) return;
  }
  worth_.assign(states, 0);
  choices_.assign(open_.size() * states, kNoBid);
  for (std::size_t k = 0; k < open_.size(); ++k) {
    before_ = worth_;
    for (std::size_t o = open_[k].begin; o < open_[k].end; ++o) {
      take(open_bids_[o], {&choices_[k * states], states});
    }
  }
  std::size_t state = states - 1;
  if (!(fixed + worth_[state] > most * (1 + kRounding))) return;
  for (std::size_t k = open_.size(); k-- > 0;) {
    const int b = choices_[k * states + state];
    given_[open_[k].job] = b;
    if (b != kNoBid) state -= strides_[bids_[b].tier] * bids_[b].gpus;
  }
  best_ = given_;
}

/// Where a bid beside the jobs before is worth more than what is known of so many GPUs.
void Market::take(int b, std::span<int> choices) {
  const Bid& bid = bids_[b];
  if (bid.gpus > free_[bid.tier]) return;
  const std::size_t stride = strides_[bid.tier];
  const std::size_t block = stride * (static_cast<std::size_t>(free_[bid.tier]) + 1);
  const std::size_t less = stride * static_cast<std::size_t>(bid.gpus);
  for (std::size_t at = 0; at < choices.size(); at += block) {
    for (std::size_t s = at + less; s < at + block; ++s) {
      const double own = before_[s - less] + bid.value;
      const bool better = own > worth_[s];
      worth_[s] = better ? own : worth_[s];
      choices[s] = better ? b : choices[s];
    }
  }
}

}  // namespace glidepath::detail
