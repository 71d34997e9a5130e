// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace glidepath::detail {

/// Losses in a row that are not finite in a run that has diverged: one NaN may be the logger's.
inline constexpr std::int64_t kDivergedPoints = 2;

/// Tells a run that has failed from a metric that is logged now and then, which has no number in
/// most rows: so many of these in a row as there were before a number are no failure.
struct Gaps {
  std::int64_t now = 0;      ///< losses in a row that are not finite, up to the newest
  std::int64_t longest = 0;  ///< the most of them that a finite one followed

  void add(double loss) {
    if (!std::isfinite(loss)) {
      ++now;
      return;
    }
    if (now > longest) longest = now;
    now = 0;
  }
  /// Whether the newest losses are no numbers for longer than ever before.
  [[nodiscard]] bool failing() const { return now > longest; }
  [[nodiscard]] bool diverged() const { return failing() && now >= kDivergedPoints; }
};

[[nodiscard]] inline Gaps gaps_of(std::span<const double> loss) {
  Gaps gaps;
  for (const double value : loss) gaps.add(value);
  return gaps;
}

/// Index of the last number of a finished run; none where it failed or logged none.
[[nodiscard]] inline std::optional<std::size_t> last_number(std::span<const double> loss) {
  if (!loss.empty() && std::isfinite(loss.back())) return loss.size() - 1;
  if (gaps_of(loss).failing()) return std::nullopt;
  for (std::size_t i = loss.size(); i-- > 0;) {
    if (std::isfinite(loss[i])) return i;
  }
  return std::nullopt;
}

}  // namespace glidepath::detail
