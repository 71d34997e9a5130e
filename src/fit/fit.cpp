// SPDX-License-Identifier: Apache-2.0
#include "glidepath/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/interrupt.hpp"
#include "common/least_squares.hpp"
#include "common/names.hpp"
#include "common/numbers.hpp"
#include "common/parallel.hpp"
#include "common/views.hpp"
#include "curve/families.hpp"
#include "fit/end_of_curve.hpp"
#include "fit/kernels.hpp"
#include "fit/low_rank.hpp"
#include "fit/problem.hpp"
#include "trace/counted.hpp"
#include "trace/naming_trace.hpp"

namespace glidepath {
namespace {

using detail::Problem;

constexpr std::ptrdiff_t kRowsTogether = 64;
// Share of the largest weight below which AICc takes a residual for an exact fit.
constexpr double kMinWeight = 1e-20;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr detail::Names<kFitStatuses.size()> kStatusNames{
    "converged", "iteration_limit", "too_few_points", "flat", "not_finite", "poor"};
constexpr detail::Names<3> kRobustNames{"none", "huber", "cauchy"};
constexpr detail::Names<2> kSolverNames{"closed_form", "ceres"};

/// Whether the closed-form engine fits, and not Ceres.
bool closed_form(const FitOptions& options) {
  return options.solver == Solver::closed_form && options.robust == Robust::none;
}

/// Whether a family has a level that it comes down to: log2 falls on and on.
bool levels_off(Family family) {
  return detail::with_family(family,
                             []<class Unit>(Unit) { return Unit::kHasFloor && Unit::kShapes > 0; });
}

void validate(const FitOptions& options) {
  if (options.family && std::ranges::find(kFamilies, *options.family) == kFamilies.end()) {
    detail::refuse("fit: family is value ", static_cast<int>(*options.family), ", expected one of ",
                   detail::listed(kFamilies, [](Family family) { return name(family); }));
  }
  detail::refuse_unnamed(kRobustNames, options.robust, "fit: robust");
  detail::refuse_unnamed(kSolverNames, options.solver, "fit: solver");
  if (std::isnan(options.lowest_floor) || options.lowest_floor > 1e300) {
    detail::refuse("fit: lowest_floor is ", options.lowest_floor, ", expected at most 1e300");
  }
  if (options.family && std::isfinite(options.lowest_floor) && !levels_off(*options.family)) {
    detail::refuse("fit: lowest_floor is for a family that levels off, '", name(*options.family),
                   "' does not");
  }
  if (std::isnan(options.from_step)) detail::refuse("fit: from_step is nan, expected a step");
  if (options.starts.value_or(1) < 1) {
    detail::refuse("fit: starts is ", *options.starts, ", expected at least 1");
  }
  if (options.robust != Robust::none) detail::require_ceres("fit: a robust loss");
  if (closed_form(options) && options.starts) {
    detail::refuse("fit: starts is for the solver 'ceres' and robust losses");
  }
  if (options.solver == Solver::ceres) detail::require_ceres("fit: the solver 'ceres'");
}

/// What `validate` refuses, looked for by vectors first.
void require_valid(const TraceView& trace) {
  const bool plain = trace.weight.empty() && trace.loss.size() == trace.step.size() &&
                     (trace.lr.empty() || trace.lr.size() == trace.step.size()) &&
                     (trace.step.empty() ||
                      (detail::is_step(trace.step.front()) && detail::is_step(trace.step.back())));
  if (!plain ||
      !detail::kernels().increasing(trace.step.data(), static_cast<int>(trace.step.size()))) {
    validate(trace);
  }
  if (trace.weight.empty()) return;
  const double largest = std::ranges::max(trace.weight);
  if (!(largest >= kMinWeight)) {
    detail::refuse("fit: the largest weight is ", largest, ", expected at least ", kMinWeight);
  }
}

/// A fit without numbers.
Fit unfitted(Family family, FitStatus status, const TraceView& trace) {
  Fit fit;
  fit.curve.family = family;
  fit.status = status;
  const std::size_t count = parameter_names(family).size();
  for (std::size_t k = 0; k < count; ++k) {
    fit.curve.parameters[k] = fit.standard_error[k] = kNaN;
    for (std::size_t j = 0; j < count; ++j) fit.covariance[k * kMaxParameters + j] = kNaN;
  }
  fit.sigma = fit.rss = kNaN;
  fit.points = static_cast<int>(trace.step.size());
  if (!trace.step.empty()) fit.last_step = trace.step.back();
  return fit;
}

/// floor alone; a family without one takes its slowest decay.
Fit flat(const Problem& problem) {
  Fit fit = unfitted(problem.family, FitStatus::flat, {problem.step, problem.loss, {}});
  detail::with_family(problem.family, [&]<class Unit>(Unit) {
    const auto axes = Unit::axes(problem.range);
    std::array<double, 2> z{};
    for (int j = 0; j < Unit::kShapes; ++j) z[j] = Unit::kHasFloor ? axes[j].from : axes[j].lower;
    const auto shapes = Unit::shapes(z.data(), problem.range);
    for (int j = 0; j < Unit::kShapes; ++j) {
      fit.curve.parameters[detail::kFirstShape<Unit> + j] = shapes.q[j];
    }
    if (Unit::kHasFloor) fit.curve.parameters[1] = 0.0;
    fit.curve.parameters[0] = problem.loss[0];
  });
  fit.standard_error = {};
  fit.covariance = {};
  fit.sigma = fit.rss = 0.0;
  return fit;
}

TraceView without_first(TraceView trace, std::size_t points) {
  return {trace.step.subspan(points), trace.loss.subspan(points),
          trace.weight.empty() ? trace.weight : trace.weight.subspan(points)};
}

/// The trace without the first steps, which `family` cannot see: there is no t^-rate at t <= 0.
TraceView visible(Family family, TraceView trace) {
  const auto from = detail::with_family(family, [&]<class Unit>(Unit) {
    return std::ranges::find_if(trace.step, Unit::sees) - trace.step.begin();
  });
  return without_first(trace, static_cast<std::size_t>(from));
}

/// A valid trace without the points before `step`.
TraceView from(double step, TraceView trace) {
  const auto first = std::ranges::lower_bound(trace.step, step) - trace.step.begin();
  return without_first(trace, static_cast<std::size_t>(first));
}

/// What sets the boxes of the shapes. A family that sees a step of 0, yet takes logarithms, gets
/// the next two.
detail::StepRange range_of(Family family, std::span<const double> step) {
  const std::size_t from = family != Family::exp3 && step.size() > 2 && step[0] == 0.0 ? 1 : 0;
  return {step[from], step[from + 1], step.back()};
}

/// One family on a valid trace.
Fit fit_family(Family family, TraceView trace, const FitOptions& options, Isa isa) {
  const std::size_t parameters = parameter_names(family).size();
  trace = visible(family, trace);
  const auto [lowest, highest, above_last, finite] =
      detail::kernels(isa).extent(trace.loss.data(), static_cast<int>(trace.loss.size()));
  if (!finite) return unfitted(family, FitStatus::not_finite, trace);
  if (trace.step.size() < parameters) {
    return unfitted(family, FitStatus::too_few_points, trace);
  }
  Problem problem{.family = family, .step = trace.step, .loss = trace.loss, .weight = trace.weight};
  problem.range = range_of(family, trace.step);
  const double largest = std::max(std::abs(lowest), std::abs(highest));
  if (highest - lowest <= 4.0 * std::numeric_limits<double>::epsilon() * largest) {
    return flat(problem);
  }
  const bool has_floor =
      detail::with_family(family, []<class Unit>(Unit) { return Unit::kHasFloor; });
  // Most points lie near the last one: about it they keep their digits, whatever the first did.
  problem.centre = has_floor ? trace.loss.back() : 0.0;
  problem.above_last = above_last;
  problem.spread = has_floor ? 0.5 * (highest - lowest) : largest;
  problem.lowest_floor = (options.lowest_floor - problem.centre) / problem.spread;
  // Losses so large or so near to each other that their differences are no numbers.
  if (!std::isfinite(problem.spread) || !std::isfinite(1 / problem.spread)) {
    return unfitted(family, FitStatus::not_finite, trace);
  }
  const bool closed = closed_form(options);
  const detail::Solution solution = closed ? detail::solve_in_closed_form(problem, isa)
                                           : detail::solve_by_ceres(problem, options);
  Fit fit = detail::summarise(problem, solution);
  const std::span<const double> numbers(fit.curve.parameters.data(), parameters);
  // Steps that are all but equal may show no engine a curve.
  const bool numbered = std::isfinite(solution.rss) &&
                        std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); }) &&
                        std::isfinite(evaluate(fit.curve, trace.step.front())) &&
                        std::isfinite(evaluate(fit.curve, trace.step.back()));
  return numbered ? fit : unfitted(family, FitStatus::not_finite, trace);
}

