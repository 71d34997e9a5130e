// SPDX-License-Identifier: Apache-2.0
// Logs as bytes and as lines: regular files, plain or gzip, with an end to what they may unpack to.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace glidepath::detail {

inline constexpr std::size_t kLongestLine = std::size_t{1} << 26;
inline constexpr std::size_t kMostUnpacked = std::size_t{1} << 30;
inline constexpr std::size_t kHeadBytes = 65536;

/// The bytes of a regular file, unpacked where it is gzip.
class LogFile {
 public:
  /// Throws IoError on what is no regular file: a pipe or a device may never end.
  explicit LogFile(const std::filesystem::path& file);
  LogFile(LogFile&&) noexcept;
  LogFile& operator=(LogFile&&) noexcept;
  ~LogFile();

  [[nodiscard]] bool packed() const noexcept;
  /// As many bytes as are there, at most `room`; 0 at the end. `damage()` tells of an end that
  /// should not be there.
  [[nodiscard]] std::size_t read(char* to, std::size_t room);
  [[nodiscard]] const std::string& damage() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Line feeds for all ends of lines: CR of old Macs, CR LF, and CR CR LF of a text that was
/// translated twice. A piece may end between them.
class LineEnds {
 public:
  /// Bytes that are left at the front of `text`.
  [[nodiscard]] std::size_t unite(char* text, std::size_t size) noexcept;

 private:
  bool returned_ = false;
};

/// The lines of a text, without their ends and a mark of byte order, as UTF-8: what is none is
/// replaced. Throws IoError with file and line on one longer than kLongestLine, on damage and on a
/// file that unpacks to more than kMostUnpacked.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& file);
  [[nodiscard]] bool next();
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  /// Whether the line has its end; the last one of a log that is written may go on.
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  /// The line's number, from 1.
  [[nodiscard]] std::size_t number() const noexcept { return number_; }

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void fill();

  std::string name_;
  LogFile file_;
  LineEnds ends_;
  std::string buffer_, repaired_;
  std::size_t at_ = 0, end_ = 0, number_ = 0, left_ = kMostUnpacked;
  bool ended_ = false, finished_ = true;
  std::string_view line_;
};

/// A file to its end, as UTF-8, without zeros that a crash left at its end.
[[nodiscard]] std::string read_text(const std::filesystem::path& file);

/// The same of a whole text; one with NUL is none and stays as it is.
void unite_ends(std::string& text);

/// Takes zeros out that a crash left before a row, so that it begins behind them. Those at the end
/// of the text stay: they are a row that was cut.
void drop_zeros(std::string& text);

/// How a file begins, unpacked where it is gzip and without a mark of byte order, as far as it can
/// be read, with line feeds for all ends of its lines. The first line of a table is whole, as its
/// columns may be many.
[[nodiscard]] std::string head_of(const std::filesystem::path& file);

/// Whether a text stops within a line, as when its writer was killed.
[[nodiscard]] bool is_cut(const std::filesystem::path& file);

}  // namespace glidepath::detail
