// SPDX-License-Identifier: Apache-2.0
#include "common/interrupt.hpp"

#include "glidepath/execution.hpp"

#include <utility>

#include <time.h>

#include "common/require.hpp"
#include "common/thread_memory.hpp"

namespace glidepath {
namespace detail {

constinit thread_local Asker asker{};
constinit thread_local std::size_t asking = 0;

namespace {

using Clock = std::chrono::steady_clock;

/// To some milliseconds where the system has a clock that is faster for it: events are many.
Clock::time_point about_now() {
#ifdef CLOCK_MONOTONIC_COARSE
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Clock::time_point(std::chrono::seconds(now.tv_sec) +
                           std::chrono::nanoseconds(now.tv_nsec));
#else
  return Clock::now();
#endif
}

}  // namespace

void poll_now_and_then(Interrupt& interrupt) {
  const Clock::time_point now = about_now();
  if (now < interrupt.next) return;
  // `poll` may call the library, and is not asked again meanwhile.
  struct Aside {
    Interrupt* asked = std::exchange(asker.interrupt, nullptr);
    Aside() { ++asking; }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    ~Aside() {
      --asking;
      asker.interrupt = asked;
    }
  } const aside;
  interrupt.threw = true;  // unless it returns
  interrupt.poll();
  interrupt.threw = false;
  interrupt.next = about_now() + kPollEvery;
}

}  // namespace detail

Interruptible::Interruptible(std::function<void()> poll)
    : interrupt_(std::make_unique<detail::Interrupt>()) {
  if (!poll) detail::refuse("interruptible: poll is empty");
  interrupt_->poll = std::move(poll);
  interrupt_->next = detail::about_now() + detail::kPollEvery;
  interrupt_->outer = std::exchange(detail::asker.interrupt, interrupt_.get());
}

Interruptible::~Interruptible() { detail::asker.interrupt = interrupt_->outer; }

}  // namespace glidepath
