// SPDX-License-Identifier: Apache-2.0
// Where a call asks whether to go on: once for each block, event, forecast or row of a file. The
// answer may be given by other calls: what it uses of its thread meanwhile is a `ThreadMemory`.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

namespace glidepath::detail {

inline constexpr std::chrono::milliseconds kPollEvery{50};

/// What one Interruptible keeps.
struct Interrupt {
  std::function<void()> poll;
  std::chrono::steady_clock::time_point next{};
  bool threw = false;          ///< `poll` has ended the call
  Interrupt* outer = nullptr;  ///< the one before it
};

/// Ends a block on a helping thread once the call is over. Never leaves the library.
struct Interrupted {};

/// Who asks: the thread of the call by its Interrupt, its helpers by what it found.
struct Asker {
  Interrupt* interrupt = nullptr;
  const std::atomic<bool>* over = nullptr;
};
extern constinit thread_local Asker asker;

void poll_now_and_then(Interrupt& interrupt);

/// Throws when the call is to end. A few nanoseconds where nobody may end it.
inline void check_interrupt() {
  if (asker.interrupt != nullptr) {
    poll_now_and_then(*asker.interrupt);
  } else if (asker.over != nullptr && asker.over->load(std::memory_order_relaxed)) {
    throw Interrupted();
  }
}

/// The same at once, after a signal.
inline void check_interrupt_now() {
  if (asker.interrupt != nullptr) asker.interrupt->next = {};
  check_interrupt();
}

}  // namespace glidepath::detail
