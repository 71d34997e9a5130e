// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/rows.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <set>

#include "common/interrupt.hpp"
#include "trace/readers/column_names.hpp"
#include "trace/readers/column_values.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();
constexpr double kMilliseconds = 1e11;  // times of day above it are not in seconds
constexpr std::string_view kTimeInMilliseconds = "time_ms";  // however few they are
constexpr std::size_t kMinGaps = 2;  // of a metric that is not logged in every row

// Columns that count steps where nothing else does, and only where they rise.
constexpr std::string_view kTokens[] = {"tokens", "tokens_seen", "num_tokens"};

// Parts of a row that configure or measure the run.
constexpr std::string_view kConfiguration[] = {"config",     "args",     "hparams",
                                               "hist_stats", "env_info", "vocab"};

/// A vector of rows as a key that is looked up without a copy.
struct RowsHash {
  std::size_t operator()(const std::vector<std::int64_t>* rows) const noexcept {
    std::uint64_t hash = 1469598103934665603U;
    for (const std::int64_t row : *rows) {
      hash = (hash ^ static_cast<std::uint64_t>(row)) * 1099511628211U;
    }
    return hash;
  }
};
struct SameRows {
  bool operator()(const auto* a, const auto* b) const noexcept { return *a == *b; }
};

void flatten(const Json& object, const std::string& within, Cells& cells) {
  for (const auto& [key, value] : object.members) {
    if (!value.is(Json::Kind::object)) {
      cells.emplace_back(within + key, &value);
    } else if (!among(kConfiguration, key)) {
      flatten(value, within + key + "/", cells);
    }
  }
}

}  // namespace

Cells flat(const Json& object) {
  Cells cells;
  flatten(object, "", cells);
  return cells;
}

std::optional<double> number_of(const Json& value) {
  if (value.is(Json::Kind::number)) return value.number;
  if (value.is(Json::Kind::text)) return number_in(value.text);
  return {};
}

LogRows::Column& LogRows::column(std::string_view name) {
  if (next_ < columns_.size() && columns_[next_].name == name) return columns_[next_++];
  const auto entry = place_.find(name);
  if (entry != place_.end()) {
    next_ = entry->second + 1;
    return columns_[entry->second];
  }
  place_.emplace(name, columns_.size());
  columns_.push_back({std::string(name), normal(name)});
  next_ = columns_.size();
  return columns_.back();
}

const LogRows::Column* LogRows::find(std::string_view name) const {
  const auto entry = place_.find(name);
  return entry == place_.end() ? nullptr : &columns_[entry->second];
}

void LogRows::put(std::string_view name, double value) {
  Column& into = column(name);
  const auto row = static_cast<std::int64_t>(count_);
  if (!into.rows.empty() && into.rows.back() == row) {
    into.values.back() = value;
    return;
  }
  into.rows.push_back(row);
  into.values.push_back(value);
}

void LogRows::put(std::string_view name, std::string_view text) {
  if (names_run(name)) label(name, text);
  if (const std::optional<double> number = number_in(text)) {
    put(name, *number);
  } else if (const std::optional<Count> count = count_in(name, text)) {
    put(count->counter, count->at);
    if (count->end) plan(std::string(count->counter), *count->end);
  } else if (is_clock(normal(name))) {
    put(name, seconds_in(text));
  } else if (const double date = seconds_of_date(text); !std::isnan(date)) {
    const std::string key = normal(name);
    if (is_time(key) || among(kTimes, key)) put(name, date);
  } else if (!names_run(name)) {
    label(name, text);
  }
}

bool LogRows::end_unfinished_row() {
  const auto row = static_cast<std::int64_t>(count_);
  const bool back = std::ranges::any_of(columns_, [&](const Column& column) {
    const std::size_t size = column.values.size();
    return counts_steps(column.key) && size > 1 && column.rows.back() == row &&
           column.values[size - 1] < column.values[size - 2];
  });
  if (back) {
    for (Column& column : columns_) {
      if (column.rows.empty() || column.rows.back() != row) continue;
      column.rows.pop_back();
      column.values.pop_back();
    }
    for (Labels& labels : labels_) {
      if (labels.rows.empty() || labels.rows.back() != row) continue;
      labels.rows.pop_back();
      labels.of_row.pop_back();
    }
  }
  end_row();
  return !back;
}

