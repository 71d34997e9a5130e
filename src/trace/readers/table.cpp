// SPDX-License-Identifier: Apache-2.0
// Tables with a column a metric: Lightning, Keras, Ultralytics, Stable-Baselines3, RLlib. The
// fields of a line are split as Python's csv does, whose module writes most of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_set>

#include "common/csv.hpp"
#include "trace/readers/column_names.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/run_settings.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

using Fields = std::vector<std::string>;

constexpr std::size_t kHeaderLines = 20;  // in which the header is: before it may be comments
constexpr std::size_t kLongestField = 131072;
constexpr std::size_t kLongestColumn = 200;
constexpr char kBlanks = ' ';          // splits at any number of blanks
constexpr std::size_t kThousands = 3;  // digits between the marks of a large number
constexpr std::string_view kNothing[] = {"-",      "--", "na", "n/a", "none", "null",     "#n/a",
                                         "no log", "_",  "?",  ".",   "<na>", "undefined"};

/// The next line of a text, or nothing.
using NextLine = std::function<std::optional<std::string_view>()>;

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
  bool row(Fields& fields) {
    fields.clear();
    if (mark_ == kBlanks) {
      const std::optional<std::string_view> line = next_line();
      if (line) {
        for (const std::string_view word : words_of(*line)) fields.emplace_back(word);
      }
      return line.has_value();
    }
    state_ = State::start_row;
    field_.clear();
    do {
      const std::optional<std::string_view> line = next_line();
      if (!line) {
        if (state_ == State::start_row) return false;
        save(fields);  // a quote is open at the end of the file
        return true;
      }
      split(*line, fields);
    } while (state_ != State::start_row);
    return true;
  }
  /// Lines that were read.
  [[nodiscard]] std::size_t lines() const noexcept { return lines_; }

 private:
  enum class State { start_row, start_field, plain, quoted, quote_in_quoted, line_end };

  std::optional<std::string_view> next_line() {
    std::optional<std::string_view> line = next_();
    lines_ += line.has_value();
    return line;
  }
  void save(Fields& fields) {
    fields.push_back(std::move(field_));
    field_.clear();
  }
  void add(char c) {
    if (field_.size() >= kLongestField) {
      throw NoRow{sentence("field larger than field limit (", kLongestField, ")")};
    }
    field_ += c;
  }

  void split(std::string_view line, Fields& fields) {
    for (const char c : line) step(c, fields);
    if (state_ == State::start_row || state_ == State::quoted) return;
    if (state_ != State::line_end) save(fields);
    state_ = State::start_row;
  }

  void step(char c, Fields& fields) {
    const bool end = c == '\r' || c == '\n';
    if (state_ == State::start_row)
      state_ = end ? State::line_end : State::start_field;
    else if (state_ == State::line_end && !end) {
      throw NoRow{"new-line character seen in unquoted field"};
    }
    if (state_ == State::line_end) return;
    if (state_ == State::quoted) {
      if (c == '"')
        state_ = State::quote_in_quoted;
      else
        add(c);
    } else if (c == '"' && state_ == State::start_field) {
      state_ = State::quoted;
    } else if (c == '"' && state_ == State::quote_in_quoted) {
      add(c);
      state_ = State::quoted;
    } else if (c == mark_ || end) {
      save(fields);
      state_ = end ? State::line_end : State::start_field;
    } else {
      add(c);
      state_ = State::plain;
    }
  }

  NextLine next_;
  char mark_;
  State state_ = State::start_row;
  std::string field_;
  std::size_t lines_ = 0;
};

/// Fields of columns, what splits them, and their line; 0 where none was found.
struct Header {
  Fields names{};
  char mark = ',';
  std::size_t line = 0;
};

Header split_header(std::string_view line) {
  const bool comma = contains(line, ",");
  Header header;
  header.mark = contains(line, "\t") ? '\t' : contains(line, ";") && !comma ? ';' : ',';
  if (header.mark == ',' && !comma && contains(stripped(line), " ")) header.mark = kBlanks;
  std::optional<std::string_view> left = line;
  Splitter splitter([&] { return std::exchange(left, std::nullopt); }, header.mark);
  try {
    (void)splitter.row(header.names);
  } catch (const NoRow&) {
    header.names.clear();
  }
  if (header.mark == kBlanks) return header;
  for (std::size_t i = 0; i < header.names.size(); ++i) {
    std::string& name = header.names[i];
    name = stripped(name);
    if (i == 0 && name.size() > 1 && name[0] == '%') name.erase(0, 1);  // "%Iter" of Kaldi
    const bool of_pandas = name.starts_with("Unnamed: ");
    if (i == 0 && (name.empty() || of_pandas)) name = "index";
    if (name.empty() || of_pandas) name = "column " + std::to_string(i + 1);
  }
  return header;
}

