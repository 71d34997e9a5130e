// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/table_header.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trace/readers/column_names.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/names.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kHeaderLines = 20;  // in which the header is: before it may be comments
constexpr std::size_t kLongestColumn = 200;
constexpr std::size_t kShortestList = 3;

/// The fields of one line; none where it is no row.
Fields split(std::string_view line, char mark) {
  std::optional<std::string_view> left = line;
  Splitter splitter([&] { return std::exchange(left, std::nullopt); }, mark);
  Fields fields;
  try {
    (void)splitter.row(fields);
  } catch (const NoRow&) {
    fields.clear();
  }
  return fields;
}

Header split_header(std::string_view line) {
  const bool comma = contains(line, ",");
  Header header;
  header.mark = contains(line, "\t") ? '\t' : contains(line, ";") && !comma ? ';' : ',';
  if (header.mark == ',' && !comma) {
    if (contains(line, "|")) {
      header.mark = kBar;
    } else if (contains(stripped(line), " ")) {
      header.mark = kBlanks;
    }
  }
  header.names = split(line, header.mark);
  if (header.mark == kBlanks) return header;
  for (std::size_t i = 0; i < header.names.size(); ++i) {
    std::string& name = header.names[i];
    name = stripped(name);
    if (i == 0 && name.size() > 1 && name[0] == '%') name.erase(0, 1);  // "%Iter" of Kaldi
    const bool of_pandas = name.starts_with("Unnamed: ");
    if (i == 0 && (name.empty() || of_pandas) && header.mark != kBar) name = "index";
    if (name.empty() || of_pandas) name = "column " + std::to_string(i + 1);
  }
  return header;
}

/// 2024-01-31
bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  return text.size() >= kForm.size() &&
         std::equal(kForm.begin(), kForm.end(), text.begin(),
                    [](char form, char c) { return form == 'd' ? is_digit(c) : form == c; });
}

/// Not part of a line of a text log, such as "iter 10: loss 3.1, time 120ms".
bool is_plain(std::string_view name) {
  if (first_characters(name, kLongestColumn).size() < name.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '|') return false;
    // The point in "3.4" behind a name, or a date before it.
    const bool fraction = i > 0 && i + 1 < name.size() && name[i] == '.' && is_digit(name[i - 1]) &&
                          is_digit(name[i + 1]) && contains(name.substr(0, i), " ");
    if (fraction || is_date(name.substr(i))) return false;
    if (name[i] != ':' && name[i] != '=') continue;
    const std::string_view rest = name.substr(i + 1);
    if (rest.empty() || name[i] == '=' || blank_length(rest) > 0) return false;
  }
  return true;
}

/// A line with `#` for each number that a name, a mark or a blank stands before, without blanks.
std::string form_of_line(std::string_view line) {
  std::string form;
  line = stripped(line);
  for (std::size_t at = 0; at < line.size();) {
    const bool begins = at == 0 || contains(" \t:=-#", line.substr(at - 1, 1));
    const std::size_t end = std::min(line.find_first_of(" \t,;|", at), line.size());
    if (begins && number_in(line.substr(at, end - at))) {
      form += '#';
      at = end;
    } else if (blank_length(line.substr(at)) > 0) {
      at += blank_length(line.substr(at));
    } else {
      form += line[at++];
    }
  }
  return form;
}

char list_mark(std::string_view line) {
  for (const char mark : {',', ';', '\t'}) {
    if (line.find(mark) != line.npos) return mark;
  }
  return kBlanks;
}

/// What pandas writes above a list with an index.
bool is_above_list(const Fields& cells) {
  return cells.size() == 2 && cells[0].empty() && cells[1] == "0";
}

/// Whether cells are a number, or one behind its step, which is after `before` and takes its place.
bool is_row_of_list(const Fields& cells, double& before) {
  if (cells.empty() || cells.size() > 2 || !number_in(cells.back())) return false;
  if (cells.size() == 1) return true;
  const std::optional<double> step = number_in(cells[0]);
  if (!step || *step != std::floor(*step) || !(*step > before)) return false;
  before = *step;
  return true;
}

}  // namespace

bool is_placements(const Fields& names) {
  return among(names, "step_time") && among(names, "sync_time") && among(names, "local_bsz");
}

bool is_monitor(const Fields& names) {
  return names.size() >= 3 && names[0] == "r" && names[1] == "l" && names[2] == "t";
}

