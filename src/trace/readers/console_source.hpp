// SPDX-License-Identifier: Apache-2.0
// The lines of a console log that have metrics, with tables between rules and blocks as lines, each
// with the counters that stand before it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "trace/readers/console_line.hpp"
#include "trace/readers/console_names.hpp"

namespace glidepath::detail {

/// Times that a log says what is no metric by its name.
inline constexpr std::size_t kMinMentions = 3;

/// What of a text is looked at: of a page of Markdown, such as a model card, its tables alone.
enum class LogPart { lines, tables };

/// Takes a line; false to end.
using Take = std::function<bool(Line&)>;

/// Gives the lines with metrics, each with the counters that stand for it. No more than the first
/// `most` bytes of the file are read. True where the last line was left out, as it has no end.
[[nodiscard]] bool each_line(const std::filesystem::path& file, LogPart part, std::size_t most,
                             NameReader& names, const Take& take);

}  // namespace glidepath::detail
