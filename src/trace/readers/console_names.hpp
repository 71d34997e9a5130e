// SPDX-License-Identifier: Apache-2.0
// The words before a number of a console line: its name, whether that counts, and the data that it
// is of.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/readers/rows.hpp"

namespace glidepath::detail {

inline constexpr std::size_t kLongestName = 64;  // letters
// Words of a logger: what is named stands after them.
inline constexpr std::string_view kLevels[] = {"TRACE", "DEBUG",  "INFO",  "NOTICE", "WARNING",
                                               "WARN",  "ERROR",  "debug", "info",   "warning",
                                               "root",  "stdout", "stderr"};
// Words between a metric and its number.
inline constexpr std::string_view kVerbs[] = {"is", "was"};

/// What stands before a number: its name, the counter that it is, and the data that it is of: "" of
/// training, and none where the words do not say.
struct Named {
  std::string name{};
  std::optional<std::string> counter{};
  std::optional<std::string> data{};
  std::optional<std::string> last_counter{};  ///< of a name that is no counter: its last word
  /// The metric that was taken at a counter, whose value follows it; or the one that stands before
  /// a word of data.
  std::string subject{};
};

/// What names say, remembered: the lines of a log repeat theirs.
class NameReader {
 public:
  bool is_metric(std::string_view name);
  const Named& before_number(std::string_view gap);

 private:
  template <class Value>
  using Map = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

  Map<bool> metrics_{};
  Map<Named> gaps_{};
};

/// The word that counts, if a name is that of a counter.
[[nodiscard]] std::optional<std::string> counter_in(std::string_view name);

/// The name of a metric of some data, such as "loss train", as it is called of other data.
[[nodiscard]] std::string of_other_data(std::string_view name, std::string_view data);

}  // namespace glidepath::detail
