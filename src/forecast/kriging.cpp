// SPDX-License-Identifier: Apache-2.0
#include "forecast/kriging.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/numbers.hpp"
#include "common/statistics.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMaxRuns = 24;  // the nearest; more take their time and teach little
// Expected log end of a run that is late by x: x itself where runs differ by their unit, a part of
// it where the lateness may be noise.
constexpr double kSlopeOfNoise = 0.6, kLatenessOfNoise = 0.5;
// Standard deviation of the log end around that line, and the past runs this guess is worth.
constexpr double kNoise = 0.07, kNoiseRuns = 1;
constexpr double kOffsetVariance = 100;  // of the level of the line, in noise variances: free
// Standard deviation of the slopes in lateness, around the expected one, and in log interval.
constexpr double kSlopeDeviation = 0.3;
constexpr std::array kReaches{0.1, 0.5};  // in lateness, how far apart alike runs are
// Ratio of what alike runs share to the noise, and which reach it has.
struct Kernel {
  double ratio;
  std::size_t reach;
};
constexpr std::array kKernels{Kernel{0, 0}, Kernel{1.5, 0}, Kernel{1.5, 1}, Kernel{5, 0},
                              Kernel{5, 1}};
constexpr double kIntervalReach = 0.3;  // the same in log logging interval
constexpr double kMismatch = 0.15;      // uneven lateness that doubles the variance of a run
constexpr double kOutlierDegrees = 4;   // of the Student-t that tells an odd run
constexpr std::size_t kMinRobust = 4;   // runs among which one can be odd

double expected(double lateness) {
  return lateness - (1 - kSlopeOfNoise) * kLatenessOfNoise * std::tanh(lateness / kLatenessOfNoise);
}

class Kriging {
 public:
  explicit Kriging(std::span<const Neighbour> runs) : n_(runs.size()) {
    for (std::size_t i = 0; i < n_; ++i) residual_[i] = runs[i].event - expected(runs[i].lateness);
    auto sorted = residual_;
    middle_ = median(std::span(sorted).first(n_));
    for (std::size_t i = 0; i < n_; ++i) {
      residual_[i] -= middle_;
      noise_[i] = runs[i].variance();
      trust_[i] = 1;
    }
    for (std::size_t i = 0; i <= n_; ++i) {
      const Neighbour a = i < n_ ? runs[i] : Neighbour{};
      const double slope = kSlopeDeviation / kNoise;
      for (std::size_t j = 0; j <= i; ++j) {
        const Neighbour b = j < n_ ? runs[j] : Neighbour{};
        const double slopes = std::tanh(a.lateness) * std::tanh(b.lateness) +
                              std::tanh(a.interval) * std::tanh(b.interval);
        line_[i][j] = kOffsetVariance + slope * slope * slopes;
        const double apart = std::abs(a.interval - b.interval) / kIntervalReach;
        for (std::size_t r = 0; r < kReaches.size(); ++r) {
          shared_[r][i][j] = std::exp(-std::abs(a.lateness - b.lateness) / kReaches[r] - apart);
        }
      }
    }
  }

  Estimate estimate() {
    if (n_ >= kMinRobust) {
      solve(LeftOut::each);
      for (std::size_t i = 0; i < n_; ++i) {
        double square = 0;
        for (std::size_t m = 0; m < kKernels.size(); ++m) square += weight_[m] * left_out_[m][i];
        trust_[i] = std::min((kOutlierDegrees + 1) / (kOutlierDegrees + square), 1.0);
      }
    }
    solve(LeftOut::none);
    Estimate all{.runs = static_cast<int>(n_)};
    for (std::size_t m = 0; m < kKernels.size(); ++m) all.mean += weight_[m] * mean_[m];
    for (std::size_t m = 0; m < kKernels.size(); ++m) {
      const double away = mean_[m] - all.mean;
      all.variance += weight_[m] * (variance_[m] + away * away);
    }
    all.mean += middle_;
    return all;
  }

 private:
  using Row = std::array<double, kMaxRuns + 1>;
  using Square = std::array<Row, kMaxRuns + 1>;
  enum class LeftOut : std::uint8_t { none, each };

