// SPDX-License-Identifier: Apache-2.0
// What stands in a line that a training loop printed: numbers, and the words before them. Every
// scanner takes time in proportion to its line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath::detail {

/// Whether a line may have what is looked for, so that it is worth a closer look.
[[nodiscard]] bool has_hint(std::string_view line);
/// Whether a line is one of progress within an epoch, as Keras prints it.
[[nodiscard]] bool is_bar(std::string_view line);
/// Whether a line is one of a round of boosting, "[12]\ttrain-rmse:0.5", whatever its metric.
[[nodiscard]] bool is_round(std::string_view line);
/// Whether a line is one of a layer, which Darknet prints before that of their iteration.
[[nodiscard]] bool is_layer_of_darknet(std::string_view line);
/// Whether a line begins as the names of columns do.
[[nodiscard]] bool begins_with_counter(std::string_view line);

/// A line without colours, wrappings of numbers and marks of thousands, with signs of ASCII for
/// those that mean the same.
[[nodiscard]] std::string undressed(std::string_view line);
/// An undressed line with `;` for dates, times and progress bars, and with blanks between a counter
/// and its number.
[[nodiscard]] std::string cleared(std::string_view line);

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

/// The number of the process or machine that printed a line, where the line says so.
[[nodiscard]] std::optional<int> rank_of_line(std::string_view line);
/// The number in brackets that begins a line, "[0] step 1": it may be that of a process.
[[nodiscard]] std::optional<int> rank_in_brackets(std::string_view line);
/// The rank in "(0/4) Epoch 1", before a counter.
[[nodiscard]] std::optional<int> rank_of_fraction(std::string_view line);

/// The parts of some text between marks such as commas, brackets and two blanks.
[[nodiscard]] std::vector<std::string_view> cut(std::string_view text);

/// The word of data that are not trained on, in lower case, if one stands in the text.
[[nodiscard]] std::optional<std::string> held_out_in(std::string_view text);
[[nodiscard]] bool has_train(std::string_view text);
/// Whether a text is nothing but a word of data that are not trained on.
[[nodiscard]] bool is_held_out(std::string_view text);

/// Text without any of these letters around it.
[[nodiscard]] std::string_view without(std::string_view text, std::string_view letters);
[[nodiscard]] std::string lower(std::string_view text);

}  // namespace glidepath::detail
