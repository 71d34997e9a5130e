// SPDX-License-Identifier: Apache-2.0
#include "common/csv.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <unordered_set>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include "common/interrupt.hpp"
#include "common/names.hpp"
#include "common/utf16.hpp"

namespace glidepath::detail {
namespace {

bool blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string system_message(int error) { return std::generic_category().message(error); }

struct CloseGzip {
  void operator()(gzFile_s* handle) const { gzclose(handle); }
};
using GzipHandle = std::unique_ptr<gzFile_s, CloseGzip>;

/// Opens a pipe, which waits for its writer. A signal that comes between a look and a wait would
/// not end one without a limit.
GzipHandle open_pipe(const std::filesystem::path& file) {
  constexpr int kWaitMs = 50;
  const int pipe = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (pipe < 0) return nullptr;
  GzipHandle handle(gzdopen(pipe, "rb"));
  if (!handle) {
    ::close(pipe);
    return nullptr;
  }
  pollfd writer{.fd = pipe, .events = POLLIN, .revents = 0};
  while (::poll(&writer, 1, kWaitMs) <= 0) check_interrupt_now();
  ::fcntl(pipe, F_SETFL, O_RDONLY);
  return handle;
}

/// Opens, writes and closes; what failed of it, if anything.
std::error_code put(const std::filesystem::path& file, std::string_view bytes, const char* mode) {
  const auto failed = [] { return std::error_code(errno, std::generic_category()); };
  std::FILE* out = std::fopen(file.c_str(), mode);
  if (out == nullptr) return failed();
  std::error_code error;
  if (std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) error = failed();
  if (std::fclose(out) != 0 && !error) error = failed();
  return error;
}

}  // namespace

std::size_t character_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                             : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                             : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies above U+10FFFF.
  if (length == 3 && byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (length == 3 && byte(0) == 0xED && byte(1) > 0x9F) return 0;
  if (length == 4 && byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (length == 4 && byte(0) == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

std::string shown(std::string_view text, std::size_t longest) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = character_length(text);
    if (out.size() + std::max<std::size_t>(length, 4) > longest) return out + "...";
    if (length == 0 || first < 0x20 || first == 0x7F) {
      out += {'\\', 'x', kHex[first >> 4], kHex[first & 15]};
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string shown_path(const std::filesystem::path& file) { return shown(file.string(), 4096); }

std::string read_file(const std::filesystem::path& file) {
  if (file.empty()) refuse("the path of the file to read is empty");
  const std::string name = file.string();
  const auto broken = [&](const std::string& why) { refuse_file(shown_path(file), ": ", why); };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) broken("is a folder, not a file");
  if (std::filesystem::is_character_file(file, error)) broken("is a device, not a file");
  const bool pipe = std::filesystem::is_fifo(file, error);

  errno = 0;
  const GzipHandle handle = pipe ? open_pipe(file) : GzipHandle(gzopen(name.c_str(), "rb"));
  if (!handle) broken(errno != 0 ? system_message(errno) : "out of memory");
  std::string bytes;
  const auto known = std::filesystem::file_size(file, error);
  const std::size_t size = error ? 0 : static_cast<std::size_t>(known);
  // A folder may hold thousands of small files: memory as they need it.
  const std::size_t chunk = std::clamp(size + 1, std::size_t{1} << 12, std::size_t{1} << 22);
  constexpr std::size_t kMaxUnpacked = std::size_t{1} << 30;  // a bomb of 1 MiB unpacks to that
  gzbuffer(handle.get(), static_cast<unsigned>(std::min(chunk, std::size_t{1} << 18)));
  bytes.reserve(size + chunk);
  std::size_t filled = 0;
  while (true) {
    check_interrupt();
    bytes.resize(filled + chunk);
    const int got = gzread(handle.get(), bytes.data() + filled, static_cast<unsigned>(chunk));
    // A gzip stream that ends too early gives what it has, and its error only when asked.
    int code = Z_OK;
    const char* why = gzerror(handle.get(), &code);
    if (code == Z_BUF_ERROR) broken("the gzip stream ends too early");
    if (code == Z_ERRNO) {
      const int number = errno;
      check_interrupt_now();  // before the sentence: a signal may be why
      broken(system_message(number));
    }
    if (got < 0 || code < 0) broken(sentence("broken gzip stream: ", why));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled <= kMaxUnpacked) continue;
    const bool packed = gzdirect(handle.get()) == 0;
    if (packed || error) {  // a pipe may never end
      const char* const what = packed ? "unpacked" : "from a pipe";
      broken(sentence("more than ", kMaxUnpacked >> 20, " MiB, ", what));
    }
  }
  bytes.resize(filled);
  return is_utf16(bytes) ? utf8_of_utf16(bytes) : bytes;
}

void write_file(const std::filesystem::path& file, std::string_view bytes) {
  constexpr int kMaxDrafts = 1000;  // that other writers are at, or left when they were killed
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status before = fs::status(file, error);
  if (fs::exists(before) && !fs::is_regular_file(before)) {
    error = put(file, bytes, "wb");
  } else {
    const fs::path whole = fs::exists(before) ? fs::canonical(file, error) : file;  // not the link
    const std::string name = whole.filename().string().substr(0, 200);
    fs::path draft;
    int number = 0;
    do {  // another thread, or a process of another machine, may write the same file
      draft = whole.parent_path() /
              sentence(".", name, ".", static_cast<std::int64_t>(getpid()), "-", number, ".part");
      error = put(draft, bytes, "wbx");
    } while (error == std::errc::file_exists && ++number < kMaxDrafts);
    if (!error && fs::exists(before)) fs::permissions(draft, before.permissions(), error);
    if (!error) fs::rename(draft, whole, error);
    std::error_code absent;
    if (error && error != std::errc::file_exists) fs::remove(draft, absent);
  }
  if (error) refuse_file(shown_path(file), ": cannot be written: ", system_message(error.value()));
}

bool parse_number(std::string_view text, double& number) noexcept {
  text = trimmed(text);
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return false;
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (stop != end || error == std::errc::invalid_argument || text.empty()) return false;
  if (error == std::errc::result_out_of_range) {
    number = std::strtod(std::string(text).c_str(), nullptr);  // 0 or infinite, with its sign
  }
  return true;
}

bool LastCells::unlike(std::string_view cell) const noexcept {
  if (cell.empty() || shortest_ == kNone) return false;
  double number = 0;
  return cell.size() < shortest_ || !parse_number(cell, number);
}

CsvReader::CsvReader(const std::filesystem::path& file)
    : CsvReader(shown_path(file), read_file(file)) {}

CsvReader::CsvReader(std::string name, std::string text)
    : name_(std::move(name)), bytes_(std::move(text)) {
  if (bytes_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  if (!split_row()) refuse_file(name_, ": the file is empty");
  std::unordered_set<std::string_view> names;  // find() for each would be quadratic
  for (const std::string_view field : fields_) {
    const std::string_view column = trimmed(field);
    if (!names.insert(column).second) fail("two columns are named '", shown(column), "'");
    columns_.emplace_back(column);
  }
  read_.resize(columns_.size());
}

int CsvReader::find(std::string_view column) const noexcept {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) return -1;
  read_[static_cast<std::size_t>(found - columns_.begin())] = true;
  return static_cast<int>(found - columns_.begin());
}

std::vector<std::string> CsvReader::unread() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!read_[i]) out.push_back(columns_[i]);
  }
  return out;
}

