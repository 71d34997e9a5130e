// SPDX-License-Identifier: Apache-2.0
// Branch-free functions that the compiler can vectorise in the loops of kernels.cpp: never in a sum
// across lanes and with nothing fused (-ffp-contract=off), so that every instruction set gives the
// same bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <numbers>

#define GLIDEPATH_INLINE [[gnu::always_inline]] inline

namespace glidepath::detail {

inline constexpr double kPi = std::numbers::pi;
inline constexpr double kInvSqrt3 = 0.57735026918962576451;

/// exp(x) to about 1 ulp; 0 below -708 and exp(708) above.
/// x = k log 2 + r, |r| <= log(2) / 2; Taylor series of r to degree 13.
GLIDEPATH_INLINE double fast_exp(double x) {
  constexpr double kRound = 0x1.8p52;
  double v = x < -708.5 ? -708.5 : x;
  v = v > 708.5 ? 708.5 : v;
  const double shifted = v * std::numbers::log2e + kRound;
  const double k = shifted - kRound;
  double r = v - k * 0x1.62e42fee00000p-1;
  r = r - k * 0x1.a39ef35793c76p-33;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r * r + r + 1.0;
  // 2^k from the low bits of the shifted number.
  const std::uint64_t bits = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  const double power = std::bit_cast<double>(bits);
  return x < -708.0 ? 0.0 : p * power;
}

/// log(x) of a normal positive x to a few ulp.
/// x = 2^k m, m in [sqrt(1/2), sqrt 2): log m = 2 artanh s, s = (m - 1) / (m + 1), by its series.
GLIDEPATH_INLINE double fast_log(double x) {
  constexpr std::uint64_t kOne = 0x3ff0000000000000, kHalfRoot = 0x3fe6a09e667f3bcd;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t biased = (bits + (kOne - kHalfRoot)) >> 52;
  const double m = std::bit_cast<double>(bits - ((biased - 1023) << 52));
  const double k = std::bit_cast<double>(biased | 0x4330000000000000) - (0x1p52 + 1023);
  const double s = (m - 1) / (m + 1), t = s * s;
  double p = 1.0 / 21;
  p = p * t + 1.0 / 19;
  p = p * t + 1.0 / 17;
  p = p * t + 1.0 / 15;
  p = p * t + 1.0 / 13;
  p = p * t + 1.0 / 11;
  p = p * t + 1.0 / 9;
  p = p * t + 1.0 / 7;
  p = p * t + 1.0 / 5;
  p = p * t + 1.0 / 3;
  return k * std::numbers::ln2 + (2 * s + 2 * s * (t * p));
}

/// Degrees of freedom of a raw observation around the curve.
inline constexpr double kNoiseDegrees = 8;

/// CDF of Student's t with kNoiseDegrees = 8:
/// 1/2 + s/2 (1 + c/2 + 3/8 c^2 + 5/16 c^3), s = u / sqrt(8 + u^2), c = 1 - s^2.
GLIDEPATH_INLINE double noise_cdf(double u) {
  static_assert(kNoiseDegrees == 8);
  const double r = 1 / (8 + u * u), s = u * __builtin_sqrt(r), c = 8 * r;
  return 0.5 + 0.5 * s * (1 + c * (0.5 + c * (0.375 + c * 0.3125)));
}

}  // namespace glidepath::detail
