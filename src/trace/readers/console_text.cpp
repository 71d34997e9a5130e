// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_text.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include "common/csv.hpp"
#include "trace/readers/names.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMostDigits = 400;
constexpr std::size_t kMostExponent = 9;
constexpr std::size_t kMostGroups = 6;  // of thousands in a number
constexpr std::size_t kLongestBar = 300;
constexpr int kBeforeWorkers = -1;        // the rank of a master, beside workers from 0
constexpr int kAddresses = 256;           // in the last part of an address
constexpr std::size_t kLongestWord = 64;  // that may have digits behind a hyphen

char at_or_nul(std::string_view text, std::size_t at) { return at < text.size() ? text[at] : '\0'; }

/// Whether `text` has `word`, which is in lower case, at `at`.
bool has_at(std::string_view text, std::size_t at, std::string_view word) {
  if (text.size() - std::min(at, text.size()) < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (lower_letter(text[at + i]) != word[i]) return false;
  }
  return true;
}

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
  return std::none_of(std::begin(kSigns), std::end(kSigns), [&](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

bool is_word(std::string_view character) {
  const unsigned code = code_of(character);
  if (code >= 0x80) return is_letter_code(code);
  return is_digit(character[0]) || is_letter(character[0]) || character[0] == '_';
}

/// Whether the character before `at`, or the one there, is of a word.
bool word_before(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  std::size_t start = at - 1;
  while (start > 0 && at - start < 4 && (text[start] & 0xC0) == 0x80) --start;
  return is_word(text.substr(start, at - start));
}
bool word_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  return is_word(text.substr(at, std::max<std::size_t>(1, character_length(text.substr(at)))));
}

/// Bytes of up to `most` blanks.
std::size_t blanks_at(std::string_view text, std::size_t most) {
  std::size_t at = 0;
  for (; most > 0; --most) {
    const std::size_t length = blank_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

// Each of these is the length of what it finds at `at`, 0 where that is something else.

/// 05/31/2024, 31-05-2024, 31.05.2024, 20240531 before a time
std::size_t other_date_at(std::string_view text, std::size_t at) {
  const auto mark = [&](std::size_t i) { return at_or_nul(text, at + i); };
  if (word_before(text, at)) return 0;
  if (digits_at(text, at) == 2 && contains("/-.", text.substr(std::min(at + 2, text.size()), 1)) &&
      mark(5) == mark(2) && digits_at(text, at + 3) == 2 && digits_at(text, at + 6) == 4) {
    return 10;
  }
  if (digits_at(text, at) != 8 || (mark(0) != '1' && mark(0) != '2')) return 0;
  if (mark(8) != '_' && mark(8) != '-' && mark(8) != 'T') return 0;
  if (digits_at(text, at + 9) == 6 && !word_at(text, at + 15)) return 15;
  const bool time = digits_at(text, at + 9) == 2 && mark(11) == ':';
  return time ? 9 : 0;
}

/// 2024-01-31, 2024/1/31
std::size_t date_at(std::string_view text, std::size_t at) {
  if (const std::size_t other = other_date_at(text, at)) return other;
  if (digits_at(text.substr(0, std::min(at + 4, text.size())), at) < 4) return 0;
  std::size_t end = at + 4;
  for (int part = 0; part < 2; ++part) {
    if (at_or_nul(text, end) != '-' && at_or_nul(text, end) != '/') return 0;
    const std::size_t digits = std::min<std::size_t>(2, digits_at(text, end + 1));
    if (digits == 0) return 0;
    end += 1 + digits;
  }
  return end - at;
}

/// The zone or half of the day behind a time: Z, +01:00, +0100, " PM".
std::size_t zone_at(std::string_view text, std::size_t at) {
  const char mark = at_or_nul(text, at);
  if (mark == 'Z' && !word_at(text, at + 1)) return 1;
  if (text.substr(std::min(at, text.size())).starts_with(" AM") ||
      text.substr(std::min(at, text.size())).starts_with(" PM")) {
    return word_at(text, at + 3) ? 0 : 3;
  }
  if (mark != '+' && mark != '-') return 0;
  const bool colon = digits_at(text, at + 1) == 2 && at_or_nul(text, at + 3) == ':';
  const std::size_t length = colon && digits_at(text, at + 4) == 2 ? 6
                             : digits_at(text, at + 1) == 4        ? 5
                                                                   : 0;
  const bool ends = !word_at(text, at + length) && at_or_nul(text, at + length) != ':';
  return ends ? length : 0;
}

/// 12:34, 1:23:45.678
std::size_t time_at(std::string_view text, std::size_t at, std::size_t digits) {
  const auto two = [&](std::size_t from) {
    return at_or_nul(text, from) == ':' && is_digit(at_or_nul(text, from + 1)) &&
           is_digit(at_or_nul(text, from + 2));
  };
  const std::size_t minutes = at + digits;
  if (digits == 0 || digits > 9 || !two(minutes)) return 0;
  for (const bool seconds : {true, false}) {
    if (seconds && !two(minutes + 3)) continue;
    const std::size_t end = minutes + (seconds ? 6 : 3);
    const char mark = at_or_nul(text, end);
    const std::size_t fraction = mark == '.' || mark == ',' ? digits_at(text, end + 1) : 0;
    const bool has_fraction = fraction >= 1 && fraction <= 9;
    const std::size_t last = end + (has_fraction ? 1 + fraction : 0);
    if (has_fraction || !is_digit(mark)) return last + zone_at(text, last) - at;
  }
  return 0;
}

/// 12%|####    |
std::size_t percent_bar_at(std::string_view text, std::size_t at, std::size_t digits) {
  if (digits == 0 || digits > 3 || !has_at(text, at + digits, "%|")) return 0;
  std::size_t end = at + digits + 2;
  for (std::size_t left = kLongestBar; left > 0 && end < text.size() && text[end] != '|'; --left) {
    end += std::max<std::size_t>(1, character_length(text.substr(end)));
  }
  return at_or_nul(text, end) == '|' ? end + 1 - at : 0;
}

/// [=====>....]
std::size_t arrow_bar_at(std::string_view text, std::size_t at) {
  if (text[at] != '[') return 0;
  std::size_t end = at + 1;
  while (end < text.size() && contains("=>.", text.substr(end, 1))) ++end;
  const std::size_t length = end - at - 1;
  return length >= 9 && length <= kLongestBar && at_or_nul(text, end) == ']' ? end + 1 - at : 0;
}

/// ━━━╸
std::size_t line_bar_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kParts[] = {"━", "╸", "╺", "╴"};
  std::size_t count = 0;
  std::size_t end = at;
  while (count < kLongestBar &&
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return text.substr(end).starts_with(part); })) {
    end += 3;
    ++count;
  }
  return count >= 2 ? end - at : 0;
}

