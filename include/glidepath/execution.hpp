// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#pragma GCC visibility push(default)
namespace glidepath {

/// `best` is what this processor can do; `baseline` gives the bytes of a machine without it.
enum class Isa : std::uint8_t { best, baseline };

/// How to run a batch. Affects speed only: for one `isa` the bytes are the same for any thread
/// count. A batch throws InputError on threads below 0 and on an unknown `isa`.
struct Execution {
  /// At most this many; 0 = `available_threads()`. A call uses at most four for each core and never
  /// more than the system allows; in a child forked by a process that ran batches it uses one.
  int threads = 0;
  Isa isa = Isa::best;
};

/// Number of threads that `threads = 0` means here: the cores this process may use, or what
/// OMP_NUM_THREADS says.
[[nodiscard]] int available_threads() noexcept;

/// Name of the instruction set that `Isa::best` means here, such as "AVX2".
[[nodiscard]] std::string best_isa();

namespace detail {
struct Interrupt;
}

/// While one lives, the calls that its thread makes into the library ask `poll` about every 50 ms.
/// `poll` lets a call go on by returning and ends it by throwing: what it throws leaves the call,
/// from which nothing is kept. If several exist, the newest is used. Calls that `poll` makes do not
/// ask it again.
///
///     const Interruptible until_stopped([&] {
///       if (token.stop_requested()) throw std::runtime_error("stopped");
///     });
///     const std::vector<Fit> fits = fit_batch(traces);
class Interruptible {
 public:
  explicit Interruptible(std::function<void()> poll);  ///< InputError where it is empty
  ~Interruptible();  ///< in the thread that made it, the last one first
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  std::unique_ptr<detail::Interrupt> interrupt_;
};

}  // namespace glidepath
#pragma GCC visibility pop
