// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "common/csv.hpp"
#include "common/numbers.hpp"

namespace glidepath::detail {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kLongestWrapped = 40;

bool word_letter(char c) { return is_digit(c) || is_letter(c) || c == '_'; }

/// Whether a character beyond ASCII is a letter or a digit: punctuation, arrows, boxes, signs and
/// pictures are not.
bool is_letter_code(unsigned code) {
  struct Range {
    unsigned first, last;
  };
  constexpr Range kSigns[] = {
      {0x80, 0xA9},       {0xAB, 0xB1},       {0xB4, 0xB4},     {0xB6, 0xB8},
      {0xBB, 0xBB},       {0xBF, 0xBF},       {0xD7, 0xD7},     {0xF7, 0xF7},
      {0x2000, 0x206F},   {0x20A0, 0x20CF},   {0x2190, 0x245F}, {0x249C, 0x24E9},
      {0x2500, 0x2775},   {0x2794, 0x2BFF},   {0x2E00, 0x3004}, {0x3008, 0x3020},
      {0xE000, 0xF8FF},   {0xFE00, 0xFE6F},   {0xFEFF, 0xFF0F}, {0xFF1A, 0xFF20},
      {0xFF3B, 0xFF40},   {0xFF5B, 0xFF65},   {0xFFE0, 0xFFFF}, {0x1F000, 0x1F0FF},
      {0x1F10D, 0x1FBEF}, {0xE0000, 0x10FFFF}};
  return std::ranges::none_of(
      kSigns, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

bool is_of_word(std::string_view character) {
  const unsigned code = code_of(character);
  return code >= 0x80 ? is_letter_code(code) : word_letter(character[0]);
}

/// A number as Python's float() reads it: blanks around it, `_` between digits.
std::optional<double> plain_number(std::string_view text) {
  text = stripped(text);
  if (text.empty() || text.find('(') != text.npos) return {};  // "nan(1)" is C's alone
  std::string joined;
  if (text.find('_') != text.npos) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '_') {
        joined += text[i];
      } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) ||
                 !is_digit(text[i + 1])) {
        return {};
      }
    }
    text = joined;
  }
  double number = 0;
  if (!parse_number(text, number)) return {};
  return number;
}

/// "-1.#IND00" as a number, where that is all.
std::optional<double> number_of_windows(std::string_view text) {
  text = stripped(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const std::size_t length = windows_number(text, value);
  if (length == 0 || length != text.size()) return {};
  return negative ? -value : value;
}

/// Whether a text goes on with arguments by name to its closing bracket: ", device='cuda:0')".
bool is_keywords(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (!text.starts_with(',') || !text.ends_with(')') || equals == text.npos) return false;
  const std::string_view name = stripped(text.substr(1, equals - 1));
  return !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, word_letter);
}

/// What `tensor(…)`, `array([…])`, `Array(…, dtype=float32)`, `np.float64(…)` or `…%` has within.
std::optional<std::string_view> unwrapped(std::string_view text) {
  if (const std::size_t length = wrapper_length(text); length > 0) {
    std::string_view rest = text.substr(length);
    const bool list = rest.starts_with('[');
    if (list) rest.remove_prefix(1);
    const std::size_t end = rest.find_first_of("[](),>");
    if (end != rest.npos && end > 0 && end <= kLongestWrapped &&
        (contains("])>", rest.substr(end, 1)) || (!list && is_keywords(rest.substr(end))))) {
      return rest.substr(0, end);
    }
  }
  if (text.size() > 1 && text.size() <= kLongestWrapped + 1 && text.back() == '%') {
    return text.substr(0, text.size() - 1);
  }
  return {};
}

/// Whether a character shows: controls, blanks but the plain one, and marks of direction do not.
bool is_printed(unsigned code) {
  struct Range {
    unsigned first, last;
  };
  constexpr Range kHidden[] = {{0, 0x1F},        {0x7F, 0xA0},     {0xAD, 0xAD},
                               {0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F},
                               {0x3000, 0x3000}, {0xE000, 0xF8FF}, {0xFEFF, 0xFEFF}};
  return std::ranges::none_of(
      kHidden, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

/// Digits from `at`, which goes past them; none is no number.
std::string_view take_digits(std::string_view text, std::size_t& at) {
  const std::size_t start = at;
  at += digits_at(text, at);
  return text.substr(start, at - start);
}

}  // namespace

std::size_t wrapper_length(std::string_view text) {
  constexpr std::string_view kWrappers[] = {"tensor(", "tf.Tensor(", "array(", "Array(",
                                            "DeviceArray("};
  constexpr std::string_view kTensor = "<tf.Tensor: shape=(), dtype=", kNumpy = "numpy=";
  constexpr std::size_t kLongestType = 16;  // "float32, ", and of NumPy "np.float64("
  if (text.empty() || !contains("<ADant", text.substr(0, 1))) return 0;  // of each letter of a log
  for (const std::string_view wrapper : kWrappers) {
    if (text.starts_with(wrapper)) return wrapper.size();
  }
  if (text.starts_with(kTensor)) {
    const std::string_view type = text.substr(kTensor.size(), kLongestType + kNumpy.size());
    const std::size_t at = type.find(kNumpy);
    return at == type.npos ? 0 : kTensor.size() + at + kNumpy.size();
  }
  if (!text.starts_with("np.")) return 0;
  std::size_t end = 3;
  while (end < kLongestType && end < text.size() && word_letter(text[end])) ++end;
  return end > 3 && end < text.size() && text[end] == '(' ? end + 1 : 0;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower_letter);
  return out;
}

