// SPDX-License-Identifier: Apache-2.0
// From the inner solution to a feasible choice. For any choice x,
//
//   D(lambda) - value(x) = sum_j loss(j, x_j) + lambda' (C - usage(x)),
//   loss(j, o) = max(0, max_o' reduced(o')) - reduced(o),
//
// so a good repair gives up little loss and leaves little of a priced row free.
#include <algorithm>

#include "common/interrupt.hpp"
#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

struct Move {
  double rank = 0;
  double use = 0;  ///< of capacity, less what it gives back: the less the better of equal ranks
  std::int32_t job = 0, option = 0;
};

bool before_in_rank(const Move& a, const Move& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.use != b.use) return a.use < b.use;
  if (a.job != b.job) return a.job < b.job;
  return a.option < b.option;
}

/// For a heap with the first move on top.
struct AfterInRank {
  bool operator()(const Move& a, const Move& b) const { return before_in_rank(b, a); }
};

struct RepairMemory {
  std::vector<Move> moves;

  [[nodiscard]] std::size_t bytes() const { return bytes_of(moves); }
};

class Repair {
 public:
  Repair(const Round& round, const Prices& price, const Inner& inner)
      : round_(round),
        price_(price),
        inner_(inner),
        narrow_(is_narrow(round, price)),
        choice_(inner.best),
        free_(price.size()) {
    for (std::size_t r = 0; r < free_.size(); ++r) free_[r] = round.capacity[r] - inner.usage[r];
  }

  std::vector<std::int32_t> run() {
    leave_closed_tiers();
    shed(Shed::to_other_options);
    shed(Shed::out);
    if (!round_.packs) drop_unpackable();
    fill();
    return std::move(choice_);
  }

 private:
  /// What `to` is worth less than `from`, at the prices.
  [[nodiscard]] double loss(std::int32_t from, std::int32_t to) const {
    if (narrow_) {
      return static_cast<double>(narrow_reduced(round_, from, price_) -
                                 narrow_reduced(round_, to, price_));
    }
    return static_cast<double>(reduced(round_, from, price_) - reduced(round_, to, price_));
  }
  [[nodiscard]] std::int64_t worth(std::int32_t o) const {
    return o == kNone ? 0 : round_.at(o).value;
  }

  /// free -= sign * use of option o
  void take(std::int32_t o, std::int64_t sign) {
    if (o == kNone) return;
    for_each_use(round_, o, [&](std::size_t r, std::int64_t a) { free_[r] -= sign * a; });
  }
  void move(std::size_t j, std::int32_t o) {
    take(choice_[j], -1);
    take(o, 1);
    choice_[j] = o;
  }

  /// The move leaves no row over its capacity, or no further over than it was.
  bool allowed(std::size_t j, std::int32_t o) {
    bool good = o == kNone || !round_.on_closed_tier(o);
    take(choice_[j], -1);
    if (o != kNone) {
      for_each_use(round_, o, [&](std::size_t r, std::int64_t a) {
        std::int64_t before = free_[r];
        if (choice_[j] != kNone) {
          for_each_use(round_, choice_[j], [&](std::size_t s, std::int64_t b) {
            if (s == r) before -= b;
          });
        }
        good = good && free_[r] - a >= std::min<std::int64_t>(before, 0);
      });
    }
    take(choice_[j], 1);
    return good;
  }

  /// Share of the overused rows' capacity that the move gives back, added to `sum`.
  [[nodiscard]] double relief(std::int32_t from, std::int32_t to, double sum = 0) const {
    const auto count = [&](std::int32_t option, double sign) {
      if (option == kNone) return;
      for_each_use(round_, option, [&](std::size_t r, std::int64_t a) {
        if (free_[r] >= 0) return;
        sum += sign * static_cast<double>(a) / static_cast<double>(round_.capacity[r] + 1);
      });
    };
    count(from, 1);
    count(to, -1);
    return sum;
  }

  void leave_closed_tiers() {
    for (std::size_t j = 0; j < choice_.size(); ++j) {
      if (choice_[j] != kNone && round_.on_closed_tier(choice_[j])) move(j, kNone);
    }
  }

