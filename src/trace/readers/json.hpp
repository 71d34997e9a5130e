// SPDX-License-Identifier: Apache-2.0
// JSON as training tools write it, which is more than the standard: NaN and infinities are numbers,
// and so is what no double can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glidepath::detail {

struct Json {
  enum class Kind : std::uint8_t { null, boolean, number, text, list, object };

  Kind kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string text{};
  std::vector<Json> items{};
  std::vector<std::pair<std::string, Json>> members{};  ///< of a name that repeats, the last value

  /// A member of an object, or null.
  [[nodiscard]] const Json* find(std::string_view name) const noexcept;
  [[nodiscard]] bool is(Kind other) const noexcept { return kind == other; }
};

/// What is wrong with some JSON, and at which byte.
class JsonError : public std::runtime_error {
 public:
  JsonError(const std::string& why, std::size_t position) : std::runtime_error(why), at(position) {}
  std::size_t at;
};

/// Throws JsonError, also on nesting deeper than 900.
[[nodiscard]] Json parse_json(std::string_view text);

}  // namespace glidepath::detail
