// SPDX-License-Identifier: Apache-2.0
// A snapshot played forward, many times over: what start_times() is made of. A `Part` is a job as
// every sample begins with it, a `Script` all of them with the rule of the policy; a `Player` plays
// a sample in memory of its own. Of the waiting jobs that could run in the same ways (one `Shape`)
// only the first in the order can be next, since room only shrinks along a fill.
#pragma once

#include "glidepath/simulate.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/market.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {

/// The queue of `las` of a job with so much service.
[[nodiscard]] int las_level(double attained_gpu_s);

/// Place of a job in the order.
struct PlayKey {
  double before = 0;  ///< -priority
  double key = 0;
  double place = 0;  ///< among equals
  friend auto operator<=>(const PlayKey&, const PlayKey&) = default;
  friend bool operator<(const PlayKey& a, const PlayKey& b) {
    // Whether two are equal a processor predicts, which of them is less it cannot.
    if (a.before != b.before) return a.before < b.before;
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

struct Way {
  int tier = 0, gpus = 0;
  double steps_per_s = 0;
};

/// A value of a law as an order by index sees it.
struct Atom {
  double left = 0;  ///< steps
  double rank = 0;  ///< E[min(S, d)] / P(S <= d), least over d, just before this value
  double peak = 0;  ///< the most of `rank` from here on
};

struct alignas(64) Part {
  // What each event reads comes first: it fills a line of the cache.
  std::span<const Way> ways{};  ///< of Script::ways
  const Atom* law = nullptr;    ///< of Script::atoms, under an order by index; one more at the end
  double end = 0;               ///< steps after which it is longer than the policy took it to be
  double unit = 1;              ///< of its key, for each step or value of `rank`
  double steps_done = 0, restart_s = 0;
  int shape = -1;
  bool by_law = false;  ///< its key follows the law, not what is believed
  bool preemptible = true;
  bool has_run = false;        ///< so that its next start takes `restart_s`
  double pending_s = 0;        ///< what is left of the restart in which it is
  std::vector<double> left{};  ///< equally likely steps still needed, increasing
  double most = kInfinity;     ///< steps until its budget is used up
  double believed = 0;         ///< by the policy
  bool is_believed = false;    ///< and not the law
  int running = -1;            ///< the way in which it runs
  double priority = 0;
  std::size_t reach = 0;  ///< how many of `left` are to a target, not to the end of a budget
  double attained_gpu_s = 0, weight = 1;
  double place = 0;      ///< among equals, the earlier the less
  std::uint64_t id = 0;  ///< of its random numbers
  int alike = -1;        ///< live job of the same user and gang that was submitted before it
  double kept = 0;       ///< probability that what those two have in common is the same

  [[nodiscard]] double fastest() const;
  /// GPU-seconds of a step, where it takes the least of them.
  [[nodiscard]] double least_gpu_s() const;
  /// Seconds that backfill counts on after so much progress: a high quantile of the law, on the
  /// fastest tier.
  [[nodiscard]] double counted_s(double progress) const;
  [[nodiscard]] int gpus() const { return ways.empty() ? 1 : ways.front().gpus; }
};

/// Moved, never copied: its parts point to its ways and atoms.
struct Script {
  PlayRule rule{};
  std::uint64_t seed = 0;
  int samples = 1;
  double horizon_s = kInfinity;
  std::vector<int> capacity{};
  std::vector<Way> ways{};                 ///< of all parts, one after the other
  std::vector<Atom> atoms{};               ///< the same
  std::vector<Part> parts{};               ///< the live jobs, then the recent ones
  int live = 0;                            ///< how many of them
  std::vector<std::vector<Way>> shapes{};  ///< tiers and gangs; their rates are not used
  std::vector<int> gangs{};                ///< of the shapes, where each has one way on one tier
  std::vector<double> submitted{};         ///< of the recent jobs since the first of them, in order
  double window_s = 0;                     ///< from then until now
  double load = 0;                         ///< GPU time that they bring, over that of the GPUs
  std::vector<int> in_order{};             ///< live jobs by submission
  std::vector<int> running{};              ///< live jobs that run
  bool one_class = true;                   ///< no job goes before the order of the others
  bool divides = false;          ///< the policy chooses among several gangs, and some job has them
  bool by_prices = false;        ///< and does so by prices: there are several tiers, and one class
  std::vector<double> prices{};  ///< of a GPU of each tier, now

  /// To be called with all parts there: ranks, shapes, order, load.
  void prepare();
  [[nodiscard]] PlayKey waiting_key(const Part& part) const;
  [[nodiscard]] double recent_load() const;
  void rank_laws();
  /// By which plan() would divide all GPUs now.
  void find_prices();
  /// Those that wait stand in one line, not in a queue of each shape.
  [[nodiscard]] bool in_line() const { return rule.reserves || by_prices; }

  /// Standard normal numbers that all jobs of a sample share: multiples of two irrational numbers,
  /// so that few samples cover both, the first few as well.
  struct Luck {
    double odds = 0, pace = 0;
  };
  [[nodiscard]] Luck luck(std::uint64_t sample) const;
  /// Writes uniforms[s * live + job] for each sample s: one number in each n-th of (0, 1) for n
  /// samples, shuffled for each job (Latin hypercube; McKay, Beckman and Conover 1979).
  void draw_uniforms(int job, std::span<double> uniforms) const;

  struct Waiting {
    PlayKey key{};
    int job = 0, part = 0;
    friend bool operator<(const Waiting& a, const Waiting& b) {
      if (a.key.before != b.key.before) return a.key.before < b.key.before;
      if (a.key.key != b.key.key) return a.key.key < b.key.key;
      return a.key.place != b.key.place ? a.key.place < b.key.place : a.job < b.job;
    }
    friend bool operator>(const Waiting& a, const Waiting& b) { return b < a; }
  };
  std::vector<std::vector<Waiting>> waiting{};  ///< of each shape, in order

  /// The least that each part needs of GPUs, and what backfill counts on before it has run.
  struct Need {
    double seconds = 0;
    int gpus = 0;
  };
  std::vector<Need> needs{};
};

/// The least of some times, any of which may change: a tournament among them.
class Tournament {
 public:
  void clear() { std::fill(tree_.begin(), tree_.end(), kInfinity); }
  void set(std::size_t slot, double value) {
    if (slot >= leaves_) grow(slot);
    std::size_t node = leaves_ + slot;
    tree_[node] = value;
    for (; node > 1; node /= 2) {
      const double other = tree_[node ^ 1];
      value = other < value ? other : value;
      tree_[node / 2] = value;
    }
  }
  [[nodiscard]] double operator[](std::size_t slot) const { return tree_[leaves_ + slot]; }
  [[nodiscard]] double least() const { return tree_[1]; }
  /// Where the least is, in the first slot of several.
  [[nodiscard]] std::size_t first() const {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (tree_[2 * node + 1] < tree_[2 * node] ? 1 : 0);
    return node - leaves_;
  }

 private:
  void grow(std::size_t slot);
  std::size_t leaves_ = 1;  ///< a power of two
  std::vector<double> tree_{kInfinity, kInfinity};
};

class Player {
 public:
  explicit Player(const Script& script);

  /// Puts seconds until each live job has GPUs in the place of its uniform number: 0 where it runs,
  /// infinity after `until_s`.
  void play(std::uint64_t sample, double until_s, std::span<double> starts);

 private:
  static constexpr double kBeforeAll = -1e15;  ///< place before all that wait
  static constexpr Script::Waiting kNobody{{kInfinity, kInfinity, kInfinity}, -1, -1};  ///< last

  struct alignas(64) Actor {  // a line of the cache
    int part = 0;
    int slot = -1;             ///< in running_, -1 while it does not run
    std::uint32_t passed = 0;  ///< values of the law that it has outlived
    std::uint8_t level = 0;    ///< of PlayOrder::level
    bool started = false, demoted = false;
    bool restarts = true;  ///< its next start takes `restart_s`: it has run, and does not run now
    double left = 0;       ///< steps, at `began`
    double progress = 0;   ///< steps since now, at `began`
    double attained = 0;   ///< GPU-seconds, at `began`
    double began = 0, resumes = 0;
    double place = 0;
  };
  struct Queue {
    std::size_t next = 0;                  ///< in Script::waiting
    std::vector<Script::Waiting> soon{};   ///< the first of those that came since, the last first
    std::vector<Script::Waiting> later{};  ///< a heap of the others: `soon` is empty only with it
    bool soon_is_first = false;
  };
  struct Move {
    int job = 0, way = 0;
  };
  /// A running job, packed: its key at time t is key + slope t, until it has to be looked at anew.
  struct Seat {
    int job = 0, tier = 0, gpus = 0, way = 0;
    double steps_per_s = 0;
    double before = 0, place = 0, key = 0, slope = 0, until = -kInfinity;
  };
  /// A running job that may have to give way.
  struct Rival {
    PlayKey key{};
    int job = 0, gpus = 0;
  };
  /// What a job would be given next: more GPUs than its share, or its first ones.
  struct Step {
    PlayKey key{};  ///< GPUs for what they add to the value of the plan
    int job = 0, way = -1;
    friend bool operator>(const Step& a, const Step& b) { return b.key < a.key; }
  };
  struct Worth;
  enum class Seated : std::uint8_t { stay, compete };
  struct KeyLine {
    double value = 0, slope = 0, until = kInfinity;
  };

  void reset(std::uint64_t sample);
  [[nodiscard]] double drawn(const Part& own, double u) const;
  void draw_uniforms();
  void draw_arrival();
  void arrive();
  void schedule();
  void start_in_order();
  void fill();
  void merge(const PlayKey& first);
  void place(int job);
  void fill_one_way();
  void renew_ceilings();
  void find_rivals(const PlayKey& first);
  [[nodiscard]] const Rival& rival(std::size_t nth) {
    while (sorted_ <= nth) select_rival();
    return rivals_[nth];
  }
  void select_rival();
  void preempt_for(int shape, int room);
  void take_head(int shape, int& room);
  void divide(Seated seated);
  void offer(int job);
  void accept(const Step& step);
  void divide_exactly(Seated seated);
  void divide_by_prices(Seated seated);
  void add_bids(int job);
  void settle_shares();
  void backfill();

  void start(int job, int way);
  void go_on_starting(int job);
  void suspend(int job);
  void pause(int job);
  void leave(int job);
  void queue(int job);
  static void insert(Queue& queue, const Script::Waiting& waiting);
  void demote();
  void settle();
  void await_demotions();
  void await_demotion(const Actor& actor);
  void look(int slot);
  void pop(int shape);
  void find_head(int shape);

  [[nodiscard]] const Part& part(const Actor& actor) const { return script_.parts[actor.part]; }
  [[nodiscard]] bool fits(int shape, std::span<const int> room) const;
  [[nodiscard]] int first_head(std::span<const int> room, Unfit unfit) const;
  [[nodiscard]] int first_gaining(int room);
  [[nodiscard]] int way_with(std::span<const int> room, const Part& part) const;
  [[nodiscard]] bool gains(const PlayKey& key, int shape) const;
  [[nodiscard]] double progress(const Actor& actor) const;
  [[nodiscard]] double attained(const Actor& actor) const;
  [[nodiscard]] static double limit_of(const Actor& actor) {
    const std::size_t level = actor.level;
    return level < kLasLimitsGpuS.size() ? kLasLimitsGpuS[level] : kInfinity;
  }
  [[nodiscard]] PlayKey key_of(const Seat& seat) const {
    return {seat.before, seat.key + seat.slope * now_, seat.place};
  }
  [[nodiscard]] PlayKey waiting_key(Actor& actor) const;
  [[nodiscard]] KeyLine line_of(Actor& actor) const;
  [[nodiscard]] Worth worth_of(int job);
  [[nodiscard]] double ceiling_of(const Actor& actor, const KeyLine& line) const;

  struct Reservation {
    int tier = -1, spare = 0;
    double from_s = kInfinity;
  };
  [[nodiscard]] Reservation reserve(const Part& part) const;
  [[nodiscard]] int way_behind(std::optional<Reservation>& kept, const Script::Waiting& waiting);

  const Script& script_;
  std::uint64_t sample_ = 0, draws_ = 0, arrivals_ = 0;
  double now_ = 0;
  double odds_ = 1;          ///< of a shorter duration, in this sample
  double stretch_ = 1;       ///< of the times between arrivals, in this sample
  double long_stretch_ = 1;  ///< the same once as long has passed as the recent past is
  int awaited_ = 0;          ///< live jobs that have not started yet
  std::span<double> starts_{};
  std::vector<Actor> actors_;
  std::vector<double> uniforms_;   ///< of each live job
  std::vector<double> in_common_;  ///< what it would be were it as far off as those alike
  std::vector<Seat> running_;
  std::vector<double> ceilings_;  ///< of each seat: its key is no more until `lapses_`
  double lapses_ = kInfinity;     ///< no ceiling lapses before
  Tournament ends_;               ///< of each seat: when the job ends
  std::vector<int> due_;          ///< jobs that end now
  std::vector<int> demoted_;      ///< jobs that have just come to their queue of `las`
  double passes_ = kInfinity;     ///< no job passes the limit of its queue before
  double wake_ = kInfinity;       ///< nor is there an event only to see that
  std::vector<int> free_, room_;
  std::vector<Queue> queues_;                 ///< of each shape
  std::vector<Script::Waiting> heads_;        ///< the first of each, job -1 for none
  std::vector<int> line_up_, rank_;           ///< shapes by their heads, and where each stands
  std::vector<Script::Waiting> line_, lane_;  ///< all that wait, where in_line(); all that run
  std::vector<int> suspended_;
  std::vector<Move> moves_;
  std::vector<int> candidates_;
  std::vector<Step> steps_;            ///< a heap of what is offered, the least key first
  std::vector<int> shares_;            ///< of each actor: the way that it is given, -1 for none
  std::vector<int> offered_;           ///< those that wait and were offered something
  std::vector<int> contenders_;        ///< for the GPUs of an exact division
  std::vector<double> values_, best_;  ///< of the ways of one of them; of so many GPUs
  std::vector<int> choices_;           ///< its way in each of `best_`, contenders x GPUs
  Market market_;                      ///< where a division is by prices
  std::vector<Rival> rivals_;          ///< as many as are counted; the last `sorted_` of them first
  std::size_t rival_count_ = 0, sorted_ = 0;
  double front_ = 0, back_ = 0, running_back_ = 0;  ///< places
  double arrival_at_ = kInfinity, clock_ = 0, block_end_ = 0, position_ = 0;
  std::size_t cursor_ = 0;
};

}  // namespace glidepath::detail
