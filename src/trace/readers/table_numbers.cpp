// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/table_numbers.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "trace/readers/log_file.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kThousands = 3;  // digits between the marks of a large number

/// A cell with a point for its only comma, where that is a number.
std::optional<std::string> with_point(std::string_view cell) {
  const std::size_t comma = cell.find(',');
  if (comma == cell.npos) return {};
  std::string number(cell);
  number[comma] = '.';
  if (!number_in(number)) return {};
  return number;
}

/// A cell without the marks between its thousands, such as "1,234,567.8"; nothing of others.
std::optional<std::string> without_thousands(std::string_view cell, char mark) {
  const std::size_t sign = cell.starts_with('-') || cell.starts_with('+') ? 1 : 0;
  std::size_t at = sign + digits_at(cell, sign);
  if (at == sign || at > sign + kThousands || cell[sign] == '0') return {};
  std::string number(cell.substr(0, at));
  while (at < cell.size() && cell[at] == mark && digits_at(cell, at + 1) == kThousands) {
    number += cell.substr(at + 1, kThousands);
    at += 1 + kThousands;
  }
  if (number.size() == at || contains(cell.substr(at), std::string_view(&mark, 1))) return {};
  const std::string_view rest = cell.substr(at);
  if (!rest.empty() && !contains(".,eE", rest.substr(0, 1))) return {};
  return number + std::string(rest);
}

/// Whether the comma of a cell can only stand for a point: no three digits follow it, as behind
/// thousands, or none of 1 to 999 stands before it.
bool has_decimal_comma(std::string_view cell) {
  if (!with_point(cell)) return false;
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  const std::size_t comma = cell.find(',');
  return comma == 0 || comma > kThousands || cell[0] == '0' ||
         digits_at(cell, comma + 1) != kThousands || cell.size() != comma + 1 + kThousands;
}

}  // namespace

void clear_marks(std::string& cell, Commas commas, bool counts) {
  const bool decimal = commas == Commas::decimal;
  if (!decimal || counts || contains(cell, ",")) {
    std::optional<std::string> number = without_thousands(cell, decimal ? '.' : ',');
    if (number) cell = *std::move(number);
  }
  if (!decimal) return;
  if (std::optional<std::string> number = with_point(cell)) cell = *std::move(number);
}

bool has_decimal_commas(const std::filesystem::path& file, const Header& header) {
  if (header.mark != ';' && header.mark != '\t' && header.mark != kBar) return false;
  LineReader lines(file);
  while (lines.next()) {
    if (lines.number() <= header.line || !contains(lines.line(), ",")) continue;
    for (std::string_view cell : split_at(lines.line(), header.mark)) {
      cell = stripped(cell);
      if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"')) {
        cell = stripped(cell.substr(1, cell.size() - 2));
      }
      if (has_decimal_comma(cell)) return true;
    }
  }
  return false;
}

}  // namespace glidepath::detail
