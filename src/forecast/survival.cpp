// SPDX-License-Identifier: Apache-2.0
#include "forecast/survival.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "forecast/student.hpp"

namespace glidepath::detail {

/// Points of the unit Student-t, the middles of its parts between edges, and their masses.
struct Paths {
  std::array<double, kPaths> unit{}, mass{};
};

namespace {

constexpr double kMaxDeviation = 60;  // scales of the noise: no observation strays so far
constexpr double kMinNoise = 1e-12;
constexpr double kMinSurvival = 1e-9;  // below it a component is left out of account
// Between edges even in asinh u lie parts of the unit Student-t that are fine in the tails, where
// "never" is decided: the outer ones hold 0.4 % each. Parts are shifted from component to
// component, by shifts so many that neighbours move an edge by 1 % of probability at most.
constexpr double kEdgeSpacing = 0.85;
constexpr std::size_t kShifts = 32, kNextShift = 13;  // odd, near the golden section of kShifts
// For a component of all the weight; one of less has its share of them, or one. They add at most a
// third to the paths of as many components as a law has.
constexpr double kMostSets = 16;

/// `shift` of the width of a part, from -1/2 to 1/2.
Paths paths_of(double degrees, double shift) {
  Paths paths;
  double below = 0;
  for (std::size_t i = 0; i < kPaths; ++i) {
    const double edge = static_cast<double>(i + 1) - 0.5 * static_cast<double>(kPaths) + shift;
    const double up_to =
        i + 1 < kPaths ? student_cdf(degrees, std::sinh(kEdgeSpacing * edge)) : 1.0;
    paths.unit[i] = student_quantile(degrees, 0.5 * (below + up_to));
    paths.mass[i] = up_to - below;
    below = up_to;
  }
  return paths;
}

/// Paths by their shift. A thread keeps those of its last degrees of freedom.
const std::array<Paths, kShifts>& shifted_paths(double degrees) {
  thread_local std::array<Paths, kShifts> paths;
  thread_local double known = 0;
  if (degrees == known) return paths;
  for (std::size_t i = 0; i < kShifts; ++i) {
    paths[i] = paths_of(degrees, (static_cast<double>(i) + 0.5) / kShifts - 0.5);
  }
  known = degrees;
  return paths;
}

}  // namespace

Survival::Survival(const Law& law, double target, std::size_t window)
    : law_(law),
      target_(target),
      window_(static_cast<double>(window)),
      noise_(window > 1 ? law.noise * std::sqrt(std::numbers::pi / (2 * window_)) : law.noise),
      sets_(sets_of(law.mixture)) {}

double Survival::past(std::size_t j, double count) {
  const MixtureView curve = law_.mixture.at(j);
  const double inverse_noise = 1 / std::max(noise_, kMinNoise);
  const double at_knot = j > 0 && count > 1 ? 0.5 * (count + 1) : count;
  double never = 0;
  for (PathSet& set : sets_) {
    const double location = curve.location[set.component], scale = curve.scale[set.component];
    if ((location + scale * set.paths->unit[0] - target_) * inverse_noise > kMaxDeviation) {
      set.log_above.fill(0.0);
    } else if (set.left > kMinSurvival) {
      forecast_kernels().pass(set.paths->unit.data(), location, scale, law_.highest, target_,
                              inverse_noise, (count - at_knot) / window_, at_knot / window_,
                              set.log_above.data(), set.log_survival.data(), set.survival.data());
      set.left = 0;
      for (std::size_t l = 0; l < kPaths; ++l) set.left += set.paths->mass[l] * set.survival[l];
    }
    never += set.weight * set.left;
  }
  return never;
}

std::vector<Survival::PathSet> Survival::sets_of(const Mixture& mixture) {
  const auto& shifted = shifted_paths(mixture.degrees);
  std::vector<PathSet> sets;
  for (std::size_t k = 0; k < mixture.components; ++k) {
    const double wanted = std::clamp(std::ceil(kMostSets * mixture.weight[k]), 1.0, kMostSets);
    const auto count = static_cast<std::size_t>(wanted);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t shift = (kNextShift * k + kShifts * i / count) % kShifts;
      sets.push_back({k, &shifted[shift], mixture.weight[k] / wanted});
    }
  }
  return sets;
}

}  // namespace glidepath::detail
