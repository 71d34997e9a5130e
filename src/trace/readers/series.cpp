// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/series.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "trace/readers/chinese_words.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostRates =
    16;  // columns of rates that are looked at: of layers may be many
constexpr std::size_t kManyPoints = 10;
constexpr std::size_t kShownNames = 20;
constexpr std::size_t kShownRestarts = 5;
constexpr double kMaxGapRatio = 1 + 1e-9;  // of steps that are evenly spaced

using Column = std::vector<double>;
using Indices = std::vector<std::size_t>;

Column picked(const Column& from, const Indices& kept) {
  Column column;
  column.reserve(kept.size());
  for (const std::size_t i : kept) column.push_back(from[i]);
  return column;
}

bool all_unknown(const Column& column) {
  return std::all_of(column.begin(), column.end(), [](double x) { return std::isnan(x); });
}

/// Whether a metric is 0 at every point.
bool is_zero(const Series& column) {
  return column.value.size() > 2 && std::all_of(column.value.begin(), column.value.end(),
                                                [](double value) { return value == 0; });
}

/// Which way is better: by the name, else by where the values went, with a note.
Direction direction_of(const std::string& name, const Column& value,
                       std::vector<std::string>& notes) {
  // Of "value", as exports of one metric call it, the name does not tell.
  const auto known = normal(name) == "value" ? std::nullopt : direction_by_name(name);
  if (known) return *known;
  Column finite;
  std::copy_if(value.begin(), value.end(), std::back_inserter(finite),
               [](double x) { return std::isfinite(x); });
  const auto quarter = static_cast<std::ptrdiff_t>(finite.size() / 4);
  if (quarter == 0) return Direction::min;
  Column first(finite.begin(), finite.begin() + quarter);
  Column last(finite.end() - quarter, finite.end());
  const double before = median(first);
  const double after = median(last);
  const bool high = after > before;
  notes.push_back("the name " + repr(name) + " does not say which way is better: it went from " +
                  general(before, 4) + " to " + general(after, 4) + ", so " +
                  (high ? "high" : "low") + " values are");
  return high ? Direction::max : Direction::min;
}

/// The rows to keep where steps repeat or go back: a row stays when every later row is above it, so
/// what a restart repeats goes, at any depth.
Indices later_wins(const Column& step) {
  Indices kept;
  double above = std::numeric_limits<double>::infinity();
  for (std::size_t i = step.size(); i-- > 0;) {
    if (step[i] < above || (i + 1 == step.size() && step.size() < 2)) kept.push_back(i);
    above = std::isnan(step[i]) || std::isnan(above) ? kNoValue : std::min(above, step[i]);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

/// Whether rows are of one run in another order, such as the newest first: their steps go back, but
/// none repeats, as one that a restart counts again would.
bool is_shuffled(const Column& step) {
  if (std::is_sorted(step.begin(), step.end())) return false;
  Column sorted = step;
  std::sort(sorted.begin(), sorted.end());
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    least = std::min(least, sorted[i] - sorted[i - 1]);
    most = std::max(most, sorted[i] - sorted[i - 1]);
  }
  if (!(least > 0)) return false;
  const bool newest_first = step.size() > 2 && std::is_sorted(step.rbegin(), step.rend());
  return newest_first || (step.size() >= kManyPoints && most <= kMaxGapRatio * least);
}

/// The rows to keep, in the order of their steps.
Indices kept_rows(const Column& step) {
  if (!is_shuffled(step)) return later_wins(step);
  Indices order(step.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return step[a] < step[b]; });
  return order;
}

void note_restarts(const Column& step, std::size_t kept, std::vector<std::string>& notes) {
  if (is_shuffled(step)) {
    notes.emplace_back("rows are not in the order of their steps: sorted");
    return;
  }
  Indices back;
  std::size_t same = 0;
  for (std::size_t i = 1; i < step.size(); ++i) {
    if (step[i] < step[i - 1]) back.push_back(i);
    same += step[i] == step[i - 1];
  }
  if (!back.empty()) {
    std::string where;
    for (std::size_t i = 0; i < std::min(back.size(), kShownRestarts); ++i) {
      where += (i > 0 ? ", " : "") + general(step[back[i]]);
    }
    if (back.size() > kShownRestarts) where += " …";
    const std::size_t gone = step.size() - kept;
    notes.push_back(
        "restarted " + (back.size() == 1 ? "once" : std::to_string(back.size()) + " times") +
        ", at step " + where + ": " + counted(gone > same ? gone - same : 0, "earlier row") +
        " gave way to later ones");
  }
  if (same > 0) notes.push_back(counted(same, "repeated step") + ": the later row was kept");
}

/// The values logged at each of the steps; NaN where there is none.
Column at_same_step(const Column& step, const Series& column) {
  const Indices kept = kept_rows(column.step);
  const Column at = picked(column.step, kept);
  Column found(step.size(), kNoValue);
  for (std::size_t i = 0; i < step.size() && !at.empty(); ++i) {
    const std::size_t place = std::lower_bound(at.begin(), at.end(), step[i]) - at.begin();
    if (place < at.size() && at[place] == step[i]) found[i] = column.value[kept[place]];
  }
  return found;
}

/// What the numbers of a column of learning rates are given in, 1e-3 of verl's "lr(1e-3)".
double unit_of_rates(std::string_view name) {
  const std::size_t open = name.rfind('(');
  if (open == name.npos || !name.ends_with(')')) return 1;
  const double unit = number_in(name.substr(open + 1, name.size() - open - 2)).value_or(1);
  return unit > 0 && unit < 1 ? unit : 1;
}

