// SPDX-License-Identifier: Apache-2.0
// Values of the objective `learned` as a file: a line with the version, a line with their number,
// the values, and the CRC-32 of all that is before it.
#include <charconv>
#include <string>
#include <string_view>

#include <zlib.h>

#include "common/csv.hpp"
#include "common/require.hpp"
#include "plan/learned.hpp"

namespace glidepath {
namespace {

constexpr std::string_view kFirstLine = "glidepath learned 2";

std::string crc_line(std::string_view text) {
  const auto crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
  std::string digits(8, '0');
  for (std::size_t i = 0; i < 8; ++i) digits[7 - i] = "0123456789abcdef"[(crc >> (4 * i)) & 15];
  return "crc32 " + digits + "\n";
}

std::string_view next_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

std::vector<double> read_learned_values(const std::filesystem::path& path) {
  const std::string bytes = detail::read_file(path);
  const std::string shown = detail::shown_path(path);
  std::string_view rest = bytes;
  const std::string_view first = next_line(rest);
  if (first != kFirstLine) {
    detail::refuse_file(shown, ":1: '", detail::shown(first), "', expected '", kFirstLine, "'");
  }
  const std::size_t crc = bytes.rfind("crc32 ");
  if (crc == std::string::npos || bytes.substr(crc) != crc_line(bytes.substr(0, crc))) {
    detail::refuse_file(shown, ": the checksum is not that of the values: the file is damaged");
  }
  double count = 0;
  if (!detail::parse_number(next_line(rest), count) || count != detail::kLearnedValues) {
    detail::refuse_file(shown, ":2: expected ", detail::kLearnedValues, ", the number of values");
  }
  std::vector<double> values(detail::kLearnedValues);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string_view line = next_line(rest);
    if (!detail::parse_number(line, values[i])) {
      detail::refuse_file(shown, ":", i + 3, ": a value is '", detail::shown(line),
                          "', expected a number");
    }
  }
  if (!rest.starts_with("crc32 ")) {
    detail::refuse_file(shown, ":", values.size() + 3, ": more than ", values.size(), " values");
  }
  (void)detail::LearnedValues(values);
  return values;
}

void write_learned_values(std::span<const double> values, const std::filesystem::path& path) {
  if (values.empty()) {  // which a plan would take for those that are built in
    detail::refuse("write_learned_values: values is empty, expected ", detail::kLearnedValues,
                   " numbers");
  }
  (void)detail::LearnedValues(values);
  std::string text(kFirstLine);
  text += "\n" + std::to_string(values.size()) + "\n";
  for (const double value : values) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr) += "\n";
  }
  text += crc_line(text);
  detail::write_file(path, text);
}

}  // namespace glidepath
