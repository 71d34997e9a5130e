// SPDX-License-Identifier: Apache-2.0
#include "forecast/ended_runs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "common/statistics.hpp"
#include "forecast/kriging.hpp"
#include "forecast/level.hpp"
#include "forecast/passages.hpp"
#include "forecast/prepare.hpp"
#include "forecast/student.hpp"

namespace glidepath::detail {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kPaceRecords = 3;  // newest records whose steps are compared
constexpr std::size_t kMaxMarks = 2 * kPaceRecords;
constexpr std::size_t kMaxGaps = 63;  // newest ones that tell the logging interval

// Prior of the share that comes to the target: so many runs came, so many never did.
constexpr double kPriorArrived = 1, kPriorNever = 0.1;
constexpr int kShareSteps = 8;         // of the fixed-point iteration for that share
constexpr std::size_t kMaxEasier = 8;  // easier targets, of which a harder one is not the likelier
// Weight beside the curve: odds, and what the widths of each law do not show.
constexpr double kOdds = 4, kHiddenWidth = 0.05, kHiddenCurveWidth = 0.8;
constexpr double kIntervalWidth = 2.56;  // of 10 to 90 % in standard deviations

/// A point at which the running best improved, in the orientation in which less is better.
struct Record {
  double log_step, level;
};

/// One run's newest logging interval: the median over its later half. A point of weight w stands
/// for w logged ones.
double log_interval(std::span<const double> step, std::span<const double> weight,
                    std::vector<double>& scratch) {
  if (step.size() < 2) return 0;
  const std::size_t gaps = step.size() - 1,
                    newest = std::min(gaps > 3 ? gaps - gaps / 2 : gaps, kMaxGaps);
  scratch.clear();
  for (std::size_t i = gaps - newest; i < gaps; ++i) {
    scratch.push_back((step[i + 1] - step[i]) / (weight.empty() ? 1.0 : weight[i + 1]));
  }
  return std::log(median(scratch));
}

/// The live run: its records, and when it was last seen.
struct Live {
  std::vector<Record> records{};
  double now = 0, interval = 0;
};

/// A past run as the live one sees it. `passed` is the log step at which it came to each mark, NaN
/// where it never did or began beyond it.
struct PastRun {
  std::array<double, kMaxMarks> passed{};
  double end = kNaN;  // log step at the target, NaN where it ended before
  double last = 0;    // log step of its end
  double interval = 0;
  bool failed = false;  // ended in NaN or infinity
};

/// The passages of one run through decreasing `levels`, until it was at the target.
PastRun past_run(const Trace& run, const Passages& passages, std::span<const double> levels,
                 const Level& level, std::vector<double>& scratch) {
  PastRun seen;
  seen.passed.fill(kNaN);
  if (run.step.empty()) return seen;
  const auto arrived = passages.points_until(level.target, level.reached_by);
  const std::size_t points = arrived.value_or(run.step.size());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    seen.passed[i] = passages.passed(levels[i], points);
  }
  seen.last = log_step(run.step[points - 1], step_shift_of(run));
  if (arrived) seen.end = seen.last;
  seen.interval = log_interval({run.step.data(), points}, {}, scratch);
  seen.failed = passages.failed();
  return seen;
}

/// A past run at the marks [from, to), which the live run passed at `passed`; none if it passed
/// none of them.
std::optional<Neighbour> beside(const PastRun& run, const Live& live,
                                std::span<const double> passed, std::size_t from, double event) {
  double sum = 0, square = 0, count = 0;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const double late = run.passed[from + i] - passed[i];
    if (std::isnan(late)) continue;
    sum += late;
    square += late * late;
    ++count;
  }
  if (count == 0) return std::nullopt;
  const double mean = sum / count;
  const double variance = std::max(square / count - mean * mean, 0.0);
  return Neighbour{mean, std::sqrt(variance), run.interval - live.interval, event};
}

