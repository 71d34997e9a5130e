// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace glidepath::detail {

/// Whether some bytes begin with a mark of byte order of UTF-16, as what PowerShell's > writes
/// does.
[[nodiscard]] bool is_utf16(std::string_view bytes) noexcept;

/// Such bytes as UTF-8, without the mark: U+FFFD for what is no character.
[[nodiscard]] std::string utf8_of_utf16(std::string_view bytes);

}  // namespace glidepath::detail
