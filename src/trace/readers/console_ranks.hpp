// SPDX-License-Identifier: Apache-2.0
// Which process or machine printed a line, in the ways in which launchers say so.
#pragma once

#include <optional>
#include <string_view>

namespace glidepath::detail {

/// The number of the process or machine that printed a line.
struct Rank {
  int number = 0;
  bool sure = false;  ///< it is called a rank, else it may be that of a machine that took over
};

/// The rank of a line, where the line says one.
[[nodiscard]] std::optional<Rank> rank_of_line(std::string_view line);
/// The number in brackets that begins a line, "[0] step 1": it may be that of a process.
[[nodiscard]] std::optional<int> rank_in_brackets(std::string_view line);
/// The rank in "(0/4) Epoch 1", before a counter.
[[nodiscard]] std::optional<int> rank_of_fraction(std::string_view line);

}  // namespace glidepath::detail
