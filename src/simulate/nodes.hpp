// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/rng.hpp"
#include "simulate/clock.hpp"

namespace glidepath::detail {

/// Where gangs sit, which nodes are out and which asleep; kept only where something depends on it.
class Nodes {
 public:
  Nodes(const Workload& workload, const SimulationOptions& options, const Clock& clock, Tick start);

  /// Puts a gang on nodes: parts of used nodes first (best fit), then empty nodes, those used last
  /// first so that the others may sleep. False where the gang must fit in nodes and does not.
  bool place(int job, int tier, int gpus, Tick now);
  /// Until all nodes of a job are awake.
  [[nodiscard]] Tick waking(int job, Tick now) const;
  /// Whether a gang finds nodes where the others are; always where it need not fit in nodes.
  [[nodiscard]] bool fits(int tier, int gpus) const;
  /// Looks for nodes for a gang where others of its tier may change theirs: whole nodes first, then
  /// parts by falling size, those that run where they are if that is still free. The next place()
  /// of the job, and of those that have to move, follows it. Returns the latter, nothing where not
  /// all find nodes.
  [[nodiscard]] std::optional<std::vector<int>> make_room(int job, int tier, int gpus);
  void release(int job, Tick now);
  struct Part {
    int tier, node, gpus;
  };
  [[nodiscard]] const std::vector<Part>& parts_of(int job) const { return of_job_[job]; }
  /// What nobody holds of each node of a tier, nothing of those that are out.
  [[nodiscard]] std::vector<int> free_by_node(int tier) const;
  [[nodiscard]] bool holds(int job) const { return !of_job_[job].empty(); }
  /// The GPUs of one job become another's.
  void pass(int from, int to);

  /// Next failure or repair of a node; kNever without failures.
  [[nodiscard]] Tick next_change() const;
  [[nodiscard]] bool all_up() const { return down_ == 0; }
  struct Change {
    int tier = 0, node = 0;
    bool up = false;
  };
  /// The change that is due at next_change().
  Change take_change();
  [[nodiscard]] std::vector<int> jobs_on(int tier, int node) const;
  /// Takes an empty node out of service, or back into it.
  void apply(const Change& change, Tick now);
  [[nodiscard]] int size(int tier) const { return tiers_[tier].size; }

  struct Off {
    Stretch asleep, out;
  };
  /// GPU-seconds asleep and out of service in a time that is over, by tier.
  [[nodiscard]] std::vector<Off> off_between(Tick from, Tick to) const;

 private:
  struct Node {
    int free = 0;
    Tick empty_since = 0, out_since = 0, awake_at = 0;
    bool up = true;
    std::uint64_t changes = 0;
  };
  struct Tier {
    int size = 1;
    std::vector<Node> nodes;
    std::vector<int> with_free{};  ///< nodes in service by their free GPUs
  };
  struct Due {
    Tick at;
    int tier, node;
    bool operator>(const Due& o) const {
      return std::tie(at, tier, node) > std::tie(o.at, o.tier, o.node);
    }
  };
  /// A part of a gang that is laid out anew; `node` of one that runs is where it is.
  struct NodeSeat {
    int gpus, job, node;
  };
  /// A time in which a node slept or was out of service.
  struct Rest {
    int tier;
    Tick from, to;
    Stretch Off::*kind;
  };
  [[nodiscard]] std::vector<NodeSeat> seats_of(int job, int tier, int gpus) const;
  [[nodiscard]] bool lay_out(const Tier& tier, std::vector<NodeSeat>& seats) const;
  [[nodiscard]] bool search_layout(const Tier& tier, std::vector<NodeSeat>& seats) const;
  [[nodiscard]] int find(const Tier& tier, int gpus) const;
  void take(int job, int tier, int node, int gpus, Tick now);
  [[nodiscard]] bool sleeps(const Node& node, Tick now) const {
    return sleep_after_ != kNever && now - node.empty_since > sleep_after_;
  }
  void wake(int tier, int node, Tick now);
  void draw(int tier, int node, Tick now);

  const Clock& clock_;
  bool whole_;  ///< gangs must fit in nodes
  Tick sleep_after_, wake_;
  double every_s_;
  Tick repair_;
  Rng rng_;
  int down_ = 0;
  std::vector<Tier> tiers_;
  std::vector<std::vector<Part>> of_job_;
  std::unordered_map<int, std::vector<Part>> laid_out_;  ///< by make_room, until they are placed
  std::vector<Rest> rests_;                              ///< that are over, in order of their ends
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace glidepath::detail
