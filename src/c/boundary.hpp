// SPDX-License-Identifier: Apache-2.0
// What every function of glidepath.h does at its edge: exceptions become a status and a sentence,
// structs are read and written as far as both sides know them, NULL is refused by name.
#pragma once

#include "glidepath/glidepath.h"
#include "glidepath/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "common/require.hpp"

namespace glidepath::c {

/// The status of the exception that is being handled, whose text becomes the last error of the
/// thread.
glidepath_status status_of_exception() noexcept;

template <class Body>
glidepath_status guarded(const Body& body) noexcept {
  try {
    body();
    return GLIDEPATH_OK;
  } catch (...) {
    return status_of_exception();
  }
}

/// Refuses NULL in a sentence that names the argument.
template <class T>
T& needed(T* pointer, const char* name) {
  if (pointer == nullptr) detail::refuse(name, " is NULL");
  return *pointer;
}

/// Refuses a size that no version of the struct has had or will have.
void check_size(std::size_t size, const char* name);

/// A struct as this version knows it: fields that the caller's version lacks are 0, those that
/// only the caller knows have to be.
template <class T>
T read(const T& given, const char* name) {
  check_size(given.size, name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof(T); i < given.size; ++i) {
    if (bytes[i] != 0) {
      detail::refuse(name, ": a field is set that this glidepath does not know; it has ", sizeof(T),
                     " of ", given.size, " bytes");
    }
  }
  T known{};
  std::memcpy(&known, &given, std::min(sizeof(T), given.size));
  return known;
}

/// The same where NULL means all defaults.
template <class T>
T read_or_default(const T* given, const char* name) {
  return given == nullptr ? T{} : read(*given, name);
}

/// As much of a result as the caller's version has room for.
template <class T>
void write(T value, T* to, const char* name) {
  const std::size_t room = needed(to, name).size;
  check_size(room, name);
  value.size = room;
  std::memcpy(to, &value, std::min(sizeof(T), room));
}

/// More values than any memory has: the count was never set.
inline constexpr std::size_t kMostValues = static_cast<std::size_t>(PTRDIFF_MAX) >> 19U;

/// A column of `count` values, which may be NULL when there are none.
template <class T>
std::span<const T> column(const T* values, std::size_t count, const char* name) {
  if (count > kMostValues) {
    detail::refuse(name, " has ", count, " values, expected at most ", kMostValues);
  }
  if (values == nullptr && count > 0) detail::refuse(name, " is NULL");
  return {values, count};
}

/// A column that is empty when it is NULL.
template <class T>
std::span<const T> column_or_empty(const T* values, std::size_t count) {
  return values == nullptr ? std::span<const T>{} : std::span<const T>{values, count};
}

/// Hands over to the caller what `make` makes; NULL where it throws.
template <class T, class Make>
glidepath_status handed_over(T** to, const char* name, const Make& make) noexcept {
  return guarded([&] {
    needed(to, name) = nullptr;
    std::unique_ptr<T> made = make();
    *to = made.release();
  });
}

struct GivenTrace {
  TraceView view{};
  Direction direction = Direction::min;
};
[[nodiscard]] GivenTrace trace_of(const glidepath_trace_t* given);
[[nodiscard]] std::optional<Schedule> schedule_of(const glidepath_schedule_t* given);
[[nodiscard]] Direction direction_of(const char* text);

}  // namespace glidepath::c
