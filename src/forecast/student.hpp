// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace glidepath::detail {

/// With fewer degrees of freedom the tails have no quantiles to speak of.
inline constexpr double kMinDegrees = 0.1;
/// What the location and the scale of a component may be: their squares and quotients are finite.
[[nodiscard]] inline bool is_location(double z) { return std::abs(z) <= 1e100; }
[[nodiscard]] inline bool is_scale(double s) { return s >= 1e-100 && s <= 1e100; }

/// CDF of Student's t with any `degrees` > 0: a closed form at 3, the incomplete beta otherwise.
[[nodiscard]] double student_cdf(double degrees, double x);
/// The incomplete beta for any `degrees`, slower.
[[nodiscard]] double student_cdf_general(double degrees, double x);
/// Inverse of student_cdf(), p in (0, 1).
[[nodiscard]] double student_quantile(double degrees, double p);

/// One mixture sum_k weight_k t(location_k, scale_k), borrowed.
struct MixtureView {
  std::span<const double> weight, location, scale;
  double degrees = 3;
};

/// A mixture at each of several queries, of the same weights.
struct Mixture {
  std::size_t components = 0, queries = 0;
  double degrees = 3;
  std::vector<double> weight{};             ///< sums to 1
  std::vector<double> location{}, scale{};  ///< (queries, components) row-major

  [[nodiscard]] MixtureView at(std::size_t query) const {
    const auto row = [&](const std::vector<double>& column) {
      return std::span(column).subspan(query * components, components);
    };
    return {weight, row(location), row(scale), degrees};
  }
};

[[nodiscard]] double mixture_cdf(const MixtureView& mixture, double x);
[[nodiscard]] double mixture_median(const MixtureView& mixture);

/// Quantiles at increasing `levels`, by Halley's method between the extreme quantiles of the
/// components, all levels at once. `unit[i]` is the component's quantile at levels[i]. `guess`
/// holds the standardised quantiles of the two mixtures before, of which this one continues the
/// line, and receives those of this one; empty = none yet.
void mixture_quantiles(const MixtureView& mixture, std::span<const double> levels,
                       std::span<const double> unit, std::vector<double>& guess,
                       std::span<double> out);

}  // namespace glidepath::detail
