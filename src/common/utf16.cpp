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

}  // namespace

bool is_utf16(std::string_view bytes) noexcept {
  return bytes.starts_with(kLittleEndian) || bytes.starts_with(kBigEndian);
}

std::string utf8_of_utf16(std::string_view bytes) {
  const std::size_t low = bytes.starts_with(kLittleEndian) ? 0 : 1;
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    return static_cast<unsigned char>(bytes[at + low]) |
           static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + 1 - low])) << 8U;
  };
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 2; at + 1 < bytes.size(); at += 2) {
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
