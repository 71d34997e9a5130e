// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"

#include <array>
#include <cstdint>

/// The passes over the points of one trace, vectorised: everything that costs time. What to do with
/// the sums is decided in closed_form.cpp. Each is compiled for every instruction set; none knows
/// of threads or batches, so an answer depends on the trace alone.
namespace glidepath::detail {

/// Points of one trace in units of the problem. Which columns a family reads:
///   decay     x                       φ = exp(-β x)
///   pow4      x = t - t_1             φ = (1 + κ x)^-rate,  κ = 1 / (t_1 + shift)
///   sigmoids  x = log(t / t_last)     v = exp(z_0 + shape x)
///   powexp    x = log(t / t_1), x2 = t - t_1
struct Columns {
  const double *x = nullptr, *x2 = nullptr, *y = nullptr;
  const double* w = nullptr;  ///< null: every point counts once
  int n = 0;
};

/// Sums of one shape: g = φ - centre, h = x φ, k = x² φ, r = y - c - a φ.
struct DecaySums {
  double g, h, k, gg, gh, hh, r, gr, hr, kr, rr;
};

/// Sums of two shapes: g = φ - centre, φ_i and φ_ij its derivatives in the coordinates z.
struct PlaneSums {
  double g, d0, d1, gg, g0, g1, d00, d01, d11, r, gr, r0, r1, rr, r00, r01, r11;
};

/// Sums for a scan over doublings of one rate: of φ, φ² and φ y, weighted.
struct ScanSums {
  double f, ff, fy;
};

/// What a pass of two shapes keeps for each point between its exponentials and its sums.
inline constexpr int kBendParts = 6;

enum class Plane : unsigned char { pow4, weibull4, mmf4, powexp };

struct Extent {
  double lowest = 0, highest = 0;
  double above_last = 0;  ///< Σ (value - last value)
  bool finite = true;
};

inline constexpr int kMaxOctaves = 64;
inline constexpr double kWorstMisfit = 1e300;
/// Neighbouring nodes of a scan. Bit k: node k + 1 has the larger misfit, or one that is the same
/// to eleven digits. Bits past the last pair mean nothing.
struct Turns {
  std::uint64_t rises = 0, ties = 0;
};
/// A number for each octave of a scan; kernels write past the last one.
using Octaves = std::array<double, kMaxOctaves + 8>;

struct Kernels {
  /// Finite, and each above the one before.
  bool (*increasing)(const double* step, int n);
  Extent (*extent)(const double* values, int n);
  /// out = log(in * factor) * scale
  void (*logs)(const double* in, int n, double factor, double scale, double* out);
  /// out = (in - shift) * scale - offset; returns the sum of squares of out
  double (*rescale)(const double* in, int n, double shift, double scale, double offset,
                    double* out);
  /// out = exp(rate x)
  void (*exponentials)(const double* x, int n, double rate, double* out);
  /// `memory` has room for the points; it still has what a pass at `held` left there, if that is
  /// not 0.
  DecaySums (*decay)(const Columns&, double held, double beta, double centre, double c, double a,
                     double* memory);
  /// φ is lifted to 1 at t_1. q: see two_shapes-inl.hpp, where q[2] is x(t_1).
  /// `memory` has room for kBendParts doubles a point, and a vector of points more.
  PlaneSums (*plane)(Plane, const Columns&, const double* q, double centre, double c, double a,
                     double* memory);
  /// The values that a scan doubles, for one value of the other shape: φ = base * link^(2^k), or
  /// for mmf4 φ = 1 / (1 + 2^k link).
  /// `origin` is v(t_1) over v(t_last). Only powexp needs a base.
  void (*chain)(Plane, const Columns&, double other, double first, double origin, double* base,
                double* link);
  /// f[k] = Σ φ and fy[k] = Σ φ y for φ = start^(2^k), k < octaves rounded up to a multiple of 6.
  /// Σ φ² is the next f. Where `first` is not 0, start = exp(-first x). `link` is memory, and may
  /// be `start`.
  void (*scan_decay)(const Columns&, double first, int octaves, const double* start, double* link,
                     double* f, double* fy);
  /// (Σ φ² - (Σ φ)² inverse) / (Σ φ y)² of each node of such a scan: over 1, what it explains of y;
  /// kWorstMisfit where nothing can be told. Written to `nodes` rounded up to a multiple of 8.
  Turns (*misfits)(const double* f, const double* fy, int nodes, double inverse, double* out);
  /// Sums of base * link^(2^k) for k < octaves; destroys link.
  void (*scan)(const Columns&, const double* base, double* link, int octaves, ScanSums* out);
  /// Sums of 1 / (1 + link 2^k)
  void (*scan_mmf)(const Columns&, const double* link, int octaves, ScanSums* out);
};

[[nodiscard]] const Kernels& kernels(Isa isa = Isa::best);

}  // namespace glidepath::detail