void LogRows::put_cell(std::string_view name, double value) {
  const bool flag = (value == 0 || value == 1) && !split_before(name, general(value)).empty();
  if (flag || names_run(name)) label(name, general(value, 17));
  put(name, value);
}

void LogRows::add(const Cells& cells) {
  for (const auto& [name, value] : cells) {
    if (value->is(Json::Kind::number)) {
      put_cell(name, value->number);
    } else if (value->is(Json::Kind::text)) {
      put(name, std::string_view(value->text));
    }
  }
  end_row();
}

void LogRows::put_column(std::string_view name, std::vector<std::int64_t> rows,
                         std::vector<double> values) {
  Column& into = column(name);
  if (!rows.empty()) count_ = std::max(count_, static_cast<std::size_t>(rows.back()) + 1);
  into.rows = std::move(rows);
  into.values = std::move(values);
}

void LogRows::forget_first_row() {
  const auto alone = [](const Column& column) {
    return column.rows.size() == 1 && column.rows.front() == 0;
  };
  const bool logged = std::ranges::any_of(columns_, [&](const Column& column) {
    return !alone(column) && (counts_steps(column.key) || is_metric(column.name));
  });
  if (!logged) return;
  std::erase_if(columns_, alone);
  place_.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) place_.emplace(columns_[i].name, i);
}

std::vector<std::string> LogRows::names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  return names;
}

const LogRows::Column* LogRows::clock() const {
  const auto find_key = [&](std::string_view key) -> const Column* {
    const auto found =
        std::ranges::find_if(columns_, [&](const Column& column) { return column.key == key; });
    return found == columns_.end() || found->values.empty() ? nullptr : &*found;
  };
  for (const std::string_view key : kClocks) {
    const Column* const found = find_key(key);
    if (found != nullptr && goes_on(found->values)) return found;
  }
  for (const std::string_view key : kStamps) {
    const Column* const found = find_key(key);
    const bool each = key == kTimeInMilliseconds;  // may be what a row took as well
    if (found != nullptr && (!each || goes_on(found->values))) return found;
  }
  const auto of_day = [](const Column& column) {
    return are_of_day(column.values) && goes_on(column.values);
  };
  for (const std::string_view key : kTimes) {
    const Column* const found = find_key(key);
    if (found != nullptr && (of_day(*found) || goes_on_from_start(found->values))) return found;
  }
  for (const std::string_view key : kDates) {
    const Column* const found = find_key(key);
    if (found != nullptr && of_day(*found)) return found;
  }
  return nullptr;
}

/// How many metrics have a finite value in each row.
std::vector<std::size_t> LogRows::finite_in_rows() const {
  std::vector<std::size_t> finite;
  for (const Column& column : columns_) {
    if (counts_steps(column.key) || !is_metric(column.name)) continue;
    for (std::size_t i = 0; i < column.rows.size(); ++i) {
      const auto row = static_cast<std::size_t>(column.rows[i]);
      if (row >= finite.size()) finite.resize(row + 1);
      finite[row] += std::isfinite(column.values[i]);
    }
  }
  return finite;
}

/// A column without the NaN that stand where it was not logged, if it has such: at least half of
/// its cells, between finite ones time and again, in rows with a finite value of another metric. A
/// run that diverged has NaN to its end, which are more than ever stood between.
std::optional<LogRows::Column> LogRows::without_gaps(const Column& column,
                                                     const std::vector<std::size_t>& finite) {
  const auto missing = [&](std::size_t i) {
    const auto row = static_cast<std::size_t>(column.rows[i]);
    return std::isnan(column.values[i]) && row < finite.size() && finite[row] > 0;
  };
  std::size_t count = 0, ended = 0, stretch = 0, longest = 0;
  for (std::size_t i = 0; i < column.rows.size(); ++i) {
    if (std::isnan(column.values[i])) {
      count += missing(i);
      ++stretch;
    } else {
      ended += stretch > 0;
      longest = std::max(longest, stretch);
      stretch = 0;
    }
  }
  if (2 * count < column.rows.size() || ended < kMinGaps) return {};
  const std::size_t last = column.rows.size() - (stretch > longest ? stretch : 0);
  Column kept{.name = column.name, .key = column.key};
  for (std::size_t i = 0; i < column.rows.size(); ++i) {
    if (i < last && missing(i)) continue;
    kept.rows.push_back(column.rows[i]);
    kept.values.push_back(column.values[i]);
  }
  return kept;
}

