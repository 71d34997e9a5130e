// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace glidepath {

/// What a run was started with, by name: numbers (learning rate, width, batch, GPUs) and words
/// (optimizer, task). Past runs whose settings are alike show how a run begins. What is named
/// "seed" or "random_seed" is passed over.
using Setting = std::variant<double, std::string>;
using Settings = std::map<std::string, Setting>;

/// Whether a metric is better when low (a loss) or when high (an accuracy).
enum class Direction : std::uint8_t { min, max };
/// "min" or "max".
[[nodiscard]] std::string_view name(Direction direction) noexcept;
/// Throws InputError on any other text.
[[nodiscard]] Direction direction_named(std::string_view text);

/// The observed points of one run, borrowed. `weight` empty means that every point counts once, a
/// weight of 0 that it counts for nothing, `lr` empty that none was logged. Functions that take one
/// throw InputError unless `step` lies between -1e300 and 1e300 and strictly increases, weights are
/// at most 1e100 and the columns have one length; a NaN or infinite loss is reported as a status.
struct TraceView {
  std::span<const double> step{}, loss{}, weight{}, lr{};
  const Settings* settings = nullptr;  ///< null where none are known
  std::string_view metric{};           ///< empty where it has no name; a return is no percentage
};

/// One training run, owned. `lr` and `wall_seconds` are empty where they were not recorded, and NaN
/// at the steps where only others were.
struct Trace {
  std::string name{};
  std::vector<double> step{}, loss{}, lr{}, wall_seconds{};
  std::string metric{"loss"};  ///< what `loss` holds, as its log calls it
  Direction direction = Direction::min;
  std::optional<double> planned_steps{};  ///< the step at which the run ends by its own plan
  Settings settings{};                    ///< finite numbers and words
  std::vector<std::string> notes{};       ///< what a reader repaired, a sentence each

  [[nodiscard]] TraceView view() const noexcept { return {step, loss, {}, lr, &settings, metric}; }
};

/// The two ends of a schedule: how many steps its warm-up from a rate of 0 takes, its final rate.
struct ScheduleEnds {
  double warmup = 0, final = 0;
};

/// The same with the share of the steps at the end over which the rate falls.
struct WsdShape {
  double warmup = 0, decay = 0.2, final = 0;
};

/// The learning rate of a whole run, past and planned: straight between its steps, constant before
/// the first and after the last.
struct Schedule {
  std::vector<double> step{}, lr{};

  /// The learning rate at a step.
  [[nodiscard]] double at(double at_step) const;
  /// Throws InputError unless there is a point, the steps are those of a trace and
  /// the rates finite and not negative. All that takes a schedule does.
  void validate() const;

  /// `lr` throughout.
  [[nodiscard]] static Schedule constant(double lr);
  /// From `peak` along half a cosine to `final` at step `steps`, in 128 straight pieces. The
  /// factories throw InputError on a rate that is negative or a warm-up that leaves no step.
  [[nodiscard]] static Schedule cosine(double peak, double steps, const ScheduleEnds& ends = {});
  /// From `peak` straight to `final` at step `steps`.
  [[nodiscard]] static Schedule linear(double peak, double steps, const ScheduleEnds& ends = {});
  /// Warm-up, stable, decay: `peak` until the last `decay` of the steps, then straight to `final`.
  [[nodiscard]] static Schedule wsd(double peak, double steps, const WsdShape& shape = {});
  /// What a run logged; gaps take the nearest earlier rate, the first ones the first known. Empty
  /// unless more than half of the points have a rate.
  [[nodiscard]] static std::optional<Schedule> logged(const Trace& trace);
};

/// Throws InputError, with the index and value, unless the columns are what TraceView promises.
void validate(TraceView trace);

/// The points up to and including `step`. No copy. Throws InputError on columns of unlike length.
[[nodiscard]] TraceView until(TraceView trace, double step);

/// Reads every curve of a long CSV `curve,step,value[,lr][,wall_seconds][,...]`, plain or gzip, in
/// order of first appearance. `metric` names the value column; a row where it is empty has no
/// observation of it and is passed over, while `nan` and `inf` are kept. A JSON file of the same
/// stem beside it may say `"direction": "max"`, and `"metric"`: what the column `value` holds, of
/// which the text before a bracket, comma or semicolon becomes the traces' `metric`; and
/// `"settings": {"curve": {"lr": 0.1}}`. Throws IoError with file and line on a malformed row, an
/// empty file, a curve whose steps do not increase, JSON beside it that is broken or cut, or what
/// is no regular file.
[[nodiscard]] std::vector<Trace> read_long_csv(const std::filesystem::path& file,
                                               const std::string& metric = "value");

struct ReadOptions {
  std::optional<std::string> metric{};  ///< its name in the log; else what a person would look at
  std::optional<std::string> format{};  ///< one of read_traces; else by the content of each file
};

/// Reads every run of a file, or of all files of a folder and the folders in it, plain or gzip.
/// Formats: "csv" as read_long_csv, "trainer_state" of Hugging Face, "jsonl" with an object a row,
/// "table" with a column a metric (CSV, TSV, blanks), "text" as a training loop prints. In a folder
/// the files of other formats and those without the metric are passed over, and a run is named by
/// its relative path. Where a run restarted, the later rows win, and its `notes` tell. Throws
/// IoError with file and line when a file is missing, empty, malformed, of no known format or
/// without the metric, InputError on an unknown format. Only regular files are read. Formats of
/// trackers and a `pattern` of one's own are read by Python's function of this name alone.
[[nodiscard]] std::vector<Trace> read_traces(const std::filesystem::path& path,
                                             const ReadOptions& options = {});

struct CleanOptions {
  int max_points = 512;           ///< more are thinned, evenly in log step
  double winsorize_sigmas = 0.0;  ///< > 0 pulls in points further than this from their neighbours
};

/// A trace fit for fitting, and what had to be done to it.
struct Cleaned {
  Trace trace{};
  std::size_t dropped_nonfinite = 0;  ///< NaN or infinite loss, or no step of a trace
  std::size_t dropped_repeats = 0;    ///< a step recorded again: the later row wins
  std::size_t pulled_in = 0;          ///< winsorized spikes
  std::size_t thinned = 0;            ///< left out by log-thinning
};

/// Drops non-finite points, sorts by step, pulls in spikes on request, thins. The one function that
/// takes a raw Trace, whose steps may repeat or go back as they do after a restart. Throws
/// InputError on columns of different length or an option out of range.
[[nodiscard]] Cleaned clean(const Trace& raw, const CleanOptions& options = {});

}  // namespace glidepath
#pragma GCC visibility pop
