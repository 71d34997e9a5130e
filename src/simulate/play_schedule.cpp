// SPDX-License-Identifier: Apache-2.0
// Who runs in a sample, and in which order. One file, so that what each event calls is inlined.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "simulate/play.hpp"

namespace glidepath::detail {

// ---- jobs that begin, stop and end

void Player::start(int job, int way) {
  Actor& actor = actors_[job];
  const Part& own = part(actor);
  const Way& on = own.ways[way];
  if (!actor.started) {
    actor.started = true;
    starts_[job] = now_;
    --awaited_;
  }
  free_[on.tier] -= on.gpus;
  actor.began = actor.resumes = now_;
  if (actor.restarts) actor.resumes += std::max(0.0, own.restart_s);
  actor.restarts = true;
  actor.slot = static_cast<int>(running_.size());
  running_.push_back(
      {.job = job, .tier = on.tier, .gpus = on.gpus, .way = way, .steps_per_s = on.steps_per_s});
  ceilings_.push_back(kInfinity);
  if (script_.rule.order == PlayOrder::level) {
    actor.place = kBeforeAll + ++running_back_;  // before those that wait
    await_demotion(actor);
  }
  if (script_.rule.preempts) look(actor.slot);
  ends_.set(actor.slot, actor.resumes + actor.left / on.steps_per_s);
}

/// A job that is still in a restart makes no progress until that is over.
void Player::go_on_starting(int job) {
  Actor& actor = actors_[job];
  actor.resumes += part(actor).pending_s;
  if (script_.rule.preempts) look(actor.slot);
  ends_.set(actor.slot, actor.resumes + actor.left / running_[actor.slot].steps_per_s);
}

double Player::progress(const Actor& actor) const {
  if (actor.slot < 0 || now_ <= actor.resumes) return actor.progress;
  return actor.progress + (now_ - actor.resumes) * running_[actor.slot].steps_per_s;
}

double Player::attained(const Actor& actor) const {
  return actor.slot < 0 ? actor.attained
                        : actor.attained + (now_ - actor.began) * running_[actor.slot].gpus;
}

void Player::leave(int job) {
  Actor& actor = actors_[job];
  Seat& seat = running_[actor.slot];
  free_[seat.tier] += seat.gpus;
  actors_[running_.back().job].slot = actor.slot;
  seat = running_.back();
  ceilings_[actor.slot] = ceilings_.back();
  running_.pop_back();
  ceilings_.pop_back();
  ends_.set(actor.slot, ends_[running_.size()]);
  ends_.set(running_.size(), kInfinity);
  actor.slot = -1;
}

void Player::suspend(int job) {
  pause(job);
  Actor& actor = actors_[job];
  if (script_.rule.order == PlayOrder::level) {
    // Where it has just come to its queue it stays behind it, else it goes back to its front.
    if (!actor.demoted) actor.place = --front_;
    actor.demoted = false;
  }
  queue(job);
}

void Player::pause(int job) {
  Actor& actor = actors_[job];
  const double done = progress(actor);
  actor.attained = attained(actor);
  actor.left = std::max(0.0, actor.left - (done - actor.progress));
  actor.progress = done;
  leave(job);
}

void Player::queue(int job) {
  Actor& actor = actors_[job];
  const Script::Waiting waiting{waiting_key(actor), job, actor.part};
  if (script_.in_line()) {
    line_.insert(std::upper_bound(line_.begin(), line_.end(), waiting), waiting);
    return;
  }
  const int shape = part(actor).shape;
  insert(queues_[shape], waiting);
  if (waiting < heads_[shape]) find_head(shape);
}

/// Mostly it has just run, and is among the first of those that wait.
void Player::insert(Queue& queue, const Script::Waiting& waiting) {
  constexpr std::size_t kSoonCapacity = 16;
  std::vector<Script::Waiting>& soon = queue.soon;
  std::vector<Script::Waiting>& later = queue.later;
  const auto defer = [&](const Script::Waiting& last) {
    later.push_back(last);
    std::push_heap(later.begin(), later.end(), std::greater<>());
  };
  if (!later.empty() && later.front() < waiting) return defer(waiting);
  auto at = soon.end();
  while (at != soon.begin() && *(at - 1) < waiting) --at;
  soon.insert(at, waiting);
  if (soon.size() <= kSoonCapacity) return;
  defer(soon.front());
  soon.erase(soon.begin());
}

void Player::find_head(int shape) {
  Queue& queue = queues_[shape];
  const std::vector<Script::Waiting>& first = script_.waiting[shape];
  const Script::Waiting& soon = queue.soon.empty() ? kNobody : queue.soon.back();
  const Script::Waiting& next = queue.next < first.size() ? first[queue.next] : kNobody;
  queue.soon_is_first = soon < next;
  heads_[shape] = queue.soon_is_first ? soon : next;
  // To its place among the others.
  const auto stand = [&](int other, int rank) {
    line_up_[rank] = other;
    rank_[other] = rank;
  };
  int rank = rank_[shape];
  const Script::Waiting& own = heads_[shape];
  for (; rank > 0 && own < heads_[line_up_[rank - 1]]; --rank) stand(line_up_[rank - 1], rank);
  const int last = static_cast<int>(line_up_.size()) - 1;
  for (; rank < last && heads_[line_up_[rank + 1]] < own; ++rank) stand(line_up_[rank + 1], rank);
  stand(shape, rank);
}

void Player::pop(int shape) {
  Queue& queue = queues_[shape];
  if (queue.soon_is_first) {
    queue.soon.pop_back();
    if (queue.soon.empty() && !queue.later.empty()) {
      std::pop_heap(queue.later.begin(), queue.later.end(), std::greater<>());
      queue.soon.push_back(queue.later.back());
      queue.later.pop_back();
    }
  } else {
    ++queue.next;
  }
  find_head(shape);
}

// ---- the order

/// What a policy puts a job in order by: a line in the progress that it makes, and until where.
Player::KeyLine Player::line_of(Actor& actor) const {
  const Part& own = part(actor);
  const PlayOrder order = script_.rule.order;
  if (order == PlayOrder::arrival) return {};
  if (order == PlayOrder::gang) return {static_cast<double>(own.gpus())};
  if (order == PlayOrder::level) return {static_cast<double>(actor.level)};
  const double now = progress(actor);
  const double unit = own.unit;
  if (now >= own.end) {  // as long again
    const double had = own.steps_done + now;
    return had < 1 ? KeyLine{unit, 0, 1 - own.steps_done} : KeyLine{had * unit, unit, kInfinity};
  }
  if (!own.by_law) return {(own.end - now) * unit, -unit, own.end};
  while (own.law[actor.passed].left <= now) ++actor.passed;
  const Atom* const next = own.law + actor.passed;
  const double from = actor.passed == 0 ? 0 : next[-1].left;
  const double to = next->left;
  if (!(to < kInfinity && next->rank < kInfinity)) return {next->rank * unit, 0, to};
  // Past the last value at which it can end it never does: until there that end alone counts.
  const double after = next[1].rank < kInfinity ? next[1].rank : 0;
  const double slope = (after - next->rank) / (to - from);
  return {(next->rank + slope * (now - from)) * unit, slope * unit, to};
}

/// No less than the key of a running job will be until `lapses_`.
double Player::ceiling_of(const Actor& actor, const KeyLine& line) const {
  const Part& own = part(actor);
  if (!own.preemptible) return -kInfinity;
  if (!script_.one_class) return kInfinity;
  // Among equals in its queue of `las` it is before those that wait, unless it has just come to it.
  if (script_.rule.order == PlayOrder::level) return actor.level - (actor.demoted ? 0 : 0.5);
  double most = line.value;
  const double end = actor.progress + actor.left;
  if (own.by_law && end <= own.end) most = own.law[actor.passed].peak * own.unit;
  // Once it is longer than it was believed to be.
  if (own.by_law ? end > own.end : line.slope > 0) {
    most = std::max(most, std::max(1.0, own.steps_done + end) * own.unit);
  }
  const double rounding = 1e-9;
  return most * (1 + rounding) / script_.rule.stays;
}

PlayKey Player::waiting_key(Actor& actor) const {
  return {script_.rule.classes ? -part(actor).priority : 0, line_of(actor).value, actor.place};
}

/// Where a running job stands from now on, and until when.
void Player::look(int slot) {
  Seat& seat = running_[slot];
  Actor& actor = actors_[seat.job];
  const Part& own = part(actor);
  const KeyLine line = line_of(actor);
  const double pace = now_ < actor.resumes ? 0 : seat.steps_per_s;
  const double stays = script_.rule.stays;
  seat.before = !own.preemptible ? -kInfinity : script_.rule.classes ? -own.priority : 0;
  seat.place = actor.place;
  seat.slope = line.slope * pace / stays;
  seat.key = line.value / stays - seat.slope * now_;
  const double ahead = line.until - progress(actor);
  seat.until = now_ < actor.resumes ? actor.resumes
               : ahead > 0          ? now_ + std::max(ahead / pace, 1e-9 * now_)
                                    : kInfinity;
  ceilings_[slot] = ceiling_of(actor, line);
  if (!own.by_law) lapses_ = std::min(lapses_, seat.until);
}

/// Running jobs that have had more than their queues allow go behind those that wait in the next.
void Player::demote() {
  demoted_.clear();
  const double rounding = 1e-9;
  if (passes_ > now_ * (1 + rounding)) return;
  for (const Seat& seat : running_) {
    const Actor& actor = actors_[seat.job];
    if (attained(actor) * (1 + rounding) >= limit_of(actor)) demoted_.push_back(seat.job);
  }
  std::sort(demoted_.begin(), demoted_.end());
  for (const int job : demoted_) {
    Actor& actor = actors_[job];
    ++actor.level;
    actor.demoted = true;
    actor.place = ++back_;
    look(actor.slot);
  }
  await_demotions();
}

/// Those that keep their GPUs are before those that wait again.
void Player::settle() {
  for (const int job : demoted_) {
    Actor& actor = actors_[job];
    if (!actor.demoted) continue;
    actor.demoted = false;
    actor.place = kBeforeAll + ++running_back_;
    look(actor.slot);
  }
}

void Player::await_demotions() {
  passes_ = wake_ = kInfinity;
  for (const Seat& seat : running_) await_demotion(actors_[seat.job]);
}

/// The simulation looks at demotions in events only, and wakes for them (limit - seconds held) /
/// GPUs later, which is late for gangs.
void Player::await_demotion(const Actor& actor) {
  const double limit = limit_of(actor);
  const double had = attained(actor);
  const int gpus = running_[actor.slot].gpus;
  constexpr double kLeastSeconds = 1e-3;
  passes_ = std::min(passes_, now_ + (limit - had) / gpus);
  wake_ = std::min(wake_, now_ + std::max(kLeastSeconds, (limit - had / gpus) / gpus));
}

// ---- who runs

void Player::schedule() {
  if (script_.rule.reserves) return backfill();
  if (!script_.rule.preempts) return start_in_order();
  if (script_.divides) return divide(Seated::compete);
  if (script_.rule.order != PlayOrder::level) return fill();
  demote();
  fill();
  settle();
}

/// The fastest way that has room, GPUs that nobody holds before others; -1 without.
int Player::way_with(std::span<const int> room, const Part& part) const {
  int best = -1;
  bool best_idle = false;
  for (int w = 0; w < static_cast<int>(part.ways.size()); ++w) {
    const Way& way = part.ways[w];
    if (room[way.tier] < way.gpus) continue;
    const bool idle = free_[way.tier] >= way.gpus;
    if (best < 0 || idle > best_idle ||
        (idle == best_idle && way.steps_per_s > part.ways[best].steps_per_s)) {
      best = w;
      best_idle = idle;
    }
  }
  return best;
}

bool Player::fits(int shape, std::span<const int> room) const {
  if (!script_.gangs.empty()) return room[0] >= script_.gangs[shape];
  const std::vector<Way>& ways = script_.shapes[shape];
  return std::any_of(ways.begin(), ways.end(),
                     [&](const Way& way) { return room[way.tier] >= way.gpus; });
}

/// The shape of the first waiting job that fits, or where others block, of the first if that fits.
int Player::first_head(std::span<const int> room, Unfit unfit) const {
  for (const int shape : line_up_) {
    if (heads_[shape].job < 0) return -1;
    if (fits(shape, room)) return shape;
    if (unfit == Unfit::blocks) return -1;
  }
  return -1;
}

void Player::start_in_order() {
  for (;;) {
    const int shape = first_head(free_, script_.rule.unfit);
    if (shape < 0) return;
    const int job = heads_[shape].job;
    pop(shape);
    start(job, way_with(free_, part(actors_[job])));
  }
}

/// Whether the running jobs behind a waiting one, and what is free, are enough for it.
bool Player::gains(const PlayKey& key, int shape) const {
  for (const Way& way : script_.shapes[shape]) {
    int room = free_[way.tier];
    for (const Seat& seat : running_) {
      if (room >= way.gpus) break;
      if (seat.tier == way.tier && key < key_of(seat)) room += seat.gpus;
    }
    if (room >= way.gpus) return true;
  }
  return false;
}

/// The live jobs in order, each that still fits runs. Mostly nobody who waits is before anybody who
/// runs, or has room there.
void Player::fill() {
  if (!script_.gangs.empty()) return fill_one_way();
  PlayKey last{-kInfinity, -kInfinity, -kInfinity};
  for (const Seat& seat : running_) {
    if (now_ >= seat.until) look(actors_[seat.job].slot);
    last = std::max(last, key_of(seat));
  }
  for (const int shape : line_up_) {
    const Script::Waiting& own = heads_[shape];
    if (own.job < 0 || !(own.key < last)) break;
    if (gains(own.key, shape)) return merge(PlayKey(own.key));
  }
  start_in_order();
}

/// Everything from the first waiting job on that has room where it stands: before it nothing
/// changes.
void Player::merge(const PlayKey& first) {
  room_ = script_.capacity;
  lane_.clear();
  suspended_.clear();
  moves_.clear();
  for (const Seat& seat : running_) {
    const PlayKey key = key_of(seat);
    if (key < first) {
      room_[seat.tier] -= seat.gpus;
    } else {
      lane_.push_back({key, seat.job});
    }
  }
  std::sort(lane_.begin(), lane_.end());
  std::size_t next = 0;
  int shape = first_head(room_, Unfit::is_passed_over);
  while (next < lane_.size() || shape >= 0) {
    if (next < lane_.size() && (shape < 0 || lane_[next].key < heads_[shape].key)) {
      place(lane_[next++].job);
    } else {
      const int job = heads_[shape].job;
      pop(shape);
      const Part& own = part(actors_[job]);
      const int way = way_with(room_, own);
      room_[own.ways[way].tier] -= own.ways[way].gpus;
      moves_.push_back({job, way});
    }
    shape = first_head(room_, Unfit::is_passed_over);
  }
  std::reverse(suspended_.begin(), suspended_.end());  // so that they go back in their order
  for (const int job : suspended_) {
    const bool moves = std::any_of(moves_.begin(), moves_.end(),
                                   [&](const Move& move) { return move.job == job; });
    if (moves) {
      pause(job);
    } else {
      suspend(job);
    }
  }
  for (const Move& move : moves_) start(move.job, move.way);
}

/// A running job stays where it is, or else goes where there is room, or waits.
void Player::place(int job) {
  const Actor& actor = actors_[job];
  const Part& own = part(actor);
  int way = running_[actor.slot].way;
  if (room_[own.ways[way].tier] < own.ways[way].gpus) {
    suspended_.push_back(job);
    way = way_with(room_, own);
    if (way < 0) return;
    moves_.push_back({job, way});
  }
  room_[own.ways[way].tier] -= own.ways[way].gpus;
}

/// Where keys have begun to rise, or will.
void Player::renew_ceilings() {
  lapses_ = kInfinity;
  for (int slot = 0; slot < static_cast<int>(running_.size()); ++slot) {
    if (now_ >= running_[slot].until) look(slot);
    lapses_ = std::min(lapses_, running_[slot].until);
  }
}

/// The running jobs behind a place: of those whose ceiling allows it those that are. No branch
/// depends on the answer, which a processor cannot predict.
void Player::find_rivals(const PlayKey& first) {
  if (now_ >= lapses_) renew_ceilings();
  const std::size_t n = running_.size();
  if (rivals_.size() < n) {
    candidates_.resize(n);
    rivals_.resize(n);
  }
  int* const candidates = candidates_.data();
  const double* const ceilings = ceilings_.data();
  const double key = first.key;
  std::size_t high = 0;
  for (std::size_t slot = 0; slot < n; ++slot) {
    candidates[high] = static_cast<int>(slot);
    high += ceilings[slot] < key ? 0 : 1;
  }
  rival_count_ = sorted_ = 0;
  for (std::size_t i = 0; i < high; ++i) {
    const Seat& seat = running_[candidates[i]];
    if (now_ >= seat.until) look(candidates[i]);
    rivals_[rival_count_] = {key_of(seat), seat.job, seat.gpus};
    rival_count_ += rivals_[rival_count_].key < first ? 0 : 1;
  }
}

/// The next from behind. Mostly few are looked at, so each is selected only when it is needed. The
/// loop has no branches, for which of two keys is more a processor cannot predict.
void Player::select_rival() {
  std::size_t last = sorted_, equal = 0;
  double most = rivals_[last].key.key;
  for (std::size_t i = last + 1; i < rival_count_; ++i) {
    const double key = rivals_[i].key.key;
    const std::size_t more = -static_cast<std::size_t>(key > most);
    equal = (equal & ~more) + (key == most ? 1 : 0);
    last = (last & ~more) | (i & more);
    most = std::max(most, key);
  }
  if (equal > 0 || !script_.one_class) {
    last = sorted_;
    for (std::size_t i = last + 1; i < rival_count_; ++i) {
      if (rivals_[last].key < rivals_[i].key) last = i;
    }
  }
  std::swap(rivals_[sorted_++], rivals_[last]);
}

/// The same where each job has one way to run. Wherever some GPUs are left nobody before that place
/// is touched: the last running jobs are enough, up to the next head that has room where it stands.
/// Whatever it calls is inlined: the calls of an event cost a twentieth of its time.
[[gnu::flatten]] void Player::fill_one_way() {
  const int first = first_head(script_.capacity, Unfit::is_passed_over);
  if (first < 0) return;
  find_rivals(heads_[first].key);
  int room = free_[0];
  int next = first_gaining(room);
  if (next < 0) return;
  suspended_.clear();
  moves_.clear();
  while (next >= 0 && script_.gangs[next] <= room) {
    take_head(next, room);
    next = first_gaining(room);
  }
  if (next >= 0) preempt_for(next, room);
  std::reverse(suspended_.begin(), suspended_.end());  // so that they go back in their order
  for (const int job : suspended_) suspend(job);
  for (const Move& move : moves_) start(move.job, move.way);
}

void Player::preempt_for(int shape, int room) {
  take_head(shape, room);
  const int next = first_gaining(room);
  std::size_t taken = 0;
  while (taken < rival_count_ &&
         (room < 0 || (next >= 0 && !(rival(taken).key < heads_[next].key)))) {
    room += rival(taken++).gpus;
  }
  int fitting = first_head({&room, 1}, Unfit::is_passed_over);
  while (room > 0 && (taken > 0 || fitting >= 0)) {
    if (taken == 0 || (fitting >= 0 && !(rival(taken - 1).key < heads_[fitting].key))) {
      take_head(fitting, room);
    } else {
      const Rival& last = rival(--taken);
      if (last.gpus > room) {
        suspended_.push_back(last.job);
        continue;  // as much room as before
      }
      room -= last.gpus;
    }
    fitting = first_head({&room, 1}, Unfit::is_passed_over);
  }
  while (taken > 0) suspended_.push_back(rival(--taken).job);
}

void Player::take_head(int shape, int& room) {
  room -= script_.gangs[shape];
  moves_.push_back({heads_[shape].job, 0});
  pop(shape);
}

/// The shape of the first waiting job that has room where it stands, -1 for none.
int Player::first_gaining(int room) {
  for (const int shape : line_up_) {
    const Script::Waiting& own = heads_[shape];
    if (own.job < 0) return -1;
    int behind = room;
    for (std::size_t nth = 0; behind < script_.gangs[shape] && nth < rival_count_; ++nth) {
      const Rival& last = rival(nth);
      if (last.key < own.key) break;
      behind += last.gpus;
    }
    if (behind >= script_.gangs[shape]) return shape;
  }
  return -1;
}

}  // namespace glidepath::detail
