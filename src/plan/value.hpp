// SPDX-License-Identifier: Apache-2.0
// What a second of a job under an option is worth.
#pragma once

#include "glidepath/plan.hpp"

namespace glidepath::detail {

/// Probabilities of the forecast's two ends.
struct Ends {
  double reached = 0;  ///< nothing is left to do
  double never = 0;    ///< no number of steps is enough
};
[[nodiscard]] Ends ends_of(const Job& job);

/// Gittins index of the steps still needed, per step of progress; without a forecast 1 / (steps
/// done so far), which serves the job with the least attained service first.
[[nodiscard]] double index_per_step(const Job& job, double round_s);

/// Mean job completion time: w / (1 / (rate G) + restart), the Gittins index of a job that first
/// has to pay its restart.
[[nodiscard]] double value_per_second(const Job& job, const Option& option, double index,
                                      bool restarts);

}  // namespace glidepath::detail
