// SPDX-License-Identifier: Apache-2.0
#include "forecast/gates.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace glidepath::detail {
namespace {

constexpr double kMaxFeature = 2;
constexpr double kMaxGainFactor = 3;
constexpr double kFallFade = 0.5;   // power of the steps by which the fall of an octave fades
constexpr double kMinShare = 1e-4;  // added to shares of the range before their logarithm is taken

double bounded(double feature) { return std::clamp(feature, -kMaxFeature, kMaxFeature); }

/// Centre and scale of a feature over the traces that the constants were learned from.
struct FeatureScale {
  double centre = 0, unit = 1;
  [[nodiscard]] double operator()(double value) const { return bounded((value - centre) / unit); }
};
constexpr FeatureScale kLogPoints{3.5, 1.5}, kLogNoise{-4.5, 2}, kLogLate{-2.5, 1.5},
    kLogFirst{-3.5, 1.5}, kTrend{0, 0.25};
constexpr double kAbovePerRange = 6, kAboveOffset = 0.5;

/// How far z falls in a decade, by a regression on log10 x.
double fall_per_decade(const Points& bins) {
  double weight = 0, mean_x = 0, mean_z = 0, xx = 0, xz = 0;
  for (std::size_t i = 0; i < bins.x.size(); ++i) {
    weight += bins.count[i];
    mean_x += bins.count[i] * std::log10(bins.x[i]);
    mean_z += bins.count[i] * bins.z[i];
  }
  mean_x /= weight;
  mean_z /= weight;
  for (std::size_t i = 0; i < bins.x.size(); ++i) {
    const double from_mean = std::log10(bins.x[i]) - mean_x;
    xx += bins.count[i] * from_mean * from_mean;
    xz += bins.count[i] * from_mean * (bins.z[i] - mean_z);
  }
  return xx > 0 ? -xz / xx : 0.0;
}

double dot(const ForecastConstants::Row& row, const Features& features) {
  double sum = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) sum += row[i] * features[i];
  return sum;
}

double affine(const ForecastConstants::Affine& number, const Features& features) {
  return number.constant + dot(number.slope, features);
}

}  // namespace

Variation variation_of(const Points& bins) {
  const std::size_t n = bins.x.size();
  const double half = 0.5 * bins.x[n - 1];
  double weight = 0, mean = 0, late_weight = 0, late_mean = 0;
  for (std::size_t i = 0; i < n; ++i) {
    weight += bins.count[i];
    mean += bins.count[i] * bins.z[i];
    if (bins.x[i] > half) {
      late_weight += bins.count[i];
      late_mean += bins.count[i] * bins.z[i];
    }
  }
  mean /= weight;
  late_mean /= late_weight;
  double variance = 0, late_variance = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double d = bins.z[i] - mean, d_late = bins.z[i] - late_mean;
    variance += bins.count[i] * d * d / weight;
    if (bins.x[i] > half) late_variance += bins.count[i] * d_late * d_late / late_weight;
  }
  return {std::max(variance, 1e-16), std::sqrt(late_variance)};
}

Features features_of(const Prepared& run, const Points& bins, double late) {
  const double range = std::max(run.range, 1e-300);
  std::size_t half = 0;
  while (half + 1 < bins.x.size() && bins.x[half] <= 0.5 * bins.x.back()) ++half;
  const double best = *std::ranges::min_element(bins.z);
  const double above = (bins.z.back() - best) / range;
  return {kLogPoints(std::log(static_cast<double>(run.step.size()))),
          kLogNoise(std::log(run.noise / range + kMinShare)),
          kLogLate(std::log(late / range + kMinShare)),
          kLogFirst(std::log(bins.x[0])),
          kTrend((bins.z.back() - bins.z[half]) / range),
          bounded(kAbovePerRange * above - kAboveOffset)};
}

Gated gated(const ForecastConstants& c, const Features& features) {
  const ForecastConstants::Gate& gate = c.gate;
  Gated g;
  g.temper = c.temper * std::exp(dot(gate.temper, features));
  g.rising = c.rising_penalty + dot(gate.rising, features);
  g.inflation = c.inflation * std::exp(dot(gate.inflation, features));
  g.drop = c.drop * std::exp(dot(gate.drop, features));
  g.distance = c.distance * std::exp(dot(gate.distance, features));
  g.width = c.width * std::exp(dot(gate.width, features));
  g.lean = affine(c.ahead.lean, features);
  g.lean_far = affine(c.ahead.lean_far, features);
  g.widen = affine(c.ahead.widen, features);
  for (std::size_t i = 0; i < gate.family.size(); ++i) {
    g.family_prior[i] = dot(gate.family[i], features);
  }
  for (std::size_t i = 0; i < c.structures.size(); ++i) {
    g.structure_prior.push_back(c.structures[i].log_prior + dot(gate.structure[i], features));
  }
  return g;
}

double gain_unit(const Prepared& run, const Points& bins, double planned_share,
                 const ForecastConstants& c) {
  const std::size_t half =
      std::ranges::upper_bound(bins.step, 0.5 * bins.step.back()) - bins.step.begin();
  const double at_the_end = (bins.z[half] - bins.z.back()) * std::pow(planned_share, kFallFade);
  const double fall = at_the_end / c.gain_fall;
  // A log that begins late does not show what the run had learnt before, but how it goes on.
  const double learnt = std::max(run.range, fall_per_decade(bins)) / c.gain_range;
  return std::min(1.0, learnt) * std::clamp(fall, 1.0, kMaxGainFactor);
}

}  // namespace glidepath::detail
