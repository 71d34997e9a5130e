// SPDX-License-Identifier: Apache-2.0
// Families with two shapes: a grid over the box, one axis by doublings, then Newton with
// Levenberg's damping from its valleys.
#include <algorithm>

#include "fit/closed_form.hpp"
#include "fit/plane_descent.hpp"

namespace glidepath::detail {
namespace {

/// How many valleys a search goes down.
enum class Effort : std::uint8_t { usual, thorough };

constexpr int kMaxColumns = 16, kMaxValleys = 16, kMaxDescents = 256;

/// The nodes of a grid over the box. Its columns are values of the outer axis, the shape that costs
/// an exponential a node; down a column the inner one doubles.
template <class Unit>
struct PlaneScan {
  static constexpr Plane kPlane = plane_of<Unit>();
  static constexpr int kOuter = kPlane == Plane::powexp ? 0 : 1, kInner = 1 - kOuter;

  explicit PlaneScan(const Box<Unit>& where)
      : outer(where.axis[kOuter]),
        inner(where.axis[kInner]),
        columns(std::min(outer.nodes, kMaxColumns)),
        low(Cornered<Unit> ? -3.0 : inner.from) {}

  void fill(const Kernels& simd, const Data& coarse, double span) {
    const std::size_t m = coarse.points.n;
    double *base = scratch().column(kBase, m), *link = scratch().column(kLink, m);
    std::array<ScanSums, kMaxOctaves> sums;
    Octaves f, fy;
    for (int j = 0; j < columns; ++j) {
      const double z = outer_at(j), other = std::exp(kPlane == Plane::pow4 ? -z : z);
      // φ of a sigmoid changes inside the trace
      const double high = Cornered<Unit> ? 3.0 + other * span : inner.to;
      const double doublings = std::min<double>(kMaxOctaves, (high - low) / kOctave);
      octaves[j] = std::clamp(1 + static_cast<int>(doublings), 1, kMaxOctaves - 4);
      const double origin = kPlane == Plane::weibull4 ? std::exp(-other * span) : 0.0;
      simd.chain(kPlane, coarse.points, other, std::exp(low), origin, base, link);
      if (kPlane == Plane::mmf4) {
        simd.scan_mmf(coarse.points, link, octaves[j], sums.data());
      } else if (kPlane == Plane::powexp) {
        simd.scan(coarse.points, base, link, octaves[j], sums.data());
      } else {
        simd.scan_decay(coarse.points, 0.0, octaves[j] + 1, link, link, f.data(), fy.data());
        for (int k = 0; k < octaves[j]; ++k) sums[k] = {f[k], f[k + 1], fy[k]};
      }
      for (int k = 0; k < octaves[j]; ++k) nodes()[j][k] = node_of(sums[k], coarse.inverse);
    }
  }

  /// Whether no neighbour of node (j, k) explains more; of equal ones the first is the top.
  bool is_top(int j, int k) const {
    const double here = nodes()[j][k].explained;
    for (int jj = std::max(0, j - 1); jj <= std::min(columns - 1, j + 1); ++jj) {
      for (int kk = std::max(0, k - 1); kk <= std::min(octaves[jj] - 1, k + 1); ++kk) {
        if (jj == j && kk == k) continue;
        const double there = nodes()[jj][kk].explained;
        if (!(here > there || (here == there && (jj > j || (jj == j && kk > k))))) return false;
      }
    }
    return true;
  }

  /// The best tops first, at most kMaxValleys of them.
  int valleys(std::array<Valley, kMaxDescents>& found) const {
    int count = 0;
    for (int j = 0; j < columns; ++j) {
      for (int k = 0; k < octaves[j]; ++k) {
        const double here = nodes()[j][k].explained;
        if (!(here > 0) || !is_top(j, k)) continue;
        if (count == kMaxValleys && found[count - 1].explained >= here) continue;
        int place = count < kMaxValleys ? count++ : count - 1;
        while (place > 0 && found[place - 1].explained < here) {
          found[place] = found[place - 1];
          --place;
        }
        found[place] = {k, j, here};
      }
    }
    return count;
  }

  /// Where a descent from a node begins.
  std::array<double, 2> place_of(const Valley& valley) const {
    std::array<double, 2> z{};
    z[kOuter] = std::clamp(outer_at(valley.j), outer.lower, outer.upper);
    z[kInner] =
        std::clamp(std::min(low + valley.k * kOctave, inner.upper), inner.lower, inner.upper);
    return z;
  }
  ScanNode start_of(const Valley& valley, const std::array<double, 2>& z, double span) const {
    ScanNode start = nodes()[valley.j][valley.k];
    if (kPlane == Plane::mmf4) {  // its scan has φ(t_1) as it comes
      const double lift = 1.0 + std::exp(z[0] - std::exp(z[1]) * span);
      start.a /= lift;
      start.mean *= lift;
    }
    return start;
  }

