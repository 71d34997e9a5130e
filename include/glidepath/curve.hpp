// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/execution.hpp"
#include "glidepath/rows.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)
namespace glidepath {

/// Learning-curve families in the step t > 0, parameters in the order of parameter_names().
enum class Family : std::uint8_t {
  pow2,      ///< scale t^-rate
  pow3,      ///< floor + scale t^-rate
  pow4,      ///< floor + scale (t + shift)^-rate
  exp3,      ///< floor + scale exp(-rate t)
  weibull4,  ///< floor + scale exp(-(rate t)^shape)
  mmf4,      ///< floor + scale / (1 + (t/half)^shape)
  log2,      ///< floor - scale log t
  powexp,    ///< floor + scale t^-rate exp(-decay t)
};
inline constexpr std::array kFamilies{Family::pow2,     Family::pow3, Family::pow4, Family::exp3,
                                      Family::weibull4, Family::mmf4, Family::log2, Family::powexp};
inline constexpr int kMaxParameters = 4;

/// "pow3" and so on.
[[nodiscard]] std::string_view name(Family family) noexcept;
/// Throws InputError naming the text and the known families.
[[nodiscard]] Family family_named(std::string_view text);
/// "floor", "scale", "rate": as many as the family has.
[[nodiscard]] std::span<const std::string_view> parameter_names(Family family) noexcept;

/// One curve; parameters past the family's own are 0.
struct Curve {
  Family family = Family::pow3;
  std::array<double, kMaxParameters> parameters{};
};

/// Loss of the curve at `step`.
[[nodiscard]] double evaluate(const Curve& curve, double step) noexcept;

/// Many curves of one family as columns: `parameters[k]` holds the k-th parameter of each curve.
struct CurvesView {
  Family family = Family::pow3;
  std::array<std::span<const double>, kMaxParameters> parameters{};
};

/// out(i, j) = loss of curve i at steps[j]. Throws InputError on columns of different length or an
/// `out` of another shape.
void evaluate_batch(const CurvesView& curves, std::span<const double> steps, MutableRowsView out,
                    const Execution& execution = {});

}  // namespace glidepath
#pragma GCC visibility pop
