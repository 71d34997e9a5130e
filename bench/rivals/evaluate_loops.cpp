// SPDX-License-Identifier: Apache-2.0
// The loops that a user writes, in two ways: std::pow as it is, and exp over cached logarithms,
// which the compiler turns into libmvec's AVX2 exponential under -ffast-math. Compiled with those
// flags, hence alone in its file.
#include <cmath>

void by_pow(const double* p, const double* t, int n, double* out);
void by_exp(const double* p, const double* log_t, int n, double* out);

__attribute__((optimize("no-fast-math", "no-tree-vectorize"))) void by_pow(const double* p,
                                                                           const double* t, int n,
                                                                           double* out) {
  for (int j = 0; j < n; ++j) out[j] = p[0] + p[1] * std::pow(t[j], -p[2]);
}

void by_exp(const double* p, const double* log_t, int n, double* out) {
  for (int j = 0; j < n; ++j) out[j] = p[0] + p[1] * std::exp(-p[2] * log_t[j]);
}