/// Steps' times by placement, of AdaptDL's simulator.
bool is_placements(const Fields& names) {
  return among(names, "step_time") && among(names, "sync_time") && among(names, "local_bsz");
}

/// Gym's monitor: return, length and time of each episode.
bool is_monitor(const Fields& names) {
  return names.size() >= 3 && names[0] == "r" && names[1] == "l" && names[2] == "t";
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

/// Whether names are those of columns, one of them of steps or of a metric, none of curves.
bool is_header(const Fields& names) {
  const auto is_number = [](const std::string& name) { return number_in(name).has_value(); };
  if (among(names, "curve") || names.size() < 2 ||
      std::any_of(names.begin(), names.end(), is_number)) {
    return false;
  }
  const bool plain = std::all_of(names.begin(), names.end(), is_plain);
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
    if (!text.empty() && (!comment || is_header(header.names))) return header;
  }
  return {};
}

NextLine lines_of(LineReader& lines) {
  return [&lines]() -> std::optional<std::string_view> {
    if (!lines.next()) return {};
    return lines.line();
  };
}

/// The lines of a text that is at hand.
NextLine lines_of(std::string_view& text) {
  return [&text, ended = false]() mutable -> std::optional<std::string_view> {
    if (ended) return {};
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    ended = end == text.npos;
    text.remove_prefix(ended ? text.size() : end + 1);
    return line;
  };
}

/// The step at which the run ends by what a tool writes beside its table, by the column of steps
/// that it counts in: Ultralytics' settings, and the hyper-parameters that Lightning saves.
std::optional<double> planned_beside(const std::filesystem::path& file,
                                     const SeriesByName& series) {
  std::string counter;
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [name, column] : series) {
    if (counter.empty()) counter = column->counter;
    if (!column->step.empty()) first = std::min(first, column->step.front());
  }
  const std::string key = normal(counter);
  if (key != "epoch" && key != "step") return {};
  const std::filesystem::path settings =
      file.parent_path() / (key == "epoch" ? "args.yaml" : "hparams.yaml");
  const std::string_view name = key == "epoch" ? "epochs:" : "max_steps:";
  std::error_code none;
  if (settings == file || !std::filesystem::is_regular_file(settings, none)) return {};
  LineReader lines(settings);
  while (lines.next()) {
    std::string_view text = lines.line();
    if (!text.starts_with(name)) continue;
    text.remove_prefix(name.size());
    while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    const bool digits =
        !text.empty() && text.size() <= 15 && text.find_first_not_of("0123456789") == text.npos;
    if (!digits) continue;
    const double end = number_in(text).value_or(0);
    if (end == 0) return {};
    return end - (first == 0 ? 1 : 0);  // counted from 0, the last one is one less
  }
  return {};
}

/// What the tools that call their tables so write beside them.
void put_settings_beside(const std::filesystem::path& file, LoggedRun& run) {
  const std::string name = file.filename().string();
  for (const auto& [table, beside] :
       {std::pair{"metrics.csv", "hparams.yaml"}, std::pair{"results.csv", "args.yaml"}}) {
    if (name == table) put_settings_of_file(file.parent_path() / beside, run);
  }
}

/// What splits the rows below a header: blanks where a comment with commas names their columns.
char mark_of_rows(const std::filesystem::path& file, const Header& header) {
  LineReader lines(file);
  bool comment = false;
  for (std::size_t i = 0; i < header.line && lines.next(); ++i) {
    comment = stripped(lines.line()).starts_with('#');
  }
  if (!comment || header.mark != ',' || !lines.next()) return header.mark;
  const bool blanks = words_of(lines.line()).size() == header.names.size();
  return blanks && !contains(lines.line(), ",") ? kBlanks : header.mark;
}

/// Calls the only metric of a file "value" no more, where the file is called after it:
/// TensorBoard's "run-NAME-tag-val_accuracy.csv", or "val_accuracy.csv". Whoever asks for it as its
/// column is called gets it so.
void name_by_file(const std::filesystem::path& file, const Metric& metric,
                  std::vector<LoggedRun>& runs) {
  std::string stem = file.filename().string();
  stem = stem.substr(0, stem.find(".csv"));
  const std::size_t tag = stem.find("-tag-");
  if (tag != stem.npos) stem = stem.substr(tag + 5);
  if (tag == stem.npos && !is_metric(stem)) return;
  for (LoggedRun& run : runs) {
    const bool taken =
        std::ranges::any_of(run.series, [&](const auto& each) { return each.first == stem; });
    for (auto& [name, column] : run.series) {
      if (normal(name) == "value" && name != metric && !taken) name = stem;
    }
  }
}

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

/// What commas in the numbers of a table are.
enum class Commas { decimal, thousands };