bool is_header(const Fields& names) {
  const auto is_number = [](const std::string& name) { return number_in(name).has_value(); };
  if (among(names, "curve") || names.size() < 2 || std::ranges::any_of(names, is_number)) {
    return false;
  }
  const bool plain = std::ranges::all_of(names, is_plain);
  // A row of things and their scores, not of a run.
  if (among(names, "id") && counters(names).empty()) return false;
  return (plain && (is_monitor(names) || tells(names))) || is_placements(names);
}

Header header_in(const NextLine& next) {
  for (std::size_t count = 1; count <= kHeaderLines; ++count) {
    const std::optional<std::string_view> line = next();
    if (!line) break;
    const std::string_view text = stripped(*line);
    const bool comment = text.starts_with('#');
    const std::size_t start = line->find_first_not_of("# ");
    if (count == 1 && text.size() == 5 && text.starts_with("sep=")) continue;  // of Excel
    Header header = split_header(!comment ? *line : line->substr(std::min(start, line->size())));
    header.line = count;
    header.comment = comment;
    if (!text.empty() && (!comment || is_header(header.names))) return header;
  }
  return {};
}

Header header_of_list(const std::filesystem::path& file, const NextLine& next) {
  const std::string called = file.filename().string();
  std::string metric = called.substr(0, called.find('.'));
  if (!is_metric(metric)) metric.clear();
  Header header;
  std::size_t count = 0, rows = 0;
  double before = -1;
  bool zero = false;  // which pandas writes above a list, but a list may begin so
  for (; rows < kHeaderLines; ++count) {
    const std::optional<std::string_view> line = next();
    if (!line) break;
    const std::string_view text = stripped(*line);
    if (text.empty()) continue;
    Fields cells = split(text, list_mark(text));
    for (std::string& cell : cells) cell = stripped(cell);
    if (header.names.empty() && header.line == 0) {
      const bool named = cells.size() == 1 && is_metric(cells[0]);
      if (named) metric = cells[0];
      zero = !named && cells.size() == 1 && cells[0] == "0";
      if (named || zero || is_above_list(cells)) {
        header.line = count + 1;
        continue;
      }
    }
    if (!is_row_of_list(cells, before)) return {};
    if (zero && rows == 0 && !contains(cells[0], ".")) {  // a count
      header.line = 0;
      rows = 1;
    }
    if (header.names.empty()) {
      header.names = cells.size() == 1 ? Fields{metric} : Fields{"step", metric};
      header.mark = cells.size() == 1 ? ',' : list_mark(text);
    }
    if (cells.size() != header.names.size()) return {};
    ++rows;
  }
  return metric.empty() || rows < kShortestList ? Header{} : header;
}

bool has_width_of(const Header& header, std::string_view line) {
  return split(line, header.mark).size() == header.names.size();
}

bool is_comment(std::string_view line, const Header& header) {
  return header.comment && stripped(line).starts_with('#');
}

std::string first_row(const std::filesystem::path& file, const Header& header) {
  LineReader lines(file);
  for (std::size_t i = 0; i < header.line && lines.next(); ++i) {
  }
  while (lines.next()) {
    if (!is_comment(lines.line(), header)) return std::string(lines.line());
  }
  return {};
}

char mark_of_rows(std::string_view row, const Header& header) {
  if (!header.comment || header.mark != ',') return header.mark;
  const bool blanks = words_of(row).size() == header.names.size();
  return blanks && !contains(row, ",") ? kBlanks : header.mark;
}

bool is_between_bars(const Fields& cells) {
  return cells.size() < 2 || std::ranges::all_of(cells, [](std::string_view cell) {
           return cell.find_first_not_of("-=:+ \r") == cell.npos;
         });
}

bool are_barred_rows(const NextLine& next, const Header& header) {
  if (counters(header.names).empty()) return false;  // of models and their scores, say
  std::size_t rows = 0;
  bool narrow = false;  // which only a last row may be that was cut
  while (const std::optional<std::string_view> line = next()) {
    const Fields cells = split(*line, kBar);
    if (is_between_bars(cells)) continue;
    if (narrow || cells.size() > header.names.size()) return false;
    narrow = cells.size() < header.names.size();
    const bool numbers = std::ranges::any_of(
        cells, [](const std::string& cell) { return number_in(cell).has_value(); });
    if (++rows == 1 && (narrow || !numbers)) return false;
  }
  return rows > 0;
}

bool is_line_of_log(std::string_view line, std::string_view next) {
  const std::string form = form_of_line(line);
  return std::ranges::count(form, '#') >= 2 && form == form_of_line(next) &&
         stripped(line) != stripped(next);
}

}  // namespace glidepath::detail
