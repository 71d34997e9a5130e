// SPDX-License-Identifier: Apache-2.0
// Console logs: what training loops print, found by its form and not by the tool that wrote it. A
// line without a counter belongs to the last one seen. Lines of several ranks, progress bars and
// tables between rules are brought into that form.
#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>

#include "common/csv.hpp"
#include "trace/readers/console_line.hpp"
#include "trace/readers/console_names.hpp"
#include "trace/readers/console_numbers.hpp"
#include "trace/readers/console_table.hpp"
#include "trace/readers/console_text.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

// Letters of a line that are read at once, and of a file in which a first metric is looked for.
constexpr std::size_t kPieceLetters = std::size_t{1} << 20;
constexpr std::size_t kSearchedLetters = std::size_t{1} << 26;
constexpr std::size_t kRepeatedNames = 20;
constexpr std::size_t kCountingEnds = 5;  // ends of a counter that are so many count themselves
constexpr std::size_t kMinMentions = 3;   // times that a log says what is no metric by its name

constexpr std::string_view kPage = ".md";
constexpr std::string_view kNotLogs[] = {
    ".py", kPage,  ".ipynb", ".sh", ".yml", ".yaml", ".toml", ".htm", ".html", ".js",
    ".ts", ".rst", ".tex",   ".c",  ".cc",  ".cpp",  ".h",    ".hpp", ".cu",   ".json"};
// A line after which the next one says again what was said before: LightGBM's.
constexpr std::string_view kRepeats = "est iteration is";
constexpr std::string_view kWordsOfSentences[] = {"is", "was", "in", "of",   "to",   "at",
                                                  "on", "for", "by", "from", "with", "ran"};
constexpr std::size_t kLongestHeading = 20;
constexpr std::size_t kTurns = 4;  // lines of a process before the next one prints, at most

/// What of a text is looked at: of a page of Markdown, such as a model card, its tables alone.
enum class Part { lines, tables };

/// Takes a line; false to end.
using Take = std::function<bool(Line&)>;

/// Gives the lines of a file that have numbers; a table between rules is one.
class LineSource {
 public:
  LineSource(const std::filesystem::path& file, Part part, std::size_t most)
      : lines_(file), part_(part), most_(most), commas_(has_decimal_commas(file)) {}

  void run(NameReader& names, const Take& take) {
    while (lines_.next()) {
      const std::string_view whole = lines_.line();
      if (whole.size() + 1 > most_) break;
      most_ -= whole.size() + 1;
      for (std::string_view rest = whole; !rest.empty();) {
        std::string_view part = rest.substr(0, rest.find('\r'));
        cut_ = part.size() == rest.size() && !lines_.finished();
        if (cut_) break;  // its last number may be half of one
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
        while (!part.empty()) {
          const std::string_view piece = first_characters(part, kPieceLetters);
          if (!add(piece, names, take)) return;
          part.remove_prefix(piece.size());
        }
      }
    }
    // The counter may be what a block lacks that is not finished.
    if (!block_.cells.empty() && !block_.counters.empty()) take(block_);
  }
  /// Whether the last line was left out, as it has no end.
  [[nodiscard]] bool cut() const noexcept { return cut_; }

 private:
  /// Whether numbers are written with decimal commas, by how the file begins.
  static bool has_decimal_commas(const std::filesystem::path& file) {
    LineReader lines(file);
    NameReader names;
    std::ptrdiff_t count = 0;
    for (std::size_t left = kPieceLetters; left > 0 && lines.next();) {
      left -= std::min(left, lines.line().size() + 1);
      if (contains(lines.line(), ",") && has_hint(lines.line())) {
        count += decimal_commas(first_characters(lines.line(), kPieceLetters), names);
      }
    }
    return count >= static_cast<std::ptrdiff_t>(kMinMentions);
  }

  bool add(std::string_view text, NameReader& names, const Take& take) {
    if (!commas_ || !contains(text, ",")) return add_line(text, names, take);
    return add_line(with_points(text), names, take);
  }

