// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/hardware.hpp"

namespace glidepath::detail {

/// Share of a step that needs the whole card, from the activities. Throws InputError where they are
/// out of range.
[[nodiscard]] double whole_card_share(const Profile& alone);

}  // namespace glidepath::detail
