// SPDX-License-Identifier: Apache-2.0
#include "simulate/play.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/interrupt.hpp"
#include "common/rng.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {

namespace {

constexpr double kSharedDeviation = 0.3;       ///< of the log odds that all jobs share
constexpr double kCommonProbability = 0.9;     ///< that alike jobs are as far off their forecasts
constexpr std::size_t kContinuousValues = 20;  ///< of a law that is taken to be continuous
constexpr double kPaceDeviation = 1;           ///< of the log of the pace at which jobs come
constexpr double kLongLoad = 0.8;              ///< at most, once the recent past has come again
constexpr std::uint64_t kMaxArrivals = 20;     ///< for each job that is here or recent
constexpr int kBlocks = 8;                     ///< stretches of the recent arrivals

}  // namespace

Player::Player(const Script& script)
    : script_(script),
      queues_(script.shapes.size()),
      heads_(queues_.size(), kNobody),
      line_up_(queues_.size()),
      rank_(queues_.size()) {
  std::iota(line_up_.begin(), line_up_.end(), 0);
  std::iota(rank_.begin(), rank_.end(), 0);
}

void Player::play(std::uint64_t sample, double until_s, std::span<double> starts) {
  starts_ = starts;
  reset(sample);
  // What runs now has just been decided: without an event nobody gives way.
  if (script_.rule.reserves) {
    backfill();
  } else if (script_.divides) {
    divide(Seated::stay);
  } else {
    start_in_order();
  }
  while (awaited_ > 0) {
    check_interrupt();
    double next = std::min(ends_.least(), arrival_at_);
    if (wake_ < next) {
      await_demotions();
      next = std::min(next, wake_);
    }
    if (!(next <= until_s) || next == kInfinity) return;
    if (arrivals_ > kMaxArrivals * script_.parts.size()) return;
    now_ = next;
    due_.clear();
    while (ends_.least() <= now_) {
      const std::size_t slot = ends_.first();
      due_.push_back(running_[slot].job);
      ends_.set(slot, kInfinity);
    }
    if (due_.size() > 1) std::sort(due_.begin(), due_.end());
    for (const int job : due_) leave(job);
    while (arrival_at_ <= now_) arrive();
    schedule();
  }
}

void Tournament::grow(std::size_t slot) {
  std::vector<double> leaves(tree_.begin() + static_cast<std::ptrdiff_t>(leaves_), tree_.end());
  while (leaves_ <= slot) leaves_ *= 2;
  leaves.resize(leaves_, kInfinity);
  tree_.assign(leaves_, kInfinity);
  tree_.insert(tree_.end(), leaves.begin(), leaves.end());
  for (std::size_t node = leaves_ - 1; node > 0; --node) {
    tree_[node] = std::min(tree_[2 * node], tree_[2 * node + 1]);
  }
}

void Player::reset(std::uint64_t sample) {
  const Script::Luck luck = script_.luck(sample);
  sample_ = sample;
  odds_ = std::exp(-kSharedDeviation * luck.odds);
  // In the long run no more comes than can be served, and nobody knows how much of it soon. The
  // mean of the pace, not its median, is that of late.
  const double mean = kPaceDeviation * kPaceDeviation / 2;
  stretch_ = std::max(1.0, script_.load) * std::exp(kPaceDeviation * luck.pace + mean);
  long_stretch_ = std::max(stretch_, script_.load / kLongLoad);
  draws_ = arrivals_ = 0;
  now_ = clock_ = block_end_ = front_ = back_ = running_back_ = 0;
  passes_ = wake_ = lapses_ = kInfinity;
  actors_.assign(script_.live, {});
  running_.clear();
  ceilings_.clear();
  ends_.clear();
  line_.clear();
  market_.prices = script_.prices;
  free_ = script_.capacity;
  awaited_ = 0;
  draw_uniforms();
  std::fill(starts_.begin(), starts_.end(), kInfinity);
  for (std::size_t s = 0; s < queues_.size(); ++s) {
    queues_[s].next = 0;
    queues_[s].soon.clear();
    queues_[s].later.clear();
    find_head(static_cast<int>(s));
    if (script_.in_line()) {
      line_.insert(line_.end(), script_.waiting[s].begin(), script_.waiting[s].end());
    }
  }
  std::sort(line_.begin(), line_.end());
  for (int job = 0; job < script_.live; ++job) {
    Actor& actor = actors_[job];
    actor.part = job;
    const Part& own = part(actor);
    actor.left = drawn(own, uniforms_[job]);
    actor.attained = own.attained_gpu_s;
    actor.level = static_cast<std::uint8_t>(las_level(own.attained_gpu_s));
    actor.place = own.place;
    actor.restarts = own.running < 0 && own.has_run;
    front_ = std::min(front_, own.place);
    if (own.running < 0 && !own.ways.empty()) ++awaited_;
  }
  for (const int job : script_.running) {
    actors_[job].started = true;
    start(job, script_.parts[job].running);
    if (script_.parts[job].pending_s > 0) go_on_starting(job);
    starts_[job] = 0;
  }
  arrival_at_ = kInfinity;
  // Where the first that does not fit blocks, who comes later changes nothing.
  if (script_.rule.unfit == Unfit::is_passed_over && !script_.submitted.empty()) draw_arrival();
}

