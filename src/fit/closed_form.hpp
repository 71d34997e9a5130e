// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "common/interrupt.hpp"
#include "common/thread_memory.hpp"
#include "fit/kernels.hpp"
#include "fit/problem.hpp"

/// What the parts of the closed-form engine share: closed_form.cpp fills it, one_shape.cpp and
/// two_shapes.cpp search.
namespace glidepath::detail {

enum Column : int {
  kX,
  kX2,
  kY,
  kBinX,
  kBinX2,
  kBinY,
  kBinW,
  kBase,
  kLink,
  kNested,
  kBends,
  kSteps,
  kStart
};

/// Where the scan over one shape begins, and how many points it takes one by one.
inline constexpr double kFirstRate = 0.125;
inline constexpr int kMaxUnmergedPoints = 64;

/// Memory that a thread keeps from one fit to the next.
class Scratch {
 public:
  double* column(int which, std::size_t n) {
    std::vector<double>& column = columns_[which];
    if (column.size() < n + kPadding) column.resize(n + kPadding);
    return column.data();
  }

  /// x in [0, 1] for the steps of a family of one shape, by logarithms or evenly, and for a short
  /// trace e^(-kFirstRate x). A scheduler's runs are often logged at the same steps: what was found
  /// for those of the fit before is kept.
  struct Coordinate {
    const double *x, *start;
  };
  enum class Axis : std::uint8_t { steps, log_steps };
  Coordinate coordinate(const Kernels& simd, std::span<const double> t, Axis axis, double first,
                        double over_span) {
    const std::size_t n = t.size();
    double *x = column(kSteps, n), *start = column(kStart, n);
    const bool brief = n <= kMaxUnmergedPoints;
    if (&simd != simd_ || axis != axis_ || n != steps_.size() ||
        std::memcmp(t.data(), steps_.data(), n * sizeof(double)) != 0) {
      steps_.assign(t.begin(), t.end());
      simd_ = &simd;
      axis_ = axis;
      const int count = static_cast<int>(n);
      if (axis == Axis::log_steps) {
        simd.logs(t.data(), count, 1.0 / first, over_span, x);
      } else {
        simd.rescale(t.data(), count, first, over_span, 0.0, x);
      }
      if (brief) simd.exponentials(x, count, -kFirstRate, start);
    }
    return {x, brief ? start : nullptr};
  }

 private:
  const Kernels* simd_ = nullptr;
  Axis axis_ = Axis::steps;
  std::vector<double> steps_;  ///< those that the columns kSteps and kStart belong to
  static constexpr std::size_t kPadding = 16;  ///< the kernels load whole vectors
  std::array<std::vector<double>, kStart + 1> columns_;
};

inline Scratch& scratch() {
  static thread_local ThreadMemory<Scratch> memory;
  return memory.here();
}

/// Asks whether to go on before a pass over so many points that passes take a while.
inline void check_interrupt_of_pass(const Columns& points) {
  constexpr int kManyPoints = 1 << 16;
  if (points.n > kManyPoints) check_interrupt();
}

/// The points, and whether c is free: then y is centred on its mean and sums are, too.
struct Data {
  Columns points;
  double weight = 0;   ///< Σ w
  double inverse = 0;  ///< 1 / Σ w; 0 when the floor is held, which turns all centring off
  double total = 0;    ///< Σ w y²: what there is to explain
  const double* start = nullptr;  ///< e^(-kFirstRate x), where it is known
};

/// Neighbouring points merged while their steps are within a fraction of each other: what a scan
/// needs to see of a long trace.
[[nodiscard]] Data merge(const Data& all, std::span<const double> key, double fraction);

/// Best scale for a node of a scan, and Σ (y explained)².
struct ScanNode {
  double explained = 0, a = 0, mean = 0;
};
inline ScanNode node_of(const ScanSums& s, double inverse) {
  const double ff = s.ff - s.f * s.f * inverse;
  if (!(ff > 1e-14 * s.ff) || !std::isfinite(s.fy)) return {};
  return {s.fy * s.fy / ff, s.fy / ff, s.f * inverse};
}

/// Where the misfit is least about node k of a scan: the rate there over that of node k, and the
/// third derivative of what is explained in the logarithm of the rate. Between nodes the misfit is
/// taken as a polynomial in the fourth root of the rate, which it is nearest to.
struct Top {
  double factor = 1, third = 0;
};
[[nodiscard]] Top top_of(const double* misfit, int nodes, int k);
inline constexpr double kOctave = std::numbers::ln2;  ///< between the nodes of a scan

/// Node k of a scan, or nodes k to j that explain the same; in two dimensions node (j, k).
struct Valley {
  int k, j;
  double explained;
};

inline constexpr int kMaxPasses = 200;

/// The floor c and scale a that a pass takes residuals against, and what it takes off φ.
struct FitLine {
  double a = 0, c = 0, centre = 0;

  FitLine() = default;
  explicit FitLine(const ScanNode& start)
      : a(start.a), c(-start.a * start.mean), centre(start.mean) {}
};

/// The best line for the shapes of a pass, found from its sums.
struct Refined {
  double ff = 0;          ///< Σ (φ - mean)²
  double da = 0;          ///< what the scale is off by
  double correction = 0;  ///< what the line costs by being off
  double rss = 0;
  FitLine line;       ///< the best one, centred on the mean of φ
  bool lost = false;  ///< digits: line or centre were so far off that what counts is a small
                      ///< difference, and the pass must be taken again
};
inline constexpr double kLostDigits = 1e6;
inline constexpr int kMaxRepeats = 3;

template <class Sums>
Refined refine(const Sums& s, const FitLine& from, double inverse) {
  Refined to;
  to.ff = s.gg - s.g * s.g * inverse;
  const double gr = s.gr - s.g * s.r * inverse;
  to.da = gr / to.ff;
  to.correction = s.r * s.r * inverse + to.da * gr;
  to.rss = s.rr - to.correction;
  to.line = from;
  to.line.a += to.da;
  if (inverse > 0) {
    to.line.centre += s.g * inverse;
    to.line.c += s.r * inverse - to.da * to.line.centre;
  }
  to.lost = to.correction > kLostDigits * to.rss || s.gg > kLostDigits * to.ff;
  return to;
}

/// A fit that leaves more than this of the total has many valleys of nearly one depth, and is
/// searched again, finely.
inline constexpr double kUnexplainedShare = 0.02;
/// One whose shapes are known better than that has one valley.
inline constexpr double kOneValleyDeviation = 0.3;

/// Where a search for β of φ = exp(-β x) ended.
struct DecayEnd {
  double beta = 0, a = 0, c = 0, rss = std::numeric_limits<double>::infinity();
  double mean = 0;                              ///< of φ
  double f = 0, h = 0, ff = 0, fh = 0, hh = 0;  ///< Σ φ, x φ, φ², x φ², x² φ²
  bool converged = false;
  int valleys = 0;  ///< that the scan saw
};

/// The best β in a box of it; `key` is what merging goes by.
[[nodiscard]] DecayEnd search_decay(const Kernels& simd, const Data& data,
                                    std::span<const double> key, const RateBox& box);

/// The same as a solution, with β as its coordinate.
[[nodiscard]] Solution solve_decay(const Kernels& simd, const Data& data,
                                   std::span<const double> key, const RateBox& box);

/// A family with two shapes; `t` are its steps.
[[nodiscard]] Solution solve_plane(Family family, const Kernels& simd, const Data& data,
                                   std::span<const double> t, const StepRange& range);

}  // namespace glidepath::detail
