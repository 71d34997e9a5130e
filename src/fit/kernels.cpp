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
#include "fit/points-inl.hpp"
#include "fit/two_shapes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {

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
