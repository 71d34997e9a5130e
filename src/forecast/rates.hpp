// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/trace.hpp"

#include <vector>

namespace glidepath::detail {

/// The learning rate at each observed point whose loss is finite, and ahead of them.
struct Rates {
  std::vector<double> observed{}, ahead_step{}, ahead{};
};

/// The observed rates are those of the log where it has them, else those of the schedule. Ahead are
/// the points of the schedule past the last observed step or, where it has none, its last rate held
/// until `horizon`. Throws InputError where the schedule contradicts the log.
[[nodiscard]] Rates rates_of(TraceView trace, const Schedule& schedule, double horizon);

}  // namespace glidepath::detail
