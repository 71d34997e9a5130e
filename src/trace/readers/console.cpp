// SPDX-License-Identifier: Apache-2.0
// Console logs: what training loops print, found by its form and not by the tool that wrote it. A
// line without a counter belongs to the last one seen. Lines of several ranks, progress bars and
// tables between rules are brought into that form.
#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "common/csv.hpp"
#include "trace/readers/console_line.hpp"
#include "trace/readers/console_names.hpp"
#include "trace/readers/console_runs.hpp"
#include "trace/readers/console_source.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

// Letters of a file in which a first metric is looked for.
constexpr std::size_t kSearchedLetters = std::size_t{1} << 26;
constexpr std::size_t kRepeatedNames = 20;
constexpr std::size_t kCountingEnds = 5;  // ends of a counter that are so many count themselves

constexpr std::string_view kPage = ".md";
constexpr std::string_view kNotLogs[] = {
    ".py", kPage,  ".ipynb", ".sh", ".yml", ".yaml", ".toml", ".htm", ".html", ".js",
    ".ts", ".rst", ".tex",   ".c",  ".cc",  ".cpp",  ".h",    ".hpp", ".cu",   ".json"};
constexpr std::string_view kWordsOfSentences[] = {"is", "was", "in", "of",   "to",   "at",
                                                  "on", "for", "by", "from", "with", "ran"};
constexpr std::string_view kRunColumn = "fold";  // that of the runs' names
constexpr std::size_t kTurns = 4;  // lines of a process before the next one prints, at most

using Examples = std::unordered_map<std::string, std::string>;  // a line of each name

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
    line.totals.erase(kCounter);
  }
}

bool is_no_log(const std::filesystem::path& file, std::string_view head) {
  // A writer that crashed may leave some zeros.
  head = head.substr(0, head.find_last_not_of('\0') + 1);  // and many at the end
  const auto zeros = std::ranges::count(head, '\0');
  // Zeros alone make no file of bytes: among other text a crash may have left many.
  const bool bytes = std::ranges::any_of(
      head, [](char c) { return (c > '\0' && c < '\b') || (c > '\r' && c < '\x1b'); });
  const bool archive = contains(head.substr(0, 512), "ustar");
  const std::string name = file.filename().string();
  return (static_cast<double>(zeros) > static_cast<double>(head.size()) / 100 &&
          (bytes || archive || !is_utf8(head))) ||
         std::ranges::any_of(kNotLogs, [&](std::string_view end) { return name.ends_with(end); });
}

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
  return std::ranges::any_of(line.cells, [&](const auto& cell) {
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
      found->second.second += std::ranges::none_of(
          line.behind, [&](const auto& each) { return each.first == cell.first; });
    }
  }
  for (Line& line : lines) {
    for (const auto& [name, data] : line.behind) {
      const auto [behind, elsewhere] = count.at(name);
      if (elsewhere < std::min(kMinMentions, behind) || has_own(line, name, data)) continue;
      std::string whole = data;
      whole.append(" ").append(name);
      line.cells.rename(name, whole);
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
  std::ranges::stable_sort(forms, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::unordered_map<std::string, std::string> usual;
  for (const auto& [form, count] : forms) usual.try_emplace(form.first, form.second);
  return usual;
}

/// Whether a name ends as no name of a number does: "Ran", "train steps in".
bool is_verb(std::string_view name) {
  const std::vector<std::string_view> words = words_of(name);
  return words.empty() || among(kWordsOfSentences, lower(words.back()));
}

/// The rows of some lines, with an example of each name, and of runs where they have names.
LogRows rows_of(const std::vector<Line>& lines, const std::vector<std::string>& runs,
                const Metric& metric, NameReader& names, Examples& example) {
  // The same name on lines of another form is another metric: a mean over the epoch, say.
  const std::unordered_map<std::string, std::string> usual = usual_forms(lines);
  LogRows rows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const bool metric_there =
        std::ranges::any_of(line.cells,
                            [&](const auto& cell) {
                              return cell.first == metric || names.is_metric(cell.first);
                            }) ||
        line.of_data;
    if (line.begins) rows.forget_plans();
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
    if (!runs.empty()) rows.label(kRunColumn, runs[i]);
    rows.end_row();
  }
  return rows;
}

}  // namespace

bool is_page(const std::filesystem::path& file) { return file.extension() == kPage; }

bool is_console(const std::filesystem::path& file, std::string_view head) {
  if (is_no_log(file, head)) return false;
  NameReader names;
  std::unordered_map<std::string, int> alone;
  bool found = false;
  (void)each_line(file, LogPart::lines, kSearchedLetters, names, [&](Line& line) {
    for (const auto& [name, value] : line.cells) {
      const bool of_data = line.of_data && is_data(normal(name));
      if (!(of_data || names.is_metric(name)) || std::ranges::count(name, ' ') >= 4) continue;
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
  (void)each_line(file, page ? LogPart::tables : LogPart::lines, kSearchedLetters, names,
                  [&](Line& line) {
                    for (const auto& [name, value] : line.cells) {
                      found = found || (!line.counters.empty() && (page || ++count[name] > 2));
                    }
                    return !found;
                  });
  return found;
}

std::vector<LoggedRun> read_console(const std::filesystem::path& file, const Metric& metric) {
  NameReader names;
  std::vector<Line> lines;
  const auto keep = [&](Line& line) {
    lines.push_back(std::move(line));
    return true;
  };
  const bool page = is_page(file) && has_numbers_at_steps(file, {});
  const bool cut = each_line(file, page ? LogPart::tables : LogPart::lines,
                             std::numeric_limits<std::size_t>::max(), names, keep);
  keep_first_rank(lines);
  split_epochs(lines);
  name_by_data_before(lines);
  leave_out_words(lines, names, metric);
  Examples example;
  std::vector<LoggedRun> found;
  std::vector<std::string> notes;
  if (cut) notes.emplace_back("the last line has no end: left out");
  if (const std::vector<std::string> runs = run_names(lines); !runs.empty()) {
    found = runs_of(rows_of(lines, runs, metric, names, example), notes);
  }
  if (found.size() < 2) {
    found = {{.series = rows_of(lines, {}, metric, names, example).series(), .notes = notes}};
  }
  bool known = metric.has_value() ||
               std::ranges::any_of(lines, [](const Line& line) { return line.of_data; });
  std::string repeated;
  std::size_t count = 0;
  for (const LoggedRun& run : found) {
    for (const auto& [name, column] : run.series) {
      const std::string by = column->counter.empty() ? "" : " by " + repr(column->counter);
      column->notes.insert(column->notes.begin(),
                           repr(name) + by + " of lines as " + repr(example[name]));
      known = known || names.is_metric(name);
      if (column->step.size() < 3 || is_verb(name) || ++count > kRepeatedNames) continue;
      repeated += (repeated.empty() ? "" : ", ") + name;
    }
  }
  if (known) return found;
  throw AbsentError(shown_path(file) + ": no line has a loss or a score at a step; say " +
                    (repeated.empty() ? "" : "metric= one of " + repeated + ", or ") +
                    std::string(kPatternAdvice));
}

}  // namespace glidepath::detail
