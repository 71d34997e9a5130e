// SPDX-License-Identifier: Apache-2.0
#include "glidepath/execution.hpp"

#include <hwy/targets.h>
#include <omp.h>

namespace glidepath {

int available_threads() noexcept { return omp_get_max_threads(); }

std::string best_isa() {
  return hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets());
}

}  // namespace glidepath
