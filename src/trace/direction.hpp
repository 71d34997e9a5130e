// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/trace.hpp"

#include <string_view>

namespace glidepath::detail {

/// Refuses a number that is no direction; `what` is said to have it.
void refuse_unknown(Direction direction, std::string_view what);

}  // namespace glidepath::detail
