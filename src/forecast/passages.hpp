// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace glidepath::detail {

/// The clock of a run: the logarithm of its step, shifted by step_shift().
[[nodiscard]] double log_step(double step, double shift);

/// When a run that ended came where: read once, so that none of its points is read again for a live
/// run or another target. Levels are values in the orientation in which less is better.
class Passages {
 public:
  explicit Passages(const Trace& run);

  /// Points of the run until it was at `target`: as `reached_by` has it or, since that is why it
  /// ended, with its last value. None where it ended before.
  [[nodiscard]] std::optional<std::size_t> points_until(double target, ReachedBy reached_by) const;
  /// The hardest target that it was at; infinite where it logged no number.
  [[nodiscard]] double hardest(ReachedBy reached_by) const;
  /// Whether it ended in values that are no numbers, more than ever before in a row.
  [[nodiscard]] bool failed() const { return failed_; }
  /// Log step at which its best value passed `level`; NaN where it never did, not within its first
  /// `points`, or began beyond.
  [[nodiscard]] double passed(double level, std::size_t points) const;

 private:
  /// A point at which it was further than ever.
  struct Mark {
    double level;
    std::size_t points;  ///< until then
  };
  /// The cell of the log in which a mark lies, in log steps.
  struct Cell {
    double from, to;
  };

  // By one value and by the level of the newest: see ReachedBy.
  std::array<std::vector<Mark>, 2> marks_{};
  std::vector<Cell> cells_{};  // of the marks by one value
  bool failed_ = false;
};

/// The passages of each run, found by the first call.
[[nodiscard]] std::span<const Passages> passages_of(const PastRuns& past);

}  // namespace glidepath::detail