  bool add_line(std::string_view text, NameReader& names, const Take& take) {
    if (std::exchange(repeats_, contains(text, kRepeats))) return true;
    if (std::optional<Line> row = tables_.ruled(text)) return row->counters.empty() || take(*row);
    if (part_ == Part::tables || row_between_rules(text)) return true;
    if (!block_.cells.empty() || !block_.counters.empty()) {
      block_.text = block_.cells.empty() ? "" : block_.cells.begin()->first;
      Line block = std::exchange(block_, {});
      section_.clear();
      if (!take(block)) return false;
    }
    if (std::optional<Line> row = tables_.of_classes(text)) return row->cells.empty() || take(*row);
    if (std::optional<Line> row = tables_.spaced(text)) return take(*row);
    if (is_layer_of_darknet(text)) return true;
    if (const std::optional<std::string> data = data_of_heading(text)) {
      heading_ = *data;
      return true;
    }
    if (!has_hint(text)) return true;
    Line line = parse_line(text, names);
    name_by_heading(line);
    return (line.cells.empty() && line.counters.empty()) || take(line);
  }

  /// The data that a heading such as "Validation" or "train:" names, "" of training.
  static std::optional<std::string> data_of_heading(std::string_view text) {
    std::string_view word = without(text, " \t-=#*:");
    const std::size_t verb = word.rfind("evaluate:");  // behind what a logger says: "evaluate:dev"
    if (verb != word.npos) word = stripped(word.substr(verb + 9));
    if (first_characters(word, kLongestHeading).size() < word.size()) return {};
    if (is_held_out(word)) return lower(word);
    const std::string spelled = lower(word);
    if (spelled == "train" || spelled == "training") return "";
    return {};
  }

  /// Names what stands below a heading, up to the next line that counts, by its data.
  void name_by_heading(Line& line) {
    if (!line.counters.empty()) heading_.clear();
    if (heading_.empty() || line.held_out) return;
    Numbers cells;
    for (const auto& [name, value] : line.cells) {
      const bool plain = !held_out_in(name) && !has_train(name);
      cells.put(plain ? heading_ + " " + name : name, value);
    }
    line.cells = std::move(cells);
    line.held_out = true;
  }

  /// "| name | 1.5 |" of Stable-Baselines3.
  bool row_between_rules(std::string_view text) {
    if (first_characters(text, 199).size() < text.size() || !stripped(text).starts_with('|')) {
      return false;
    }
    std::vector<std::string_view> cells;
    for (std::string_view rest = text;;) {
      const std::size_t end = rest.find('|');
      cells.push_back(rest.substr(0, end));
      if (end == rest.npos) break;
      rest.remove_prefix(end + 1);
    }
    if (cells.size() != 4 || !stripped(cells[0]).empty() || !stripped(cells[3]).empty()) {
      return false;
    }
    const std::string_view name = stripped(cells[1]);
    const std::optional<double> value = number_in(stripped(cells[2]));
    if (!value) {
      section_ = name.ends_with('/') ? name : std::string_view();
      return true;
    }
    const std::string key = (cells[1].starts_with("   ") ? section_ : "") + std::string(name);
    (counts_steps(normal(key)) ? block_.counters : block_.cells).put(key, *value);
    return true;
  }

  LineReader lines_;
  Part part_;
  std::size_t most_;
  bool commas_;  ///< they are decimal
  bool cut_ = false, repeats_ = false;
  Line block_{};
  std::string section_;
  std::string heading_;  ///< the data of the lines below, if they are not trained on
  TableRows tables_;
};

/// The names of counters in one text.
std::string own_counters(const Numbers& counters) {
  std::set<std::string_view> names;
  for (const auto& [name, value] : counters) names.insert(name);
  std::string own;
  for (const std::string_view name : names) own += (own.empty() ? "" : ", ") + std::string(name);
  return own;
}