/// The best family by AICc. Too few points for any AICc (which needs parameters + 3): the smaller
/// residual of the two-parameter families.
Fit choose(TraceView trace, const FitOptions& options, Isa isa) {
  const TraceView common = visible(Family::pow3, trace);  // scores compare on the same points only
  Fit best = unfitted(Family::pow3, FitStatus::too_few_points, common);
  bool found = false;
  std::vector<FitScore> scores;
  for (const Family family : kFamilies) {
    const std::size_t parameters = parameter_names(family).size();
    const bool scored = common.step.size() >= parameters + 3;
    if (!scored && !(parameters == 2 && common.step.size() >= 3)) {
      scores.push_back({.family = family});
      continue;
    }
    Fit fit = fit_family(family, common, options, isa);
    scores.push_back({.family = family, .aicc = fit.aicc, .status = fit.status});
    const bool unfit = fit.status == FitStatus::not_finite && !found;  // as the others will be
    if (unfit || fit.status == FitStatus::flat) {
      best = fit_family(Family::pow3, common, options, isa);
      if (best.status == FitStatus::too_few_points) best = std::move(fit);
      break;
    }
    if (!found || fit.aicc < best.aicc || (!scored && fit.rss < best.rss)) best = std::move(fit);
    found = true;
  }
  best.scores = std::move(scores);
  return best;
}

