// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace glidepath::detail {

inline constexpr std::size_t kMinWatchedPoints = 4;  ///< fewer tell nothing of the future

}  // namespace glidepath::detail
