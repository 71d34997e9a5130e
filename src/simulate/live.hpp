// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "simulate/engine.hpp"

namespace glidepath::detail {

/// A policy at work one event at a time: each call goes to the next one, and is false when nothing
/// is left. The engine must outlive it.
[[nodiscard]] std::function<bool()> stepwise(Engine& engine, Policy policy);

/// Runs a policy that decides from Snapshots: any number of tiers, jobs with curves.
void run_policy(Engine& engine, const Policy& policy);

/// Whether a policy by name watches losses, so that by default it ends a job at its target.
[[nodiscard]] bool stops_at_target(std::string_view policy);

/// The same for a policy by name.
void run_named(Engine& engine, std::string_view policy);

}  // namespace glidepath::detail
