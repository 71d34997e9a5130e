// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace glidepath::detail {

/// Whether a metric is a return or reward by its name: such a one is no percentage.
[[nodiscard]] bool is_return_by_name(std::string_view name);

/// By what a target is reached: "point" of evaluations and scores, else "curve".
[[nodiscard]] std::string_view reached_by_name(std::string_view name);

}  // namespace glidepath::detail