  [[nodiscard]] bool over() const {
    return std::any_of(free_.begin(), free_.end(), [](std::int64_t f) { return f < 0; });
  }

  enum class Shed : std::uint8_t { to_other_options, out };

  /// Out of rows over their capacity by the moves that lose least for the relief they bring: first
  /// to other options as well, the cheapest few at a time, then out altogether.
  void shed(Shed where) {
    for (std::size_t count = kFirstSheds; over(); count *= 8) {
      const bool all = collect_reliefs(where, count);
      bool shed = false;
      for (std::size_t left = all ? moves_.size() : count; left > 0; --left) {
        const Move candidate = next_move();
        const std::size_t j = candidate.job;
        if (is_shed(j, where) || relief(choice_[j], candidate.option) <= 0 ||
            !allowed(j, candidate.option)) {
          continue;
        }
        move(j, candidate.option);
        shed = true;
        if (!over()) return;
      }
      if (all || !shed) return;
    }
  }

  /// A job is moved to another option once.
  [[nodiscard]] bool is_shed(std::size_t j, Shed where) const {
    return choice_[j] == kNone || (where == Shed::to_other_options && choice_[j] != inner_.best[j]);
  }

  /// The moves that bring relief, those of least loss for it first; true where they are at most
  /// `count`.
  bool collect_reliefs(Shed where, std::size_t count) {
    moves_.clear();
    for (std::size_t j = 0; j < choice_.size(); ++j) {
      if (is_shed(j, where)) continue;
      const double given = relief(choice_[j], kNone);
      if (given <= 0) continue;
      const std::int32_t best = inner_.best[j];
      const double lost = loss(best, choice_[j]);
      const auto offer = [&](std::int32_t o) {
        const double gain = relief(kNone, o, given);
        if (gain <= 0) return;
        moves_.push_back({(loss(best, o) - lost) / gain, -gain, static_cast<std::int32_t>(j), o});
      };
      offer(kNone);
      if (where == Shed::out) continue;
      for (std::int32_t o = round_.first[j]; o < round_.first[j + 1]; ++o) {
        if (o != choice_[j]) offer(o);
      }
    }
    line_up();
    return where == Shed::out || moves_.size() <= count;
  }

  /// Few of many moves are looked at, so they are put in order as they are.
  void line_up() { std::make_heap(moves_.begin(), moves_.end(), AfterInRank()); }
  Move next_move() {
    std::pop_heap(moves_.begin(), moves_.end(), AfterInRank());
    const Move first = moves_.back();
    moves_.pop_back();
    return first;
  }