bool word_before(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  std::size_t start = at - 1;
  while (start > 0 && at - start < 4 && (text[start] & 0xC0) == 0x80) --start;
  return is_of_word(text.substr(start, at - start));
}
bool word_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  return is_of_word(text.substr(at, std::max<std::size_t>(1, character_length(text.substr(at)))));
}

std::size_t digits_at(std::string_view text, std::size_t at) noexcept {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

unsigned code_of(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(character[i]));
  };
  unsigned code = character.size() < 2 ? byte(0) : byte(0) & (0xFFU >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 63);
  return code;
}

std::size_t blank_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(0) <= 0x20) return byte(0) == 0x20 || (byte(0) >= 9 && byte(0) <= 13) || byte(0) >= 28;
  if (byte(0) == 0xC2) return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;
  if (byte(0) == 0xE1) return byte(1) == 0x9A && byte(2) == 0x80 ? 3 : 0;  // U+1680
  if (byte(0) == 0xE2 && byte(1) == 0x80) {                                // U+2000 to U+202F
    const unsigned last = byte(2);
    return (last >= 0x80 && last <= 0x8A) || last == 0xA8 || last == 0xA9 || last == 0xAF ? 3 : 0;
  }
  if (byte(0) == 0xE2) return byte(1) == 0x81 && byte(2) == 0x9F ? 3 : 0;  // U+205F
  if (byte(0) == 0xE3) return byte(1) == 0x80 && byte(2) == 0x80 ? 3 : 0;  // U+3000
  return 0;
}

std::size_t leading_blanks(std::string_view text, std::size_t most) noexcept {
  std::size_t at = 0;
  for (; most > 0; --most) {
    const std::size_t length = blank_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string_view stripped(std::string_view text) noexcept {
  while (const std::size_t length = blank_length(text)) text.remove_prefix(length);
  while (!text.empty()) {
    std::size_t length = 0;
    for (std::size_t last = 1; last <= std::min<std::size_t>(3, text.size()) && length == 0;
         ++last) {
      if (blank_length(text.substr(text.size() - last)) == last) length = last;
    }
    if (length == 0) break;
    text.remove_suffix(length);
  }
  return text;
}

std::vector<std::string_view> split_at(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(mark); end != text.npos; end = text.find(mark)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = blank_length(text.substr(at));
    if (length == 0) {
      ++at;
      continue;
    }
    if (at > start) words.push_back(text.substr(start, at - start));
    at += length;
    start = at;
  }
  if (text.size() > start) words.push_back(text.substr(start));
  return words;
}

std::string_view first_characters(std::string_view text, std::size_t count) noexcept {
  if (text.size() <= count) return text;
  std::size_t at = 0;
  for (; count > 0 && at < text.size(); --count) {
    at += std::max<std::size_t>(1, character_length(text.substr(at)));
  }
  return text.substr(0, at);
}

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length > 0) {
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[0]);
    out += static_cast<char>(0xC0U | byte >> 6U);
    out += static_cast<char>(0x80U | (byte & 0x3FU));
    text.remove_prefix(1);
  }
  return out;
}

std::size_t windows_number(std::string_view text, double& value) {
  if (text.size() < 3 || text[2] != '#') return 0;
  for (const std::string_view form : {"1.#inf", "1.#qnan", "1.#snan", "1.#ind"}) {
    const bool is = text.size() >= form.size() &&
                    std::equal(form.begin(), form.end(), text.begin(),
                               [](char wanted, char c) { return wanted == lower_letter(c); });
    if (!is) continue;
    value = form == "1.#inf" ? kInfinity : kNoNumber;
    return form.size() + digits_at(text, form.size());
  }
  return 0;
}

