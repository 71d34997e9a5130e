// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <span>
#include <vector>

#include "forecast/constants.hpp"

namespace glidepath::detail {

/// The learning rate before the log begins, at each observed point whose loss is finite, and ahead.
struct Rates {
  std::vector<double> before_step{}, before{}, observed{}, ahead_step{}, ahead{};
};

/// The observed rates are those of the log where it has them, else those of the schedule. Before
/// are the points of the schedule ahead of the first observed one, none where it does not reach
/// back. Ahead are those past the last observed step or, where it has none, its last rate held
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

/// Schedule before, at and ahead of the observed (shifted) steps; `count` is how many points each
/// observed one stands for.
[[nodiscard]] Annealing annealing(std::span<const double> observed, std::span<const double> count,
                                  const Rates& rates, const ForecastConstants& constants);

}  // namespace glidepath::detail