/// Dates, times and progress bars as `;`.
std::string without_noise(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    if (is_digit(text[at])) {
      const std::size_t digits = digits_at(text.substr(0, std::min(at + 10, text.size())), at);
      length = date_at(text, at);
      const bool time_follows = at_or_nul(text, at + length) == 'T';
      if (length > 0 && time_follows && is_digit(at_or_nul(text, at + length + 1))) ++length;
      if (length == 0) length = time_at(text, at, digits);
      if (length == 0) length = percent_bar_at(text, at, digits);
    } else if (text[at] == '[') {
      length = arrow_bar_at(text, at);
    } else if (text[at] == '\xE2') {
      length = line_bar_at(text, at);
    }
    out += length > 0 ? ';' : text[at];
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

/// "13epoch" as "epoch 13".
std::string without_glue(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t digits = is_digit(text[at]) ? digits_at(text, at) : 0;
    const bool alone =
        digits > 0 && digits <= 9 && (at == 0 || text[at - 1] != '.') && !word_before(text, at);
    std::size_t length = 0;
    for (const std::string_view word : {"epoch", "batch", "iter", "step"}) {
      if (!alone || !has_at(text, at + digits, word)) continue;
      const std::size_t end = at + digits + word.size();
      const std::size_t plural = has_at(text, end, "s") ? 1 : 0;
      if (word_at(text, end + plural)) continue;
      length = end + plural - at;
      out += text.substr(at + digits, word.size());
      out += ' ';
      out += text.substr(at, digits);
    }
    if (length == 0) {
      length = std::max<std::size_t>(1, digits);
      out += text.substr(at, length);
    }
    at += length;
  }
  return out;
}

