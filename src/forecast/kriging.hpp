// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace glidepath::detail {

/// A past run beside the live one: how much later it came to the same places, how unevenly so, by
/// how much the logarithm of its logging interval is larger, and the log step of its event.
struct Neighbour {
  double lateness, unevenness, interval, event;

  /// Variance of its event, in that of a run that is evenly late.
  [[nodiscard]] double variance() const;
};

/// The log step of the live run's event, by so many past runs.
struct Estimate {
  double mean = 0, variance = 0;
  int runs = 0;
};
/// Kriging of the events over lateness and logging interval, at the live run, whose both are 0. Of
/// many runs the nearest; there is at least one.
[[nodiscard]] Estimate krige(std::vector<Neighbour> runs);

}  // namespace glidepath::detail
