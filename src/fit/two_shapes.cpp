// SPDX-License-Identifier: Apache-2.0
// Families with two shapes: a grid over the box, one axis by doublings, then Newton with
// Levenberg's damping from its valleys.
#include <algorithm>

#include "fit/closed_form.hpp"

namespace glidepath::detail {
namespace {

template <class Unit>
constexpr Plane plane_of() {
  switch (Unit::kFamily) {
    case Family::pow4:
      return Plane::pow4;
    case Family::weibull4:
      return Plane::weibull4;
    case Family::mmf4:
      return Plane::mmf4;
    default:
      return Plane::powexp;
  }
}

struct PlaneEnd {
  std::array<double, 2> z{};
  double a = 0, c = 0, rss = std::numeric_limits<double>::infinity(), mean = 0, centre = 0;
  PlaneSums sums{};
  bool converged = false;
  std::array<double, 3> normal{};  ///< of z, floor and scale eliminated: (0,0), (0,1), (1,1)

  /// The larger variance of the coordinates, by the normal matrix.
  [[nodiscard]] double variance(double freedom) const {
    const double determinant = normal[0] * normal[2] - normal[1] * normal[1];
    return rss / freedom * std::max(normal[0], normal[2]) / std::max(determinant, 1e-300);
  }
};

std::array<double, 3> shapes_of(Plane family, const std::array<double, 2>& z, double span) {
  switch (family) {
    case Plane::pow4:
      return {std::exp(z[0]), std::exp(-z[1])};
    case Plane::powexp:
      return {std::exp(z[0]), std::exp(z[1])};
    default:
      return {z[0], std::exp(z[1]), -span};
  }
}

/// Where to search.
template <class Unit>
struct Box {
  explicit Box(const StepRange& steps) : range(steps) {}

