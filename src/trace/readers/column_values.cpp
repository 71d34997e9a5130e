// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/column_values.hpp"

#include <algorithm>

namespace glidepath::detail {
namespace {

constexpr double kTimeOfDay = 1e9;  // seconds above it are no run's: since 1970, of 2001 on
// Seconds that may be what each row took count from the beginning where there are at least so many
// of them, and the last are at least so many times the first.
constexpr std::size_t kMinTimes = 3;
constexpr double kMinGrowth = 2;

}  // namespace

std::vector<std::size_t> match(const std::vector<std::int64_t>& there,
                               const std::vector<double>& values,
                               const std::vector<std::int64_t>& rows, std::vector<double>& found) {
  std::vector<std::size_t> kept;
  if (rows.empty()) return kept;
  auto at = static_cast<std::size_t>(std::ranges::lower_bound(there, rows.front()) - there.begin());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    while (at < there.size() && there[at] < rows[i]) ++at;
    if (at == there.size()) break;
    if (there[at] != rows[i]) continue;
    kept.push_back(i);
    found.push_back(values[at]);
  }
  return kept;
}

Course course_of(const std::vector<double>& values) {
  Course course;
  for (std::size_t i = 1; i < values.size(); ++i) {
    course.rises += values[i] > values[i - 1];
    course.backs += values[i] < values[i - 1];
    course.stands += values[i] == values[i - 1];
  }
  return course;
}

bool counts_up(const std::vector<double>& values) {
  if (values.empty() || !std::ranges::all_of(values, is_whole)) return false;
  if (!std::isfinite(*std::ranges::max_element(values))) return false;
  const double lowest = *std::ranges::min_element(values);
  std::size_t strays = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    strays += values[i] < values[i - 1] && values[i] > lowest;
  }
  const Course course = course_of(values);
  return kRisesABack * strays <= course.rises && (course.rises > 0 || values.size() < 3);
}

bool goes_on(const std::vector<double>& values) {
  const Course course = course_of(values);
  const auto [fewer, more] = std::minmax(course.rises, course.backs);
  return values.size() < 2 || (more > 0 && kRisesABack * fewer <= more);
}

bool are_of_day(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double x) { return x > kTimeOfDay; });
}

bool goes_on_from_start(const std::vector<double>& values) {
  const Course course = course_of(values);
  const auto [fewer, more] = std::minmax(course.rises, course.backs);
  if (values.size() < kMinTimes || fewer > 0 || course.stands > more) return false;
  const auto [least, most] = std::ranges::minmax(values);
  return least >= 0 && most >= kMinGrowth * least && most > 0;
}

}  // namespace glidepath::detail
