// SPDX-License-Identifier: Apache-2.0
// φ = exp(-β x), one shape: a scan over doublings of β, then Newton from each of its valleys.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "fit/closed_form.hpp"

namespace glidepath::detail {
namespace {

/// Relative steps in β that end a descent, on all points and on merged ones.
constexpr double kFine = 3e-6, kRough = 0.02;

/// Newton in u = log β inside [low, high], ends of the box or slopes that point inwards. `third` is
/// a guess at the third derivative of RSS / 2 in u, which two passes tell.
DecayEnd descend(const Kernels& run, const Data& data, double beta, const Node& start, double third,
                 double low, double high, double box_low, double box_high, double enough = kFine) {
  DecayEnd end;
  Line line(start);
  const double inverse = data.inverse;
  double* memory = scratch().column(kLink, static_cast<std::size_t>(data.points.n));
  double held = 0;
  int falls = 0, repeats = 0;
  struct {
    double step = 0, over_square = 0, slope = 0, curve = 0, hh = 0;
  } before;  // of the pass before; no step: nothing
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const double centre = line.centre;
    // the second pass is near the first; later ones would heap up rounding
    const DecaySums s =
        run.decay(data.points, pass == 1 ? held : 0.0, beta, centre, line.c, line.a, memory);
    held = beta;
    const Refined best = refine(s, line, inverse);
    const double ff = best.ff, da = best.da, rss = best.rss;
    if (!(ff > 0)) return end;
    line = best.line;
    if (best.lost && repeats < kMostRepeats) {
      ++repeats;
      continue;
    }
    repeats = 0;
    const double a = line.a, mean = line.centre;
    const double q = s.gh - s.g * s.h * inverse;
    const double hr = s.hr - s.h * s.r * inverse - da * q;        // Σ x φ r
    const double kg = s.hh - centre * s.k - s.k * s.g * inverse;  // Σ x² φ (φ - mean)
    const double kr = s.kr - s.k * s.r * inverse - da * kg;       // Σ x² φ r
    const double hh = s.hh - s.h * s.h * inverse;
    const double over_ff = 1.0 / ff, slope_a = (a * q - hr) * over_ff;  // da/dβ
    const double gradient = a * hr;                                     // of RSS / 2
    const double newton = a * a * hh - a * kr - ff * slope_a * slope_a;
    const double gauss = a * a * (hh - q * q * over_ff);

    const double f = s.g + centre * data.weight;
    end = {beta,
           a,
           line.c,
           std::max(rss, 0.0),
           mean,
           f,
           s.h,
           s.gg + centre * (s.g + f),
           s.gh + centre * s.h,
           s.hh};
    if ((beta <= box_low && gradient >= 0) || (beta >= box_high && gradient <= 0)) {
      end.converged = true;
      return end;
    }
    (gradient > 0 ? high : low) = beta;

    // d/du = β d/dβ
    const double slope = beta * gradient, curve = beta * (beta * newton + gradient);
    const bool newtonian = curve > 0.01 * beta * beta * gauss && curve > 0;
    double step = -4.0 * gradient / (beta * gauss), change = 0;
    bool sharp = false;
    if (newtonian) {
      const double h = before.step;
      if (h != 0) {
        third = ((2.0 * before.curve + 4.0 * curve) * h - 6.0 * (slope - before.slope)) *
                before.over_square;
      }
      const double square = curve * curve, bent = square - 0.5 * third * slope;
      const bool known = (pass == 0 || h != 0) && bent > 0.5 * square && bent < 2.0 * square;
      step = -slope * curve / (known ? bent : square);
      if (known) {
        // what two passes do not tell is of the order of (step h)², and must not show in RSS
        const double rest = step * h * step * h;
        change = step * (2.0 * slope + step * (curve + step * third * (1.0 / 3.0)));
        sharp = h != 0 && rest < 1e-10 && std::abs(step) < 1e-3 &&
                curve * rest * rest < 1e-13 * (rss + change);
      }
    }
    if (!std::isfinite(step)) step = gradient > 0 ? -1.0 : 1.0;
    step = std::clamp(step, -2.0, 2.0);
    // beta e^step, to 1e-8 for steps below 0.1; of longer ones the direction is enough
    const double wanted = beta * (12.0 + step * (6.0 + step)) / (12.0 - step * (6.0 - step));
    double next = wanted;
    falls = step < -0.5 ? falls + 1 : 0;
    if (falls >= 3 && low <= box_low) next = box_low;  // towards a straight line: try the end
    if (next <= low) next = low <= box_low && beta > box_low ? box_low : std::sqrt(low * beta);
    if (next >= high) {
      next = high >= box_high && beta < box_high ? box_high : std::sqrt(high * beta);
    }
    const double moved = next - beta;
    const bool small = std::abs(moved) < (newtonian ? enough : 1e-9) * beta;
    if (small || (sharp && next == wanted) || high - low < 1e-12 * beta) {
      // the last step: to second order in a and c, third in RSS, first in the sums
      const double y_mean = line.c + a * mean;
      const double bend_a = (kr - a * kg - 2.0 * a * hh + 4.0 * slope_a * q) * over_ff;
      end.beta = next;
      end.a = a + moved * (slope_a + 0.5 * moved * bend_a);
      end.mean = mean - moved * inverse * (s.h - 0.5 * moved * s.k);
      if (inverse > 0) end.c = y_mean - end.a * end.mean;
      if (!sharp) change = moved * (2.0 * gradient + moved * newton);
      end.rss = std::max(0.0, rss + change);
      end.f -= moved * s.h;
      end.h -= moved * s.k;
      end.ff -= 2.0 * moved * end.fh;
      end.fh -= 2.0 * moved * end.hh;
      if (sharp) end.hh += (end.hh - before.hh) * step / before.step;
      end.converged = true;
      return end;
    }
    if (inverse > 0) {
      line.centre -= s.h * inverse * moved;
      if (std::abs(step) < 0.1) {
        line.c -= moved * (slope_a * mean - a * s.h * inverse);
        line.a += slope_a * moved;
      }
    }
    const bool tells = newtonian && next == wanted && std::abs(step) < 0.1;
    before = {tells ? step : 0.0, 1.0 / (step * step), slope, curve, s.hh};
    beta = next;
  }
  return end;
}

double octave(int k) { return static_cast<double>(std::int64_t{1} << k); }

/// Every valley of a scan from `first` up, to its bottom.
DecayEnd search(const Kernels& run, const Data& data, std::span<const double> key, double first,
                double box_low, double box_high, int most_points) {
  Data coarse = data;
  const bool merged = data.points.n > most_points;
  if (merged) coarse = merge(data, key, 1.0 / 12.0);
  first = std::clamp(first, box_low, box_high);
  const int octaves = std::min(kMostOctaves - 4, 1 + std::ilogb(box_high / first));
  Octaves f, fy, misfit;
  double* link = scratch().column(kLink, static_cast<std::size_t>(coarse.points.n));
  const double* start = first == kFirstRate ? coarse.start : nullptr;
  if (start == nullptr) {
    run.exponentials(coarse.points.x, coarse.points.n, -first, link);
    start = link;
  }
  run.scan_decay(coarse.points, first, octaves + 1, start, link, f.data(), fy.data());
  const Turns turns = run.misfits(f.data(), fy.data(), octaves, coarse.inverse, misfit.data());

  // A valley is fallen into at node k and left at node j: nodes that explain the same to all
  // digits, as all do that leave nothing past the first point of a spike, are one. Ends count as
  // slopes.
  const std::uint64_t last = std::uint64_t{1} << (octaves - 1), inside = last - 1;
  const std::uint64_t ties = turns.ties & inside, rises = (turns.rises & inside) | last;
  const std::uint64_t falls = inside & ~turns.rises & ~ties;
  std::array<Valley, kMostOctaves / 2 + 1> valleys;
  int count = 0;
  for (std::uint64_t into = ((falls << 1) | 1) & (rises | ties); into != 0; into &= into - 1) {
    const int k = std::countr_zero(into), j = k + std::countr_one(ties >> k);
    if ((rises >> j & 1) != 0) valleys[count++] = {k, j, 1.0 / misfit[k]};
  }
  if (count > 1) {
    std::stable_sort(valleys.begin(), valleys.begin() + count,
                     [](const Valley& l, const Valley& r) { return l.explained > r.explained; });
  }

  DecayEnd best;
  for (int v = 0; v < std::min(count, 8); ++v) {
    const int k = valleys[v].k, j = valleys[v].j;
    const double at = first * octave(k);
    double beta = at;
    double third = 0;
    if (j == k) {
      const Top top = top_of(misfit.data(), octaves, k);
      beta *= top.factor;
      third = -0.5 * top.third;
    }
    const double low = k > 0 ? 0.5 * at : box_low;
    const double high = j + 1 < octaves ? first * octave(j + 1) : box_high;
    Node from = node_of({f[k], f[k + 1], fy[k]}, coarse.inverse);
    if (merged && data.points.n > 3 * coarse.points.n) {
      const DecayEnd rough =
          descend(run, coarse, beta, from, third, low, high, box_low, box_high, kRough);
      if (rough.converged) {
        beta = rough.beta;
        from.a = rough.a;
        from.mean = rough.mean;
      }
    }
    const DecayEnd end = descend(run, data, beta, from, third, low, high, box_low, box_high);
    if (end.rss < best.rss) best = end;
  }
  best.valleys = count;
  return best;
}
}  // namespace

