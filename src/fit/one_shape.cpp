// SPDX-License-Identifier: Apache-2.0
// φ = exp(-β x), one shape: a scan over doublings of β, then Newton from each of its valleys.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "fit/closed_form.hpp"

namespace glidepath::detail {
namespace {

/// Relative steps in β that end a descent, on all points and on merged ones.
constexpr double kFineStep = 3e-6, kRoughStep = 0.02;

/// Where β may go: the box, and inside it what is between slopes that point inwards.
struct Bracket {
  double low = 0, high = 0, box_low = 0, box_high = 0;
};

/// RSS / 2 about β, with floor and scale at their best.
struct DecaySlopes {
  double over_ff, slope_a;         ///< da/dβ
  double gradient, newton, gauss;  ///< first and second derivative, and the latter's sure part
  double q, kg, kr, hh;            ///< centred sums: x φ φ, x² φ φ, x² φ r, (x φ)²
};

/// A step in u = log β.
struct DecayStep {
  double by = 0, next = 0;  ///< next: the β that it leads to
  double slope = 0, curve = 0;
  double change = 0;  ///< of RSS, where the third derivative is known
  bool newtonian = false;
  bool sharp = false;  ///< what is not known of the step does not show in RSS
  bool whole = false;  ///< nothing stood in its way
};

/// Newton in u = log β, from one valley of a scan down.
class DecayDescent {
 public:
  DecayDescent(const Kernels& simd, const Data& data, const Bracket& bracket, double enough)
      : simd_(simd),
        data_(data),
        inverse_(data.inverse),
        enough_(enough),
        memory_(scratch().column(kLink, static_cast<std::size_t>(data.points.n))),
        bracket_(bracket) {}

  /// `third` is a guess at the third derivative of RSS / 2 in u, which two passes tell.
  DecayEnd from(double beta, const ScanNode& start, double third) {
    FitLine line(start);
    third_ = third;
    double held = 0;
    int repeats = 0;
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      check_interrupt_of_pass(data_.points);
      const double centre = line.centre;
      // the second pass is near the first; later ones would heap up rounding
      const DecaySums s =
          simd_.decay(data_.points, pass == 1 ? held : 0.0, beta, centre, line.c, line.a, memory_);
      held = beta;
      const Refined found = refine(s, line, inverse_);
      if (!(found.ff > 0)) return end_;
      line = found.line;
      if (found.lost && repeats < kMaxRepeats) {
        ++repeats;
        continue;
      }
      repeats = 0;
      const DecaySlopes at = slopes(s, found, centre);
      stand_at(beta, s, found, centre);
      if ((beta <= bracket_.box_low && at.gradient >= 0) ||
          (beta >= bracket_.box_high && at.gradient <= 0)) {
        end_.converged = true;
        return end_;
      }
      (at.gradient > 0 ? bracket_.high : bracket_.low) = beta;
      const DecayStep step = propose(at, beta, found.rss, pass);
      const double moved = step.next - beta;
      const bool small = std::abs(moved) < (step.newtonian ? enough_ : 1e-9) * beta;
      if (small || (step.sharp && step.whole) || bracket_.high - bracket_.low < 1e-12 * beta) {
        finish(s, at, step, found, moved);
        return end_;
      }
      if (inverse_ > 0) {
        line.centre -= s.h * inverse_ * moved;
        if (std::abs(step.by) < 0.1) {
          const FitLine& best = found.line;
          line.c -= moved * (at.slope_a * best.centre - best.a * s.h * inverse_);
          line.a += at.slope_a * moved;
        }
      }
      const bool tells = step.newtonian && step.whole && std::abs(step.by) < 0.1;
      before_ = {tells ? step.by : 0.0, 1.0 / (step.by * step.by), step.slope, step.curve, s.hh};
      beta = step.next;
    }
    return end_;
  }

