// SPDX-License-Identifier: Apache-2.0
#include "forecast/backtest.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "forecast/predict.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {
namespace {

constexpr double kSeen = 0.7;           // share of the steps that the backtest sees
constexpr std::size_t kFewestSeen = 4;  // points seen
constexpr std::size_t kPoints = 8;      // points forecast
constexpr int kBins = 16;
constexpr double kHalfOfT3 = 1.6377;  // quantiles 0.9 of Student's t_3 and t_8
constexpr double kHalfOfT8 = 1.3968;
constexpr double kPerfect = 0.05;    // added to the mean error, in half-widths of 80 %
constexpr double kNarrowest = -2.5;  // log of the factor

}  // namespace

double backtest_width(const Prepared& p, const Annealing& plan, const ForecastConstants& c) {
  const std::size_t points = p.step.size();
  const auto seen = static_cast<std::size_t>(
      std::upper_bound(p.step.begin(), p.step.end(), kSeen * p.step.back()) - p.step.begin());
  if (!plan.known() || !(c.backtest > 0) || seen < kFewestSeen || points - seen < 2) return 1;
  Prepared before = first_points(p, seen);
  if (!(before.range > 0) || !plan.moves(before.step)) return 1;

  const std::size_t asked = std::min(points - seen, kPoints);
  std::vector<double> step, z;
  for (std::size_t i = 0; i < asked; ++i) {
    const std::size_t at = seen + i * (points - 1 - seen) / (asked - 1);
    step.push_back(p.step[at]);
    z.push_back(p.z[at]);
  }
  const double noise = before.noise * (kHalfOfT8 / kHalfOfT3);
  ForecastConstants coarse = c;  // for speed
  coarse.bins = kBins;
  coarse.gains.clear();
  for (std::size_t i = 0; i < c.gains.size(); i += 2) coarse.gains.push_back(c.gains[i]);
  Mixture mixture = predict(before, step, plan, {}, coarse);
  for (double& s : mixture.scale) s = std::sqrt(s * s + noise * noise);
  double error = 0;  // mean, in half-widths of the 80 % interval
  for (std::size_t j = 0; j < asked; ++j) {
    const std::size_t k = mixture.components;
    const MixtureView law{mixture.weight,
                          {mixture.location.data() + j * k, k},
                          {mixture.scale.data() + j * k, k},
                          c.degrees};
    const double level = std::clamp(mixture_cdf(law, z[j]), 1e-6, 1 - 1e-6);
    error += std::abs(student_quantile(3, level)) / kHalfOfT3 / static_cast<double>(asked);
  }
  const double surprise = std::log(error + kPerfect) - c.backtest_level;
  return std::exp(std::clamp(c.backtest * surprise, kNarrowest, 0.0));
}

}  // namespace glidepath::detail
