// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/log_file.hpp"

#include "glidepath/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/csv.hpp"
#include "common/interrupt.hpp"
#include "common/require.hpp"
#include "common/utf16.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 17;
constexpr std::size_t kLongestHeader = std::size_t{1} << 24;  // of the names of columns
constexpr int kGzip = 15 + 16;                                // as zlib calls the format

std::string said(int error) { return std::generic_category().message(error); }

std::string said_of(const z_stream& stream) {
  const std::string why = stream.msg == nullptr ? "unknown" : stream.msg;
  if (why == "incorrect data check") return "CRC check failed";
  if (why == "incorrect length check") return "Incorrect length of data produced";
  if (why == "incorrect header check") return "Not a gzipped file";
  return "Error -3 while decompressing data: " + why;
}

}  // namespace

/// A regular file that is open for reading.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& file)
      // With O_NONBLOCK a pipe does not wait for its writer.
      : handle_(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (handle_ < 0) refuse_file(shown_path(file), ": ", said(errno));
    struct stat about {};
    const bool known = ::fstat(handle_, &about) == 0;
    if (known && S_ISREG(about.st_mode)) return;
    const std::string why = known ? "not a regular file" : said(errno);
    ::close(handle_);
    refuse_file(shown_path(file), ": ", why);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(handle_); }

  std::size_t read(char* to, std::size_t room, std::string& damage) const {
    while (true) {
      const ssize_t got = ::read(handle_, to, room);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      damage = said(errno);
      return 0;
    }
  }
  void seek(off_t at, int from) const { (void)::lseek(handle_, at, from); }

 private:
  int handle_;
};

struct LogFile::State {
  explicit State(const std::filesystem::path& file) : from(file) {
    std::array<char, kUtf16Front> begin{};
    const std::string_view front(begin.data(), from.read(begin.data(), begin.size(), damage));
    packed = front.starts_with("\x1f\x8b");
    from.seek(0, SEEK_SET);
    if (packed && inflateInit2(&stream, kGzip) != Z_OK) throw std::bad_alloc();
    if (is_utf16(front)) text = utf8_of_utf16(whole(file));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (packed) inflateEnd(&stream);
  }

  /// More packed bytes, if there are.
  bool fill() {
    if (stream.avail_in > 0) return true;
    const std::size_t got = from.read(input.data(), input.size(), damage);
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  std::size_t unpack(char* to, std::size_t room) {
    stream.next_out = reinterpret_cast<Bytef*>(to);
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(room, 1U << 30));
    const uInt whole = stream.avail_out;
    while (stream.avail_out == whole && damage.empty()) {
      if (!fill()) {
        if (damage.empty() && !between) {
          damage = "Compressed file ended before the end-of-stream marker was reached";
        }
        break;
      }
      if (between) {  // zeros may follow a stream, and another stream
        if (*stream.next_in == 0) {
          ++stream.next_in, --stream.avail_in;
          continue;
        }
        inflateReset(&stream);
        between = false;
      }
      const int code = inflate(&stream, Z_NO_FLUSH);
      between = code == Z_STREAM_END;
      if (code == Z_MEM_ERROR) throw std::bad_alloc();
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) damage = said_of(stream);
    }
    return whole - stream.avail_out;
  }

  /// All bytes of a file in UTF-16: a character may end anywhere in what one call reads.
  std::string whole(const std::filesystem::path& file) {
    std::string bytes;
    for (std::size_t got = 1; got > 0;) {
      check_interrupt();
      const std::size_t filled = bytes.size();
      if (filled > kMostUnpacked) {
        refuse_file(shown_path(file), ": more than ", kMostUnpacked >> 20, " MiB of UTF-16");
      }
      bytes.resize(filled + kChunk);
      got = from.read(bytes.data() + filled, kChunk, damage);
      bytes.resize(filled + got);
    }
    return bytes;
  }

  std::size_t serve(char* to, std::size_t room) {
    const std::size_t count = text->copy(to, room, served);
    served += count;
    return count;
  }

  Descriptor from;
  std::string damage;
  std::optional<std::string> text{};  ///< of a file in UTF-16
  std::size_t served = 0;             ///< of the text
  bool packed = false;
  bool between = false;  ///< a stream has ended
  z_stream stream{};
  std::array<char, kChunk> input{};
};

LogFile::LogFile(const std::filesystem::path& file) : state_(std::make_unique<State>(file)) {}
LogFile::LogFile(LogFile&&) noexcept = default;
LogFile& LogFile::operator=(LogFile&&) noexcept = default;
LogFile::~LogFile() = default;

bool LogFile::packed() const noexcept { return state_->packed; }
const std::string& LogFile::damage() const noexcept { return state_->damage; }
std::size_t LogFile::read(char* to, std::size_t room) {
  if (!state_->damage.empty()) return 0;
  if (state_->text) return state_->serve(to, room);
  return state_->packed ? state_->unpack(to, room) : state_->from.read(to, room, state_->damage);
}

std::size_t LineEnds::unite(char* text, std::size_t size) noexcept {
  if (!returned_ && std::memchr(text, '\r', size) == nullptr) return size;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const char c = text[i];
    const bool end = c == '\r' || c == '\n';
    if (!(end && returned_)) text[kept++] = end ? '\n' : c;
    returned_ = c == '\r';
  }
  return kept;
}

LineReader::LineReader(const std::filesystem::path& file) : name_(shown_path(file)), file_(file) {}

void LineReader::refuse(const std::string& why) const {
  throw IoError(name_ + ":" + std::to_string(number_) + ": " + why);
}

