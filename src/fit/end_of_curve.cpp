// SPDX-License-Identifier: Apache-2.0
#include "fit/end_of_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "common/numbers.hpp"
#include "common/statistics.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kTenth = 10;
constexpr std::size_t kMinPointsAtEnd = 5;
constexpr double kMissedShare = 0.02;      ///< of the descent
constexpr double kMissedLateShare = 0.1;   ///< of the descent since the first tenth
constexpr double kMissedErrors = 3.0;      ///< standard errors
constexpr double kErrorOfMedian = 1.2533;  ///< per standard error of a mean: sqrt(π / 2)

double weight_of(std::span<const double> weight, std::size_t i) {
  return weight.empty() ? 1.0 : weight[i];
}

/// 0 where no value counts.
double mean(std::span<const double> values, std::span<const double> weight) {
  if (weight.empty()) return sum_of(values) / static_cast<double>(values.size());
  double weighted = 0;
  for (std::size_t i = 0; i < values.size(); ++i) weighted += weight[i] * values[i];
  const double all = sum_of(weight);
  return all > 0 ? weighted / all : 0.0;
}

/// Root of the sum of squared differences of neighbours.
double jumps_of(std::span<const double> values) {
  std::array<double, 4> sums{};
  const auto square = [&](std::size_t i) {
    const double difference = values[i + 1] - values[i];
    return difference * difference;
  };
  std::size_t i = 0;
  for (; i + 5 <= values.size(); i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += square(i + k);
  }
  for (; i + 2 <= values.size(); ++i) sums[0] += square(i);
  return std::sqrt((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// How the residuals at the end scatter, and the standard error of their middle.
struct Noise {
  double deviation, error;
};

/// The noise of the mean from `end` on. `residual` is filled from `half`.
Noise noise_of_mean(std::span<const double> residual, std::span<const double> weights,
                    std::size_t half, std::size_t end) {
  double squares = 0, weight = 0;
  int pairs = 0;
  for (std::size_t i = half + 1; i < residual.size(); ++i) {
    const double a = weight_of(weights, i - 1), b = weight_of(weights, i);
    if (!(a > 0 && b > 0)) continue;
    const double difference = residual[i] - residual[i - 1];
    squares += difference * difference * a * b / (a + b);
    ++pairs;
  }
  for (std::size_t i = end; i < residual.size(); ++i) weight += weight_of(weights, i);
  if (pairs == 0 || !(weight > 0)) return {kInfinity, kInfinity};
  return {std::sqrt(squares / pairs), std::sqrt(squares / pairs / weight)};
}

Noise noise_of_median(std::span<const double> residual, std::size_t half, std::size_t end) {
  std::vector<double> jumps;
  for (std::size_t i = half + 1; i < residual.size(); ++i) {
    jumps.push_back(std::abs(residual[i] - residual[i - 1]));
  }
  const double noise = kDeviationPerMad * median(jumps) / std::sqrt(2.0);
  return {noise, kErrorOfMedian * noise / std::sqrt(static_cast<double>(residual.size() - end))};
}

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  return median(sorted);
}

}  // namespace

EndOfCurve::EndOfCurve(Family family, std::span<const double> step)
    : step_(step), count_(std::max(kMinPointsAtEnd, step.size() / kTenth)) {
  if (step.size() < count_) count_ = 0;
  if (count_ == 0) return;
  half_ = std::min(step.size() / 2, step.size() - std::min(step.size(), 2 * count_));
  at_ = {step.front(), step[step.size() - count_], step.back(), step[half_]};
  if (family != Family::pow3) return;
  std::ranges::transform(at_, log_.begin(), [](double t) { return std::log(t); });
}

double EndOfCurve::value(const Curve& curve, std::size_t which) const {
  if (curve.family != Family::pow3) return evaluate(curve, at_[which]);
  const auto& [floor, scale, rate, none] = curve.parameters;
  return floor + scale * std::exp(-rate * log_[which]);
}

bool EndOfCurve::misses(const Curve& curve, std::span<const double> loss,
                        std::span<const double> weight, Middle middle) const {
  if (count_ == 0) return false;
  const std::size_t n = step_.size(), end = n - count_;
  const bool by_mean = middle == Middle::mean;
  const auto middle_of = [&](std::span<const double> values, std::size_t from, std::size_t to) {
    const auto part = values.subspan(from, to - from);
    if (!by_mean) return median_of(part);
    return mean(part, weight.empty() ? weight : weight.subspan(from, to - from));
  };
  const double last = value(curve, 2), observed = middle_of(loss, end, n);
  const double share = kMissedShare * std::abs(value(curve, 0) - last);
  // A descent that is over within a tenth of the points would hide any miss: the rest has its own.
  const std::size_t tenth = n / kTenth;
  const double early = middle_of(loss, tenth, std::max(2 * tenth, tenth + 1));
  const double late_share = kMissedLateShare * std::abs(early - observed);
  // The curve does not turn: over the end its mean lies between its first and last value there.
  if (by_mean) {
    const double before = value(curve, 1);
    const double largest = std::max(std::abs(observed - before), std::abs(observed - last));
    if (largest <= std::min(share, late_share)) return false;
    // The noise is at least that of the losses less all that the curve falls meanwhile.
    if (weight.empty()) {
      const double jumps = jumps_of(loss.subspan(half_)) - std::abs(value(curve, 3) - last);
      const auto pairs = 2.0 * static_cast<double>(n - half_ - 1);
      const double error = jumps / std::sqrt(pairs * static_cast<double>(count_));
      if (largest <= kMissedErrors * error) return false;
    }
  }
  thread_local std::vector<double> residual;
  residual.resize(n);
  const auto fill = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) residual[i] = loss[i] - evaluate(curve, step_[i]);
  };
  fill(end, n);
  const double miss = std::abs(middle_of(residual, end, n));
  if (!(miss > std::min(share, late_share))) return false;
  fill(half_, end);
  const Noise noise =
      by_mean ? noise_of_mean(residual, weight, half_, end) : noise_of_median(residual, half_, end);
  return miss > kMissedErrors * noise.error &&
         (miss > share || (miss > late_share && miss > noise.deviation));
}

}  // namespace glidepath::detail
