// SPDX-License-Identifier: Apache-2.0
#include "forecast/past_runs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/interrupt.hpp"
#include "common/numbers.hpp"
#include "common/parallel.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "forecast/law.hpp"
#include "forecast/settings.hpp"

namespace glidepath {
namespace {

constexpr std::array kHorizons{0.1, 0.4, 1.0, 2.0};      // log(step / last observed step)
constexpr std::array kCutoffs{0.1, 0.2, 0.4, 0.6, 0.8};  // of the points of a run
constexpr double kLearnedCoverage = 0.8;                 // the interval whose width is learned
constexpr double kShrinkageRuns = 10;  // runs that the factor 1 counts for (shrinkage)
constexpr double kUpdateStep = 0.1;    // of the online updates, in log(factor)
constexpr double kLowestFactor = 0.1, kHighestFactor = 10;
constexpr std::size_t kMinTeachingPoints = 8;  // of a run that teaches widths
constexpr std::size_t kMaxTeachers = 50;       // newest runs; more take their time and teach little
constexpr double kMinScheduledRuns = 5;        // that judge whether schedules help

/// At each horizon |truth - median| / half-width on that side, in z; the median over prefixes.
/// Negative where there is none.
using Scores = std::array<double, kHorizons.size()>;

/// What forecasts from prefixes of a finished run were worth.
struct Trial {
  Scores score{};
  /// |truth - median| in z by prefix and horizon; negative where there is none.
  std::array<std::array<double, kHorizons.size()>, kCutoffs.size()> error{};