/// The column of learning rates that has most of the steps, if there is one.
Column rates_at(const Column& step, const SeriesByName& series, const std::string& key,
                std::vector<std::string>& notes) {
  Column best;
  std::ptrdiff_t most = -1;
  std::size_t looked = 0;
  for (const auto& [name, column] : series) {
    if (looked == kMostRates) break;
    if (name == key || column->step.empty() || !is_rate(name)) continue;
    ++looked;
    Column rates = at_same_step(step, *column);
    if (const double unit = unit_of_rates(name); unit != 1) {
      for (double& rate : rates) rate *= unit;
    }
    const auto known =
        std::count_if(rates.begin(), rates.end(), [](double rate) { return std::isfinite(rate); });
    if (known > most) {
      most = known;
      best = std::move(rates);
    }
  }
  std::size_t bad = 0;
  for (double& rate : best) {
    if (!(rate < 0 || std::isinf(rate))) continue;
    most -= std::isfinite(rate) ? 1 : 0;
    rate = kNoValue;
    ++bad;
  }
  if (bad > 0) notes.push_back(counted(bad, "learning rate") + " below 0 or infinite: left out");
  // One rate of many points is a setting of the run.
  if (most <= (step.size() >= kManyPoints ? 1 : 0)) best.clear();
  return best;
}

}  // namespace

std::string choose(const Points& points, const std::optional<std::string>& metric,
                   const std::string& label) {
  if (points.empty()) throw AbsentError(label + ": no metric was logged");
  std::string shown;
  for (std::size_t i = 0; i < std::min(points.size(), kShownNames); ++i) {
    shown += (i > 0 ? ", " : "") + points[i].first;
  }
  const bool only_aside = std::all_of(points.begin(), points.end(),
                                      [](const auto& point) { return is_aside(point.first); });
  if (!metric && only_aside) {
    throw AbsentError(label + ": a log of evaluations or of progress without a loss or a score, " +
                      "only " + shown);
  }
  if (points.size() > kShownNames) {
    shown += " and " + std::to_string(points.size() - kShownNames) + " more";
  }
  if (!metric) {
    std::optional<std::string> found = best_name(points);
    if (found) return *found;
    throw AbsentError(label + ": none of the metrics is a loss or a score; say metric= one of " +
                      shown);
  }
  // Console logs have the words of the log in English.
  for (const std::string& name : {*metric, in_english(*metric)}) {
    const bool there = std::any_of(points.begin(), points.end(),
                                   [&](const auto& point) { return point.first == name; });
    if (there) return name;
  }
  throw AbsentError(label + ": no metric " + repr(*metric) + ", only " + shown);
}

Trace to_trace(const LoggedRun& run, const std::optional<std::string>& metric,
               const std::string& label, const std::string& name) {
  Points points;
  for (const auto& [each, column] : run.series) {
    if (!column->step.empty()) points.emplace_back(each, column->step.size());
  }
  std::string key = choose(points, metric, label);
  const auto column_of = [&](const std::string& each) {
    return *std::find_if(run.series.begin(), run.series.end(),
                         [&](const auto& one) { return one.first == each; });
  };
  std::string passed;
  if (!metric && is_zero(*column_of(key).second)) {  // such as the loss of GRPO beside its reward
    std::erase_if(points, [&](const auto& point) { return point.first == key; });
    if (const std::optional<std::string> other = best_name(points)) {
      passed = std::exchange(key, *other);
    }
  }
  const auto found = column_of(key);
  const Series& column = *found.second;
  Trace trace{.name = name, .metric = key, .settings = run.settings, .notes = run.notes};
  trace.notes.insert(trace.notes.end(), column.notes.begin(), column.notes.end());
  if (!passed.empty()) trace.notes.push_back(repr(passed) + " is 0 throughout");
  std::optional<double> planned = run.planned ? run.planned : column.planned;
  if (!metric && !is_training_loss(normal(key))) {
    trace.notes.push_back("no metric is called a training loss: " + repr(key) + " was read");
  }
  Column step = column.step;
  if (!std::all_of(step.begin(), step.end(), [](double x) { return std::isfinite(x); })) {
    throw IoError(label + ": a step of " + repr(key) + " is not a finite number");
  }
  if (!std::all_of(step.begin(), step.end(), is_step)) {
    throw IoError(label + ": a step of " + repr(key) + " is not " + kStepRange);
  }
  if (step.size() > 1 && std::all_of(step.begin(), step.end(), [](double x) { return x == 0; })) {
    trace.notes.emplace_back("every row is at step 0: rows are numbered from 1 instead");
    planned.reset();
    for (std::size_t i = 0; i < step.size(); ++i) step[i] = static_cast<double>(i + 1);
  }
  const Indices kept = kept_rows(step);
  note_restarts(step, kept.size(), trace.notes);
  trace.step = picked(step, kept);
  trace.loss = picked(column.value, kept);
  trace.lr = rates_at(trace.step, run.series, key, trace.notes);
  trace.direction = direction_of(key, trace.loss, trace.notes);
  if (!column.seconds.empty()) trace.wall_seconds = picked(column.seconds, kept);
  if (all_unknown(trace.wall_seconds)) trace.wall_seconds.clear();
  if (planned && *planned > 0 && *planned >= trace.step.back() && std::isfinite(*planned)) {
    trace.planned_steps = planned;
  }
  return trace;
}

}  // namespace glidepath::detail
