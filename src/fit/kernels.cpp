// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set by Highway's foreach_target: no standard library, no
// Eigen, and every multiply-add written out, so that each set has bytes of its own that never
// change.
#include "fit/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fit/kernels.cpp"
#include <hwy/foreach_target.h>
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

bool increasing(const double* step, int n) {
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  Vec smallest = set(1);
  int i = 0;
  for (; i + 1 + lanes <= n; i += lanes) {
    const Vec gap = hn::Sub(hn::LoadU(Tag(), step + i + 1), hn::LoadU(Tag(), step + i));
    smallest = hn::IfThenElse(hn::Gt(gap, set(0)), smallest, set(-1));
  }
  bool all = hn::GetLane(hn::MinOfLanes(Tag(), smallest)) > 0;
  for (; i + 1 < n; ++i) all = all && step[i + 1] - step[i] > 0;
  // increasing: the ends bound the others
  return all && (n == 0 || step[0] * 0 + step[n - 1] * 0 == 0);
}

Extent extent(const double* values, int n) {
  if (n == 0) return {};
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  const double last = values[n - 1];
  Vec lowest = set(values[0]), highest = lowest, poison = set(0), above = set(0);
  int i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec v = hn::LoadU(Tag(), values + i);
    lowest = hn::Min(lowest, v);
    highest = hn::Max(highest, v);
    poison = hn::MulAdd(v, set(0), poison);
    above = hn::Add(above, hn::Sub(v, set(last)));
  }
  Extent found{hn::GetLane(hn::MinOfLanes(Tag(), lowest)),
               hn::GetLane(hn::MaxOfLanes(Tag(), highest)), sum(above), true};
  double nan = sum(poison);
  for (; i < n; ++i) {
    found.lowest = values[i] < found.lowest ? values[i] : found.lowest;
    found.highest = values[i] > found.highest ? values[i] : found.highest;
    found.above_last += values[i] - last;
    nan += values[i] * 0;
  }
  found.finite = nan == 0;
  return found;
}

void logs(const double* in, int n, double factor, double scale, double* out) {
  for_points(n, [&](int i, auto at) HWY_ATTR {
    Vec t = hn::Mul(at.load_foreign(in + i), set(factor));
    t = hn::Max(t, set(1e-300));  // a step of 0 is infinitely far to the left
    hn::StoreU(hn::Mul(log(t), set(scale)), Tag(), out + i);
  });
}

double rescale(const double* in, int n, double shift, double scale, double offset, double* out) {
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  Vec squares = set(0);
  int i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec v =
        hn::MulSub(hn::Sub(hn::LoadU(Tag(), in + i), set(shift)), set(scale), set(offset));
    squares = hn::MulAdd(v, v, squares);
    hn::StoreU(v, Tag(), out + i);
  }
  double total = sum(squares);
  for (; i < n; ++i) {
    const hn::CappedTag<double, 1> one;
    const auto v = hn::MulSub(hn::Sub(hn::LoadU(one, in + i), hn::Set(one, shift)),
                              hn::Set(one, scale), hn::Set(one, offset));
    hn::StoreU(v, one, out + i);
    total += out[i] * out[i];
  }
  return total;
}

/// φ - 1, a column of its own: an exponential is a long chain of operations, and the processor
/// sees several of them at once only where nothing else stands between.
HWY_INLINE void decays(const double* x, int n, double beta, double* less) {
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  const Vec rate = set(-beta);
  for (int i = 0; i < n; i += lanes) {
    hn::StoreU(less_one(hn::Mul(hn::LoadU(Tag(), x + i), rate)), Tag(), less + i);
  }
}

