// SPDX-License-Identifier: Apache-2.0
// EASY backfill in a sample (Lifka 1995).
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "simulate/play.hpp"

namespace glidepath::detail {

/// On the tier where running jobs will first have made room.
Player::Reservation Player::reserve(const Part& own) const {
  Reservation out;
  for (const Way& way : own.ways) {
    std::vector<std::pair<double, int>> ends;
    for (const Seat& seat : running_) {
      if (seat.tier != way.tier) continue;
      const Actor& actor = actors_[seat.job];
      const double steps = part(actor).counted_s(progress(actor)) * part(actor).fastest();
      ends.emplace_back(steps / seat.steps_per_s, seat.gpus);
    }
    std::sort(ends.begin(), ends.end());
    int room = free_[way.tier];
    double when = 0;
    for (const auto& [end, gpus] : ends) {
      if (room >= way.gpus) break;
      room += gpus;
      when = end;
    }
    if (room >= way.gpus && when < out.from_s) out = {way.tier, room - way.gpus, when};
  }
  return out;
}

void Player::backfill() {
  if (line_.empty()) return;  // there may be no tier either
  std::optional<Reservation> kept;
  int most_free = *std::max_element(free_.begin(), free_.end());
  const bool one_tier = free_.size() == 1;
  std::size_t stays = 0;
  for (std::size_t i = 0; i < line_.size(); ++i) {
    if (most_free == 0) {
      std::copy(line_.begin() + i, line_.end(), line_.begin() + stays);
      stays += line_.size() - i;
      break;
    }
    const Script::Need& need = script_.needs[line_[i].part];
    const bool fits = need.gpus <= most_free;
    int way = -1;
    // On one tier a job that is late on its fastest way is late on each, and takes no less GPUs.
    if (fits && !(kept && one_tier && need.gpus > kept->spare && need.seconds > kept->from_s)) {
      way = way_behind(kept, line_[i]);
    } else if (!fits && !kept) {
      kept = reserve(script_.parts[line_[i].part]);
    }
    if (way >= 0) {
      start(line_[i].job, way);
      most_free = *std::max_element(free_.begin(), free_.end());
    } else if (stays++ != i) {
      line_[stays - 1] = line_[i];
    }
  }
  line_.resize(stays);
}

/// The fastest way in which a job starts that must not delay what is kept, -1 for none. The first
/// that does not fit is what GPUs are kept for.
int Player::way_behind(std::optional<Reservation>& kept, const Script::Waiting& waiting) {
  const Part& own = script_.parts[waiting.part];
  const double steps = script_.needs[waiting.part].seconds * own.fastest();
  const auto late = [&](const Way& way) {
    return kept && way.tier == kept->tier && steps / way.steps_per_s > kept->from_s;
  };
  int best = -1;
  for (int w = 0; w < static_cast<int>(own.ways.size()); ++w) {
    const Way& way = own.ways[w];
    if (free_[way.tier] < way.gpus || (late(way) && way.gpus > kept->spare)) continue;
    if (best < 0 || way.steps_per_s > own.ways[best].steps_per_s) best = w;
  }
  if (best < 0 && !kept) kept = reserve(own);
  if (best >= 0 && late(own.ways[best])) kept->spare -= own.ways[best].gpus;
  return best;
}

}  // namespace glidepath::detail
