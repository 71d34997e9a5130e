// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/require.hpp"

namespace glidepath::detail {

/// What editors of Windows put before text in UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The bytes of a file; one that starts as gzip does is unpacked. Throws IoError on anything that
/// is not a whole readable file.
[[nodiscard]] std::string read_file(const std::filesystem::path& file);

/// Puts the bytes where the file is, or leaves it as it was: a reader never meets a half of them.
/// What is no regular file, such as /dev/stdout, is written to and stays what it is. Throws
/// IoError.
void write_file(const std::filesystem::path& file, std::string_view bytes);

/// Length of the UTF-8 character at the front of some text, 0 if the bytes are not one.
[[nodiscard]] std::size_t character_length(std::string_view text) noexcept;

/// Text as a message may carry it: valid UTF-8 without control characters, cut where it is too
/// long.
[[nodiscard]] std::string shown(std::string_view text, std::size_t longest = 80);
[[nodiscard]] std::string shown_path(const std::filesystem::path& file);

/// The number a text spells, surrounding blanks ignored, or false. Knows nan and inf; what is too
/// large for a double is infinite.
[[nodiscard]] bool parse_number(std::string_view text, double& number) noexcept;

/// Tells the last cell of a file without a last end of line that is half of one.
class LastCells {
 public:
  /// The last cell of a row that is whole.
  void add(std::string_view cell) noexcept {
    if (!cell.empty() && cell.size() < shortest_) shortest_ = cell.size();
  }
  /// Whether a cell is unlike those added: shorter than each of them, or no number.
  [[nodiscard]] bool unlike(std::string_view cell) const noexcept;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t shortest_ = kNone;  ///< letters of the shortest
};

/// A CSV with a header line (RFC 4180: quotes, commas and line ends within quotes; LF or CRLF;
/// blank lines are skipped), read row by row. Every error is an IoError that starts with file:line.
class CsvReader {
 public:
  /// Reads the file and its header. Throws on an empty file or a column named twice.
  explicit CsvReader(const std::filesystem::path& file);
  /// The same of text; `name` stands for the file in messages.
  CsvReader(std::string name, std::string text);

  /// Index of a column, or -1.
  [[nodiscard]] int find(std::string_view column) const noexcept;
  /// Index of a column; throws, naming those that are there.
  [[nodiscard]] int column(std::string_view column) const;
  [[nodiscard]] const std::vector<std::string>& columns() const noexcept { return columns_; }
  /// The columns that neither function has given.
  [[nodiscard]] std::vector<std::string> unread() const;

  /// Goes to the next row; false after the last. Throws on a row of another length than the header.
  [[nodiscard]] bool next();

  /// From now on next() leaves out a last row that its writer did not finish, as that of a log.
  void leave_out_cut_row() noexcept { is_log_ = true; }
  /// Whether the current row has no end of line: it may be cut.
  [[nodiscard]] bool unfinished() const noexcept { return unfinished_; }
  /// Whether next() left the last row out.
  [[nodiscard]] bool cut() const noexcept { return cut_; }

  /// The first line of the current row, from 1.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  /// Fields of the current row, valid until the reader dies.
  [[nodiscard]] std::string_view text(int column) const { return fields_[column]; }
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] double finite_number(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;

  /// Throws an IoError about the current row.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    refuse_file(name_, ":", line_, ": ", parts...);
  }

 private:
  [[nodiscard]] bool split_row();
  [[noreturn]] void not_a(const char* kind, int column) const;

  std::string name_;  ///< of the file, as messages show it
  std::string bytes_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;       ///< of the current row's first line, from 1
  std::size_t next_line_ = 1;  ///< of the first line not yet read
  std::vector<std::string> columns_;
  mutable std::vector<bool> read_;  ///< of each column, whether it was given
  std::vector<std::string_view> fields_;
  bool is_log_ = false, unfinished_ = false, cut_ = false;
  LastCells last_cells_;  ///< of a log
};

}  // namespace glidepath::detail
