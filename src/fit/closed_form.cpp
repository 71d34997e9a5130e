// SPDX-License-Identifier: Apache-2.0
// Variable projection (Golub and Pereyra 1973): for given shapes the best floor c and scale a are
// those of a straight line, so the search is over the shapes alone, and Newton's second derivative
// is a handful of sums over the points.
//
//     RSS(z) = min over c, a of Σ w (y - c - a φ(z))²
//
// A scan over the whole range of shapes (doubling a rate squares the decay, so a node costs two
// multiplications a point) finds the valleys; Newton goes to the bottom of each. The sums are taken
// of residuals against the floor and scale of the pass before, not of y: nothing cancels, however
// good the fit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "fit/kernels.hpp"
#include "fit/problem.hpp"

namespace glidepath::detail {
namespace {

/// Memory that a thread keeps from one fit to the next.
class Scratch {
 public:
  double* column(int which, std::size_t n) {
    std::vector<double>& column = columns_[which];
    if (column.size() < n + kRoom) column.resize(n + kRoom);
    return column.data();
  }

 private:
  static constexpr std::size_t kRoom = 16;  ///< the kernels load whole vectors
  std::array<std::vector<double>, 11> columns_;
};
enum Column : int { kX, kX2, kY, kBinX, kBinX2, kBinY, kBinW, kBase, kLink, kNested };

Scratch& scratch() {
  static thread_local Scratch memory;
  return memory;
}

/// The points, and whether c is free: then y is centred on its mean and sums are, too.
struct Data {
  Columns points;
  double weight = 0;   ///< Σ w
  double inverse = 0;  ///< 1 / Σ w; 0 when the floor is held, which turns all centring off
};

double sum_of(const double* values, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];
  return sum;
}

/// y - held, or y - mean where the floor is free. Returns what was subtracted.
double fill_losses(const Kernels& run, const Problem& problem, bool free_floor, double held,
                   Data& data) {
  const int n = static_cast<int>(problem.step.size());
  double* y = scratch().column(kY, problem.step.size());
  data.points.n = n;
  data.points.y = y;
  data.points.w = problem.weight.empty() ? nullptr : problem.weight.data();
  data.weight = data.points.w != nullptr ? sum_of(data.points.w, n) : n;
  const double sum = run.rescale(problem.loss.data(), n, problem.centre, 1.0 / problem.spread, y);
  double subtract = held;
  if (free_floor) {
    double total = sum;
    if (data.points.w != nullptr) {
      total = 0;
      for (int i = 0; i < n; ++i) total += data.points.w[i] * y[i];
    }
    subtract = total / data.weight;
    data.inverse = 1.0 / data.weight;
  }
  if (subtract != 0.0) run.rescale(y, n, subtract, 1.0, y);
  return subtract;
}

/// Neighbouring points merged while their steps are within a fraction of each other: what a scan
/// needs to see of a long trace.
Data merge(const Data& all, std::span<const double> key, double fraction) {
  const Columns& from = all.points;
  const auto n = static_cast<std::size_t>(from.n);
  double *x = scratch().column(kBinX, n), *x2 = scratch().column(kBinX2, n),
         *y = scratch().column(kBinY, n), *w = scratch().column(kBinW, n);
  Data merged = all;
  merged.points = {x, from.x2 != nullptr ? x2 : nullptr, y, w, 0};
  for (std::size_t i = 0; i < n;) {
    const double end = key[i] + fraction * (key[i] - key[0]);
    double sum_w = 0, sum_x = 0, sum_x2 = 0, sum_y = 0;
    const std::size_t first = i;
    do {
      const double wi = from.w != nullptr ? from.w[i] : 1.0;
      sum_w += wi;
      sum_x += wi * from.x[i];
      sum_y += wi * from.y[i];
      if (from.x2 != nullptr) sum_x2 += wi * from.x2[i];
      ++i;
    } while (i < n && key[i] <= end);
    if (!(sum_w > 0)) continue;
    const int bin = merged.points.n++;
    const double each = 1.0 / sum_w;
    x[bin] = i - first == 1 ? from.x[first] : sum_x * each;
    x2[bin] = sum_x2 * each;
    y[bin] = sum_y * each;
    w[bin] = sum_w;
  }
  return merged;
}

/// Best scale for a node of the scan, and Σ (y explained)².
struct Node {
  double explained = 0, a = 0, mean = 0;
};
Node node_of(const ScanSums& s, double inverse) {
  const double ff = s.ff - s.f * s.f * inverse;
  if (!(ff > 1e-14 * s.ff) || !std::isfinite(s.fy)) return {};
  return {s.fy * s.fy / ff, s.fy / ff, s.f * inverse};
}

constexpr int kMostPasses = 200;
/// A pass whose floor and scale, or mean of φ, were so far off that what counts is a small
/// difference is taken again with better ones.
constexpr double kLostDigits = 1e6;

// ---------------------------------------------------------------- one shape: φ = exp(-β x)

struct DecayEnd {
  double beta = 0, a = 0, c = 0, rss = std::numeric_limits<double>::infinity();
  double mean = 0;  ///< of φ
  DecaySums sums{};
  double centre = 0;  ///< that the sums refer to
  bool converged = false;
  int valleys = 0;  ///< that the scan saw
};

/// Newton in log β inside [low, high], ends of the box or slopes that point inwards.
DecayEnd descend(const Kernels& run, const Data& data, double beta, const Node& start, double low,
                 double high, double box_low, double box_high) {
  DecayEnd end;
  double a = start.a, c = -start.a * start.mean, centre = start.mean;
  const double inverse = data.inverse;
  int falls = 0, repeats = 0;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const DecaySums s = run.decay(data.points, beta, centre, c, a);
    const double ff = s.gg - s.g * s.g * inverse;
    if (!(ff > 0)) return end;
    const double gr = s.gr - s.g * s.r * inverse, da = gr / ff;
    const double correction = s.r * s.r * inverse + da * gr, rss = s.rr - correction;
    if ((correction > kLostDigits * rss || s.gg > kLostDigits * ff) && repeats < 3) {
      ++repeats;
      a += da;
      if (inverse > 0) {
        centre += s.g * inverse;
        c += s.r * inverse - da * centre;
      }
      continue;
    }
    repeats = 0;
    const double q = s.gh - s.g * s.h * inverse;
    const double hr = s.hr - s.h * s.r * inverse - da * q;        // Σ x φ r
    const double kg = s.hh - centre * s.k - s.k * s.g * inverse;  // Σ x² φ (φ - mean)
    const double kr = s.kr - s.k * s.r * inverse - da * kg;       // Σ x² φ r
    const double hh = s.hh - s.h * s.h * inverse;
    const double mean = centre + s.g * inverse;
    a += da;
    if (inverse > 0) c += s.r * inverse - da * mean;
    const double slope_a = (a * q - hr) / ff;  // da/dβ
    const double gradient = a * hr;            // of RSS / 2
    const double newton = a * a * hh - a * kr - ff * slope_a * slope_a;
    const double gauss = a * a * (hh - q * q / ff);

    end = {beta, a, c, std::max(rss, 0.0), mean, s, centre, false, 0};
    centre = inverse > 0 ? mean : 0.0;
    if ((beta <= box_low && gradient >= 0) || (beta >= box_high && gradient <= 0)) {
      end.converged = true;
      return end;
    }
    (gradient > 0 ? high : low) = beta;

    // d/d(log β) = β d/dβ
    const double curvature = beta * newton + gradient;
    const bool newtonian = curvature > 0.01 * beta * gauss && curvature > 0;
    double step = newtonian ? -gradient / curvature : -4.0 * gradient / (beta * gauss);
    if (!std::isfinite(step)) step = gradient > 0 ? -1.0 : 1.0;
    step = std::clamp(step, -2.0, 2.0);
    double next = beta * std::exp(step);
    falls = step < -0.5 ? falls + 1 : 0;
    if (falls >= 3 && low <= box_low) next = box_low;  // towards a straight line: try the end
    if (next <= low) next = low <= box_low && beta > box_low ? box_low : std::sqrt(low * beta);
    if (next >= high) {
      next = high >= box_high && beta < box_high ? box_high : std::sqrt(high * beta);
    }
    const double moved = next - beta;
    const bool small = std::abs(moved) < (newtonian ? 3e-6 : 1e-9) * beta;
    if (small || high - low < 1e-12 * beta) {
      // the last step to first order in a, c and second in RSS
      end.beta = next;
      end.a = a + slope_a * moved;
      if (inverse > 0) end.c = c - moved * (slope_a * mean - a * s.h * inverse);
      end.rss = std::max(0.0, rss + moved * (2.0 * gradient + moved * newton));
      end.converged = true;
      return end;
    }
    if (inverse > 0) {
      centre = mean - s.h * inverse * moved;
      if (std::abs(step) < 0.1) {
        c -= moved * (slope_a * mean - a * s.h * inverse);
        a += slope_a * moved;
      }
    }
    beta = next;
  }
  return end;
}

