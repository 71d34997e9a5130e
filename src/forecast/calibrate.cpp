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

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Scores of one run at each horizon: |truth - median| / half-width on that side, in z; the median
/// over prefixes. Negative where the run says nothing.
using Scores = std::array<double, kHorizons.size()>;
Scores scores_of(const Trace& run, const ForecastOptions& options) {
  Scores scores{};
  scores.fill(-1);
  const std::size_t n = run.step.size();
  if (n < kShortest) return scores;
  const std::vector<double> asked{0.5 - 0.5 * kCovered, 0.5 + 0.5 * kCovered};
  std::array<std::vector<double>, kHorizons.size()> found;
  for (const double cutoff : kCutoffs) {
    const auto k = std::max<std::size_t>(
        4, static_cast<std::size_t>(std::ceil(cutoff * static_cast<double>(n))));
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
    const detail::Predicted predicted =
        detail::predict_law(seen, steps, steps.size(), options, detail::Use::intervals);
    if (predicted.prepared.status != ForecastStatus::good) continue;
    const detail::Levels levels =
        detail::prepare_levels(asked, predicted.law.degrees, options.direction == Direction::max);
    std::vector<double> curve, raw;
    detail::law_quantiles(predicted.law, levels, curve, raw);
    const std::size_t knots = steps.size();
    const detail::Coordinate coordinate = detail::coordinate_of(predicted.law);
    for (std::size_t j = 0; j < knots; ++j) {
      const double middle = raw[levels.median * knots + j];
      const double z = coordinate.z(truth[j]);
      const std::size_t low = std::min(levels.row[0], levels.row[1]);
      const std::size_t high = std::max(levels.row[0], levels.row[1]);
      const double half =
          z < middle ? middle - raw[low * knots + j] : raw[high * knots + j] - middle;
      if (half > 0) found[horizon[j]].push_back(std::min(std::abs(z - middle) / half, 1e6));
    }
  }
  for (std::size_t h = 0; h < found.size(); ++h) {
    if (!found[h].empty()) scores[h] = median(found[h]);
  }
  return scores;
}

/// The same under the options of a user: no calibration yet, and no run helps to forecast itself.
Scores uncalibrated_scores(const Trace& run, const ForecastOptions& options) {
  ForecastOptions mine = options;
  mine.calibration = {};
  mine.direction = run.direction;
  mine.learning_rate = {};
  std::vector<Trace> others;
  for (const Trace& past : options.past) {
    if (past.step != run.step || past.loss != run.loss) others.push_back(past);
  }
  mine.past = others;
  return scores_of(run, mine);
}

}  // namespace

Calibration calibrate(std::span<const Trace> finished, const ForecastOptions& options,
                      const Execution& execution) {
  std::vector<Scores> scores(finished.size());
  detail::for_each_block(static_cast<std::ptrdiff_t>(finished.size()), 1, execution,
                         [&](std::ptrdiff_t begin, std::ptrdiff_t) {
                           const auto i = static_cast<std::size_t>(begin);
                           scores[i] = uncalibrated_scores(finished[i], options);
                         });
  Calibration calibration;
  for (std::size_t h = 0; h < kHorizons.size(); ++h) {
    std::vector<double> at_horizon;
    for (const auto& run : scores) {
      if (run[h] >= 0) at_horizon.push_back(run[h]);
    }
    const auto n = static_cast<double>(at_horizon.size());
    calibration.runs = std::max(calibration.runs, static_cast<int>(at_horizon.size()));
    double factor = 1;
    if (!at_horizon.empty()) {
      // The conformal quantile: the ceil((n + 1) 0.8)-th smallest score, as a factor of the width.
      std::sort(at_horizon.begin(), at_horizon.end());
      const auto rank = static_cast<std::size_t>(std::ceil((n + 1) * kCovered));
      const double quantile = at_horizon[std::min(rank, at_horizon.size()) - 1];
      factor = std::exp(n / (n + kDoubt) * std::log(std::clamp(quantile, kLeast, kMost)));
    }
    calibration.horizon.push_back(kHorizons[h]);
    calibration.factor.push_back(factor);
  }
  return calibration;
}

Calibration calibrate_online(Calibration before, const Trace& finished,
                             const ForecastOptions& options) {
  if (before.horizon.empty()) {
    before.horizon.assign(kHorizons.begin(), kHorizons.end());
    before.factor.assign(kHorizons.size(), 1.0);
  }
  if (!std::ranges::equal(before.horizon, kHorizons) || before.factor.size() != kHorizons.size()) {
    detail::refuse("calibrate_online: the calibration has other horizons than calibrate() gives");
  }
  const Scores scores = uncalibrated_scores(finished, options);
  bool says = false;
  for (std::size_t h = 0; h < kHorizons.size(); ++h) {
    if (scores[h] < 0) continue;
    says = true;
    const double missed = scores[h] > before.factor[h] ? 1.0 : 0.0;
    before.factor[h] =
        std::clamp(before.factor[h] * std::exp(kPace * (missed - (1 - kCovered))), kLeast, kMost);
  }
  before.runs += says ? 1 : 0;
  return before;
}

}  // namespace glidepath
