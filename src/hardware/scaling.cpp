// SPDX-License-Identifier: Apache-2.0
// Step time of k GPUs on n nodes, b = batch per GPU, l = k / n GPUs per node:
//
//   T = other + compute b                                    what every GPU does
//     + ring (1 - 1/l) + tree log2 l + crowd (l - 1) / 8     all-reduce inside a node, one bus for
//     all
//     + hop [n > 1] + spread (1 - 1/n) + depth log2 n        all-reduce between nodes
//     + [n > 1] (share (1 - 1/l) + queue log2 l)             several GPUs behind one network card
//
// The volume of a ring all-reduce grows with 1 - 1/k, the latency of a tree with log2 k (Thakur,
// Rabenseifner, Gropp 2005). Terms and coefficients are non-negative, so that T is a sum of times.
// What is left over is smooth in k and n: its logarithm is interpolated between the measurements
// (kriging with an exponential covariance) and forgotten away from them.
#include "glidepath/hardware.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>

#include "common/least_squares.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"

namespace glidepath {
namespace {

constexpr int kTerms = Scaling::kTerms;
constexpr std::array<std::string_view, kTerms> kNames{
    "other", "compute", "ring", "tree", "crowd", "hop", "spread", "depth", "share", "queue"};
constexpr double kComputeRidge = 0.01;  // of other and compute, in their share of the step time
constexpr double kCommRidge = 0.1;  // of communication: what may be compute is taken for compute
constexpr double kCorrectionAmplitude = 0.2;  // of the correction's logarithm
constexpr double kMeasurementNoise = 0.05;    // of one measurement
constexpr double kLengthGpus = 2;             // octaves over which the correction is forgotten
constexpr double kLengthNodes = 2;

std::array<double, kTerms> terms(int gpus, int nodes, double batch_per_gpu) {
  const double k = gpus, n = nodes, l = k / n;
  const double across = nodes > 1 ? 1.0 : 0.0;
  return {1.0,    batch_per_gpu, 1 - 1 / l,    std::log2(l),         (l - 1) / 8,
          across, 1 - 1 / n,     std::log2(n), across * (1 - 1 / l), across * std::log2(l)};
}

double sum_of_terms(const Scaling& scaling, int gpus, int nodes, double batch_per_gpu) {
  const auto term = terms(gpus, nodes, batch_per_gpu);
  double sum = 0;
  for (std::size_t i = 0; i < term.size(); ++i) sum += scaling.terms[i] * term[i];
  return sum;
}

double covariance(const StepTime& a, int gpus, int nodes) {
  const double away = std::abs(std::log2(static_cast<double>(a.gpus) / gpus)) / kLengthGpus +
                      std::abs(std::log2(static_cast<double>(a.nodes) / nodes)) / kLengthNodes +
                      ((a.nodes > 1) != (nodes > 1) ? 1.0 : 0.0);
  return kCorrectionAmplitude * kCorrectionAmplitude * std::exp(-away);
}

void check(std::span<const StepTime> measured) {
  if (measured.empty()) detail::refuse("fit_scaling: no measurement");
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const StepTime& m = measured[i];
    const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
    if (m.gpus < 1 || m.nodes < 1 || m.nodes > m.gpus) {
      detail::refuse("fit_scaling: measurement ", i, " has ", m.gpus, " GPUs on ", m.nodes,
                     " nodes");
    }
    if (!positive(m.seconds)) {
      detail::refuse("fit_scaling: measurement ", i, " took ", m.seconds, " s");
    }
    if (!positive(m.batch_per_gpu)) {
      detail::refuse("fit_scaling: measurement ", i, " has batch ", m.batch_per_gpu);
    }
  }
}

/// min sum_m (T(m) / seconds_m - 1)^2 + sum_i (ridge_i c_i)^2, c_i >= 0 the share of term i.
void fit_terms(Scaling& scaling) {
  const auto& measured = scaling.measured;
  const int points = static_cast<int>(measured.size());
  std::vector<std::array<double, kTerms>> rows;
  std::array<double, kTerms> largest{};
  for (const StepTime& m : measured) {
    rows.push_back(terms(m.gpus, m.nodes, m.batch_per_gpu));
    for (std::size_t i = 0; i < largest.size(); ++i) {
      rows.back()[i] /= m.seconds;
      largest[i] = std::max(largest[i], rows.back()[i]);
    }
  }
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] /= largest[i] > 0 ? largest[i] : 1;
  }
  const detail::LeastSquares problem{
      .residuals = points + kTerms,
      .lower = std::vector<double>(kTerms, 0.0),
      .upper = std::vector<double>(kTerms, std::numeric_limits<double>::infinity()),
      .evaluate = [&](const double* c, int begin, int end, double* r, double* jacobian) {
        for (int m = begin; m < end; ++m) {
          const int term = m - points;  // of the ridge, past the measurements
          const double ridge = term < 2 ? kComputeRidge : kCommRidge;
          double sum = term < 0 ? -1.0 : ridge * c[term];
          for (int i = 0; i < kTerms; ++i) {
            const std::size_t column = i;
            const double slope = term < 0 ? rows[m][column] : (term == i ? ridge : 0.0);
            if (term < 0) sum += slope * c[i];
            if (jacobian) jacobian[(m - begin) * kTerms + i] = slope;
          }
          r[m - begin] = sum;
        }
        return true;
      }};
  const std::vector<double> start(kTerms, 1.0 / kTerms);
  const detail::LeastSquaresSolution solution = detail::minimise(problem, start);
  for (std::size_t i = 0; i < largest.size(); ++i) {
    scaling.terms[i] = largest[i] > 0 ? std::max(0.0, solution.parameters[i]) / largest[i] : 0.0;
  }
}

/// (K + noise^2 I) w = log(measured / terms)
void fit_correction(Scaling& scaling) {
  const auto& measured = scaling.measured;
  const auto n = static_cast<Eigen::Index>(measured.size());
  Eigen::MatrixXd K(n, n);
  Eigen::VectorXd rest(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const StepTime& m = measured[i];
    rest[i] = std::log(m.seconds / sum_of_terms(scaling, m.gpus, m.nodes, m.batch_per_gpu));
    for (Eigen::Index j = 0; j < n; ++j) {
      K(i, j) = covariance(measured[j], m.gpus, m.nodes);
    }
    K(i, i) += kMeasurementNoise * kMeasurementNoise;
  }
  const Eigen::VectorXd w = K.llt().solve(rest);
  scaling.correction.assign(w.begin(), w.end());
}

}  // namespace

std::string_view scaling_term(int term) noexcept {
  return term >= 0 && term < kTerms ? kNames[term] : "?";
}

double step_seconds(const Scaling& scaling, int gpus, int nodes, double batch_per_gpu) {
  double log_correction = 0;
  for (std::size_t i = 0; i < scaling.correction.size(); ++i) {
    log_correction += scaling.correction[i] * covariance(scaling.measured[i], gpus, nodes);
  }
  return sum_of_terms(scaling, gpus, nodes, batch_per_gpu) * std::exp(log_correction);
}

Scaling fit_scaling(std::span<const StepTime> measured) {
  check(measured);
  detail::require_ceres("scaling: a fit");
  Scaling scaling;
  scaling.measured.assign(measured.begin(), measured.end());
  fit_terms(scaling);
  fit_correction(scaling);
  std::vector<double> errors;
  for (const StepTime& m : measured) {
    errors.push_back(
        std::abs(step_seconds(scaling, m.gpus, m.nodes, m.batch_per_gpu) / m.seconds - 1));
  }
  scaling.typical_error = detail::upper_median(errors);
  return scaling;
}

}  // namespace glidepath
