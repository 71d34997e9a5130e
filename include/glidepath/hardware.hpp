// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace glidepath {

/// A pool of equal GPUs. Power is per GPU; figures come from the catalogue of `data/gpus.csv`.
struct Tier {
  std::string name, gpu{};
  int nodes = 0;
  int gpus_per_node = 1;
  double memory_gb = 0;       ///< of one GPU
  double host_memory_gb = 0;  ///< of one node
  double idle_watts = 0;      ///< one GPU that does nothing
  double busy_watts = 0;      ///< one GPU at full utilisation

  [[nodiscard]] int gpus() const noexcept { return nodes * gpus_per_node; }
};

/// Throws InputError naming the tier and the value: counts below 0, memory or power not finite.
void validate(const Tier& tier);

/// Power of one GPU at `utilisation` in [0, 1]: idle + utilisation (busy - idle).
[[nodiscard]] double watts(const Tier& tier, double utilisation) noexcept;

}  // namespace glidepath
