// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace glidepath::detail {

/// Counter-based random numbers: a pure function of (seed, id, draw), so that results do not depend
/// on the order in which jobs or threads ask. The mixer is splitmix64's finaliser (Steele, Lea,
/// Flood 2014), applied once for each key.
struct Rng {
  std::uint64_t seed = 0;

  [[nodiscard]] std::uint64_t bits(std::uint64_t id, std::uint64_t draw) const noexcept {
    return mix(mix(mix(seed + kGamma) ^ (id + kGamma)) ^ (draw + kGamma));
  }
  /// In [0, 1), 53 bits.
  [[nodiscard]] double uniform(std::uint64_t id, std::uint64_t draw) const noexcept {
    return static_cast<double>(bits(id, draw) >> 11) * 0x1p-53;
  }
  /// Standard normal (Box and Muller 1958); uses draws 2 * draw and 2 * draw + 1 of a stream of its
  /// own.
  [[nodiscard]] double normal(std::uint64_t id, std::uint64_t draw) const noexcept {
    const Rng stream{mix(seed ^ 0x6e6f726d616cULL)};
    const double radius = std::sqrt(-2.0 * std::log(1.0 - stream.uniform(id, 2 * draw)));
    return radius * std::cos(2.0 * std::numbers::pi * stream.uniform(id, 2 * draw + 1));
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15ULL;
  static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
};

}  // namespace glidepath::detail
