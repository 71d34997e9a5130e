// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"

#include <cstdint>

namespace glidepath::detail {

/// Where a row goes: to the caches, or past them, as one that is not soon read again.
enum class Store : std::uint8_t { cached, streamed };

/// One row of a batch, n > 0 steps.
struct EvaluateKernels {
  /// out = log t, t > 0
  void (*logs)(const double* t, int n, double* out);
  /// The curve at every step. Exponents must lie within ±700.
  void (*row)(Family family, const double* parameters, const double* t, const double* log_t, int n,
              double* out);
  /// floor + scale exp(-rate x) over evenly spaced x: a geometric series, anchored again every few
  /// hundred steps.
  void (*even)(double floor, double scale, double rate, const double* x, int n, Store store,
               double* out);
};

[[nodiscard]] const EvaluateKernels& evaluate_kernels(Isa isa);

}  // namespace glidepath::detail
