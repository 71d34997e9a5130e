// SPDX-License-Identifier: Apache-2.0
// How the kernels go over the points of a trace, and what they sum. See curve/simd-inl.hpp for the
// include guard.
#if defined(GLIDEPATH_POINTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GLIDEPATH_POINTS_INL
#undef GLIDEPATH_POINTS_INL
#else
#define GLIDEPATH_POINTS_INL
#endif

#include <hwy/highway.h>

#include "curve/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {

/// Calls body(i, load) for every vector of points; `load` reads a column, with 0 past the end, and
/// `keep` zeroes what the lanes past the end would add.
struct Whole {
  HWY_INLINE Vec load(const double* p) const { return hn::LoadU(Tag(), p); }
  HWY_INLINE Vec load_foreign(const double* p) const { return load(p); }
  HWY_INLINE Vec keep(Vec v) const { return v; }
};
/// Scratch columns have room for a vector past their end; the user's memory has not.
struct Tail {
  hn::Mask<Tag> mask;
  int count;
  HWY_INLINE Vec load(const double* p) const { return keep(hn::LoadU(Tag(), p)); }
  HWY_INLINE Vec load_foreign(const double* p) const {
    HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)] = {};
    for (int i = 0; i < count; ++i) lanes[i] = p[i];
    return hn::Load(Tag(), lanes);
  }
  HWY_INLINE Vec keep(Vec v) const { return hn::IfThenElseZero(mask, v); }
};

template <class Body>
HWY_INLINE void for_points(int n, Body body) {
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  int i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole{});
  if (i < n) body(i, Tail{hn::FirstN(Tag(), static_cast<size_t>(n - i)), n - i});
}

HWY_INLINE double sum(Vec v) { return hn::GetLane(hn::SumOfLanes(Tag(), v)); }

/// Four of them at once, by half the shuffles where there are two or four lanes.
HWY_INLINE void sums(Vec a, Vec b, Vec c, Vec d, double* out) {
#if HWY_TARGET != HWY_SCALAR
  const Tag tag;
  if (hn::Lanes(tag) <= 4) {
    const Vec ab = hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b));
    const Vec cd = hn::Add(hn::InterleaveLower(tag, c, d), hn::InterleaveUpper(tag, c, d));
    if (hn::Lanes(tag) == 2) {
      hn::StoreU(ab, tag, out);
      hn::StoreU(cd, tag, out + 2);
    } else {
      hn::StoreU(hn::Add(hn::ConcatLowerLower(tag, cd, ab), hn::ConcatUpperUpper(tag, cd, ab)), tag,
                 out);
    }
    return;
  }
#endif
  out[0] = sum(a), out[1] = sum(b), out[2] = sum(c), out[3] = sum(d);
}

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
