// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace glidepath::detail {

/// The grid of log work on which durations are learned, see Durations.
inline constexpr int kWorkGrid = 56;
inline constexpr int kWorkCells = 64;  ///< of a law of work
inline constexpr int kWorkReach = 4;   ///< grid points that alike jobs are apart, at most

/// The loops over that grid. What is summed is summed in eight lanes, whatever the width of a
/// vector, so that every instruction set gives the same bytes. A `near` has kWorkReach + 1 numbers,
/// all other arrays kWorkGrid.
struct DurationKernels {
  double (*sum)(const double* values);
  /// out = a b
  void (*multiply)(const double* a, const double* b, double* out);
  void (*divide)(double* values, double by);
  /// What is known of a job with a share `stay` near the one before it, else as the law has it.
  void (*follow)(const double* before, const double* near, double stay, const double* law,
                 double* out);
  /// out = prior likelihood / their sum, which is returned.
  double (*observe)(const double* prior, const double* likelihood, double* out);
  /// What the next job of a chain tells of this one: next = likelihood behind / scale, of which
  /// `out` is a share `stay` near it and else the mean by the law, which is returned.
  double (*look_back)(const double* likelihood, const double* behind, double scale,
                      const double* law, const double* near, double stay, double* next,
                      double* out);
  /// Expected counts of a step from `here` to `next`: adds to those of the law, and to each of
  /// the kWorkReach + 1 grids of `steps`.
  void (*count)(const double* here, const double* next, const double* law, double stay,
                double* drawn, double* steps);
  /// Whether two grids are as good as equal.
  bool (*same)(const double* a, const double* b, double negligible);
  /// Log weights of n cells of equal width from `low` on: a normal law of the forecast, times what
  /// `log_prior` says by straight lines between its points, `step` apart from `origin` on.
  void (*weigh)(std::size_t n, double low, double width, double log_forecast, double sigma,
                const double* log_prior, double origin, double step, double* out);
};

[[nodiscard]] const DurationKernels& duration_kernels();

}  // namespace glidepath::detail
