// SPDX-License-Identifier: Apache-2.0
// How console logs write numbers: "4.2D+00" of Fortran, "1,234,567", "4,28" with a decimal comma,
// "1.#INF" of Windows, and digits that belong to a name, as in "recall@10".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath::detail {

/// A number in a text: `text` from `start` to `end`, of which the unit is the last part.
struct Number {
  std::size_t start = 0, end = 0;
  double value = 0;
  std::string_view unit{};
  bool whole = false;  ///< nothing but digits
  bool word = false;   ///< nan or inf, perhaps of a sentence
};
/// A number with a point, "4.28", or one whose comma marks no thousands, "4,28": from where to
/// where.
struct Decimal {
  std::size_t start = 0, end = 0;
  bool comma = false;
};
/// Such numbers in the order of a line that has one with a comma; none of other lines.
[[nodiscard]] std::vector<Decimal> decimals_in(std::string_view line);
/// A line of decimal commas with points for them, and without those between thousands.
[[nodiscard]] std::string with_points(std::string_view line);
/// The first number from `from` on that is no part of a word.
[[nodiscard]] std::optional<Number> next_number(std::string_view text, std::size_t from);

/// Digits at `at` that belong to the name before them: "recall@10", "mAP@.5:.95", "mAP50-95", and
/// "Top-5" where its number follows; 0 of others.
[[nodiscard]] std::size_t digits_of_name(std::string_view text, std::size_t at);
/// Bytes of "1_000", "1'000" or "1 000" with a blank that breaks no line at `at`, 0 of others.
/// Their digits alone are the number, unlike those of a comma, which may stand in a list.
[[nodiscard]] std::size_t groups_at(std::string_view text, std::size_t at);

}  // namespace glidepath::detail
