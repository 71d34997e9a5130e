// SPDX-License-Identifier: Apache-2.0
// Numbers of tables with commas: a decimal one, as in "1.234,5", or marks of thousands, as in
// "1,234.5".
#pragma once

#include <filesystem>
#include <string>

#include "trace/readers/table_header.hpp"

namespace glidepath::detail {

/// What commas in the numbers of a table are.
enum class Commas { decimal, thousands };

/// Makes the number of a cell one with a point and nothing between thousands. Beside decimal commas
/// a point stands between them for sure where a comma follows, and in a column that counts.
void clear_marks(std::string& cell, Commas commas, bool counts);

/// Whether the numbers of a table have decimal commas, by the first one that says so.
[[nodiscard]] bool has_decimal_commas(const std::filesystem::path& file, const Header& header);

}  // namespace glidepath::detail
