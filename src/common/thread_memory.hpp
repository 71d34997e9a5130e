// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>

namespace glidepath::detail {

/// How many calls of this thread wait for `check_interrupt`, which other calls may answer.
extern constinit thread_local std::size_t asking;

/// Memory that a thread keeps from one call to the next. A call that asks whether to go on while it
/// uses memory keeps it here: calls that answer have their own.
template <class T>
class ThreadMemory {
 public:
  T& here() {
    if (asking == 0) return first_;
    while (others_.size() < asking) others_.emplace_back();
    return others_[asking - 1];
  }

 private:
  T first_{};
  std::deque<T> others_{};  // which stay where they are as more come
};

}  // namespace glidepath::detail
