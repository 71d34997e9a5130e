// SPDX-License-Identifier: Apache-2.0
#include "glidepath/curve.hpp"

#include <algorithm>
#include <string>

#include "common/parallel.hpp"
#include "common/require.hpp"
#include "curve/families.hpp"

namespace glidepath {
namespace {

template <class Unit>
double value(const double* parameters, double step) {
  const double scaled = parameters[detail::kFirstShape<Unit> - 1] *
                        detail::basis<Unit>(parameters + detail::kFirstShape<Unit>, step);
  return Unit::kHasFloor ? parameters[0] + scaled : scaled;
}

}  // namespace

std::string_view name(Family family) noexcept {
  return detail::with_family(family, []<class Unit>(Unit) { return Unit::kName; });
}

Family family_named(std::string_view text) {
  std::string known;
  for (const Family family : kFamilies) {
    if (name(family) == text) return family;
    known += (known.empty() ? "" : ", ") + std::string(name(family));
  }
  detail::refuse("fit: unknown family '", text, "', expected one of ", known);
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

void evaluate_batch(const CurvesView& curves, std::span<const double> steps, Eigen::Ref<Rows> out,
                    const Execution& execution) {
  const auto names = parameter_names(curves.family);
  const std::size_t m = curves.parameters[0].size();
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (curves.parameters[k].size() != m) {
      detail::refuse("evaluate: ", m, " values of ", names[0], ", but ",
                     curves.parameters[k].size(), " of ", names[k]);
    }
  }
  if (static_cast<std::size_t>(out.rows()) != m ||
      static_cast<std::size_t>(out.cols()) != steps.size()) {
    detail::refuse("evaluate: out is ", out.rows(), " x ", out.cols(), ", expected ", m, " x ",
                   steps.size());
  }
  detail::with_family(curves.family, [&]<class Unit>(Unit) {
    detail::for_each_block(static_cast<std::ptrdiff_t>(m), 16, execution,
                           [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                             for (std::ptrdiff_t i = begin; i < end; ++i) {
                               std::array<double, kMaxParameters> p{};
                               for (std::size_t k = 0; k < names.size(); ++k)
                                 p[k] = curves.parameters[k][i];
                               for (std::size_t j = 0; j < steps.size(); ++j) {
                                 out(i, static_cast<Eigen::Index>(j)) =
                                     value<Unit>(p.data(), steps[j]);
                               }
                             }
                           });
  });
}

}  // namespace glidepath