/// Valleys of the scan, best first.
struct Valley {
  int k = 0, j = 0;
  double explained = 0;
};

/// Every valley of a scan from `first` up, to its bottom.
DecayEnd search(const Kernels& run, const Data& data, std::span<const double> key, double first,
                double box_low, double box_high, int most_points) {
  Data coarse = data;
  const bool merged = data.points.n > most_points;
  if (merged) coarse = merge(data, key, 1.0 / 12.0);
  const auto m = static_cast<std::size_t>(coarse.points.n);
  double *base = scratch().column(kBase, m), *link = scratch().column(kLink, m);
  first = std::clamp(first, box_low, box_high);
  const int octaves = std::min(kMostOctaves, 1 + static_cast<int>(std::log2(box_high / first)));
  std::array<ScanSums, kMostOctaves> sums;
  run.decay_chain(coarse.points, first, base, link);
  run.scan(coarse.points, base, link, octaves, sums.data());
  std::array<Node, kMostOctaves> node;
  for (int k = 0; k < octaves; ++k) node[k] = node_of(sums[k], coarse.inverse);

  // Nodes that explain the same to all digits, as all do that leave nothing past the first point of
  // a spike, are one valley from k to j.
  std::array<Valley, kMostOctaves> valleys;
  int count = 0;
  for (int k = 0; k < octaves;) {
    const double here = node[k].explained, tie = 1e-11 * here;
    int j = k;
    while (j + 1 < octaves && std::abs(node[j + 1].explained - here) <= tie) ++j;
    const bool above_left = k == 0 || here > node[k - 1].explained;
    const bool above_right = j + 1 == octaves || here > node[j + 1].explained;
    if (above_left && above_right) valleys[count++] = {k, j, here};
    k = j + 1;
  }
  std::stable_sort(valleys.begin(), valleys.begin() + count,
                   [](const Valley& l, const Valley& r) { return l.explained > r.explained; });

  DecayEnd best;
  for (int v = 0; v < std::min(count, 8); ++v) {
    const auto [k, j, explained] = valleys[v];
    const double at = std::ldexp(first, k);
    double beta = at;
    if (k > 0 && j == k && k + 1 < octaves) {  // the top of a parabola through three nodes
      const double left = node[k - 1].explained, right = node[k + 1].explained;
      const double bend = left - 2.0 * node[k].explained + right;
      if (bend < 0) beta *= std::exp2(std::clamp(0.5 * (left - right) / bend, -0.5, 0.5));
    }
    const double low = k > 0 ? 0.5 * at : box_low;
    const double high = j + 1 < octaves ? std::ldexp(first, j + 1) : box_high;
    Node start = node[k];
    if (merged && data.points.n > 384) {
      const DecayEnd rough = descend(run, coarse, beta, start, low, high, box_low, box_high);
      if (rough.converged) {
        beta = rough.beta;
        start.a = rough.a;
        start.mean = rough.mean;
      }
    }
    const DecayEnd end = descend(run, data, beta, start, low, high, box_low, box_high);
    if (end.rss < best.rss) best = end;
  }
  best.valleys = count;
  return best;
}

