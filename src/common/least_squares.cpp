// SPDX-License-Identifier: Apache-2.0
// The only file that knows Ceres. Its CHECKs end the process, so everything they look at is
// refused or repaired here first.
#include "common/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>

#include <ceres/cost_function.h>
#include <ceres/iteration_callback.h>
#include <ceres/loss_function.h>
#include <ceres/manifold.h>
#include <ceres/problem.h>
#include <ceres/solver.h>
#include <glog/logging.h>

#include "common/interrupt.hpp"
#include "common/require.hpp"

namespace glidepath::detail {
namespace {

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

/// Residuals begin..end-1 of a problem.
class ResidualBlock : public ceres::CostFunction {
 public:
  ResidualBlock(const LeastSquares& problem, int begin, int end)
      : problem_(problem), begin_(begin), end_(end) {
    set_num_residuals(end - begin);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(problem.lower.size()));
  }
  bool Evaluate(double const* const* p, double* r, double** jacobian) const override {
    double* derivatives = jacobian != nullptr ? jacobian[0] : nullptr;
    if (!problem_.evaluate(p[0], begin_, end_, r, derivatives)) return false;
    if (!all_finite({r, static_cast<std::size_t>(num_residuals())})) return false;
    // An accepted point whose derivatives overflow would end the solve with a line on stderr.
    for (std::size_t i = 0; derivatives != nullptr && i < num_residuals() * problem_.lower.size();
         ++i) {
      if (!std::isfinite(derivatives[i])) derivatives[i] = 0.0;
    }
    return true;
  }

