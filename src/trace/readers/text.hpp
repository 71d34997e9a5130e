// SPDX-License-Identifier: Apache-2.0
// Text of logs as Python's readers have always taken it: what is blank, what is a number, how a
// value is quoted in a sentence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath::detail {

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// ASCII alone.
[[nodiscard]] inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] inline char lower_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
[[nodiscard]] inline bool is_letter(char c) {
  return lower_letter(c) >= 'a' && lower_letter(c) <= 'z';
}
[[nodiscard]] std::string lower(std::string_view text);

[[nodiscard]] inline char at_or_nul(std::string_view text, std::size_t at) {
  return at < text.size() ? text[at] : '\0';
}
/// Whether `text` has `word`, which is in lower case, at `at`.
[[nodiscard]] inline bool has_at(std::string_view text, std::size_t at, std::string_view word) {
  if (text.size() - std::min(at, text.size()) < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (lower_letter(text[at + i]) != word[i]) return false;
  }
  return true;
}
/// Whether the character before `at`, or the one there, is of a word.
[[nodiscard]] bool word_before(std::string_view text, std::size_t at);
[[nodiscard]] bool word_at(std::string_view text, std::size_t at);
/// Whether a text is nothing but digits, and has one.
[[nodiscard]] inline bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}
/// How many digits stand at `at`.
[[nodiscard]] std::size_t digits_at(std::string_view text, std::size_t at) noexcept;
/// Whether a name is one of some.
template <class Range>
[[nodiscard]] bool among(const Range& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

/// The number of a character of UTF-8.
[[nodiscard]] unsigned code_of(std::string_view character) noexcept;

/// Bytes of the blank at the front of some text, ASCII or Unicode's; 0 where none is.
[[nodiscard]] std::size_t blank_length(std::string_view text) noexcept;
/// Bytes of the blanks at the front of some text, of at most `most` of them.
[[nodiscard]] std::size_t leading_blanks(std::string_view text, std::size_t most) noexcept;
/// Text without the blanks around it.
[[nodiscard]] std::string_view stripped(std::string_view text) noexcept;
/// The parts of some text between marks: one more than there are marks.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char mark);
/// The words of some text that has blanks between.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

/// The first `count` characters of some UTF-8.
[[nodiscard]] std::string_view first_characters(std::string_view text, std::size_t count) noexcept;

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;
/// Text in which each byte that is not UTF-8 is the character that it is in Latin-1, so that names
/// which differ stay apart.
[[nodiscard]] std::string repaired(std::string_view text);

/// Bytes of what Python prints before the number of an array: `tensor(`, `Array(`, `np.float64(`,
/// `<tf.Tensor: shape=(), dtype=float32, numpy=`; 0 of other text.
[[nodiscard]] std::size_t wrapper_length(std::string_view text);
/// The number that a text spells: `1_000`, ` nan `, also wrapped, as in `tensor(0.5)` and
/// `Array(0.5, dtype=float32)`, or in per cent, as `12%` is 12.
[[nodiscard]] std::optional<double> number_in(std::string_view text);
/// "1.#INF", "1.#QNAN", as Windows prints what is no finite number: how many letters of them begin
/// a text, and their value; 0 of others.
[[nodiscard]] std::size_t windows_number(std::string_view text, double& value);

/// A duration in seconds: `12.5`, or `[D day[s],] H:MM:SS` as Python prints it; NaN of other text.
[[nodiscard]] double seconds_in(std::string_view text);
/// A date with a time, "2024-05-01T12:00:00.25+02:00", in seconds since 1970; one without a zone is
/// taken as UTC. NaN where it is none.
[[nodiscard]] double seconds_of_date(std::string_view text);

/// Whether every character of a text shows.
[[nodiscard]] bool is_printable(std::string_view text);
/// A text in quotes, with what cannot be printed as escapes.
[[nodiscard]] std::string repr(std::string_view text);
/// A number with so many significant digits.
[[nodiscard]] std::string general(double number, int digits = 6);
/// "1 row", "2 rows".
[[nodiscard]] std::string counted(std::size_t number, std::string_view what);

}  // namespace glidepath::detail