/// "epoch001", "Iter_12", "ep#3" as a name and a number.
std::string without_stuck(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    const char first = lower_letter(text[at]);
    const bool begins = first == 'e' || first == 'i' || first == 's';
    if (begins && (at == 0 || !is_letter(text[at - 1]))) {
      for (const std::string_view word : {"epoch", "iter", "step", "ep"}) {
        if (!has_at(text, at, word)) continue;
        const std::size_t end = at + word.size();
        const char mark = at_or_nul(text, end);
        const std::size_t marks = mark == '_' || mark == '#' || mark == '-' ? 1 : 0;
        if (!is_digit(at_or_nul(text, end + marks))) continue;
        out += text.substr(at, word.size());
        out += ' ';
        length = word.size() + marks;
        break;
      }
    }
    if (length == 0) {
      out += text[at];
      length = 1;
    }
    at += length;
  }
  return out;
}

/// Letters of the exponent behind the letter at `at`, "e-04", with it; 0 where none is.
std::size_t exponent_at(std::string_view text, std::size_t at) {
  const char sign = at_or_nul(text, at + 1);
  const std::size_t before = sign == '-' || sign == '+' ? 2 : 1;
  const std::size_t digits = digits_at(text, at + before);
  return digits >= 1 && digits <= kMostExponent ? before + digits : 0;
}

/// Where a number may end whose digits end at `at`: with its exponent and unit, before what goes on
/// with neither a letter nor a digit.
std::optional<Number> ended(std::string_view text, std::size_t start, std::size_t mantissa) {
  constexpr std::string_view kUnits[] = {"ms", "us", "s", "m", "h", "it",
                                         "k",  "g",  "b", "%", "x", ""};
  std::size_t at = mantissa;
  const char mark = lower_letter(at_or_nul(text, at));
  // "4.2D+00" of Fortran and "4.2f0" of Julia
  const bool other = (mark == 'd' || mark == 'f') && contains(text.substr(start, at - start), ".");
  if (mark == 'e' || other) at += exponent_at(text, at);
  const std::size_t letter = other && at > mantissa ? mantissa - start : std::string_view::npos;
  for (const std::string_view unit : kUnits) {
    if (!has_at(text, at, unit)) continue;
    const std::size_t end = at + unit.size();
    const char next = at_or_nul(text, end);
    if (is_letter(next) || next == '_' || is_digit(next)) continue;
    if (next == '.' && is_digit(at_or_nul(text, end + 1))) continue;
    Number number{.start = start, .end = end, .unit = text.substr(at, unit.size())};
    std::string digits(text.substr(start, at - start));
    if (letter != digits.npos) digits[letter] = 'e';
    std::erase(digits, ',');  // of thousands
    // "Step: 12000. Time": the end of a sentence
    if (digits.ends_with('.') && (next == ' ' || next == '\0')) digits.pop_back();
    (void)parse_number(digits, number.value);
    number.whole = unit.empty() && digits.find_first_not_of("0123456789") == digits.npos;
    number.word = !is_digit(digits.back()) && digits.back() != '.';
    return number;
  }
  return {};
}

/// Digits of "1,234,567" at `at`; 0 where no thousands are marked, as in a list.
std::size_t thousands_at(std::string_view text, std::size_t at) {
  const std::size_t digits = digits_at(text, at);
  const bool marked = at == 0 || contains(" \t:=|/", text.substr(at - 1, 1));
  if (digits == 0 || digits > 3 || text[at] == '0' || !marked) return 0;
  std::size_t end = at + digits;
  while (at_or_nul(text, end) == ',' && digits_at(text, end + 1) == 3) end += 4;
  const bool list = at_or_nul(text, end) == ',' && is_digit(at_or_nul(text, end + 1));
  return list || end == at + digits ? 0 : end - at;
}