std::optional<double> number_in(std::string_view text) {
  while (true) {
    if (const std::optional<double> number = plain_number(text)) return number;
    if (const std::optional<double> number = number_of_windows(text)) return number;
    const std::optional<std::string_view> inner = unwrapped(text);
    if (!inner) return {};
    text = *inner;
  }
}

double seconds_in(std::string_view given) {
  const std::string_view text = stripped(given);
  std::array<double, 4> part{};  // days, hours, minutes, seconds
  const auto value = [](std::string_view digits) { return plain_number(digits).value_or(0); };
  const auto otherwise = [&] { return plain_number(given).value_or(kNoNumber); };
  std::size_t at = 0;
  std::string_view first = take_digits(text, at);
  if (first.empty()) return otherwise();
  for (const std::string_view unit : {" days, ", " day, "}) {
    if (!text.substr(at).starts_with(unit)) continue;
    part[0] = value(first);
    at += unit.size();
    first = take_digits(text, at);
    if (first.empty()) return otherwise();
    break;
  }
  part[1] = value(first);
  for (const int i : {2, 3}) {
    if (text.substr(at, 1) != ":") return otherwise();
    const std::size_t start = ++at;
    if (take_digits(text, at).size() != 2) return otherwise();
    if (i == 3 && text.substr(at, 1) == ".") {
      if (take_digits(text, ++at).empty()) return otherwise();
    }
    part[i] = value(text.substr(start, at - start));
  }
  if (at != text.size()) return otherwise();
  return part[0] * 86400 + part[1] * 3600 + part[2] * 60 + part[3];
}

double seconds_of_date(std::string_view given) {
  constexpr std::string_view kForm = "dddd-dd-dd dd:dd:dd";
  const std::string_view text = stripped(given);
  if (text.size() < kForm.size()) return kNoNumber;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool fits = kForm[i] == 'd'   ? is_digit(text[i])
                      : kForm[i] == ' ' ? text[i] == ' ' || text[i] == 'T'
                                        : text[i] == kForm[i];
    if (!fits) return kNoNumber;
  }
  const auto part = [&](std::size_t at, std::size_t size) {
    return static_cast<int>(plain_number(text.substr(at, size)).value_or(0));
  };
  const std::chrono::year_month_day day{std::chrono::year(part(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(part(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(part(8, 2)))};
  if (!day.ok()) return kNoNumber;
  const auto days = static_cast<double>(std::chrono::sys_days(day).time_since_epoch().count());
  double seconds = 86400 * days + 3600 * part(11, 2) + 60 * part(14, 2) + part(17, 2);
  std::size_t at = kForm.size();
  if (text.substr(at, 1) == "." || text.substr(at, 1) == ",") {
    const std::string_view digits = take_digits(text, ++at);
    seconds += plain_number("0." + std::string(digits)).value_or(0);
  }
  std::string_view zone = stripped(text.substr(at));
  if (zone.empty() || zone == "Z" || zone == "UTC") return seconds;
  if (zone[0] != '+' && zone[0] != '-') return kNoNumber;
  const double sign = zone[0] == '+' ? -1 : 1;
  at = 1;
  const std::string_view hours = take_digits(zone, at);
  if (zone.substr(at, 1) == ":") ++at;
  const std::string_view minutes = take_digits(zone, at);
  const bool joined = hours.size() == 4 && minutes.empty();
  if (at != zone.size() || (hours.size() != 2 && !joined)) return kNoNumber;
  seconds += sign * 3600 * plain_number(hours.substr(0, 2)).value_or(0);
  return seconds + sign * 60 * plain_number(joined ? hours.substr(2) : minutes).value_or(0);
}

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, character_length(text));
    if (!is_printed(code_of(text.substr(0, length)))) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string repr(std::string_view text) {
  const bool twice = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char mark = twice ? '"' : '\'';
  std::string out(1, mark);
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, character_length(text));
    const unsigned code = code_of(text.substr(0, length));
    if (text[0] == mark || code == '\\') {
      out += {'\\', text[0]};
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out += {'\\', code == '\n' ? 'n' : code == '\r' ? 'r' : 't'};
    } else if (!is_printed(code)) {
      std::array<char, 16> escape{};
      std::snprintf(escape.data(), escape.size(), code < 0x100 ? "\\x%02x" : "\\u%04x", code);
      out += escape.data();
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + mark;
}

std::string general(double number, int digits) {
  if (std::isnan(number)) return "nan";
  std::array<char, 64> text{};
  char* const end = text.data() + text.size();
  return {text.data(),
          std::to_chars(text.data(), end, number, std::chars_format::general, digits).ptr};
}

std::string counted(std::size_t number, std::string_view what) {
  return std::to_string(number) + " " + std::string(what) + (number == 1 ? "" : "s");
}

}  // namespace glidepath::detail
