// SPDX-License-Identifier: Apache-2.0
// The families of two shapes, each as a vector of points with its derivatives, and the sums of a
// pass over them. See curve/simd-inl.hpp for the include guard.
#if defined(GLIDEPATH_TWO_SHAPES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GLIDEPATH_TWO_SHAPES_INL
#undef GLIDEPATH_TWO_SHAPES_INL
#else
#define GLIDEPATH_TWO_SHAPES_INL
#endif

#include <hwy/highway.h>

#include "curve/simd-inl.hpp"
#include "fit/kernels.hpp"
#include "fit/points-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {

/// φ - 1, with its digits where φ is nearly 1, and the derivatives e_i, e_ij of log φ in z.
struct Bend {
  Vec less_one, e0, e1, e00, e01, e11;
};

/// q = (rate, κ); z = (log rate, -log κ). L = log(1 + κ x), ρ = κ x / (1 + κ x), φ = exp(-rate L).
struct BendPow4 {
  Vec rate, kappa;
  HWY_INLINE explicit BendPow4(const double* q) : rate(set(q[0])), kappa(set(q[1])) {}
  HWY_INLINE Bend operator()(Vec x, Vec) const {
    const Vec kx = hn::Mul(kappa, x), u = hn::Add(kx, set(1.0));
    const Vec e = hn::Neg(hn::Mul(rate, log(u))), rho = hn::Div(kx, u), e1 = hn::Mul(rate, rho);
    return {less_one(e), e, e1, e, e1, hn::Mul(e1, hn::Sub(rho, set(1.0)))};
  }
};

/// q = (z_0, shape, x_1); z = (log v(t_last), log shape). s = shape x, v = exp(z_0 + s), and
/// φ = exp(v_1 - v).
struct BendWeibull4 {
  Vec level, shape, first, s_first, ss_first;
  HWY_INLINE explicit BendWeibull4(const double* q) : level(set(q[0])), shape(set(q[1])) {
    const Vec s = hn::Mul(shape, set(q[2]));
    first = exp(hn::Add(level, s));
    s_first = hn::Mul(first, s);
    ss_first = hn::MulAdd(s_first, s, s_first);
  }
  HWY_INLINE Bend operator()(Vec x, Vec) const {
    const Vec s = hn::Mul(shape, x), v = exp(hn::Add(level, s)), vs = hn::Mul(v, s);
    const Vec e = hn::Sub(first, v), es = hn::Sub(s_first, vs);
    return {less_one(e), e, es, e, es, hn::Sub(ss_first, hn::MulAdd(vs, s, vs))};
  }
};

/// q and z as above; φ = (1 + v_1) / (1 + v), p = v / (1 + v).
struct BendMmf4 {
  Vec level, shape, v1, rest1, ps1, pq1, pqs1, curve1;
  HWY_INLINE explicit BendMmf4(const double* q) : level(set(q[0])), shape(set(q[1])) {
    const Vec s = hn::Mul(shape, set(q[2]));
    v1 = exp(hn::Add(level, s));
    rest1 = hn::Div(set(1.0), hn::Add(v1, set(1.0)));
    const Vec p1 = hn::Mul(v1, rest1);
    ps1 = hn::Mul(p1, s);
    pq1 = hn::Mul(p1, rest1);
    pqs1 = hn::Mul(pq1, s);
    curve1 = hn::MulAdd(pqs1, s, ps1);
  }
  HWY_INLINE Bend operator()(Vec x, Vec) const {
    const Vec s = hn::Mul(shape, x), v = exp(hn::Add(level, s));
    const Vec rest = hn::Div(set(1.0), hn::Add(v, set(1.0))), p = hn::Mul(v, rest);
    const Vec ps = hn::Mul(p, s), pq = hn::Mul(p, rest), pqs = hn::Mul(pq, s);
    return {hn::Mul(hn::Sub(v1, v), rest),
            hn::Sub(rest, rest1),
            hn::Sub(ps1, ps),
            hn::Sub(pq1, pq),
            hn::Sub(pqs1, pqs),
            hn::Sub(curve1, hn::MulAdd(pqs, s, ps))};
  }
};

