// SPDX-License-Identifier: Apache-2.0
// φ = exp(-β x), one shape: a scan over doublings of β, then Newton from each of its valleys.
#include <algorithm>

#include "fit/closed_form.hpp"

namespace glidepath::detail {
namespace {

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
/// Where the parabola through the middle three of five values is highest, in steps from the middle.
double top_of_three(const std::array<double, 5>& e) {
  const double slope = 0.5 * (e[3] - e[1]), bend = e[1] - 2.0 * e[2] + e[3];
  return bend < 0 ? std::clamp(-slope / bend, -0.5, 0.5) : 0.0;
}

/// The same for the quartic through all five, by Newton from the top of that parabola.
double top_of_five(const std::array<double, 5>& e) {
  const double d1 = (e[0] - 8.0 * e[1] + 8.0 * e[3] - e[4]) / 12.0;
  const double d2 = (-e[0] + 16.0 * e[1] - 30.0 * e[2] + 16.0 * e[3] - e[4]) / 12.0;
  const double d3 = 0.5 * (-e[0] + 2.0 * e[1] - 2.0 * e[3] + e[4]);
  const double d4 = e[0] - 4.0 * e[1] + 6.0 * e[2] - 4.0 * e[3] + e[4];
  double u = top_of_three(e);
  for (int pass = 0; pass < 2; ++pass) {
    const double slope = d1 + u * (d2 + u * (0.5 * d3 + u * d4 / 6.0));
    const double bend = d2 + u * (d3 + u * 0.5 * d4);
    if (bend < 0) u = std::clamp(u - slope / bend, -0.7, 0.7);
  }
  return u;
}

/// Every valley of a scan from `first` up, to its bottom.
DecayEnd search(const Kernels& run, const Data& data, std::span<const double> key, double first,
                double box_low, double box_high, int most_points) {
  Data coarse = data;
  const bool merged = data.points.n > most_points;
  if (merged) coarse = merge(data, key, 1.0 / 12.0);
  first = std::clamp(first, box_low, box_high);
  const int octaves = std::min(kMostOctaves - 4, 1 + std::ilogb(box_high / first));
  std::array<double, kMostOctaves> f, fy;
  run.scan_decay(coarse.points, first, octaves + 1,
                 scratch().column(kLink, static_cast<std::size_t>(coarse.points.n)), f.data(),
                 fy.data());
  std::array<Node, kMostOctaves> node;
  for (int k = 0; k < octaves; ++k) node[k] = node_of({f[k], f[k + 1], fy[k]}, coarse.inverse);

  // Nodes that explain the same to all digits, as all do that leave nothing past the first point of
  // a spike, are one valley from k to j.
  std::array<Valley, kMostOctaves / 2 + 1> valleys;
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
  if (count > 1) {
    std::stable_sort(valleys.begin(), valleys.begin() + count,
                     [](const Valley& l, const Valley& r) { return l.explained > r.explained; });
  }

  DecayEnd best;
  for (int v = 0; v < std::min(count, 8); ++v) {
    const auto [k, j, explained] = valleys[v];
    const double at = std::ldexp(first, k);
    double beta = at;
    if (k > 0 && j == k && k + 1 < octaves) {
      std::array<double, 5> e{};
      const bool wide = k > 1 && k + 2 < octaves;
      for (int d = wide ? 0 : 1; d < (wide ? 5 : 4); ++d) e[d] = node[k - 2 + d].explained;
      beta *= std::exp2(wide ? top_of_five(e) : top_of_three(e));
    }
    const double low = k > 0 ? 0.5 * at : box_low;
    const double high = j + 1 < octaves ? std::ldexp(first, j + 1) : box_high;
    Node start = node[k];
    if (merged && data.points.n > 3 * coarse.points.n) {
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
}  // namespace

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

}  // namespace glidepath::detail
