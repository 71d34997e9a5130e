// SPDX-License-Identifier: Apache-2.0
#include "simulate/nodes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/numbers.hpp"

namespace glidepath::detail {
namespace {

constexpr std::ptrdiff_t kMaxSearchedParts = 12;  // of all gangs of a tier
constexpr int kMaxLayoutTries = 2000;

}  // namespace

Nodes::Nodes(const Workload& workload, const SimulationOptions& options, const Clock& clock,
             Tick start)
    : clock_(clock),
      whole_(options.in_nodes),
      sleep_after_(clock.ticks(options.sleep.after_s)),
      wake_(clock.ticks(options.sleep.wake_s)),
      every_s_(options.failures.node_every_s),
      repair_(std::max<Tick>(1, clock.ticks(options.failures.repair_s))),
      rng_{options.seed ^ 0x6e6f6465ULL},
      of_job_(workload.jobs.size()) {
  for (const glidepath::Tier& given : workload.tiers) {
    Tier tier{.size = given.gpus_per_node, .nodes = std::vector<Node>(given.nodes)};
    tier.with_free.assign(tier.size + 1, 0);
    tier.with_free.back() = given.nodes;
    for (Node& node : tier.nodes) {
      node.free = tier.size;
      node.empty_since = start;
    }
    tiers_.push_back(std::move(tier));
    const int t = static_cast<int>(tiers_.size()) - 1;
    for (int n = 0; n < given.nodes; ++n) draw(t, n, start);
  }
}

/// Up for an exponential time, out for the time of a repair: a renewal process of its own for each
/// node, which no policy changes.
void Nodes::draw(int tier, int node, Tick now) {
  if (!(every_s_ < std::numeric_limits<double>::infinity())) return;
  Node& state = tiers_[tier].nodes[node];
  if (!state.up) return due_.push({now + repair_, tier, node});
  const std::uint64_t id =
      (static_cast<std::uint64_t>(tier) << 32) + static_cast<std::uint64_t>(node);
  const double up_s = -every_s_ * std::log(1 - rng_.uniform(id, state.changes++));
  due_.push({now + std::max<Tick>(1, clock_.ticks(std::min(up_s, kMaxSeconds))), tier, node});
}

/// The node that a gang of at most a node goes to: the fullest with room, of empty ones the one
/// used last. -1 where none has room.
int Nodes::find(const Tier& tier, int gpus) const {
  int free = gpus;
  while (free <= tier.size && tier.with_free[free] == 0) ++free;
  if (free > tier.size) return -1;
  int best = -1;
  for (std::size_t n = 0; n < tier.nodes.size(); ++n) {
    const Node& node = tier.nodes[n];
    if (!node.up || node.free != free) continue;
    if (best >= 0 && node.empty_since <= tier.nodes[best].empty_since) continue;
    best = static_cast<int>(n);
    if (free < tier.size) break;
  }
  return best;
}

bool Nodes::fits(int tier, int gpus) const {
  if (!whole_) return true;
  const Tier& of = tiers_[tier];
  const int rest = gpus % of.size;
  bool room = rest == 0;
  for (int free = rest; free < of.size && !room; ++free) room = of.with_free[free] > 0;
  return of.with_free[of.size] >= gpus / of.size + (room ? 0 : 1);
}

std::vector<Nodes::NodeSeat> Nodes::seats_of(int job, int tier, int gpus) const {
  std::vector<NodeSeat> seats;
  for (std::size_t other = 0; other < of_job_.size(); ++other) {
    for (const Part& part : of_job_[other]) {
      if (part.tier == tier) seats.push_back({part.gpus, static_cast<int>(other), part.node});
    }
  }
  const int size = tiers_[tier].size;
  for (int left = gpus; left > 0; left -= size) seats.push_back({std::min(left, size), job, -1});
  std::stable_sort(seats.begin(), seats.end(), [](const NodeSeat& a, const NodeSeat& b) {
    return a.gpus != b.gpus ? a.gpus > b.gpus : a.node >= 0 && b.node < 0;
  });
  return seats;
}

/// Sets the node of each. A part without one, or whose node is taken, goes where the parts that
/// come after it hold the least, then where it fits best.
bool Nodes::lay_out(const Tier& tier, std::vector<NodeSeat>& seats) const {
  std::vector<int> room(tier.nodes.size()), held(tier.nodes.size(), 0);
  for (std::size_t n = 0; n < room.size(); ++n) room[n] = tier.nodes[n].up ? tier.size : 0;
  for (const NodeSeat& seat : seats) {
    if (seat.node >= 0) held[seat.node] += seat.gpus;
  }
  for (NodeSeat& seat : seats) {
    if (seat.node >= 0) held[seat.node] -= seat.gpus;
    if (seat.node < 0 || room[seat.node] < seat.gpus) {
      seat.node = -1;
      for (int n = 0; n < static_cast<int>(room.size()); ++n) {
        if (room[n] < seat.gpus) continue;
        const auto cost = [&](int node) {
          return std::pair(std::max(0, held[node] + seat.gpus - room[node]), room[node]);
        };
        if (seat.node < 0 || cost(n) < cost(seat.node)) seat.node = n;
      }
      if (seat.node < 0) return false;
    }
    room[seat.node] -= seat.gpus;
  }
  return true;
}

/// The same by trying all layouts, each part first where it is: for few parts, which lay_out() may
/// not place although they fit.
bool Nodes::search_layout(const Tier& tier, std::vector<NodeSeat>& seats) const {
  if (std::ssize(seats) > kMaxSearchedParts) return false;
  std::vector<int> room(tier.nodes.size());
  for (std::size_t n = 0; n < room.size(); ++n) room[n] = tier.nodes[n].up ? tier.size : 0;
  int tries = kMaxLayoutTries;
  const std::function<bool(std::size_t)> place = [&](std::size_t i) {
    if (i == seats.size()) return true;
    if (--tries < 0) return false;
    NodeSeat& seat = seats[i];
    const int own = seat.node;
    for (int n = -1; n < static_cast<int>(room.size()); ++n) {
      const int node = n < 0 ? own : n;
      if (node < 0 || n == own || room[node] < seat.gpus) continue;
      seat.node = node;
      room[node] -= seat.gpus;
      if (place(i + 1)) return true;
      room[node] += seat.gpus;
    }
    seat.node = own;
    return false;
  };
  return place(0);
}

std::optional<std::vector<int>> Nodes::make_room(int job, int tier, int gpus) {
  const std::vector<NodeSeat> before = seats_of(job, tier, gpus);
  std::vector<NodeSeat> after = before;
  if (!lay_out(tiers_[tier], after)) {
    after = before;
    if (!search_layout(tiers_[tier], after)) return {};
  }
  std::vector<int> moved;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].node >= 0 && before[i].node != after[i].node) moved.push_back(before[i].job);
  }
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  laid_out_.clear();
  for (const NodeSeat& seat : after) {
    if (seat.job == job || std::binary_search(moved.begin(), moved.end(), seat.job)) {
      laid_out_[seat.job].push_back({tier, seat.node, seat.gpus});
    }
  }
  return moved;
}

