// SPDX-License-Identifier: Apache-2.0
// Exponential and logarithm of doubles for the kernel files, once for every instruction set.
// Included by Highway's foreach_target, hence no include guard of the usual kind, and nothing of
// the standard library: an inline function shared with other files could carry AVX code to a
// machine that has none.
#if defined(GLIDEPATH_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GLIDEPATH_SIMD_INL
#undef GLIDEPATH_SIMD_INL
#else
#define GLIDEPATH_SIMD_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using Vec = hn::Vec<Tag>;
using IntTag = hn::RebindToSigned<Tag>;

HWY_INLINE Vec set(double x) { return hn::Set(Tag(), x); }

/// exp(x) = scale (1 + tail), x within ±700, beyond which it stays as it is there.
struct Exp {
  Vec scale, tail;
};

/// x = k log 2 + r, |r| <= log(2) / 2, and e^r - 1 - r = r² q(r) with q the polynomial of degree 9
/// through its Chebyshev points: relative error 2e-17 before rounding.
HWY_INLINE Exp exp_parts(Vec x) {
  const IntTag di;
  x = hn::Min(hn::Max(x, set(-700.0)), set(700.0));
  const Vec magic = set(0x1.8p52);  // adding it rounds to an integer, in the low bits
  const Vec shifted = hn::MulAdd(x, set(0x1.71547652b82fep0), magic);
  const Vec k = hn::Sub(shifted, magic);
  Vec r = hn::NegMulAdd(k, set(0x1.62e42fefa0000p-1), x);
  r = hn::NegMulAdd(k, set(0x1.cf79abc9e3b3ap-40), r);
  const Vec r2 = hn::Mul(r, r), r4 = hn::Mul(r2, r2);
  const Vec q01 = hn::MulAdd(r, set(0x1.5555555555556p-3), set(0.5));
  const Vec q23 = hn::MulAdd(r, set(0x1.11111111109b4p-7), set(0x1.5555555553d64p-5));
  const Vec q45 = hn::MulAdd(r, set(0x1.a01a01a7c3d59p-13), set(0x1.6c16c1788b646p-10));
  const Vec q67 = hn::MulAdd(r, set(0x1.71de0daf7a6ccp-19), set(0x1.a019b90eefe8ep-16));
  const Vec q89 = hn::MulAdd(r, set(0x1.af38a71a18cb9p-26), set(0x1.2891834686c7ep-22));
  const Vec low = hn::MulAdd(r2, q23, q01), high = hn::MulAdd(r2, q67, q45);
  const Vec q = hn::MulAdd(r4, hn::MulAdd(r4, q89, high), low);
  const auto exponent =
      hn::Add(hn::ShiftLeft<52>(hn::BitCast(di, shifted)), hn::BitCast(di, set(1.0)));
  return {hn::BitCast(Tag(), exponent), hn::MulAdd(r2, q, r)};
}

/// e^x, about one unit in the last place.
HWY_INLINE Vec exp(Vec x) {
  const Exp e = exp_parts(x);
  return hn::MulAdd(e.scale, e.tail, e.scale);
}

/// e^x - 1 = scale tail + (scale - 1), which keeps its digits where e^x is nearly 1.
HWY_INLINE Vec less_one(Vec x) {
  const Exp e = exp_parts(x);
  return hn::MulAdd(e.scale, e.tail, hn::Sub(e.scale, set(1.0)));
}

/// log x of a positive normal x: x = 2^k m, m in [√½, √2), s = (m - 1) / (m + 1),
/// log m = 2 (s + s³/3 + s⁵/5 + ...).
HWY_INLINE Vec log(Vec x) {
  const IntTag di;
  const auto bits = hn::BitCast(di, x);
  const auto from_root_half = hn::Sub(bits, hn::BitCast(di, set(0x1.6a09e667f3bcdp-1)));
  const auto k = hn::ShiftRight<52>(from_root_half);
  const Vec m = hn::BitCast(Tag(), hn::Sub(bits, hn::ShiftLeft<52>(k)));
  const Vec magic = set(0x1.8p52);
  const Vec kf = hn::Sub(hn::BitCast(Tag(), hn::Add(k, hn::BitCast(di, magic))), magic);
  const Vec f = hn::Sub(m, set(1.0));
  const Vec s = hn::Div(f, hn::Add(m, set(1.0)));
  const Vec z = hn::Mul(s, s), z2 = hn::Mul(z, z), z4 = hn::Mul(z2, z2);
  const Vec p01 = hn::MulAdd(z, set(2.0 / 5), set(2.0 / 3));
  const Vec p23 = hn::MulAdd(z, set(2.0 / 9), set(2.0 / 7));
  const Vec p45 = hn::MulAdd(z, set(2.0 / 13), set(2.0 / 11));
  const Vec p67 = hn::MulAdd(z, set(2.0 / 17), set(2.0 / 15));
  const Vec p89 = hn::MulAdd(z, set(2.0 / 21), set(2.0 / 19));
  const Vec high = hn::MulAdd(z4, p89, hn::MulAdd(z2, p67, p45));
  const Vec p = hn::MulAdd(z4, high, hn::MulAdd(z2, p23, p01));
  const Vec tail = hn::MulAdd(hn::Mul(s, z), p, hn::Mul(kf, set(0x1.cf79abc9e3b3ap-40)));
  return hn::MulAdd(kf, set(0x1.62e42fefa0000p-1), hn::MulAdd(set(2.0), s, tail));
}

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