std::optional<Number> number_at(std::string_view text, std::size_t start) {
  std::size_t at = start;
  if (text[at] == '-' || text[at] == '+') ++at;
  double value = 0;
  if (const std::size_t length = windows_number(text.substr(at), value)) {
    return Number{.start = start, .end = at + length, .value = text[start] == '-' ? -value : value};
  }
  if (const std::size_t thousands = thousands_at(text, at)) {
    at += thousands;
    if (at_or_nul(text, at) == '.') at += 1 + digits_at(text, at + 1);
    return ended(text, start, at);
  }
  if (has_at(text, at, "infinity")) return ended(text, start, at + 8);
  if (has_at(text, at, "nan") || has_at(text, at, "inf")) return ended(text, start, at + 3);
  const std::size_t digits = digits_at(text, at);
  if (digits > kMostDigits) return {};
  if (digits == 0) {
    const std::size_t fraction = at_or_nul(text, at) == '.' ? digits_at(text, at + 1) : 0;
    if (fraction == 0) return {};
    return ended(text, start, at + 1 + fraction);
  }
  at += digits;
  if (at_or_nul(text, at) == '.') {
    const std::optional<Number> whole = ended(text, start, at + 1 + digits_at(text, at + 1));
    if (whole) return whole;
  }
  return ended(text, start, at);
}

/// Whether the word that ends before `at`, with its hyphens, has a letter.
bool has_letter_before(std::string_view text, std::size_t at) {
  for (std::size_t left = kLongestWord; left > 0 && at > 0; --left, --at) {
    const char c = text[at - 1];
    if (is_letter(c)) return true;
    if (!is_digit(c) && c != '_' && c != '-') return false;
  }
  return false;
}

/// Digits at `at` that belong to the name before them: "recall@10", "mAP@.5:.95", "mAP50-95", and
/// "Top-5" where its number follows; 0 of others.
std::size_t digits_of_name(std::string_view text, std::size_t at) {
  if (at < 2 || !(text[at - 1] == '@' || text[at - 1] == '-') || !has_letter_before(text, at - 1)) {
    return 0;
  }
  const auto number_at_mark = [&](std::size_t from) {
    std::size_t end = from + digits_at(text, from);
    if (at_or_nul(text, end) == '.') end += 1 + digits_at(text, end + 1);
    return end - from;
  };
  const auto value_follows = [&](std::size_t end) {
    const std::size_t next = text.find_first_not_of(" \t:=(|", end);
    return next > end && next != text.npos && contains("0123456789.-n", text.substr(next, 1));
  };
  if (text[at - 1] == '@') {
    std::size_t end = at + number_at_mark(at);
    const std::size_t far = end + 1 + number_at_mark(end + 1);
    const bool to_95 = at_or_nul(text, end) == ':' && text.substr(0, far).ends_with(".95");
    if (to_95 && value_follows(far)) end = far;
    return end - at;
  }
  const std::size_t digits = digits_at(text, at);
  if (digits == 0 || word_at(text, at + digits) || at_or_nul(text, at + digits) == '.') return 0;
  if (is_digit(text[at - 2])) return digits;
  std::size_t start = at - 1;
  while (start > 0 && at - start <= kLongestWord && is_letter(text[start - 1])) --start;
  const bool counter = counts_steps(lower(text.substr(start, at - 1 - start)));
  return !counter && value_follows(at + digits) ? digits : 0;
}

/// Calls `found(start, comma, end)` for each number with one comma, such as "4,28", but of a list.
template <class Found>
void each_comma(std::string_view line, const Found& found) {
  for (std::size_t at = line.find(','); at != line.npos; at = line.find(',', at + 1)) {
    std::size_t start = at;
    while (start > 0 && at - start < kMostDigits && is_digit(line[start - 1])) --start;
    const std::size_t fraction = at + 1 + digits_at(line, at + 1);
    if (start == at || fraction == at + 1) continue;
    const bool power = lower_letter(at_or_nul(line, fraction)) == 'e';
    const std::size_t end = fraction + (power ? exponent_at(line, fraction) : 0);
    const bool more = at_or_nul(line, end) == ',' && is_digit(at_or_nul(line, end + 1));
    const bool begins = start == 0 || contains(" \t:=|-+", line.substr(start - 1, 1));
    const bool unit = at_or_nul(line, end) == 's' && !word_at(line, end + 1);
    if (begins && !more && (unit || !word_at(line, end)) && at_or_nul(line, end) != '.')
      found(start, at, end);
  }
}

