// SPDX-License-Identifier: Apache-2.0
// What names say: which metric to look at, which way is better, what counts steps. The one table of
// all readers, those of Python as well.
#pragma once

#include "glidepath/trace.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace glidepath::detail {

/// What only counts within an epoch, and what counts epochs.
inline constexpr std::array<std::string_view, 7> kInnerCounters{
    "batch", "batch_id", "batch_idx", "minibatch", "it", "i", "index"};
inline constexpr std::array<std::string_view, 5> kEpochs{"epoch", "epochs", "epoch_num",
                                                         "total_epochs", "ep"};
/// What counts steps, best first; before what counts within an epoch stand optimizer steps.
[[nodiscard]] std::span<const std::string_view> step_names();
/// Columns of wall-clock time: seconds since the beginning, and times of day.
inline constexpr std::array<std::string_view, 11> kClocks{
    "wall_seconds",      "seconds",      "elapsed_s",      "time_s",
    "elapsed_seconds",   "elapsed_time", "total_duration", "_runtime",
    "time_time_elapsed", "time_elapsed", "time_total_s"};
inline constexpr std::array<std::string_view, 4> kStamps{"timestamp", "_timestamp", "wall_time",
                                                         "time_ms"};
/// Columns that may be of something else: seconds since the beginning where they go on as those do,
/// and dates and times of day.
inline constexpr std::array<std::string_view, 5> kTimes{"time", "elapsed", "walltime", "runtime",
                                                        "wall"};
inline constexpr std::array<std::string_view, 4> kDates{"datetime", "date", "created_at", "ts"};
/// Names of the data that are not trained on.
inline constexpr std::array<std::string_view, 9> kHeldOutNames{
    "eval", "evaluation", "val", "valid", "validation", "test", "testing", "dev", "cv"};

/// A name spelled in one way: "Train/Loss", "trainLoss" and so on as train_loss.
[[nodiscard]] std::string normal(std::string_view name);

/// Whether a name is that of a column of learning rates, of a loss or a score.
[[nodiscard]] bool is_rate(std::string_view name);
[[nodiscard]] bool is_metric(std::string_view name);
/// Whether a name is that of what a log counts or measures beside its metrics.
[[nodiscard]] bool is_aside(std::string_view name);
/// The same of names as `normal` spells them.
[[nodiscard]] bool is_training_loss(std::string_view key);
[[nodiscard]] bool counts_steps(std::string_view key);
[[nodiscard]] bool is_within(std::string_view key);
[[nodiscard]] bool is_epoch(std::string_view key);
[[nodiscard]] bool is_clock(std::string_view key);
/// Whether a name is that of the time of a row, of whatever data it is.
[[nodiscard]] bool is_time(std::string_view key);
/// Whether a name is nothing but that of data, "train", "learn" or "val", as a metric of which no
/// more is said may be called.
[[nodiscard]] bool is_data(std::string_view key);

/// The word of data that are not trained on, in lower case, if one stands in the text.
[[nodiscard]] std::optional<std::string> held_out_in(std::string_view text);
/// Whether a word of data that are trained on stands in the text.
[[nodiscard]] bool has_train(std::string_view text);
/// Whether a text is nothing but a word of data that are not trained on.
[[nodiscard]] bool is_held_out(std::string_view text);

/// How often each metric was logged, in the order of the log.
using Points = std::vector<std::pair<std::string, double>>;

/// The metric that a person would look at; none where several are left, none of them by its name a
/// loss or a score.
[[nodiscard]] std::optional<std::string> best_name(const Points& points);

/// Which way is better by the name alone, where it says so.
[[nodiscard]] std::optional<Direction> direction_by_name(std::string_view name);

}  // namespace glidepath::detail