bool Nodes::place(int job, int tier, int gpus, Tick now) {
  if (const auto found = laid_out_.find(job); found != laid_out_.end()) {
    const std::vector<Part> parts = std::move(found->second);
    laid_out_.erase(found);
    for (const Part& part : parts) take(job, tier, part.node, part.gpus, now);
    return true;
  }
  if (!fits(tier, gpus)) return false;
  Tier& of = tiers_[tier];
  int left = gpus;
  while (left > 0) {
    const int part = std::min(left, of.size);
    const int node = find(of, part);
    if (node < 0) break;
    take(job, tier, node, part, now);
    left -= part;
  }
  for (std::size_t n = 0; left > 0 && n < of.nodes.size(); ++n) {  // what is free anywhere
    const int part = of.nodes[n].up ? std::min(left, of.nodes[n].free) : 0;
    if (part == 0) continue;
    take(job, tier, static_cast<int>(n), part, now);
    left -= part;
  }
  return true;
}

void Nodes::take(int job, int tier, int n, int gpus, Tick now) {
  Tier& of = tiers_[tier];
  Node& node = of.nodes[n];
  if (node.free == of.size && sleeps(node, now)) {
    wake(tier, n, now);
    node.awake_at = now + wake_;
  }
  --of.with_free[node.free];
  ++of.with_free[node.free -= gpus];
  of_job_[job].push_back({tier, n, gpus});
}

