// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "forecast/math.hpp"
#include "forecast/predict.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {
namespace {

constexpr double kSeenShare = 0.7;           // of the steps, that the backtest of a schedule sees
constexpr double kRounding = 1 + 1e-9;       // a step at that share is in it, whatever its unit
constexpr std::size_t kMinSeen = 4;          // points
constexpr std::size_t kMaxScoredPoints = 8;  // that are forecast
constexpr int kBins = 16, kComponents = 16;
constexpr double kPriorError = 0.05;   // added to the mean error, in half-widths of 80 %
constexpr double kMinLogWidth = -2.5;  // of the factor
// With r the ratio of the CRPS with the schedule to that without it, in ranges, kPriorCrps added to
// each, the forecast without it has the odds kBlindOdds (r^kScorePower - kScoreThreshold), 0 at
// least.
constexpr double kPriorCrps = 0.003, kBlindOdds = 2, kScorePower = 4, kScoreThreshold = 0.8;
// Without a schedule: shares of the steps that are seen; one shape in so many is tried; the largest
// error of a point; the mean of the log errors at which intervals stay as they are, and the limits
// of the log of their factor.
constexpr std::array kSeenShares{0.5, 0.7};
constexpr std::size_t kShapeStride = 3;
constexpr double kMaxError = 4, kKeptLogError = -0.65, kMinLogFactor = -0.5, kMaxLogFactor = 0.25;
constexpr std::array kCrpsGrid{0.0, 0.006, 0.018, 0.04, 0.08, 0.15, 0.28, 0.55, 1.2};

/// Half of the 80 % interval of Student's t, to the four decimals with which `backtest_level` was
/// learned.
double half_interval(double degrees) {
  return std::round(1e4 * student_quantile(degrees, 0.9)) / 1e4;
}

/// The same of the noise.
double half_of_noise() {
  static const double half = half_interval(kNoiseDegrees);
  return half;
}

/// Points up to a share of the steps.
std::size_t points_up_to(const Prepared& p, double share) {
  const auto end = std::ranges::upper_bound(p.step, share * p.step.back() * kRounding);
  return static_cast<std::size_t>(end - p.step.begin());
}

/// The points since the seen ones that are forecast.
struct Since {
  std::vector<double> step, z;
};

Since points_since(const Prepared& p, std::size_t seen) {
  const std::size_t points = p.step.size(), tried = std::min(points - seen, kMaxScoredPoints);
  Since since;
  for (std::size_t i = 0; i < tried; ++i) {
    const std::size_t at = seen + i * (points - 1 - seen) / (tried - 1);
    since.step.push_back(p.step[at]);
    since.z.push_back(p.z[at]);
  }
  return since;
}

/// Fewer bins and gains, for speed.
ForecastConstants coarse_of(const ForecastConstants& c) {
  ForecastConstants coarse = c;
  coarse.bins = kBins;
  coarse.components = kComponents;
  coarse.gains.clear();
  for (std::size_t i = 0; i < c.gains.size(); i += 2) coarse.gains.push_back(c.gains[i]);
  return coarse;
}

/// The law of raw points since, by what was known before.
Mixture forecast_since(const Prepared& before, const Annealing& plan, const Since& since,
                       const ForecastConstants& coarse) {
  Mixture mixture = predict(Observed(before, plan), since.step, {}, coarse);
  const double noise = before.noise * (half_of_noise() / half_interval(coarse.degrees));
  for (double& s : mixture.scale) s = std::sqrt(s * s + noise * noise);
  return mixture;
}

/// Mean error in half-widths of the 80 % interval.
double mean_surprise(const Mixture& mixture, const Since& since, double degrees) {
  const double half = half_interval(degrees);
  double error = 0;
  for (std::size_t j = 0; j < since.z.size(); ++j) {
    const double level = std::clamp(mixture_cdf(mixture.at(j), since.z[j]), 1e-6, 1 - 1e-6);
    error += std::abs(student_quantile(degrees, level)) / half;
  }
  return error / static_cast<double>(since.z.size());
}

/// Mean CRPS over the points, the integral of (F(u) - [u >= z])^2, in units of `range`; beyond the
/// last distance of the grid nothing counts.
double mean_crps(const Mixture& mixture, const Since& since, double range) {
  double sum = 0;
  for (std::size_t j = 0; j < since.z.size(); ++j) {
    const MixtureView law = mixture.at(j);
    for (const double side : {-1.0, 1.0}) {
      double before = 0, error_before = 0;
      for (const double distance : kCrpsGrid) {
        const double below = mixture_cdf(law, since.z[j] + side * distance * range);
        const double miss = side < 0 ? below : 1 - below;
        if (distance > 0) sum += 0.5 * (miss * miss + error_before) * (distance - before);
        before = distance;
        error_before = miss * miss;
      }
    }
  }
  return sum / static_cast<double>(since.z.size());
}

/// One shape in kShapeStride, and what stays as it is, for speed.
ForecastConstants with_few_shapes(ForecastConstants c) {
  std::size_t i = 0;
  std::erase_if(c.shapes, [&](const ForecastConstants::Shape& shape) {
    return i++ % kShapeStride != 0 && shape.family != ForecastConstants::ShapeKind::constant;
  });
  return c;
}

/// Mean distance of the points since from the mean of their law without a schedule, in half-widths
/// of the 80 % interval, each at most kMaxError.
double mean_error(const Prepared& before, const Since& since, const ForecastConstants& coarse) {
  const Mixture mixture = predict(Observed(before, {}), since.step, {}, coarse);
  const double unit = half_interval(mixture.degrees), noise = before.noise * half_of_noise();
  double error = 0;
  for (std::size_t j = 0; j < since.z.size(); ++j) {
    const MixtureView law = mixture.at(j);
    const double mean = mixture_mean(law);
    const double half = std::hypot(unit * mean_distance(law, mean), noise);
    error += std::min(std::abs(since.z[j] - mean) / half, kMaxError);
  }
  return error / static_cast<double>(since.z.size());
}

}  // namespace

