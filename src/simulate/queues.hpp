// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "simulate/engine.hpp"

namespace glidepath::detail {

/// Whether `policy` has an indexed scheduler for one tier and jobs without curves.
[[nodiscard]] bool has_queue(std::string_view policy);

/// Runs such a scheduler to the end. Per event it looks at the heads of its queues and at the few
/// running jobs behind them, never at all waiting jobs.
void run_queue(Engine& engine, std::string_view policy);

}  // namespace glidepath::detail