/// Makes the number of a cell one with a point and nothing between thousands. Beside decimal commas
/// a point stands between them for sure where a comma follows, and in a column that counts.
void clear_marks(std::string& cell, Commas commas, bool counts) {
  const bool decimal = commas == Commas::decimal;
  if (!decimal || counts || contains(cell, ",")) {
    std::optional<std::string> number = without_thousands(cell, decimal ? '.' : ',');
    if (number) cell = *std::move(number);
  }
  if (!decimal) return;
  if (std::optional<std::string> number = with_point(cell)) cell = *std::move(number);
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

/// Whether the numbers of a table have decimal commas, by the first one that says so.
bool has_decimal_commas(const std::filesystem::path& file, const Header& header) {
  if (header.mark != ';' && header.mark != '\t') return false;
  LineReader lines(file);
  while (lines.next()) {
    if (lines.number() <= header.line || !contains(lines.line(), ",")) continue;
    for (std::string_view rest = lines.line();;) {
      const std::size_t end = rest.find(header.mark);
      std::string_view cell = stripped(rest.substr(0, end));
      if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"')) {
        cell = stripped(cell.substr(1, cell.size() - 2));
      }
      if (has_decimal_comma(cell)) return true;
      if (end == rest.npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  return false;
}

/// The rows below a header.
class Table {
 public:
  Table(std::string file, Header header, const Metric& metric)
      : file_(std::move(file)), header_(std::move(header)) {
    if (is_placements(header_.names)) {
      throw RefusedError(file_ +
                         ":1: step times by placement, not the log of a run; curves are in the "
                         "validation-*.csv beside it");
    }
    std::unordered_set<std::string_view> once, twice;
    for (const std::string& name : header_.names) {
      if (!once.insert(name).second) twice.insert(name);
    }
    for (const std::string& name : header_.names) {
      if (twice.contains(name)) {
        refuse_file(file_, ":", header_.line, ": two columns are called ", repr(name));
      }
    }
    const Fields counting = counters(header_.names);
    for (const std::string& name : header_.names) {
      strict_.push_back(name == metric || contains(normal(name), "loss"));
      step_.push_back(counting.size() == 1 && name == counting[0]);
      text_.push_back(is_split(name));
    }
    const Fields& names = header_.names;
    const auto place = [&](const auto& is) {
      return static_cast<std::size_t>(std::find_if(names.begin(), names.end(), is) - names.begin());
    };
    value_ = counting.empty() ? names.size() : place(is_value);
  }

  void add(std::size_t line, const Fields& cells) {
    const Fields& names = header_.names;
    if (!short_.empty()) throw IoError(short_);
    if (cells == names) return;                                      // another run was appended
    if (cells.size() == names.size() + 1 && cells.back().empty()) {  // a comma at the end of rows
      add(line, Fields(cells.begin(), cells.end() - 1));
      return;
    }
    if (cells.size() != names.size()) {
      short_ = sentence(file_, ":", line, ": ", cells.size(), " fields where the header has ",
                        names.size());
      if (cells.size() > names.size()) throw IoError(short_);
      return;
    }
    if (unfinished_ && last_cells_.unlike(cells.back())) {
      cut_ = true;
      return;
    }
    last_cells_.add(cells.back());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!cells[i].empty() && (strict_[i] || step_[i])) check(line, i, cells[i]);
    }
    if (is_monitor(names)) {  // whose steps are those of all episodes until here
      length_ += number_in(cells[1]).value_or(0);
      rows_.put("episode_reward", std::string_view(cells[0]));
      rows_.put("wall_seconds", std::string_view(cells[2]));
      rows_.put("timesteps", length_);
    } else {
      put_row(cells);
    }
    if (unfinished_) {
      cut_ = !rows_.end_unfinished_row();
    } else {
      rows_.end_row();
    }
  }

  /// The row that comes next has no end of line: its last cell may be cut.
  void end_unfinished() { unfinished_ = true; }

  std::vector<LoggedRun> runs(const std::filesystem::path& file) {
    std::vector<std::string> notes;
    if (!short_.empty()) {
      if (rows_.count() == 0 || !is_cut(file)) throw IoError(short_);
      cut_ = true;
    }
    if (cut_) notes.emplace_back("the last row is cut: left out");
    std::vector<LoggedRun> runs = runs_of(std::move(rows_), notes);
    if (runs.size() > 1) return runs;
    try {
      runs[0].planned = planned_beside(file, runs[0].series);
    } catch (const IoError&) {  // of which put_settings_beside has a note
    }
    return runs;
  }

 private:
  void put_row(const Fields& cells) {
    std::string before;
    for (std::size_t i = 0; i < cells.size() && before.empty(); ++i) {
      if (text_[i]) before = split_before(header_.names[i], cells[i]);
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].empty()) continue;
      const std::string& name = i == value_ ? name_of_value(cells) : header_.names[i];
      const bool split = !before.empty() && !counts_steps(normal(name)) && !is_time(normal(name)) &&
                         !names_run(name);
      rows_.put(split ? before + name : name, std::string_view(cells[i]));
    }
  }

  /// The name that stands beside the number of a row that has one.
  [[nodiscard]] const std::string& name_of_value(const Fields& cells) const {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != value_ && names_value(header_.names[i], cells[i])) return cells[i];
    }
    return header_.names[value_];
  }

  void check(std::size_t line, std::size_t column, const std::string& cell) const {
    const std::optional<double> number = number_in(cell);
    std::string lower = cell;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const bool nothing =
        std::find(std::begin(kNothing), std::end(kNothing), lower) != std::end(kNothing);
    const std::string& name = header_.names[column];
    if (strict_[column] && !number && !nothing) {
      refuse_file(file_, ":", line, ": ", name, " ", repr(cell), " is not a number");
    }
    const bool counted = count_in(name, cell).has_value();
    if (step_[column] && !counted && !(number && std::isfinite(*number))) {
      refuse_file(file_, ":", line, ": ", name, " ", repr(cell), " is not a finite number");
    }
  }

  std::string file_;
  Header header_;
  std::vector<bool> strict_, step_;  ///< columns that must hold numbers, and finite ones
  std::vector<bool> text_;           ///< columns of the part of the data
  std::size_t value_ = 0;            ///< column of a value, or none
  LogRows rows_;
  bool unfinished_ = false, cut_ = false;
  LastCells last_cells_;
  std::string short_;  ///< what is wrong with the row before, which may be cut
  double length_ = 0;
};

}  // namespace

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

