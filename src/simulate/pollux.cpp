// SPDX-License-Identifier: Apache-2.0
// Pollux (Qiao et al., OSDI 2021): every round a genetic algorithm looks for the allocations of
// largest fitness.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <unordered_map>
#include <vector>

#include "common/interrupt.hpp"
#include "common/numbers.hpp"
#include "common/rng.hpp"
#include "simulate/history.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;

constexpr int kPopulation = 100, kGenerations = 100;
/// Generations without a better one after which the search ends: the last hundredth that more of
/// them find is not worth ten times the time.
constexpr int kPatience = 25;
constexpr double kResetProbability = 0.1;   ///< that a mutation takes a job back to what it has
constexpr double kClearProbability = 0.01;  ///< that it takes all from a job
/// Added to each speedup, so that one job that waits does not make all others worth nothing; as in
/// petuum/adaptdl.
constexpr double kFloor = 1e-3;

/// 1 / (speedup + floor) in whole billionths, so that sums in any order are equal and nobody loses
/// GPUs for a last bit.
std::int64_t cost_of(double speedup) { return std::llround(1e9 / (speedup + kFloor)); }

class Pollux {
 public:
  explicit Pollux(const PolicySetup& setup)
      : begins_round_(setup.facts.begins_round),
        round_s_(setup.options.round_s.value_or(*setup.info.round_s)),
        rng_{setup.options.seed} {}

  Plan operator()(const Snapshot& snapshot) {
    history_.look(snapshot);
    if (!begins_round_()) return go_on(snapshot);
    draw_ = 0;
    stream_ = static_cast<std::uint64_t>(std::llround(snapshot.now_s / round_s_));
    look_at_nodes(snapshot);
    look_at_jobs(snapshot);
    search(snapshot);
    Plan plan;
    const Member& best = population_.front();
    for (Index j = 0; j < candidates_.size(); ++j) {
      const Candidate& candidate = candidates_[j];
      const Job& job = snapshot.jobs[candidate.job];
      if (best.places[j].way < 0) continue;
      const Way& way = candidate.ways[best.places[j].way];
      plan.allocations.push_back(
          kept_or_new(snapshot, job, history_.of(job.id).held, way.tier, way.gpus));
    }
    // Fitness: (1/J sum_j (SPEEDUP_j + 0.001)^p)^(1/p) with p = -1.
    const double jobs = 1e9 * static_cast<double>(candidates_.size());
    plan.value = jobs / static_cast<double>(best.cost);
    plan.bound = jobs / static_cast<double>(least_);
    plan.gap = (plan.bound - plan.value) / plan.bound;
    remember(snapshot);
    return plan;
  }

 private:
  struct Node {
    int tier = 0, place = 0, gpus = 0;  ///< `place` in its tier
  };
  /// Where a job runs: one of its ways, from a node of its tier on; -1 = it waits.
  struct Place {
    int way = -1, node = 0;
  };
  /// A place for each job in order, and the sum of their costs: the less, the fitter.
  struct Member {
    std::vector<Place> places{};
    std::int64_t cost = 0;
  };

  struct Way {
    int tier = 0, gpus = 0;
    std::int64_t cost = 0;
  };

  struct Candidate {
    Index job = 0;  ///< in the Snapshot
    std::vector<Way> ways{};
    Place held{};
  };

  // ---- what is to be decided

  /// The nodes that some live job can use.
  void look_at_nodes(const Snapshot& snapshot) {
    nodes_.clear();
    first_node_.assign(snapshot.tiers.size(), 0);
    for (Index t = 0; t < snapshot.tiers.size(); ++t) {
      first_node_[t] = static_cast<int>(nodes_.size());
      const bool used = std::ranges::any_of(snapshot.jobs, [&](const Job& job) {
        return std::ranges::any_of(
            job.options, [&](const Option& option) { return option.tier == static_cast<int>(t); });
      });
      if (!used) continue;
      for (int node = 0; node < snapshot.tiers[t].nodes; ++node) {
        nodes_.push_back({static_cast<int>(t), node, snapshot.tiers[t].gpus_per_node});
      }
    }
    tier_nodes_.clear();
    gpus_ = 0;
    for (const Tier& tier : snapshot.tiers) tier_nodes_.push_back(tier.nodes);
    for (const Node& node : nodes_) gpus_ += node.gpus;
  }

  /// The jobs by attained service, then submission: those before others keep their GPUs in a
  /// repair.
  void look_at_jobs(const Snapshot& snapshot) {
    candidates_.clear();
    for (Index i = 0; i < snapshot.jobs.size(); ++i) candidates_.push_back({.job = i});
    std::ranges::stable_sort(candidates_, [&](const Candidate& a, const Candidate& b) {
      return snapshot.jobs[a.job].attained_gpu_s < snapshot.jobs[b.job].attained_gpu_s;
    });
    least_ = 0;
    for (Candidate& candidate : candidates_) {
      describe(snapshot, candidate);
      std::int64_t cheapest = cost_of(0);
      for (const Way& way : candidate.ways) cheapest = std::min(cheapest, way.cost);
      least_ += cheapest;
    }
  }

