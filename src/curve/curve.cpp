// SPDX-License-Identifier: Apache-2.0
#include "glidepath/curve.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/names.hpp"
#include "common/parallel.hpp"
#include "common/views.hpp"
#include "curve/evaluate_kernels.hpp"
#include "curve/families.hpp"

namespace glidepath {
namespace {

template <class Unit>
double value(const double* parameters, double step) {
  const double scaled = parameters[detail::kFirstShape<Unit> - 1] *
                        detail::basis<Unit>(parameters + detail::kFirstShape<Unit>, step);
  return Unit::kHasFloor ? parameters[0] + scaled : scaled;
}

/// What all rows share: logarithms, and whether the steps or their logarithms are evenly spaced to
/// the last digits.
struct Grid {
  bool plain = true;  ///< positive and finite, so that logarithms are
  bool even_steps = false, even_logs = false;
  double lowest = 0, highest = 0;
  std::vector<double> log_step;
};

bool evenly_spaced(std::span<const double> x) {
  if (x.size() < 64) return false;
  const double gap = (x.back() - x.front()) / static_cast<double>(x.size() - 1);
  const double digits = 2e-15 * std::max(std::abs(x.front()), std::abs(x.back()));
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (!(std::abs(x[j] - (x.front() + static_cast<double>(j) * gap)) <= digits)) return false;
  }
  return gap > 0;
}

Grid grid_of(const detail::EvaluateKernels& run, std::span<const double> steps) {
  Grid grid;
  for (const double t : steps) grid.plain = grid.plain && t > 1e-300 && t < 1e300;
  if (!grid.plain) return grid;
  const auto [lowest, highest] = std::ranges::minmax_element(steps);
  grid.lowest = *lowest;
  grid.highest = *highest;
  grid.log_step.resize(steps.size());
  run.logs(steps.data(), static_cast<int>(steps.size()), grid.log_step.data());
  grid.even_steps = evenly_spaced(steps);
  grid.even_logs = evenly_spaced(grid.log_step);
  return grid;
}

/// Whether the exponents of a curve, which are monotone in t, stay where the kernels are exact.
template <class Unit>
bool tame(const double* p, const Grid& grid) {
  for (int k = 0; k < detail::kParameterCount<Unit>; ++k) {
    if (!std::isfinite(p[k])) return false;
  }
  if constexpr (Unit::kShapes == 0) return true;
  constexpr int kFirst = detail::kFirstShape<Unit>;
  if (Unit::kFamily == Family::weibull4 || Unit::kFamily == Family::mmf4) {
    if (!(p[kFirst] > 1e-300 && p[kFirst] < 1e300)) return false;
    const double most = std::abs(p[kFirst + 1]) * std::max(std::abs(std::log(grid.lowest)),
                                                           std::abs(std::log(grid.highest))) +
                        std::abs(p[kFirst + 1] * std::log(p[kFirst]));
    if (!(most < 700.0)) return false;
  }
  if (Unit::kFamily == Family::pow4 && !(grid.lowest + p[kFirst + 1] > 1e-300)) return false;
  if constexpr (Unit::kShapes > 0) {
    const double first = Unit::exponent(p + kFirst, grid.lowest);
    const double last = Unit::exponent(p + kFirst, grid.highest);
    return std::abs(first) < 650.0 && std::abs(last) < 650.0;
  }
  return true;
}

}  // namespace

std::string_view name(Family family) noexcept {
  if (std::ranges::find(kFamilies, family) == kFamilies.end()) return detail::kNoName;
  return detail::with_family(family, []<class Unit>(Unit) { return Unit::kName; });
}

Family family_named(std::string_view text) {
  const auto spelled = [](Family family) { return name(family); };
  const auto found = std::ranges::find(kFamilies, text, spelled);
  if (found != kFamilies.end()) return *found;
  detail::refuse("fit: family is '", text, "', expected one of ",
                 detail::listed(kFamilies, spelled));
}

std::span<const std::string_view> parameter_names(Family family) noexcept {
  return detail::with_family(family, []<class Unit>(Unit) {
    return std::span<const std::string_view>(Unit::kParameters);
  });
}

double evaluate(const Curve& curve, double step) noexcept {
  return detail::with_family(
      curve.family, [&]<class Unit>(Unit) { return value<Unit>(curve.parameters.data(), step); });
}

void evaluate_batch(const CurvesView& curves, std::span<const double> steps, MutableRowsView out,
                    const Execution& execution) {
  detail::check(execution);
  const auto names = parameter_names(curves.family);
  const std::size_t m = curves.parameters[0].size();
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (curves.parameters[k].size() != m) {
      detail::refuse("evaluate: ", names[k], " has ", curves.parameters[k].size(),
                     " values, expected ", m, " as ", names[0], " has");
    }
  }
  for (std::size_t k = names.size(); k < curves.parameters.size(); ++k) {
    if (curves.parameters[k].empty()) continue;
    detail::refuse("evaluate: column ", k + 1, " has ", curves.parameters[k].size(),
                   " values, expected none, as ", name(curves.family), " has ", names.size(),
                   " parameters");
  }
  if (static_cast<std::size_t>(out.rows()) != m ||
      static_cast<std::size_t>(out.cols()) != steps.size()) {
    detail::refuse("evaluate: out is ", out.rows(), " x ", out.cols(), ", expected ", m, " x ",
                   steps.size());
  }
  detail::require_numbers(out, "evaluate: out");
  if (m == 0 || steps.empty()) return;
  const detail::EvaluateKernels& run = detail::evaluate_kernels(execution.isa);
  const Grid grid = grid_of(run, steps);
  // The bytes are the same.
  const bool large = m * steps.size() * sizeof(double) > (std::size_t{4} << 20);
  const detail::Store store = large ? detail::Store::streamed : detail::Store::cached;
  const auto n = static_cast<int>(steps.size());
  detail::with_family(curves.family, [&]<class Unit>(Unit) {
    constexpr std::size_t kCount = detail::kParameterCount<Unit>;
    detail::for_each_block(m, 64, execution, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      for (std::ptrdiff_t i = begin; i < end; ++i) {
        std::array<double, kMaxParameters> p{};
        for (std::size_t k = 0; k < kCount; ++k) p[k] = curves.parameters[k][i];
        double* row = out.row(i).data();
        if (!grid.plain || !tame<Unit>(p.data(), grid)) {
          for (std::size_t j = 0; j < steps.size(); ++j) {
            row[j] = value<Unit>(p.data(), steps[j]);
          }
          continue;
        }
        constexpr bool kPower = Unit::kFamily == Family::pow2 || Unit::kFamily == Family::pow3;
        if (kPower && grid.even_logs) {
          constexpr int kScale = Unit::kHasFloor ? 1 : 0;
          run.even(Unit::kHasFloor ? p[0] : 0.0, p[kScale], p[kScale + 1], grid.log_step.data(), n,
                   store, row);
        } else if (Unit::kFamily == Family::exp3 && grid.even_steps) {
          run.even(p[0], p[1], p[2], steps.data(), n, store, row);
        } else {
          run.row(Unit::kFamily, p.data(), steps.data(), grid.log_step.data(), n, row);
        }
      }
    });
  });
}

}  // namespace glidepath
