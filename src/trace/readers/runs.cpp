// SPDX-License-Identifier: Apache-2.0
// What columns of words tell apart: the runs of a log, or the parts of the data.
#include <algorithm>
#include <cmath>
#include <set>

#include "trace/readers/console_text.hpp"
#include "trace/readers/rows.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kLongestLabel = 200;
constexpr double kRowsOfRun = 3;  // that each run has on the mean, at least
// Of the rows of a metric, those that repeat the steps of others where there are several runs, and
// how few of these may be left where a column tells the runs apart.
constexpr double kRepeated = 0.25;
constexpr double kLeft = 0.1;

/// Whether a column says of which part of the data a row is: by its name, or by all of its words.
bool tells_data(std::string_view name, const std::vector<std::string>& words) {
  return is_split(name) || std::all_of(words.begin(), words.end(), [](const std::string& word) {
           return has_train(word) || is_held_out(word);
         });
}

}  // namespace

void LogRows::label(std::string_view name, std::string_view text) {
  if (text.empty() || text.size() > kLongestLabel) return;
  const auto place = label_places_.try_emplace(std::string(name), labels_.size()).first->second;
  if (place == labels_.size()) labels_.push_back({.name = std::string(name)});
  Labels& into = labels_[place];
  if (into.texts.size() > kMostRuns) return;
  const auto [entry, fresh] = into.codes.try_emplace(std::string(text), into.texts.size());
  if (fresh) into.texts.emplace_back(text);
  if (into.texts.size() > kMostRuns) {  // of sentences, not of names
    into.rows.clear();
    into.of_row.clear();
  } else if (into.rows.empty() || into.rows.back() != static_cast<std::int64_t>(count_)) {
    into.rows.push_back(static_cast<std::int64_t>(count_));
    into.of_row.push_back(entry->second);
  }
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
  std::sort(keys.begin(), keys.end());
  const auto different = std::unique(keys.begin(), keys.end()) - keys.begin();
  return rows.size() - static_cast<std::size_t>(different);
}

/// The column of words, if any, by which rows of the metric that repeat steps do so no more.
const LogRows::Labels* LogRows::telling(const std::function<bool(const Labels&)>& may) const {
  Points points;
  for (const Column& column : columns_) points.emplace_back(column.name, column.rows.size());
  const std::optional<std::string> metric = best_name(points);
  if (!metric || counters(names()).empty()) return nullptr;
  const RowNumbers& rows = find(*metric)->rows;
  const auto size = static_cast<double>(rows.size());
  std::optional<std::size_t> repeated;
  for (const Labels& labels : labels_) {
    if (labels.texts.size() < 2 || labels.texts.size() > kMostRuns) continue;
    const std::optional<std::vector<std::size_t>> these = labels_at(labels, rows);
    if (!these) continue;
    const std::set<std::size_t> different(these->begin(), these->end());
    if (different.size() < 2 || size < kRowsOfRun * static_cast<double>(different.size())) continue;
    if (!repeated) repeated = repeats(rows, {});
    const auto before = static_cast<double>(*repeated);
    const bool data = tells_data(labels.name, labels.texts);
    if (before == 0 || (!data && before < kRepeated * size) || !may(labels)) continue;
    if (static_cast<double>(repeats(rows, *these)) <= kLeft * before) return &labels;
  }
  return nullptr;
}

void LogRows::name_data() {
  const Labels* const found =
      telling([](const Labels& labels) { return tells_data(labels.name, labels.texts); });
  if (found == nullptr) return;
  LogRows named;
  for (const Column& column : columns_) {
    if (counts_steps(column.key) || is_clock(column.key)) {
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
  named.labels_ = labels_;
  named.label_places_ = label_places_;
  *this = std::move(named);
}

/// The rows of each label, in the order in which they come, without the column of labels.
std::vector<std::pair<std::string, LogRows>> LogRows::by_label(const Labels& labels) const {
  std::vector<std::pair<std::string, LogRows>> runs;
  for (const std::string& text : labels.texts) runs.emplace_back(text, LogRows());
  std::vector<std::int64_t> place(labels.rows.size());  // of each row in its run
  for (std::size_t i = 0; i < labels.rows.size(); ++i) {
    LogRows& run = runs[labels.of_row[i]].second;
    place[i] = static_cast<std::int64_t>(run.count_++);
    run.planned_ = planned_;
  }
  for (const Column& column : columns_) {
    if (column.name == labels.name) continue;
    std::size_t at = 0;
    for (std::size_t i = 0; i < column.rows.size(); ++i) {
      while (at < labels.rows.size() && labels.rows[at] < column.rows[i]) ++at;
      if (at == labels.rows.size() || labels.rows[at] != column.rows[i]) continue;
      Column& into = runs[labels.of_row[at]].second.column(column.name);
      into.rows.push_back(place[at]);
      into.values.push_back(column.values[i]);
    }
  }
  return runs;
}

/// The runs of a label, where each begins while the first is at most half done; else they go on
/// from one another and are one run.
std::optional<std::vector<LoggedRun>> LogRows::runs_by(const Labels& labels) const {
  const auto size = static_cast<double>(labels.texts.size());
  if (size < 2 || labels.texts.size() > kMostRuns ||
      static_cast<double>(count_) < kRowsOfRun * size) {
    return {};
  }
  std::vector<LoggedRun> found;
  double half = 0;
  for (const auto& [name, rows] : by_label(labels)) {
    found.push_back({.name = name, .series = rows.series()});
    const SeriesByName& series = found.back().series;
    if (series.empty() || series.front().second->step.empty()) return {};
    const std::vector<double>& step = series.front().second->step;
    const auto [first, last] = std::minmax_element(step.begin(), step.end());
    if (found.size() == 1) half = (*first + *last) / 2;
    if (!(*first <= half)) return {};
  }
  return found;
}

std::vector<LoggedRun> runs_of(LogRows rows) {
  rows.name_data();
  for (const LogRows::Labels& labels : rows.labels_) {
    if (!names_run(labels.name)) continue;
    if (std::optional<std::vector<LoggedRun>> runs = rows.runs_by(labels)) return *std::move(runs);
  }
  const LogRows::Labels* const told =
      rows.telling([](const LogRows::Labels& labels) { return !names_run(labels.name); });
  if (told != nullptr) {
    if (std::optional<std::vector<LoggedRun>> runs = rows.runs_by(*told)) {
      for (LoggedRun& run : *runs) {
        run.notes.push_back("rows at one step differ by " + repr(told->name));
      }
      return *std::move(runs);
    }
  }
  return {{.series = rows.series()}};
}

}  // namespace glidepath::detail