DecayEnd search_decay(const Kernels& run, const Data& data, std::span<const double> key,
                      double box_low, double box_high) {
  DecayEnd best = search(run, data, key, kFirstRate, box_low, box_high, kUnmerged);
  // One valley well inside the range is the only one, however noisy the points.
  const bool plain = best.valleys == 1 && best.beta > 0.5 && best.converged;
  if (!plain && !(best.rss < kPoor * data.total)) {
    const DecayEnd fine = search(run, data, key, 0x1p-16, box_low, box_high, 512);
    if (fine.rss < best.rss) best = fine;
    const DecayEnd end = descend(run, data, box_low, {0, 0, data.inverse > 0 ? 1.0 : 0.0}, 0.0,
                                 box_low, std::max(box_low, kFirstRate), box_low, box_high);
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
  solution.shapes.q[0] = best.beta;
  solution.status = best.converged ? FitStatus::converged : FitStatus::iteration_limit;
  solution.shape_at_bound[0] =
      best.beta <= box_low * (1 + 1e-6) || best.beta >= box_high * (1 - 1e-6);
  // JᵀJ of (1, φ, -a β x φ)
  const double slope = -best.a * best.beta;
  solution.normal = {data.weight,    best.f,          slope * best.h,   //
                     best.f,         best.ff,         slope * best.fh,  //
                     slope * best.h, slope * best.fh, slope * slope * best.hh};
  return solution;
}

}  // namespace glidepath::detail
