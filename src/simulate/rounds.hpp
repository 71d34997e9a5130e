// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "simulate/engine.hpp"

namespace glidepath::detail {

[[nodiscard]] bool is_round_policy(std::string_view policy);

/// Runs a policy of shares of time, rounds of `round_s`, as the simulator of Gavel does (Narayanan
/// et al., OSDI 2020).
void run_rounds(Engine& engine, std::string_view policy, double round_s);

}  // namespace glidepath::detail
