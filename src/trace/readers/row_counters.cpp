// SPDX-License-Identifier: Apache-2.0
// Which counter the rows of a metric have, and the steps that it gives them: one that begins anew
// in each epoch counts on from the epoch before.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/numbers.hpp"
#include "trace/readers/column_names.hpp"
#include "trace/readers/column_values.hpp"
#include "trace/readers/rows.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr double kCounterShare = 0.9;  // of the rows: a counter that has so many is the one
// Times the rows of a better counter that another one must have to be taken instead.
constexpr double kBetterFactor = 1.1;
// Share of the rows from which on a counter in another part must change, and within an epoch an
// epoch must stand still.
constexpr double kAgreeingShare = 0.8;
constexpr std::size_t kMaxRisesABack = 10;  // of a counter that only seems to count
constexpr std::size_t kMaxRestarts = 2;     // one that goes back more often gives way to others
// Share of the rows that may repeat an epoch, where it is whole and where it is a fraction.
constexpr double kSameEpochShare = 0.7;
constexpr double kSameFractionShare = 0.3;
constexpr double kEpochParts = 100;     // parts of an epoch that the Trainer prints
constexpr std::size_t kMinRounded = 2;  // rows at a step before, where steps are rounded
constexpr double kRoundedSteps = 1000;  // to which they are

/// Whether a column says in its last value how far a counter of optimizer steps or of epochs goes.
bool plans(std::string_view column, std::string_view counter) {
  if (column == "total_epochs") return is_epoch(counter);
  if (column != "total_steps" && column != "max_steps") return false;
  return counter == "step" || counter == "global_step" || counter == "current_steps";
}

/// Spreads rows that stand at one fraction of an epoch, as it was rounded, up to the next one.
/// Whether there were such: rows further apart are no closer than the fraction tells, and one that
/// repeats may have been logged again.
bool spread_rounded(std::vector<double>& value) {
  const bool rounded = std::all_of(value.begin(), value.end(), [](double x) {
    return std::abs(x * kEpochParts - std::round(x * kEpochParts)) < 1e-6;
  });
  const Course course = course_of(value);
  std::size_t close = 0;
  for (std::size_t i = 1; i < value.size(); ++i) {
    close += value[i] > value[i - 1] && value[i] - value[i - 1] < 1.5 / kEpochParts;
  }
  if (!rounded || course.stands < 2 || course.rises == 0 || 2 * close < course.rises) return false;
  for (std::size_t i = 0; i < value.size();) {
    const double here = value[i];
    std::size_t end = i;
    while (end < value.size() && value[end] == here) ++end;
    const double apart = 1 / kEpochParts / static_cast<double>(end - i);
    for (double k = 0; i < end; ++i, ++k) value[i] = here + k * apart;
  }
  return true;
}

/// Whether a step may be one that a log shows as `shown`: "15K" of LeRobot stands for all that
/// round to it.
bool may_show(double step, double shown) {
  for (const double unit : {1e6, 1e3}) {
    if (shown >= unit && std::fmod(shown, unit) == 0) return std::abs(step - shown) <= unit / 2;
  }
  return step == shown;
}

/// Counts steps of a thousand and more, which were rounded to thousands, on from the first two.
/// Whether they were such: several stand at one step, and each is where that pace takes it.
bool count_past_thousands(std::vector<double>& value) {
  if (course_of(value).stands < kMinRounded || !(value[0] > 0 && value[1] < 1e3)) return false;
  std::vector<double> counted;
  const double apart = value[1] - value[0];
  for (std::size_t i = 0; i < value.size(); ++i) {
    counted.push_back(value[0] + apart * static_cast<double>(i));
    if (!(apart > 0) || !may_show(counted.back(), value[i])) return false;
  }
  value = std::move(counted);
  return true;
}

/// The row at which epochs went back to the first for the last time, as in a run from the
/// beginning; 0 where they never did.
std::size_t last_beginning(const std::vector<double>& epoch) {
  const double first = *std::min_element(epoch.begin(), epoch.end());
  std::size_t found = 0;
  for (std::size_t i = 1; i < epoch.size(); ++i) {
    if (epoch[i] < epoch[i - 1] && epoch[i] == first) found = i;
  }
  return found;
}