  double covariance(const Kernel& kernel, std::size_t i, std::size_t j) const {
    return line_[i][j] + kernel.ratio * kernel.ratio * shared_[kernel.reach][i][j];
  }

  /// All kernels, weighed by their evidence; on request also the squares of the standardised
  /// residuals of each run left out.
  void solve(LeftOut left_out) {
    double best = -kInfinity;
    std::array<double, kKernels.size()> evidence{};
    for (std::size_t m = 0; m < kKernels.size(); ++m) {
      evidence[m] = solve_one(m, left_out);
      best = std::max(best, evidence[m]);
    }
    double sum = 0;
    for (std::size_t m = 0; m < kKernels.size(); ++m)
      sum += weight_[m] = std::exp(evidence[m] - best);
    for (double& w : weight_) w /= sum;
  }

  double solve_one(std::size_t m, LeftOut left_out) {
    const Kernel& kernel = kKernels[m];
    // Cholesky factor of the covariance; u and v are the residuals and the covariances with the
    // live run, solved forwards.
    double log_det = 0, quadratic = 0, along = 0, explained = 0;
    Row u{}, v{};
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = covariance(kernel, i, j) + (i == j ? noise_[i] / trust_[i] : 0.0);
        for (std::size_t k = 0; k < j; ++k) sum -= factor_[i][k] * factor_[j][k];
        factor_[i][j] = i == j ? std::sqrt(sum) : sum / factor_[j][j];
      }
      double a = residual_[i], b = covariance(kernel, n_, i);
      for (std::size_t k = 0; k < i; ++k) {
        a -= factor_[i][k] * u[k];
        b -= factor_[i][k] * v[k];
      }
      u[i] = a / factor_[i][i];
      v[i] = b / factor_[i][i];
      log_det += 2 * std::log(factor_[i][i]);
      quadratic += u[i] * u[i];
      along += u[i] * v[i];
      explained += v[i] * v[i];
    }
    const double count = static_cast<double>(n_) + kNoiseRuns;
    const double total = quadratic + kNoiseRuns * kNoise * kNoise;
    mean_[m] = along;
    variance_[m] = total / count * (covariance(kernel, n_, n_) - explained + 1);
    if (left_out == LeftOut::each) leave_each_out(m, u, total / count);
    return -0.5 * (log_det + count * std::log(total));
  }

  /// (A^-1 r)_i^2 / (A^-1)_ii in noise variances, from the columns of the inverse factor.
  void leave_each_out(std::size_t m, const Row& u, double noise_variance) {
    for (std::size_t c = 0; c < n_; ++c) {
      Row column{};
      column[c] = 1 / factor_[c][c];
      double diagonal = column[c] * column[c], solved = column[c] * u[c];
      for (std::size_t i = c + 1; i < n_; ++i) {
        double sum = 0;
        for (std::size_t k = c; k < i; ++k) sum -= factor_[i][k] * column[k];
        column[i] = sum / factor_[i][i];
        diagonal += column[i] * column[i];
        solved += column[i] * u[i];
      }
      left_out_[m][c] = solved * solved / (diagonal * noise_variance);
    }
  }

  std::size_t n_;
  double middle_ = 0;
  Row residual_{}, noise_{}, trust_{};
  Square line_{}, factor_{};
  std::array<Square, kReaches.size()> shared_{};
  std::array<Row, kKernels.size()> left_out_{};
  std::array<double, kKernels.size()> weight_{}, mean_{}, variance_{};
};

}  // namespace

double Neighbour::variance() const {
  const double uneven = unevenness / kMismatch;
  return 1 + uneven * uneven;
}

Estimate krige(std::vector<Neighbour> runs) {
  if (runs.size() > kMaxRuns) {
    std::ranges::stable_sort(runs, {}, [](const Neighbour& run) {
      return std::abs(run.lateness) + std::abs(run.interval);
    });
    runs.resize(kMaxRuns);
  }
  return Kriging(runs).estimate();
}

}  // namespace glidepath::detail
