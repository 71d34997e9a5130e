// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/parallel.hpp"
#include "common/require.hpp"
#include "forecast/law.hpp"

namespace glidepath {
namespace {

constexpr std::array kHorizons{0.1, 0.4, 1.0, 2.0};      // log(step / last observed step)
constexpr std::array kCutoffs{0.1, 0.2, 0.4, 0.6, 0.8};  // of the points of a run
constexpr double kCovered = 0.8;                         // the interval whose width is learned
constexpr double kDoubt = 10;                            // runs that no change of width counts for
constexpr double kPace = 0.1;                            // of the online updates, in log(factor)
constexpr double kLeast = 0.1, kMost = 10;               // factor
constexpr std::size_t kShortest = 8;                     // points of a run that teaches
constexpr double kFewestJudges = 5;                      // runs that judge a schedule

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// At each horizon |truth - median| / half-width on that side, in z; the median over prefixes.
/// Negative where the run says nothing.
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

/// Of forecasts that are told the learning rate of the run (`scheduled`), or are not.
Trial try_on(const Trace& run, const ForecastOptions& options, bool scheduled) {
  Trial trial;
  const std::size_t n = run.step.size();
  if (n < kShortest) return trial;
  const std::vector<double> asked{0.5 - 0.5 * kCovered, 0.5 + 0.5 * kCovered};
  std::array<std::vector<double>, kHorizons.size()> found;
  ForecastOptions known = options;
  for (std::size_t c = 0; c < kCutoffs.size(); ++c) {
    const auto k = std::max<std::size_t>(
        4, static_cast<std::size_t>(std::ceil(kCutoffs[c] * static_cast<double>(n))));
    if (k + 1 >= n) continue;
    const TraceView seen{{run.step.data(), k}, {run.loss.data(), k}, {}};
    std::vector<double> steps, truth;
    std::vector<std::size_t> horizon;
    const double shift = run.step[0] > 0 ? 0.0 : run.step[1] - 2 * run.step[0];
    for (std::size_t h = 0; h < kHorizons.size(); ++h) {
      const double at = (run.step[k - 1] + shift) * std::exp(kHorizons[h]) - shift;
      const auto next =
          std::lower_bound(run.step.begin() + static_cast<std::ptrdiff_t>(k), run.step.end(), at);
      if (next == run.step.end()) break;
      const auto i = static_cast<std::size_t>(next - run.step.begin());
      if (!std::isfinite(run.loss[i]) || (!steps.empty() && run.step[i] <= steps.back())) continue;
      steps.push_back(run.step[i]);
      truth.push_back(run.loss[i]);
      horizon.push_back(h);
    }
    if (steps.empty()) continue;
    if (scheduled) {
      const std::span<const double> lr(run.lr), step(run.step);
      known.learning_rate = {lr.first(k), lr.subspan(k), step.subspan(k)};
    }
    const detail::Predicted predicted =
        detail::predict_law(seen, steps, steps.size(), known, detail::Use::intervals);
    if (predicted.prepared.status != ForecastStatus::good || predicted.scheduled != scheduled) {
      continue;
    }
    const detail::Levels levels = detail::prepare_levels(asked, predicted.law.mixture.degrees,
                                                         options.direction == Direction::max);
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
    if (!found[h].empty()) trial.score[h] = median(found[h]);
  }
  return trial;
}

/// Of one run, without its learning rate and with it.
struct Trials {
  Trial blind{}, scheduled{};
};

/// Both under the options of a user: no calibration yet, and no run helps to forecast itself.
Trials uncalibrated_trials(const Trace& run, const ForecastOptions& options) {
  ForecastOptions mine = options;
  mine.calibration = {};
  mine.direction = run.direction;
  mine.learning_rate = {};
  std::vector<Trace> others;
  for (const Trace& past : options.past) {
    if (past.step != run.step || past.loss != run.loss) others.push_back(past);
  }
  mine.past = others;
  Trials trials;
  trials.blind = try_on(run, mine, false);
  if (!run.lr.empty()) {
    if (run.lr.size() != run.step.size()) {
      detail::refuse("calibrate: ", run.name, ": ", run.lr.size(), " learning rates for ",
                     run.step.size(), " points");
    }
    trials.scheduled = try_on(run, mine, true);
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
  if (n < kFewestJudges) return true;
  const double mean = sum / n;
  return mean <= std::sqrt(std::max(square / n - mean * mean, 0.0) / (n - 1));
}

/// The conformal factor of each horizon; returns how many runs there are at most behind one.
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
    const auto rank = static_cast<std::size_t>(std::ceil((n + 1) * kCovered));
    const double quantile = scores[std::min(rank, scores.size()) - 1];
    factor.back() = std::exp(n / (n + kDoubt) * std::log(std::clamp(quantile, kLeast, kMost)));
  }
  return static_cast<int>(most);
}

/// Online: factors after one more run; returns whether it says anything.
bool learn_online(const Scores& scores, std::vector<double>& factor) {
  const bool says = std::ranges::any_of(scores, [](double score) { return score >= 0; });
  if (!says) return false;
  if (factor.empty()) factor.assign(kHorizons.size(), 1.0);
  for (std::size_t h = 0; h < kHorizons.size(); ++h) {
    if (scores[h] < 0) continue;
    const double missed = scores[h] > factor[h] ? 1.0 : 0.0;
    factor[h] = std::clamp(factor[h] * std::exp(kPace * (missed - (1 - kCovered))), kLeast, kMost);
  }
  return true;
}

}  // namespace

Calibration calibrate(std::span<const Trace> finished, const ForecastOptions& options,
                      const Execution& execution) {
  std::vector<Trials> trials(finished.size());
  detail::for_each_block(static_cast<std::ptrdiff_t>(finished.size()), 1, execution,
                         [&](std::ptrdiff_t begin, std::ptrdiff_t) {
                           const auto i = static_cast<std::size_t>(begin);
                           trials[i] = uncalibrated_trials(finished[i], options);
                         });
  Calibration calibration;
  calibration.horizon.assign(kHorizons.begin(), kHorizons.end());
  calibration.runs = learn(trials, &Trials::blind, calibration.factor);
  calibration.scheduled_runs = learn(trials, &Trials::scheduled, calibration.scheduled_factor);
  if (calibration.scheduled_runs == 0) calibration.scheduled_factor.clear();
  calibration.schedule_helps = schedule_helps(trials);
  return calibration;
}

Calibration calibrate_online(Calibration before, const Trace& finished,
                             const ForecastOptions& options) {
  if (before.horizon.empty()) {
    before.horizon.assign(kHorizons.begin(), kHorizons.end());
    before.factor.assign(kHorizons.size(), 1.0);
  }
  const auto other = [](const std::vector<double>& factor) {
    return factor.size() != kHorizons.size();
  };
  if (!std::ranges::equal(before.horizon, kHorizons) || other(before.factor) ||
      (!before.scheduled_factor.empty() && other(before.scheduled_factor))) {
    detail::refuse("calibrate_online: the calibration has other horizons than calibrate() gives");
  }
  const Trials trials = uncalibrated_trials(finished, options);
  before.runs += learn_online(trials.blind.score, before.factor) ? 1 : 0;
  before.scheduled_runs += learn_online(trials.scheduled.score, before.scheduled_factor) ? 1 : 0;
  return before;
}

}  // namespace glidepath
