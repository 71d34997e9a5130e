// SPDX-License-Identifier: Apache-2.0
// Which line of a text names the columns of a table, and what splits it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "trace/readers/table_fields.hpp"

namespace glidepath::detail {

/// Fields of columns, what splits them, and their line; 0 where none was found.
struct Header {
  Fields names{};
  char mark = ',';
  std::size_t line = 0;
  bool comment = false;  ///< behind a `#`, as are other lines that are no rows
};

/// Steps' times by placement, of AdaptDL's simulator.
[[nodiscard]] bool is_placements(const Fields& names);
/// Gym's monitor: return, length and time of each episode.
[[nodiscard]] bool is_monitor(const Fields& names);
/// Whether names are those of columns, one of them of steps or of a metric, none of curves.
[[nodiscard]] bool is_header(const Fields& names);

/// The header of a text, after comments; without names where there is none.
[[nodiscard]] Header header_in(const NextLine& next);
/// The header that a list of numbers lacks: below the name of a metric, or in a file that is called
/// after one, as "train_loss.csv" of numpy.savetxt or pandas, each alone or behind its step.
/// Without names where the text is no such list.
[[nodiscard]] Header header_of_list(const std::filesystem::path& file, const NextLine& next);
/// Whether a line has as many fields as a header.
[[nodiscard]] bool has_width_of(const Header& header, std::string_view line);
/// The first row below a header.
[[nodiscard]] std::string first_row(const std::filesystem::path& file, const Header& header);
/// What splits the rows below a header: blanks where a comment with commas names their columns.
[[nodiscard]] char mark_of_rows(std::string_view row, const Header& header);
/// Whether a line is no row but a comment, of which the header is one, too.
[[nodiscard]] bool is_comment(std::string_view line, const Header& header);
/// Whether a line of a table with bars is no row: a rule as of Markdown or of psql, or a line
/// without bars, such as psql's number of rows.
[[nodiscard]] bool is_between_bars(const Fields& cells);
/// Whether a header with bars names steps, and the lines below are rows of its width with numbers.
[[nodiscard]] bool are_barred_rows(const NextLine& next, const Header& header);
/// Whether a line that looks like names of columns is one of a text log, "epoch:1, loss:2.5", as
/// the next one says the same of other numbers.
[[nodiscard]] bool is_line_of_log(std::string_view line, std::string_view next);

}  // namespace glidepath::detail