/// Gives the lines with metrics, each with the counters that stand for it. No more than the first
/// `most` bytes of the file are read. True where the last line was left out, as it has no end.
bool each_line(const std::filesystem::path& file, Part part, std::size_t most, NameReader& names,
               const Take& take) {
  Numbers carried, totals;
  std::optional<Line> bar;
  bool going = true;
  const auto give_bar = [&] {
    if (bar) going = take(*bar);
    bar.reset();
  };
  LineSource source(file, part, most);
  source.run(names, [&](Line& line) {
    const bool progress = line.by_column || is_bar(line.text);
    if (progress) line.counters.erase_if([](const std::string& name) { return is_within(name); });
    for (const auto& [name, far] : line.totals) {
      const bool of_others = line.held_out && is_within(name);  // another number of batches
      if (line.counters.find(name) != nullptr && !of_others) totals.put(name, far);
    }
    line.own = own_counters(line.counters);
    if (!line.counters.empty()) carried.erase_if([](const auto& name) { return !is_epoch(name); });
    for (const auto& [name, value] : line.counters) carried.put(name, value);
    line.counters = carried;
    if (line.cells.empty()) return true;
    if (bar && !(progress && bar->counters.same(line.counters))) give_bar();
    line.totals = totals;
    if (progress && !line.counters.empty()) {
      bar = std::move(line);
    } else if (going) {
      going = take(line);
    }
    return going;
  });
  if (going) give_bar();
  return source.cut();
}

/// Takes "Batch 2/100" for an epoch and a batch, where what stands behind the line is no end but
/// counts.
void split_epochs(std::vector<Line>& lines) {
  constexpr std::string_view kCounter = "batch";
  std::set<double> counts, ends;
  for (const Line& line : lines) {
    const double* const count = line.counters.find(kCounter);
    const double* const end = line.totals.find(kCounter);
    if (count == nullptr || end == nullptr) continue;
    counts.insert(*count);
    ends.insert(*end);
  }
  if (ends.size() < kCountingEnds || ends.size() <= counts.size()) return;
  for (Line& line : lines) {
    const double* const end = line.totals.find(kCounter);
    if (end == nullptr) continue;
    if (line.counters.find(kCounter) != nullptr) {
      line.counters.rename(kCounter, "epoch");
      line.counters.put(kCounter, *end);
    }
    line.totals.erase_if([&](const auto& name) { return name == kCounter; });
  }
}

bool is_no_log(const std::filesystem::path& file, std::string_view head) {
  // A writer that crashed may leave some zeros.
  head = head.substr(0, head.find_last_not_of('\0') + 1);  // and many at the end
  const auto zeros = std::count(head.begin(), head.end(), '\0');
  // Zeros alone make no file of bytes: among other text a crash may have left many.
  const bool bytes = std::any_of(head.begin(), head.end(), [](char c) {
    return (c > '\0' && c < '\b') || (c > '\r' && c < '\x1b');
  });
  const bool archive = contains(head.substr(0, 512), "ustar");
  const std::string name = file.filename().string();
  return (static_cast<double>(zeros) > static_cast<double>(head.size()) / 100 &&
          (bytes || archive || !is_utf8(head))) ||
         std::any_of(std::begin(kNotLogs), std::end(kNotLogs),
                     [&](std::string_view end) { return name.ends_with(end); });
}

/// Whether a file is a page of Markdown, of which only a table may be a log. It is read by its own
/// path alone: in a folder it stands beside the log that its table was made of.
bool is_page(const std::filesystem::path& file) { return file.extension() == kPage; }

/// Takes no such number for a rank but where processes print in turn: it goes back time and again,
/// which that of an epoch, a time or a machine that took over does not. One in brackets must be
/// that of all processes from the first to the last.
void leave_out_epochs(std::vector<Line>& lines, RankForm form) {
  std::set<int> numbers;
  std::size_t count = 0, backs = 0;
  const Line* before = nullptr;
  for (const Line& line : lines) {
    if (!line.rank || line.rank_form != form) continue;
    ++count;
    numbers.insert(*line.rank);
    backs += before != nullptr && *line.rank < *before->rank;
    before = &line;
  }
  const auto last = static_cast<int>(numbers.size()) - 1;
  const bool all = count > 0 && *numbers.begin() == 0 && *numbers.rbegin() == last;
  const bool in_turn = kTurns * backs * numbers.size() >= count;
  if (in_turn && (all || form != RankForm::bare)) return;
  for (Line& line : lines) {
    if (line.rank_form == form) line.rank.reset();
  }
}

