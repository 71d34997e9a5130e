// SPDX-License-Identifier: Apache-2.0
#include "forecast/widths.hpp"

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

namespace glidepath::detail {
namespace {

constexpr std::array kHorizons{0.1, 0.4, 1.0, 2.0};      // log(step / last observed step)
constexpr std::array kCutoffs{0.1, 0.2, 0.4, 0.6, 0.8};  // of the points of a run
// Levels at which the CRPS of a forecast is judged, and which of them are the interval whose width
// is learned.
constexpr std::array kJudgedLevels{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
constexpr std::array<std::size_t, 2> kInterval{1, 9};
constexpr double kLearnedCoverage = kJudgedLevels[kInterval[1]] - kJudgedLevels[kInterval[0]];
static_assert(kLearnedCoverage == 0.8);
constexpr double kMaxScore = 1e6;      // of an error in half-widths
constexpr int kPowers = 10;            // steps from a conformal factor to 1
constexpr double kMaxMoreCrps = 0.01;  // of the past runs, two standard errors included
constexpr double kStandardErrors = 2;
constexpr double kShrinkageRuns = 10;  // runs that the factor 1 counts for (shrinkage)
constexpr double kUpdateStep = 0.1;    // of the online updates, in log(factor)
constexpr double kLowestFactor = 0.1, kHighestFactor = 10;
constexpr std::size_t kMinTeachingPoints = 8;  // of a run that teaches widths
constexpr double kMinScheduledRuns = 5;        // that judge whether schedules help

/// At each horizon |truth - median| / half-width on that side, in z; the median over prefixes.
/// Negative where there is none.
using Scores = std::array<double, kHorizons.size()>;

/// A forecast of one value that was logged later, in z but for the truth.
struct Outcome {
  std::size_t horizon = 0;
  double truth = 0, range = 1;  // of the metric: what came, and the range of the run
  double middle = 0, lowest = 0, highest = 0;
  Coordinate coordinate{};
  std::array<double, kJudgedLevels.size()> half{}, noise{};  // at the judged levels, of the curve

  /// |truth - median|; infinite where a loss falls to 0.
  [[nodiscard]] double error() const { return std::abs(coordinate.z(truth) - middle); }

  /// The same in half-widths of the 80 % interval on that side; negative where it has none.
  [[nodiscard]] double score() const {
    const bool below = coordinate.z(truth) < middle;
    for (const std::size_t i : kInterval) {
      const double end = raw_quantile(middle, half[i], noise[i]);
      if (end != middle && (end < middle) == below) {
        return std::min(error() / std::abs(end - middle), kMaxScore);
      }
    }
    return -1;
  }

  /// Mean quantile loss in ranges, at most 1, with half-widths times `factor`.
  [[nodiscard]] double crps(double factor) const {
    double sum = 0;
    for (std::size_t i = 0; i < kJudgedLevels.size(); ++i) {
      const double end = std::clamp(middle + factor * half[i], lowest, highest);
      const double z = raw_quantile(middle, end - middle, factor * noise[i]);
      const double above = truth - coordinate.metric(z);
      sum += 2 * above * (above >= 0 ? kJudgedLevels[i] : kJudgedLevels[i] - 1);
    }
    return std::min(sum / (range * static_cast<double>(kJudgedLevels.size())), 1.0);
  }
};

/// What forecasts from prefixes of a finished run were worth.
struct Trial {
  Scores score{};
  std::array<std::vector<Outcome>, kCutoffs.size()> outcome{};  // by prefix

  Trial() { score.fill(-1); }
};

/// Points to forecast from the first `seen`: index of each, and of its horizon.
std::vector<std::pair<std::size_t, std::size_t>> points_ahead(const Trace& run, std::size_t seen) {
  std::vector<std::pair<std::size_t, std::size_t>> points;
  const double shift = step_shift_of(run);
  for (std::size_t h = 0; h < kHorizons.size(); ++h) {
    const double at = (run.step[seen - 1] + shift) * std::exp(kHorizons[h]) - shift;
    const auto next = std::lower_bound(run.step.begin() + seen, run.step.end(), at);
    if (next == run.step.end()) break;
    const std::size_t i = next - run.step.begin();
    if (!std::isfinite(run.loss[i]) || (!points.empty() && i <= points.back().first)) continue;
    points.emplace_back(i, h);
  }
  return points;
}

/// Forecasts of what the run logged after its first `seen` points; none where there is no law, or
/// one without the schedule that it was given. `range` is that of the run.
std::vector<Outcome> outcomes_of(const Trace& run, std::size_t seen, double range,
                                 const ForecastOptions& options) {
  const auto points = points_ahead(run, seen);
  if (points.empty()) return {};
  std::vector<double> steps;
  for (const auto& [i, horizon] : points) steps.push_back(run.step[i]);
  check_interrupt();
  const TraceView known{
      {run.step.data(), seen}, {run.loss.data(), seen}, {}, {}, nullptr, run.metric};
  const Predicted predicted = predict_law(known, steps, steps.size(), options, Use::intervals);
  const bool other = predicted.scheduled != (options.schedule != nullptr);
  if (predicted.prepared.status != ForecastStatus::good || other) return {};
  const Law& law = predicted.law;
  const Levels levels = prepare_levels(kJudgedLevels, law.mixture.degrees, options.direction);
  std::vector<double> curve, raw;
  law.quantiles(levels, curve, raw);
  std::vector<Outcome> outcomes;
  for (std::size_t j = 0; j < points.size(); ++j) {
    const auto [i, horizon] = points[j];
    Outcome& outcome = outcomes.emplace_back(Outcome{horizon, run.loss[i], range});
    outcome.middle = raw[levels.median * points.size() + j];
    outcome.lowest = law.lowest;
    outcome.highest = law.highest;
    outcome.coordinate = law.coordinate;
    for (std::size_t l = 0; l < kJudgedLevels.size(); ++l) {
      outcome.half[l] = curve[levels.row[l] * points.size() + j] - outcome.middle;
      outcome.noise[l] = law.noise * levels.noise[levels.row[l]];
    }
  }
  return outcomes;
}

/// Forecasts under options that have a schedule, or have none.
Trial try_on(const Trace& run, const ForecastOptions& options) {
  Trial trial;
  const std::size_t n = run.step.size();
  MetricRange losses;
  losses.include(run.loss);
  const double range = losses.highest - losses.lowest;
  if (n < kMinTeachingPoints || !(range > 0)) return trial;
  std::array<std::vector<double>, kHorizons.size()> found;
  for (std::size_t c = 0; c < kCutoffs.size(); ++c) {
    const auto seen = std::max<std::size_t>(
        4, static_cast<std::size_t>(std::ceil(kCutoffs[c] * static_cast<double>(n))));
    if (seen + 1 >= n) continue;
    trial.outcome[c] = outcomes_of(run, seen, range, options);
    for (const Outcome& outcome : trial.outcome[c]) {
      const double score = outcome.score();
      if (score >= 0) found[outcome.horizon].push_back(score);
    }
  }
  for (std::size_t h = 0; h < found.size(); ++h) {
    if (!found[h].empty()) trial.score[h] = upper_median(found[h]);
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

/// The mean over runs, one number each, and its standard error.
class Mean {
 public:
  void add(double x) {
    sum_ += x;
    square_ += x * x;
    n_ += 1;
  }
  [[nodiscard]] double runs() const { return n_; }
  [[nodiscard]] double value() const { return sum_ / n_; }
  [[nodiscard]] double error() const {
    return std::sqrt(std::max(square_ / n_ - value() * value(), 0.0) / (n_ - 1));
  }

 private:
  double sum_ = 0, square_ = 0, n_ = 0;
};

/// Whether forecasts that knew the schedule were not clearly worse: the difference of the errors of
/// a run is taken as a share of their sum, and its mean over runs must not exceed a standard error.
bool schedule_helps(std::span<const Trials> runs) {
  Mean worse;
  for (const Trials& run : runs) {
    double blind = 0, scheduled = 0;
    for (std::size_t c = 0; c < kCutoffs.size(); ++c) {
      for (const Outcome& without : run.blind.outcome[c]) {
        for (const Outcome& with : run.scheduled.outcome[c]) {
          if (with.horizon != without.horizon) continue;
          if (!std::isfinite(without.error()) || !std::isfinite(with.error())) continue;
          blind += without.error();
          scheduled += with.error();
        }
      }
    }
    if (blind + scheduled > 0) worse.add((scheduled - blind) / (scheduled + blind));
  }
  return worse.runs() < kMinScheduledRuns || worse.value() <= worse.error();
}

/// By how much the CRPS of the runs at a horizon may rise with the half-widths times `factor`, as a
/// share of their mean CRPS: two standard errors above what they show.
double more_crps(std::span<const Trials> runs, Trial Trials::*kind, std::size_t horizon,
                 double factor) {
  Mean before, rise;
  for (const Trials& run : runs) {
    double crps = 0, more = 0, count = 0;
    for (const std::vector<Outcome>& prefix : (run.*kind).outcome) {
      for (const Outcome& outcome : prefix) {
        if (outcome.horizon != horizon) continue;
        crps += outcome.crps(1);
        more += outcome.crps(factor) - outcome.crps(1);
        count += 1;
      }
    }
    if (count == 0) continue;
    before.add(crps / count);
    rise.add(more / count);
  }
  if (rise.runs() < 2 || !(before.value() > 0)) return kInfinity;
  return (rise.value() + kStandardErrors * rise.error()) / before.value();
}

/// The conformal factor of each horizon, or what of it harms no CRPS; returns the largest number of
/// runs behind one.
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
    std::ranges::sort(scores);
    const auto rank = static_cast<std::size_t>(std::ceil((n + 1) * kLearnedCoverage));
    const double quantile = scores[std::min(rank, scores.size()) - 1];
    const double conformal =
        n / (n + kShrinkageRuns) * std::log(std::clamp(quantile, kLowestFactor, kHighestFactor));
    for (int power = kPowers; power > 0 && factor.back() == 1; --power) {
      const double tried = std::exp(conformal * power / kPowers);
      if (more_crps(runs, kind, h, tried) <= kMaxMoreCrps) factor.back() = tried;
    }
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

}  // namespace

Widths learn_widths(std::span<const Trace> teachers, std::span<const Trace> shapes,
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

Widths learn_one_more(Widths widths, const Trace& run, std::span<const Trace> shapes,
                      const std::shared_ptr<const ForecastConstants>& constants) {
  if (widths.horizon.empty()) {
    widths.horizon.assign(kHorizons.begin(), kHorizons.end());
    widths.factor.assign(kHorizons.size(), 1.0);
  }
  if (!std::ranges::equal(widths.horizon, kHorizons)) {
    refuse("past: the widths have other horizons than an update can learn");
  }
  const Trials trials = trials_of(run, shapes, constants);
  widths.runs += learn_online(trials.blind.score, widths.factor) ? 1 : 0;
  widths.scheduled_runs += learn_online(trials.scheduled.score, widths.scheduled_factor) ? 1 : 0;
  return widths;
}

}  // namespace glidepath::detail
