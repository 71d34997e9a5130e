// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/console_table.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "common/csv.hpp"
#include "trace/readers/column_names.hpp"
#include "trace/readers/console_names.hpp"
#include "trace/readers/console_text.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kRowLetters = 1000;  // letters of a row that are looked at
constexpr std::string_view kYolo[] = {"box", "obj", "cls", "total", "l1"};
// What YOLO's table of classes counts before its scores.
constexpr std::size_t kCountsOfClasses = 3;
// Kinds of annotations by COCO, and what stands on a line that names one.
constexpr std::string_view kKinds[] = {"bbox", "segm", "keypoints"};
constexpr std::string_view kNamesKind[] = {"IoU metric: ", "Evaluate annotation type *",
                                           "Evaluating "};
constexpr std::string_view kRowNumber = "#";  // of spaCy, whose epochs are called E

/// The cells of a line between rules, if it is one.
std::vector<std::string_view> cells_of(std::string_view text) {
  text = stripped(text);
  if (text.size() < 2 || !text.starts_with('|') ||
      first_characters(text, kRowLetters).size() < text.size()) {
    return {};
  }
  text.remove_prefix(1);
  if (text.ends_with('|')) text.remove_suffix(1);
  std::vector<std::string_view> cells = split_at(text, '|');
  for (std::string_view& cell : cells) cell = stripped(cell);
  return cells;
}

bool is_rule(const std::vector<std::string_view>& cells) {
  return std::ranges::all_of(cells, [](std::string_view cell) {
    return !cell.empty() && cell.find_first_not_of("-=:+ ") == cell.npos;
  });
}

/// Whether cells are the names of columns, one of which counts; of two the other is a metric.
bool are_names(const std::vector<std::string_view>& cells) {
  const auto count = [&](const auto& is) { return std::ranges::count_if(cells, is); };
  const auto is_number = [](std::string_view cell) { return number_in(cell).has_value(); };
  if (cells.size() < 2 || count(is_number) > 0) return false;
  if (count([](std::string_view cell) { return counter_in(cell).has_value(); }) == 0) return false;
  return cells.size() > 2 || count([](std::string_view cell) { return is_metric(cell); }) == 1;
}

/// Fields with at least two blanks between, whose names may have one.
std::vector<std::string_view> wide_fields(std::string_view text) {
  std::vector<std::string_view> fields;
  for (text = stripped(text); !text.empty();) {
    const std::size_t end = std::min(text.find("  "), text.find('\t'));
    fields.push_back(stripped(text.substr(0, end)));
    text = end == text.npos ? std::string_view() : stripped(text.substr(end));
  }
  return fields;
}

/// What stands behind a name up to a bar or a bracket: "all" of "area=   all |".
std::string_view said_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == text.npos) return {};
  text.remove_prefix(at + name.size());
  return stripped(text.substr(0, text.find_first_of("|]")));
}

/// The name of a number of COCO by what is said of it: "AP75", "AP small", "recall@100".
std::string name_of_coco(std::string_view said, bool recall) {
  const std::string_view overlap = said_behind(said, "IoU="), area = said_behind(said, "area=");
  std::string name = recall ? "recall" : "AP";
  if (overlap.starts_with("0.") && overlap.size() == 4) name += overlap.substr(2);
  if (area != "all") return name + " " + std::string(area);
  const std::vector<std::string_view> most = words_of(said_behind(said, "maxDets="));
  return recall && !most.empty() ? name + "@" + std::string(most[0]) : name;
}

bool are_digits(std::string_view field) { return field.size() <= 15 && all_digits(field); }

/// Fields with blanks between, but for those within brackets; none where brackets are not closed.
std::vector<std::string_view> fields_and_lists(std::string_view text) {
  std::vector<std::string_view> fields;
  for (text = stripped(text); !text.empty(); text = stripped(text)) {
    const bool list = text.starts_with('[');
    const std::size_t end = list ? text.find(']') : text.find_first_of(" \t");
    if (list && end == text.npos) return {};
    fields.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), list ? end + 1 : end));
    if (list) fields.back().remove_prefix(1);
  }
  return fields;
}

/// Whether fields are a line of names of which the first counts.
bool begins_table(const std::vector<std::string_view>& fields) {
  const auto is_name = [](std::string_view field) {
    const bool digit = field.find_first_of("0123456789") != field.npos;
    return !digit || (is_letter(field[0]) && field.find_first_of(":=,/[(") == field.npos);
  };
  if (fields.size() < 3 || !std::ranges::all_of(fields, is_name)) return false;
  return counter_in(fields[0]).has_value() || (fields[0] == "E" && fields[1] == kRowNumber);
}

}  // namespace

