// SPDX-License-Identifier: Apache-2.0
// The fields of the rows of a table, split as Python's csv does, whose module writes most of them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/readers/log_file.hpp"

namespace glidepath::detail {

using Fields = std::vector<std::string>;

inline constexpr char kBlanks = ' ';  // splits at any number of blanks
inline constexpr char kBar = '|';

/// The next line of a text, or nothing.
using NextLine = std::function<std::optional<std::string_view>()>;
/// The lines of a file.
[[nodiscard]] NextLine lines_of(LineReader& lines);
/// The lines of a text that is at hand.
[[nodiscard]] NextLine lines_of(std::string_view& text);

/// Why some lines are no row.
struct NoRow {
  std::string why;
};

/// Fields of the rows of a text.
class Splitter {
 public:
  Splitter(NextLine next, char mark) : next_(std::move(next)), mark_(mark) {}

  /// The next row, which quotes may carry over several lines; false after the last. Throws
  /// NoRow.
  bool row(Fields& fields);
  /// Lines that were read.
  [[nodiscard]] std::size_t lines() const noexcept { return lines_; }

 private:
  enum class State { start_row, start_field, plain, quoted, quote_in_quoted, line_end };

  std::optional<std::string_view> next_line();
  void save(Fields& fields);
  void add(char c);
  void split(std::string_view line, Fields& fields);
  void step(char c, Fields& fields);

  NextLine next_;
  char mark_;
  State state_ = State::start_row;
  std::string field_;
  std::size_t lines_ = 0;
};

}  // namespace glidepath::detail
