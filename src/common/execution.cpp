// SPDX-License-Identifier: Apache-2.0
#include "glidepath/execution.hpp"

#include <hwy/targets.h>

namespace glidepath {

std::string best_isa() {
  return hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets());
}

}  // namespace glidepath
