// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_numbers.hpp"

#include <algorithm>
#include <iterator>

#include "common/csv.hpp"
#include "trace/readers/names.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMaxDigits = 400;
constexpr std::size_t kMaxExponentDigits = 9;
constexpr std::size_t kMaxGroups = 6;     // of thousands in a number
constexpr std::size_t kLongestWord = 64;  // that may have digits behind a hyphen

/// Letters of the exponent behind the letter at `at`, "e-04", with it; 0 where none is.
std::size_t exponent_at(std::string_view text, std::size_t at) {
  const char sign = at_or_nul(text, at + 1);
  const std::size_t before = sign == '-' || sign == '+' ? 2 : 1;
  const std::size_t digits = digits_at(text, at + before);
  return digits >= 1 && digits <= kMaxExponentDigits ? before + digits : 0;
}

/// Where a number may end whose digits end at `at`: with its exponent and unit, before what goes on
/// with neither a letter nor a digit.
std::optional<Number> ended(std::string_view text, std::size_t start, std::size_t mantissa) {
  constexpr std::string_view kUnits[] = {"ms",  "us", "s", "m", "h", "it", "kit",
                                         "mit", "k",  "g", "b", "%", "x",  ""};
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
  if (digits > kMaxDigits) return {};
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

/// Calls `found(start, comma, end)` for each number with one comma, such as "4,28", but of a list.
template <class Found>
void each_comma(std::string_view line, const Found& found) {
  for (std::size_t at = line.find(','); at != line.npos; at = line.find(',', at + 1)) {
    std::size_t start = at;
    while (start > 0 && at - start < kMaxDigits && is_digit(line[start - 1])) --start;
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

}  // namespace

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

std::size_t groups_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kMarks[] = {"_", "'", "\u2019", "\u202F", "\u00A0"};
  if (at > 0 && (word_before(text, at) || contains(".,'", text.substr(at - 1, 1)))) return 0;
  const std::size_t digits = digits_at(text, at);
  if (digits == 0 || digits > 3 || text[at] == '0') return 0;
  const std::string_view rest = text.substr(at + digits);
  const auto* const mark =
      std::ranges::find_if(kMarks, [&](std::string_view each) { return rest.starts_with(each); });
  if (mark == std::end(kMarks)) return 0;
  std::size_t end = at + digits;
  std::size_t left = kMaxGroups;
  while (left-- > 0 && text.substr(std::min(end, text.size())).starts_with(*mark) &&
         digits_at(text, end + mark->size()) == 3) {
    end += mark->size() + 3;
  }
  return end > at + digits && !word_at(text, end) ? end - at : 0;
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
    while (start > 0 && at - start < kMaxDigits && is_digit(line[start - 1])) --start;
    const std::size_t digits = digits_at(line, at + 1);
    if (start < at && digits > 0) found.push_back({start, at + 1 + digits, false});
  }
  std::ranges::sort(found, [](const Decimal& a, const Decimal& b) { return a.start < b.start; });
  return found;
}

std::string with_points(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = is_digit(line[at]) ? points_of_thousands_at(line, at) : 0;
    const std::string_view part = line.substr(at, std::max<std::size_t>(1, length));
    std::ranges::copy_if(part, std::back_inserter(out),
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

}  // namespace glidepath::detail