/// Puts the end of an epoch, which Sentence Transformers writes as step -1, behind its steps.
void count_ends(std::vector<double>& value) {
  double gap = kInfinity, highest = 0;
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (value[i] > value[i - 1] && value[i - 1] > 0) gap = std::min(gap, value[i] - value[i - 1]);
    highest = std::max(highest, value[i - 1]);
  }
  if (gap == kInfinity) return;
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (value[i] == -1 && value[i - 1] > 0) value[i] = highest + gap;
  }
}

}  // namespace

/// Counts batches by the longest: those of an epoch of training, not of an evaluation.
void LogRows::plan(const std::string& counter, double length) {
  double& planned = planned_[counter];
  planned = is_within(counter) ? std::max(planned, length) : length;
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
    return rank_of(column->key) >= rank_of(kInnerCounters.front());
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
    const bool often = changes >= kAgreeingShare * static_cast<double>(values.size() - 1);
    const bool itself = column.name == metric.name;
    if (values.empty() || course.rises < most || !(beside || often) || itself) continue;
    const bool again = course.backs > kMaxRestarts;
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

/// Whether a column of steps says of each row how long something took, as the steps of an episode:
/// it goes back again and again where another counter goes on from row to row, but for a restart or
/// two. So does a count within an epoch, as "patience 3/10", that rises at some rows where each is
/// another epoch, and the last batch, at which rows stand that are of an epoch each.
bool LogRows::is_length(const Column& counter, const std::vector<double>& values,
                        const RowNumbers& rows, const std::vector<const Column*>& counting) {
  const Course own = course_of(values);
  const bool within = is_within(counter.key);
  const bool counts = within
                          ? own.rises == 0 || own.rises + 1 == values.size()
                          : own.backs <= kMaxRestarts || kMaxRisesABack * own.backs < values.size();
  const double highest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const bool ends = 2 * own.stands > values.size() && std::fmod(highest, kRoundedSteps) != 0;
  if ((counts && !ends) || is_epoch(counter.key)) return false;
  return std::any_of(counting.begin(), counting.end(), [&](const Column* other) {
    std::vector<double> others;
    if (is_within(other->key) ||
        match(other->rows, other->values, rows, others).size() < rows.size()) {
      return false;
    }
    const Course course = course_of(others);
    const bool whole = !(within || counts) || std::all_of(others.begin(), others.end(), is_whole);
    return whole && (!counts || is_epoch(other->key)) && course.backs <= kMaxRestarts &&
           course.rises + course.backs + 1 == others.size();
  });
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
    if (is_length(*counter, values, rows, counting)) continue;
    const double enough =
        best != nullptr ? kBetterFactor * static_cast<double>(kept.size()) : size / 2;
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
    // A row that was cut may have had the only one.
    if (plan != nullptr && !plan->values.empty()) found.planned = plan->values.back();
  }
  if (counter.key == "steps") count_ends(value);
  if (count_past_thousands(value)) {
    found.notes.push_back(counter.name + " is rounded to thousands: counted on from the first two");
  }
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
    if (!spread && (stands || share > (whole ? kSameEpochShare : kSameFractionShare))) return {};
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
    if (rises > 0 && static_cast<double>(stands) >= kAgreeingShare * others) {
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
  // What was run before it began anew may have had epochs of another length.
  const std::size_t anew = last_beginning(epoch);
  const auto from = static_cast<std::ptrdiff_t>(epoch[anew] < epoch.back() ? anew : 0);
  double gap = kInfinity;
  for (auto i = static_cast<std::size_t>(from) + 1; i < value.size(); ++i) {
    if (value[i] > value[i - 1]) gap = std::min(gap, value[i] - value[i - 1]);
  }
  const auto [lowest, highest] = std::minmax_element(value.begin() + from, value.end());
  double length = *highest + (*lowest == 0 && gap < kInfinity ? gap : 0);
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
