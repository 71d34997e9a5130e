// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "fit/kernels.hpp"
#include "fit/problem.hpp"

/// What the parts of the closed-form engine share: closed_form.cpp fills it, one_shape.cpp and
/// two_shapes.cpp search.
namespace glidepath::detail {

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

inline Scratch& scratch() {
  static thread_local Scratch memory;
  return memory;
}
/// The points, and whether c is free: then y is centred on its mean and sums are, too.
struct Data {
  Columns points;
  double weight = 0;   ///< Σ w
  double inverse = 0;  ///< 1 / Σ w; 0 when the floor is held, which turns all centring off
};

/// Neighbouring points merged while their steps are within a fraction of each other: what a scan
/// needs to see of a long trace.
[[nodiscard]] Data merge(const Data& all, std::span<const double> key, double fraction);

/// Σ w y²: what there is to explain.
[[nodiscard]] double total_of(const Data& data);

/// Best scale for a node of a scan, and Σ (y explained)².
struct Node {
  double explained = 0, a = 0, mean = 0;
};
inline Node node_of(const ScanSums& s, double inverse) {
  const double ff = s.ff - s.f * s.f * inverse;
  if (!(ff > 1e-14 * s.ff) || !std::isfinite(s.fy)) return {};
  return {s.fy * s.fy / ff, s.fy / ff, s.f * inverse};
}

/// Of a scan: node k, or nodes k to j that explain the same; in two dimensions node (j, k).
struct Valley {
  int k = 0, j = 0;
  double explained = 0;
};

inline constexpr int kMostPasses = 200;
/// A pass whose floor and scale, or mean of φ, were so far off that what counts is a small
/// difference is taken again with better ones.
inline constexpr double kLostDigits = 1e6;
/// A fit that leaves more than this of the total has many valleys of nearly one depth, and is
/// searched again, finely.
inline constexpr double kPoor = 0.02;

/// Where a search for β of φ = exp(-β x) ended.
struct DecayEnd {
  double beta = 0, a = 0, c = 0, rss = std::numeric_limits<double>::infinity();
  double mean = 0;  ///< of φ
  DecaySums sums{};
  double centre = 0;  ///< that the sums refer to
  bool converged = false;
  int valleys = 0;  ///< that the scan saw
};

/// The best β in a box; `key` is what merging goes by.
[[nodiscard]] DecayEnd search_decay(const Kernels& run, const Data& data,
                                    std::span<const double> key, double box_low, double box_high);

/// The same as a solution, with β as its coordinate.
[[nodiscard]] Solution solve_decay(const Kernels& run, const Data& data,
                                   std::span<const double> key, double box_low, double box_high);

/// A family with two shapes; `t` are its steps.
[[nodiscard]] Solution solve_plane(Family family, const Kernels& run, const Data& data,
                                   std::span<const double> t, const StepRange& range);

}  // namespace glidepath::detail
