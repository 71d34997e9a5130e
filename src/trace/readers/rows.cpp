// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/rows.hpp"

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_set>

#include "common/interrupt.hpp"
#include "trace/readers/console_text.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr double kMilliseconds = 1e11;  // times of day above it are not in seconds
constexpr std::string_view kTimeInMilliseconds = "time_ms";  // however few they are
constexpr double kTimeOfDay = 1e9;  // seconds above it are no run's: since 1970, of 2001 on
// Share of the rows that a counter must have, and how many more than a better one.
constexpr double kCounterShare = 0.9;
constexpr double kMore = 1.1;
constexpr double kAgreeing = 0.8;
// Times that a counter or a clock goes on, at least, for each that it goes back.
constexpr std::size_t kRisesABack = 4;
// Of seconds that may be what each row took: how many there are at least, and how far they go.
constexpr std::size_t kFewestTimes = 3;
constexpr double kGrown = 2;
constexpr std::size_t kFewRestarts = 2;  // one that goes back more often gives way to others
// Share of the rows that may repeat an epoch, where it is whole and where it is a fraction.
constexpr double kSameEpoch = 0.7;
constexpr double kSameFraction = 0.3;
constexpr std::size_t kFewestGaps = 2;  // of a metric that is not logged in every row
constexpr double kRounded = 100;        // parts of an epoch that the Trainer prints

// Columns that count steps where nothing else does, and only where they rise.
constexpr std::string_view kTokens[] = {"tokens", "tokens_seen", "num_tokens"};

// Parts of a row that configure or measure the run.
constexpr std::string_view kConfiguration[] = {"config",     "args",     "hparams",
                                               "hist_stats", "env_info", "vocab"};

// Columns of the part of the data that a row is of, whatever they call it, and by words for it.
constexpr std::string_view kParts[] = {"split", "set", "subset", "partition"};
constexpr std::string_view kSplits[] = {"phase", "stage", "mode", "type", "dataset"};
constexpr std::string_view kTrainingFlags[] = {"is_train", "is_training"};  // by true or false

// Columns of the name of a number, of the number itself, and of the run that a row is of.
constexpr std::string_view kNamed[] = {"metric", "metric_name", "tag", "key", "variable"};
constexpr std::string_view kValues[] = {"value", "metric_value"};
constexpr std::string_view kRuns[] = {"run",        "run_id", "run_name", "run_uuid", "model",
                                      "experiment", "seed",   "fold",     "trial",    "trial_id"};

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

bool is_whole(double x) { return x == std::floor(x); }

/// The values of a column at some of its rows, and which of `rows` it has.
std::vector<std::size_t> match(const std::vector<std::int64_t>& there,
                               const std::vector<double>& values,
                               const std::vector<std::int64_t>& rows, std::vector<double>& found) {
  std::vector<std::size_t> kept;
  if (rows.empty()) return kept;
  auto at = static_cast<std::size_t>(std::lower_bound(there.begin(), there.end(), rows.front()) -
                                     there.begin());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    while (at < there.size() && there[at] < rows[i]) ++at;
    if (at == there.size()) break;
    if (there[at] != rows[i]) continue;
    kept.push_back(i);
    found.push_back(values[at]);
  }
  return kept;
}

/// Whether a column says in its last value how far a counter of optimizer steps or of epochs goes.
bool plans(std::string_view column, std::string_view counter) {
  if (column == "total_epochs") return is_epoch(counter);
  if (column != "total_steps" && column != "max_steps") return false;
  return counter == "step" || counter == "global_step" || counter == "current_steps";
}

void flatten(const Json& object, const std::string& within, Cells& cells) {
  for (const auto& [key, value] : object.members) {
    if (!value.is(Json::Kind::object)) {
      cells.emplace_back(within + key, &value);
    } else if (std::find(std::begin(kConfiguration), std::end(kConfiguration), key) ==
               std::end(kConfiguration)) {
      flatten(value, within + key + "/", cells);
    }
  }
}

/// The part of a row in which a name stands, such as "train/", with its mark; or nothing.
std::string_view part_of(std::string_view name) { return name.substr(0, name.rfind('/') + 1); }

/// How neighbouring values of a column go.
struct Course {
  std::size_t rises = 0, backs = 0, stands = 0;
};