  const StepRange& range;
  std::array<Axis, 2> axis = Unit::axes(range);
  double span = range.log_span();
};

constexpr double kLongest = 2.0;  ///< step of a coordinate
/// Steps that end a descent: always; where the shapes are well known; and on merged points, whose
/// valley is not quite that of all.
constexpr double kPlaneFine = 1e-5, kKnownFine = 5e-5, kPlaneRough = 0.03;

/// Newton with Levenberg's damping, inside the box, until a step is smaller than `enough`.
template <class Unit>
PlaneEnd descend(const Kernels& run, const Data& data, std::array<double, 2> z, const Node& start,
                 const Box<Unit>& where, double enough = kPlaneFine) {
  constexpr Plane kFamily = plane_of<Unit>();
  const StepRange& range = where.range;
  const auto& box = where.axis;
  const double span = where.span;
  PlaneEnd best;
  Line line(start);
  const double inverse = data.inverse;
  double* memory =
      scratch().column(kBends, static_cast<std::size_t>(data.points.n + 8) * kBendParts);
  double lambda = 0, lean = 2.0;
  bool leapt = false;
  int falls = 0, repeats = 0;
  // of the best point so far
  std::array<double, 2> gradient{}, slope_a{}, slope_mean{};
  double h00 = 0, h01 = 0, h11 = 0, b00 = 0, b01 = 0, b11 = 0;
  bool trusted = false;  // h: its residuals are those of the best a and c, or nearly
  double blur = 0;       // what they may be wrong by in h
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const auto q = shapes_of(kFamily, z, span);
    const double centre = line.centre;
    const PlaneSums s = run.plane(kFamily, data.points, q.data(), centre, line.c, line.a, memory);
    const Refined found = refine(s, line, inverse);
    const double ff = found.ff, da = found.da, correction = found.correction, rss = found.rss;
    if (found.lost && ff > 0 && repeats < kMostRepeats) {
      ++repeats;
      line = found.line;
      continue;
    }
    repeats = 0;
    const bool better = ff > 0 && std::isfinite(rss) && !(rss > best.rss * (1 + 1e-13));
    if (better) {
      line = found.line;
      best = {z, line.a, line.c, std::max(rss, 0.0), line.centre, centre, s, false};
      const double a_here = line.a;
      const double d[2] = {s.d0, s.d1}, g[2] = {s.g0, s.g1}, r[2] = {s.r0, s.r1};
      double cross[2];
      for (int i = 0; i < 2; ++i) {
        cross[i] = g[i] - s.g * d[i] * inverse;
        const double fr = r[i] - s.r * d[i] * inverse - da * cross[i];  // Σ φ_i r
        slope_a[i] = (fr - a_here * cross[i]) / ff;
        slope_mean[i] = d[i] * inverse;
        gradient[i] = -a_here * fr;
      }
      const double a2 = a_here * a_here;
      const double d00 = s.d00 - s.d0 * s.d0 * inverse, d01 = s.d01 - s.d0 * s.d1 * inverse,
                   d11 = s.d11 - s.d1 * s.d1 * inverse;
      trusted = correction <= 0.01 * rss;
      blur = std::abs(a_here) * std::sqrt(std::max(0.0, correction) * std::max(d00, d11));
      h00 = a2 * d00 - a_here * s.r00 - ff * slope_a[0] * slope_a[0];
      h01 = a2 * d01 - a_here * s.r01 - ff * slope_a[0] * slope_a[1];
      h11 = a2 * d11 - a_here * s.r11 - ff * slope_a[1] * slope_a[1];
      b00 = a2 * (d00 - cross[0] * cross[0] / ff);
      b01 = a2 * (d01 - cross[0] * cross[1] / ff);
      b11 = a2 * (d11 - cross[1] * cross[1] / ff);
      best.normal = {b00, b01, b11};
      lambda = lambda > 1e-6 ? 0.1 * lambda : 0.0;
      lean = 2.0;
    } else {
      if (pass == 0) return best;
      lambda = std::max(1e-3, lean * lambda);
      lean *= 2.0;
      if (lambda > 1e12) {
        best.converged = true;  // no smaller step goes down either
        return best;
      }
    }

    // along the edge of the cut-off corner: z_0 = edge(z_1) and its slope
    double edge_slope = 0;
    bool on_edge = false;
    if constexpr (Cornered<Unit>) {
      edge_slope = std::exp(best.z[1]) * span;
      on_edge = best.z[0] >= Unit::largest_z0(best.z[1], range) - 1e-9 && gradient[0] < 0;
    }
    // along the sides of the box that the slope pushes against
    std::array<bool, 2> held{};
    for (int i = 0; i < 2; ++i) {
      held[i] = (best.z[i] <= box[i].lower && gradient[i] >= 0) ||
                (best.z[i] >= box[i].upper && gradient[i] <= 0);
    }
    if (held[0] && held[1]) {
      best.converged = true;
      return best;
    }
    // Valleys of a sigmoid, along which v stays what it is at one step, are straight in (z_0,
    // shape): its second coordinate steps by shares of the shape.
    const double bend = Cornered<Unit> ? gradient[1] : 0.0;
    double m00 = 0, m01 = 0, m11 = 0;
    const auto solve = [&](double more, std::array<double, 2>& step) {
      m00 += more * std::max(b00, 1e-30);
      m11 += more * std::max(b11, 1e-30);
      if (held[0]) {
        step = {0.0, -gradient[1] / m11};
        return m11 > 0;
      }
      if (held[1]) {
        step = {-gradient[0] / m00, 0.0};
        return m00 > 0;
      }
      const double determinant = m00 * m11 - m01 * m01;
      step = {(m01 * gradient[1] - m11 * gradient[0]) / determinant,
              (m01 * gradient[0] - m00 * gradient[1]) / determinant};
      return m00 > 0 && m11 > 0 && determinant > 1e-13 * m00 * m11;
    };
    std::array<double, 2> step{};
    bool newtonian = false;
    if (on_edge) {
      const double along = gradient[0] * edge_slope + gradient[1];
      const auto curve = [&](double c00, double c01, double c11) {
        return edge_slope * (edge_slope * c00 + 2.0 * c01) + c11;
      };
      const double gauss = curve(b00, b01, b11) * (1.0 + lambda);
      const double newton = curve(h00, h01, h11) + edge_slope * gradient[0] + lambda * gauss;
      newtonian = trusted && newton > 0;
      step[1] = -along / (newtonian ? newton : gauss);
      step[0] = edge_slope * step[1];
    }
    for (int tries = 0; tries < 2 && !on_edge; ++tries) {
      m00 = h00, m01 = h01, m11 = h11 - bend;
      newtonian = trusted && solve(lambda, step);
      if (!newtonian) {
        m00 = b00, m01 = b01, m11 = b11;
        solve(std::max(lambda, 1e-4), step);
      }
      // a step out of the box from its side is one along the side
      bool out = false;
      for (int i = 0; i < 2; ++i) {
        const bool leaves = !held[i] && ((best.z[i] <= box[i].lower && step[i] < 0) ||
                                         (best.z[i] >= box[i].upper && step[i] > 0));
        held[i] = held[i] || leaves;
        out = out || leaves;
      }
      if (!out || (held[0] && held[1])) break;
    }
    const double longest = std::max(std::abs(step[0]), std::abs(step[1]));
    if (!std::isfinite(longest)) return best;
    if (longest > kLongest) {
      // One coordinate goes as far as it may, and the other to its best place there.
      const int far = std::abs(step[0]) == longest ? 0 : 1, near = 1 - far;
      const double m = near == 0 ? m00 : m11;
      step[near] *= kLongest / longest;
      step[far] = std::copysign(kLongest, step[far]);
      if (!on_edge && !held[near] && m > 0) {
        step[near] = std::clamp(-(gradient[near] + m01 * step[far]) / m, -kLongest, kLongest);
      }
    }
    double promised = -(gradient[0] * step[0] + gradient[1] * step[1]);
    if (!(promised > 0) && !on_edge) {  // straight down
      const double b[2] = {b00, b11};
      for (int i = 0; i < 2; ++i) {
        step[i] = held[i] ? 0.0
                          : std::clamp(-gradient[i] / std::max((1.0 + lambda) * b[i], 1e-300),
                                       -kLongest, kLongest);
      }
      promised = -(gradient[0] * step[0] + gradient[1] * step[1]);
    }
    falls = better && step[1] < -0.7 ? falls + 1 : (better ? 0 : falls);
    if (Cornered<Unit> && !on_edge) step[1] = std::log1p(std::max(step[1], -0.8));
    for (int i = 0; i < 2; ++i) z[i] = std::clamp(best.z[i] + step[i], box[i].lower, box[i].upper);
    if constexpr (Cornered<Unit>) {
      const double edge = Unit::largest_z0(z[1], range);
      if (on_edge || z[0] > edge) z[0] = std::clamp(edge, box[0].lower, box[0].upper);
    }
    for (int i = 0; i < 2; ++i) step[i] = z[i] - best.z[i];
    const double moved = std::max(std::abs(step[0]), std::abs(step[1]));
    const bool sound = newtonian && lambda == 0 &&
                       (on_edge || held[0] || held[1] ||
                        blur * (h00 + h11) < 0.1 * (h00 * (h11 - bend) - h01 * h01));
    if (moved < (sound ? enough : 1e-5 * enough) || promised < 1e-14 * best.rss) {
      // the last step to first order in a, c and second in RSS
      const double y_mean = best.c + best.a * best.mean;
      const double change = step[0] * (2 * gradient[0] + h00 * step[0] + 2 * h01 * step[1]) +
                            step[1] * (2 * gradient[1] + h11 * step[1]);
      // A Newton step gains what the gradient promises; more is told by curvatures that rounding
      // made up where a curve is all but exact.
      if (moved < std::max(enough, 1e-4) && change <= 0 && change >= -2.0 * promised) {
        best.z = z;
        best.a += slope_a[0] * step[0] + slope_a[1] * step[1];
        best.mean += slope_mean[0] * step[0] + slope_mean[1] * step[1];
        if (inverse > 0) best.c = y_mean - best.a * best.mean;
        best.rss = std::max(0.0, best.rss + change);
      }
      best.converged = true;
      return best;
    }
    if (falls >= 3 && !leapt && kFamily == Plane::powexp) {  // the second decay wants to vanish
      z[1] = box[1].lower;
      leapt = true;
    }
    line.a = best.a;
    line.c = best.c;
    line.centre = inverse > 0 ? best.mean : 0.0;
    if (moved < 0.1) {
      const double y_mean = best.c + best.a * best.mean;
      line.a += slope_a[0] * step[0] + slope_a[1] * step[1];
      line.centre += slope_mean[0] * step[0] + slope_mean[1] * step[1];
      if (inverse > 0) line.c = y_mean - line.a * line.centre;
    }
  }
  return best;
}

constexpr int kMostOuter = 16, kMostValleys = 16, kMostTried = 256;

/// Every valley of a grid over the box, to its bottom: the grid on merged points, the bottoms on
/// all of them. A thorough search goes down from more of them, and for weibull4, whose valleys
/// hide behind a steep first step, from every other node.
template <class Unit>
PlaneEnd search(const Kernels& run, const Data& data, const Data& coarse, const Box<Unit>& where,
                bool thorough) {
  constexpr Plane kPlane = plane_of<Unit>();
  const auto& box = where.axis;
  const double span = where.span;
  const auto m = static_cast<std::size_t>(coarse.points.n);
  double *base = scratch().column(kBase, m), *link = scratch().column(kLink, m);

  // Outer axis: the shape that costs an exponential a node; inner: the one that doubles.
  constexpr bool kOuterFirst = kPlane == Plane::powexp;
  const int outer_axis = kOuterFirst ? 0 : 1;
  const Axis& outer = box[outer_axis];
  const Axis& inner = box[1 - outer_axis];
  const int columns = std::min(outer.nodes, kMostOuter);
  static thread_local std::array<std::array<Node, kMostOctaves>, kMostOuter> nodes;
  std::array<int, kMostOuter> octaves{};
  std::array<ScanSums, kMostOctaves> sums;
  Octaves f, fy;
  const auto outer_at = [&](int j) {
    return outer.from + (outer.to - outer.from) * j / std::max(1, columns - 1);
  };
  const double low = Cornered<Unit> ? -3.0 : inner.from;
  for (int j = 0; j < columns; ++j) {
    const double z = outer_at(j), other = std::exp(kPlane == Plane::pow4 ? -z : z);
    // φ of a sigmoid changes inside the trace
    const double high = Cornered<Unit> ? 3.0 + other * span : inner.to;
    octaves[j] = std::clamp(1 + static_cast<int>((high - low) / kOctave), 1, kMostOctaves - 4);
    const double origin = kPlane == Plane::weibull4 ? std::exp(-other * span) : 0.0;
    run.chain(kPlane, coarse.points, other, std::exp(low), origin, base, link);
    if (kPlane == Plane::mmf4) {
      run.scan_mmf(coarse.points, link, octaves[j], sums.data());
    } else if (kPlane == Plane::powexp) {
      run.scan(coarse.points, base, link, octaves[j], sums.data());
    } else {
      run.scan_decay(coarse.points, 0.0, octaves[j] + 1, link, link, f.data(), fy.data());
      for (int k = 0; k < octaves[j]; ++k) sums[k] = {f[k], f[k + 1], fy[k]};
    }
    for (int k = 0; k < octaves[j]; ++k) nodes[j][k] = node_of(sums[k], coarse.inverse);
  }
  const auto inner_at = [&](double k) { return std::min(low + k * kOctave, inner.upper); };

  std::array<Valley, kMostTried> valleys;
  int count = 0;
  for (int j = 0; j < columns; ++j) {
    for (int k = 0; k < octaves[j]; ++k) {
      const double here = nodes[j][k].explained;
      if (!(here > 0)) continue;
      bool top = true;
      for (int dj = -1; dj <= 1 && top; ++dj) {
        const int jj = j + dj;
        if (jj < 0 || jj >= columns) continue;
        for (int kk = k - 1; kk <= k + 1 && top; ++kk) {
          if (kk < 0 || kk >= octaves[jj] || (jj == j && kk == k)) continue;
          const double there = nodes[jj][kk].explained;
          top = here > there || (here == there && (jj > j || (jj == j && kk > k)));
        }
      }
      if (!top) continue;
      if (count == kMostValleys && valleys[count - 1].explained >= here) continue;
      int place = count < kMostValleys ? count++ : count - 1;
      while (place > 0 && valleys[place - 1].explained < here) {
        valleys[place] = valleys[place - 1];
        --place;
      }
      valleys[place] = {k, j, here};
    }
  }

  int tried = std::min(count, thorough ? kMostValleys : 3);
  if (thorough && kPlane == Plane::weibull4) {
    for (int j = 0; j < columns; ++j) {
      for (int k = j % 2; k < octaves[j] && tried < kMostTried; k += 2) {
        if (nodes[j][k].explained > 0) valleys[tried++] = {k, j, nodes[j][k].explained};
      }
    }
  }

  static thread_local std::array<PlaneEnd, kMostTried> ends;
  int found = 0;
  const bool rough = coarse.points.n < data.points.n;
  for (int v = 0; v < tried; ++v) {
    const int j = valleys[v].j, k = valleys[v].k;
    Node start = nodes[j][k];
    std::array<double, 2> z{};
    z[outer_axis] = std::clamp(outer_at(j), outer.lower, outer.upper);
    z[1 - outer_axis] = std::clamp(inner_at(k), inner.lower, inner.upper);
    if (kPlane == Plane::mmf4) {  // its scan has φ(t_1) as it comes
      const double lift = 1.0 + std::exp(z[0] - std::exp(z[1]) * span);
      start.a /= lift;
      start.mean *= lift;
    }
    ends[found++] = descend<Unit>(run, coarse, z, start, where);
  }
  std::stable_sort(ends.begin(), ends.begin() + found,
                   [](const PlaneEnd& l, const PlaneEnd& r) { return l.rss < r.rss; });
  PlaneEnd best;
  if (!rough) {
    if (found > 0) best = ends[0];
  } else {
    for (int v = 0; v < found; ++v) {
      const PlaneEnd& end = ends[v];
      if (v > 0 && end.rss > (thorough ? 2.0 : 1.2) * ends[0].rss + 1e-12) break;
      bool seen = false;
      for (int u = 0; u < v; ++u) {
        seen = seen ||
               (std::abs(end.z[0] - ends[u].z[0]) < 0.2 && std::abs(end.z[1] - ends[u].z[1]) < 0.2);
      }
      if (seen) continue;
      const PlaneEnd fine = descend<Unit>(run, data, end.z, {0, end.a, end.mean}, where);
      if (fine.rss < best.rss) best = fine;
    }
  }

  return best;
}

/// The best rate for two shifts, and from the best of them down: enough for most curves of pow4.
PlaneEnd glance(const Kernels& run, const Data& data, const Data& coarse, const Box<Pow4>& where) {
  constexpr int kColumns = 2, kNodes = 7;
  const auto& [rate, shifted] = where.axis;
  double* link = scratch().column(kLink, static_cast<std::size_t>(coarse.points.n));
  Octaves f, fy, misfit;
  double least = kMostMisfit;
  std::array<double, 2> z{};
  Node start;
  for (int j = 0; j < kColumns; ++j) {
    const double z1 = shifted.lower + (shifted.upper - shifted.lower) * (j + 0.5) / kColumns;
    const double kappa = std::exp(-z1);
    const double first = 0.2 / std::log1p(kappa * (where.range.last - where.range.first));
    run.chain(Plane::pow4, coarse.points, kappa, first, 0.0, nullptr, link);
    run.scan_decay(coarse.points, 0.0, kNodes + 1, link, link, f.data(), fy.data());
    run.misfits(f.data(), fy.data(), kNodes, coarse.inverse, misfit.data());
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
      descend<Pow4>(run, coarse, z, start, where, merged ? kPlaneRough : kPlaneFine);
  if (!merged) return rough;
  return descend<Pow4>(run, data, rough.z, {0, rough.a, rough.mean}, where, kKnownFine);
}

/// From the best curve of a family inside this one: pow3 or exp3.
template <class Unit>
void descend_from_nested(const Kernels& run, const Data& data, std::span<const double> t,
                         const Box<Unit>& where, bool power, PlaneEnd& best) {
  constexpr Plane kPlane = plane_of<Unit>();
  const StepRange& range = where.range;
  const auto& box = where.axis;
  const double origin = std::max(t[0], power ? 1e-300 : t[0]);
  const double unit = power ? where.span : range.last - origin;
  Data inner = data;
  inner.start = nullptr;
  double* x = scratch().column(kNested, t.size());
  if (power) {
    run.logs(t.data(), data.points.n, 1.0 / range.first, 1.0 / unit, x);
  } else {
    run.rescale(t.data(), data.points.n, origin, 1.0 / unit, 0.0, x);
  }
  inner.points.x = x;
  inner.points.x2 = nullptr;
  const Axis axis = power ? Pow3::axes(range)[0] : Exp3::axes(range)[0];
  const DecayEnd end = search_decay(run, inner, {x, t.size()}, unit * std::exp(axis.lower),
                                    unit * std::exp(axis.upper));
  const double rate = end.beta / unit;
  std::array<double, 2> z{};
  switch (kPlane) {
    case Plane::pow4:
      z = {std::log(power ? rate : rate * std::exp(box[1].upper)),
           power ? box[1].lower : box[1].upper};
      break;
    case Plane::powexp:
      z = {power ? std::log(rate) : box[0].lower, power ? box[1].lower : std::log(rate)};
      break;
    default:
      z = {std::log(rate * range.last), 0.0};
      if (power) z = {box[0].upper, std::log(rate)};
  }
  for (int i = 0; i < 2; ++i) z[i] = std::clamp(z[i], box[i].lower, box[i].upper);
  if constexpr (Cornered<Unit>) z[0] = std::min(z[0], Unit::largest_z0(z[1], range));
  const auto try_from = [&](const std::array<double, 2>& from) {
    const PlaneEnd found =
        descend<Unit>(run, data, from, {0, 0, data.inverse > 0 ? 1.0 : 0.0}, where);
    if (found.rss < best.rss) best = found;
  };
  for (const double inside : {0.0, 1.0, 4.0}) {  // from the side of the box, and from inside
    std::array<double, 2> from = z;
    for (int i = 0; i < 2; ++i) {
      if (from[i] <= box[i].lower) from[i] += inside;
    }
    try_from(from);
  }
  if (kPlane == Plane::powexp && power) {
    // The power is known sharply, too sharply for a grid, and the decay may set in anywhere.
    for (double late = box[1].from; late < box[1].to; late += 1.2) try_from({z[0], late});
  }
}

template <class Unit>
Solution solve(const Kernels& run, const Data& data, std::span<const double> key,
               const StepRange& range) {
  constexpr Plane kPlane = plane_of<Unit>();
  const Box<Unit> where(range);
  const auto& box = where.axis;
  const int n = data.points.n;
  const Data coarse = n > 24 ? merge(data, key, 1.0 / 6.0) : data;
  PlaneEnd best;
  bool clear = false;
  if constexpr (kPlane == Plane::pow4) {
    best = glance(run, data, coarse, where);
    clear = n > 8 && best.converged && best.rss < kPoor * data.total &&
            best.variance(n - 4) < kKnown * kKnown;
    for (int i = 0; i < 2; ++i) {
      clear = clear && best.z[i] > box[i].lower + 0.01 && best.z[i] < box[i].upper - 0.5;
    }
  }
  if (!clear) {
    const PlaneEnd other = search<Unit>(run, data, coarse, where, false);
    if (other.rss < best.rss) best = other;
  }
  const bool nearly_straight =
      (kPlane == Plane::pow4 || kPlane == Plane::powexp) && best.z[0] < box[0].from - 0.5;
  // A weibull4 that is over by the second point may hide a slow one with a steep first step.
  const double v_last = std::exp(best.z[0]), shape = std::exp(best.z[1]);
  const bool over =
      kPlane == Plane::weibull4 && v_last * (std::pow(range.second / range.last, shape) -
                                             std::pow(range.first / range.last, shape)) >
                                       12.0;
  const bool at_side = best.z[0] <= box[0].lower || best.z[1] <= box[1].lower;
  const bool poor = !(best.rss < kPoor * data.total) || nearly_straight || over ||
                    (kPlane != Plane::pow4 && at_side);
  if (poor) {
    const PlaneEnd other =
        search<Unit>(run, data, n > 128 ? merge(data, key, 1.0 / 24.0) : data, where, true);
    if (other.rss < best.rss) best = other;
  }
  if (poor || kPlane != Plane::pow4) {  // pow4 holds pow3 at a side that its grid includes
    if (kPlane != Plane::mmf4) descend_from_nested<Unit>(run, data, key, where, false, best);
    if (kPlane != Plane::weibull4) descend_from_nested<Unit>(run, data, key, where, true, best);
    if (kPlane == Plane::pow4 && best.z[0] < box[0].from - 0.5) {
      for (const double rise : {3.0, 6.0, 9.0}) {  // along the valley of nearly straight lines
        const PlaneEnd found =
            descend<Unit>(run, data, {std::min(best.z[0] + rise, box[0].from), best.z[1]},
                          {0, best.a, best.mean}, where);
        if (found.rss < best.rss) best = found;
      }
    }
  }

  Solution solution;
  solution.floor = best.c;
  solution.amplitude = best.a;
  solution.rss = best.rss;
  solution.shapes = Unit::shapes(best.z.data(), range);
  solution.status = best.converged ? FitStatus::converged : FitStatus::iteration_limit;
  for (int i = 0; i < 2; ++i) {
    solution.shape_at_bound[i] = best.z[i] - box[i].lower < 1e-9 || box[i].upper - best.z[i] < 1e-9;
  }
  // JᵀJ of (1, φ, a φ_0, a φ_1)
  const PlaneSums& s = best.sums;
  const double t = best.centre, a = best.a, f = s.g + t * data.weight;
  const double ff = s.gg + t * (2.0 * s.g + t * data.weight);
  const double f0 = a * (s.g0 + t * s.d0), f1 = a * (s.g1 + t * s.d1);
  solution.normal = {data.weight,
                     f,
                     a * s.d0,
                     a * s.d1,  //
                     f,
                     ff,
                     f0,
                     f1,  //
                     a * s.d0,
                     f0,
                     a * a * s.d00,
                     a * a * s.d01,  //
                     a * s.d1,
                     f1,
                     a * a * s.d01,
                     a * a * s.d11};
  return solution;
}

}  // namespace

Solution solve_plane(Family family, const Kernels& run, const Data& data, std::span<const double> t,
                     const StepRange& range) {
  return with_family(family, [&]<class Unit>(Unit) -> Solution {
    if constexpr (Unit::kShapes == 2) {
      return solve<Unit>(run, data, t, range);
    } else {
      return {};
    }
  });
}

}  // namespace glidepath::detail
