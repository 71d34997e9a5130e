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
#include <Eigen/QR>

#include "common/names.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "hardware/gang.hpp"

namespace glidepath {
namespace {

constexpr int kTerms = Scaling::kTerms;
constexpr detail::Names<kTerms> kNames{"other", "compute", "ring",  "tree",  "crowd",
                                       "hop",   "spread",  "depth", "share", "queue"};
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
  if (measured.empty()) detail::refuse("fit_scaling: no measurement, expected 1 or more");
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const StepTime& m = measured[i];
    const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
    if (!detail::is_gang(m.gpus, m.nodes)) {
      detail::refuse("fit_scaling: measurement ", i, " has ", m.gpus, " GPUs on ", m.nodes,
                     " nodes, expected ", detail::kGangRange);
    }
    if (!positive(m.seconds) || m.seconds < std::numeric_limits<double>::min()) {
      detail::refuse("fit_scaling: measurement ", i, " took ", m.seconds,
                     " s, expected above 0 and finite");
    }
    if (!positive(m.batch_per_gpu)) {
      detail::refuse("fit_scaling: measurement ", i, " has a batch of ", m.batch_per_gpu,
                     ", expected above 0 and finite");
    }
  }
}

/// Least squares of the columns `in` of A alone.
Eigen::VectorXd least_squares(const Eigen::MatrixXd& A, const Eigen::VectorXd& b,
                              const std::vector<Eigen::Index>& in) {
  Eigen::MatrixXd some(A.rows(), std::ssize(in));
  for (std::size_t k = 0; k < in.size(); ++k) some.col(static_cast<Eigen::Index>(k)) = A.col(in[k]);
  return some.colPivHouseholderQr().solve(b);
}

/// min |A c - b| over c >= 0 by active sets (Lawson and Hanson 1974, chapter 23): the steepest term
/// enters; one that would turn negative on the way to the least squares of those inside leaves.
Eigen::VectorXd non_negative(const Eigen::MatrixXd& A, const Eigen::VectorXd& b) {
  Eigen::VectorXd c = Eigen::VectorXd::Zero(A.cols());
  const double negligible = 1e-13 * A.norm() * b.norm();
  std::vector<Eigen::Index> in;
  for (Eigen::Index round = 0; round < 3 * A.cols(); ++round) {  // each set is better than the last
    Eigen::VectorXd gradient = A.transpose() * (b - A * c);
    for (const Eigen::Index term : in) gradient(term) = 0;
    Eigen::Index steepest = 0;
    if (gradient.maxCoeff(&steepest) <= negligible) break;
    in.push_back(steepest);
    for (double step = 0; step < 1 && !in.empty();) {
      const Eigen::VectorXd best = least_squares(A, b, in);
      step = 1;  // as far as every c stays >= 0
      for (std::size_t k = 0; k < in.size(); ++k) {
        const double from = c(in[k]), to = best(static_cast<Eigen::Index>(k));
        if (to < 0) step = std::min(step, from / (from - to));
      }
      for (std::size_t k = 0; k < in.size(); ++k) {
        double& each = c(in[k]);
        each += step * (best(static_cast<Eigen::Index>(k)) - each);
        if (each < 1e-15) each = 0;
      }
      std::erase_if(in, [&](Eigen::Index term) { return c(term) == 0; });
    }
  }
  return c;
}

/// min sum_m (T(m) / seconds_m - 1)^2 + sum_i (ridge_i c_i)^2, c_i >= 0 the share of term i.
void fit_terms(Scaling& scaling) {
  const auto points = static_cast<Eigen::Index>(scaling.measured.size());
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(points + kTerms, kTerms);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(points + kTerms);
  b.head(points).setOnes();
  for (Eigen::Index i = 0; i < points; ++i) {
    const StepTime& m = scaling.measured[i];
    const auto term = terms(m.gpus, m.nodes, m.batch_per_gpu);
    for (int k = 0; k < kTerms; ++k) A(i, k) = term[k] / m.seconds;
  }
  for (int k = 0; k < kTerms; ++k) {
    const double largest = A.col(k).maxCoeff();
    if (largest > 0) A.col(k) /= largest;
    A(points + k, k) = k < 2 ? kComputeRidge : kCommRidge;
    scaling.terms[k] = largest > 0 ? 1 / largest : 0;
  }
  const Eigen::VectorXd c = non_negative(A, b);
  for (int k = 0; k < kTerms; ++k) scaling.terms[k] *= c(k);
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

std::string_view scaling_term(int term) noexcept { return detail::name_in(kNames, term); }

double step_seconds(const Scaling& scaling, int gpus, int nodes, double batch_per_gpu) {
  if (!detail::is_gang(gpus, nodes)) {
    detail::refuse("step_seconds: ", gpus, " GPUs on ", nodes, " nodes, expected ",
                   detail::kGangRange);
  }
  if (!(batch_per_gpu > 0 && std::isfinite(batch_per_gpu))) {
    detail::refuse("step_seconds: batch_per_gpu is ", batch_per_gpu,
                   ", expected above 0 and finite");
  }
  // What fit_scaling() gives, or terms of one's own.
  for (int term = 0; term < Scaling::kTerms; ++term) {
    const double x = scaling.terms[static_cast<std::size_t>(term)];
    if (!(x >= 0 && std::isfinite(x))) {
      detail::refuse("step_seconds: the term '", scaling_term(term), "' is ", x,
                     ", expected 0 or more and finite");
    }
  }
  if (std::ranges::all_of(scaling.terms, [](double term) { return !(term > 0); })) {
    detail::refuse("step_seconds: the scaling has no term above 0, fit_scaling gives it some");
  }
  if (scaling.correction.size() > scaling.measured.size()) {
    detail::refuse("step_seconds: ", scaling.correction.size(), " corrections of ",
                   scaling.measured.size(), " measurements, expected at most as many");
  }
  double log_correction = 0;
  for (std::size_t i = 0; i < scaling.correction.size(); ++i) {
    log_correction += scaling.correction[i] * covariance(scaling.measured[i], gpus, nodes);
  }
  if (!std::isfinite(log_correction)) {
    detail::refuse("step_seconds: the log of the correction is ", log_correction,
                   ", expected a finite number");
  }
  return sum_of_terms(scaling, gpus, nodes, batch_per_gpu) * std::exp(log_correction);
}

Scaling fit_scaling(std::span<const StepTime> measured) {
  check(measured);
  Scaling scaling;
  scaling.measured.assign(measured.begin(), measured.end());
  fit_terms(scaling);
  fit_correction(scaling);
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::ranges::all_of(scaling.terms, finite) ||
      !std::ranges::all_of(scaling.correction, finite)) {
    detail::refuse("fit_scaling: the measurements lie too far apart for a double");
  }
  std::vector<double> errors;
  for (const StepTime& m : measured) {
    errors.push_back(
        std::abs(step_seconds(scaling, m.gpus, m.nodes, m.batch_per_gpu) / m.seconds - 1));
  }
  scaling.typical_error = detail::upper_median(errors);
  return scaling;
}

}  // namespace glidepath