/// Whether a line that looks like names of columns is one of a text log, "epoch:1, loss:2.5", as
/// the next one says the same of other numbers.
bool is_line_of_log(std::string_view line, std::string_view next) {
  const std::string form = form_of_line(line);
  return std::count(form.begin(), form.end(), '#') >= 2 && form == form_of_line(next) &&
         stripped(line) != stripped(next);
}

bool is_table(const std::filesystem::path& /*file*/, std::string_view head) {
  if (contains(head.substr(0, 1024), std::string_view("\0", 1)) || head.starts_with('{') ||
      head.starts_with('[')) {
    return false;
  }
  const std::string text = repaired(head);
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::string_view below = stripped(rest);
  std::string_view again = rest;
  const Header header = header_in(lines_of(rest));
  if (!is_header(header.names)) return false;
  NextLine each = lines_of(again);
  std::string_view line;
  for (std::size_t i = 0; i < header.line; ++i) line = each().value_or("");
  if (is_line_of_log(line, each().value_or(""))) return false;
  if (header.mark != kBlanks) return true;
  // Words with blanks between are a header when numbers stand below them.
  NextLine next = lines_of(below);
  (void)next();
  const std::vector<std::string_view> cells = words_of(next().value_or(""));
  return cells.size() == header.names.size() &&
         std::all_of(cells.begin(), cells.end(),
                     [](std::string_view cell) { return number_in(cell).has_value(); });
}

std::vector<LoggedRun> read_table(const std::filesystem::path& file, const Metric& metric) {
  const std::string name = shown_path(file);
  LineReader lines(file);
  Header header = header_in(lines_of(lines));
  const std::size_t start = header.line;
  if (mark_of_rows(file, header) == kBlanks) header.mark = kBlanks;
  const char mark = header.mark;
  const bool commas = has_decimal_commas(file, header);
  std::vector<bool> counting;
  for (const std::string& each : header.names) counting.push_back(counts_steps(normal(each)));
  Table table(name, std::move(header), metric);
  if (start == 0) lines = LineReader(file);  // there is no header, so every row is too long
  Splitter splitter(lines_of(lines), mark);
  try {
    for (Fields cells; splitter.row(cells);) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string_view plain = stripped(cells[i]);
        if (plain.size() < cells[i].size()) cells[i] = std::string(plain);
        if (!commas && mark != ',') continue;
        const bool counts = i < counting.size() && counting[i];
        clear_marks(cells[i], commas ? Commas::decimal : Commas::thousands, counts);
      }
      const bool blank = std::all_of(cells.begin(), cells.end(),
                                     [](const std::string& cell) { return cell.empty(); });
      if (!lines.finished()) table.end_unfinished();
      if (!blank) table.add(start + splitter.lines(), cells);
    }
  } catch (const NoRow& error) {
    refuse_file(name, ":", start + splitter.lines(), ": ", error.why);
  }
  std::vector<LoggedRun> runs = table.runs(file);
  name_by_file(file, metric, runs);
  if (runs.size() == 1) put_settings_beside(file, runs[0]);
  return runs;
}

}  // namespace glidepath::detail
