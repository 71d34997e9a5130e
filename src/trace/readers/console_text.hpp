// SPDX-License-Identifier: Apache-2.0
// What kind of line a training loop printed, and the line without what is no number of a metric:
// colours, dates, progress bars. Every scanner takes time in proportion to its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace glidepath::detail {

/// Whether a line may have what is looked for, so that it is worth a closer look.
[[nodiscard]] bool has_hint(std::string_view line);
/// Whether a line has a word that is too short to be looked for within others. It says enough only
/// where something has been counted: "mae" also stands in what a program says of its settings.
[[nodiscard]] bool has_short_hint(std::string_view line);
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

/// The parts of some text between marks such as commas, brackets and two blanks.
[[nodiscard]] std::vector<std::string_view> cut(std::string_view text);

/// Text without any of these letters around it.
[[nodiscard]] std::string_view without(std::string_view text, std::string_view letters);

}  // namespace glidepath::detail
