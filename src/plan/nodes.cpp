// SPDX-License-Identifier: Apache-2.0
// Gangs in nodes: whole nodes first, then the parts by best fit decreasing; a few parts that best
// fit cannot place are packed by exhaustive search.
#include <algorithm>
#include <functional>
#include <utility>

#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMaxExhaustiveParts = 10;  // parts

bool best_fit(const std::vector<std::int64_t>& parts, std::int64_t nodes, std::int64_t size) {
  std::vector<std::int64_t> room_of_nodes(size + 1, 0);  // nodes by room
  room_of_nodes.back() = nodes;
  for (const std::int64_t part : parts) {
    std::int64_t room = part;
    while (room <= size && room_of_nodes[room] == 0) ++room;
    if (room > size) return false;
    --room_of_nodes[room];
    ++room_of_nodes[room - part];
  }
  return true;
}

bool exhaustive(const std::vector<std::int64_t>& parts, std::int64_t nodes, std::int64_t size) {
  // More nodes than parts are never opened.
  std::vector<std::int64_t> room(std::min<std::int64_t>(nodes, std::ssize(parts)), size);
  const std::function<bool(std::size_t)> place = [&](std::size_t i) {
    if (i == parts.size()) return true;
    for (std::size_t n = 0; n < room.size(); ++n) {
      if (room[n] < parts[i]) continue;
      const bool opened = room[n] == size;
      room[n] -= parts[i];
      if (place(i + 1)) return true;
      room[n] += parts[i];
      if (opened) break;  // the other empty nodes are the same
    }
    return false;
  };
  return place(0);
}

}  // namespace

bool gangs_fit(std::span<const std::int64_t> gangs, std::int64_t nodes, std::int64_t size) {
  std::vector<std::int64_t> parts;
  for (const std::int64_t gpus : gangs) {
    nodes -= gpus / size;
    if (gpus % size > 0) parts.push_back(gpus % size);
  }
  if (nodes < 0) return false;
  std::sort(parts.begin(), parts.end(), std::greater<>());
  if (best_fit(parts, nodes, size)) return true;
  return parts.size() <= kMaxExhaustiveParts && exhaustive(parts, nodes, size);
}

bool fits_nodes(const Round& round, std::span<const std::int32_t> choice) {
  for (std::size_t t = 0; t < round.node.size(); ++t) {
    if (round.node[t] == 0) continue;
    std::vector<std::int64_t> gangs = round.taken[t];
    for (const std::int32_t o : choice) {
      if (o != kNone && std::cmp_equal(round.at(o).tier, t)) {
        gangs.push_back(round.at(o).gpus);
      }
    }
    if (!gangs_fit(gangs, round.nodes[t], round.node[t])) return false;
  }
  return true;
}

}  // namespace glidepath::detail
