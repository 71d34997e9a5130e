// SPDX-License-Identifier: Apache-2.0
// Memory that a call leaves to the next one of its thread. Calls that follow each other need the
// same again, and the C library would give it back to the system in between: then each page comes
// as a fault, to be cleared anew.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace glidepath::detail {

inline constexpr std::size_t kMaxKeptBytes = std::size_t{32} << 20;  // by a thread, of each kind

/// Holds a T as the last call left it: T has bytes(), and its user clears what it fills. A call
/// inside another, which an interrupt may make, finds none and gets its own. What is larger than
/// kMaxKeptBytes is given back.
template <class T>
class Kept {
 public:
  Kept() : own_(std::move(store())) {
    if (!own_) own_ = std::make_unique<T>();
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (own_->bytes() <= kMaxKeptBytes) store() = std::move(own_);
  }
  T& operator*() const { return *own_; }
  T* operator->() const { return own_.get(); }

 private:
  static std::unique_ptr<T>& store() {
    thread_local std::unique_ptr<T> kept;
    return kept;
  }
  std::unique_ptr<T> own_;
};

template <class... Item>
[[nodiscard]] std::size_t bytes_of(const std::vector<Item>&... vectors) {
  // Some hold pointers, whose size it is. NOLINTNEXTLINE(bugprone-sizeof-expression)
  return (... + (vectors.capacity() * sizeof(Item)));
}

}  // namespace glidepath::detail