/// Bytes of "1.000" or "12.345.678" at `at` that may be a whole number with points between its
/// thousands, 0 of others.
std::size_t points_of_thousands_at(std::string_view text, std::size_t at) {
  const bool of_time = at > 1 && text[at - 1] == ':' && is_digit(text[at - 2]);
  const bool begins = at == 0 || contains(" \t:=|", text.substr(at - 1, 1));
  if (!begins || of_time) return 0;
  const std::size_t digits = digits_at(text, at);
  if (digits == 0 || digits > 3 || text[at] == '0') return 0;
  std::size_t end = at + digits;
  while (at_or_nul(text, end) == '.' && digits_at(text, end + 1) == 3) end += 4;
  const bool ends = !word_at(text, end) && at_or_nul(text, end) != '.';
  return ends && end > at + digits ? end - at : 0;
}

/// Bytes of "1_000", "1'000" or "1 000" with a blank that breaks no line at `at`, 0 of others.
/// Their digits alone are the number, unlike those of a comma, which may stand in a list.
std::size_t groups_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kMarks[] = {"_", "'", "\u2019", "\u202F", "\u00A0"};
  if (at > 0 && (word_before(text, at) || contains(".,'", text.substr(at - 1, 1)))) return 0;
  const std::size_t digits = digits_at(text, at);
  if (digits == 0 || digits > 3 || text[at] == '0') return 0;
  const std::string_view rest = text.substr(at + digits);
  const auto* const mark =
      std::find_if(std::begin(kMarks), std::end(kMarks),
                   [&](std::string_view each) { return rest.starts_with(each); });
  if (mark == std::end(kMarks)) return 0;
  std::size_t end = at + digits;
  std::size_t left = kMostGroups;
  while (left-- > 0 && text.substr(std::min(end, text.size())).starts_with(*mark) &&
         digits_at(text, end + mark->size()) == 3) {
    end += mark->size() + 3;
  }
  return end > at + digits && !word_at(text, end) ? end - at : 0;
}

/// What signs beyond ASCII stand for, as logs in Chinese and typographers write them; nothing of
/// others.
std::string_view plain_sign(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"\u2212", "-"}, {"\u00A0", " "}, {"\u3000", " "}, {"\uFF0C", ", "}, {"\u3001", ", "},
      {"\uFF1B", ";"}, {"\uFF1A", ":"}, {"\uFF08", "("}, {"\uFF09", ")"},  {"\uFF1D", "="}};
  if ((text[0] & 0x80) == 0) return {};
  for (const auto& [sign, plain] : kSigns) {
    if (text.starts_with(sign)) return plain;
  }
  return {};
}

/// The whole number at `at`, that of a process.
std::optional<int> rank_at(std::string_view line, std::size_t at) {
  const std::size_t digits = digits_at(line, at);
  if (digits == 0 || digits > 9 || word_at(line, at + digits)) return {};
  return static_cast<int>(number_in(line.substr(at, digits)).value_or(0));
}

/// The number of the machine that printed a line, where the line begins with its name: "node0:",
/// "10.0.0.3:", "[pod/job-worker-0/pytorch]".
std::optional<int> rank_of_node(std::string_view line, std::size_t start) {
  if (has_at(line, start, "[pod/")) {
    const std::size_t end = line.find('/', start + 5);
    std::size_t from = std::min(end, line.size());
    while (from > start && is_digit(line[from - 1])) --from;
    const std::string_view name = line.substr(start, from - start);
    if (end == line.npos || !name.ends_with('-')) return {};
    return name.ends_with("master-") ? kBeforeWorkers : rank_at(line, from);
  }
  std::size_t at = start;
  int parts = 0, last = 0;
  if (has_at(line, start, "node")) {
    at += 4;
    parts = 3;
  }
  for (; parts < 4 && is_digit(at_or_nul(line, at)); ++parts) {
    const int part = rank_at(line, at).value_or(kAddresses);
    if (parts < 3 && part >= kAddresses) return {};
    last = part + (parts == 3 ? kAddresses * last : 0);
    at += digits_at(line, at);
    if (parts < 3 && at_or_nul(line, at++) != '.') return {};
  }
  const bool named = parts == 4 && at_or_nul(line, at) == ':' && at_or_nul(line, at + 1) == ' ';
  return named ? std::optional(last) : std::nullopt;
}