void LineReader::fill() {
  buffer_.erase(0, at_);
  end_ -= at_;
  at_ = 0;
  buffer_.resize(std::max(end_ + kChunk, 2 * end_));
  std::size_t got = 0, kept = 0;
  do {  // of what was read only the end of a line that had begun may be left out
    got = file_.read(buffer_.data() + end_, buffer_.size() - end_);
    kept = ends_.unite(buffer_.data() + end_, got);
  } while (kept == 0 && got > 0);
  if (got == 0 && !file_.damage().empty()) refuse(file_.damage());
  end_ += kept;
  buffer_.resize(end_);
  ended_ = got == 0;
}

bool LineReader::next() {
  check_interrupt();
  ++number_;
  std::size_t searched = at_;
  std::size_t stop = buffer_.find('\n', searched);
  while (stop == buffer_.npos && !ended_ && end_ - at_ <= kLongestLine) {
    searched = end_ - at_;
    fill();
    stop = buffer_.find('\n', searched);
  }
  const std::size_t length = (stop == buffer_.npos ? end_ : stop + 1) - at_;
  if (length == 0) return false;
  if (file_.packed() && length > left_) {
    refuse(sentence("more than ", kMostUnpacked >> 20, " MiB unpacked"));
  }
  if (length > kLongestLine) {
    refuse(sentence("more than ", kLongestLine >> 20, " MiB in a line"));
  }
  left_ -= file_.packed() ? length : 0;
  line_ = std::string_view(buffer_).substr(at_, length);
  at_ += length;
  finished_ = line_.back() == '\n' || line_.back() == '\r';
  if (line_.starts_with(kByteOrderMark)) line_.remove_prefix(kByteOrderMark.size());
  while (!line_.empty() && (line_.back() == '\n' || line_.back() == '\r')) line_.remove_suffix(1);
  // A machine that lost its power leaves zeros where it wrote last; whoever goes on writes behind.
  const std::size_t written = line_.find_first_not_of('\0');
  if (written != line_.npos || finished_) line_.remove_prefix(std::min(written, line_.size()));
  if (!is_utf8(line_)) line_ = repaired_ = repaired(line_);
  return true;
}

std::string read_text(const std::filesystem::path& path) {
  LogFile file(path);
  std::string text;
  std::size_t filled = 0;
  while (true) {
    check_interrupt();
    text.resize(std::max(filled + kChunk, filled + filled / 2));
    const std::size_t got = file.read(text.data() + filled, text.size() - filled);
    if (got == 0) break;
    filled += got;
    if (file.packed() && filled > kMostUnpacked) {
      refuse_file(shown_path(path), ": more than ", kMostUnpacked >> 20, " MiB, unpacked");
    }
  }
  if (!file.damage().empty()) refuse_file(shown_path(path), ": ", file.damage());
  text.resize(filled);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  text.resize(text.find_last_not_of('\0') + 1);  // a crash may leave zeros at the end
  return is_utf8(text) ? text : repaired(text);
}

std::string head_of(const std::filesystem::path& path) {
  std::string head;
  try {
    LogFile file(path);
    const auto more = [&](std::size_t room) {
      const std::size_t filled = head.size();
      head.resize(filled + room);
      head.resize(filled + file.read(head.data() + filled, room));
      return head.size() > filled;
    };
    while (head.size() < kHeadBytes && more(kHeadBytes - head.size())) continue;
    const bool table =
        contains(head, ",") && head.find('\0') == head.npos && head[0] != '[' && head[0] != '{';
    unite_ends(head);
    std::size_t searched = 0;
    while (table && head.size() < kLongestHeader && head.find('\n', searched) == head.npos) {
      searched = head.size();
      if (!more(kHeadBytes)) break;
    }
    unite_ends(head);
    if (head.size() > kHeadBytes) head.resize(std::min(head.find('\n', kHeadBytes), head.size()));
  } catch (const IoError&) {  // whoever reads the file will say so
  }
  if (head.starts_with(kByteOrderMark)) head.erase(0, kByteOrderMark.size());
  return head;
}

void unite_ends(std::string& text) {
  if (text.find('\0') != text.npos) return;  // of bytes a return ends no line
  LineEnds ends;
  text.resize(ends.unite(text.data(), text.size()));
}

void drop_zeros(std::string& text) {
  if (text.find('\0') == text.npos) return;
  const auto ends = [](char c) { return c == '\n' || c == '\r'; };
  std::size_t kept = 0, at = 0;
  while (at < text.size()) {
    if (kept == 0 || ends(text[kept - 1])) {
      const std::size_t written = text.find_first_not_of('\0', at);
      if (written != text.npos) at = written;
    }
    text[kept++] = text[at++];
  }
  text.resize(kept);
}

bool is_cut(const std::filesystem::path& path) {
  const LogFile file(path);
  if (file.packed()) return false;
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  if (none || size < 2) return size == 1;
  const Descriptor from(path);
  std::array<char, kUtf16Front> begin{};
  std::string damage;
  const std::size_t front = from.read(begin.data(), begin.size(), damage);
  const bool utf16 = is_utf16({begin.data(), front});
  from.seek(-2, SEEK_END);
  std::array<char, 2> last{};
  if (from.read(last.data(), 2, damage) != 2) return false;
  const auto ends = [](char c) { return c == '\n' || c == '\r'; };
  return !ends(last[1]) && !(utf16 && ends(last[0]));  // where an end of line has a zero
}

}  // namespace glidepath::detail
