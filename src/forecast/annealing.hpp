// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <span>
#include <vector>

namespace glidepath::detail {

/// What a known learning-rate schedule says (Tissue et al. 2024, arXiv 2408.11029): time runs as
/// the sum of the learning rate, and the loss falls by C h(t), h the lagged annealed fraction
/// 1 - lr / peak. Empty when the schedule is unknown, constant or zero.
struct Annealing {
  std::vector<double> step, time, fraction;  ///< knots of S1 and of h

  [[nodiscard]] bool known() const noexcept { return !step.empty(); }
};

/// Schedule over the observed (shifted) steps and ahead of them; `lag` is the time constant of h as
/// a fraction of the whole plan.
[[nodiscard]] Annealing annealing(std::span<const double> observed, std::span<const double> past,
                                  std::span<const double> ahead_step, std::span<const double> ahead,
                                  double lag);

}  // namespace glidepath::detail
