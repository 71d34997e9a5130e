// SPDX-License-Identifier: Apache-2.0
// Tables with a column a metric: Lightning, Keras, Ultralytics, Stable-Baselines3, RLlib.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "common/csv.hpp"
#include "trace/readers/column_names.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/run_settings.hpp"
#include "trace/readers/table_fields.hpp"
#include "trace/readers/table_header.hpp"
#include "trace/readers/table_numbers.hpp"
#include "trace/readers/table_terms.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::string_view kNothing[] = {"-",      "--", "na", "n/a", "none", "null",     "#n/a",
                                         "no log", "_",  "?",  ".",   "<na>", "undefined"};

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
    flair_ = place([](const std::string& name) { return name == "TRAIN_LOSS"; }) + 1;
  }

  void add(std::size_t line, const Fields& cells) {
    const Fields& names = header_.names;
    if (!short_.empty()) throw IoError(short_);
    if (cells == names) return;                                      // another run was appended
    if (cells.size() == names.size() + 1 && cells.back().empty()) {  // a comma at the end of rows
      add(line, Fields(cells.begin(), cells.end() - 1));
      return;
    }
    if (is_of_flair(cells)) {
      Fields fitting = cells;
      fitting.erase(fitting.begin() + static_cast<std::ptrdiff_t>(flair_));
      add(line, fitting);
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
  /// Whether a row is one of Flair's loss.tsv, which has an empty field more than the header behind
  /// the loss of training.
  [[nodiscard]] bool is_of_flair(const Fields& cells) const {
    const std::size_t size = header_.names.size();
    return header_.mark == '\t' && flair_ <= size && cells.size() == size + 1 &&
           cells[flair_].empty();
  }

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
  std::size_t flair_ = 0;            ///< where Flair has a field more
  LogRows rows_;
  bool unfinished_ = false, cut_ = false;
  LastCells last_cells_;
  std::string short_;  ///< what is wrong with the row before, which may be cut
  double length_ = 0;
};

}  // namespace

bool is_table(const std::filesystem::path& file, std::string_view head) {
  // A crash may have left zeros below.
  const std::string_view top = head.substr(0, std::min<std::size_t>(head.find('\n'), 1024));
  if (contains(top, std::string_view("\0", 1)) || head.starts_with('{') || head.starts_with('[')) {
    return false;
  }
  const std::string text = repaired(head);
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::string_view below = stripped(rest);
  std::string_view again = rest, whole = rest;
  const Header header = header_in(lines_of(rest));
  if (!is_header(header.names)) return !header_of_list(file, lines_of(whole)).names.empty();
  NextLine each = lines_of(again);
  std::string_view line;
  for (std::size_t i = 0; i < header.line; ++i) line = each().value_or("");
  std::string_view row = each().value_or("");
  while (is_comment(row, header)) row = each().value_or("");
  if (is_line_of_log(line, row)) return false;
  // A sentence has commas, too.
  if (is_page(file) && header.mark != kBar && !has_width_of(header, row)) return false;
  if (header.mark == kBar)
    return are_barred_rows(lines_of(rest), header) && !is_console(file, head);
  if (header.mark != kBlanks) return true;
  // Words with blanks between are a header when numbers stand below them.
  NextLine next = lines_of(below);
  (void)next();
  std::string_view first = next().value_or("");
  while (is_comment(first, header)) first = next().value_or("");
  const std::vector<std::string_view> cells = words_of(first);
  if (cells.size() != header.names.size()) return false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool count = counts_steps(normal(header.names[i])) && in_thousands(cells[i]);
    if (!count && !number_in(cells[i])) return false;
  }
  return true;
}

std::vector<LoggedRun> read_table(const std::filesystem::path& file, const Metric& metric) {
  const std::string name = shown_path(file);
  LineReader lines(file);
  Header header = header_in(lines_of(lines));
  if (!is_header(header.names)) {
    LineReader again(file);
    if (Header list = header_of_list(file, lines_of(again)); !list.names.empty()) {
      header = std::move(list);
      lines = LineReader(file);
      for (std::size_t i = 0; i < header.line && lines.next(); ++i) {
      }
    }
  }
  const std::size_t start = header.line;
  const std::string first = header.comment ? first_row(file, header) : "";
  header.mark = mark_of_rows(first, header);
  const Terms terms = terms_of(header.names, first);
  if (terms.of_loss > 0) {
    header.names = names_of(terms);
    header.mark = kBlanks;
  }
  const char mark = header.mark;
  const bool comments = header.comment;
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
        if (!commas && (mark != ',' || !contains(cells[i], ","))) continue;
        const bool counts = i < counting.size() && counting[i];
        clear_marks(cells[i], commas ? Commas::decimal : Commas::thousands, counts);
      }
      if (comments && !cells.empty() && cells[0].starts_with('#')) continue;
      if (terms.of_loss > 0) cells = with_sums(cells, terms);
      const bool blank = std::all_of(cells.begin(), cells.end(),
                                     [](const std::string& cell) { return cell.empty(); });
      if (blank || (mark == kBar && is_between_bars(cells))) continue;
      if (!lines.finished()) table.end_unfinished();
      table.add(start + splitter.lines(), cells);
    }
  } catch (const NoRow& error) {
    refuse_file(name, ":", start + splitter.lines(), ": ", error.why);
  }
  std::vector<LoggedRun> runs = table.runs(file);
  name_by_file(file, metric, runs);
  if (terms.of_loss > 1) {
    const std::string each = std::to_string(terms.of_loss) + " terms of a loss in each row: ";
    for (LoggedRun& run : runs) run.notes.push_back(each + "loss_train is their sum");
  }
  if (runs.size() == 1) put_settings_beside(file, runs[0]);
  return runs;
}

}  // namespace glidepath::detail
