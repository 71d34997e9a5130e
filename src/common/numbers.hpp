// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>

namespace glidepath::detail {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Ids and counts are ints, positions in a vector are not.
constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace glidepath::detail