/// Σ w y²: what there is to explain.
double total_of(const Data& data) {
  double total = 0;
  for (int i = 0; i < data.points.n; ++i) {
    const double w = data.points.w != nullptr ? data.points.w[i] : 1.0;
    total += w * data.points.y[i] * data.points.y[i];
  }
  return total;
}

/// A fit that leaves more than this of the total has many valleys of nearly one depth, and is
/// searched again, finely.
constexpr double kPoor = 0.02;

DecayEnd search_decay(const Kernels& run, const Data& data, std::span<const double> key,
                      double box_low, double box_high) {
  DecayEnd best = search(run, data, key, 0.125, box_low, box_high, 64);
  // One valley well inside the range is the only one, however noisy the points.
  const bool plain = best.valleys == 1 && best.beta > 0.5 && best.converged;
  if (!plain && !(best.rss < kPoor * total_of(data))) {
    const DecayEnd fine = search(run, data, key, 0x1p-16, box_low, box_high, 512);
    if (fine.rss < best.rss) best = fine;
    const DecayEnd end = descend(run, data, box_low, {0, 0, data.inverse > 0 ? 1.0 : 0.0}, box_low,
                                 std::max(box_low, 0.125), box_low, box_high);
    if (end.rss < best.rss) best = end;
  }
  return best;
}

