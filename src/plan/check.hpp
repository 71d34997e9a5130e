// SPDX-License-Identifier: Apache-2.0
// Finds what is broken in snapshots and options, in one sentence that names the job.
#pragma once

#include "glidepath/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace glidepath::detail {

/// The end of a sentence about the place of one of so many: ", expected 0 to 3".
[[nodiscard]] std::string expected_place(std::string_view noun, std::size_t count);
/// Refuses a share of the bound that no gap can be.
void check_gap(std::string_view verb, double gap);
void check_options(const PlanOptions& options, const Snapshot& snapshot);
void check_limits(std::string_view verb, const PlanLimits& limits, std::span<const Tier> tiers);
/// Whether the power, or the price, of some tier is known.
[[nodiscard]] bool has_power(std::span<const Tier> tiers);
[[nodiscard]] bool has_prices(std::span<const Tier> tiers);
/// Which value of the job is broken; empty when none is.
[[nodiscard]] std::string fault_of(const Job& job, const Snapshot& snapshot);

/// What an option must have beside GPUs and memory for the job. plan() finds partners by itself: to
/// it an option that shares GPUs is a permission, not a place.
enum class Asked : std::uint8_t { own_gpus, speed };
[[nodiscard]] bool can_use(const Job& job, const Option& option, const Tier& tier, Asked asked);
/// Why the job can use none of its options, the nearest of each kind.
[[nodiscard]] std::string why_unfit(const Job& job, const Snapshot& snapshot, Asked asked);

}  // namespace glidepath::detail
