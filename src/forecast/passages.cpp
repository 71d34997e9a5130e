// SPDX-License-Identifier: Apache-2.0
#include "forecast/passages.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "forecast/gaps.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {
namespace {

constexpr double kMinStep = 1e-300;

/// The lowest level so far: the median of the newest values, as Level reads them. It is worked out
/// only where more than half of them lie below the lowest one, which is seldom.
class LowestLevel {
 public:
  [[nodiscard]] double level() const { return lowest_; }

  /// Whether there is a lower one now.
  bool add(double value) {
    values_.push_back(value);
    below_ = below_ << 1U | static_cast<std::uint64_t>(value < lowest_);
    const std::size_t window = level_window(ReachedBy::curve, values_.size());
    const std::uint64_t newest = below_ & ((std::uint64_t{1} << window) - 1);
    if (2 * static_cast<std::size_t>(std::popcount(newest)) <= window) return false;
    scratch_.assign(values_.end() - static_cast<std::ptrdiff_t>(window), values_.end());
    lowest_ = upper_median(scratch_);
    below_ = 0;
    for (std::size_t i = values_.size() - std::min(values_.size(), kBits); i < values_.size();
         ++i) {
      below_ = below_ << 1U | static_cast<std::uint64_t>(values_[i] < lowest_);
    }
    return true;
  }

 private:
  static constexpr std::size_t kBits = 64;
  std::vector<double> values_{}, scratch_{};
  double lowest_ = kInfinity;
  std::uint64_t below_ = 0;  // a bit for each of the newest, the newest in the lowest
};

std::size_t row_of(ReachedBy reached_by) { return reached_by == ReachedBy::point ? 0 : 1; }

/// The first of the marks at `level` or beyond.
template <class Marks>
auto mark_at(const Marks& marks, double level) {
  return std::ranges::partition_point(marks, [&](const auto& m) { return m.level > level; });
}

}  // namespace

double log_step(double step, double shift) { return std::log(std::max(step + shift, kMinStep)); }

Passages::Passages(const Trace& run) {
  const double sign = run.direction == Direction::max ? -1 : 1;
  const double shift = step_shift_of(run);
  auto& [by_value, by_level] = marks_;
  LowestLevel lowest;
  const auto ended = last_number(run.loss);
  failed_ = gaps_of(run.loss).failing();
  double best = kInfinity, before = 0;
  for (std::size_t i = 0; i < run.step.size(); ++i) {
    const double y = sign * run.loss[i];
    if (!std::isfinite(y)) continue;
    if (y < best) {
      best = y;
      by_value.push_back({y, i + 1});
      cells_.push_back({log_step(before, shift), log_step(run.step[i], shift)});
    }
    if (lowest.add(y)) by_level.push_back({lowest.level(), i + 1});
    if (i == ended && y < lowest.level()) by_level.push_back({y, i + 1});
    before = run.step[i];
  }
}

std::optional<std::size_t> Passages::points_until(double target, ReachedBy reached_by) const {
  const std::vector<Mark>& marks = marks_[row_of(reached_by)];
  const auto at = mark_at(marks, target);
  return at == marks.end() ? std::nullopt : std::optional(at->points);
}

double Passages::hardest(ReachedBy reached_by) const {
  const std::vector<Mark>& marks = marks_[row_of(reached_by)];
  return marks.empty() ? kInfinity : marks.back().level;
}

double Passages::passed(double level, std::size_t points) const {
  const std::vector<Mark>& marks = marks_[row_of(ReachedBy::point)];
  const auto at = mark_at(marks, level);
  if (at == marks.begin() || at == marks.end() || at->points > points) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double best = std::prev(at)->level, share = (best - level) / (best - at->level);
  const Cell& cell = cells_[static_cast<std::size_t>(at - marks.begin())];
  return cell.from + share * (cell.to - cell.from);
}

}  // namespace glidepath::detail