/// Calls `found(word)` for each run of letters until it says yes.
template <class Found>
bool any_letters(std::string_view text, const Found& found) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end > at && found(text.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower_letter);
  return out;
}

std::string_view without(std::string_view text, std::string_view letters) {
  const std::size_t start = text.find_first_not_of(letters);
  if (start == text.npos) return {};
  return text.substr(start, text.find_last_not_of(letters) + 1 - start);
}

bool has_hint(std::string_view line) {
  static constexpr std::string_view kHints[] = {"loss",  "acc",   "auc",   "epoch", "err",  "step",
                                                "iter",  "train", "learn", "val",   "rew",  "ret",
                                                "rouge", "bleu",  "ppl",   "wer",   "f1",   "batch",
                                                "score", "cost",  "test:", "hella", "rate,"};
  constexpr auto kFirst = [] {
    std::array<bool, 256> first{};
    for (const std::string_view hint : kHints) {
      first[static_cast<unsigned char>(hint[0])] = true;
      first[static_cast<unsigned char>(hint[0] - 32)] = true;
    }
    return first;
  }();
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '|') return true;
    if (line[at] == '@' && digits_of_name(line, at + 1) > 0) return true;
    if (!kFirst[static_cast<unsigned char>(line[at])]) continue;
    if (has_at(line, at, "s:") && is_digit(at_or_nul(line, at + 2)) && !word_before(line, at)) {
      return true;  // "s:12 ..." of llm.c
    }
    for (const std::string_view hint : kHints) {
      if (has_at(line, at, hint)) return true;
    }
  }
  return is_round(line);
}

bool is_round(std::string_view line) {
  const std::size_t end = line.find("]\t");
  if (end == line.npos) return false;
  std::size_t start = end;
  while (start > 0 && is_digit(line[start - 1])) --start;
  return start < end && start > 0 && line[start - 1] == '[' &&
         line.find_first_not_of("[]:0123456789 ") == end + 1;
}

bool is_layer_of_darknet(std::string_view line) {
  line = stripped(line);
  const std::size_t avg = line.find("Avg ");
  return (line.starts_with("v3 (") || line.starts_with("Region ")) && avg != line.npos &&
         contains(line.substr(avg), "IOU: ");
}

bool is_bar(std::string_view line) {
  std::size_t at = blanks_at(line, 9);
  const std::size_t of = at + digits_at(line, at);
  const std::size_t end = of + 1 + digits_at(line, of + 1);
  if (of > at && of - at <= 9 && at_or_nul(line, of) == '/' && end > of + 1 && end - of <= 10 &&
      line.substr(std::min(end, line.size())).starts_with(" - ")) {
    return true;
  }
  if (contains(line, "━━") || contains(line, "- ETA: ") || contains(line, "ms/step") ||
      contains(line, "us/step")) {
    return true;
  }
  std::size_t marks = 0;
  for (at = 0; at < line.size(); ++at) {
    const bool mark = line[at] == '=' || line[at] == '>' || line[at] == '.';
    marks = line[at] == '[' ? 1 : mark && marks > 0 ? marks + 1 : 0;
    if (marks == 10) return true;
    const std::string_view rest = line.substr(at);
    if (is_digit(line[at]) &&
        (rest.substr(1).starts_with("s/step") || rest.substr(1).starts_with("s/epoch"))) {
      return true;
    }
  }
  return false;
}

bool begins_with_counter(std::string_view line) {
  std::size_t at = blanks_at(line, 20);
  if (line.substr(at).starts_with("\x1b[")) {
    const std::size_t end = at + 2 + std::min<std::size_t>(3, digits_at(line, at + 2));
    if (at_or_nul(line, end) == 'm') at = end + 1;
  }
  for (const std::string_view word : {"epoch", "step", "iter", "batch", "round"}) {
    if (has_at(line, at, word)) return true;
  }
  return false;
}