  /// Gangs whose parts do not fit in the nodes go, the least value per GPU first.
  void drop_unpackable() {
    moves_.clear();
    for (std::size_t j = 0; j < choice_.size(); ++j) {
      const std::int32_t o = choice_[j];
      if (o == kNone || round_.node[round_.at(o).tier] == 0) continue;
      moves_.push_back(
          {static_cast<double>(worth(o)) / round_.at(o).gpus, 0, static_cast<std::int32_t>(j), o});
    }
    std::sort(moves_.begin(), moves_.end(), before_in_rank);
    // Feasibility is monotone in the number of gangs dropped: bisect.
    const std::vector<std::int32_t> all = choice_;
    std::size_t low = 0, high = moves_.size();
    while (low < high) {
      check_interrupt();
      const std::size_t middle = (low + high) / 2;
      std::vector<std::int32_t> rest = all;
      for (std::size_t i = 0; i < middle; ++i) rest[moves_[i].job] = kNone;
      if (fits_nodes(round_, rest) == Fit::yes) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    for (std::size_t i = 0; i < high; ++i) move(moves_[i].job, kNone);
  }

  /// What is free goes to the moves that gain value, the least loss first, the cheapest few at a
  /// time.
  void fill() {
    for (std::size_t count = kFirstMoves; room(); count *= 8) {
      const bool all = collect_gains(count);
      bool moved = false;
      int refusals = 0;
      for (std::size_t left = all ? moves_.size() : count; left > 0; --left) {
        check_interrupt();
        const Move candidate = next_move();
        const std::size_t j = candidate.job;
        if (worth(candidate.option) <= worth(choice_[j]) || !allowed(j, candidate.option)) continue;
        const std::int32_t from = choice_[j];
        move(j, candidate.option);
        if (round_.packs || fits_nodes(round_, choice_) == Fit::yes) {
          moved = true;
          continue;
        }
        move(j, from);
        if (++refusals == kMaxRefusals) return;
      }
      if (all || !moved) return;
    }
  }

  [[nodiscard]] bool room() const {
    const auto tiers = free_.begin() + round_.tiers;
    return std::any_of(free_.begin(), tiers, [](std::int64_t f) { return f > 0; });
  }

  /// The moves that gain value within what is free, those of least loss first; true where they are
  /// at most `count`.
  bool collect_gains(std::size_t count) {
    moves_.clear();
    for (std::size_t j = 0; j < choice_.size(); ++j) {
      const std::int32_t from = choice_[j];
      const std::int64_t before = worth(from);
      const std::int32_t tier = from == kNone ? kNone : round_.at(from).tier;
      for (std::int32_t o = round_.first[j]; o < round_.first[j + 1]; ++o) {
        const Choice& to = round_.at(o);
        const std::int64_t own = to.tier == tier ? round_.at(from).gpus : 0;
        if (to.value <= before || to.gpus > free_[to.tier] + own) continue;
        if (round_.on_closed_tier(o) || (!round_.limits.empty() && !allowed(j, o))) continue;
        moves_.push_back(
            {loss(from, o), static_cast<double>(to.gpus - own), static_cast<std::int32_t>(j), o});
      }
    }
    line_up();
    return moves_.size() <= count;
  }

  static constexpr std::size_t kFirstMoves = 256;
  static constexpr std::size_t kFirstSheds = 1024;  // the prices leave little to shed
  static constexpr int kMaxRefusals = 200;          // packings tried in vain

  const Round& round_;
  const Prices& price_;
  const Inner& inner_;
  bool narrow_;
  std::vector<std::int32_t> choice_;
  std::vector<std::int64_t> free_;
  Kept<RepairMemory> memory_;
  std::vector<Move>& moves_ = memory_->moves;
};

}  // namespace

Inner inner_solution(const Round& round, const Prices& price) {
  Inner inner;
  inner.best.assign(round.jobs(), kNone);
  inner.usage.assign(price.size(), 0);
  for (std::size_t r = 0; r < price.size(); ++r) inner.bound += Wide{price[r]} * round.capacity[r];
  const auto choose = [&](const auto& profit_of) {
    for (std::size_t j = 0; j < inner.best.size(); ++j) {
      decltype(profit_of(0)) best = 0;
      for (std::int32_t o = round.first[j]; o < round.first[j + 1]; ++o) {
        const auto profit = profit_of(o);
        const std::int32_t now = inner.best[j];
        // Where GPUs have no price, all gangs of one value tie, and the smallest leaves most room.
        const bool ties =
            now != kNone && profit == best && round.at(o).value == round.at(now).value;
        if (profit > best || (ties && round.at(o).gpus < round.at(now).gpus)) {
          best = profit;
          inner.best[j] = o;
        }
      }
      if (inner.best[j] == kNone) continue;
      inner.bound += best;
      for_each_use(round, inner.best[j],
                   [&](std::size_t r, std::int64_t a) { inner.usage[r] += a; });
    }
  };
  if (is_narrow(round, price)) {
    choose([&](std::int32_t o) { return narrow_reduced(round, o, price); });
  } else {
    choose([&](std::int32_t o) { return reduced(round, o, price); });
  }
  return inner;
}

std::int64_t value_of(const Round& round, std::span<const std::int32_t> choice) {
  std::int64_t sum = 0;
  for (const std::int32_t o : choice) {
    if (o != kNone) sum += round.at(o).value;
  }
  return sum;
}

std::vector<std::int32_t> repair(const Round& round, const Prices& price, const Inner& inner) {
  return Repair(round, price, inner).run();
}

}  // namespace glidepath::detail
