// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"
#include "glidepath/trace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace glidepath {

/// What is to be expected of a live run. `never` spends the error rate alpha as the run spends its
/// budget, because a run is looked at many times and stopped at the first `never`: how often that
/// is wrong is measured in docs/live.md.
enum class Verdict : std::uint8_t {
  unknown,     ///< whether the run will reach the target is still open
  reached,     ///< the run has reached the target: ReachedBy
  will_reach,  ///< P(reached within the budget) >= 1 - alpha
  never,       ///< P(reached within the budget) <= alpha s^3, s the share of the budget seen; not
          ///< before a tenth of it, nor before half of it while the run has not made three tenths
          ///< of the way from its start to the target, nor while it still improves: the gain of
          ///< its later half, times max(r, r^2), r = (1 - s) / s, must be below a fifth of its
          ///< gap to the target
  diverged  ///< ended in NaN or infinity (at least two losses, and a longer streak than any that it
            ///< recovered from), or climbed above its start by as much as it ever fell: with target
            ///< and budget only after half of the budget, because the run may recover
};
inline constexpr std::array kVerdicts{Verdict::unknown, Verdict::reached, Verdict::will_reach,
                                      Verdict::never, Verdict::diverged};
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;  ///< "will_reach" and so on

struct Decision {
  Verdict verdict = Verdict::unknown;
  double probability = 0;  ///< of reaching the target within the budget; NaN without a target
  /// Steps still needed, quantiles of kShownLevels; infinity where the target is not reached.
  std::array<double, kShownLevels.size()> steps_to_target{};
  std::string reason{};
};

/// The step to which a run without a budget may go on: ten times the steps seen, which
/// are counted from 0, or from the first step where that is below, and at most 1e300.
[[nodiscard]] double open_budget(double first_step, double last_step) noexcept;

/// Without a target a watch looks only for divergence: all options but `direction` are refused.
struct WatchOptions {
  std::optional<double> target{};
  std::optional<double> budget{};  ///< absolute step; empty = open_budget() of the steps seen
  Direction direction = Direction::min;
  std::shared_ptr<const PastRuns> past{};  ///< of the same direction; not part of the state
  double alpha = 0.02;
  ReachedBy reached_by = ReachedBy::curve;
  std::optional<Schedule> schedule{};  ///< of the whole run
};

/// All that a Watch remembers: a few kilobytes whatever the length of the run. Old points are
/// merged, the newest are kept as they came.
struct WatchState {
  std::vector<double> step{}, loss{}, weight{};  ///< weight = points merged into one
  std::vector<double> lr{};                      ///< learning rates, NaN = as planned
  std::vector<double> newest{};                  ///< last losses as they came, NaN included
  double last_step = -std::numeric_limits<double>::infinity();
  double first_loss = std::numeric_limits<double>::quiet_NaN();  ///< median of the first three
  double best_loss = std::numeric_limits<double>::quiet_NaN();
  double reached_step = std::numeric_limits<double>::quiet_NaN();
  /// A bit for each of the newest finite losses, the newest in the lowest: it is at the target.
  std::uint64_t at_target = 0;
  std::int64_t points = 0, nonfinite = 0, trailing_nonfinite = 0, restarts = 0;
  std::int64_t longest_gap = 0;  ///< most losses in a row, not finite, that a finite one followed
};

/// One live run. `add` costs a microsecond, `decision` a forecast; the decision is computed from
/// the state each time, never latched: more points may take it back, unless the target was reached.
class Watch {
 public:
  /// Throws InputError on a NaN target, a budget that is not above 0 or beyond 1e300, an alpha out
  /// of (0, 0.5), a broken schedule, past runs of the other direction, or an option that a target
  /// needs without one.
  explicit Watch(WatchOptions options = {});

  /// Appends one observation. A step at or before the last one is a restart from a checkpoint: what
  /// was seen from there on is forgotten. `lr` is the learning rate that was used, NaN = as
  /// planned. It replaces the rate of the schedule at that step, however far the two are apart: a
  /// run that is watched is not refused for its past. Throws InputError on a step that is none of
  /// a trace, and on a rate that is negative, infinite or given without a schedule, where it could
  /// have no effect.
  void add(double step, double loss, double lr = std::numeric_limits<double>::quiet_NaN());
  [[nodiscard]] Decision decision() const;

  [[nodiscard]] const WatchState& state() const noexcept { return state_; }
  /// Throws InputError on a state that no watch can have: more weight than points, counts below 0
  /// or a loss of infinity among those that are finite.
  void restore(WatchState state);
  [[nodiscard]] const WatchOptions& options() const noexcept { return options_; }

 private:
  WatchOptions options_;
  WatchState state_;
};

inline constexpr std::size_t kPatience = 5;  ///< looks in a row at which a run must be lost
inline constexpr int kLooks = 100;           ///< at a run over its budget

/// What a log says of its run.
struct Ruling {
  Decision decision{};
  bool stop = false;  ///< reached, or lost (never or diverged) at kPatience looks in a row
};

/// Adds all points of a run to a watch, and judges it: one rule for all that read logs. The looks
/// are at the newest point and before it at the newest that lies a hundredth of the budget apart,
/// or at each point where there is no budget or the run ends in NaN or infinity, as above but in
/// one loss at least. Costs one forecast, and up to kPatience where the run is lost. Throws
/// InputError as Watch::add does, on any of the points before the first is added.
[[nodiscard]] Ruling judge(Watch& watch, std::span<const double> step,
                           std::span<const double> loss);

}  // namespace glidepath
#pragma GCC visibility pop