/// Keeps the lines of the first of several ranks.
void keep_first_rank(std::vector<Line>& lines) {
  for (const RankForm form : {RankForm::bare, RankForm::passing}) leave_out_epochs(lines, form);
  std::set<int> ranks;
  for (const Line& line : lines) {
    if (line.rank) ranks.insert(*line.rank);
  }
  if (ranks.size() < 2 || 3 * ranks.size() > lines.size()) return;  // else they are no ranks
  std::erase_if(lines, [&](const Line& line) { return line.rank && *line.rank != *ranks.begin(); });
}

/// Leaves out what only some lines say and is no metric by its name: words of a sentence.
void leave_out_words(std::vector<Line>& lines, NameReader& names, const Metric& metric) {
  std::unordered_map<std::string, std::size_t> count;
  for (const Line& line : lines) {
    for (const auto& [name, value] : line.cells) {
      count[name] += line.of_data && is_data(normal(name)) ? kMinMentions : 1;
    }
  }
  std::erase_if(count, [&](const auto& each) {
    const std::string& name = each.first;
    return each.second >= kMinMentions || name == metric || names.is_metric(name) ||
           is_rate(name) || is_clock(normal(name));
  });
  if (count.empty()) return;
  for (Line& line : lines) {
    line.cells.erase_if([&](const std::string& name) { return count.contains(name); });
  }
}

/// Whether a line has a metric of those data by its own name: "val_loss" beside "loss".
bool has_own(const Line& line, const std::string& name, const std::string& data) {
  const std::string before = normal(data + " " + name), after = normal(name + " " + data);
  return std::any_of(line.cells.begin(), line.cells.end(), [&](const auto& cell) {
    const std::string key = normal(cell.first);
    return key == before || key == after;
  });
}

/// Names by their data the metrics behind one of data that are not trained on, as the accuracy in
/// "val Loss: 1.1 Acc: 0.4", where they stand on other lines, too: "train Loss: 1.0 Acc: 0.5".
void name_by_data_before(std::vector<Line>& lines) {
  std::unordered_map<std::string, std::pair<std::size_t, std::size_t>> count;  // behind, elsewhere
  for (const Line& line : lines) {
    for (const auto& [name, data] : line.behind) ++count[name].first;
  }
  if (count.empty()) return;
  for (const Line& line : lines) {
    for (const auto& cell : line.cells) {
      const auto found = count.find(cell.first);
      if (found == count.end()) continue;
      found->second.second +=
          std::none_of(line.behind.begin(), line.behind.end(),
                       [&](const auto& each) { return each.first == cell.first; });
    }
  }
  for (Line& line : lines) {
    for (const auto& [name, data] : line.behind) {
      const auto [behind, elsewhere] = count.at(name);
      if (elsewhere < std::min(kMinMentions, behind) || has_own(line, name, data)) continue;
      line.cells.rename(name, data + " " + name);
    }
  }
}

/// On lines of which form each name mostly stands, by the counters of the line.
std::unordered_map<std::string, std::string> usual_forms(const std::vector<Line>& lines) {
  std::unordered_map<std::string, std::size_t> place;
  std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> forms;
  for (const Line& line : lines) {
    for (const auto& [name, value] : line.cells) {
      const auto [entry, fresh] = place.try_emplace(name + '\0' + line.own, forms.size());
      if (fresh) forms.push_back({{name, line.own}, 0});
      ++forms[entry->second].second;
    }
  }
  std::stable_sort(forms.begin(), forms.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::unordered_map<std::string, std::string> usual;
  for (const auto& [form, count] : forms) usual.try_emplace(form.first, form.second);
  return usual;
}

/// Whether a name ends as no name of a number does: "Ran", "train steps in".
bool is_verb(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  return words.empty() || among(kWordsOfSentences, lower(words.back()));
}

}  // namespace