 private:
  DecaySlopes slopes(const DecaySums& s, const Refined& found, double centre) const {
    DecaySlopes at;
    const double a = found.line.a, ff = found.ff, da = found.da;
    at.q = s.gh - s.g * s.h * inverse_;
    const double hr = s.hr - s.h * s.r * inverse_ - da * at.q;  // Σ x φ r
    at.kg = s.hh - centre * s.k - s.k * s.g * inverse_;         // Σ x² φ (φ - mean)
    at.kr = s.kr - s.k * s.r * inverse_ - da * at.kg;           // Σ x² φ r
    at.hh = s.hh - s.h * s.h * inverse_;
    at.over_ff = 1.0 / ff;
    at.slope_a = (a * at.q - hr) * at.over_ff;
    at.gradient = a * hr;
    at.newton = a * a * at.hh - a * at.kr - ff * at.slope_a * at.slope_a;
    at.gauss = a * a * (at.hh - at.q * at.q * at.over_ff);
    return at;
  }

  void stand_at(double beta, const DecaySums& s, const Refined& found, double centre) {
    const double f = s.g + centre * data_.weight;
    end_ = {beta,
            found.line.a,
            found.line.c,
            std::max(found.rss, 0.0),
            found.line.centre,
            f,
            s.h,
            s.gg + centre * (s.g + f),
            s.gh + centre * s.h,
            s.hh};
  }

  /// d/du = β d/dβ. The third derivative is known by the last two passes or, for the first, the
  /// scan.
  DecayStep propose(const DecaySlopes& at, double beta, double rss, int pass) {
    const bool third_known = pass == 0 || before_.by != 0;
    DecayStep step;
    step.slope = beta * at.gradient;
    step.curve = beta * (beta * at.newton + at.gradient);
    step.newtonian = step.curve > 0.01 * beta * beta * at.gauss && step.curve > 0;
    step.by = -4.0 * at.gradient / (beta * at.gauss);
    if (step.newtonian) {
      const double h = before_.by, slope = step.slope, curve = step.curve;
      if (h != 0) {
        third_ = ((2.0 * before_.curve + 4.0 * curve) * h - 6.0 * (slope - before_.slope)) *
                 before_.over_square;
      }
      const double square = curve * curve, bent = square - 0.5 * third_ * slope;
      const bool known = third_known && bent > 0.5 * square && bent < 2.0 * square;
      step.by = -slope * curve / (known ? bent : square);
      if (known) {
        // what two passes do not tell is of the order of (step h)², and must not show in RSS
        const double rest = step.by * h * step.by * h;
        step.change = step.by * (2.0 * slope + step.by * (curve + step.by * third_ * (1.0 / 3.0)));
        step.sharp = h != 0 && rest < 1e-10 && std::abs(step.by) < 1e-3 &&
                     curve * rest * rest < 1e-13 * (rss + step.change);
      }
    }
    if (!std::isfinite(step.by)) step.by = at.gradient > 0 ? -1.0 : 1.0;
    step.by = std::clamp(step.by, -2.0, 2.0);
    land(step, beta);
    return step;
  }

  /// Where the step leads inside the bracket.
  void land(DecayStep& step, double beta) {
    const auto& [low, high, box_low, box_high] = bracket_;
    const double u = step.by;
    // beta e^u, to 1e-8 for steps below 0.1; of longer ones the direction is enough
    const double wanted = beta * (12.0 + u * (6.0 + u)) / (12.0 - u * (6.0 - u));
    double next = wanted;
    falls_ = u < -0.5 ? falls_ + 1 : 0;
    if (falls_ >= 3 && low <= box_low) next = box_low;  // towards a straight line: try the end
    if (next <= low) next = low <= box_low && beta > box_low ? box_low : std::sqrt(low * beta);
    if (next >= high) {
      next = high >= box_high && beta < box_high ? box_high : std::sqrt(high * beta);
    }
    step.next = next;
    step.whole = next == wanted;
  }