Live live_run(TraceView trace, double shift, double sign, std::vector<double>& scratch) {
  Live live;
  for (std::size_t i = 0; i < trace.step.size(); ++i) {
    const double y = sign * trace.loss[i];
    if (!std::isfinite(y)) continue;
    live.now = log_step(trace.step[i], shift);
    if (live.records.empty() || y < live.records.back().level) {
      live.records.push_back({live.now, y});
    }
  }
  live.interval = log_interval(trace.step, trace.weight, scratch);
  return live;
}

/// The past runs, and at which of their passages the live run stood halfway and stands now.
struct View {
  std::vector<PastRun> runs{};
  std::size_t half = 0, now = 0;                    // first mark of each
  std::vector<double> half_passed{}, now_passed{};  // by the live run
};

View view_of(const Live& live, const Level& level, std::span<const Trace> past,
             std::span<const Passages> passages, std::vector<double>& scratch) {
  View view;
  const std::size_t count = live.records.size(), half = count / 2;
  const auto newest = [](std::size_t end) { return end - std::min(end, kPaceRecords); };
  std::vector<double> levels;
  for (std::size_t i = newest(half); i < half; ++i) {
    levels.push_back(live.records[i].level);
    view.half_passed.push_back(live.records[i].log_step);
  }
  const std::size_t from = std::max(half, newest(count));
  view.now = levels.size() - (from - newest(count));
  for (std::size_t i = from; i < count; ++i) levels.push_back(live.records[i].level);
  for (std::size_t i = newest(count); i < count; ++i) {
    view.now_passed.push_back(live.records[i].log_step);
  }
  view.now_passed.back() = live.now;  // it still stands there
  for (std::size_t r = 0; r < past.size(); ++r) {
    view.runs.push_back(past_run(past[r], passages[r], levels, level, scratch));
  }
  return view;
}

/// By how much the law must be wider, from how well it foresaw, halfway in records, when the live
/// run would come to where it stands.
double widening(const View& view, const Live& live) {
  std::vector<Neighbour> runs;
  const std::size_t last = view.now + view.now_passed.size() - 1;
  for (const PastRun& run : view.runs) {
    if (std::isnan(run.passed[last])) continue;
    const auto found = beside(run, live, view.half_passed, view.half, run.passed[last]);
    if (found) runs.push_back(*found);
  }
  if (runs.empty()) return 1;
  const Estimate foreseen = krige(std::move(runs));
  const double error = live.records.back().log_step - foreseen.mean;
  return std::sqrt(std::max(1.0, 0.5 + 0.5 * error * error / foreseen.variance));
}

/// The share of runs that come to the target: those that ended without it either never would have
/// come or had no time to, by how much of the law they outlived (a cure model).
double share_arriving(const View& view, const Live& live, const EndLaw& law) {
  struct Absent {
    double alike, outlived;
  };
  std::vector<Absent> absent;
  double arrived = kPriorArrived;
  const std::size_t last = view.now + view.now_passed.size() - 1;
  for (const PastRun& run : view.runs) {
    if (std::isnan(run.passed[last])) continue;
    const Neighbour found = *beside(run, live, view.now_passed, view.now, run.end);
    const double alike = 1 / found.variance();
    if (!std::isnan(run.end)) {
      arrived += alike;
    } else {
      const double end =
          std::exp(run.last - found.lateness) - law.shift;  // on the live run's clock
      absent.push_back({alike, run.failed ? 1.0 : law.cdf(end)});
    }
  }
  double total = arrived + kPriorNever;
  for (const Absent& run : absent) total += run.alike;
  if (absent.empty()) return 1;
  double share = arrived / (arrived + kPriorNever);
  for (int step = 0; step < kShareSteps; ++step) {
    double coming = arrived;
    for (const Absent& run : absent) {
      coming += run.alike * (1 - (1 - share) / (1 - share * run.outlived));
    }
    share = coming / total;
  }
  return share;
}

