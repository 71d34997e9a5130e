// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "common/require.hpp"

namespace glidepath {

void validate(const Tier& tier) {
  using detail::refuse;
  if (tier.nodes < 0) {
    refuse("tier '", tier.name, "': nodes is ", tier.nodes, ", expected 0 or more");
  }
  if (tier.gpus_per_node < 1) {
    refuse("tier '", tier.name, "': gpus_per_node is ", tier.gpus_per_node, ", expected 1 or more");
  }
  if (tier.nodes > std::numeric_limits<int>::max() / tier.gpus_per_node) {
    refuse("tier '", tier.name, "': ", tier.nodes, " nodes of ", tier.gpus_per_node,
           " GPUs, expected at most 2^31 - 1 GPUs in all");
  }
  for (const auto& [what, x] :
       {std::pair{"memory_gb", tier.memory_gb}, std::pair{"host_memory_gb", tier.host_memory_gb},
        std::pair{"idle_watts", tier.idle_watts}, std::pair{"busy_watts", tier.busy_watts},
        std::pair{"price_per_gpu_hour", tier.price_per_gpu_hour}}) {
    if (!(x >= 0 && std::isfinite(x))) {
      refuse("tier '", tier.name, "': ", what, " is ", x, ", expected 0 or more and finite");
    }
  }
}

double watts(const Tier& tier, double utilization) noexcept {
  return tier.idle_watts + utilization * (tier.busy_watts - tier.idle_watts);
}

double utilization(const Tier& tier, double watts) {
  if (!(tier.busy_watts > tier.idle_watts && watts >= tier.idle_watts &&
        watts <= tier.busy_watts)) {
    detail::refuse("tier '", tier.name, "': watts is ", watts, ", expected between the idle ",
                   tier.idle_watts, " W and the busy ", tier.busy_watts, " W of a GPU");
  }
  return (watts - tier.idle_watts) / (tier.busy_watts - tier.idle_watts);
}

}  // namespace glidepath
