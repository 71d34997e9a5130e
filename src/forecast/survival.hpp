// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "forecast/kernels.hpp"
#include "forecast/law.hpp"

namespace glidepath::detail {

struct Paths;

/// Probability that no level of the observations has come to the target, from knot to knot. Each
/// component of the law is a handful of paths, each of which the observations follow with noise.
/// The median of k of them has sqrt(pi / (2 k)) of their noise, and k times fewer are independent.
/// Where there is little noise a path is there at once, so that the probability rises by its mass:
/// many light paths, no two at the same place of their components, make these steps small.
class Survival {
 public:
  /// The law is borrowed; a level has `window` values.
  Survival(const Law& law, double target, std::size_t window);

  /// After `count` observations more, which end at knot j. They are evenly spaced, the last one at
  /// the knot, so that half of the others count where the cell began, but for the first cell: the
  /// law does not say where that began.
  [[nodiscard]] double past(std::size_t j, double count);

 private:
  using OfPaths = std::array<double, kPaths>;
  /// Paths of a component, with a part of its weight, and what is left of each.
  struct PathSet {
    std::size_t component = 0;
    const Paths* paths = nullptr;
    double weight = 0, left = 1;
    OfPaths log_above{}, log_survival{}, survival{};
  };

  [[nodiscard]] static std::vector<PathSet> sets_of(const Mixture& mixture);

  const Law& law_;
  double target_;
  double window_, noise_;  // values in a level, and its noise
  std::vector<PathSet> sets_;
};

}  // namespace glidepath::detail
