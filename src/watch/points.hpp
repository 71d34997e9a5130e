// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace glidepath::detail {

inline constexpr std::size_t kMinWatchedPoints = 4;  ///< fewer allow no verdict by a forecast

}  // namespace glidepath::detail
