// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

namespace glidepath::detail {

/// body(begin, end) for consecutive blocks of at most `block` of the n items: the one door to
/// parallelism. Blocks do not depend on the number of threads, so neither do results that are
/// reduced block by block. The exception of the lowest block is thrown again after the loop.
template <class Body>
void for_each_block(std::ptrdiff_t n, std::ptrdiff_t block, const Execution& execution,
                    Body&& body) {
  const std::ptrdiff_t blocks = (n + block - 1) / block;
  const auto run = [&](std::ptrdiff_t b) { body(b * block, std::min(n, (b + 1) * block)); };
  const int wanted = execution.threads > 0 ? execution.threads : available_threads();
  const int threads = static_cast<int>(std::min<std::ptrdiff_t>(wanted, blocks));
  if (threads <= 1) {
    for (std::ptrdiff_t b = 0; b < blocks; ++b) run(b);
    return;
  }
  std::exception_ptr error;
  std::ptrdiff_t error_block = blocks;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::ptrdiff_t b = 0; b < blocks; ++b) {
    try {
      run(b);
    } catch (...) {  // must not leave the parallel region
#pragma omp critical(glidepath_error)
      if (b < error_block) {
        error_block = b;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace glidepath::detail
