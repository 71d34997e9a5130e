// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/fit.hpp"

#include <array>
#include <span>

#include "curve/families.hpp"

/// One trace and one family, in units where nothing overflows:
///
///     (loss - centre) / spread ≈ floor' + A ψ(t; z),   ψ = φ(t) / φ(t_1),
///
/// with the shapes at coordinates z (families.hpp). Both engines minimise this.
namespace glidepath::detail {

struct Problem {
  Family family = Family::pow3;
  std::span<const double> step{}, loss{}, weight{};  ///< the points used
  StepRange range{};
  double centre = 0.0, spread = 1.0;
  double above_last = 0.0;    ///< Σ (loss - last loss)
  double lowest_floor = 0.0;  ///< in units of this problem
};

/// Where an engine ended, in the units of the problem: parameters (floor', A, z).
struct Solution {
  double floor = 0.0, amplitude = 0.0;
  Shapes shapes{};  ///< at z
  std::array<bool, 2> shape_at_bound{};
  bool floor_at_bound = false;
  double rss = 0.0;
  double robust_sigma = 0.0;  ///< > 0: the scale of a robust loss
  FitStatus status = FitStatus::iteration_limit;
  /// JᵀJ of (floor', A, z) at the solution, without the rows a family does not have.
  std::array<double, 16> normal{};
};

/// Ceres from the best points of the grid of starts.
[[nodiscard]] Solution solve_by_ceres(const Problem& problem, const FitOptions& options);

/// Floor and scale eliminated, the whole range of shapes searched.
[[nodiscard]] Solution solve_in_closed_form(const Problem& problem, Isa isa);

/// The solution in the user's units, with its errors and scores.
[[nodiscard]] Fit summarise(const Problem& problem, const Solution& solution);

}  // namespace glidepath::detail