/// The same from that of a β nearby: φ - 1 + φ (e^x - 1), where x, within 1/8 of 0, needs few terms
/// of the series of e^x.
HWY_INLINE void decays_nearby(const double* x, int n, double step, double* less) {
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  for (int i = 0; i < n; i += lanes) {
    const Vec v = hn::Mul(hn::LoadU(Tag(), x + i), set(-step)), v2 = hn::Mul(v, v);
    const Vec p = hn::LoadU(Tag(), less + i);
    const auto pair = [&](double constant, double slope)
                          HWY_ATTR { return hn::MulAdd(v, set(slope), set(constant)); };
    const Vec last = hn::MulAdd(v2, set(1.0 / 362880), pair(1.0 / 5040, 1.0 / 40320));
    const Vec high = hn::MulAdd(v2, last, pair(1.0 / 120, 1.0 / 720));
    const Vec low = hn::MulAdd(v2, pair(1.0 / 6, 1.0 / 24), pair(1.0, 1.0 / 2));
    const Vec series = hn::MulAdd(hn::Mul(v2, v2), high, low);  // (e^v - 1) / v
    hn::StoreU(hn::MulAdd(hn::Add(p, set(1.0)), hn::Mul(series, v), p), Tag(), less + i);
  }
}

void exponentials(const double* x, int n, double rate, double* out) {
  const int lanes = static_cast<int>(hn::Lanes(Tag()));
  for (int i = 0; i < n; i += lanes) {
    hn::StoreU(exp(hn::Mul(hn::LoadU(Tag(), x + i), set(rate))), Tag(), out + i);
  }
}

template <bool kWeighted>
HWY_INLINE DecaySums decay_sums(const Columns& at_points, const double* less, double centre,
                                double c, double a) {
  // g = φ - centre = (φ - 1) - (centre - 1), and r = (y - (c + a)) - a (φ - 1)
  const Vec shift = set(centre - 1.0), constant = set(c + a), amplitude = set(a);
  Vec g = set(0), h = g, k = g, gg = g, gh = g, hh = g, r = g, gr = g, hr = g, kr = g, rr = g;
  for_points(at_points.n, [&](int i, auto at) HWY_ATTR {
    const Vec x = at.load(at_points.x + i), y = at.load(at_points.y + i);
    const Vec p = at.load(less + i), f = hn::Add(p, set(1.0));
    const Vec gi = at.keep(hn::Sub(p, shift));
    const Vec hi = at.keep(hn::Mul(x, f)), ki = hn::Mul(x, hi);
    const Vec ri = at.keep(hn::NegMulAdd(amplitude, p, hn::Sub(y, constant)));
    Vec wg = gi, wh = hi, wk = ki, wr = ri;
    if (kWeighted) {
      const Vec w = at.load_foreign(at_points.w + i);
      wg = hn::Mul(w, gi), wh = hn::Mul(w, hi), wk = hn::Mul(w, ki), wr = hn::Mul(w, ri);
    }
    g = hn::Add(g, wg);
    h = hn::Add(h, wh);
    k = hn::Add(k, wk);
    r = hn::Add(r, wr);
    gg = hn::MulAdd(wg, gi, gg);
    gh = hn::MulAdd(wg, hi, gh);
    hh = hn::MulAdd(wh, hi, hh);
    gr = hn::MulAdd(wg, ri, gr);
    hr = hn::MulAdd(wh, ri, hr);
    kr = hn::MulAdd(wk, ri, kr);
    rr = hn::MulAdd(wr, ri, rr);
  });
  double s[12];
  sums(g, h, k, gg, s);
  sums(gh, hh, r, gr, s + 4);
  sums(hr, kr, rr, rr, s + 8);
  return {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10]};
}

DecaySums decay(const Columns& points, double held, double beta, double centre, double c, double a,
                double* memory) {
  const double step = beta - held, last = step * points.x[points.n - 1];
  if (held > 0 && points.x[0] >= 0 && -0.125 <= last && last <= 0.125) {
    decays_nearby(points.x, points.n, step, memory);
  } else {
    decays(points.x, points.n, beta, memory);
  }
  return points.w != nullptr ? decay_sums<true>(points, memory, centre, c, a)
                             : decay_sums<false>(points, memory, centre, c, a);
}

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

