// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <string>

#include "simulate/engine.hpp"

namespace glidepath::detail {

/// What came of a run that is over. Takes the spans from the engine.
[[nodiscard]] Simulation results(Engine& engine, std::string policy);

}  // namespace glidepath::detail
