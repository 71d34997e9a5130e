// SPDX-License-Identifier: Apache-2.0
// What the tables of a workload's folder have in common, be it read or drawn from.
#pragma once

#include "glidepath/simulate.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/csv.hpp"

namespace glidepath::detail {

/// A number with bounds, or the reader's complaint with file and line.
[[nodiscard]] double number_at_least(const CsvReader& csv, int column, std::string_view what,
                                     double least);
[[nodiscard]] double number_above_zero(const CsvReader& csv, int column, std::string_view what);
[[nodiscard]] int whole_at_least(const CsvReader& csv, int column, std::string_view what,
                                 std::int64_t least);

/// Says which columns of the file count for nothing.
void note_unread(const CsvReader& csv, const std::filesystem::path& file,
                 std::vector<std::string>& notes);

/// The rows of a tiers.csv; in `notes`, which of its columns count for nothing.
[[nodiscard]] std::vector<Tier> read_tiers(const std::filesystem::path& file,
                                           std::vector<std::string>& notes);

/// The columns steps_per_s_<tier>, -1 where a tier has none.
[[nodiscard]] std::vector<int> rate_columns(const CsvReader& csv, const std::vector<Tier>& tiers);
[[nodiscard]] std::vector<double> read_rates(const CsvReader& csv, const std::vector<int>& columns);

/// Every curve of the CSV files of truth/, in order of their names.
[[nodiscard]] std::vector<Trace> read_truth(const std::filesystem::path& folder);

}  // namespace glidepath::detail