Course course_of(const std::vector<double>& values) {
  Course course;
  for (std::size_t i = 1; i < values.size(); ++i) {
    course.rises += values[i] > values[i - 1];
    course.backs += values[i] < values[i - 1];
    course.stands += values[i] == values[i - 1];
  }
  return course;
}

/// Whether values are those of a counter: whole, and rising but where it begins anew. What a step
/// takes, which may be called a step as well, goes up and down.
bool counts_up(const std::vector<double>& values) {
  if (values.empty() || !std::all_of(values.begin(), values.end(), is_whole)) return false;
  if (!std::isfinite(*std::max_element(values.begin(), values.end()))) return false;
  const double lowest = *std::min_element(values.begin(), values.end());
  std::size_t strays = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    strays += values[i] < values[i - 1] && values[i] > lowest;
  }
  const Course course = course_of(values);
  return kRisesABack * strays <= course.rises && (course.rises > 0 || values.size() < 3);
}

/// Whether a clock goes on: what each row took does not. Rows may stand newest first.
bool goes_on(const std::vector<double>& values) {
  const Course course = course_of(values);
  const auto [fewer, more] = std::minmax(course.rises, course.backs);
  return values.size() < 2 || (more > 0 && kRisesABack * fewer <= more);
}

/// Whether times are those of day.
bool are_of_day(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double x) { return x > kTimeOfDay; });
}

/// Whether seconds are counted from the beginning, by how they go: what each row took may rise as
/// well, but hardly to twice as much without going back once.
bool goes_on_from_start(const std::vector<double>& values) {
  const Course course = course_of(values);
  const auto [fewer, more] = std::minmax(course.rises, course.backs);
  if (values.size() < kFewestTimes || fewer > 0 || course.stands > more) return false;
  const auto [least, most] = std::ranges::minmax(values);
  return least >= 0 && most >= kGrown * least && most > 0;
}

/// Spreads rows that stand at one fraction of an epoch, as it was rounded, up to the next one.
/// Whether there were such: rows further apart are no closer than the fraction tells, and one that
/// repeats may have been logged again.
bool spread_rounded(std::vector<double>& value) {
  const bool rounded = std::all_of(value.begin(), value.end(), [](double x) {
    return std::abs(x * kRounded - std::round(x * kRounded)) < 1e-6;
  });
  const Course course = course_of(value);
  std::size_t close = 0;
  for (std::size_t i = 1; i < value.size(); ++i) {
    close += value[i] > value[i - 1] && value[i] - value[i - 1] < 1.5 / kRounded;
  }
  if (!rounded || course.stands < 2 || course.rises == 0 || 2 * close < course.rises) return false;
  for (std::size_t i = 0; i < value.size();) {
    const double here = value[i];
    std::size_t end = i;
    while (end < value.size() && value[end] == here) ++end;
    const double apart = 1 / kRounded / static_cast<double>(end - i);
    for (double k = 0; i < end; ++i, ++k) value[i] = here + k * apart;
  }
  return true;
}

/// Puts the end of an epoch, which Sentence Transformers writes as step -1, behind its steps.
void count_ends(std::vector<double>& value) {
  double gap = kInfinite, highest = 0;
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (value[i] > value[i - 1] && value[i - 1] > 0) gap = std::min(gap, value[i] - value[i - 1]);
    highest = std::max(highest, value[i - 1]);
  }
  if (gap == kInfinite) return;
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (value[i] == -1 && value[i - 1] > 0) value[i] = highest + gap;
  }
}

}  // namespace

std::vector<std::string> counters(std::span<const std::string> names) {
  std::unordered_map<std::string, const std::string*> spelled;
  for (const std::string& name : names) {
    std::string key = normal(name);
    if (counts_steps(key)) spelled.try_emplace(std::move(key), &name);
  }
  std::vector<std::string> found;
  if (spelled.empty()) return found;
  for (const std::string_view key : step_names()) {
    const auto entry = spelled.find(std::string(key));
    if (entry != spelled.end()) found.push_back(*entry->second);
  }
  return found;
}

bool counts_in_part(std::string_view name) {
  const std::string_view last = name.substr(part_of(name).size());
  const std::string key = normal(last);
  // "steps" in a part are how many there were, such as those of an episode.
  return last.size() < name.size() && counts_steps(key) && !is_within(key) && key != "steps";
}

bool tells(std::span<const std::string> names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    const std::string key = normal(name);
    return (counts_steps(key) && !is_within(key)) || counts_in_part(name) || is_metric(name);
  });
}

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