/// The law of one target. `law` has what is known of the live run alone.
EndLaw law_at(const Level& level, const Live& live, const PastRuns& past, EndLaw law,
              std::vector<double>& scratch) {
  const View view = view_of(live, level, past.runs(), passages_of(past), scratch);
  std::vector<Neighbour> runs;
  for (const PastRun& run : view.runs) {
    if (std::isnan(run.end)) continue;
    const auto found = beside(run, live, view.now_passed, view.now, run.end);
    if (found) runs.push_back(*found);
  }
  if (runs.empty()) return law;
  const Estimate end = krige(std::move(runs));
  law.runs = end.runs;
  law.degrees = static_cast<double>(law.runs);
  law.location = end.mean;
  law.scale = std::sqrt(end.variance) * widening(view, live);
  // A run that outlived what these runs say is late by an unknown amount.
  constexpr double kOutlivedProbability = 1 - 1e-6, kMargin = 0.1;
  const auto until_now = [&] {
    return student_cdf(law.degrees, (law.now - law.location) / law.scale);
  };
  law.by_now = until_now();
  if (law.by_now > kOutlivedProbability) {
    law.location = law.now + kMargin;
    law.by_now = until_now();
  }
  law.arrives = share_arriving(view, live, law);
  return law;
}

/// The hardest targets at which past runs were that ended above `level`, the easiest first; of many
/// a few, which are the same for any target. The live run has not reached them.
std::vector<Level> easier_levels(TraceView live, double sign, const Level& level,
                                 std::span<const Passages> past) {
  std::vector<double> ends;
  for (const Passages& run : past) ends.push_back(run.hardest(level.reached_by));
  std::ranges::sort(ends, std::greater{});
  const auto reached = [&](double end) {
    Level now{.target = end, .reached_by = level.reached_by};
    return std::ranges::any_of(live.loss, [&](double y) { return now.add(sign * y); });
  };
  ends.erase(ends.begin(), std::ranges::partition_point(ends, reached));
  std::vector<Level> easier;
  for (std::size_t k = 0; k < kMaxEasier && !ends.empty(); ++k) {
    const double end = ends[(2 * k + 1) * ends.size() / (2 * kMaxEasier)];
    if (!(end > level.target)) break;
    if (!easier.empty() && easier.back().target == end) continue;
    easier.push_back({.target = end, .reached_by = level.reached_by});
  }
  return easier;
}

}  // namespace

double EndLaw::cdf(double step) const {
  const double at = log_step(step, shift);
  if (!(at > now)) return 0;
  const double by = student_cdf(degrees, (at - location) / scale);
  return arrives * std::clamp((by - by_now) / (1 - by_now), 0.0, 1.0);
}

double EndLaw::quantile(double p) const {
  const double unit = student_quantile(degrees, by_now + p * (1 - by_now));
  return std::exp(std::max(location + scale * unit, now)) - shift;
}

double EndLaw::weight(double spread) const {
  if (runs == 0) return 0;
  const auto square = [](double x) { return x * x; };
  const double own = square(kIntervalWidth * scale) + square(kHiddenWidth);
  const double curve = square(spread) + square(kHiddenCurveWidth);
  const double odds = kOdds * runs / (runs + 1) * curve / own;
  return odds / (odds + 1);
}

std::vector<EndLaw> laws_of_end(TraceView live_trace, double target, const ForecastOptions& options,
                                const PastRuns& past) {
  if (past.runs().empty() || live_trace.step.empty()) return {};
  const double sign = options.direction == Direction::max ? -1 : 1;
  std::vector<double> scratch;
  EndLaw known{.shift = step_shift(live_trace.step)};
  const Live live = live_run(live_trace, known.shift, sign, scratch);
  if (live.records.size() < 2) return {};
  known.now = live.now;
  const Level level{.target = sign * target, .reached_by = reading(options)};
  std::vector<EndLaw> laws{law_at(level, live, past, known, scratch)};
  for (const Level& easier : easier_levels(live_trace, sign, level, passages_of(past))) {
    laws.push_back(law_at(easier, live, past, known, scratch));
  }
  return laws;
}

}  // namespace glidepath::detail
