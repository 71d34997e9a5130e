// SPDX-License-Identifier: Apache-2.0
// How the values of a column go from row to row: as a counter does, as a clock does, or otherwise.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace glidepath::detail {

// Times that a counter or a clock goes on for each that it goes back, at least.
inline constexpr std::size_t kRisesABack = 4;

[[nodiscard]] inline bool is_whole(double x) { return x == std::floor(x); }

/// Which of `rows` have a value in a column, whose values stand in the rows `there`; adds these
/// values to `found`.
[[nodiscard]] std::vector<std::size_t> match(const std::vector<std::int64_t>& there,
                                             const std::vector<double>& values,
                                             const std::vector<std::int64_t>& rows,
                                             std::vector<double>& found);

/// How neighbouring values of a column go.
struct Course {
  std::size_t rises = 0, backs = 0, stands = 0;
};
[[nodiscard]] Course course_of(const std::vector<double>& values);

/// Whether values are those of a counter: whole, and rising but where it begins anew. What a step
/// takes, which may be called a step as well, goes up and down.
[[nodiscard]] bool counts_up(const std::vector<double>& values);

/// Whether a clock goes on: what each row took does not. Rows may stand newest first.
[[nodiscard]] bool goes_on(const std::vector<double>& values);
/// Whether times are those of day.
[[nodiscard]] bool are_of_day(const std::vector<double>& values);
/// Whether seconds are counted from the beginning, by how they go: what each row took may rise as
/// well, but hardly to twice as much without going back once.
[[nodiscard]] bool goes_on_from_start(const std::vector<double>& values);

}  // namespace glidepath::detail
