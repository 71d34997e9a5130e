// SPDX-License-Identifier: Apache-2.0
// What columns of words tell apart: the runs of a log, and training from what is held out.
#include <algorithm>
#include <cmath>
#include <set>

#include "trace/readers/column_names.hpp"
#include "trace/readers/rows.hpp"
#include "trace/readers/run_settings.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kLongestLabel = 200;
constexpr std::size_t kMostParts = 8;  // of the data
// Rows that each run has on the mean, at least, and where runs stand at the same steps.
constexpr double kRowsOfRun = 3;
constexpr std::size_t kFewestRows = 2;
// Columns of the process that wrote a row.
constexpr std::string_view kRanks[] = {"rank", "global_rank", "process_index", "local_rank"};
// Columns of runs that may also say what the rows of one run are of in turn.
constexpr std::string_view kVariants[] = {"model", "experiment"};  // and optimizers
// Share of the rows at the steps of others that may stay so where a column tells them apart.
constexpr double kRemainingShare = 0.1;

Json word(const std::string& text) { return {.kind = Json::Kind::text, .text = text}; }

bool is_part(std::string_view word) { return has_train(word) || is_held_out(word); }

/// Whether words name parts of the data: some of them training and some what is held out, or by the
/// name of their column. Others that differ from row to row, such as hosts or shards, tell no runs
/// apart.
bool tell_data(std::string_view column, const std::vector<std::string>& words) {
  if (words.size() < 2) return false;
  return names_parts(column) ||
         (std::ranges::any_of(words, [](const std::string& word) { return has_train(word); }) &&
          std::ranges::any_of(words, [](const std::string& word) { return is_held_out(word); }));
}

}  // namespace

LogRows::Labels& LogRows::labels_called(std::string_view name) {
  const auto place = label_places_.try_emplace(std::string(name), labels_.size()).first->second;
  if (place == labels_.size()) {
    labels_.push_back({.name = std::string(name), .of_runs = names_run(name)});
  }
  return labels_[place];
}

void LogRows::put_label(Labels& into, std::int64_t row, std::string_view text) {
  if (text.empty() || text.size() > kLongestLabel || !into.may_tell) return;
  if (!into.rows.empty() && into.rows.back() == row) return;
  const auto [entry, fresh] = into.codes.try_emplace(std::string(text), into.texts.size());
  if (fresh) {
    std::string part = split_before(into.name, text);  // "val/" of the "true" of "eval"
    if (!part.empty()) part.pop_back();
    into.texts.push_back(part.empty() ? std::string(text) : std::move(part));
  }
  const std::size_t most = into.of_runs ? kMostRuns : kMostParts;
  if (into.texts.size() > most ||
      (fresh && !into.of_runs && !is_part(into.texts.back()) && !names_parts(into.name))) {
    into = {.name = into.name, .of_runs = into.of_runs, .may_tell = false};
    return;
  }
  into.rows.push_back(row);
  into.of_row.push_back(entry->second);
}

void LogRows::label(std::string_view name, std::string_view text) {
  if (text.empty() || text.size() > kLongestLabel) return;
  put_label(labels_called(name), static_cast<std::int64_t>(count_), text);
}

void LogRows::put_labels(const std::string& name, const std::vector<std::int64_t>& rows,
                         const std::vector<std::size_t>& codes,
                         const std::vector<std::string>& texts) {
  Labels& into = labels_called(name);
  for (std::size_t i = 0; i < rows.size() && i < codes.size(); ++i) {
    if (codes[i] < texts.size()) put_label(into, rows[i], texts[codes[i]]);
  }
  if (!rows.empty()) count_ = std::max(count_, static_cast<std::size_t>(rows.back()) + 1);
}

/// The labels of some rows; none where one of them has none.
std::optional<std::vector<std::size_t>> LogRows::labels_at(const Labels& labels,
                                                           const RowNumbers& rows) {
  std::vector<std::size_t> found;
  std::size_t at = 0;
  for (const std::int64_t row : rows) {
    while (at < labels.rows.size() && labels.rows[at] < row) ++at;
    if (at == labels.rows.size() || labels.rows[at] != row) return {};
    found.push_back(labels.of_row[at]);
  }
  return found;
}

/// How many of some rows stand at the steps of others, by all that counts and, where there are
/// some, by their labels.
std::size_t LogRows::repeats(const RowNumbers& rows, const std::vector<std::size_t>& labels) const {
  std::vector<std::vector<double>> keys(rows.size());
  for (const std::string& name : counters(names())) {
    const Column& counter = *find(name);
    std::size_t at = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      while (at < counter.rows.size() && counter.rows[at] < rows[i]) ++at;
      const bool there = at < counter.rows.size() && counter.rows[at] == rows[i];
      keys[i].push_back(there && !std::isnan(counter.values[at]) ? counter.values[at] : -1);
    }
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    keys[i].push_back(static_cast<double>(labels[i]));
  }
  std::ranges::sort(keys);
  const auto different = std::unique(keys.begin(), keys.end()) - keys.begin();
  return rows.size() - static_cast<std::size_t>(different);
}

