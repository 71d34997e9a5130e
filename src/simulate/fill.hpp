// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "plan/round.hpp"
#include "simulate/cluster.hpp"

namespace glidepath::detail {

/// The cluster filled anew, job by job in the order that a policy wants: what is left for the next
/// one. Gangs in nodes fit where some layout of all that were taken has nodes for them.
class Fill {
 public:
  explicit Fill(const Cluster& cluster);
  /// Nothing is taken yet.
  void begin();
  /// Leaves a running job where it is. False when there is no room any more.
  bool keep(int job);
  /// Takes GPUs for a job on its fastest tier with room, such that nobody holds before others.
  /// Returns the tier, -1 where no tier has room.
  int place(int job);

 private:
  struct Room {
    GangsInNodes gangs;      ///< taken, where they must fit in nodes
    int gpus = 0, idle = 0;  ///< not taken; of these, held by nobody when the event began
    bool even = true;        ///< the gangs taken leave no gaps in nodes
  };
  [[nodiscard]] bool fits(int tier, int gpus);
  [[nodiscard]] bool even(int tier, int gpus) const;
  void take(int tier, int gpus);

  const Cluster& cluster_;
  std::vector<Room> rooms_;
};

/// A job and the tier where it shall start.
using Start = std::pair<int, int>;

/// What one event changes.
struct Changes {
  std::vector<int> suspended{};
  std::vector<Start> started{};
  void clear();
};

/// Suspends and starts. Returns the jobs that wait from now on: the suspended ones without another
/// start, and those that find no nodes although others move.
std::vector<int> carry_out(Cluster& cluster, Changes& changes);

}  // namespace glidepath::detail
