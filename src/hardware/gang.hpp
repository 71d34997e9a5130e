// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace glidepath::detail {

/// A gang runs on at least one GPU of each of its nodes.
[[nodiscard]] inline bool is_gang(int gpus, int nodes) { return nodes >= 1 && gpus >= nodes; }
inline constexpr const char* kGangRange = "1 or more nodes and no fewer GPUs";

}  // namespace glidepath::detail