std::optional<Line> TableRows::ruled(std::string_view text) {
  const std::vector<std::string_view> cells = cells_of(text);
  const bool below = std::exchange(below_names_, false);
  if (cells.empty()) return {};
  if (are_names(cells)) {
    ruled_.assign(cells.begin(), cells.end());
    below_names_ = true;
    return Line{};
  }
  if (ruled_.empty()) return {};
  if (is_rule(cells)) return Line{};
  if (cells.size() != ruled_.size()) return {};
  Line line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::optional<std::string> counter = counter_in(ruled_[i]);
    std::optional<double> value = number_in(cells[i]);
    if (!value && counter) value = in_thousands(cells[i]);
    if (!value) continue;
    (counter ? line.counters : line.cells).put(counter.value_or(ruled_[i]), *value);
  }
  if (line.counters.empty() && line.cells.empty() && below) {  // names of two lines: MATLAB
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!cells[i].empty()) ruled_[i] += " " + std::string(cells[i]);
    }
    return Line{};
  }
  if (line.counters.empty()) return {};
  line.text = shown_line(text);
  return line;
}

std::optional<Line> TableRows::of_classes(std::string_view text) {
  const std::string_view first = stripped(text).substr(0, 5);
  const bool names = first == "Class";
  if (!names && (of_classes_.empty() || !(first.starts_with("all ") || first == "all\t")))
    return {};
  const std::string plain = undressed(first_characters(text, kRowLetters));
  std::vector<std::string_view> fields = words_of(plain);
  if (names) {
    if (fields.size() <= kCountsOfClasses || fields[1] != "Images") return {};
    of_classes_.assign(kCountsOfClasses, "");
    std::string part;
    for (std::size_t i = kCountsOfClasses; i < fields.size() && !contains(fields[i], "%"); ++i) {
      const std::size_t open = fields[i].find('(');  // "Box(P", "Mask(P"
      if (open != plain.npos) part = fields[i].substr(0, open);
      if (open != plain.npos) fields[i].remove_prefix(open + 1);
      std::string name(without(fields[i], "():"));
      if (name == "P") name = "precision";
      if (name == "R") name = "recall";
      if (!part.empty() && part != "Box") name.insert(0, part + " ");
      of_classes_.push_back(std::move(name));
    }
    return Line{};
  }
  if (fields.size() != of_classes_.size()) return {};
  Line line;
  // A second row of an epoch is that of the best one, which is tried again at the end.
  if (std::exchange(scored_, true)) return line;
  for (std::size_t i = kCountsOfClasses; i < fields.size(); ++i) {
    if (const std::optional<double> value = number_in(fields[i]))
      line.cells.put(of_classes_[i], *value);
  }
  line.text = shown_line(text);
  return line;
}

std::optional<Line> TableRows::of_coco(std::string_view text) {
  for (const std::string_view before : kNamesKind) {
    const std::size_t at = text.find(before);
    if (at == text.npos) continue;
    const std::string_view rest = text.substr(at + before.size());
    for (const std::string_view kind : kKinds) {
      if (rest.starts_with(kind)) kind_ = std::string(kind) + " ";
    }
  }
  const std::size_t precision = text.find("(AP) @["), recall = text.find("(AR) @[");
  const std::size_t at = std::min(precision, recall);
  if (at == text.npos || text.size() - at > kRowLetters) return {};
  const std::string_view said = text.substr(at);
  const std::size_t end = said.find("] =");
  const std::optional<double> value =
      end == said.npos ? std::nullopt : number_in(stripped(said.substr(end + 3)));
  if (!value || said_behind(said, "area=").empty()) return {};
  Line line;
  if (*value >= 0) line.cells.put(kind_ + name_of_coco(said, recall < precision), *value);
  line.text = shown_line(text);
  line.held_out = true;
  return line;
}

