// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace glidepath::detail {

/// Bytes at the front of a file that show whether it is UTF-16.
inline constexpr std::size_t kUtf16Front = 256;

/// Whether a file that begins so is UTF-16: with a mark of byte order, as PowerShell's > writes it,
/// or without one, where at least half of the characters are ASCII and none is a control.
[[nodiscard]] bool is_utf16(std::string_view front) noexcept;

/// The bytes of such a file as UTF-8, without the mark: U+FFFD for what is no character.
[[nodiscard]] std::string utf8_of_utf16(std::string_view bytes);

}  // namespace glidepath::detail
