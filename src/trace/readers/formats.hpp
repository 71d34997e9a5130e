// SPDX-License-Identifier: Apache-2.0
// The formats that are read here: of each, whether a file is its own, judged by its content (`head`
// is how the file begins), and the run of a file. `metric` none is the training loss, or what is
// nearest to one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trace/readers/rows.hpp"
#include "trace/readers/series.hpp"

namespace glidepath::detail {

using Metric = std::optional<std::string>;

/// What may be said where a console log is not understood.
inline constexpr std::string_view kPatternAdvice =
    R"(pattern=r'step (?P<step>\d+) .* loss (?P<value>\S+)' as the lines are)";

/// Whether a file is a page of Markdown, of which only a table may be a log. It is read by its own
/// path alone: in a folder it stands beside the log that its table was made of.
[[nodiscard]] bool is_page(const std::filesystem::path& file);

/// The names of the columns in the first line of a CSV.
[[nodiscard]] std::vector<std::string> header_of(std::string_view head);

/// Whether a file is a CSV with columns of curves and steps.
[[nodiscard]] bool is_long(const std::filesystem::path& file, std::string_view head);
/// How the JSON beside a file of the long form calls its column `value`; "value" without one.
[[nodiscard]] std::string metric_beside(const std::filesystem::path& file);
/// Throws AbsentError where a long CSV lacks the metric, which another file of its folder may have.
void require_column(const std::filesystem::path& file, std::string_view head, const Metric& metric);
/// For a file that no format recognises: the one whose reader says what it lacks, "csv" or "text";
/// throws IoError where it is neither, naming the `formats`.
[[nodiscard]] std::string unknown_format(const std::filesystem::path& file, std::string_view head,
                                         const std::string& formats);

[[nodiscard]] bool is_trainer_state(const std::filesystem::path& file, std::string_view head);
[[nodiscard]] LoggedRun read_trainer_state(const std::filesystem::path& file, const Metric& metric);
/// The longest state of a run of the Trainer, of those in its folder and in the folders
/// `checkpoint-…` of it, that holds all that a file holds; the file itself where no other does.
[[nodiscard]] std::filesystem::path whole_state(const std::filesystem::path& file);

[[nodiscard]] bool is_json_lines(const std::filesystem::path& file, std::string_view head);
/// One run, or several where a column tells apart rows at one step.
[[nodiscard]] std::vector<LoggedRun> read_json_lines(const std::filesystem::path& file,
                                                     const Metric& metric);

[[nodiscard]] bool is_table(const std::filesystem::path& file, std::string_view head);
/// One run, or several where a column says of which a row is.
[[nodiscard]] std::vector<LoggedRun> read_table(const std::filesystem::path& file,
                                                const Metric& metric);

/// Whether any of its lines has a metric at a step: they may come after thousands of others.
[[nodiscard]] bool is_console(const std::filesystem::path& file, std::string_view head);
/// Whether a log without a loss has numbers at steps, one of which may be named.
[[nodiscard]] bool has_numbers_at_steps(const std::filesystem::path& file, std::string_view head);
/// One run, or several where lines such as "Fold 2" tell them apart.
[[nodiscard]] std::vector<LoggedRun> read_console(const std::filesystem::path& file,
                                                  const Metric& metric);

}  // namespace glidepath::detail