  double outer_at(int j) const {
    return outer.from + (outer.to - outer.from) * j / std::max(1, columns - 1);
  }

  using Nodes = std::array<std::array<ScanNode, kMaxOctaves>, kMaxColumns>;
  static Nodes& nodes() {
    static thread_local ThreadMemory<Nodes> memory;
    return memory.here();
  }

  const Axis &outer, &inner;
  int columns;
  double low;  ///< of the inner axis, where its doubling begins
  std::array<int, kMaxColumns> octaves{};
};

/// Every valley of a grid over the box, to its bottom: the grid on merged points, the bottoms on
/// all of them. A thorough search goes down from more of them, and for weibull4, whose valleys
/// hide behind a steep first step, from every other node.
template <class Unit>
PlaneEnd search(const Kernels& simd, const Data& data, const Data& coarse, const Box<Unit>& where,
                Effort effort) {
  const bool thorough = effort == Effort::thorough;
  PlaneScan<Unit> scan(where);
  scan.fill(simd, coarse, where.span);
  std::array<Valley, kMaxDescents> valleys;
  const int count = scan.valleys(valleys);
  int tried = std::min(count, thorough ? kMaxValleys : 3);
  if (thorough && plane_of<Unit>() == Plane::weibull4) {
    for (int j = 0; j < scan.columns; ++j) {
      for (int k = j % 2; k < scan.octaves[j] && tried < kMaxDescents; k += 2) {
        const double explained = scan.nodes()[j][k].explained;
        if (explained > 0) valleys[tried++] = {k, j, explained};
      }
    }
  }

  static thread_local ThreadMemory<std::array<PlaneEnd, kMaxDescents>> memory;
  auto& ends = memory.here();
  int found = 0;
  for (int v = 0; v < tried; ++v) {
    const std::array<double, 2> z = scan.place_of(valleys[v]);
    ends[found++] = descend<Unit>(simd, coarse, z, scan.start_of(valleys[v], z, where.span), where);
  }
  std::stable_sort(ends.begin(), ends.begin() + found,
                   [](const PlaneEnd& l, const PlaneEnd& r) { return l.rss < r.rss; });
  if (coarse.points.n == data.points.n) return found > 0 ? ends[0] : PlaneEnd{};

  PlaneEnd best;
  for (int v = 0; v < found; ++v) {
    const PlaneEnd& end = ends[v];
    if (v > 0 && end.rss > (thorough ? 2.0 : 1.2) * ends[0].rss + 1e-12) break;
    const bool seen = std::any_of(ends.begin(), ends.begin() + v, [&](const PlaneEnd& other) {
      return std::abs(end.z[0] - other.z[0]) < 0.2 && std::abs(end.z[1] - other.z[1]) < 0.2;
    });
    if (seen) continue;
    const PlaneEnd fine = descend<Unit>(simd, data, end.z, {0, end.a, end.mean}, where);
    if (fine.rss < best.rss) best = fine;
  }
  return best;
}

/// The best rate for two shifts, and from the best of them down: enough for most curves of pow4.
PlaneEnd glance(const Kernels& simd, const Data& data, const Data& coarse, const Box<Pow4>& where) {
  constexpr int kColumns = 2, kNodes = 7;
  const auto& [rate, shifted] = where.axis;
  double* link = scratch().column(kLink, static_cast<std::size_t>(coarse.points.n));
  Octaves f, fy, misfit;
  double least = kWorstMisfit;
  std::array<double, 2> z{};
  ScanNode start;
  for (int j = 0; j < kColumns; ++j) {
    const double z1 = shifted.lower + (shifted.upper - shifted.lower) * (j + 0.5) / kColumns;
    const double kappa = std::exp(-z1);
    const double first = 0.2 / std::log1p(kappa * (where.range.last - where.range.first));
    simd.chain(Plane::pow4, coarse.points, kappa, first, 0.0, nullptr, link);
    simd.scan_decay(coarse.points, 0.0, kNodes + 1, link, link, f.data(), fy.data());
    simd.misfits(f.data(), fy.data(), kNodes, coarse.inverse, misfit.data());
    const auto k = static_cast<int>(std::min_element(misfit.begin(), misfit.begin() + kNodes) -
                                    misfit.begin());
    if (!(misfit[k] < least)) continue;
    least = misfit[k];
    z = {std::log(first * top_of(misfit.data(), kNodes, k).factor) + kOctave * k, z1};
    start = node_of({f[k], f[k + 1], fy[k]}, coarse.inverse);
  }
  z[0] = std::clamp(z[0], rate.lower, rate.upper);
  const bool merged = coarse.points.n < data.points.n;
  const PlaneEnd rough =
      descend<Pow4>(simd, coarse, z, start, where, merged ? kRoughPlaneStep : kFinePlaneStep);
  if (!merged) return rough;
  return descend<Pow4>(simd, data, rough.z, {0, rough.a, rough.mean}, where, kKnownPlaneStep);
}

/// The coordinates of the curve of a nested family with that rate, inside the box.
template <class Unit>
std::array<double, 2> place_of_nested(double rate, const Box<Unit>& where, Family nested) {
  const auto& box = where.axis;
  const bool power = nested == Family::pow3;
  std::array<double, 2> z{};
  switch (plane_of<Unit>()) {
    case Plane::pow4:
      z = {std::log(power ? rate : rate * std::exp(box[1].upper)),
           power ? box[1].lower : box[1].upper};
      break;
    case Plane::powexp:
      z = {power ? std::log(rate) : box[0].lower, power ? box[1].lower : std::log(rate)};
      break;
    default:
      z = {std::log(rate * where.range.last), 0.0};
      if (power) z = {box[0].upper, std::log(rate)};
  }
  for (int i = 0; i < 2; ++i) z[i] = std::clamp(z[i], box[i].lower, box[i].upper);
  if constexpr (Cornered<Unit>) z[0] = std::min(z[0], Unit::largest_z0(z[1], where.range));
  return z;
}

/// From the best curve of a family inside this one: pow3 or exp3.
template <class Unit>
void descend_from_nested(const Kernels& simd, const Data& data, std::span<const double> t,
                         const Box<Unit>& where, Family nested, PlaneEnd& best) {
  const StepRange& range = where.range;
  const auto& box = where.axis;
  const bool power = nested == Family::pow3;
  const double origin = std::max(t[0], power ? 1e-300 : t[0]);
  const double unit = power ? where.span : range.last - origin;
  Data inner = data;
  inner.start = nullptr;
  double* x = scratch().column(kNested, t.size());
  if (power) {
    simd.logs(t.data(), data.points.n, 1.0 / range.first, 1.0 / unit, x);
  } else {
    simd.rescale(t.data(), data.points.n, origin, 1.0 / unit, 0.0, x);
  }
  inner.points.x = x;
  inner.points.x2 = nullptr;
  const Axis axis = power ? Pow3::axes(range)[0] : Exp3::axes(range)[0];
  const DecayEnd end = search_decay(simd, inner, {x, t.size()},
                                    {unit * std::exp(axis.lower), unit * std::exp(axis.upper)});
  const std::array<double, 2> z = place_of_nested<Unit>(end.beta / unit, where, nested);
  const auto try_from = [&](const std::array<double, 2>& from) {
    const PlaneEnd found =
        descend<Unit>(simd, data, from, {0, 0, data.inverse > 0 ? 1.0 : 0.0}, where);
    if (found.rss < best.rss) best = found;
  };
  for (const double inside : {0.0, 1.0, 4.0}) {  // from the side of the box, and from inside
    std::array<double, 2> from = z;
    for (int i = 0; i < 2; ++i) {
      if (from[i] <= box[i].lower) from[i] += inside;
    }
    try_from(from);
  }
  if (plane_of<Unit>() == Plane::powexp && power) {
    // The power is known sharply, too sharply for a grid, and the decay may set in anywhere.
    for (double late = box[1].from; late < box[1].to; late += 1.2) try_from({z[0], late});
  }
}

/// Whether other valleys may be lower than the one that ends here.
template <class Unit>
bool is_doubtful(const PlaneEnd& end, const Data& data, const Box<Unit>& where) {
  constexpr Plane kPlane = plane_of<Unit>();
  const auto& box = where.axis;
  const StepRange& range = where.range;
  const bool nearly_straight =
      (kPlane == Plane::pow4 || kPlane == Plane::powexp) && end.z[0] < box[0].from - 0.5;
  // A weibull4 that is over by the second point may hide a slow one with a steep first step.
  const double v_last = std::exp(end.z[0]), shape = std::exp(end.z[1]);
  const bool over =
      kPlane == Plane::weibull4 && v_last * (std::pow(range.second / range.last, shape) -
                                             std::pow(range.first / range.last, shape)) >
                                       12.0;
  const bool at_side = end.z[0] <= box[0].lower || end.z[1] <= box[1].lower;
  return !(end.rss < kUnexplainedShare * data.total) || nearly_straight || over ||
         (kPlane != Plane::pow4 && at_side);
}

template <class Unit>
PlaneEnd lowest(const Kernels& simd, const Data& data, std::span<const double> key,
                const Box<Unit>& where) {
  constexpr Plane kPlane = plane_of<Unit>();
  const auto& box = where.axis;
  const int n = data.points.n;
  const Data coarse = n > 24 ? merge(data, key, 1.0 / 6.0) : data;
  PlaneEnd best;
  const auto improve = [&](const PlaneEnd& found) {
    if (found.rss < best.rss) best = found;
  };
  bool clear = false;
  if constexpr (kPlane == Plane::pow4) {
    best = glance(simd, data, coarse, where);
    clear = n > 8 && best.converged && best.rss < kUnexplainedShare * data.total &&
            best.variance(n - 4) < kOneValleyDeviation * kOneValleyDeviation;
    for (int i = 0; i < 2; ++i) {
      clear = clear && best.z[i] > box[i].lower + 0.01 && best.z[i] < box[i].upper - 0.5;
    }
  }
  if (!clear) improve(search<Unit>(simd, data, coarse, where, Effort::usual));
  const bool doubtful = is_doubtful<Unit>(best, data, where);
  if (doubtful) {
    const Data finer = n > 128 ? merge(data, key, 1.0 / 24.0) : data;
    improve(search<Unit>(simd, data, finer, where, Effort::thorough));
  }
  if (!doubtful && kPlane == Plane::pow4) return best;  // its grid includes the side with pow3
  if (kPlane != Plane::mmf4) {
    descend_from_nested<Unit>(simd, data, key, where, Family::exp3, best);
  }
  if (kPlane != Plane::weibull4) {
    descend_from_nested<Unit>(simd, data, key, where, Family::pow3, best);
  }
  if (kPlane == Plane::pow4 && best.z[0] < box[0].from - 0.5) {
    for (const double rise : {3.0, 6.0, 9.0}) {  // along the valley of nearly straight lines
      improve(descend<Unit>(simd, data, {std::min(best.z[0] + rise, box[0].from), best.z[1]},
                            {0, best.a, best.mean}, where));
    }
  }
  return best;
}

template <class Unit>
Solution solve(const Kernels& simd, const Data& data, std::span<const double> key,
               const StepRange& range) {
  const Box<Unit> where(range);
  const PlaneEnd best = lowest<Unit>(simd, data, key, where);
  Solution solution;
  solution.floor = best.c;
  solution.amplitude = best.a;
  solution.rss = best.rss;
  solution.shapes = Unit::shapes(best.z.data(), range);
  solution.status = best.converged ? FitStatus::converged : FitStatus::iteration_limit;
  for (int i = 0; i < 2; ++i) {
    const Axis& axis = where.axis[i];
    solution.shape_at_bound[i] = best.z[i] - axis.lower < 1e-9 || axis.upper - best.z[i] < 1e-9;
  }
  // JᵀJ of (1, φ, a φ_0, a φ_1)
  const PlaneSums& s = best.sums;
  const double t = best.centre, a = best.a, f = s.g + t * data.weight;
  const double ff = s.gg + t * (2.0 * s.g + t * data.weight);
  const double f0 = a * (s.g0 + t * s.d0), f1 = a * (s.g1 + t * s.d1);
  const double d00 = a * a * s.d00, d01 = a * a * s.d01, d11 = a * a * s.d11;
  solution.normal = {data.weight, f,  a * s.d0, a * s.d1,  //
                     f,           ff, f0,       f1,        //
                     a * s.d0,    f0, d00,      d01,       //
                     a * s.d1,    f1, d01,      d11};
  return solution;
}

}  // namespace

Solution solve_plane(Family family, const Kernels& simd, const Data& data,
                     std::span<const double> t, const StepRange& range) {
  return with_family(family, [&]<class Unit>(Unit) -> Solution {
    if constexpr (Unit::kShapes == 2) {
      return solve<Unit>(simd, data, t, range);
    } else {
      return {};
    }
  });
}

}  // namespace glidepath::detail