std::string undressed(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    std::size_t length = line[at] == '\0' || line[at] == '\b' ? 1 : 0;
    const std::string_view rest = line.substr(at);
    if (const std::string_view sign = plain_sign(rest); !sign.empty()) {
      out += sign;
      length = character_length(rest);
    } else if (const std::size_t groups = is_digit(line[at]) ? groups_at(line, at) : 0) {
      length = groups;
      std::copy_if(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(groups),
                   std::back_inserter(out), is_digit);
    } else if (rest.starts_with("\x1b[")) {
      std::size_t end = 2;
      while (end < 11 && (is_digit(at_or_nul(rest, end)) || at_or_nul(rest, end) == ';')) ++end;
      if (is_letter(at_or_nul(rest, end))) length = end + 1;
    } else if (rest.starts_with("tensor(")) {
      length = 7;
    } else if (rest.starts_with("tf.Tensor(")) {
      length = 10;
    } else if (rest.starts_with("np.")) {
      std::size_t end = 3;
      while (end < 12 && (is_letter(at_or_nul(rest, end)) || is_digit(at_or_nul(rest, end)) ||
                          at_or_nul(rest, end) == '_')) {
        ++end;
      }
      if (end > 3 && at_or_nul(rest, end) == '(') length = end + 1;
    }
    if (length == 0) out += line[at];
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

std::string cleared(std::string_view line) {
  return without_stuck(without_glue(without_noise(line)));
}

std::vector<Decimal> decimals_in(std::string_view line) {
  std::vector<Decimal> found;
  each_comma(line, [&](std::size_t start, std::size_t comma, std::size_t end) {
    const bool groups = end - comma == 4 && comma - start <= 3 && line[start] != '0';
    if (!groups) found.push_back({start, end, true});
  });
  if (found.empty()) return found;
  for (std::size_t at = line.find('.'); at != line.npos; at = line.find('.', at + 1)) {
    std::size_t start = at;
    while (start > 0 && at - start < kMostDigits && is_digit(line[start - 1])) --start;
    const std::size_t digits = digits_at(line, at + 1);
    if (start < at && digits > 0) found.push_back({start, at + 1 + digits, false});
  }
  std::sort(found.begin(), found.end(),
            [](const Decimal& a, const Decimal& b) { return a.start < b.start; });
  return found;
}

std::string with_points(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = is_digit(line[at]) ? points_of_thousands_at(line, at) : 0;
    const std::string_view part = line.substr(at, std::max<std::size_t>(1, length));
    std::copy_if(part.begin(), part.end(), std::back_inserter(out),
                 [&](char c) { return length == 0 || c != '.'; });
    at += part.size();
  }
  const std::string whole = out;
  each_comma(whole, [&](std::size_t, std::size_t comma, std::size_t) { out[comma] = '.'; });
  return out;
}

std::optional<Number> next_number(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    const char c = lower_letter(text[at]);
    if (!is_digit(c) && c != '-' && c != '+' && c != '.' && c != 'n' && c != 'i') continue;
    if (at > 0 && (text[at - 1] == '.' || word_before(text, at))) {
      while (is_digit(c) && is_digit(at_or_nul(text, at + 1))) ++at;  // of a word to its last digit
      continue;
    }
    if (is_digit(c) || c == '.') {
      if (const std::size_t of_name = digits_of_name(text, at)) {
        at += of_name - 1;
        continue;
      }
    }
    if (const std::optional<Number> number = number_at(text, at)) return number;
    while (is_digit(c) && is_digit(at_or_nul(text, at + 1))) ++at;
  }
  return {};
}

std::optional<int> rank_of_fraction(std::string_view line) {
  for (std::size_t at = line.find('('); at != line.npos; at = line.find('(', at + 1)) {
    const std::size_t digits = std::min<std::size_t>(5, digits_at(line, at + 1));
    const std::size_t of = at + 1 + digits;
    const std::size_t more = std::min<std::size_t>(5, digits_at(line, of + 1));
    const std::size_t end = of + 1 + more;
    if (digits == 0 || more == 0 || at_or_nul(line, of) != '/' || at_or_nul(line, end) != ')') {
      continue;
    }
    if (!begins_with_counter(line.substr(end + 1))) continue;
    return static_cast<int>(number_in(line.substr(at + 1, digits)).value_or(0));
  }
  return {};
}