std::optional<std::string> LogRows::best_metric() const {
  Points points;
  for (const Column& column : columns_) points.emplace_back(column.name, column.rows.size());
  return best_name(points);
}

/// The column of parts of the data, if any, by which rows of the metric that repeat steps do so no
/// more.
const LogRows::Labels* LogRows::parts_of_data() const {
  const std::optional<std::string> metric = best_metric();
  if (!metric || counters(names()).empty()) return nullptr;
  const RowNumbers& rows = find(*metric)->rows;
  for (const Labels& labels : labels_) {
    if (labels.of_runs || !labels.may_tell || !tell_data(labels.name, labels.texts)) continue;
    const std::optional<std::vector<std::size_t>> these = labels_at(labels, rows);
    if (!these) continue;
    const auto before = static_cast<double>(repeats(rows, {}));
    if (before > 0 && static_cast<double>(repeats(rows, *these)) <= kRemainingShare * before)
      return &labels;
  }
  return nullptr;
}

std::size_t LogRows::keep_first_rank() {
  const auto is_rank = [](const Column& column) {
    return among(kRanks, column.key) && std::ranges::all_of(column.values, [](double x) {
             return std::isfinite(x) && x == std::floor(x);
           });
  };
  const auto found = std::ranges::find_if(columns_, is_rank);
  if (found == columns_.end()) return 0;
  const std::set<double> ranks(found->values.begin(), found->values.end());
  if (ranks.size() < 2 ||
      kRowsOfRun * static_cast<double>(ranks.size()) > static_cast<double>(found->rows.size())) {
    return 0;
  }
  Labels labels{.texts = {"first", "others"}};
  RowNumbers of_first, of_others;
  std::size_t at = 0;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(count_); ++row) {
    const bool there = at < found->rows.size() && found->rows[at] == row;
    const bool other = there && found->values[at] != *ranks.begin();
    at += there;
    labels.rows.push_back(row);
    labels.of_row.push_back(other ? 1 : 0);
    if (there) (other ? of_others : of_first).push_back(row);
  }
  const auto steps = [&](const RowNumbers& rows) { return rows.size() - repeats(rows, {}); };
  const std::size_t others = steps(of_others);
  if (2 * (steps(of_first) + others - steps(found->rows)) < others) return 0;
  *this = std::move(by_label(labels).front().second);
  return ranks.size();
}

void LogRows::name_data() {
  const Labels* const found = parts_of_data();
  if (found == nullptr) return;
  LogRows named;
  for (const Column& column : columns_) {
    if (counts_steps(column.key) || is_time(column.key)) {
      named.put_column(column.name, column.rows, column.values);
      continue;
    }
    std::size_t at = 0;
    std::map<std::string, std::pair<RowNumbers, std::vector<double>>> parts;
    for (std::size_t i = 0; i < column.rows.size(); ++i) {
      while (at < found->rows.size() && found->rows[at] < column.rows[i]) ++at;
      const bool there = at < found->rows.size() && found->rows[at] == column.rows[i];
      const std::string first = there ? found->texts[found->of_row[at]] + "/" : "";
      auto& [rows, values] = parts[first + column.name];
      rows.push_back(column.rows[i]);
      values.push_back(column.values[i]);
    }
    for (auto& [name, part] : parts) {
      named.put_column(name, std::move(part.first), std::move(part.second));
    }
  }
  named.count_ = count_;
  named.planned_ = planned_;
  named.settings_ = settings_;
  named.labels_ = labels_;
  named.label_places_ = label_places_;
  *this = std::move(named);
}

/// The rows of each label, in the order in which they come, without the column of labels. A row
/// without one goes with those above it.
LogRows::NamedRows LogRows::by_label(const Labels& labels) const {
  NamedRows runs;
  for (const std::string& text : labels.texts) {
    LogRows& run = runs.emplace_back(text, LogRows()).second;
    run.settings_ = settings_;
    if (names_optimizer(labels.name)) run.settings_.emplace_back(labels.name, word(text));
  }
  std::vector<std::pair<std::size_t, std::int64_t>> place(count_);  // run, and row in it
  std::size_t next = 0, code = 0;
  for (std::size_t row = 0; row < count_; ++row) {
    if (next < labels.rows.size() && labels.rows[next] == static_cast<std::int64_t>(row)) {
      code = labels.of_row[next++];
    }
    LogRows& run = runs[code].second;
    place[row] = {code, static_cast<std::int64_t>(run.count_++)};
    run.planned_ = planned_;
  }
  for (const Column& column : columns_) {
    if (column.name == labels.name) continue;
    for (std::size_t i = 0; i < column.rows.size(); ++i) {
      const auto [run, row] = place[static_cast<std::size_t>(column.rows[i])];
      Column& into = runs[run].second.column(column.name);
      into.rows.push_back(row);
      into.values.push_back(column.values[i]);
    }
  }
  for (const Labels& other : labels_) {
    if (&other == &labels || !other.may_tell) continue;
    for (std::size_t i = 0; i < other.rows.size(); ++i) {
      const auto [run, row] = place[static_cast<std::size_t>(other.rows[i])];
      put_label(runs[run].second.labels_called(other.name), row, other.texts[other.of_row[i]]);
    }
  }
  return runs;
}

