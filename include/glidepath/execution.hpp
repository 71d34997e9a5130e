// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#pragma GCC visibility push(default)
namespace glidepath {

/// `best` is what this processor can do; `baseline` gives the bytes of a machine without it.
enum class Isa : std::uint8_t { best, baseline };

/// How to run a batch. Affects speed only: for one `isa` the bytes are the same for any thread
/// count.
struct Execution {
  int threads = 0;  ///< 0 = all cores this process may use
  Isa isa = Isa::best;
};

/// Number of threads that `threads = 0` means here.
[[nodiscard]] int available_threads() noexcept;

/// Name of the instruction set that `Isa::best` means here, such as "AVX2".
[[nodiscard]] std::string best_isa();

}  // namespace glidepath
#pragma GCC visibility pop
