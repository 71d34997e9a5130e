// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <span>
#include <vector>

#include "forecast/constants.hpp"

namespace glidepath::detail {

/// The learning rate at each observed point whose loss is finite, and ahead of them.
struct Rates {
  std::vector<double> observed{}, ahead_step{}, ahead{};
};

/// The observed rates are those of the log where it has them, else those of the schedule. Ahead are
/// the points of the schedule past the last observed step or, where it has none, its last rate held
/// until `horizon`. Throws InputError where the schedule contradicts the log.
[[nodiscard]] Rates rates_of(TraceView trace, const Schedule& schedule, double horizon);

/// What a known learning-rate schedule says (Tissue et al. 2024, arXiv 2408.11029): time runs as
/// the sum of a power of the learning rate, and the loss falls by C h(t), h the lagged annealed
/// fraction 1 - lr / peak. Empty when the schedule is unknown, zero or constant from the start.
struct Annealing {
  std::vector<double> step, time, fraction;  ///< knots of S1 and of h
  bool falls = false;                        ///< the learning rate ever falls

  [[nodiscard]] bool known() const noexcept { return !step.empty(); }
  /// Time passes from point to point, at least thrice: there is something to fit in this clock.
  [[nodiscard]] bool moves(std::span<const double> points) const;
};

/// Schedule over the observed (shifted) steps and ahead of them; `count` is how many points each
/// observed one stands for.
[[nodiscard]] Annealing annealing(std::span<const double> observed, std::span<const double> count,
                                  std::span<const double> past, std::span<const double> ahead_step,
                                  std::span<const double> ahead,
                                  const ForecastConstants& constants);

}  // namespace glidepath::detail