/// Ends the sleep of an empty node, if it sleeps.
void Nodes::wake(int tier, int n, Tick now) {
  const Node& node = tiers_[tier].nodes[n];
  if (!sleeps(node, now)) return;
  rests_.push_back({tier, node.empty_since + sleep_after_, now, &Off::asleep});
}

Tick Nodes::waking(int job, Tick now) const {
  Tick until = now;
  for (const Part& part : of_job_[job]) {
    until = std::max(until, tiers_[part.tier].nodes[part.node].awake_at);
  }
  return until - now;
}

void Nodes::release(int job, Tick now) {
  for (const Part& part : of_job_[job]) {
    Tier& of = tiers_[part.tier];
    Node& node = of.nodes[part.node];
    --of.with_free[node.free];
    ++of.with_free[node.free += part.gpus];
    if (node.free == of.size) node.empty_since = now;
  }
  of_job_[job].clear();
}

void Nodes::pass(int from, int to) { of_job_[to] = std::exchange(of_job_[from], {}); }

Tick Nodes::next_change() const { return due_.empty() ? kNever : due_.top().at; }

Nodes::Change Nodes::take_change() {
  const Due due = due_.top();
  due_.pop();
  return {due.tier, due.node, !tiers_[due.tier].nodes[due.node].up};
}

std::vector<int> Nodes::free_by_node(int tier) const {
  std::vector<int> free;
  for (const Node& node : tiers_[tier].nodes) free.push_back(node.up ? node.free : 0);
  return free;
}

std::vector<int> Nodes::jobs_on(int tier, int node) const {
  std::vector<int> jobs;
  for (std::size_t job = 0; job < of_job_.size(); ++job) {
    for (const Part& part : of_job_[job]) {
      if (part.tier != tier || part.node != node) continue;
      jobs.push_back(static_cast<int>(job));
      break;
    }
  }
  return jobs;
}

void Nodes::apply(const Change& change, Tick now) {
  const auto [tier, n, up] = change;
  Tier& of = tiers_[tier];
  Node& node = of.nodes[n];
  if (up) {
    rests_.push_back({tier, node.out_since, now, &Off::out});
    node.empty_since = node.awake_at = now;
  } else {
    wake(tier, n, now);
    node.out_since = now;
  }
  node.up = up;
  of.with_free[node.free] += up ? 1 : -1;
  down_ += up ? -1 : 1;
  draw(tier, n, now);
}

/// A run may go on with failures and repairs after the last end, so that rests end after `to`, too.
std::vector<Nodes::Off> Nodes::off_between(Tick from, Tick to) const {
  std::vector<Off> off(tiers_.size());
  const auto add = [&](const Rest& rest) {
    const Tick begin = std::max(from, rest.from), end = std::min(to, rest.to);
    if (begin >= end) return;
    off[rest.tier].*rest.kind += tiers_[rest.tier].size * clock_.between(begin, end);
  };
  const auto first = std::ranges::partition_point(
      rests_, [&](Tick end) { return end <= from; }, &Rest::to);
  std::for_each(first, rests_.end(), add);
  for (int t = 0; t < static_cast<int>(tiers_.size()); ++t) {
    for (const Node& node : tiers_[t].nodes) {
      if (!node.up) {
        add({t, node.out_since, to, &Off::out});
      } else if (node.free == tiers_[t].size && sleeps(node, to)) {
        add({t, node.empty_since + sleep_after_, to, &Off::asleep});
      }
    }
  }
  return off;
}

}  // namespace glidepath::detail