PlaneSums plane(Plane family, const Columns& points, const double* q, double centre, double c,
                double a, double* memory) {
  switch (family) {
    case Plane::pow4:
      return plane_of<BendPow4>(points, q, centre, c, a, memory);
    case Plane::weibull4:
      return plane_of<BendWeibull4>(points, q, centre, c, a, memory);
    case Plane::mmf4:
      return plane_of<BendMmf4>(points, q, centre, c, a, memory);
    case Plane::powexp:
      break;
  }
  return plane_of<BendPowExp>(points, q, centre, c, a, memory);
}

void chain(Plane family, const Columns& points, double other, double first, double origin,
           double* base, double* link) {
  const Vec one = set(1.0), step = set(-first), o = set(other);
  for_points(points.n, [&](int i, auto at) HWY_ATTR {
    const Vec x = at.load(points.x + i);
    Vec b = one, l = one;
    switch (family) {
      case Plane::pow4:  // other = κ, doubling rate
        l = exp(hn::Mul(step, log(hn::MulAdd(o, x, one))));
        break;
      case Plane::weibull4:  // other = shape, doubling v
        l = exp(hn::Mul(step, hn::Sub(exp(hn::Mul(o, x)), set(origin))));
        break;
      case Plane::mmf4:
        l = hn::Mul(set(first), exp(hn::Mul(o, x)));
        break;
      case Plane::powexp:  // other = rate, doubling decay
        b = exp(hn::Neg(hn::Mul(o, x)));
        l = exp(hn::Mul(step, at.load(points.x2 + i)));
        break;
    }
    if (base != nullptr) hn::StoreU(b, Tag(), base + i);
    hn::StoreU(l, Tag(), link + i);
  });
}

template <class At>
HWY_INLINE Vec weight(const Columns& points, int i, const At& at) {
  return at.keep(points.w != nullptr ? at.load_foreign(points.w + i) : set(1.0));
}

/// Six octaves a pass over the points, their sums in registers.
template <bool kWeighted>
HWY_INLINE void six_octaves(const Columns& points, const double* start, double* link, double* f,
                            double* fy) {
  Vec f0 = set(0), f1 = f0, f2 = f0, f3 = f0, f4 = f0, f5 = f0;
  Vec y0 = f0, y1 = f0, y2 = f0, y3 = f0, y4 = f0, y5 = f0;
  for_points(points.n, [&](int i, auto at) HWY_ATTR {
    Vec l = at.load(start + i), y = at.load(points.y + i), w = set(1);
    if (kWeighted) {
      w = weight(points, i, at);
      y = hn::Mul(w, y);
    }
    const auto add = [&](Vec& sum_f, Vec& sum_y) HWY_ATTR {
      sum_f = kWeighted ? hn::MulAdd(w, l, sum_f) : hn::Add(l, sum_f);
      sum_y = hn::MulAdd(y, l, sum_y);
      l = hn::Mul(l, l);
    };
    add(f0, y0);
    add(f1, y1);
    add(f2, y2);
    add(f3, y3);
    add(f4, y4);
    add(f5, y5);
    hn::StoreU(l, Tag(), link + i);
  });
  double ends[4];
  sums(f0, f1, f2, f3, f);
  sums(y0, y1, y2, y3, fy);
  sums(f4, f5, y4, y5, ends);
  f[4] = ends[0], f[5] = ends[1], fy[4] = ends[2], fy[5] = ends[3];
}

template <bool kWeighted>
void scan_decay_of(const Columns& points, double first, int octaves, const double* start,
                   double* link, double* f, double* fy) {
  Columns seen = points;  // those at which a decay has not vanished: the first, as x increases
  for (int k = 0; k < octaves; k += 6) {
    if (first > 0) {
      const double last = 60.0 / (first * static_cast<double>(int64_t{1} << k));
      while (seen.n > 8 && points.x[seen.n / 2] > last) seen.n /= 2;
    }
    six_octaves<kWeighted>(seen, k == 0 ? start : link, link, f + k, fy + k);
  }
}

