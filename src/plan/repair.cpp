// SPDX-License-Identifier: Apache-2.0
// From the inner solution to a feasible choice. For any choice x,
//
//   D(lambda) - value(x) = sum_j loss(j, x_j) + lambda' (C - usage(x)),
//   loss(j, o) = max(0, max_o' reduced(o')) - reduced(o),
//
// so a good repair gives up little loss and leaves little of a priced tier free.
#include <algorithm>
#include <cmath>

#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

struct Move {
  double rank = 0;
  std::int32_t job = 0, option = 0;
};

void sort_moves(std::vector<Move>& moves) {
  std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.job != b.job) return a.job < b.job;
    return a.option < b.option;
  });
}

}  // namespace

Inner inner_solution(const Round& round, const Prices& price) {
  Inner inner;
  inner.best.assign(static_cast<std::size_t>(round.jobs()), kNone);
  inner.usage.assign(price.size(), 0);
  for (std::size_t t = 0; t < price.size(); ++t) inner.bound += Wide{price[t]} * round.capacity[t];
  for (std::size_t j = 0; j < inner.best.size(); ++j) {
    Wide best = 0;
    for (std::int32_t o = round.first[j]; o < round.first[j + 1]; ++o) {
      const Wide profit = reduced(round.option[static_cast<std::size_t>(o)], price);
      if (profit > best) best = profit, inner.best[j] = o;
    }
    if (inner.best[j] == kNone) continue;
    const Choice& o = round.option[static_cast<std::size_t>(inner.best[j])];
    inner.bound += best;
    inner.usage[static_cast<std::size_t>(o.tier)] += o.gpus;
  }
  return inner;
}

std::int64_t value_of(const Round& round, std::span<const std::int32_t> choice) {
  std::int64_t sum = 0;
  for (const std::int32_t o : choice) {
    if (o != kNone) sum += round.option[static_cast<std::size_t>(o)].value;
  }
  return sum;
}

std::vector<std::int32_t> repair(const Round& round, const Prices& price, const Inner& inner) {
  const auto jobs = static_cast<std::size_t>(round.jobs());
  const std::size_t T = price.size();
  std::vector<std::int32_t> choice = inner.best;
  std::vector<std::int64_t> free(T);
  for (std::size_t t = 0; t < T; ++t) free[t] = round.capacity[t] - inner.usage[t];
  const auto at = [&](std::int32_t o) -> const Choice& {
    return round.option[static_cast<std::size_t>(o)];
  };
  const auto loss = [&](std::size_t j, std::int32_t o) {
    const Wide best = inner.best[j] == kNone ? Wide{0} : reduced(at(inner.best[j]), price);
    return static_cast<double>(best - (o == kNone ? Wide{0} : reduced(at(o), price)));
  };

  // Shed: out of a tier that is over its capacity by the moves that lose least per GPU freed,
  // first into other tiers that have room, then out altogether.
  std::vector<Move> moves;
  for (const bool out : {false, true}) {
    moves.clear();
    for (std::size_t j = 0; j < jobs; ++j) {
      const std::int32_t from = choice[j];
      if (from == kNone || free[static_cast<std::size_t>(at(from).tier)] >= 0) continue;
      const auto over = static_cast<std::size_t>(at(from).tier);
      moves.push_back({loss(j, kNone) / at(from).gpus, static_cast<std::int32_t>(j), kNone});
      if (out) continue;
      for (std::int32_t o = round.first[j]; o < round.first[j + 1]; ++o) {
        const auto to = static_cast<std::size_t>(at(o).tier);
        const std::int32_t freed = at(from).gpus - (to == over ? at(o).gpus : 0);
        if (freed <= 0 || (to != over && free[to] < at(o).gpus)) continue;
        moves.push_back({loss(j, o) / freed, static_cast<std::int32_t>(j), o});
      }
    }
    if (moves.empty()) break;
    sort_moves(moves);
    for (const Move& move : moves) {
      const auto j = static_cast<std::size_t>(move.job);
      if (choice[j] == kNone || (!out && choice[j] != inner.best[j])) continue;  // moved already
      const auto over = static_cast<std::size_t>(at(choice[j]).tier);
      if (free[over] >= 0) continue;
      if (move.option != kNone) {
        const auto to = static_cast<std::size_t>(at(move.option).tier);
        if (to != over && free[to] < at(move.option).gpus) continue;
        free[to] -= at(move.option).gpus;
      }
      free[over] += at(choice[j]).gpus;
      choice[j] = move.option;
    }
  }

  // Fill: what is free goes to the moves that gain value, the least loss first.
  moves.clear();
  const auto fits = [&](std::size_t j, std::int32_t o) {
    const std::int32_t from = choice[j];
    const auto to = static_cast<std::size_t>(at(o).tier);
    const bool same = from != kNone && at(from).tier == at(o).tier;
    return free[to] + (same ? at(from).gpus : 0) >= at(o).gpus;
  };
  const auto worth = [&](std::int32_t o) { return o == kNone ? 0 : at(o).value; };
  bool room = false;
  for (std::size_t t = 0; t < T; ++t) room = room || free[t] > 0;
  if (!room) return choice;
  for (std::size_t j = 0; j < jobs; ++j) {
    for (std::int32_t o = round.first[j]; o < round.first[j + 1]; ++o) {
      if (o == choice[j] || worth(o) <= worth(choice[j]) || !fits(j, o)) continue;
      moves.push_back({loss(j, o) - loss(j, choice[j]), static_cast<std::int32_t>(j), o});
    }
  }
  sort_moves(moves);
  for (const Move& move : moves) {
    const auto j = static_cast<std::size_t>(move.job);
    if (worth(move.option) <= worth(choice[j]) || !fits(j, move.option)) continue;
    if (choice[j] != kNone)
      free[static_cast<std::size_t>(at(choice[j]).tier)] += at(choice[j]).gpus;
    free[static_cast<std::size_t>(at(move.option).tier)] -= at(move.option).gpus;
    choice[j] = move.option;
  }
  return choice;
}

}  // namespace glidepath::detail
