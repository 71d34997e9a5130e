// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/curve.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/rows.hpp"
#include "glidepath/trace.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace glidepath {

enum class FitStatus : std::uint8_t {
  converged,
  iteration_limit,  ///< the best point when the iterations ran out
  too_few_points,   ///< fewer than the family has parameters; every number but aicc and bic is NaN
  flat,             ///< one constant value: floor alone, scale 0; of pow2, which has no floor, the
                    ///< value as scale and the slowest decay
  not_finite,       ///< a loss is NaN or infinite, or so is what the fit gives; every number but
                    ///< aicc and bic is NaN
  poor,             ///< converged, but the curve misses the end of the points: the mean residual
                    ///< of the last tenth (at least 5) is above 3 of its standard errors, and above
                    ///< 2 % of the descent, or the noise and 10 % of the descent since the first
                    ///< tenth
};
inline constexpr std::array kFitStatuses{FitStatus::converged,      FitStatus::iteration_limit,
                                         FitStatus::too_few_points, FitStatus::flat,
                                         FitStatus::not_finite,     FitStatus::poor};
/// "converged" and so on.
[[nodiscard]] std::string_view name(FitStatus status) noexcept;
/// Whether the curve may be used beyond its points. False where the parameters are no numbers
/// (too_few_points, not_finite), and for `poor`, whose numbers describe the past alone.
[[nodiscard]] bool usable(FitStatus status) noexcept;

/// What a residual costs: its square, or less once it is large, so that spikes count for little.
enum class Robust : std::uint8_t { none, huber, cauchy };
/// "none" and so on.
[[nodiscard]] std::string_view name(Robust robust) noexcept;
/// Throws InputError naming the text and the known losses.
[[nodiscard]] Robust robust_named(std::string_view text);

/// `closed_form` eliminates floor and scale and searches the shapes alone, with SIMD; `ceres` is
/// the reference for the same problem, tens of times slower. A robust loss always uses `ceres`.
enum class Solver : std::uint8_t { closed_form, ceres };
/// "closed_form" or "ceres".
[[nodiscard]] std::string_view name(Solver solver) noexcept;
/// Throws InputError naming the text and the known solvers.
[[nodiscard]] Solver solver_named(std::string_view text);

struct FitOptions {
  std::optional<Family> family{};  ///< empty: the best by AICc among those the points allow
  Robust robust = Robust::none;    ///< huber or cauchy for a log with spikes; slower
  double lowest_floor =
      -std::numeric_limits<double>::infinity();  ///< lowest value the metric can take
  Solver solver = Solver::closed_form;
  std::optional<int> starts{};  ///< how many of the best grid points Ceres starts from; empty = 4
  /// Points before this step are left out: a warm-up, or a start that no family follows.
  double from_step = -std::numeric_limits<double>::infinity();
};

/// How one family did in the choice by AICc.
struct FitScore {
  Family family = Family::pow3;
  double aicc = std::numeric_limits<double>::infinity();
  FitStatus status = FitStatus::too_few_points;
};

/// A fit that did not converge is an answer, not an exception: read `status`.
///
/// A parameter that rests on a bound (`at_bound`) counts as known there: its standard error and
/// covariances are 0. As many points as parameters leave no freedom: sigma is 0 and the standard
/// errors are infinite, as they are for parameters that the points do not tell apart.
struct Fit {
  Curve curve{};
  FitStatus status = FitStatus::too_few_points;
  std::array<double, kMaxParameters> standard_error{};
  std::array<double, kMaxParameters * kMaxParameters> covariance{};  ///< row-major
  std::array<bool, kMaxParameters> at_bound{};
  double sigma = 0;  ///< residual standard deviation: sqrt(rss / (points - parameters)), or the
                     ///< scale that the robust loss settled on
  double rss = 0;    ///< (weighted) residual sum of squares; for a robust loss 2 Σ ρ
  /// Infinite where the points do not give them, so that no choice falls on such a fit.
  double aicc = std::numeric_limits<double>::infinity();
  double bic = std::numeric_limits<double>::infinity();
  double last_step = 0;
  int points = 0;  ///< points used: from `from_step` on, and t > 0 for a family that needs it
  std::vector<FitScore> scores{};  ///< all families tried, when the family was chosen
};

/// Least-squares fit of one trace: minimises Σ weight (loss - curve)² over shapes > 0 (and
/// shift >= 0, floor >= lowest_floor), searching the whole range of shapes, not from one start.
/// Microseconds. Throws InputError on a broken TraceView, and where no weight is above 1e-20.
[[nodiscard]] Fit fit(TraceView trace, const FitOptions& options = {});

/// Entry i is fit(traces[i], options), whatever the threads. Throws InputError naming the trace.
[[nodiscard]] std::vector<Fit> fit_batch(std::span<const TraceView> traces,
                                         const FitOptions& options = {},
                                         const Execution& execution = {});

/// Fits of a batch as columns, one entry per curve.
struct FitBatch {
  Family family = Family::pow3;
  std::array<std::vector<double>, kMaxParameters> parameters{};
  std::vector<double> sigma{};
  std::vector<FitStatus> status{};
};

/// Fits every row of `loss` (m, n) over the shared `step` (n). `options.family` must be set.
[[nodiscard]] FitBatch fit_batch(std::span<const double> step, RowsView loss,
                                 const FitOptions& options, const Execution& execution = {});

/// Laws of the loss under any learning-rate schedule η(t), where S(t) = Σ η up to t:
///   annealing    floor + scale S^-rate - drop Σ_k (η_{k-1} - η_k) τ (1 - exp(-(t - k) / τ))
///                (Tissue, Wang and Wang 2024; their λ = exp(-1/τ), τ = `memory` steps)
///   multi_power  floor + scale S^-rate - drop Σ_k (η_{k-1} - η_k) (1 - (1 + speed x_k)^-shape),
///                x_k = η_k^-power (S(t) - S(k))   (Luo et al. 2025)
enum class ScheduleLawKind : std::uint8_t { annealing, multi_power };
/// "annealing" or "multi_power".
[[nodiscard]] std::string_view name(ScheduleLawKind kind) noexcept;
/// Throws InputError naming the text and the known laws.
[[nodiscard]] ScheduleLawKind schedule_law_named(std::string_view text);

struct ScheduleLaw {
  ScheduleLawKind kind = ScheduleLawKind::annealing;
  FitStatus status = FitStatus::too_few_points;
  double floor = 0, scale = 0, rate = 0, drop = 0;
  double memory = 0;                       ///< steps; annealing only
  double speed = 0, shape = 0, power = 0;  ///< multi_power only
  /// Steps of the warm-up from 0 to the first learning rate that a trace leaves out: S begins at
  /// η_first (t_first - warmup / 2), and the rise counts among the changes of η.
  double warmup = 0;
  double sigma = 0, rss = 0;
  int points = 0;
};

/// One law for several runs of one model that differ in schedule, by Ceres. Every trace needs `lr`.
/// Learning rates are taken as linear between logged steps. Throws InputError without `lr`, on a
/// broken trace or an unknown kind.
[[nodiscard]] ScheduleLaw fit_schedule_law(std::span<const Trace> traces, ScheduleLawKind kind);

/// Loss at each of `step` under the schedule `lr` (both as logged, from the first step on). Throws
/// InputError on columns that are broken, of different length or without a positive learning rate,
/// and on an unknown kind.
[[nodiscard]] std::vector<double> predict(const ScheduleLaw& law, std::span<const double> step,
                                          std::span<const double> lr);

}  // namespace glidepath
#pragma GCC visibility pop
