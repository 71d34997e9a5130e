// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/hardware.hpp"

#include <string_view>

namespace glidepath::detail {

/// Refuses what is no value of Sharing; `what` is said to have it.
void refuse_unknown(Sharing sharing, std::string_view what);

/// Refuses activities and a memory that are out of range; `verb` is said to have been given them.
void refuse_bad(const Profile& alone, std::string_view verb);

/// Share of a step that needs the whole card, from the activities. Throws InputError where they are
/// out of range.
[[nodiscard]] double whole_card_share(const Profile& alone);

}  // namespace glidepath::detail
