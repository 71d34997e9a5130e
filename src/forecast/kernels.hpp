// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace glidepath::detail {

inline constexpr std::size_t kPaths = 8;     // of a component that are followed at once
inline constexpr std::size_t kMaxLanes = 8;  // columns are padded to a multiple of it

/// A component of a mixture of t_3, by `step` = 1 / (sqrt(3) scale): `each` is its part of F in
/// units of 1 / pi, the others of its derivatives.
struct Component {
  double location, step, each, density, slope, bend;
};
/// F and its derivatives at each x.
struct Derivatives {
  double *cdf, *density, *slope, *bend;
};

/// The loops over shapes, levels and paths. Nothing is summed across the lanes of a vector, so that
/// every instruction set gives the same bytes.
struct ForecastKernels {
  /// out = exp(-b log(x + d))
  void (*power)(std::size_t n, const double* log_x, double b, double* out);
  /// out = exp(-(b x)^k)
  void (*weibull)(std::size_t n, const double* log_x, double log_b, double k, double* out);
  /// out = 1 / (1 + (x / half)^b)
  void (*hill)(std::size_t n, const double* log_x, double log_half, double b, double* out);
  /// Each of `stride` shapes to mean 0 and sd 1 over the first `bins` of the points; `largest` is
  /// scratch.
  void (*standardise)(std::size_t stride, std::size_t points, std::size_t bins, double* value,
                      double* mean, double* deviation, double* largest);

  /// The filter over all shapes at once: e = f - state, v = e / sqrt(S), state += gain e.
  void (*whiten)(std::size_t bins, std::size_t stride, const double* basis, const double* gain,
                 const double* inverse_sd, const double* o, double* state, double* v, double* ov);
  /// Takes the part along o out of v: v -= mean o, and <v,v>.
  void (*centre)(std::size_t bins, std::size_t stride, const double* mean, const double* o,
                 double* v, double* vv);
  /// <column, v> of every shape, both already without their part along o.
  void (*project)(std::size_t bins, std::size_t stride, const double* v, const double* column,
                  double* sum);

  /// Extreme quantiles of the components at each level, into `low` and `high`.
  void (*bracket)(std::size_t count, const double* unit, std::size_t components,
                  const double* location, const double* scale, double* low, double* high);
  /// Mixture of t_3 at each x.
  void (*mixture)(std::size_t count, const double* x, std::size_t components,
                  const Component* component, Derivatives out);
  /// A step to the quantile at each level by Householder's method of the fourth order, from x and
  /// the derivatives there, within `low` and `high`, which it moves; half of the way between them
  /// where that leads out. `found` is 1 where the step was one of the method within `tolerance`, or
  /// none but rounding.
  void (*search_step)(std::size_t count, const double* level, Derivatives at, double tolerance,
                      double* x, double* low, double* high, double* found);

  /// Multiplies the survival of each of kPaths paths of a component by the chance that the
  /// observations of a cell, with t_8 noise around it, all stay above the target: `count` of them
  /// where the cell ends, `count_before` where it began. `log_above` is the log chance of one
  /// there.
  void (*pass)(const double* unit, double location, double scale, double highest, double target,
               double inverse_noise, double count_before, double count, double* log_above,
               double* log_survival, double* survival);
};

[[nodiscard]] const ForecastKernels& forecast_kernels();

}  // namespace glidepath::detail