void scan_decay(const Columns& points, double first, int octaves, const double* start, double* link,
                double* f, double* fy) {
  points.w != nullptr ? scan_decay_of<true>(points, first, octaves, start, link, f, fy)
                      : scan_decay_of<false>(points, first, octaves, start, link, f, fy);
}

Turns misfits(const double* f, const double* fy, int nodes, double inverse, double* out) {
  const Tag tag;
  const int lanes = static_cast<int>(hn::Lanes(tag));
  const Vec most = set(kWorstMisfit);
  const auto misfit_at = [&](int k) HWY_ATTR {
    const Vec first = hn::LoadU(tag, f + k), squares = hn::LoadU(tag, f + k + 1);
    const Vec y = hn::LoadU(tag, fy + k);
    const Vec ff = hn::NegMulAdd(hn::Mul(first, first), set(inverse), squares);
    const Vec misfit = hn::Div(ff, hn::Mul(y, y));
    const auto known = hn::And(hn::Gt(ff, hn::Mul(squares, set(1e-14))), hn::Lt(misfit, most));
    return hn::IfThenElse(known, misfit, most);
  };
  const auto bits = [&](auto mask, int k) HWY_ATTR {
    uint8_t all[8] = {};
    hn::StoreMaskBits(tag, mask, all);
    return uint64_t{all[0]} << k;
  };
  Turns turns;
  for (int k = 0; k < nodes; k += lanes) {
    const Vec here = misfit_at(k), next = misfit_at(k + 1);
    const auto tied = hn::Le(hn::Abs(hn::Sub(next, here)), hn::Mul(here, set(1e-11)));
    turns.ties |= bits(tied, k);
    turns.rises |= bits(hn::AndNot(tied, hn::Gt(next, here)), k);
    hn::StoreU(here, tag, out + k);
  }
  return turns;
}

/// Sums of φ, which `phi` makes at point i.
template <class Phi>
HWY_INLINE ScanSums scan_sums(const Columns& points, Phi phi) {
  Vec sf = set(0), sff = sf, sfy = sf;
  for_points(points.n, [&](int i, auto at) HWY_ATTR {
    const Vec f = phi(i, at), wf = hn::Mul(weight(points, i, at), f);
    sf = hn::Add(sf, wf);
    sff = hn::MulAdd(wf, f, sff);
    sfy = hn::MulAdd(wf, at.load(points.y + i), sfy);
  });
  return {sum(sf), sum(sff), sum(sfy)};
}

void scan(const Columns& points, const double* base, double* link, int octaves, ScanSums* out) {
  for (int k = 0; k < octaves; ++k) {
    out[k] = scan_sums(points, [&](int i, auto at) HWY_ATTR {
      const Vec l = at.load(link + i);
      hn::StoreU(hn::Mul(l, l), Tag(), link + i);
      return hn::Mul(at.load(base + i), l);
    });
  }
}

void scan_mmf(const Columns& points, const double* link, int octaves, ScanSums* out) {
  double power = 1.0;
  for (int k = 0; k < octaves; ++k, power *= 2.0) {
    out[k] = scan_sums(points, [&](int i, auto at) HWY_ATTR {
      const Vec v = hn::Mul(at.load(link + i), set(power));
      return hn::Div(set(1.0), hn::Add(v, set(1.0)));
    });
  }
}

Kernels table() {
  return {increasing, extent, logs,       rescale, exponentials, decay,
          plane,      chain,  scan_decay, misfits, scan,         scan_mmf};
}

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace glidepath::detail {

HWY_EXPORT(table);

const Kernels& kernels(Isa isa) {
  static const Kernels best = HWY_DYNAMIC_DISPATCH(table)();
  static const Kernels baseline = HWY_STATIC_DISPATCH(table)();
  return isa == Isa::best ? best : baseline;
}

}  // namespace glidepath::detail
#endif