Fit fit_valid(const TraceView& trace, const FitOptions& options, Isa isa) {
  detail::check_interrupt();
  const detail::Counted counted(trace);
  const TraceView kept = from(options.from_step, counted.view());
  return options.family ? fit_family(*options.family, kept, options, isa)
                        : choose(kept, options, isa);
}

}  // namespace

std::string_view name(FitStatus status) noexcept { return detail::name_in(kStatusNames, status); }

bool usable(FitStatus status) noexcept {
  return status == FitStatus::converged || status == FitStatus::iteration_limit ||
         status == FitStatus::flat;
}

std::string_view name(Robust robust) noexcept { return detail::name_in(kRobustNames, robust); }

Robust robust_named(std::string_view text) {
  return detail::value_named<Robust>(kRobustNames, text, "fit: robust is '",
                                     "', expected huber or cauchy");
}

std::string_view name(Solver solver) noexcept { return detail::name_in(kSolverNames, solver); }

Solver solver_named(std::string_view text) {
  return detail::value_named<Solver>(kSolverNames, text, "fit: solver is '",
                                     "', expected closed_form or ceres");
}

Fit fit(TraceView trace, const FitOptions& options) {
  validate(options);
  require_valid(trace);
  return fit_valid(trace, options, Isa::best);
}

std::vector<Fit> fit_batch(std::span<const TraceView> traces, const FitOptions& options,
                           const Execution& execution) {
  validate(options);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    detail::naming_trace("fit_batch", i, traces.size(), [&] { require_valid(traces[i]); });
  }
  std::vector<Fit> fits(traces.size());
  detail::for_each_block(traces.size(), 16, execution,
                         [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                           for (std::ptrdiff_t i = begin; i < end; ++i)
                             fits[i] = fit_valid(traces[i], options, execution.isa);
                         });
  return fits;
}

FitBatch fit_batch(std::span<const double> step, RowsView loss, const FitOptions& options,
                   const Execution& execution) {
  detail::check(execution);
  validate(options);
  if (!options.family) detail::refuse("fit: a shared-step batch needs a family");
  if (loss.rows() < 0) detail::refuse("fit: rows is ", loss.rows(), ", expected 0 or more");
  const auto m = static_cast<std::size_t>(loss.rows()), n = step.size();
  if (static_cast<std::size_t>(loss.cols()) != n) {
    detail::refuse("fit: ", n, " steps, but rows of ", loss.cols(), " losses");
  }
  detail::require_numbers(loss, "fit: loss");
  FitBatch out;
  out.family = *options.family;
  const std::size_t parameters = parameter_names(out.family).size();
  for (std::size_t k = 0; k < parameters; ++k) out.parameters[k].resize(m);
  out.sigma.resize(m);
  out.status.resize(m);
  if (m == 0) return out;
  const auto row = [&](std::ptrdiff_t i) { return TraceView{step, loss.row(i), {}}; };
  require_valid(row(0));
  // Whether a row takes the short way is decided by the grid and that row.
  const bool plain = closed_form(options);
  const TraceView seen = visible(out.family, from(options.from_step, row(0)));
  const auto grid = plain ? detail::low_rank_grid(out.family, seen.step, execution.isa) : nullptr;
  const detail::EndOfCurve end_of_curve(out.family, seen.step);
  const auto fit_block = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    std::array<std::uint8_t, kRowsTogether> stands{};
    if (grid != nullptr) {
      detail::low_rank_kernels(execution.isa)
          .fit(*grid, loss.row(begin).data() + (n - seen.step.size()), loss.stride(),
               static_cast<int>(end - begin), options.lowest_floor,
               {&out.parameters[0][begin], &out.parameters[1][begin], &out.parameters[2][begin],
                &out.sigma[begin], stands.data()});
    }
    for (std::ptrdiff_t i = begin; i < end; ++i) {
      if (stands[i - begin] != 0) {
        Curve curve{.family = out.family};
        for (std::size_t k = 0; k < parameters; ++k) curve.parameters[k] = out.parameters[k][i];
        const auto losses_of_row = row(i).loss.subspan(n - seen.step.size());
        out.status[i] =
            end_of_curve.misses(curve, losses_of_row) ? FitStatus::poor : FitStatus::converged;
        continue;
      }
      const Fit fit = fit_valid(row(i), options, execution.isa);
      for (std::size_t k = 0; k < parameters; ++k) out.parameters[k][i] = fit.curve.parameters[k];
      out.sigma[i] = fit.sigma;
      out.status[i] = fit.status;
    }
  };
  detail::for_each_block(m, kRowsTogether, execution, fit_block);
  return out;
}

}  // namespace glidepath
