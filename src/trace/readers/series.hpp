// SPDX-License-Identifier: Apache-2.0
// Metrics as they were logged, and the way from there to a trace.
#pragma once

#include "glidepath/error.hpp"
#include "glidepath/trace.hpp"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/readers/names.hpp"

namespace glidepath::detail {

/// A sound file without the metric or points: a folder's other files may have it.
class AbsentError : public IoError {
 public:
  using IoError::IoError;
};

/// A file of a known tool that holds no curve, or none that can be read.
class RefusedError : public IoError {
 public:
  using IoError::IoError;
};

/// One metric as it was logged: rows in the order of the file, nothing repaired yet.
struct Series {
  std::vector<double> step{}, value{};
  /// Since any origin, NaN where not known; none at all where no row has a time.
  std::vector<double> seconds{};
  /// What was done to find the steps, where they will end by plan, and what they are called.
  std::vector<std::string> notes{};
  std::optional<double> planned{};
  std::string counter{};

  void add(double at, double logged, double second = std::numeric_limits<double>::quiet_NaN()) {
    step.push_back(at);
    value.push_back(logged);
    seconds.push_back(second);
  }
  /// Counts the seconds from an origin, of so many ticks in each.
  void count_seconds(double origin, double ticks) {
    for (double& second : seconds) second = (second - origin) / ticks;
  }
};

/// All metrics of a run by their names, in the order of the log.
using SeriesByName = std::vector<std::pair<std::string, std::shared_ptr<Series>>>;

/// What a reader found in a file of one run, or of several, each of which has a name then.
struct LoggedRun {
  std::string name{};
  SeriesByName series{};
  std::vector<std::string> notes{};
  std::optional<double> planned{};
  Settings settings{};
};

/// The metric to read: `metric`, or the one that `best_name` finds. Throws AbsentError, naming
/// those that are there, when it is not. `label` is the file, for messages.
[[nodiscard]] std::string choose(const Points& points, const std::optional<std::string>& metric,
                                 const std::string& label);

/// The trace of one run called `name`; series without rows count as absent. Learning rates are
/// found by name and put where they were logged at the same step. A planned end before the last
/// step is left out: the run has gone on under another plan.
[[nodiscard]] Trace to_trace(const LoggedRun& run, const std::optional<std::string>& metric,
                             const std::string& label, const std::string& name);

}  // namespace glidepath::detail
