// SPDX-License-Identifier: Apache-2.0
// The reader under every table, on arbitrary text in memory: what it reads can be written down and
// is read again, a field is a number everywhere or nowhere, what is shown of it can be shown.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"
#include "common/csv.hpp"

namespace {

using namespace glidepath;

using Rows = std::vector<std::vector<std::string>>;

Rows read(std::string text) {
  detail::CsvReader csv("case.csv", std::move(text));
  const int columns = static_cast<int>(csv.columns().size());
  Rows rows{csv.columns()};
  for (int c = 0; c < columns; ++c) GLIDEPATH_HOLDS(csv.find(rows[0][c]) == c);
  while (csv.next()) {
    rows.emplace_back();
    for (int c = 0; c < columns; ++c) {
      rows.back().emplace_back(csv.text(c));
      double number = 0;
      if (!detail::parse_number(csv.text(c), number)) continue;
      GLIDEPATH_HOLDS(std::isnan(number) || csv.number(c) == number);
    }
  }
  return rows;
}

std::string written(const Rows& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (const std::string& field : row) {
      text += '"';
      for (const char c : field) text.append(c == '"' ? 2 : 1, c);
      text += "\",";
    }
    text.back() = '\n';
  }
  return text;
}

void check_shown(std::string_view text) {
  const std::string shown = detail::shown(text);
  GLIDEPATH_HOLDS(shown.size() <= 83);
  GLIDEPATH_HOLDS(std::ranges::none_of(
      shown, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_shown(text);
  Rows rows;
  fuzz::allow_refusal([&] { rows = read(text); });
  if (rows.empty()) return 0;
  const Rows again = read(written(rows));
  GLIDEPATH_HOLDS(again == rows);
  fuzz::allow_refusal([&] {
    detail::CsvReader csv("case.csv", text);
    while (csv.next()) (void)csv.integer(0);
  });
  return 0;
}