int CsvReader::column(std::string_view column) const {
  const int index = find(column);
  if (index >= 0) return index;
  const std::string known = listed(columns_, [](const std::string& each) { return shown(each); });
  refuse_file(name_, ":1: no column '", shown(column), "', only ", shown(known, 200));
}

bool CsvReader::next() {
  check_interrupt();
  if (!split_row()) return false;
  if (is_log_ && unfinished_) {
    cut_ = fields_.size() < columns_.size() || last_cells_.unlike(fields_.back());
    if (cut_) return false;
  }
  if (fields_.size() != columns_.size()) {
    fail(fields_.size(), fields_.size() == 1 ? " field" : " fields", " where the header has ",
         columns_.size());
  }
  if (is_log_) last_cells_.add(fields_.back());
  return true;
}

bool CsvReader::split_row() {
  char* const begin = bytes_.data();
  const std::size_t size = bytes_.size();
  while (at_ < size && (begin[at_] == '\n' || begin[at_] == '\r')) {  // blank lines
    next_line_ += begin[at_] == '\n';
    ++at_;
  }
  if (at_ == size) return false;
  line_ = next_line_;
  fields_.clear();
  while (true) {
    const std::size_t start = at_;
    if (at_ < size && begin[at_] == '"') {
      // Unquoted in place: what is written never overtakes what is read.
      std::size_t write = ++at_;
      const std::size_t field = write;
      while (true) {
        if (at_ == size) {
          if (!is_log_) fail("a quote is never closed");
          unfinished_ = true;
          return true;
        }
        const char c = begin[at_++];
        next_line_ += c == '\n';
        if (c == '"') {
          if (at_ == size || begin[at_] != '"') break;
          ++at_;
        }
        begin[write++] = c;
      }
      fields_.emplace_back(begin + field, write - field);
      if (at_ < size && begin[at_] == '\r') ++at_;
      if (at_ < size && begin[at_] != ',' && begin[at_] != '\n') {
        fail("text after the closing quote of field ", fields_.size());
      }
    } else {
      while (at_ < size && begin[at_] != ',' && begin[at_] != '\n') ++at_;
      std::size_t end = at_;
      if ((at_ == size || begin[at_] == '\n') && end > start && begin[end - 1] == '\r') --end;
      fields_.emplace_back(begin + start, end - start);
    }
    unfinished_ = at_ == size;
    if (unfinished_) return true;
    if (begin[at_++] == '\n') {
      ++next_line_;
      return true;
    }
  }
}

double CsvReader::number(int column) const {
  double number = 0;
  if (!parse_number(text(column), number)) not_a("a number", column);
  return number;
}

double CsvReader::finite_number(int column) const {
  const double finite = number(column);
  if (!std::isfinite(finite)) not_a("finite", column);
  return finite;
}

std::int64_t CsvReader::integer(int column) const {
  const std::string_view digits = trimmed(text(column));
  std::int64_t integer = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), integer);
  if (error == std::errc::result_out_of_range) not_a("a whole number of 64 bits", column);
  if (error != std::errc{} || stop != digits.data() + digits.size()) {
    not_a("a whole number", column);
  }
  return integer;
}

void CsvReader::not_a(const char* kind, int column) const {
  const std::string_view found = text(column);
  const std::string& name = columns_[column];
  if (trimmed(found).empty()) fail(shown(name), " is empty");
  fail(shown(name), " '", shown(found), "' is not ", kind);
}

}  // namespace glidepath::detail
