// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <vector>

namespace glidepath::detail {

/// What past runs say of the step at which a live run comes to its target: the logarithm of that
/// step is Student-t, given that it lies after the last observed step. A past run teaches by how
/// late it came to what the live run has logged and when it came to the target; nothing is known of
/// it after its end (docs/method/past_runs.md, "Runs that ended").
struct EndLaw {
  int runs = 0;         ///< past runs behind it; 0 = nothing is known
  double location = 0;  ///< of log(step + shift)
  double scale = 1, degrees = 1;
  double shift = 0;    ///< of the live run, see step_shift()
  double now = 0;      ///< log of the last observed step, shifted
  double by_now = 0;   ///< what the Student-t gives to the steps until now
  double arrives = 1;  ///< probability that the run comes to the target at all

  /// P(at the target by `step`).
  [[nodiscard]] double cdf(double step) const;
  /// Step by which the target is reached with probability p, given that it is reached, p in (0, 1).
  [[nodiscard]] double quantile(double p) const;
  /// Weight of this law beside the curve's own, whose 10 to 90 % interval is `spread` wide in the
  /// logarithm of the step: the share of each inverse square width.
  [[nodiscard]] double weight(double spread) const;
};

/// The law of the target, then those of easier targets at which past runs ended that came not as
/// far: no run comes to the target before it comes to these. Empty where the live run has hardly
/// improved. Deterministic; ignores past runs that never stood where the live run stands. The live
/// run has not reached the target yet. A past run has where the options say so, and besides where
/// its last value is at the target: that is why it ended. About 0.1 ms for each law of 12 runs.
[[nodiscard]] std::vector<EndLaw> laws_of_end(TraceView live, double target,
                                              const ForecastOptions& options, const PastRuns& past);

}  // namespace glidepath::detail
