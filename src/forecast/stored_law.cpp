// SPDX-License-Identifier: Apache-2.0
#include "forecast/stored_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "common/require.hpp"

namespace glidepath::detail {
namespace {

/// Throws InputError unless the numbers can be those of a law: all that is computed from one is
/// then finite and in order.
void validate(const Law& law) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) refuse("forecast: this is not a stored forecast, ", what);
  };
  const auto not_negative = [](double x) { return x >= 0 && is_location(x); };
  const auto ahead = [](double x) { return x > 0 && std::isfinite(x); };
  const auto every = [](const std::vector<double>& column, auto holds) {
    return std::ranges::all_of(column, holds);
  };
  const Coordinate& c = law.coordinate;
  const Mixture& m = law.mixture;
  require(std::abs(c.sign) == 1, "its sign is neither 1 nor -1");
  require(ahead(c.unit) && std::isfinite(c.offset), "its unit or offset cannot be");
  require(c.floor <= c.ceiling, "its floor is above its ceiling");
  constexpr double kLargest = std::numeric_limits<double>::max();
  require(c.floor <= kLargest && c.ceiling >= -kLargest, "no value lies within its bounds");
  require(std::isfinite(law.step_shift), "its shift is not finite");
  require(not_negative(law.noise), "its noise cannot be");
  require(is_location(law.lowest) && is_location(law.highest),
          "its lowest or highest value cannot be");
  require(law.lowest <= law.highest, "its lowest value is above its highest");
  require(not_negative(law.before), "its steps before the log cannot be");
  require(every(law.knots, [&](double knot) { return ahead(knot - law.before); }),
          "a knot is not positive");
  require(std::ranges::adjacent_find(law.knots, std::greater_equal{}) == law.knots.end(),
          "its knots do not increase");
  require(every(law.stretch, is_scale), "a stretch cannot be");
  require(m.degrees >= kMinDegrees && is_location(m.degrees), "its degrees of freedom cannot be");
  const double sum = std::accumulate(m.weight.begin(), m.weight.end(), 0.0);
  require(every(m.weight, not_negative) && std::abs(sum - 1) < 1e-6, "its weights are no shares");
  require(every(m.location, is_location), "a location cannot be");
  require(every(m.scale, is_scale), "a scale cannot be");
}

/// The numbers and the columns of a law, in the order in which they are stored.
struct Parts {
  std::array<double*, 11> numbers;
  std::array<std::vector<double>*, 5> columns;
};
Parts parts_of(Law& law) {
  Coordinate& c = law.coordinate;
  Mixture& m = law.mixture;
  return {{&c.sign, &c.unit, &c.offset, &c.floor, &c.ceiling, &law.step_shift, &law.before,
           &law.noise, &law.lowest, &law.highest, &m.degrees},
          {&law.knots, &law.stretch, &m.weight, &m.location, &m.scale}};
}

}  // namespace

std::vector<double> pack_law(const Law& law) {
  Law copy = law;
  const Parts parts = parts_of(copy);
  std::vector<double> numbers{static_cast<double>(law.knots.size()),
                              static_cast<double>(law.mixture.components),
                              law.coordinate.logarithmic ? 1.0 : 0.0};
  for (const double* number : parts.numbers) numbers.push_back(*number);
  for (const auto* column : parts.columns) {
    numbers.insert(numbers.end(), column->begin(), column->end());
  }
  return numbers;
}

Law unpack_law(std::span<const double> numbers) {
  Law law;
  const Parts parts = parts_of(law);
  const auto size = static_cast<double>(numbers.size()), head = 3.0 + parts.numbers.size();
  const double knots = size > head ? numbers[0] : 0, components = size > head ? numbers[1] : 0;
  if (!(knots >= 1 && components >= 1) || knots != std::floor(knots) ||
      components != std::floor(components) ||
      size != head + 2 * knots + components + 2 * knots * components) {
    refuse("forecast: these ", numbers.size(), " numbers are not a stored forecast");
  }
  law.mixture.queries = static_cast<std::size_t>(knots);
  law.mixture.components = static_cast<std::size_t>(components);
  law.coordinate.logarithmic = numbers[2] != 0;
  auto next = numbers.begin() + 3;
  for (double* number : parts.numbers) *number = *next++;
  const double cells = knots * components;
  const std::array sizes{knots, knots, components, cells, cells};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
    parts.columns[i]->assign(next, end);
    next = end;
  }
  validate(law);
  return law;
}

}  // namespace glidepath::detail
