// SPDX-License-Identifier: Apache-2.0
// Pairs of jobs on the same GPUs.
#pragma once

#include "glidepath/plan.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace glidepath::detail {

/// A job on one of its offers: a host that has its GPUs, or a guest that would join one.
struct Seat {
  std::size_t job = 0, offer = 0;
  int tier = 0, gpus = 0;
  double value = 0;  ///< alone
  Profile profile{};
};

struct Pair {
  std::size_t host = 0, guest = 0, guest_offer = 0;
  double host_speed = 1, guest_speed = 1;
  double gain = 0;
};

/// Pairs of a host and a guest with the same tier and gang and v_h s_h|g + v_g s_g|h > v_h, by
/// falling gain, each job at most once. Adds to `bound` no less than any matching can gain.
[[nodiscard]] std::vector<Pair> match(std::span<const Seat> hosts, std::span<const Seat> guests,
                                      std::span<const Tier> tiers, const PlanOptions& options,
                                      double& bound);

}  // namespace glidepath::detail