  /// Takes the last step: to second order in a and c, third in RSS, first in the sums.
  void finish(const DecaySums& s, const DecaySlopes& at, const DecayStep& step,
              const Refined& found, double moved) {
    const double a = found.line.a, mean = found.line.centre;
    const double y_mean = found.line.c + a * mean;
    const double bend_a =
        (at.kr - a * at.kg - 2.0 * a * at.hh + 4.0 * at.slope_a * at.q) * at.over_ff;
    end_.beta = step.next;
    end_.a = a + moved * (at.slope_a + 0.5 * moved * bend_a);
    end_.mean = mean - moved * inverse_ * (s.h - 0.5 * moved * s.k);
    if (inverse_ > 0) end_.c = y_mean - end_.a * end_.mean;
    const double change =
        step.sharp ? step.change : moved * (2.0 * at.gradient + moved * at.newton);
    end_.rss = std::max(0.0, found.rss + change);
    end_.f -= moved * s.h;
    end_.h -= moved * s.k;
    end_.ff -= 2.0 * moved * end_.fh;
    end_.fh -= 2.0 * moved * end_.hh;
    if (step.sharp) end_.hh += (end_.hh - before_.hh) * step.by / before_.by;
    end_.converged = true;
  }

  const Kernels& simd_;
  const Data& data_;
  const double inverse_, enough_;
  double* memory_;
  Bracket bracket_;
  DecayEnd end_;
  double third_ = 0;
  int falls_ = 0;  ///< steps in a row that lower β much
  struct {
    double by = 0, over_square = 0, slope = 0, curve = 0, hh = 0;
  } before_;  ///< of the pass before; no step: nothing
};

DecayEnd descend(const Kernels& simd, const Data& data, double beta, const ScanNode& start,
                 double third, const Bracket& bracket, double enough = kFineStep) {
  return DecayDescent(simd, data, bracket, enough).from(beta, start, third);
}

/// A descent that goes on where it comes to an end of its bracket: a scan of merged points may put
/// a valley beside that of all points.
DecayEnd descend_on(const Kernels& simd, const Data& data, double beta, const ScanNode& start,
                    double third, Bracket bracket) {
  constexpr double kAtEnd = 1e-4;
  DecayEnd end = descend(simd, data, beta, start, third, bracket);
  for (int octaves = 0; octaves < kMaxOctaves; ++octaves) {
    if (end.beta < bracket.low * (1 + kAtEnd) && bracket.low > bracket.box_low) {
      bracket.high = 2.0 * bracket.low;
      bracket.low = std::max(0.5 * bracket.low, bracket.box_low);
    } else if (end.beta > bracket.high * (1 - kAtEnd) && bracket.high < bracket.box_high) {
      bracket.low = 0.5 * bracket.high;
      bracket.high = std::min(2.0 * bracket.high, bracket.box_high);
    } else {
      break;
    }
    const DecayEnd next = descend(simd, data, end.beta, start, 0.0, bracket);
    if (!(next.rss < end.rss)) break;
    end = next;
  }
  return end;
}

double octave(int k) { return static_cast<double>(std::int64_t{1} << k); }

using Valleys = std::array<Valley, kMaxOctaves / 2 + 1>;

/// A valley is fallen into at node k and left at node j: nodes that explain the same to all digits,
/// as all do that leave nothing past the first point of a spike, are one. Ends count as slopes.
/// The best first.
int valleys_of(const Turns& turns, const Octaves& misfit, int octaves, Valleys& valleys) {
  const std::uint64_t last = std::uint64_t{1} << (octaves - 1), inside = last - 1;
  const std::uint64_t ties = turns.ties & inside, rises = (turns.rises & inside) | last;
  const std::uint64_t falls = inside & ~turns.rises & ~ties;
  int count = 0;
  for (std::uint64_t into = ((falls << 1) | 1) & (rises | ties); into != 0; into &= into - 1) {
    const int k = std::countr_zero(into), j = k + std::countr_one(ties >> k);
    if ((rises >> j & 1) != 0) valleys[count++] = {k, j, 1.0 / misfit[k]};
  }
  if (count > 1) {
    std::stable_sort(valleys.begin(), valleys.begin() + count,
                     [](const Valley& l, const Valley& r) { return l.explained > r.explained; });
  }
  return count;
}

/// Every valley of a scan from `first` up, to its bottom.
DecayEnd search(const Kernels& simd, const Data& data, std::span<const double> key, double first,
                const RateBox& box, int most_points) {
  Data coarse = data;
  const bool merged = data.points.n > most_points;
  if (merged) coarse = merge(data, key, 1.0 / 12.0);
  first = std::clamp(first, box.lower, box.upper);
  const double ratio = std::min(0x1p62, box.upper / first);  // also where it is not finite
  const int octaves = std::clamp(1 + std::ilogb(ratio), 1, kMaxOctaves - 4);
  Octaves f, fy, misfit;
  double* link = scratch().column(kLink, static_cast<std::size_t>(coarse.points.n));
  const double* start = first == kFirstRate ? coarse.start : nullptr;
  if (start == nullptr) {
    simd.exponentials(coarse.points.x, coarse.points.n, -first, link);
    start = link;
  }
  simd.scan_decay(coarse.points, first, octaves + 1, start, link, f.data(), fy.data());
  const Turns turns = simd.misfits(f.data(), fy.data(), octaves, coarse.inverse, misfit.data());
  Valleys valleys;
  const int count = valleys_of(turns, misfit, octaves, valleys);

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
    const Bracket bracket{.low = k > 0 ? 0.5 * at : box.lower,
                          .high = j + 1 < octaves ? first * octave(j + 1) : box.upper,
                          .box_low = box.lower,
                          .box_high = box.upper};
    ScanNode from = node_of({f[k], f[k + 1], fy[k]}, coarse.inverse);
    if (merged && data.points.n > 3 * coarse.points.n) {
      const DecayEnd rough = descend(simd, coarse, beta, from, third, bracket, kRoughStep);
      if (rough.converged) {
        beta = rough.beta;
        from.a = rough.a;
        from.mean = rough.mean;
      }
    }
    const DecayEnd end = descend_on(simd, data, beta, from, third, bracket);
    if (end.rss < best.rss) best = end;
  }
  best.valleys = count;
  return best;
}
}  // namespace