  /// Speedups over the fair share. To Pollux GPUs are alike: the goodput of a gang is the mean over
  /// the tiers that have it.
  void describe(const Snapshot& snapshot, Candidate& candidate) const {
    const Job& job = snapshot.jobs[candidate.job];
    const History::Known& known = history_.of(job.id);
    const auto goodput = [&](int gpus) {
      double sum = 0, tiers = 0;
      for (const Option& option : job.options) {
        if (option.gpus != gpus) continue;
        sum += option.steps_per_s;
        ++tiers;
      }
      return sum / tiers;
    };
    int least = std::numeric_limits<int>::max();
    for (const Option& option : job.options) least = std::min(least, option.gpus);
    const int fair = std::max(1, (gpus_ + static_cast<int>(snapshot.jobs.size()) - 1) /
                                     static_cast<int>(snapshot.jobs.size()));
    // With less than its smallest gang: a part of that one's time.
    double base = goodput(least) * std::min(1.0, static_cast<double>(fair) / least);
    for (const Option& option : job.options) {
      if (option.gpus <= fair) base = std::max(base, goodput(option.gpus));
    }
    // REALLOC_FACTOR, of all but what the job has. One that never ran pays nothing.
    const double age_s = snapshot.now_s - job.submit_s;
    const double lost_s = known.restarts() * job.restart_s;
    const double factor =
        job.attained_s > 0 ? std::max(0.0, age_s - lost_s) / (age_s + job.restart_s) : 1;
    for (const Option& option : job.options) {
      const bool keeps = known.held != nullptr && known.held->tier == option.tier &&
                         known.held->gpus == option.gpus;
      if (!keeps && option.gpus > std::max(least, 2 * known.largest)) continue;
      if (keeps) candidate.held.way = static_cast<int>(candidate.ways.size());
      const double speedup = goodput(option.gpus) / base * (keeps ? 1 : factor);
      candidate.ways.push_back({option.tier, option.gpus, cost_of(speedup)});
    }
    const auto sat = sat_.find(job.id);
    if (candidate.held.way >= 0 && sat != sat_.end()) candidate.held.node = sat->second;
  }

  // ---- the genetic algorithm

  double uniform() { return rng_.uniform(stream_, draw_++); }
  Index below(Index n) {
    return std::min(n - 1, static_cast<Index>(uniform() * static_cast<double>(n)));
  }

  void search(const Snapshot& snapshot) {
    begin(snapshot);
    std::int64_t best = population_.front().cost;
    int stale = 0;
    for (int generation = 0; generation < kGenerations && stale < kPatience; ++generation) {
      if (best == least_) return;  // each job has its best
      check_interrupt();
      const Index parents = population_.size();
      for (int child = 0; child < kPopulation; ++child) population_.push_back(bred(parents));
      select();
      stale = population_.front().cost < best ? 0 : stale + 1;
      best = population_.front().cost;
    }
  }

  /// What runs now, and the population of the round before for the jobs that are still there.
  void begin(const Snapshot& snapshot) {
    std::vector<Member> before = std::move(population_);
    population_.clear();
    Member base{.places = std::vector<Place>(candidates_.size())};
    for (Index j = 0; j < candidates_.size(); ++j) base.places[j] = candidates_[j].held;
    repair(base);
    population_.push_back(base);
    for (const Member& old : before) {
      Member member{.places = std::vector<Place>(candidates_.size())};
      for (Index j = 0; j < candidates_.size(); ++j) {
        const Candidate& candidate = candidates_[j];
        const auto row = rows_.find(snapshot.jobs[candidate.job].id);
        if (row == rows_.end() || old.places[row->second].way < 0) continue;
        const Way& had = row_ways_[row->second][old.places[row->second].way];
        for (Index w = 0; w < candidate.ways.size(); ++w) {
          if (candidate.ways[w].tier != had.tier || candidate.ways[w].gpus != had.gpus) continue;
          member.places[j] = {static_cast<int>(w), old.places[row->second].node};
        }
      }
      repair(member);
      population_.push_back(std::move(member));
    }
    select();
  }

  void remember(const Snapshot& snapshot) {
    rows_.clear();
    row_ways_.clear();
    sat_.clear();
    for (Index j = 0; j < candidates_.size(); ++j) {
      const std::int64_t id = snapshot.jobs[candidates_[j].job].id;
      rows_.emplace(id, j);
      row_ways_.push_back(candidates_[j].ways);
      if (population_.front().places[j].way >= 0) {
        sat_.emplace(id, population_.front().places[j].node);
      }
    }
  }

  /// The fittest so far, the first of equals.
  void select() {
    std::ranges::stable_sort(population_, {}, &Member::cost);
    if (population_.size() > kPopulation) population_.resize(kPopulation);
  }