SeriesByName LogRows::series() const {
  std::vector<const Column*> counting;
  for (const std::string& name : counters(names())) counting.push_back(find(name));
  for (const Column& column : columns_) {
    const bool tokens = among(kTokens, column.key) && counts_up(column.values);
    const Course course = tokens ? course_of(column.values) : Course();
    if (tokens && kRisesABack * course.backs <= course.rises) counting.push_back(&column);
  }
  const Column* const time = clock();
  const bool stamps = time != nullptr && !is_clock(time->key) &&
                      (!among(kTimes, time->key) || are_of_day(time->values));
  const bool thousandths =
      stamps && (time->key == kTimeInMilliseconds || time->values.front() > kMilliseconds);
  const double scale = thousandths ? 1e-3 : 1.0;
  const double origin = stamps ? *std::ranges::min_element(time->values) : 0.0;

  const std::vector<Column> in_parts = counters_in_parts();
  const auto counts_a_part = [&](std::string_view name) {
    return std::ranges::any_of(in_parts, [&](const Column& each) { return each.name == name; });
  };
  using KnownSteps = std::unordered_map<const RowNumbers*, Steps, RowsHash, SameRows>;
  std::map<std::string_view, KnownSteps> of_parts;  // where only a part may have its own counter
  std::set<std::string> used;
  SeriesByName found;
  std::optional<std::vector<std::size_t>> finite;
  std::list<Column> without;  // which outlive their rows in `known`
  for (const Column& logged : columns_) {
    check_interrupt();
    if (&logged == time || counts_steps(logged.key)) continue;
    const bool nan = std::ranges::any_of(logged.values, [](double x) { return std::isnan(x); });
    if (nan && !finite) finite = finite_in_rows();
    std::optional<Column> kept = nan ? without_gaps(logged, *finite) : std::nullopt;
    if (kept) without.push_back(*std::move(kept));
    const bool gaps = !without.empty() && without.back().name == logged.name;
    const Column& column = gaps ? without.back() : logged;
    const bool counts = counts_a_part(column.name);
    const Column* const of_data = counter_of_data(column, counting);
    const std::string_view part = of_data != nullptr ? of_data->name
                                  : in_parts.empty() ? std::string_view()
                                  : counts           ? column.name
                                                     : part_of(column.name);
    KnownSteps& known = of_parts[part];
    auto entry = known.find(&column.rows);
    if (entry == known.end()) {
      const Steps steps =
          steps_of(column.rows, of_data != nullptr ? std::vector<const Column*>{of_data}
                                                   : counters_for(column, counting, in_parts));
      entry = known.emplace(&column.rows, steps).first;
    }
    const Steps& steps = entry->second;
    if (!counts) used.insert(steps.series.counter);
    auto series = std::make_shared<Series>(steps.series);
    RowNumbers at;
    series->value.reserve(steps.kept.size());
    for (const std::size_t i : steps.kept) {
      series->value.push_back(column.values[i]);
      at.push_back(column.rows[i]);
    }
    if (time != nullptr) {
      std::vector<double> there;
      const std::vector<std::size_t> places = match(time->rows, time->values, at, there);
      series->seconds.assign(at.size(), kNoTime);
      for (std::size_t i = 0; i < places.size(); ++i) {
        series->seconds[places[i]] = stamps ? (there[i] - origin) * scale : there[i];
      }
    }
    if (gaps) {
      const std::size_t left = logged.rows.size() - column.rows.size();
      series->notes.push_back(counted(left, "NaN") + " of " + repr(column.name) +
                              " beside other metrics: not logged there");
    }
    found.emplace_back(column.name, std::move(series));
  }
  std::erase_if(found, [&](const auto& each) { return used.contains(each.first); });
  return found;
}

}  // namespace glidepath::detail
