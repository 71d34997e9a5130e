// SPDX-License-Identifier: Apache-2.0
#include "forecast/noise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/statistics.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMinLags = 4;           // that fit into the later half
constexpr std::size_t kMinDifferences = 5;    // at a lag
constexpr std::size_t kMaxDifferences = 256;  // at a lag, for speed
constexpr double kErrorsOff = 1.5;            // relative errors of the noise at a lag taken off it

/// sd of the noise by second differences at a lag: their spread about their median, which is what a
/// bend adds, less some of its relative errors. 0 where there are too few of them.
double noise_at(std::span<const double> z, std::size_t lag) {
  const std::size_t count = z.size() - 2 * lag;
  if (count < kMinDifferences) return 0;
  const std::size_t stride = 1 + (count - 1) / kMaxDifferences;
  std::vector<double> differences;
  differences.reserve(1 + count / stride);
  for (std::size_t i = lag; i + lag < z.size(); i += stride) {
    differences.push_back(z[i + lag] - 2 * z[i] + z[i - lag]);
  }
  const double bend = median(differences);
  for (double& d : differences) d = std::abs(d - bend);
  const double spread = median(differences) / (kMadPerDeviation * std::sqrt(6.0));
  const double independent = static_cast<double>(count) / static_cast<double>(lag);
  return spread * std::max(0.0, 1 - kErrorsOff / std::sqrt(independent));
}

/// Differences of successive values in the later half, in deviations of one point; none where there
/// are too few.
std::vector<double> differences_of(std::span<const double> z, std::span<const double> count) {
  const std::size_t half = z.size() / 2;
  std::vector<double> differences;
  if (z.size() - half <= 3) return differences;
  differences.reserve(z.size() - half);
  for (std::size_t i = half + 1; i < z.size(); ++i) {
    const double merged = 2 * count[i] * count[i - 1] / std::max(count[i] + count[i - 1], 1e-300);
    differences.push_back((z[i] - z[i - 1]) * std::sqrt(merged));
  }
  return differences;
}

/// sd of the noise of one point, from the median size of differences of two.
double noise_of(std::vector<double> differences, double slope) {
  if (differences.empty()) return 0;
  for (double& d : differences) d = std::abs(d - slope);
  return median(differences) / (kMadPerDeviation * std::sqrt(2.0));
}

}  // namespace

double successive_noise(std::span<const double> z, std::span<const double> count) {
  return noise_of(differences_of(z, count), 0);
}

double noise_about_slope(std::span<const double> z, std::span<const double> count) {
  std::vector<double> differences = differences_of(z, count);
  const double slope = differences.empty() ? 0.0 : median(differences);
  return noise_of(std::move(differences), slope);
}

double lasting_noise(std::span<const double> z, double white) {
  const std::span<const double> later = z.subspan(z.size() / 2);
  double noise = white;
  for (std::size_t lag = 2; kMinLags * lag <= later.size(); lag *= 2) {
    noise = std::max(noise, noise_at(later, lag));
  }
  return noise;
}

}  // namespace glidepath::detail