  /// A child of two parents, each the fitter of two: the first jobs are those of one parent, the
  /// others those of the other.
  Member bred(Index parents) {
    const auto parent = [&] { return std::min(below(parents), below(parents)); };
    const Member &a = population_[parent()], &b = population_[parent()];
    const Index jobs = candidates_.size();
    const Index point = below(jobs + 1);
    Member child{.places = a.places};
    std::copy(b.places.begin() + static_cast<std::ptrdiff_t>(point), b.places.end(),
              child.places.begin() + static_cast<std::ptrdiff_t>(point));
    mutate(child);
    repair(child);
    return child;
  }

  /// Jobs go back to what they have, or lose it; and where a node has room, each job gets one of
  /// its gangs from there on with a probability of 1 / (nodes with room), as in petuum/adaptdl.
  void mutate(Member& member) {
    repair(member);
    roomy_.clear();
    for (Index n = 0; n < nodes_.size(); ++n) {
      if (free_[n] > 0) roomy_.push_back(static_cast<int>(n));
    }
    const auto rooms = static_cast<double>(roomy_.size());
    const double grown = roomy_.empty() ? 0 : 1 - std::pow(1 - 1 / rooms, rooms);
    for (Index j = 0; j < candidates_.size(); ++j) {
      Place& place = member.places[j];
      if (uniform() < kResetProbability) place = candidates_[j].held;
      if (uniform() < kClearProbability) place = {};
      if (uniform() < grown) grow(candidates_[j], place);
    }
  }

  void grow(const Candidate& candidate, Place& place) {
    const Node& node = nodes_[roomy_[below(roomy_.size())]];
    choices_.clear();
    for (Index w = 0; w < candidate.ways.size(); ++w) {
      if (candidate.ways[w].tier == node.tier) choices_.push_back(static_cast<int>(w));
    }
    if (!choices_.empty()) place = {choices_[below(choices_.size())], node.place};
  }

  /// Job after job keeps its gang if the nodes from its own on have room, or the largest smaller
  /// one that they have room for, or waits.
  void repair(Member& member) {
    free_.clear();
    for (const Node& node : nodes_) free_.push_back(node.gpus);
    spread_.assign(nodes_.size(), 0);
    member.cost = 0;
    for (Index j = 0; j < candidates_.size(); ++j) {
      const std::vector<Way>& ways = candidates_[j].ways;
      Place& place = member.places[j];
      while (place.way >= 0 && !sits(ways[place.way], place)) place.way = smaller(ways, place.way);
      member.cost += place.way < 0 ? cost_of(0) : ways[place.way].cost;
    }
  }

  static int smaller(const std::vector<Way>& ways, int way) {
    int best = -1;
    for (Index w = 0; w < ways.size(); ++w) {
      if (ways[w].tier != ways[way].tier || ways[w].gpus >= ways[way].gpus) continue;
      if (best < 0 || ways[w].gpus > ways[best].gpus) best = static_cast<int>(w);
    }
    return best;
  }

  /// Seats a gang on as few nodes as it needs, the first that have room from its own on: whole
  /// nodes, then a part of another, on which no other gang of several nodes may sit.
  bool sits(const Way& way, Place& place) {
    const int first = first_node_[way.tier], count = tier_nodes_[way.tier];
    if (count == 0) return false;
    const int size = nodes_[first].gpus;
    const int wholes = way.gpus / size, rest = way.gpus % size;
    const bool spread = way.gpus > size;
    taken_.clear();
    const auto take = [&](int gpus, int many) {
      for (int k = 0; k < count && many > 0; ++k) {
        const int node = first + (place.node + k) % count;
        if (free_[node] < gpus || (spread && spread_[node] != 0)) continue;
        if (std::ranges::find(taken_, node) != taken_.end()) continue;
        taken_.push_back(node);
        --many;
      }
      return many == 0;
    };
    if (!take(size, wholes) || (rest > 0 && !take(rest, 1))) return false;
    for (Index k = 0; k < taken_.size(); ++k) {
      free_[taken_[k]] -= static_cast<int>(k) < wholes ? size : rest;
      if (spread) spread_[taken_[k]] = 1;
    }
    place.node = taken_.front() - first;
    return true;
  }

  std::function<bool()> begins_round_;
  double round_s_;
  Rng rng_;
  std::uint64_t stream_ = 0, draw_ = 0;
  History history_;
  std::vector<Node> nodes_;
  std::vector<int> first_node_, tier_nodes_;  ///< of each tier
  int gpus_ = 0;
  std::vector<Candidate> candidates_;
  std::int64_t least_ = 0;  ///< cost if each job had its best way
  std::vector<Member> population_;
  std::unordered_map<std::int64_t, Index> rows_;  ///< of the round before, by job
  std::vector<std::vector<Way>> row_ways_;
  std::unordered_map<std::int64_t, int> sat_;  ///< first node of a job that runs
  std::vector<int> free_, taken_, choices_, roomy_;
  std::vector<char> spread_;  ///< holds a gang of several nodes
};

}  // namespace

Policy make_pollux(const PolicySetup& setup) { return Pollux(setup); }

}  // namespace glidepath::detail
