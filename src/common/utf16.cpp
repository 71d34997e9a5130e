// SPDX-License-Identifier: Apache-2.0
#include "common/utf16.hpp"

#include <cstddef>
#include <cstdint>

namespace glidepath::detail {
namespace {

constexpr std::string_view kLittleEndian = "\xFF\xFE", kBigEndian = "\xFE\xFF";
constexpr std::uint32_t kReplacement = 0xFFFD;

void put(std::string& text, std::uint32_t character) {
  const auto rest = [&](unsigned shift) {
    text += static_cast<char>(0x80U | ((character >> shift) & 0x3FU));
  };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0U | (character >> 6U));
    rest(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0U | (character >> 12U));
    rest(6);
    rest(0);
  } else {
    text += static_cast<char>(0xF0U | (character >> 18U));
    rest(12);
    rest(6);
    rest(0);
  }
}

bool has_mark(std::string_view bytes) noexcept {
  return bytes.starts_with(kLittleEndian) || bytes.starts_with(kBigEndian);
}

/// The unit at a byte, of which the lower half comes first (0) or second (1).
std::uint32_t unit_of(std::string_view bytes, std::size_t at, std::size_t low) noexcept {
  return static_cast<unsigned char>(bytes[at + low]) |
         static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + 1 - low])) << 8U;
}

/// Whether a file that begins so is UTF-16 without a mark, with its lower bytes at `low`.
bool is_unmarked(std::string_view front, std::size_t low) noexcept {
  constexpr std::uint32_t kEscape = 0x1B;  // of colours
  front = front.substr(0, kUtf16Front);
  std::size_t units = 0, plain = 0;
  for (std::size_t at = 0; at + 1 < front.size(); at += 2) {
    const std::uint32_t unit = unit_of(front, at, low);
    const bool blank = unit >= '\t' && unit <= '\r';
    if ((unit < ' ' && !blank && unit != kEscape) || (unit >= 0x7F && unit < 0xA0)) return false;
    ++units;
    plain += unit < 0x7F;
  }
  return units > 1 && 2 * plain >= units;
}

}  // namespace

bool is_utf16(std::string_view front) noexcept {
  return has_mark(front) || is_unmarked(front, 0) || is_unmarked(front, 1);
}

std::string utf8_of_utf16(std::string_view bytes) {
  const bool marked = has_mark(bytes);
  const bool little = marked ? bytes.starts_with(kLittleEndian) : is_unmarked(bytes, 0);
  const auto unit = [&](std::size_t at) { return unit_of(bytes, at, little ? 0 : 1); };
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = marked ? 2 : 0; at + 1 < bytes.size(); at += 2) {
    const std::uint32_t first = unit(at);
    const bool leads = first >= 0xD800 && first < 0xDC00;
    const std::uint32_t second = leads && at + 3 < bytes.size() ? unit(at + 2) : 0;
    if (second >= 0xDC00 && second < 0xE000) {
      put(text, 0x10000 + ((first - 0xD800) << 10U) + (second - 0xDC00));
      at += 2;
    } else {
      put(text, first >= 0xD800 && first < 0xE000 ? kReplacement : first);
    }
  }
  return text;
}

}  // namespace glidepath::detail