std::optional<int> rank_in_brackets(std::string_view line) {
  const std::size_t start = blanks_at(line, 9);
  const std::size_t digits = digits_at(line, start + 1);
  if (at_or_nul(line, start) != '[' || digits > 9) return {};
  return line.substr(start + 1 + digits).starts_with("] ") ? rank_at(line, start + 1)
                                                           : std::nullopt;
}

std::optional<int> rank_of_line(std::string_view line) {
  const auto after = [&](std::size_t at, std::string_view word) -> std::optional<int> {
    if (!has_at(line, at, word)) return {};
    const char mark = at_or_nul(line, at + word.size());
    const bool marked = mark == ' ' || mark == '_' || mark == ':' || mark == '=';
    const std::size_t from = at + word.size() + (marked ? 1 : 0);
    return rank_at(line, from + (marked && at_or_nul(line, from) == ' ' ? 1 : 0));
  };
  std::size_t start = blanks_at(line, 9);
  if (const std::optional<int> node = rank_of_node(line, start)) return node;
  if (at_or_nul(line, start) == '[') ++start;
  if (has_at(line, start, "1,")) {  // "[1,0]<stdout>" of Open MPI
    if (const std::optional<int> rank = rank_at(line, start + 2)) return rank;
    start += 2;
  }
  for (const std::string_view word : {"rank", "default", "worker", "gpu", "proc", "process",
                                      "worker-", "trainer/", "xla", "mpirank"}) {
    if (const std::optional<int> rank = after(start, word)) return rank;
  }
  std::size_t end = start + digits_at(line, start);
  if (at_or_nul(line, end) == ']') ++end;
  if (line.substr(std::min(end, line.size())).starts_with("<stdout>")) end += 8;
  if (at_or_nul(line, end) == ':') {
    if (const std::optional<int> rank = rank_at(line, start)) return rank;
  }
  if (const std::optional<int> rank = rank_of_fraction(line)) return rank;
  // Within the line: "rank=1", "[RANK:0]", "cuda:1", "(RayTrainWorker pid=12, ip=…)".
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins = std::string_view("rlgcp").find(lower_letter(line[at])) != line.npos;
    if (!begins || word_before(line, at)) continue;
    for (const std::string_view word : {"rank", "local_rank", "global_rank", "cuda", "pid"}) {
      if (word == "pid" && !line.starts_with('(')) continue;
      if (const std::optional<int> rank = after(at, word)) return rank;
    }
  }
  return {};
}

std::vector<std::string_view> cut(std::string_view text) {
  constexpr std::string_view kMarks = "|,;\t(){}[]\"'<>:=";
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool genitive = rest.starts_with("'s ") && at > 0 && word_before(text, at);
    const bool to_95 = (rest.starts_with(":.95") || rest.starts_with(":0.95")) && at > 0 &&
                       is_digit(text[at - 1]);  // "mAP@.5:.95"
    const bool mark = kMarks.find(text[at]) != kMarks.npos && !genitive && !to_95;
    const std::size_t length = mark                                               ? 1
                               : rest.starts_with(" - ")                          ? 3
                               : rest.starts_with("  ") || rest.starts_with(". ") ? 2
                                                                                  : 0;
    if (length > 0) {
      parts.push_back(text.substr(start, at - start));
      start = at + length;
    }
    at += std::max<std::size_t>(1, length);
  }
  parts.push_back(text.substr(start));
  return parts;
}

bool is_held_out(std::string_view text) {
  const std::string word = lower(text);
  return word == "validating" || word == "evaluating" ||
         std::find(kHeldOut.begin(), kHeldOut.end(), word) != kHeldOut.end();
}

std::optional<std::string> held_out_in(std::string_view text) {
  std::optional<std::string> found;
  any_letters(text, [&](std::string_view word) {
    if (is_held_out(word)) found = lower(word);
    return found.has_value();
  });
  return found;
}

bool has_train(std::string_view text) {
  return any_letters(text, [](std::string_view word) {
    const std::string spelled = lower(word);
    return spelled == "train" || spelled == "training";
  });
}

}  // namespace glidepath::detail
