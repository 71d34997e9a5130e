// SPDX-License-Identifier: Apache-2.0
// What the names of columns say of a log's rows: which column counts them, which says of what run
// or of what part of the data they are, and which holds a metric that another column names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glidepath::detail {

/// The names that count steps, best first.
[[nodiscard]] std::vector<std::string> counters(std::span<const std::string> names);

/// Whether a name is that of a counter in a part of a row, such as "train/step".
[[nodiscard]] bool counts_in_part(std::string_view name);

/// Whether names are those of a log: one of a metric, or of what counts more than rows.
[[nodiscard]] bool tells(std::span<const std::string> names);

/// The part of a row in which a name stands, such as "train/", with its mark; or nothing.
[[nodiscard]] std::string_view part_of(std::string_view name);

/// Where each row has one number: whether a column holds it, and whether a text in another column
/// is its name.
[[nodiscard]] bool is_value(std::string_view column);
[[nodiscard]] bool names_value(std::string_view column, std::string_view text);
/// Whether a column says of which run a row is.
[[nodiscard]] bool names_run(std::string_view column);
/// Whether it does so by its optimizer, which is a setting of each run.
[[nodiscard]] bool names_optimizer(std::string_view column);

/// What a text counts in a column: "5/500" in "epoch" or in "global_step/max_steps", of which the
/// first is the counter, "Epoch 5", and "1.2k".
struct Count {
  std::string_view counter{};
  double at = 0;
  std::optional<double> end{};
};
/// Nothing of a column that is no counter, nor of other texts.
[[nodiscard]] std::optional<Count> count_in(std::string_view name, std::string_view text);

/// "0.5k" and "1.2M" as numbers; nothing of other texts.
[[nodiscard]] std::optional<double> in_thousands(std::string_view text);

/// Whether a column is of parts of the data, whatever it calls them.
[[nodiscard]] bool names_parts(std::string_view column);
/// Whether a column may say which part of the data a row is of.
[[nodiscard]] bool is_split(std::string_view name);
/// What stands before the names of a row that says which part of the data it is of: "train/" where
/// its cell `split` is "train". Nothing where the cell says no such thing.
[[nodiscard]] std::string split_before(std::string_view name, std::string_view text);

}  // namespace glidepath::detail
