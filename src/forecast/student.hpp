// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "forecast/kernels.hpp"

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

/// The mixture of two, `share` of it the first.
[[nodiscard]] Mixture mixed(const Mixture& first, const Mixture& second, double share);

[[nodiscard]] double mixture_cdf(const MixtureView& mixture, double x);
[[nodiscard]] double mixture_median(const MixtureView& mixture);
/// Mean of the locations.
[[nodiscard]] double mixture_mean(const MixtureView& mixture);
/// Mean of the root of the square distance of a component from `middle` and its square scale: about
/// the scale of one t as wide as the mixture.
[[nodiscard]] double mean_distance(const MixtureView& mixture, double middle);

/// Quantiles of one mixture after the other at increasing `levels`, each level on its own, by
/// Householder's method of the fourth order (Householder 1970) between the extreme quantiles of the
/// components. It begins on the parabola through the quantiles of the last three mixtures.
class MixtureQuantiles {
 public:
  /// `unit[i]` is the quantile of a component at levels[i]. Both are borrowed.
  MixtureQuantiles(std::span<const double> levels, std::span<const double> unit);
  /// `at` is where the mixture lies among the others, such as the logarithm of its step; it
  /// increases from one to the next.
  void find(const MixtureView& mixture, double at, std::span<double> out);

 private:
  struct Found {
    double at = 0;
    std::vector<double> quantile{};  ///< in deviations from the mean of its mixture
  };
  void take_moments(const MixtureView& mixture);
  void guess(double at);
  void evaluate(const MixtureView& mixture, std::size_t count);
  [[nodiscard]] std::size_t drop_found(std::size_t count);
  void remember(double at);

  std::span<const double> levels_;
  std::size_t padded_;
  std::vector<double> memory_;                     ///< of the columns, each with `padded_`
  double *unit_, *quantile_;                       ///< of each level
  double *level_, *x_, *low_, *high_, *is_found_;  ///< of each level that is searched
  double *cdf_, *density_, *slope_, *bend_;        ///< at its x
  std::vector<std::size_t> index_;                 ///< of it among all levels
  std::vector<Component> components_{};
  std::vector<Found> found_{};                               ///< the newest first
  double mean_ = 0, deviation_ = 0, scale_ = 0, least_ = 0;  ///< of the mixture
};

}  // namespace glidepath::detail
