// SPDX-License-Identifier: Apache-2.0
// Gangs in nodes: whole nodes first, then the parts by best fit decreasing; a few parts that best
// fit cannot place are packed by exhaustive search.
#include <algorithm>
#include <functional>
#include <optional>

#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

constexpr std::int64_t kMaxExhaustiveParts = 10;

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

GangsInNodes::GangsInNodes(std::int64_t nodes, std::int64_t size)
    : nodes_(nodes), parts_(size, 0), rooms_(size + 1, 0) {}

void GangsInNodes::clear(std::int64_t nodes) {
  nodes_ = nodes;
  count_ = spare_ = 0;
  std::fill(parts_.begin(), parts_.end(), 0);
}

void GangsInNodes::add(std::int64_t gpus) {
  spare_ -= gpus;
  count(gpus, 1);
}

void GangsInNodes::count(std::int64_t gpus, std::int64_t times) {
  const std::int64_t size = std::ssize(parts_);
  const std::int64_t part = gpus % size;
  nodes_ -= times * (gpus / size);
  if (part == 0) return;
  parts_[part] += times;
  count_ += times;
}

/// The parts one by one, the largest first, each into the least room that holds it: a node that
/// took one takes alike parts until it has no room for another.
bool GangsInNodes::best_fit() {
  const std::int64_t size = std::ssize(parts_);
  std::fill(rooms_.begin(), rooms_.end(), 0);
  rooms_.back() = nodes_;
  for (std::int64_t part = size - 1; part > 0; --part) {
    std::int64_t left = parts_[part];
    for (std::int64_t room = part; left > 0; ++room) {
      if (room > size) return false;
      const std::int64_t each = room / part;
      const std::int64_t full = std::min(rooms_[room], left / each);
      rooms_[room] -= full;
      rooms_[room - each * part] += full;
      left -= full * each;
      if (rooms_[room] == 0 || left == 0) continue;
      --rooms_[room];
      ++rooms_[room - left * part];
      left = 0;
    }
  }
  return true;
}

/// A part finds no room only where each node holds so much of parts as large or larger that it has
/// none: sum of parts >= p of at least nodes (size - p + 1) + p. A gang more takes at most its GPUs
/// from what is missing of that, whatever its parts.
std::int64_t GangsInNodes::spare() const {
  const std::int64_t size = std::ssize(parts_);
  std::int64_t least = nodes_ * size;
  std::int64_t sum = 0;
  for (std::int64_t part = size - 1; part > 0; --part) {
    sum += part * parts_[part];
    least = std::min(least, nodes_ * (size - part + 1) + part - sum);
  }
  return least;
}

Fit GangsInNodes::fit() {
  const std::int64_t size = std::ssize(parts_);
  std::int64_t sum = 0;
  for (std::int64_t part = 1; part < size; ++part) sum += part * parts_[part];
  if (sum > nodes_ * size) return Fit::no;
  if (best_fit()) return Fit::yes;
  if (count_ > kMaxExhaustiveParts) return Fit::unknown;
  std::vector<std::int64_t> parts;
  for (std::int64_t part = size - 1; part > 0; --part) {
    parts.insert(parts.end(), parts_[part], part);
  }
  return exhaustive(parts, nodes_, size) ? Fit::yes : Fit::no;
}

bool GangsInNodes::have_room(std::int64_t gpus) {
  if (gpus < spare_) return true;
  spare_ = spare();
  if (gpus < spare_) return true;
  count(gpus, 1);
  const bool fits = fit() == Fit::yes;
  count(gpus, -1);
  return fits;
}

Fit gangs_fit(std::span<const std::int64_t> gangs, std::int64_t nodes, std::int64_t size) {
  GangsInNodes all(nodes, size);
  for (const std::int64_t gpus : gangs) all.add(gpus);
  return all.fit();
}

Fit fits_nodes(const Round& round, std::span<const std::int32_t> choice) {
  std::vector<std::optional<GangsInNodes>> gangs(round.node.size());  // of the tiers in the choice
  for (const std::int32_t o : choice) {
    if (o == kNone) continue;
    const std::size_t t = round.at(o).tier;
    if (round.node[t] == 0) continue;
    if (!gangs[t]) {
      gangs[t].emplace(round.nodes[t], round.node[t]);
      for (const std::int64_t gpus : round.taken[t]) gangs[t]->add(gpus);
    }
    gangs[t]->add(round.at(o).gpus);
  }
  Fit all = Fit::yes;
  for (std::optional<GangsInNodes>& of_tier : gangs) {
    if (!of_tier) continue;
    const Fit fit = of_tier->fit();
    if (fit == Fit::no) return fit;
    if (fit == Fit::unknown) all = fit;
  }
  return all;
}

}  // namespace glidepath::detail
