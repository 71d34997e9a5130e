// SPDX-License-Identifier: Apache-2.0
// Jobs with options of several gangs in a sample. plan() gives GPUs to jobs by a knapsack, whose
// relaxation a greedy rule solves on one tier (Sinha and Zoltners 1979): step by step to the job to
// whose value each of them adds most. On few GPUs, where what does not fit counts, the knapsack is
// solved. On several tiers, where a job that goes to one of them leaves another to others, prices
// of their GPUs decide.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "simulate/play.hpp"

namespace glidepath::detail {

namespace {

constexpr int kMaxExactGpus = 16;

}  // namespace

/// What the ways of a job are worth to plan() now, times `rank` / weight.
struct Player::Worth {
  std::span<const Way> ways;
  double weight = 1, rank = 0;
  double pays_s = 0;  ///< before it makes progress on another way than it holds
  int held = -1;
  double stays = 1;

  [[nodiscard]] double operator()(int way) const {
    const double rate = ways[way].steps_per_s;
    if (way == held) return rate * stays;
    return pays_s > 0 ? rate / (1 + rate * pays_s / rank) : rate;
  }
  [[nodiscard]] double value(int way) const { return weight * (*this)(way) / rank; }
};

Player::Worth Player::worth_of(int job) {
  Actor& actor = actors_[job];
  const Part& own = part(actor);
  Worth out{.ways = own.ways, .weight = own.weight, .stays = script_.rule.stays};
  double key = 0;
  if (actor.slot < 0) {
    key = line_of(actor).value;
  } else {
    const Seat& seat = running_[actor.slot];
    out.held = seat.way;
    key = key_of(seat).key * script_.rule.stays;
  }
  out.rank = std::max(own.fastest(), key / own.unit);  // to plan() no job is shorter than a second
  if (actor.restarts) out.pays_s = own.restart_s;
  return out;
}

/// Puts on the heap the best step of a job that has room.
void Player::offer(int job) {
  const Worth worth = worth_of(job);
  const int share = shares_[job];
  const double from = share < 0 ? 0 : worth(share);
  const int gpus = share < 0 ? 0 : worth.ways[share].gpus;
  double gain = 0;
  int more = 1, best = -1;
  for (int w = 0; w < static_cast<int>(worth.ways.size()); ++w) {
    const Way& way = worth.ways[w];
    const int own_more = way.gpus - gpus;
    if (own_more <= 0 || own_more > room_[way.tier]) continue;
    if (share >= 0 && way.tier != worth.ways[share].tier) continue;
    const double own_gain = worth(w) - from;
    if (!(own_gain * more > gain * own_more)) continue;
    gain = own_gain;
    more = own_more;
    best = w;
  }
  if (best < 0) return;
  const Actor& actor = actors_[job];
  const double before = script_.rule.classes ? -part(actor).priority : 0;
  steps_.push_back({{before, more * worth.rank / (gain * worth.weight), actor.place}, job, best});
  std::push_heap(steps_.begin(), steps_.end(), std::greater<>());
}

/// Gives a job what it was offered, if it still fits, and offers it what comes next.
void Player::accept(const Step& step) {
  const std::span<const Way> ways = part(actors_[step.job]).ways;
  const Way& way = ways[step.way];
  int& share = shares_[step.job];
  const int more = way.gpus - (share < 0 ? 0 : ways[share].gpus);
  if (more <= room_[way.tier]) {
    room_[way.tier] -= more;
    share = step.way;
  }
  offer(step.job);
}

/// Divides the GPUs among all; under `stay` those that run keep what they hold.
void Player::divide(Seated seated) {
  if (script_.by_prices) return divide_by_prices(seated);
  room_ = script_.capacity;
  shares_.resize(actors_.size(), -1);
  steps_.clear();
  offered_.clear();
  for (const Seat& seat : running_) {
    if (now_ >= seat.until) look(actors_[seat.job].slot);
    if (seated == Seated::compete && part(actors_[seat.job]).preemptible) continue;
    shares_[seat.job] = seat.way;
    room_[seat.tier] -= seat.gpus;
  }
  for (const Seat& seat : running_) {
    if (shares_[seat.job] < 0) offer(seat.job);
  }
  int shape = first_head(room_, Unfit::is_passed_over);
  while (shape >= 0 || !steps_.empty()) {
    if (shape >= 0 && (steps_.empty() || heads_[shape].key < steps_.front().key)) {
      offered_.push_back(heads_[shape].job);
      pop(shape);
      offer(offered_.back());
    } else {
      std::pop_heap(steps_.begin(), steps_.end(), std::greater<>());
      const Step step = steps_.back();
      steps_.pop_back();
      accept(step);
      if (std::all_of(room_.begin(), room_.end(), [](int gpus) { return gpus == 0; })) break;
    }
    shape = first_head(room_, Unfit::is_passed_over);
  }
  const bool few = script_.capacity.size() == 1 && script_.capacity.front() <= kMaxExactGpus;
  if (few && script_.one_class) divide_exactly(seated);
  settle_shares();
}

void Player::add_bids(int job) {
  const Worth worth = worth_of(job);
  market_.come(job);
  for (int w = 0; w < static_cast<int>(worth.ways.size()); ++w) {
    market_.bid({worth.ways[w].tier, worth.ways[w].gpus, w, worth.value(w)});
  }
}

/// The same on several tiers.
void Player::divide_by_prices(Seated seated) {
  room_ = free_;
  shares_.resize(actors_.size(), -1);
  offered_.clear();
  for (const Seat& seat : running_) {
    if (now_ >= seat.until) look(actors_[seat.job].slot);
    shares_[seat.job] = seat.way;
    if (seated == Seated::stay || !part(actors_[seat.job]).preemptible) continue;
    room_[seat.tier] += seat.gpus;
    shares_[seat.job] = -1;
  }
  market_.open(room_);
  for (const Seat& seat : running_) {
    if (shares_[seat.job] < 0) add_bids(seat.job);
  }
  const std::size_t ran = market_.size();
  for (const Script::Waiting& waiting : line_) add_bids(waiting.job);
  market_.divide();
  for (std::size_t i = 0; i < market_.size(); ++i) {
    if (market_.way(i) < 0) continue;
    shares_[market_.job(i)] = market_.way(i);
    if (i < ran) continue;
    offered_.push_back(market_.job(i));
    line_[i - ran].job = -1;
  }
  std::erase_if(line_, [](const Script::Waiting& waiting) { return waiting.job < 0; });
  settle_shares();
  if (seated == Seated::stay) market_.prices = script_.prices;  // not of what was left over
}

/// The best division of one tier among the jobs that were offered something and the first of each
/// shape that still wait, where it is worth more: best_[c] is the most that c GPUs are worth.
void Player::divide_exactly(Seated seated) {
  int room = script_.capacity.front();
  contenders_.clear();
  for (const Seat& seat : running_) {
    if (seated == Seated::compete && part(actors_[seat.job]).preemptible) {
      contenders_.push_back(seat.job);
    } else {
      room -= seat.gpus;
    }
  }
  contenders_.insert(contenders_.end(), offered_.begin(), offered_.end());
  const std::size_t offered = contenders_.size(), columns = static_cast<std::size_t>(room) + 1;
  for (const Script::Waiting& head : heads_) {
    if (head.job >= 0) contenders_.push_back(head.job);
  }
  best_.assign(columns, 0);
  choices_.assign(contenders_.size() * columns, -1);
  double so_far = 0;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    const Worth worth = worth_of(contenders_[i]);
    const int share = shares_[contenders_[i]];
    if (share >= 0) so_far += worth.value(share);
    values_.clear();
    for (int w = 0; w < static_cast<int>(worth.ways.size()); ++w) values_.push_back(worth.value(w));
    for (int c = room; c > 0; --c) {
      for (int w = 0; w < static_cast<int>(worth.ways.size()); ++w) {
        if (worth.ways[w].gpus > c) continue;
        // Of fewer GPUs than c, so this job is not in it yet.
        const double value = best_[c - worth.ways[w].gpus] + values_[w];
        if (!(value > best_[c])) continue;
        best_[c] = value;
        choices_[i * columns + c] = w;
      }
    }
  }
  const double rounding = 1e-9;
  if (!(best_[room] > so_far * (1 + rounding))) return;
  for (std::size_t i = contenders_.size(); i-- > 0;) {
    const int job = contenders_[i], way = choices_[i * columns + room];
    shares_[job] = way;
    if (way < 0) continue;
    room -= part(actors_[job]).ways[way].gpus;
    if (i < offered) continue;
    pop(part(actors_[job]).shape);
    offered_.push_back(job);
  }
}

/// Who holds something else than its share stops, and who has one that it does not hold starts.
void Player::settle_shares() {
  moves_.clear();
  suspended_.clear();
  for (const Seat& seat : running_) {
    if (shares_[seat.job] != seat.way) suspended_.push_back(seat.job);
    if (shares_[seat.job] == seat.way) shares_[seat.job] = -1;
  }
  for (const int job : suspended_) {
    if (shares_[job] < 0) {
      suspend(job);
    } else {
      pause(job);
      moves_.push_back({job, shares_[job]});
    }
  }
  for (const int job : offered_) {
    if (shares_[job] < 0) {
      queue(job);
    } else {
      moves_.push_back({job, shares_[job]});
    }
  }
  for (const Move& move : moves_) {
    shares_[move.job] = -1;
    start(move.job, move.way);
  }
}

}  // namespace glidepath::detail