  Trial() {
    score.fill(-1);
    for (auto& row : error) row.fill(-1);
  }
};

/// Forecasts under options that have a schedule, or have none.
Trial try_on(const Trace& run, const ForecastOptions& options) {
  Trial trial;
  const std::size_t n = run.step.size();
  if (n < kMinTeachingPoints) return trial;
  const std::vector<double> asked{0.5 - 0.5 * kLearnedCoverage, 0.5 + 0.5 * kLearnedCoverage};
  std::array<std::vector<double>, kHorizons.size()> found;
  for (std::size_t c = 0; c < kCutoffs.size(); ++c) {
    const auto k = std::max<std::size_t>(
        4, static_cast<std::size_t>(std::ceil(kCutoffs[c] * static_cast<double>(n))));
    if (k + 1 >= n) continue;
    const TraceView seen{{run.step.data(), k}, {run.loss.data(), k}, {}};
    std::vector<double> steps, truth;
    std::vector<std::size_t> horizon;
    const double shift = detail::step_shift(run.step);
    for (std::size_t h = 0; h < kHorizons.size(); ++h) {
      const double at = (run.step[k - 1] + shift) * std::exp(kHorizons[h]) - shift;
      const auto next = std::lower_bound(run.step.begin() + k, run.step.end(), at);
      if (next == run.step.end()) break;
      const std::size_t i = next - run.step.begin();
      if (!std::isfinite(run.loss[i]) || (!steps.empty() && run.step[i] <= steps.back())) continue;
      steps.push_back(run.step[i]);
      truth.push_back(run.loss[i]);
      horizon.push_back(h);
    }
    if (steps.empty()) continue;
    detail::check_interrupt();
    const detail::Predicted predicted =
        detail::predict_law(seen, steps, steps.size(), options, detail::Use::intervals);
    const bool other = predicted.scheduled != (options.schedule != nullptr);
    if (predicted.prepared.status != ForecastStatus::good || other) continue;
    const detail::Levels levels =
        detail::prepare_levels(asked, predicted.law.mixture.degrees, options.direction);
    std::vector<double> curve, raw;
    predicted.law.quantiles(levels, curve, raw);
    const std::size_t knots = steps.size();
    const detail::Coordinate& coordinate = predicted.law.coordinate;
    for (std::size_t j = 0; j < knots; ++j) {
      const double middle = raw[levels.median * knots + j];
      const double z = coordinate.z(truth[j]);
      const std::size_t low = std::min(levels.row[0], levels.row[1]);
      const std::size_t high = std::max(levels.row[0], levels.row[1]);
      const double half =
          z < middle ? middle - raw[low * knots + j] : raw[high * knots + j] - middle;
      const double error = std::abs(z - middle);  // infinite where a loss falls to 0
      if (std::isfinite(error)) trial.error[c][horizon[j]] = error;
      if (half > 0) found[horizon[j]].push_back(std::min(error / half, 1e6));
    }
  }
  for (std::size_t h = 0; h < found.size(); ++h) {
    if (!found[h].empty()) trial.score[h] = detail::upper_median(found[h]);
  }
  return trial;
}

/// The trials of one run, without its schedule and with it.
struct Trials {
  Trial blind{}, scheduled{};
};

/// With the past runs as shapes, no widths yet, and without the help of the run itself.
Trials trials_of(const Trace& run, std::span<const Trace> past,
                 const std::shared_ptr<const ForecastConstants>& constants) {
  std::vector<Trace> others;
  for (const Trace& other : past) {
    if (other.step == run.step && other.loss == run.loss) continue;
    others.push_back(other);
    others.back().settings.clear();  // the trials begin with curves that show
  }
  const PastRuns shapes = PastRuns::unlearned(std::move(others));
  ForecastOptions options{.past = &shapes, .direction = run.direction, .constants = constants};
  Trials trials;
  trials.blind = try_on(run, options);
  if (const std::optional<Schedule> schedule = Schedule::logged(run)) {
    options.schedule = &*schedule;
    trials.scheduled = try_on(run, options);
  }
  return trials;
}

/// Whether forecasts that knew the schedule were not clearly worse: the difference of the errors of
/// a run is taken as a share of their sum, and its mean over runs must not exceed a standard error.
bool schedule_helps(std::span<const Trials> runs) {
  double sum = 0, square = 0, n = 0;
  for (const Trials& run : runs) {
    double blind = 0, scheduled = 0;
    for (std::size_t c = 0; c < kCutoffs.size(); ++c) {
      for (std::size_t h = 0; h < kHorizons.size(); ++h) {
        const double without = run.blind.error[c][h], with = run.scheduled.error[c][h];
        if (without < 0 || with < 0) continue;
        blind += without;
        scheduled += with;
      }
    }
    if (!(blind + scheduled > 0)) continue;
    const double worse = (scheduled - blind) / (scheduled + blind);
    sum += worse;
    square += worse * worse;
    n += 1;
  }
  if (n < kMinScheduledRuns) return true;
  const double mean = sum / n;
  return mean <= std::sqrt(std::max(square / n - mean * mean, 0.0) / (n - 1));
}

/// The conformal factor of each horizon; returns the largest number of runs behind one.
int learn(std::span<const Trials> runs, Trial Trials::*kind, std::vector<double>& factor) {
  std::size_t most = 0;
  for (std::size_t h = 0; h < kHorizons.size(); ++h) {
    std::vector<double> scores;
    for (const Trials& run : runs) {
      const double score = (run.*kind).score[h];
      if (score >= 0) scores.push_back(score);
    }
    const auto n = static_cast<double>(scores.size());
    most = std::max(most, scores.size());
    factor.push_back(1);
    if (scores.empty()) continue;
    // The ceil((n + 1) 0.8)-th smallest score, as a factor of the width.
    std::sort(scores.begin(), scores.end());
    const auto rank = static_cast<std::size_t>(std::ceil((n + 1) * kLearnedCoverage));
    const double quantile = scores[std::min(rank, scores.size()) - 1];
    factor.back() = std::exp(n / (n + kShrinkageRuns) *
                             std::log(std::clamp(quantile, kLowestFactor, kHighestFactor)));
  }
  return static_cast<int>(most);
}

/// Online: factors after one more run; returns whether it has a score.
bool learn_online(const Scores& scores, std::vector<double>& factor) {
  if (std::ranges::none_of(scores, [](double score) { return score >= 0; })) return false;
  if (factor.empty()) factor.assign(kHorizons.size(), 1.0);
  for (std::size_t h = 0; h < kHorizons.size(); ++h) {
    if (scores[h] < 0) continue;
    const double outside = scores[h] > factor[h] ? 1.0 : 0.0;
    factor[h] = std::clamp(factor[h] * std::exp(kUpdateStep * (outside - (1 - kLearnedCoverage))),
                           kLowestFactor, kHighestFactor);
  }
  return true;
}

void refuse_other_kinds(std::span<const Trace> runs) {
  for (const Trace& run : runs) {
    try {
      validate(run.view());
    } catch (const InputError& error) {
      detail::refuse("past: '", run.name, "': ", error.what());
    }
    if (run.direction != runs.front().direction) {
      detail::refuse("past: '", run.name, "' has direction '", name(run.direction),
                     "', the first run '", name(runs.front().direction), "'");
    }
  }
}

void refuse_broken(const Widths& widths) {
  const std::size_t horizons = widths.horizon.size();
  if (widths.factor.size() != horizons) {
    detail::refuse("past: ", horizons, " horizons, ", widths.factor.size(), " factors");
  }
  if (!widths.scheduled_factor.empty() && widths.scheduled_factor.size() != horizons) {
    detail::refuse("past: ", horizons, " horizons, ", widths.scheduled_factor.size(),
                   " scheduled factors");
  }
  for (std::size_t h = 0; h < horizons; ++h) {
    const double before = h > 0 ? widths.horizon[h - 1] : -detail::kInfinity;
    if (!(widths.horizon[h] > before) || !std::isfinite(widths.horizon[h])) {
      detail::refuse("past: horizon ", widths.horizon[h], " after ", before,
                     ": horizons must increase");
    }
  }
  for (const std::vector<double>* factors : {&widths.factor, &widths.scheduled_factor}) {
    for (const double factor : *factors) {
      if (!(factor > 0) || std::isinf(factor)) {
        detail::refuse("past: factor ", factor, " is not positive");
      }
    }
  }
  if (widths.runs < 0 || widths.scheduled_runs < 0) {
    detail::refuse("past: widths by ", std::min(widths.runs, widths.scheduled_runs), " runs");
  }
}

}  // namespace

Widths detail::learn_widths(std::span<const Trace> teachers, std::span<const Trace> shapes,
                            const std::shared_ptr<const ForecastConstants>& constants,
                            const Execution& execution) {
  std::vector<Trials> trials(teachers.size());
  for_each_block(std::ssize(teachers), 1, execution, [&](std::ptrdiff_t begin, std::ptrdiff_t) {
    const std::size_t i = begin;
    trials[i] = trials_of(teachers[i], shapes, constants);
  });
  Widths widths;
  widths.horizon.assign(kHorizons.begin(), kHorizons.end());
  widths.runs = learn(trials, &Trials::blind, widths.factor);
  widths.scheduled_runs = learn(trials, &Trials::scheduled, widths.scheduled_factor);
  if (widths.scheduled_runs == 0) widths.scheduled_factor.clear();
  widths.schedule_helps = schedule_helps(trials);
  return widths;
}

void detail::refuse_other_direction(const PastRuns* past, Direction live) {
  if (past == nullptr || past->runs().empty()) return;
  const Trace& run = past->runs().front();
  if (run.direction != live) {
    refuse("past: '", run.name, "' has direction '", glidepath::name(run.direction),
           "', the live run '", glidepath::name(live), "'");
  }
}

PastRuns::PastRuns(std::vector<Trace> traces, const Execution& execution,
                   const std::shared_ptr<const ForecastConstants>& constants)
    : runs_(std::move(traces)) {
  refuse_other_kinds(runs_);
  if (runs_.empty()) return;
  const std::span<const Trace> all = runs_;
  widths_ =
      detail::learn_widths(all.last(std::min(all.size(), kMaxTeachers)), all, constants, execution);
  relevance_ = detail::learn_relevance(all);
}

PastRuns PastRuns::unlearned(std::vector<Trace> traces) { return restored(std::move(traces), {}); }

PastRuns PastRuns::restored(std::vector<Trace> traces, Widths widths) {
  refuse_other_kinds(traces);
  refuse_broken(widths);
  PastRuns past;
  past.runs_ = std::move(traces);
  past.widths_ = std::move(widths);
  past.relevance_ = detail::learn_relevance(past.runs_);
  return past;
}

PastRuns PastRuns::update(Trace trace,
                          const std::shared_ptr<const ForecastConstants>& constants) const {
  Widths widths = widths_;
  if (widths.horizon.empty()) {
    widths.horizon.assign(kHorizons.begin(), kHorizons.end());
    widths.factor.assign(kHorizons.size(), 1.0);
  }
  if (!std::ranges::equal(widths.horizon, kHorizons)) {
    detail::refuse("past: the widths have other horizons than an update can learn");
  }
  std::vector<Trace> runs = runs_;
  runs.push_back(std::move(trace));
  refuse_other_kinds(runs);
  const Trials trials = trials_of(runs.back(), runs_, constants);
  widths.runs += learn_online(trials.blind.score, widths.factor) ? 1 : 0;
  widths.scheduled_runs += learn_online(trials.scheduled.score, widths.scheduled_factor) ? 1 : 0;
  return restored(std::move(runs), std::move(widths));
}

}  // namespace glidepath
