// SPDX-License-Identifier: Apache-2.0
// Goals in strict order: the second chooses among the choices that are best by the first, and so
// on.
#pragma once

#include "glidepath/plan.hpp"

#include <span>
#include <vector>

namespace glidepath::detail {

struct Ordered {
  RoundPlan round{};             ///< of the values sum_g weight_g v_g
  std::vector<double> weight{};  ///< of each goal, 1 for the first
};

/// `values[g][o]` is what option o is worth to goal g. Each goal keeps to (1 - slack) of what was
/// found for it.
[[nodiscard]] Ordered solve_in_order(const RoundView& round,
                                     std::span<const std::vector<double>> values, double slack,
                                     const RoundOptions& options);

}  // namespace glidepath::detail