Solution solve_decay(const Kernels& run, const Data& data, std::span<const double> key,
                     double box_low, double box_high) {
  const DecayEnd best = search_decay(run, data, key, box_low, box_high);
  Solution solution;
  solution.floor = best.c;
  solution.amplitude = best.a;
  solution.rss = best.rss;
  solution.z[0] = best.beta;
  solution.status = best.converged ? FitStatus::converged : FitStatus::iteration_limit;
  solution.shape_at_bound[0] =
      best.beta <= box_low * (1 + 1e-6) || best.beta >= box_high * (1 - 1e-6);
  // JᵀJ of (1, φ, -a β x φ)
  const DecaySums& s = best.sums;
  const double t = best.centre, f = s.g + t * data.weight, slope = -best.a * best.beta;
  const double ff = s.gg + t * (2.0 * s.g + t * data.weight), fh = s.gh + t * s.h;
  solution.normal = {data.weight, f,          slope * s.h,  //
                     f,           ff,         slope * fh,   //
                     slope * s.h, slope * fh, slope * slope * s.hh};
  return solution;
}

// ---------------------------------------------------------------- two shapes

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

/// Newton with Levenberg's damping, inside the box.
template <class Unit>
PlaneEnd descend(const Kernels& run, const Data& data, std::array<double, 2> z, const Node& start,
                 const StepRange& range) {
  constexpr Plane family = plane_of<Unit>();
  const auto box = Unit::axes(range);
  PlaneEnd best;
  double a = start.a, c = -start.a * start.mean, centre = start.mean;
  const double inverse = data.inverse;
  double lambda = 0, lean = 2.0;
  bool leapt = false;
  int falls = 0, repeats = 0;
  // of the best point so far
  std::array<double, 2> gradient{}, slope_a{}, slope_mean{};
  double h00 = 0, h01 = 0, h11 = 0, b00 = 0, b01 = 0, b11 = 0;
  bool trusted = false;  // h: its residuals are those of the best a and c, or nearly
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const auto q = shapes_of(family, z, range.log_span());
    const PlaneSums s = run.plane(family, data.points, q.data(), centre, c, a);
    const double ff = s.gg - s.g * s.g * inverse, gr = s.gr - s.g * s.r * inverse, da = gr / ff;
    const double correction = s.r * s.r * inverse + da * gr, rss = s.rr - correction;
    if ((correction > kLostDigits * rss || s.gg > kLostDigits * ff) && ff > 0 && repeats < 3) {
      ++repeats;
      a += da;
      if (inverse > 0) {
        centre += s.g * inverse;
        c += s.r * inverse - da * centre;
      }
      continue;
    }
    repeats = 0;
    const bool better = ff > 0 && std::isfinite(rss) && !(rss > best.rss * (1 + 1e-13));
    if (better) {
      const double mean = centre + s.g * inverse;
      const double a_here = a + da;
      const double c_here = inverse > 0 ? c + s.r * inverse - da * mean : c;
      best = {z, a_here, c_here, std::max(rss, 0.0), mean, centre, s, false};
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
      h00 = a2 * d00 - a_here * s.r00 - ff * slope_a[0] * slope_a[0];
      h01 = a2 * d01 - a_here * s.r01 - ff * slope_a[0] * slope_a[1];
      h11 = a2 * d11 - a_here * s.r11 - ff * slope_a[1] * slope_a[1];
      b00 = a2 * (d00 - cross[0] * cross[0] / ff);
      b01 = a2 * (d01 - cross[0] * cross[1] / ff);
      b11 = a2 * (d11 - cross[1] * cross[1] / ff);
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
      edge_slope = std::exp(best.z[1]) * range.log_span();
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
    const auto solve = [&](double m00, double m01, double m11, double more,
                           std::array<double, 2>& step) {
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
      const auto curve = [&](double m00, double m01, double m11) {
        return edge_slope * (edge_slope * m00 + 2.0 * m01) + m11;
      };
      const double gauss = curve(b00, b01, b11) * (1.0 + lambda);
      const double newton = curve(h00, h01, h11) + edge_slope * gradient[0] + lambda * gauss;
      newtonian = trusted && newton > 0;
      step[1] = -along / (newtonian ? newton : gauss);
      step[0] = edge_slope * step[1];
    }
    for (int tries = 0; tries < 2 && !on_edge; ++tries) {
      newtonian = trusted && solve(h00, h01, h11, lambda, step);
      if (!newtonian) solve(b00, b01, b11, std::max(lambda, 1e-4), step);
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
    if (longest > 2.0) {
      for (double& each : step) each *= 2.0 / longest;
    }
    const double promised = -(gradient[0] * step[0] + gradient[1] * step[1]);
    falls = better && step[1] < -0.7 ? falls + 1 : (better ? 0 : falls);
    for (int i = 0; i < 2; ++i) z[i] = std::clamp(best.z[i] + step[i], box[i].lower, box[i].upper);
    if constexpr (Cornered<Unit>) {
      const double edge = Unit::largest_z0(z[1], range);
      if (on_edge || z[0] > edge) z[0] = std::clamp(edge, box[0].lower, box[0].upper);
    }
    for (int i = 0; i < 2; ++i) step[i] = z[i] - best.z[i];
    const double moved = std::max(std::abs(step[0]), std::abs(step[1]));
    if (moved < (newtonian && lambda == 0 ? 1e-5 : 1e-10) || promised < 1e-14 * best.rss) {
      // the last step to first order in a, c and second in RSS
      const double y_mean = best.c + best.a * best.mean;
      const double change = step[0] * (2 * gradient[0] + h00 * step[0] + 2 * h01 * step[1]) +
                            step[1] * (2 * gradient[1] + h11 * step[1]);
      if (moved < 1e-4 && change <= 0) {
        best.z = z;
        best.a += slope_a[0] * step[0] + slope_a[1] * step[1];
        best.mean += slope_mean[0] * step[0] + slope_mean[1] * step[1];
        if (inverse > 0) best.c = y_mean - best.a * best.mean;
        best.rss = std::max(0.0, best.rss + change);
      }
      best.converged = true;
      return best;
    }
    if (falls >= 3 && !leapt && family == Plane::powexp) {  // the second decay wants to vanish
      z[1] = box[1].lower;
      leapt = true;
    }
    a = best.a;
    c = best.c;
    centre = inverse > 0 ? best.mean : 0.0;
    if (moved < 0.1) {
      const double y_mean = best.c + best.a * best.mean;
      a += slope_a[0] * step[0] + slope_a[1] * step[1];
      centre += slope_mean[0] * step[0] + slope_mean[1] * step[1];
      if (inverse > 0) c = y_mean - a * centre;
    }
  }
  return best;
}

constexpr int kMostOuter = 16;

/// Every valley of a grid over the box, to its bottom: the grid on merged points, the bottoms on
/// all of them.
template <class Unit>
PlaneEnd search(const Kernels& run, const Data& data, const Data& coarse, const StepRange& range,
                int most_valleys, double worth) {
  constexpr Plane kPlane = plane_of<Unit>();
  const auto box = Unit::axes(range);
  const auto m = static_cast<std::size_t>(coarse.points.n);
  double *base = scratch().column(kBase, m), *link = scratch().column(kLink, m);

  // Outer axis: the shape that costs an exponential a node; inner: the one that doubles.
  constexpr bool kOuterFirst = kPlane == Plane::powexp;
  const int outer_axis = kOuterFirst ? 0 : 1;
  const Axis& outer = box[outer_axis];
  const Axis& inner = box[1 - outer_axis];
  const int columns = std::min(outer.nodes, kMostOuter);
  static thread_local std::array<std::array<Node, kMostOctaves>, kMostOuter> nodes;
  std::array<double, kMostOuter> from{};
  std::array<int, kMostOuter> octaves{};
  std::array<ScanSums, kMostOctaves> sums;
  const auto outer_at = [&](int j) {
    return outer.from + (outer.to - outer.from) * j / std::max(1, columns - 1);
  };
  for (int j = 0; j < columns; ++j) {
    const double z = outer_at(j), other = std::exp(kPlane == Plane::pow4 ? -z : z);
    double low = inner.from, high = inner.to;
    if (kPlane == Plane::weibull4 || kPlane == Plane::mmf4) {  // φ changes inside the trace
      low = -3.0;
      high = 3.0 + other * range.log_span();
    }
    from[j] = low;
    octaves[j] =
        std::clamp(1 + static_cast<int>((high - low) * 1.4426950408889634), 1, kMostOctaves);
    run.chain(kPlane, coarse.points, other, std::exp(low), std::exp(-other * range.log_span()),
              base, link);
    if (kPlane == Plane::mmf4) {
      run.scan_mmf(coarse.points, link, octaves[j], sums.data());
    } else {
      run.scan(coarse.points, base, link, octaves[j], sums.data());
    }
    for (int k = 0; k < octaves[j]; ++k) nodes[j][k] = node_of(sums[k], coarse.inverse);
  }
  const auto inner_at = [&](int j, int k) {
    return std::min(from[j] + k * 0.69314718055994531, inner.upper);
  };

  std::array<Valley, 16> valleys;
  int count = 0;
  for (int j = 0; j < columns; ++j) {
    for (int k = 0; k < octaves[j]; ++k) {
      const double here = nodes[j][k].explained;
      if (!(here > 0)) continue;
      bool top = true;
      for (int dj = -1; dj <= 1 && top; ++dj) {
        const int jj = j + dj;
        if (jj < 0 || jj >= columns) continue;
        // columns may begin at different places: the nearest node of the other
        const int nearest =
            static_cast<int>(std::lround((inner_at(j, k) - from[jj]) * 1.4426950408889634));
        for (int kk = nearest - 1; kk <= nearest + 1 && top; ++kk) {
          if (kk < 0 || kk >= octaves[jj] || (jj == j && kk == k)) continue;
          const double there = nodes[jj][kk].explained;
          top = here > there || (here == there && (jj > j || (jj == j && kk > k)));
        }
      }
      if (!top) continue;
      int place = count < static_cast<int>(valleys.size()) ? count++ : count - 1;
      if (place == count - 1 && count == static_cast<int>(valleys.size()) &&
          valleys[place].explained >= here) {
        continue;
      }
      while (place > 0 && valleys[place - 1].explained < here) {
        valleys[place] = valleys[place - 1];
        --place;
      }
      valleys[place] = {k, j, here};
    }
  }

  std::array<PlaneEnd, 16> ends;
  int found = 0;
  const bool rough = coarse.points.n < data.points.n;
  for (int v = 0; v < std::min(count, most_valleys); ++v) {
    const auto [k, j, explained] = valleys[v];
    std::array<double, 2> z{};
    z[outer_axis] = std::clamp(outer_at(j), outer.lower, outer.upper);
    z[1 - outer_axis] = std::clamp(inner_at(j, k), inner.lower, inner.upper);
    Node start = nodes[j][k];
    if (kPlane == Plane::mmf4) {  // its scan has φ(t_1) as it comes
      const double lift = 1.0 + std::exp(z[0] - std::exp(z[1]) * range.log_span());
      start.a /= lift;
      start.mean *= lift;
    }
    ends[found++] = descend<Unit>(run, coarse, z, start, range);
  }
  std::stable_sort(ends.begin(), ends.begin() + found,
                   [](const PlaneEnd& l, const PlaneEnd& r) { return l.rss < r.rss; });
  PlaneEnd best;
  if (!rough) {
    if (found > 0) best = ends[0];
  } else {
    for (int v = 0; v < found; ++v) {
      const PlaneEnd& end = ends[v];
      if (v > 0 && end.rss > worth * ends[0].rss + 1e-12) break;
      bool seen = false;
      for (int u = 0; u < v; ++u) {
        seen = seen ||
               (std::abs(end.z[0] - ends[u].z[0]) < 0.2 && std::abs(end.z[1] - ends[u].z[1]) < 0.2);
      }
      if (seen) continue;
      const PlaneEnd fine = descend<Unit>(run, data, end.z, {0, end.a, end.mean}, range);
      if (fine.rss < best.rss) best = fine;
    }
  }

  return best;
}

/// From the best curve of a family inside this one: pow3 or exp3.
template <class Unit>
void descend_from_nested(const Kernels& run, const Data& data, std::span<const double> t,
                         const StepRange& range, bool power, PlaneEnd& best) {
  constexpr Plane kPlane = plane_of<Unit>();
  const auto box = Unit::axes(range);
  const double origin = std::max(t[0], power ? 1e-300 : t[0]);
  const double unit = power ? range.log_span() : range.last - origin;
  Data inner = data;
  double* x = scratch().column(kNested, t.size());
  if (power) {
    run.logs(t.data(), data.points.n, 1.0 / range.first, 1.0 / unit, x);
  } else {
    run.rescale(t.data(), data.points.n, origin, 1.0 / unit, x);
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
  for (const double inside : {0.0, 1.0, 4.0}) {  // from the side of the box, and from inside
    std::array<double, 2> from = z;
    for (int i = 0; i < 2; ++i) {
      if (from[i] <= box[i].lower) from[i] += inside;
    }
    const PlaneEnd found =
        descend<Unit>(run, data, from, {0, 0, data.inverse > 0 ? 1.0 : 0.0}, range);
    if (found.rss < best.rss) best = found;
  }
}

template <class Unit>
Solution solve_plane(const Kernels& run, const Data& data, std::span<const double> key,
                     const StepRange& range) {
  constexpr Plane kPlane = plane_of<Unit>();
  const auto box = Unit::axes(range);
  const int n = data.points.n;
  PlaneEnd best =
      search<Unit>(run, data, n > 24 ? merge(data, key, 1.0 / 6.0) : data, range, 3, 1.2);
  const bool nearly_straight =
      (kPlane == Plane::pow4 || kPlane == Plane::powexp) && best.z[0] < box[0].from - 0.5;
  const bool at_side = best.z[0] <= box[0].lower || best.z[1] <= box[1].lower;
  const bool poor =
      !(best.rss < kPoor * total_of(data)) || nearly_straight || (kPlane != Plane::pow4 && at_side);
  if (poor) {
    const PlaneEnd other =
        search<Unit>(run, data, n > 128 ? merge(data, key, 1.0 / 24.0) : data, range, 16, 2.0);
    if (other.rss < best.rss) best = other;
  }
  if (poor || kPlane != Plane::pow4) {  // pow4 holds pow3 at a side that its grid includes
    if (kPlane != Plane::mmf4) descend_from_nested<Unit>(run, data, key, range, false, best);
    if (kPlane != Plane::weibull4) descend_from_nested<Unit>(run, data, key, range, true, best);
    if (kPlane == Plane::pow4 && best.z[0] < box[0].from - 0.5) {
      for (const double rise : {3.0, 6.0, 9.0}) {  // along the valley of nearly straight lines
        const PlaneEnd found =
            descend<Unit>(run, data, {std::min(best.z[0] + rise, box[0].from), best.z[1]},
                          {0, best.a, best.mean}, range);
        if (found.rss < best.rss) best = found;
      }
    }
  }

  Solution solution;
  solution.floor = best.c;
  solution.amplitude = best.a;
  solution.rss = best.rss;
  solution.z = best.z;
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

// ---------------------------------------------------------------- no shape: floor - scale log t

Solution solve_line(const Problem& problem) {
  double w = 0, y1 = 0, f1 = 0;
  const std::size_t n = problem.step.size();
  const auto weight = [&](std::size_t i) {
    return problem.weight.empty() ? 1.0 : problem.weight[i];
  };
  const auto loss = [&](std::size_t i) {
    return (problem.loss[i] - problem.centre) / problem.spread;
  };
  const auto basis = [&](std::size_t i) {
    return -std::log(problem.step[i] / problem.range.first);
  };
  for (std::size_t i = 0; i < n; ++i) {
    w += weight(i);
    y1 += weight(i) * loss(i);
    f1 += weight(i) * basis(i);
  }
  const double y_mean = y1 / w, f_mean = f1 / w;
  double ff = 0, fy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double f = basis(i) - f_mean;
    ff += weight(i) * f * f;
    fy += weight(i) * f * (loss(i) - y_mean);
  }
  Solution solution;
  solution.amplitude = fy / ff;
  solution.floor = y_mean - solution.amplitude * f_mean;
  solution.status = FitStatus::converged;
  for (std::size_t i = 0; i < n; ++i) {
    const double r = loss(i) - y_mean - solution.amplitude * (basis(i) - f_mean);
    solution.rss += weight(i) * r * r;
  }
  solution.normal = {w, f1, f1, ff + f1 * f_mean};
  return solution;
}

/// The columns of a family in units that its kernel wants, and the key that merging goes by.
template <class Unit>
std::span<const double> fill_steps(const Kernels& run, const Problem& problem, Data& data) {
  const std::span<const double> t = problem.step;
  const int n = static_cast<int>(t.size());
  double* x = scratch().column(kX, t.size());
  data.points.x = x;
  const double first = problem.range.first;
  switch (Unit::kFamily) {
    case Family::pow2:
    case Family::pow3:
      run.logs(t.data(), n, 1.0 / first, 1.0 / problem.range.log_span(), x);
      return {x, t.size()};
    case Family::exp3:
      run.rescale(t.data(), n, first, 1.0 / (problem.range.last - first), x);
      return {x, t.size()};
    case Family::pow4:
      run.rescale(t.data(), n, first, 1.0, x);
      return t;
    case Family::powexp: {
      double* x2 = scratch().column(kX2, t.size());
      run.rescale(t.data(), n, first, 1.0, x2);
      data.points.x2 = x2;
      [[fallthrough]];
    }
    default: {
      const bool sigmoid = Unit::kFamily == Family::weibull4 || Unit::kFamily == Family::mmf4;
      run.logs(t.data(), n, 1.0 / (sigmoid ? problem.range.last : first), 1.0, x);
      return t;
    }
  }
}

template <class Unit>
Solution solve_with(const Kernels& run, const Problem& problem, bool free_floor) {
  Data data;
  const std::span<const double> key = fill_steps<Unit>(run, problem, data);
  const double subtracted = fill_losses(
      run, problem, free_floor, free_floor || !Unit::kHasFloor ? 0.0 : problem.lowest_floor, data);
  Solution solution;
  if constexpr (Unit::kShapes == 1) {
    const double unit = Unit::kFamily == Family::exp3 ? problem.range.last - problem.range.first
                                                      : problem.range.log_span();
    const Axis axis = Unit::axes(problem.range)[0];
    solution =
        solve_decay(run, data, key, unit * std::exp(axis.lower), unit * std::exp(axis.upper));
    solution.z[0] = std::clamp(std::log(solution.z[0] / unit), axis.lower, axis.upper);
  } else {
    solution = solve_plane<Unit>(run, data, key, problem.range);
  }
  solution.floor += subtracted;
  if (!Unit::kHasFloor) {  // no floor: its row and column go
    const auto full = solution.normal;
    solution.normal = {full[4], full[5], full[7], full[8]};
  }
  return solution;
}

}  // namespace

Solution solve_in_closed_form(const Problem& problem, Isa isa) {
  const Kernels& run = kernels(isa);
  return with_family(problem.family, [&]<class Unit>(Unit) {
    if constexpr (Unit::kShapes == 0) {
      return solve_line(problem);
    } else {
      Solution solution = solve_with<Unit>(run, problem, Unit::kHasFloor);
      if (Unit::kHasFloor && solution.floor < problem.lowest_floor) {
        // below what the metric can be: the best curve of that floor
        solution = solve_with<Unit>(run, problem, false);
        solution.floor_at_bound = true;
      }
      return solution;
    }
  });
}

}  // namespace glidepath::detail