Backtest backtest(const Prepared& p, const Annealing& plan, const ForecastConstants& c) {
  const std::size_t points = p.step.size(), seen = points_up_to(p, kSeenShare);
  if (!plan.known() || seen < kMinSeen || points - seen < 2) return {};
  const Prepared before = first_points(p, seen);
  if (!(before.range > 0) || !plan.moves(before.step)) return {};

  const Since since = points_since(p, seen);
  const ForecastConstants coarse = coarse_of(c);
  const Mixture known = forecast_since(before, plan, since, coarse);
  const double surprise =
      std::log(mean_surprise(known, since, c.degrees) + kPriorError) - c.backtest_level;
  const double width = std::exp(std::clamp(c.backtest * surprise, kMinLogWidth, 0.0));
  if (shows_too_little(p)) return {width, 1};

  const Mixture blind = forecast_since(before, {}, since, coarse);
  const double worse = (mean_crps(known, since, p.range) + kPriorCrps) /
                       (mean_crps(blind, since, p.range) + kPriorCrps);
  const double odds = kBlindOdds * std::max(0.0, std::pow(worse, kScorePower) - kScoreThreshold);
  return {width, 1 / (1 + odds)};
}

double width_by_backtest(const Prepared& p, const ForecastConstants& c) {
  if (c.backtest_width == 0) return 1;
  const ForecastConstants coarse = with_few_shapes(coarse_of(c));
  double log_error = 0;
  int tests = 0;
  for (const double share : kSeenShares) {
    const std::size_t seen = points_up_to(p, share);
    if (seen < kMinSeen || p.step.size() - seen < 2) continue;
    const Prepared before = first_points(p, seen);
    if (!(before.range > 0)) continue;
    log_error += std::log(mean_error(before, points_since(p, seen), coarse) + kPriorError);
    ++tests;
  }
  if (tests == 0) return 1;
  const double surprise = log_error / tests - kKeptLogError;
  return std::exp(std::clamp(c.backtest_width * surprise, kMinLogFactor, kMaxLogFactor));
}

}  // namespace glidepath::detail
