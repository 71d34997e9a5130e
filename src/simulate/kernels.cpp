// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set by Highway's foreach_target; see fit/kernels.cpp. The
// loops are plain ones, which the compiler vectorises (CMakeLists.txt).
#include "simulate/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simulate/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {

constexpr size_t kLanes = 8, kPadded = kWorkGrid + 2 * kWorkReach;
static_assert(kWorkGrid % kLanes == 0);

double sum(const double* values) {
  double lanes[kLanes] = {};
  for (size_t k = 0; k < kWorkGrid; k += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) lanes[i] += values[k + i];
  }
  double all = 0;
  for (const double lane : lanes) all += lane;
  return all;
}

void multiply(const double* a, const double* b, double* out) {
  for (size_t k = 0; k < kWorkGrid; ++k) out[k] = a[k] * b[k];
}

void divide(double* values, double by) {
  for (size_t k = 0; k < kWorkGrid; ++k) values[k] /= by;
}

/// out[kWorkReach + k] = from[k], zeros around it
void pad(const double* from, double* out) {
  for (size_t k = 0; k < kPadded; ++k) out[k] = 0;
  for (size_t k = 0; k < kWorkGrid; ++k) out[kWorkReach + k] = from[k];
}

/// The grid of `wide` when a job is near the other.
void move(const double* wide, const double* near, double* out) {
  for (size_t k = 0; k < kWorkGrid; ++k) {
    const size_t middle = kWorkReach + k;
    double sum = near[0] * wide[middle];
    for (size_t d = 1; d <= kWorkReach; ++d) sum += near[d] * (wide[middle - d] + wide[middle + d]);
    out[k] = sum;
  }
}

void follow(const double* before, const double* near, double stay, const double* law, double* out) {
  double wide[kPadded], moved[kWorkGrid];
  pad(before, wide);
  move(wide, near, moved);
  for (size_t k = 0; k < kWorkGrid; ++k) out[k] = stay * moved[k] + (1 - stay) * law[k];
}

double observe(const double* prior, const double* likelihood, double* out) {
  multiply(prior, likelihood, out);
  const double all = sum(out);
  const double scale = all > 1e-300 ? all : 1e-300;
  divide(out, scale);
  return scale;
}

double look_back(const double* likelihood, const double* behind, double scale, const double* law,
                 const double* near, double stay, double* next, double* out) {
  double wide[kPadded], moved[kWorkGrid];
  for (size_t k = 0; k < kWorkGrid; ++k) next[k] = likelihood[k] * behind[k] / scale;
  multiply(law, next, moved);
  const double drawn = sum(moved);
  const double apart = (1 - stay) * drawn;
  pad(next, wide);
  move(wide, near, moved);
  for (size_t k = 0; k < kWorkGrid; ++k) out[k] = stay * moved[k] + apart;
  return drawn;
}

void count(const double* here, const double* next, const double* law, double stay, double* drawn,
           double* steps) {
  double wide[kPadded];
  pad(next, wide);
  for (size_t k = 0; k < kWorkGrid; ++k) drawn[k] += (1 - stay) * law[k] * next[k];
  for (size_t k = 0; k < kWorkGrid; ++k) steps[k] += stay * here[k] * next[k];
  for (size_t d = 1; d <= kWorkReach; ++d) {
    double* near = steps + d * kWorkGrid;
    const double *left = wide + kWorkReach - d, *right = wide + kWorkReach + d;
    for (size_t k = 0; k < kWorkGrid; ++k) near[k] += stay * here[k] * (left[k] + right[k]);
  }
}

bool same(const double* a, const double* b, double negligible) {
  double apart[kWorkGrid];
  for (size_t k = 0; k < kWorkGrid; ++k) apart[k] = __builtin_fabs(a[k] - b[k]);
  return sum(apart) <= negligible * sum(a);
}

void weigh(size_t n, double low, double width, double log_forecast, double sigma,
           const double* log_prior, double origin, double step, double* out) {
  double place[kWorkCells], below[kWorkCells], above[kWorkCells];
  int k[kWorkCells];
  for (size_t i = 0; i < n; ++i) {
    const double at = low + width * (static_cast<double>(static_cast<int>(i)) + 0.5);
    const double u = (at - log_forecast) / sigma;
    out[i] = -0.5 * u * u;
    double here = (at - origin) / step;
    here = here < 0.0 ? 0.0 : here;
    here = here > kWorkGrid - 1.001 ? kWorkGrid - 1.001 : here;
    k[i] = static_cast<int>(here);
    place[i] = here;
  }
  for (size_t i = 0; i < n; ++i) {
    below[i] = log_prior[k[i]];
    above[i] = log_prior[k[i] + 1];
  }
  for (size_t i = 0; i < n; ++i) {
    const double f = place[i] - static_cast<double>(k[i]);
    out[i] += below[i] * (1 - f) + above[i] * f;
  }
}

DurationKernels duration_table() {
  return {sum, multiply, divide, follow, observe, look_back, count, same, weigh};
}

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace glidepath::detail {

HWY_EXPORT(duration_table);

const DurationKernels& duration_kernels() {
  static const DurationKernels best = HWY_DYNAMIC_DISPATCH(duration_table)();
  return best;
}

}  // namespace glidepath::detail
#endif