/// q = (rate, decay); z their logarithms. φ = exp(-rate x - decay x2).
struct BendPowExp {
  Vec rate, decay;
  HWY_INLINE explicit BendPowExp(const double* q) : rate(set(-q[0])), decay(set(-q[1])) {}
  HWY_INLINE Bend operator()(Vec x, Vec x2) const {
    const Vec e0 = hn::Mul(rate, x), e1 = hn::Mul(decay, x2);
    return {less_one(hn::Add(e0, e1)), e0, e1, e0, set(0), e1};
  }
};

template <class Family, bool kWeighted>
HWY_INLINE PlaneSums plane_sums(const Columns& points, const double* q, double centre, double c,
                                double a, double* memory) {
  const Family family(q);
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  // before all sums, as for one shape
  for (int i = 0; i < points.n; i += lanes) {
    const Vec x = hn::LoadU(Tag(), points.x + i);
    const Bend b = family(x, points.x2 != nullptr ? hn::LoadU(Tag(), points.x2 + i) : x);
    const Vec parts[kBendParts] = {b.less_one, b.e0, b.e1, b.e00, b.e01, b.e11};
    for (int k = 0; k < kBendParts; ++k) {
      hn::StoreU(parts[k], Tag(), memory + kBendParts * i + k * lanes);
    }
  }
  const Vec shift = set(centre - 1.0), constant = set(c + a), amplitude = set(a);
  Vec g = set(0), d0 = g, d1 = g, gg = g, g0 = g, g1 = g, d00 = g, d01 = g, d11 = g, r = g, gr = g,
      r0 = g, r1 = g, rr = g, r00 = g, r01 = g, r11 = g;
  for_points(points.n, [&](int i, auto at) HWY_ATTR {
    const Vec y = at.load(points.y + i);
    const double* parts = memory + kBendParts * i;
    const auto part = [&](int k) HWY_ATTR { return at.load(parts + k * lanes); };
    const Bend b{part(0), part(1), part(2), part(3), part(4), part(5)};
    const Vec f = at.keep(hn::Add(b.less_one, set(1.0))), gi = at.keep(hn::Sub(b.less_one, shift));
    const Vec f0 = hn::Mul(f, b.e0), f1 = hn::Mul(f, b.e1);
    const Vec ri = at.keep(hn::NegMulAdd(amplitude, b.less_one, hn::Sub(y, constant)));
    Vec wg = gi, w0 = f0, w1 = f1, wr = ri;
    if (kWeighted) {
      const Vec w = at.load_foreign(points.w + i);
      wg = hn::Mul(w, gi), w0 = hn::Mul(w, f0), w1 = hn::Mul(w, f1), wr = hn::Mul(w, ri);
    }
    const Vec fr = hn::Mul(f, wr);
    g = hn::Add(g, wg);
    d0 = hn::Add(d0, w0);
    d1 = hn::Add(d1, w1);
    r = hn::Add(r, wr);
    gg = hn::MulAdd(wg, gi, gg);
    g0 = hn::MulAdd(wg, f0, g0);
    g1 = hn::MulAdd(wg, f1, g1);
    d00 = hn::MulAdd(w0, f0, d00);
    d01 = hn::MulAdd(w0, f1, d01);
    d11 = hn::MulAdd(w1, f1, d11);
    gr = hn::MulAdd(wg, ri, gr);
    r0 = hn::MulAdd(w0, ri, r0);
    r1 = hn::MulAdd(w1, ri, r1);
    rr = hn::MulAdd(wr, ri, rr);
    r00 = hn::MulAdd(fr, hn::MulAdd(b.e0, b.e0, b.e00), r00);
    r01 = hn::MulAdd(fr, hn::MulAdd(b.e0, b.e1, b.e01), r01);
    r11 = hn::MulAdd(fr, hn::MulAdd(b.e1, b.e1, b.e11), r11);
  });
  double s[20];
  sums(g, d0, d1, gg, s);
  sums(g0, g1, d00, d01, s + 4);
  sums(d11, r, gr, r0, s + 8);
  sums(r1, rr, r00, r01, s + 12);
  return {s[0], s[1],  s[2],  s[3],  s[4],  s[5],  s[6],  s[7],    s[8],
          s[9], s[10], s[11], s[12], s[13], s[14], s[15], sum(r11)};
}

template <class Family>
PlaneSums plane_of(const Columns& points, const double* q, double centre, double c, double a,
                   double* memory) {
  return points.w != nullptr ? plane_sums<Family, true>(points, q, centre, c, a, memory)
                             : plane_sums<Family, false>(points, q, centre, c, a, memory);
}

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
