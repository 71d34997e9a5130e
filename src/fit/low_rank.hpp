// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/execution.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

/// Many curves on one grid of steps: after one pass over its points a curve is sixteen numbers.
namespace glidepath::detail {

inline constexpr int kRank = 16;  ///< functions that span all decays
inline constexpr std::size_t kMaxKeptGridPoints =
    4096;                                ///< points of a grid that is kept: half a MiB
inline constexpr int kCells = 32;        ///< pieces of the range of log β
inline constexpr int kCoefficients = 8;  ///< of a polynomial on a piece

/// What a grid of steps is to every curve on it; low_rank.cpp says why. With x in [0, 1] for the
/// steps, as in closed_form.cpp,
///
///     φ(x; β) = exp(-β x) = 1 + Σ_k w_k(β) q_k(x)
///
/// so that Σ φ y needs only the sixteen sums z_k = Σ (q_k - mean of q_k) y. On a cell, where
/// log β = centre + half u and |u| <= 1, what depends on β is a polynomial in u, lowest power
/// first.
struct LowRankGrid {
  int n = 0;                    ///< points
  int tail = 0;                 ///< the first of the points that the fastest decay hardly reaches
  double leak = 0;              ///< norm of that decay, less its mean, over the tail
  std::vector<double> columns;  ///< (n, kRank): q_k - mean
  std::array<double, kRank * kCells> nodes{};  ///< (kRank, kCells): `weights` at u = 0
  std::array<double, kCells * kRank * kCoefficients> weights{};  ///< w_k / norm
  std::array<double, kCells * kCoefficients> inverse_norm{};     ///< norm² = Σ (φ - mean)²
  std::array<double, kCells * kCoefficients> mean{};             ///< of φ over the points
  double first_centre = 0, spacing = 0, half = 0;                ///< of the cells, in log β
  double unit = 1;                                               ///< rate = β / unit
  double origin = 0;  ///< scale = a exp(rate origin), where a is the scale of φ(x; β)
};

/// The grid of a family that is one decay over a floor. Nothing for the other families, nor for a
/// handful of points. A scheduler fits the same steps round after round: a thread keeps the last
/// grid that it used.
[[nodiscard]] std::shared_ptr<const LowRankGrid> low_rank_grid(Family family,
                                                               std::span<const double> step,
                                                               Isa isa);

/// Where the answers of consecutive rows go.
struct LowRankAnswers {
  double *floor = nullptr, *scale = nullptr, *rate = nullptr, *sigma = nullptr;
  std::uint8_t* stands = nullptr;  ///< 0: this row must be fitted on all its points
};

/// The passes over the points, compiled for every instruction set.
struct LowRankKernels {
  /// rows of `columns`: exp(-beta_k x) - 1, times lift_k, eliminated in the order of k: what is
  /// left of function j once function k has taken its share is less by factor[k][j]. Returns the
  /// sums.
  void (*columns)(const double* x, int n, const double* beta, const double* lift,
                  const double* factor, double* columns, double* sums);
  /// (kRank, kRank) sums of products of the columns.
  void (*gram)(const double* columns, int n, double* out);
  /// Least squares for rows of grid.n losses that lie `stride` apart. An answer depends on its row
  /// and the grid alone.
  void (*fit)(const LowRankGrid& grid, const double* losses, std::ptrdiff_t stride, int rows,
              double lowest_floor, const LowRankAnswers& out);
};

[[nodiscard]] const LowRankKernels& low_rank_kernels(Isa isa);

}  // namespace glidepath::detail