DecayEnd search_decay(const Kernels& simd, const Data& data, std::span<const double> key,
                      const RateBox& box) {
  DecayEnd best = search(simd, data, key, kFirstRate, box, kMaxUnmergedPoints);
  // One valley well inside the range is the only one, however noisy the points.
  const bool plain = best.valleys == 1 && best.beta > 0.5 && best.converged;
  if (!plain && !(best.rss < kUnexplainedShare * data.total)) {
    const DecayEnd fine = search(simd, data, key, 0x1p-16, box, 512);
    if (fine.rss < best.rss) best = fine;
    const Bracket lowest{box.lower, std::clamp(kFirstRate, box.lower, box.upper), box.lower,
                         box.upper};
    const DecayEnd end =
        descend(simd, data, box.lower, {0, 0, data.inverse > 0 ? 1.0 : 0.0}, 0.0, lowest);
    if (end.rss < best.rss) best = end;
  }
  return best;
}

Solution solve_decay(const Kernels& simd, const Data& data, std::span<const double> key,
                     const RateBox& box) {
  const DecayEnd best = search_decay(simd, data, key, box);
  Solution solution;
  solution.floor = best.c;
  solution.amplitude = best.a;
  solution.rss = best.rss;
  solution.shapes.q[0] = best.beta;
  solution.status = best.converged ? FitStatus::converged : FitStatus::iteration_limit;
  solution.shape_at_bound[0] =
      best.beta <= box.lower * (1 + 1e-6) || best.beta >= box.upper * (1 - 1e-6);
  // JᵀJ of (1, φ, -a β x φ)
  const double slope = -best.a * best.beta;
  solution.normal = {data.weight,    best.f,          slope * best.h,   //
                     best.f,         best.ff,         slope * best.fh,  //
                     slope * best.h, slope * best.fh, slope * slope * best.hh};
  return solution;
}

}  // namespace glidepath::detail