bool is_console(const std::filesystem::path& file, std::string_view head) {
  if (is_no_log(file, head)) return false;
  NameReader names;
  std::unordered_map<std::string, int> alone;
  bool found = false;
  (void)each_line(file, Part::lines, kSearchedLetters, names, [&](Line& line) {
    for (const auto& [name, value] : line.cells) {
      const bool of_data = line.of_data && is_data(normal(name));
      if (!(of_data || names.is_metric(name)) || std::count(name.begin(), name.end(), ' ') >= 4)
        continue;
      found = found || ++alone[name] == 3 || !line.counters.empty();
    }
    return !found;
  });
  return found;
}

bool has_numbers_at_steps(const std::filesystem::path& file, std::string_view head) {
  const bool page = is_page(file);
  if (!page && is_no_log(file, head)) return false;
  NameReader names;
  std::unordered_map<std::string, int> count;
  bool found = false;
  (void)each_line(file, page ? Part::tables : Part::lines, kSearchedLetters, names,
                  [&](Line& line) {
                    for (const auto& [name, value] : line.cells) {
                      found = found || (!line.counters.empty() && (page || ++count[name] > 2));
                    }
                    return !found;
                  });
  return found;
}

LoggedRun read_console(const std::filesystem::path& file, const Metric& metric) {
  NameReader names;
  std::vector<Line> lines;
  const auto keep = [&](Line& line) {
    lines.push_back(std::move(line));
    return true;
  };
  const bool page = is_page(file) && has_numbers_at_steps(file, {});
  const bool cut = each_line(file, page ? Part::tables : Part::lines,
                             std::numeric_limits<std::size_t>::max(), names, keep);
  keep_first_rank(lines);
  split_epochs(lines);
  name_by_data_before(lines);
  leave_out_words(lines, names, metric);
  // The same name on lines of another form is another metric: a mean over the epoch, say.
  const std::unordered_map<std::string, std::string> usual = usual_forms(lines);
  LogRows rows;
  std::unordered_map<std::string, std::string> example;
  for (const Line& line : lines) {
    const bool metric_there =
        std::any_of(line.cells.begin(), line.cells.end(),
                    [&](const auto& cell) {
                      return cell.first == metric || names.is_metric(cell.first);
                    }) ||
        line.of_data;
    for (const auto& [name, far] : line.totals) {
      if (metric_there) rows.plan(name, far);  // else it may be a bar of something else
    }
    for (const auto& [name, value] : line.counters) rows.put(name, value);
    for (const auto& [name, value] : line.cells) {
      const bool other = usual.at(name) != line.own;
      const std::string form = " (" + (line.own.empty() ? "alone" : line.own) + ")";
      const std::string called = other ? name + form : name;
      rows.put(called, value);
      example.try_emplace(called, line.text);
    }
    rows.end_row();
  }
  LoggedRun run{.series = rows.series()};
  if (cut) run.notes.emplace_back("the last line has no end: left out");
  bool known = metric.has_value() || std::any_of(lines.begin(), lines.end(),
                                                 [](const Line& line) { return line.of_data; });
  std::string repeated;
  std::size_t count = 0;
  for (const auto& [name, column] : run.series) {
    const std::string by = column->counter.empty() ? "" : " by " + repr(column->counter);
    column->notes.insert(column->notes.begin(),
                         repr(name) + by + " of lines as " + repr(example[name]));
    known = known || names.is_metric(name);
    if (column->step.size() < 3 || is_verb(name) || ++count > kRepeatedNames) continue;
    repeated += (repeated.empty() ? "" : ", ") + name;
  }
  if (known) return run;
  throw AbsentError(shown_path(file) + ": no line has a loss or a score at a step; say " +
                    (repeated.empty() ? "" : "metric= one of " + repeated + ", or ") +
                    std::string(kPatternAdvice));
}

}  // namespace glidepath::detail
