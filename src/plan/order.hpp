// SPDX-License-Identifier: Apache-2.0
// Objectives in strict order: the second chooses among the choices that are best by the first, and
// so on.
#pragma once

#include "glidepath/plan.hpp"

#include <span>
#include <vector>

namespace glidepath::detail {

/// A later objective weighs 2^-20, brought to the unit of the first: it decides ties alone.
inline constexpr int kTieExponent = 20;

struct Ordered {
  RoundPlan round{};             ///< of the values sum_g weight_g v_g
  std::vector<double> weight{};  ///< of each objective, 1 for the first
};

/// `values[g][o]` is what option o is worth to objective g. Each objective keeps to (1 - slack) of
/// what was found for it.
[[nodiscard]] Ordered solve_in_order(const RoundView& round,
                                     std::span<const std::vector<double>> values, double slack,
                                     const RoundOptions& options);

}  // namespace glidepath::detail
