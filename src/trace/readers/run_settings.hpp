// SPDX-License-Identifier: Apache-2.0
// What logs and the files beside them say of how a run was started. A setting is a finite number,
// a truth or a short word; secrets, paths, long text, lists and names of runs are left out.
#pragma once

#include "glidepath/trace.hpp"

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "trace/readers/json.hpp"
#include "trace/readers/series.hpp"

namespace glidepath::detail {

inline constexpr std::size_t kMostSettings = 256;  ///< of one run; what comes later is left out
inline constexpr std::size_t kLongestSettingName = 64;
inline constexpr std::size_t kLongestWord = 32;
inline constexpr std::size_t kLargestSettingsFile = std::size_t{1} << 20;
/// Members of a JSON log that are how its run was started.
inline constexpr std::array<std::string_view, 6> kSettingsKeys = {
    "config", "args", "hparams", "params", "settings", "hyperparameters"};

/// What a text without quotes says: a decimal number, a truth, nothing (`null`), or itself.
[[nodiscard]] Json plain_scalar(std::string_view text);

/// The mappings of a YAML of `key: value`, one within another. What is more than that, such as a
/// list, a tag or text of several lines, is left out with its key. Throws JsonError, with the line
/// in its sentence, where it cannot be told what belongs to what.
[[nodiscard]] Json parse_plain_yaml(std::string_view text);

/// Adds the settings of an object, those within others by dotted names. One that is there stays.
void put_settings(Settings& settings, const Json& object);

/// Takes `{"lr": {"desc": ..., "value": 0.1}}` for `{"lr": 0.1}`, as W&B's config.yaml has it.
[[nodiscard]] Json without_descriptions(const Json& config);

/// Adds what a JSON or YAML file says to the settings of a run. No such file adds nothing; one that
/// cannot be read adds nothing but a note.
void put_settings_of_file(const std::filesystem::path& file, LoggedRun& run);

}  // namespace glidepath::detail
