// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/require.hpp"

/// Names of enumerations whose values count from 0: one array of them, in the order of the values.
namespace glidepath::detail {

template <std::size_t n>
using Names = std::array<std::string_view, n>;

/// The name of a number that is no value of its enumeration.
inline constexpr std::string_view kNoName = "?";

template <std::size_t n, class Enum>
[[nodiscard]] constexpr std::string_view name_in(const Names<n>& names, Enum value) noexcept {
  const auto place = static_cast<std::size_t>(value);
  return place < n ? names[place] : kNoName;
}

/// "a, b, c": what `name_of` makes of each.
template <class Range, class NameOf = std::identity>
[[nodiscard]] std::string listed(const Range& values, NameOf name_of = {}) {
  std::string list;
  for (const auto& value : values) {
    list += list.empty() ? "" : ", ";
    list += name_of(value);
  }
  return list;
}

/// Refuses a number that is no value of the enumeration; `what` is said to have it.
template <std::size_t n, class Enum>
void refuse_unnamed(const Names<n>& names, Enum value, std::string_view what) {
  const auto place = static_cast<std::size_t>(value);
  if (place >= n) refuse(what, " is value ", place, ", expected one of ", listed(names));
}

/// The value of that name; refuses another one between the two parts of a sentence.
template <class Enum, std::size_t n>
[[nodiscard]] Enum value_named(const Names<n>& names, std::string_view text,
                               std::string_view before, const std::string& after) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) refuse(before, text, after);
  return static_cast<Enum>(found - names.begin());
}

}  // namespace glidepath::detail