bool LogRows::steps_repeat() const {
  const std::optional<std::string> metric = best_metric();
  return metric && !counters(names()).empty() && repeats(find(*metric)->rows, {}) > 0;
}

/// Whether runs stand at the same steps: of all but the longest at least half are those of runs
/// before.
bool LogRows::share_steps(const std::vector<std::vector<double>>& steps) {
  std::set<double> seen;
  std::size_t shared = 0, all = 0, longest = 0;
  for (const std::vector<double>& run : steps) {
    const std::set<double> own(run.begin(), run.end());
    longest = std::max(longest, own.size());
    all += own.size();
    for (const double step : own) shared += seen.insert(step).second ? 0 : 1;
  }
  return 2 * shared >= all - longest;
}

/// The rows of each run of a label, where each begins while the first is at most half done; else
/// they go on from one another and are one run. Names that rows may have in turn, as `model` is
/// "best" or "last", and those of few rows each tell runs apart only at the same steps.
std::optional<LogRows::NamedRows> LogRows::runs_by(const Labels& labels) const {
  const std::size_t size = labels.texts.size();
  if (size < 2 || count_ < kFewestRows * size) return {};
  const bool few = static_cast<double>(count_) < kRowsOfRun * static_cast<double>(size);
  NamedRows found = by_label(labels);
  const std::optional<std::string> metric = best_metric();
  std::vector<std::vector<double>> steps;
  double half = 0;
  for (const auto& [name, rows] : found) {
    const SeriesByName series = rows.series();
    const auto looked_at = std::ranges::find_if(
        series, [&](const auto& each) { return !metric || each.first == *metric; });
    if (looked_at == series.end() || looked_at->second->step.empty()) return {};
    const std::vector<double>& step = looked_at->second->step;
    const auto [first, last] = std::ranges::minmax_element(step);
    if (steps.empty()) half = (*first + *last) / 2;
    if (!(*first <= half)) return {};
    steps.push_back(step);
  }
  const bool variant = among(kVariants, normal(labels.name)) || names_optimizer(labels.name);
  if ((few || variant) && !share_steps(steps)) return {};
  return found;
}

/// The rows of each run, told apart by the columns of runs, each as far as steps still repeat.
LogRows::NamedRows LogRows::told_apart() const {
  for (const Labels& labels : labels_) {
    if (!labels.of_runs || !labels.may_tell) continue;
    std::optional<NamedRows> runs = runs_by(labels);
    if (!runs) continue;
    NamedRows found;
    for (auto& [name, rows] : *runs) {
      NamedRows parts = rows.steps_repeat() ? rows.told_apart() : NamedRows{{"", rows}};
      for (auto& [inner, part] : parts) {
        if (!inner.empty()) inner.insert(0, "/");
        found.emplace_back(inner.insert(0, name), std::move(part));
      }
    }
    return found;
  }
  return {{"", *this}};
}

Settings LogRows::settings() const {
  std::vector<std::pair<std::string, Json>> members = settings_;
  for (const Labels& labels : labels_) {
    const bool one = labels.may_tell && labels.texts.size() == 1;
    if (one && names_optimizer(labels.name)) {
      members.emplace_back(labels.name, word(labels.texts[0]));
    }
  }
  Settings settings;
  put_settings(settings, Json{.kind = Json::Kind::object, .members = std::move(members)});
  return settings;
}

std::vector<LoggedRun> runs_of(LogRows rows, const std::vector<std::string>& said) {
  std::vector<std::string> notes = said;
  if (const std::size_t ranks = rows.keep_first_rank()) {
    notes.push_back("of " + counted(ranks, "rank") + " the first was read");
  }
  rows.name_data();
  std::vector<LoggedRun> runs;
  for (auto& [name, part] : rows.told_apart()) {
    part.name_data();  // whose steps the other runs repeated, too
    runs.push_back(
        {.name = name, .series = part.series(), .notes = notes, .settings = part.settings()});
  }
  return runs;
}

}  // namespace glidepath::detail
