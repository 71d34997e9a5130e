// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/forecast.hpp"

#include <span>
#include <vector>

namespace glidepath::detail {

/// Which settings tell how these runs went, and how much (docs/method/settings.md, "Which settings
/// matter"). Empty where fewer than three runs have any.
[[nodiscard]] std::vector<Relevance> learn_relevance(std::span<const Trace> runs);

/// Square distances of two runs, in kernel widths by the learned weights, and with every setting in
/// which the past runs differ at weight 1.
struct SettingsDistance {
  double learned = 0, plain = 0;
};
[[nodiscard]] SettingsDistance settings_distance(const Settings& a, const Settings& b,
                                                 std::span<const Relevance> relevance);

}  // namespace glidepath::detail