 private:
  const LeastSquares& problem_;
  int begin_, end_;
};

/// Asks after each iteration whether to go on; no exception may pass through Ceres.
class AskWhetherToGoOn : public ceres::IterationCallback {
 public:
  ceres::CallbackReturnType operator()(const ceres::IterationSummary&) override {
    try {
      check_interrupt();
    } catch (...) {
      thrown = std::current_exception();
      return ceres::SOLVER_ABORT;
    }
    return ceres::SOLVER_CONTINUE;
  }
  std::exception_ptr thrown{};
};

/// The line search of Ceres writes its errors to stderr whatever the options say. So glog writes
/// nothing but what is fatal while a solve runs, wherever in the process that is. Builds of Ceres
/// without glog have a small copy of it, which has no such level.
class Quiet {
#ifdef GOOGLE_STRIP_LOG
 public:
  Quiet() {
    const std::lock_guard lock(mutex_);
    if (solves_++ > 0) return;
    before_ = FLAGS_minloglevel;
    FLAGS_minloglevel = google::GLOG_FATAL;
  }
  ~Quiet() {
    const std::lock_guard lock(mutex_);
    if (--solves_ == 0) FLAGS_minloglevel = before_;
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  static inline std::mutex mutex_{};
  static inline int solves_ = 0, before_ = 0;
#endif
};

std::unique_ptr<ceres::LossFunction> loss(const LeastSquaresOptions& options) {
  if (options.rho == Rho::huber) return std::make_unique<ceres::HuberLoss>(options.rho_scale);
  if (options.rho == Rho::cauchy) return std::make_unique<ceres::CauchyLoss>(options.rho_scale);
  return nullptr;
}

/// One solve from `from.parameters`; parameters with lower == upper are held.
LeastSquaresSolution solve(const LeastSquares& problem, LeastSquaresSolution from,
                           const LeastSquaresOptions& options) {
  std::vector<double>& p = from.parameters;
  ceres::Problem::Options ownership;
  ownership.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ownership.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::Problem model(ownership);
  const auto rho = loss(options);
  std::vector<std::unique_ptr<ResidualBlock>>
      blocks;  // a loss works on a block, so robust means row by row
  const int block = rho ? 1 : problem.residuals;
  for (int begin = 0; begin < problem.residuals; begin += block) {
    check_interrupt();
    blocks.push_back(std::make_unique<ResidualBlock>(problem, begin, begin + block));
    model.AddResidualBlock(blocks.back().get(), rho.get(), p.data());
  }
  std::vector<int> held;
  for (int j = 0; j < static_cast<int>(p.size()); ++j) {
    if (problem.lower[j] == problem.upper[j]) {
      held.push_back(j);
      continue;
    }
    if (std::isfinite(problem.lower[j]))
      model.SetParameterLowerBound(p.data(), j, problem.lower[j]);
    if (std::isfinite(problem.upper[j]))
      model.SetParameterUpperBound(p.data(), j, problem.upper[j]);
  }
  if (held.size() == p.size()) {
    model.SetParameterBlockConstant(p.data());
  } else if (!held.empty()) {
    model.SetManifold(p.data(), new ceres::SubsetManifold(static_cast<int>(p.size()), held));
  }

  // A start that cannot be evaluated would end the solve with a line on stderr.
  std::vector<double> r(problem.residuals);
  if (!problem.evaluate(p.data(), 0, problem.residuals, r.data(), nullptr) || !all_finite(r)) {
    return from;
  }

  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.logging_type = ceres::SILENT;
  solver.num_threads = 1;
  solver.max_num_iterations = 200;
  solver.max_num_consecutive_invalid_steps = 1000;  // 5 of them end the solve with a line on stderr
  // The defaults stop too early on the flat valleys of four-parameter curves.
  solver.function_tolerance = 1e-15;
  solver.parameter_tolerance = 1e-13;
  solver.gradient_tolerance = 1e-15;
  AskWhetherToGoOn ask;
  solver.callbacks.push_back(&ask);
  ceres::Solver::Summary summary;
  {
    [[maybe_unused]] const Quiet quiet;
    ceres::Solve(solver, &model, &summary);
  }
  if (ask.thrown) std::rethrow_exception(ask.thrown);

  from.cost = summary.final_cost;
  if (!std::isfinite(from.cost)) {
    from.status = LeastSquaresStatus::failed;
  } else if (summary.termination_type == ceres::CONVERGENCE) {
    from.status = LeastSquaresStatus::converged;
  } else if (summary.termination_type == ceres::NO_CONVERGENCE) {
    from.status = LeastSquaresStatus::iteration_limit;
  }
  return from;
}

}  // namespace

void require_ceres(std::string_view) {}

LeastSquaresSolution minimise(const LeastSquares& problem, std::span<const double> start,
                              const LeastSquaresOptions& options) {
  const std::size_t n = problem.lower.size();
  if (problem.residuals < 1 || n < 1 || problem.upper.size() != n || start.size() != n) {
    refuse("least squares: ", problem.residuals, " residuals, ", start.size(), " parameters, ", n,
           " lower and ", problem.upper.size(), " upper bounds");
  }
  if (!(options.rho_scale > 0.0)) {
    refuse("least squares: rho_scale is ", options.rho_scale, ", expected above 0");
  }
  LeastSquaresSolution solution;
  solution.parameters.assign(start.begin(), start.end());
  std::vector<double>& p = solution.parameters;
  for (std::size_t j = 0; j < n; ++j) {
    if (!(problem.lower[j] <= problem.upper[j])) {
      refuse("least squares: parameter ", j, " has no room between ", problem.lower[j], " and ",
             problem.upper[j]);
    }
    if (!std::isfinite(p[j])) return solution;
    p[j] = std::clamp(p[j], problem.lower[j], problem.upper[j]);
  }
  solution = solve(problem, std::move(solution), options);
  if (solution.status == LeastSquaresStatus::failed) return solution;

  // Ceres projects its steps onto the box, which can stall where a bound is active: the others are
  // solved again along the bound.
  LeastSquares along = problem;
  bool bound = false;
  for (std::size_t j = 0; j < n; ++j) {
    const double at = solution.parameters[j];
    if (problem.lower[j] < problem.upper[j] && (at == problem.lower[j] || at == problem.upper[j])) {
      along.lower[j] = along.upper[j] = at;
      bound = true;
    }
  }
  if (bound) {
    LeastSquaresSolution better = solve(along, solution, options);
    if (better.cost <= solution.cost) solution = std::move(better);
  }
  return solution;
}

}  // namespace glidepath::detail
