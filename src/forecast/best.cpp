// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/beginning.hpp"
#include "forecast/constants.hpp"
#include "forecast/gaps.hpp"
#include "forecast/level.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/prepare.hpp"
#include "forecast/reach.hpp"
#include "trace/counted.hpp"

namespace glidepath {
namespace {

constexpr double kMaxAhead = 2.5;    // in log steps: no run of those learned from went further
constexpr double kMinChance = 1e-3;  // by the law of the curve, before it is corrected
constexpr double kBetter = 1e-12;    // of the best value: what is no rounding of it

/// The levels of a run, medians of its newest `window` finite values each, read for the best.
struct LevelsSeen {
  std::size_t count = 0, best = 0;  ///< levels, and which is the best
  double best_step = 0, best_value = 0;
};

/// `window` is odd and at most the number of finite values, which is not 0.
LevelsSeen levels_of(TraceView trace, std::size_t window, Direction direction) {
  LevelsSeen found;
  std::vector<double> newest, sorted;  // in the order in which they came, and of size
  for (std::size_t i = 0; i < trace.step.size(); ++i) {
    const double value = trace.loss[i];
    if (!std::isfinite(value)) continue;
    if (newest.size() >= window) {
      const double oldest = newest[newest.size() - window];
      sorted.erase(std::ranges::lower_bound(sorted, oldest));
    }
    newest.push_back(value);
    sorted.insert(std::ranges::upper_bound(sorted, value), value);
    if (sorted.size() < window) continue;
    const double level = sorted[window / 2];
    const bool better =
        direction == Direction::max ? level > found.best_value : level < found.best_value;
    if (found.count == 0 || better) {
      found.best = found.count;
      found.best_value = level;
      found.best_step = trace.step[i];
    }
    ++found.count;
  }
  return found;
}

std::size_t finite_values(TraceView trace) {
  return static_cast<std::size_t>(
      std::ranges::count_if(trace.loss, [](double loss) { return std::isfinite(loss); }));
}

/// What corrects the law of the curve: its own answer, and the signs of a run that turns up.
std::array<double, ForecastConstants::kBestSigns> signs_of(const LevelsSeen& levels,
                                                           std::size_t window, double never,
                                                           double last_step, double budget,
                                                           double step_shift) {
  const double p = std::clamp(never, kMinChance, 1 - kMinChance);
  const auto since = static_cast<double>(levels.count - 1 - levels.best);
  return {std::log(p / (1 - p)), std::log1p(since / static_cast<double>(window)),
          since / static_cast<double>(levels.count),
          std::min(std::log(budget + step_shift) - std::log(last_step + step_shift), kMaxAhead),
          std::log(static_cast<double>(levels.count))};
}

/// The value that no later level may come to. Past runs are taken to begin where a run of few
/// values stands, so that all would be there at once.
double target_of(double best, std::size_t values, const ForecastOptions& options) {
  if (options.past == nullptr || values >= std::size_t{detail::kMinModelled}) return best;
  const double better = kBetter * std::abs(best);
  return options.direction == Direction::max ? best + better : best - better;
}

/// Whether the metric allows a better value.
bool improvable(const detail::Coordinate& c, double best) {
  return c.sign < 0 ? best < c.ceiling : best > c.floor;
}

}  // namespace

BestSoFar best_so_far(TraceView given, double budget, const ForecastOptions& asked) {
  const ForecastOptions options = detail::read_by(given.metric, asked);
  validate(given);
  const detail::Counted counted(given);
  const TraceView trace = counted.view();
  detail::refuse_bad_reach("best_so_far", budget, options);
  BestSoFar found{.budget = budget};
  const ForecastConstants& constants = detail::constants_of(options);
  const detail::Prepared run =
      detail::prepare(trace, options.direction, constants, detail::metric_range_of(options.past));
  found.status = run.status;
  const std::size_t values = finite_values(trace);
  if (values == 0) return found;
  const std::size_t window = level_window(detail::reading(options), values);
  const LevelsSeen levels = levels_of(trace, window, options.direction);
  found.step = levels.best_step;
  found.value = levels.best_value;
  found.prob_past = 1;
  const double last = trace.step.back();
  if (!(budget > last) || detail::gaps_of(trace.loss).diverged() ||
      !improvable(run.coordinate, levels.best_value)) {
    return found;
  }
  const double target = target_of(levels.best_value, values, options);
  const double never = detail::reach_by_curve(trace, target, budget, options).reach.prob_never;
  const auto signs = signs_of(levels, window, never, last, budget, run.step_shift);
  double logit = constants.best.constant;
  for (std::size_t i = 0; i < signs.size(); ++i) logit += constants.best.slope[i] * signs[i];
  found.prob_past = 1 / (1 + std::exp(-logit));
  return found;
}

}  // namespace glidepath
