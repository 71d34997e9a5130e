// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace glidepath::detail {

/// Refuses threads below 0 and an instruction set that does not exist.
void check(const Execution& execution);

/// body(b) for b in [0, blocks) on at most `threads` threads, that of the caller among them.
void run_blocks(std::ptrdiff_t blocks, int threads,
                const std::function<void(std::ptrdiff_t)>& body);

/// body(begin, end) for consecutive blocks of at most `block` of the n items: the one door to
/// parallelism. Blocks do not depend on the number of threads, so neither do results that are
/// reduced block by block. The exception of the lowest block is thrown again after the loop, or
/// what an Interruptible threw. Asks between blocks whether to go on; a block that takes longer
/// than some milliseconds has to ask itself.
template <class Body>
void for_each_block(std::ptrdiff_t n, std::ptrdiff_t block, const Execution& execution,
                    Body&& body) {
  check(execution);
  const std::ptrdiff_t blocks = (n + block - 1) / block;
  const auto run = [&](std::ptrdiff_t b) { body(b * block, std::min(n, (b + 1) * block)); };
  run_blocks(blocks, execution.threads, std::ref(run));  // by reference: nothing is allocated
}

}  // namespace glidepath::detail