/// Jobs that are submitted one after the other and whose laws are nearly the same are alike: most
/// of them are as far off their forecasts as the first of them.
void Player::draw_uniforms() {
  const Rng alike{script_.seed ^ 0x616c696b65ULL}, common{script_.seed ^ 0x636f6d6d6f6eULL};
  uniforms_.resize(script_.live);
  in_common_.resize(script_.live);
  for (const int job : script_.in_order) {
    const Part& own = script_.parts[job];
    const bool keeps = own.alike >= 0 && alike.uniform(own.id, sample_) < own.kept;
    in_common_[job] = keeps ? in_common_[own.alike] : starts_[job];
    const bool shares = common.uniform(own.id, sample_) < kCommonProbability;
    uniforms_[job] = shares ? in_common_[job] : starts_[job];
  }
}

/// A value of the law of a job. Forecasts are wrong together: in each sample the odds of a longer
/// duration are those of the laws times one factor for all jobs.
double Player::drawn(const Part& own, double u) const {
  const double together = u / (u + (1 - u) * odds_);
  const std::vector<double>& left = own.left;
  const std::size_t last = left.size() - 1;
  const auto n = static_cast<double>(left.size());
  const bool may_use_up_budget = own.reach < left.size();
  if (left.size() < kContinuousValues || may_use_up_budget) {
    return left[std::min(last, static_cast<std::size_t>(together * n))];
  }
  // Of many jobs the first to end takes less than the least of these values, the last one more than
  // the largest.
  const double at = together * n - 0.5;
  if (at < static_cast<double>(last)) {
    const auto below = static_cast<std::size_t>(std::max(0.0, at));
    const double between = left[below + 1] - left[below];
    return std::max(0.0, left[below] + (at - static_cast<double>(below)) * between);
  }
  // An exponential tail by the last two values, above which 1.5 and 0.5 of the n lie.
  const double scale = (left[last] - left[last - 1]) / std::log(3.0);
  constexpr double kLeastAbove = 1e-15;  // where the probability rounds to 1
  return std::min(own.most,
                  left[last] + scale * std::log(0.5 / (n * std::max(kLeastAbove, 1 - together))));
}

/// Arrivals as they came, in stretches of the recent past that begin at random moments of it and
/// go round its end: the stationary bootstrap (Politis and Romano 1994) with stretches of one
/// length.
void Player::draw_arrival() {
  const Rng rng{script_.seed ^ 0x617272697665ULL};
  const std::vector<double>& submitted = script_.submitted;
  const double block_s = script_.window_s / kBlocks;
  for (;;) {
    if (clock_ >= block_end_) {
      clock_ = block_end_;
      block_end_ += block_s;
      position_ = rng.uniform(sample_, draws_++) * script_.window_s;
      cursor_ = std::lower_bound(submitted.begin(), submitted.end(), position_) - submitted.begin();
    }
    const bool round = cursor_ == submitted.size();
    const double gap = (round ? script_.window_s : submitted[cursor_]) - position_;
    if (clock_ + gap >= block_end_) {
      clock_ = block_end_;
      continue;
    }
    clock_ += gap;
    position_ = round ? 0 : submitted[cursor_];
    if (round) {
      cursor_ = 0;
      continue;
    }
    const double soon = std::min(clock_, script_.window_s);
    arrival_at_ = soon * stretch_ + (clock_ - soon) * long_stretch_;
    return;
  }
}

void Player::arrive() {
  const Rng rng{script_.seed ^ 0x6a6f6273ULL};
  const int which = script_.live + static_cast<int>(cursor_++);
  const Part& own = script_.parts[which];
  const double left = drawn(own, rng.uniform(sample_, arrivals_++));
  if (own.ways.empty()) return draw_arrival();  // nothing is kept for who never starts
  const int job = static_cast<int>(actors_.size());
  Actor& actor = actors_.emplace_back();
  actor.part = which;
  actor.left = left;
  actor.place = now_;
  actor.started = true;  // nobody asks when
  queue(job);
  draw_arrival();
}

}  // namespace glidepath::detail