bool is_value(std::string_view column) { return among(kValues, normal(column)); }

bool names_value(std::string_view column, std::string_view text) {
  const std::string key = normal(column);
  if (key == "name") return is_metric(text) || is_rate(text);  // else it may be that of the run
  return among(kNamed, key) && !text.empty() && !number_in(text);
}

bool names_run(std::string_view column) { return among(kRuns, normal(column)); }

bool names_parts(std::string_view column) { return among(kParts, normal(column)); }

bool is_split(std::string_view name) {
  const std::string key = normal(name);
  return names_parts(name) || among(kSplits, key) || among(kTrainingFlags, key);
}

std::string split_before(std::string_view name, std::string_view text) {
  const std::string key = normal(name);
  if (among(kTrainingFlags, key)) {
    const std::string truth = lower(text);
    if (truth == "true" || truth == "1") return "train/";
    return truth == "false" || truth == "0" ? "val/" : "";
  }
  if (!is_split(name) || !(has_train(text) || is_held_out(text))) return {};
  return std::string(text) + "/";
}

std::optional<Count> count_in(std::string_view name, std::string_view text) {
  if (!counts_steps(normal(name))) name = name.substr(0, name.find('/'));
  if (!counts_steps(normal(name))) return {};
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() == 2 && counts_steps(normal(words[0]))) text = words[1];
  const std::size_t of = text.find('/');
  const auto whole = [](std::string_view part) -> std::optional<double> {
    part = stripped(part);
    const bool digits = !part.empty() && digits_at(part, 0) == part.size();
    return digits ? number_in(part) : std::nullopt;
  };
  const std::optional<double> at = whole(text.substr(0, of));
  if (!at || of == text.npos) return at ? std::optional(Count{name, *at, {}}) : std::nullopt;
  const std::optional<double> end = whole(text.substr(of + 1));
  return end ? std::optional(Count{name, *at, end}) : std::nullopt;
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
  const bool back = std::any_of(columns_.begin(), columns_.end(), [&](const Column& column) {
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
  if (names_run(name)) label(name, general(value, 17));
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

void LogRows::put_column(std::string name, std::vector<std::int64_t> rows,
                         std::vector<double> values) {
  Column& into = column(name);
  if (!rows.empty()) count_ = std::max(count_, static_cast<std::size_t>(rows.back()) + 1);
  into.rows = std::move(rows);
  into.values = std::move(values);
}

std::vector<std::string> LogRows::names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  return names;
}

const LogRows::Column* LogRows::clock() const {
  const auto find_key = [&](std::string_view key) -> const Column* {
    const auto found = std::find_if(columns_.begin(), columns_.end(),
                                    [&](const Column& column) { return column.key == key; });
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
  if (2 * count < column.rows.size() || ended < kFewestGaps) return {};
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
    return std::any_of(in_parts.begin(), in_parts.end(),
                       [&](const Column& each) { return each.name == name; });
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
      series->seconds.assign(at.size(), kMissing);
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

/// The counters in parts of rows, each by the name that it has there: "step" of "train/step".
std::vector<LogRows::Column> LogRows::counters_in_parts() const {
  std::vector<Column> found;
  for (const Column& column : columns_) {
    if (counts_steps(column.key) || !counts_in_part(column.name) || !counts_up(column.values)) {
      continue;
    }
    found.push_back(column);
    found.back().key = normal(std::string_view(column.name).substr(part_of(column.name).size()));
  }
  return found;
}

/// The counter of a metric whose data have one of their own: "val_iters" of "val_loss" beside the
/// "iters" of "loss". Such columns begin in the first row and end before others do, or after them.
const LogRows::Column* LogRows::counter_of_data(const Column& metric,
                                                const std::vector<const Column*>& own) const {
  const RowNumbers& rows = metric.rows;
  const std::size_t end = metric.key.find('_');
  const auto beside = [&](const Column* column) { return column->rows == rows; };
  if (end == metric.key.npos || !is_data(metric.key.substr(0, end)) || rows.empty() ||
      rows.back() + 1 != static_cast<std::int64_t>(rows.size()) ||
      std::any_of(own.begin(), own.end(), beside)) {
    return nullptr;
  }
  const auto found = std::find_if(columns_.begin(), columns_.end(), [&](const Column& column) {
    return column.key.starts_with(metric.key.substr(0, end + 1)) &&
           counts_steps(column.key.substr(end + 1)) && beside(&column) && counts_up(column.values);
  });
  return found == columns_.end() ? nullptr : &*found;
}

/// The counters that the rows of a metric may have, best first: steps of the rows themselves, those
/// in parts, the part of the metric first, and then batches, epochs and the like of the rows. One
/// in a part has to go on as often as those, and one in another part at most of the rows.
std::vector<const LogRows::Column*> LogRows::counters_for(const Column& metric,
                                                          const std::vector<const Column*>& own,
                                                          const std::vector<Column>& in_parts) {
  if (in_parts.empty()) return own;
  const auto rank_of = [names = step_names()](std::string_view key) {
    return std::find(names.begin(), names.end(), key) - names.begin();
  };
  const auto later = std::find_if(own.begin(), own.end(), [&](const Column* column) {
    return rank_of(column->key) >= rank_of(kWithin.front());
  });
  std::size_t most = 0;
  for (auto each = later; each != own.end(); ++each) {
    std::vector<double> values;
    (void)match((*each)->rows, (*each)->values, metric.rows, values);
    most = std::max(most, course_of(values).rises);
  }
  std::vector<std::pair<std::tuple<bool, std::size_t, std::ptrdiff_t>, const Column*>> ranked;
  for (const Column& column : in_parts) {
    std::vector<double> values;
    (void)match(column.rows, column.values, metric.rows, values);
    const Course course = course_of(values);
    const std::string_view part = part_of(column.name);
    const bool beside = metric.name.starts_with(part);
    const auto changes = static_cast<double>(course.rises + course.backs);
    const bool often = changes >= kAgreeing * static_cast<double>(values.size() - 1);
    const bool itself = column.name == metric.name;
    if (values.empty() || course.rises < most || !(beside || often) || itself) continue;
    const bool again = course.backs > kFewRestarts;
    const std::size_t far = beside ? metric.name.size() - part.size() : metric.name.size() + 1;
    ranked.emplace_back(std::tuple(again, far, rank_of(column.key)), &column);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Column*> found(own.begin(), later);
  for (const bool epochs : {false, true}) {
    if (epochs) found.insert(found.end(), later, own.end());
    for (const auto& [rank, column] : ranked) {
      if (is_epoch(column->key) == epochs) found.push_back(column);
    }
  }
  return found;
}

LogRows::Steps LogRows::steps_of(const RowNumbers& rows,
                                 const std::vector<const Column*>& counting) const {
  const auto size = static_cast<double>(rows.size());
  const Column* best = nullptr;
  std::vector<std::size_t> kept;
  std::vector<double> value;
  for (const Column* counter : counting) {
    std::vector<double> values;
    std::vector<std::size_t> these = match(counter->rows, counter->values, rows, values);
    const bool counts =
        std::any_of(values.begin(), values.end(), [&](double x) { return x != values[0]; }) ||
        (rows.size() < 3 && counter->key != "total_steps");
    const double enough = best != nullptr ? kMore * static_cast<double>(kept.size()) : size / 2;
    if (counts && static_cast<double>(these.size()) > enough) {
      best = counter;
      kept = std::move(these);
      value = std::move(values);
    }
    if (best != nullptr && static_cast<double>(kept.size()) >= kCounterShare * size) break;
  }
  if (best != nullptr) {
    RowNumbers at;
    for (const std::size_t i : kept) at.push_back(rows[i]);
    std::optional<Series> found = counted_by(*best, at, std::move(value), counting);
    if (found) {
      const std::size_t left = rows.size() - kept.size();
      if (left > 0) found->notes.push_back(counted(left, "row") + " without a step: left out");
      return {std::move(kept), *std::move(found)};
    }
  }
  Steps numbered;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    numbered.kept.push_back(i);
    numbered.series.step.push_back(static_cast<double>(rows[i]) + 1.0);
  }
  const std::string why = best != nullptr     ? "many rows at each " + best->name
                          : !counting.empty() ? "no step that counts"
                                              : "no column of steps";
  numbered.series.notes.push_back(why + ": rows are numbered from 1");
  return numbered;
}

std::optional<Series> LogRows::counted_by(const Column& counter, const RowNumbers& rows,
                                          std::vector<double> value,
                                          const std::vector<const Column*>& counting) const {
  Series found;
  found.counter = counter.name;
  if (const auto entry = planned_.find(counter.name); entry != planned_.end()) {
    found.planned = entry->second;
  }
  for (const char* name : {"total_steps", "max_steps", "total_epochs"}) {
    const std::string beside = std::string(part_of(counter.name)) + name;
    const Column* const plan = plans(name, counter.key) ? find(beside) : nullptr;
    if (plan != nullptr) found.planned = plan->values.back();
  }
  if (counter.key == "steps") count_ends(value);
  std::size_t same = 0;
  bool back = false;
  for (std::size_t i = 1; i < value.size(); ++i) {
    same += value[i] == value[i - 1];
    back = back || value[i] < value[i - 1];
  }
  if (is_epoch(counter.key) && value.size() > 1) {
    const bool whole = std::all_of(value.begin(), value.end(), is_whole);
    const double share = static_cast<double>(same) / static_cast<double>(value.size());
    const bool spread = !whole && spread_rounded(value);
    const bool stands = same + 1 == value.size();
    if (!spread && (stands || share > (whole ? kSameEpoch : kSameFraction))) return {};
    if (spread) {
      found.notes.push_back("rows at one rounded " + counter.name + " are spread up to the next");
    }
  }
  found.step = std::move(value);
  if (back && !is_epoch(counter.key)) {
    count_on(counter, rows, found, counting);
  } else if (is_within(counter.key)) {
    within_epochs(counting, found);
  }
  return found;
}

/// Takes the plan of a counter of batches for what it is: that of one epoch, not of the run.
void LogRows::within_epochs(const std::vector<const Column*>& counting, Series& found) const {
  const auto epoch = std::find_if(counting.begin(), counting.end(), [](const Column* column) {
    return is_epoch(column->key) && !column->values.empty();
  });
  if (epoch == counting.end() || !found.planned) return;
  const auto epochs = planned_.find((*epoch)->name);
  const bool from_first = (*epoch)->values.front() <= 1;
  // It did not go back where epochs ended, so it counts all of them.
  const auto [least, most] = std::minmax_element((*epoch)->values.begin(), (*epoch)->values.end());
  if (*least < *most) return;
  if (epochs != planned_.end() && from_first) {
    *found.planned *= epochs->second;
  } else {
    found.planned.reset();
  }
}

/// Adds the epochs to a counter that begins anew in each of them. They are counted by what rises
/// where it goes back and stands still elsewhere.
void LogRows::count_on(const Column& counter, const RowNumbers& rows, Series& found,
                       const std::vector<const Column*>& counting) const {
  std::vector<double>& value = found.step;
  std::vector<double> epoch;
  std::string of;
  for (const Column* other : counting) {
    std::vector<double> values;
    if (other->key == counter.key ||
        match(other->rows, other->values, rows, values).size() != rows.size()) {
      continue;
    }
    if (std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); })) continue;
    for (double& each : values) each = std::floor(each);
    std::size_t backs = 0, rises = 0, stands = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      const bool back = value[i] < value[i - 1];
      backs += back;
      rises += back && values[i] > values[i - 1];
      stands += !back && values[i] == values[i - 1];
    }
    // Where it goes back and no epoch ends, a run was resumed within one.
    const auto others = static_cast<double>(values.size() - 1 - backs);
    if (rises > 0 && static_cast<double>(stands) >= kAgreeing * others) {
      epoch = std::move(values);
      of = other->name;
      break;
    }
  }
  if (epoch.empty()) {
    if (!is_within(counter.key)) return;
    epoch.push_back(0);
    for (std::size_t i = 1; i < value.size(); ++i) {
      epoch.push_back(epoch.back() + (value[i] < value[i - 1] ? 1 : 0));
    }
  }
  double gap = kInfinite;
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (value[i] > value[i - 1]) gap = std::min(gap, value[i] - value[i - 1]);
  }
  const auto [lowest, highest] = std::minmax_element(value.begin(), value.end());
  double length = *highest + (*lowest == 0 && gap < kInfinite ? gap : 0);
  if (found.planned.value_or(0) != 0) length = *found.planned;
  const double base = *std::min_element(epoch.begin(), epoch.end()) >= 1 ? 1 : 0;
  for (std::size_t i = 0; i < value.size(); ++i) value[i] += (epoch[i] - base) * length;
  found.planned.reset();
  if (const auto entry = planned_.find(of); entry != planned_.end()) {
    found.planned = entry->second * length;
  }
  found.notes.push_back("steps count on from epoch to epoch, " + general(length) + " " +
                        counter.name + " in each");
}

}  // namespace glidepath::detail
