// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

/// Non-linear least squares inside a box, for any stage; Ceres is behind it.
namespace glidepath::detail {

/// What one residual costs: r²/2, or less than that once |r| passes the scale.
enum class Rho : std::uint8_t { squares, huber, cauchy };

struct LeastSquares {
  int residuals = 0;
  std::vector<double> lower{}, upper{};  ///< one per parameter; may be infinite, or equal: held
  /// Residuals begin..end-1 at p into r and, unless `jacobian` is null, their derivatives, row by
  /// row. False where they cannot be computed. Called from one thread.
  std::function<bool(const double* p, int begin, int end, double* r, double* jacobian)> evaluate{};
};

struct LeastSquaresOptions {
  Rho rho = Rho::squares;
  double rho_scale = 1.0;
};

enum class LeastSquaresStatus : std::uint8_t { converged, iteration_limit, failed };

struct LeastSquaresSolution {
  std::vector<double> parameters;
  double cost = std::numeric_limits<double>::infinity();  ///< Σ ρ(r) / 2
  LeastSquaresStatus status = LeastSquaresStatus::failed;
};

/// Throws InputError where Ceres was left out of the build; `what`, which needs it, begins the
/// sentence. To be asked before any work, so that the answer does not hang on the data.
void require_ceres(std::string_view what);

/// Local minimum from `start` (moved into the box first), to the last digits that double carries.
/// Thread safe, silent, single threaded; a problem it cannot solve is a status.
[[nodiscard]] LeastSquaresSolution minimise(const LeastSquares& problem,
                                            std::span<const double> start,
                                            const LeastSquaresOptions& options = {});

}  // namespace glidepath::detail
