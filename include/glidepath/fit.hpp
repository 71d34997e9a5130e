// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/trace.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace glidepath {

enum class FitStatus : std::uint8_t {
  converged,
  iteration_limit,
  too_few_points,
  flat,
  not_finite
};
[[nodiscard]] std::string_view name(FitStatus status) noexcept;

enum class Loss : std::uint8_t { squares, huber, cauchy };

struct FitOptions {
  std::optional<Family> family{};  ///< empty: the best by AICc among those the points allow
  Loss loss = Loss::squares;       ///< the other two shrug off spikes
  double lowest_floor =
      -std::numeric_limits<double>::infinity();  ///< lowest value the metric can take
  int starts = 4;                                ///< deterministic multi-start count
  int max_iterations = 200;
};

/// One family's score in the choice by AICc.
struct FamilyScore {
  Family family = Family::pow3;
  double aicc = std::numeric_limits<double>::infinity();
  FitStatus status = FitStatus::too_few_points;
};

/// A fit that did not converge is an answer, not an exception: read `status`.
struct Fit {
  Curve curve;
  FitStatus status = FitStatus::too_few_points;
  std::array<double, kMaxParameters> standard_error{};
  std::array<double, kMaxParameters * kMaxParameters> covariance{};  ///< row-major
  double sigma = 0;  ///< residual standard deviation
  double rss = 0;    ///< residual sum of squares
  double aicc = std::numeric_limits<double>::infinity();
  double bic = std::numeric_limits<double>::infinity();
  double last_step = 0;
  int points = 0;
  std::vector<FamilyScore> scores{};  ///< all families tried, when the family was chosen
};

/// Least-squares fit of one trace. Throws InputError on a broken TraceView.
[[nodiscard]] Fit fit(TraceView trace, const FitOptions& options = {});

/// Fits of traces with their own steps; entry i is fit(traces[i], options), whatever the threads.
[[nodiscard]] std::vector<Fit> fit_batch(std::span<const TraceView> traces,
                                         const FitOptions& options = {},
                                         const Execution& execution = {});

/// Fits of a batch as columns, one entry per curve.
struct FitColumns {
  Family family = Family::pow3;
  std::array<std::vector<double>, kMaxParameters> parameters{};
  std::vector<double> sigma{};
  std::vector<FitStatus> status{};
};

/// Fits every row of `losses` (m, n) over the shared `steps` (n). `options.family` must be set.
[[nodiscard]] FitColumns fit_batch(std::span<const double> steps, Eigen::Ref<const Rows> losses,
                                   const FitOptions& options, const Execution& execution = {});

}  // namespace glidepath
