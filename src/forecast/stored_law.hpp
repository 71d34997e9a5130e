// SPDX-License-Identifier: Apache-2.0
// A law as numbers, to be stored, and back.
#pragma once

#include <span>
#include <vector>

#include "forecast/law.hpp"

namespace glidepath::detail {

[[nodiscard]] std::vector<double> pack_law(const Law& law);
/// Throws InputError on numbers that pack_law() does not give.
[[nodiscard]] Law unpack_law(std::span<const double> numbers);

}  // namespace glidepath::detail