std::optional<Line> TableRows::spaced(std::string_view text) {
  if (columns_.empty() && !begins_with_counter(text) && !stripped(text).starts_with("E "))
    return {};
  const std::string plain = undressed(first_characters(text, kRowLetters));
  const std::vector<std::string_view> fields = words_of(plain);
  const std::vector<std::string_view> wide = wide_fields(plain);
  const bool names = begins_table(wide);
  const auto has_digit = [](std::string_view field) {
    return field.find_first_of("0123456789") != field.npos;
  };
  if (names || (begins_table(fields) && std::ranges::none_of(fields, has_digit))) {
    const std::vector<std::string_view>& found = names ? wide : fields;
    columns_.assign(found.begin(), found.end());
    if (columns_[0] == "E") columns_[0] = "epoch";
    indent_ = plain.find_first_not_of(' ');
    width_ = plain.size();
    if (lower(columns_[1]) == "gpu_mem") {  // YOLO's, of losses without that word
      for (std::string& column : columns_) {
        if (among(kYolo, column)) column += "_loss";
      }
    }
    return {};
  }
  if (std::optional<Line> row = row_of_lists(text)) return row;
  const std::size_t fewest = std::max<std::size_t>(columns_.empty() ? 0 : columns_.size() - 1, 3);
  if (fields.size() < fewest || columns_.empty()) return {};
  std::optional<Line> row = row_of(fields, text);
  if (row) scored_ = false;
  return row;
}

/// Whether fields are a row of a data frame, as pandas and R print it: its number stands left of
/// where the names of the columns begin, and has no name.
bool TableRows::is_of_frame(std::span<const std::string_view> fields, std::string_view text) const {
  if (indent_ == 0 || fields.size() != columns_.size() + 1 || blank_length(text) > 0) return false;
  if (!are_digits(fields[0]) || !number_in(fields[1])) return false;
  return fields[0].size() <= indent_ && (are_digits(fields[1]) || text.size() == width_);
}

/// A row of which cells are lists of numbers, as of DeepXDE: the terms of a loss, which is their
/// sum, and metrics.
std::optional<Line> TableRows::row_of_lists(std::string_view text) const {
  if (columns_.empty() || !contains(text, "[")) return {};
  const std::vector<std::string_view> fields = fields_and_lists(text);
  if (fields.size() != columns_.size() || !are_digits(fields[0])) return {};
  Line line;
  for (std::size_t i = 1; i < fields.size(); ++i) {
    std::vector<double> terms;
    for (const std::string_view part : cut(fields[i])) {
      const std::optional<double> value = number_in(stripped(part));
      if (value) terms.push_back(*value);
    }
    if (terms.empty()) continue;
    const std::string& name = columns_[i];
    const bool summed = terms.size() > 1 && contains(lower(name), "loss");
    line.cells.put(name, summed ? std::accumulate(terms.begin(), terms.end(), 0.0) : terms[0]);
    for (std::size_t k = summed ? 0 : 1; k < terms.size(); ++k) {
      line.cells.put(name + "[" + std::to_string(k) + "]", terms[k]);
    }
  }
  if (line.cells.empty()) return {};
  line.counters.put(counter_in(columns_[0]).value_or(""), number_in(fields[0]).value_or(0));
  line.text = shown_line(text);
  line.by_column = true;
  return line;
}

std::optional<Line> TableRows::row_of(std::span<const std::string_view> fields,
                                      std::string_view text) const {
  const bool of_frame = is_of_frame(fields, text);
  if (of_frame) fields = fields.subspan(1);
  const std::size_t of = fields[0].find('/');
  if (!are_digits(fields[0].substr(0, of)) && !(of_frame && number_in(fields[0]))) return {};
  if (of != std::string_view::npos && !are_digits(fields[0].substr(of + 1))) return {};
  std::vector<std::pair<std::string_view, std::optional<double>>> cells;
  for (std::size_t i = 1; i < std::min(columns_.size(), fields.size()); ++i) {
    const std::optional<double> value = number_in(fields[i]);
    const auto there =
        std::ranges::find_if(cells, [&](const auto& cell) { return cell.first == columns_[i]; });
    if (there == cells.end()) {
      cells.emplace_back(columns_[i], value);
    } else {
      there->second = value;
    }
  }
  Line line;
  for (const auto& [name, value] : cells) {
    if (value)
      (name == kRowNumber ? line.counters : line.cells)
          .put(name == kRowNumber ? "step" : name, *value);
  }
  const std::size_t fewest = fields.size() == columns_.size() ? 1 : 2;
  if (static_cast<std::size_t>(std::distance(line.cells.begin(), line.cells.end())) < fewest) {
    return {};
  }
  const std::string key = counter_in(columns_[0]).value_or("");
  line.counters.put(key, number_in(fields[0].substr(0, of)).value_or(0));
  if (of != std::string_view::npos) {
    line.totals.put(key, number_in(fields[0].substr(of + 1)).value_or(0));
  }
  line.text = shown_line(text);
  line.by_column = true;
  return line;
}

}  // namespace glidepath::detail
