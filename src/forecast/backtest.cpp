// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "forecast/math.hpp"
#include "forecast/predict.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {
namespace {

constexpr double kSeenShare = 0.7;     // of the steps, that the backtest sees
constexpr std::size_t kMinSeen = 4;    // points
constexpr std::size_t kMaxPoints = 8;  // that are forecast
constexpr int kBins = 16;
constexpr double kPriorError = 0.05;   // added to the mean error, in half-widths of 80 %
constexpr double kMinLogWidth = -2.5;  // of the factor

/// Half of the 80 % interval of Student's t, to the four decimals with which `backtest_level` was
/// learned.
double half_interval(double degrees) {
  return std::round(1e4 * student_quantile(degrees, 0.9)) / 1e4;
}

}  // namespace

double backtest_width(const Prepared& p, const Annealing& plan, const ForecastConstants& c) {
  const std::size_t points = p.step.size();
  const std::size_t seen =
      std::upper_bound(p.step.begin(), p.step.end(), kSeenShare * p.step.back()) - p.step.begin();
  if (!plan.known() || seen < kMinSeen || points - seen < 2) return 1;
  const Prepared before = first_points(p, seen);
  if (!(before.range > 0) || !plan.moves(before.step)) return 1;

  const std::size_t tried = std::min(points - seen, kMaxPoints);
  std::vector<double> step, z;
  for (std::size_t i = 0; i < tried; ++i) {
    const std::size_t at = seen + i * (points - 1 - seen) / (tried - 1);
    step.push_back(p.step[at]);
    z.push_back(p.z[at]);
  }
  ForecastConstants coarse = c;  // for speed
  coarse.bins = kBins;
  coarse.gains.clear();
  for (std::size_t i = 0; i < c.gains.size(); i += 2) coarse.gains.push_back(c.gains[i]);
  Mixture mixture = predict(Observed(before, plan), step, {}, coarse);
  static const double noise_half = half_interval(kNoiseDegrees);
  const double curve_half = half_interval(c.degrees);
  const double noise = before.noise * (noise_half / curve_half);
  for (double& s : mixture.scale) s = std::sqrt(s * s + noise * noise);
  double error = 0;  // mean, in half-widths of the 80 % interval
  for (std::size_t j = 0; j < tried; ++j) {
    const double level = std::clamp(mixture_cdf(mixture.at(j), z[j]), 1e-6, 1 - 1e-6);
    error += std::abs(student_quantile(c.degrees, level)) / curve_half / static_cast<double>(tried);
  }
  const double surprise = std::log(error + kPriorError) - c.backtest_level;
  return std::exp(std::clamp(c.backtest * surprise, kMinLogWidth, 0.0));
}

}  // namespace glidepath::detail
