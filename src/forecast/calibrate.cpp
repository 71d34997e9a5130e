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
constexpr std::size_t kShortest = 8;                     // points of a run that teaches

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Scores of one run at each horizon: |truth - median| / half-width on that side, in z; the median
/// over prefixes. Negative where the run says nothing.
std::array<double, kHorizons.size()> scores_of(const Trace& run, const ForecastOptions& options) {
  std::array<double, kHorizons.size()> scores{};
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
    const detail::Predicted predicted = detail::predict_law(seen, steps, steps.size(), options);
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

}  // namespace

Calibration calibrate(std::span<const Trace> finished, const ForecastOptions& options,
                      const Execution& execution) {
  std::vector<std::array<double, kHorizons.size()>> scores(finished.size());
  detail::for_each_block(static_cast<std::ptrdiff_t>(finished.size()), 1, execution,
                         [&](std::ptrdiff_t begin, std::ptrdiff_t) {
                           const auto i = static_cast<std::size_t>(begin);
                           ForecastOptions mine = options;
                           mine.calibration = {};
                           mine.direction = finished[i].direction;
                           mine.learning_rate = {};
                           std::vector<Trace> others;
                           if (!options.past.empty()) {  // no run helps to forecast itself
                             for (const Trace& past : options.past) {
                               if (past.step != finished[i].step || past.loss != finished[i].loss) {
                                 others.push_back(past);
                               }
                             }
                             mine.past = others;
                           }
                           scores[i] = scores_of(finished[i], mine);
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
      factor = std::exp(n / (n + kDoubt) * std::log(std::clamp(quantile, 0.1, 10.0)));
    }
    calibration.horizon.push_back(kHorizons[h]);
    calibration.factor.push_back(factor);
  }
  return calibration;
}

}  // namespace glidepath
