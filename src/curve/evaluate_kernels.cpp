// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set by Highway's foreach_target; see fit/kernels.cpp.
#include "curve/evaluate_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "curve/evaluate_kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "curve/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {

/// out[j] = body(vector of steps from j). The last vector overlaps the one before it; a row shorter
/// than a vector goes through a padded copy.
template <class Body>
HWY_INLINE void for_steps(const double* t, const double* log_t, int n, double* out, Body body) {
  const Tag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  if (n < lanes) {
    HWY_ALIGN double a[HWY_MAX_BYTES / sizeof(double)], b[HWY_MAX_BYTES / sizeof(double)],
        c[HWY_MAX_BYTES / sizeof(double)];
    for (int j = 0; j < lanes; ++j) {
      a[j] = t[j < n ? j : 0];
      b[j] = log_t[j < n ? j : 0];
    }
    hn::Store(body(hn::Load(d, a), hn::Load(d, b)), d, c);
    for (int j = 0; j < n; ++j) out[j] = c[j];
    return;
  }
  for (int j = 0; j + lanes <= n; j += lanes) {
    hn::StoreU(body(hn::LoadU(d, t + j), hn::LoadU(d, log_t + j)), d, out + j);
  }
  const int j = n - lanes;
  hn::StoreU(body(hn::LoadU(d, t + j), hn::LoadU(d, log_t + j)), d, out + j);
}

void logs(const double* t, int n, double* out) {
  for_steps(t, t, n, out, [](Vec x, Vec) HWY_ATTR { return log(x); });
}

void row(Family family, const double* p, const double* t, const double* log_t, int n, double* out) {
  const Vec p0 = set(p[0]), p1 = set(p[1]), p2 = set(p[2]), p3 = set(p[3]);
  const Vec minus2 = hn::Neg(p2), one = set(1.0);
  switch (family) {
    case Family::pow2:
      return for_steps(t, log_t, n, out, [&](Vec, Vec l) HWY_ATTR {
        return hn::Mul(p0, exp(hn::Neg(hn::Mul(p1, l))));
      });
    case Family::pow3:
      return for_steps(t, log_t, n, out, [&](Vec, Vec l) HWY_ATTR {
        return hn::MulAdd(p1, exp(hn::Mul(minus2, l)), p0);
      });
    case Family::pow4:
      return for_steps(t, log_t, n, out, [&](Vec x, Vec) HWY_ATTR {
        return hn::MulAdd(p1, exp(hn::Mul(minus2, log(hn::Add(x, p3)))), p0);
      });
    case Family::exp3:
      return for_steps(t, log_t, n, out, [&](Vec x, Vec) HWY_ATTR {
        return hn::MulAdd(p1, exp(hn::Mul(minus2, x)), p0);
      });
    case Family::weibull4: {
      const Vec log_rate = log(p2);
      return for_steps(t, log_t, n, out, [&](Vec, Vec l) HWY_ATTR {
        const Vec v = exp(hn::Mul(p3, hn::Add(l, log_rate)));
        return hn::MulAdd(p1, exp(hn::Neg(v)), p0);
      });
    }
    case Family::mmf4: {
      const Vec log_half = log(p2);
      return for_steps(t, log_t, n, out, [&](Vec, Vec l) HWY_ATTR {
        const Vec v = exp(hn::Mul(p3, hn::Sub(l, log_half)));
        return hn::Add(hn::Div(p1, hn::Add(one, v)), p0);
      });
    }
    case Family::log2:
      return for_steps(t, log_t, n, out,
                       [&](Vec, Vec l) HWY_ATTR { return hn::NegMulAdd(p1, l, p0); });
    case Family::powexp:
      break;
  }
  for_steps(t, log_t, n, out, [&](Vec x, Vec l) HWY_ATTR {
    return hn::MulAdd(p1, exp(hn::Sub(hn::Mul(minus2, l), hn::Mul(p3, x))), p0);
  });
}

template <bool kStream>
HWY_INLINE void put(Vec v, double* out) {
  if (kStream) {
    hn::Stream(v, Tag(), out);
  } else {
    hn::StoreU(v, Tag(), out);
  }
}

template <bool kStream>
HWY_INLINE void series(double floor, double scale, double rate, const double* x, int n, int from,
                       double* out) {
  const Tag d;
  const int lanes = static_cast<int>(hn::Lanes(d)), stride = 4 * lanes, anchored = 16 * stride;
  const Vec a = set(scale), c = set(floor), minus = set(-rate);
  const double gap = (x[n - 1] - x[0]) / (n - 1);
  const Vec ratio = exp(set(-rate * gap * stride));
  int j = from;
  for (; j + stride <= n;) {
    Vec f0 = hn::Mul(a, exp(hn::Mul(minus, hn::LoadU(d, x + j))));
    Vec f1 = hn::Mul(a, exp(hn::Mul(minus, hn::LoadU(d, x + j + lanes))));
    Vec f2 = hn::Mul(a, exp(hn::Mul(minus, hn::LoadU(d, x + j + 2 * lanes))));
    Vec f3 = hn::Mul(a, exp(hn::Mul(minus, hn::LoadU(d, x + j + 3 * lanes))));
    const int end = j + anchored < n ? j + anchored : n;
    for (; j + stride <= end; j += stride) {
      put<kStream>(hn::Add(f0, c), out + j);
      put<kStream>(hn::Add(f1, c), out + j + lanes);
      put<kStream>(hn::Add(f2, c), out + j + 2 * lanes);
      put<kStream>(hn::Add(f3, c), out + j + 3 * lanes);
      f0 = hn::Mul(f0, ratio);
      f1 = hn::Mul(f1, ratio);
      f2 = hn::Mul(f2, ratio);
      f3 = hn::Mul(f3, ratio);
    }
  }
  if (j < n) {
    for_steps(x + j, x + j, n - j, out + j,
              [&](Vec v, Vec) HWY_ATTR { return hn::Add(hn::Mul(a, exp(hn::Mul(minus, v))), c); });
  }
}

void even(double floor, double scale, double rate, const double* x, int n, Store store,
          double* out) {
  // Values must not depend on where the row lies in memory: the series always begins at step 0,
  // and only a row that begins on a vector boundary is streamed.
  const size_t boundary = hn::Lanes(Tag()) * sizeof(double);
  if (store == Store::streamed && reinterpret_cast<size_t>(out) % boundary == 0) {
    series<true>(floor, scale, rate, x, n, 0, out);
    hwy::FlushStream();
  } else {
    series<false>(floor, scale, rate, x, n, 0, out);
  }
}

EvaluateKernels evaluate_table() { return {logs, row, even}; }

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace glidepath::detail {

HWY_EXPORT(evaluate_table);

const EvaluateKernels& evaluate_kernels(Isa isa) {
  static const EvaluateKernels best = HWY_DYNAMIC_DISPATCH(evaluate_table)();
  static const EvaluateKernels baseline = HWY_STATIC_DISPATCH(evaluate_table)();
  return isa == Isa::best ? best : baseline;
}

}  // namespace glidepath::detail
#endif
