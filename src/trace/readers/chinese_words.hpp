// SPDX-License-Identifier: Apache-2.0
// The words of logs that are written in Chinese.
#pragma once

#include <string>
#include <string_view>

namespace glidepath::detail {

/// Whether a text has Chinese characters.
[[nodiscard]] bool has_chinese(std::string_view text);

/// A text with the Chinese words of counters, data and metrics in English, and all else as it is:
/// "第3轮，训练损失：2.5" as "epoch 3，train loss：2.5".
[[nodiscard]] std::string in_english(std::string_view text);

}  // namespace glidepath::detail
