// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

/// What FitStatus::poor means, for every way to a fit.
namespace glidepath::detail {

/// How the residuals at the end become one number.
enum class Middle : std::uint8_t {
  mean,    ///< for least squares
  median,  ///< for a robust loss: spikes do not count
};

/// The last tenth (at least 5) of the steps that were fitted: made once for all curves on them.
class EndOfCurve {
 public:
  /// `step` is borrowed.
  EndOfCurve(Family family, std::span<const double> step);

  /// Whether the curve misses the end: the mean of the residuals there is more than 3 standard
  /// errors of that mean, and more than 2 % of the descent of the curve over all steps, or more
  /// than the noise of a point and 10 % of the descent of the losses since the first tenth of them.
  /// The noise comes from the differences of successive residuals in the later half, which are
  /// noise whatever the curve misses. Costs three or four values of a curve that does pass.
  [[nodiscard]] bool misses(const Curve& curve, std::span<const double> loss,
                            std::span<const double> weight = {},
                            Middle middle = Middle::mean) const;

 private:
  [[nodiscard]] double value(const Curve& curve, std::size_t which) const;

  std::span<const double> step_;
  std::size_t count_;            ///< points of the end; 0 where there are too few
  std::size_t half_ = 0;         ///< the first of the points that tell the noise
  std::array<double, 4> at_{};   ///< the first step, the first of the end, the last, that of half_
  std::array<double, 4> log_{};  ///< their logarithms, for a power
};

}  // namespace glidepath::detail
