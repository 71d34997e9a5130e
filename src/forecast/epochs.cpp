// SPDX-License-Identifier: Apache-2.0
#include "forecast/epochs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "common/interpolate.hpp"
#include "common/statistics.hpp"
#include "forecast/clocks.hpp"
#include "forecast/predict.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMaxGroups = 512;  // of neighbouring points, in which falls are looked for
constexpr std::size_t kMinGroups = 40;
constexpr double kMinEpochPoints = 64;    // in the first epoch: fewer are an evaluation's
constexpr std::size_t kWindowShare = 16;  // a window on each side of a fall is 1 in so many
constexpr std::size_t kMinWindow = 6;
constexpr std::size_t kSkippedShare = 8;  // the first 1 in so many, where a run falls anyway
constexpr double kMinErrors = 6;          // standard errors that a fall has
constexpr double kMinError = 1e-9;        // of a fall between lines without noise
constexpr double kMinEpochFall = 0.04;    // of z
constexpr double kTolerance = 0.02;       // of an epoch, by which a fall may be beside its end
constexpr double kToleranceGroups = 2.5;  // or so many groups an epoch
constexpr double kMaxScheduled = 0.1;     // of the annealed fraction, soon after a fall
constexpr double kRateLag = 0.02;         // of the plan
constexpr double kNextFall = 0.9;         // of the mean of those seen
constexpr double kNextDeviation = 0.4;    // of the next falls together, over their mean
constexpr double kMaxAhead = 8;           // falls: none goes on for ever

/// Groups of neighbouring points, each as many.
struct Groups {
  std::vector<std::size_t> first{};  ///< point of each
  std::vector<double> z{};           ///< means
};

Groups groups_of(const Prepared& run) {
  const std::size_t points = run.z.size(), each = 1 + (points - 1) / kMaxGroups;
  Groups groups;
  for (std::size_t i = 0; i < points; i += each) {
    const auto begin = run.z.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(each, points - i));
    groups.first.push_back(i);
    groups.z.push_back(std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin));
  }
  return groups;
}

/// Lines through neighbouring groups, from sums that are taken once.
class Lines {
 public:
  struct Line {
    double middle = 0, slope = 0, rss = 0;  ///< value at the middle; squares of the residuals
  };

  explicit Lines(std::span<const double> z) : sum_(z.size() + 1) {
    const double mean = std::accumulate(z.begin(), z.end(), 0.0) / static_cast<double>(z.size());
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double d = z[i] - mean;
      sum_[i + 1] = {sum_[i].z + d, sum_[i].iz + static_cast<double>(i) * d, sum_[i].zz + d * d};
    }
  }

  /// Through `count` groups from `begin` on.
  [[nodiscard]] Line line(std::size_t begin, std::size_t count) const {
    const Sums &from = sum_[begin], &to = sum_[begin + count];
    const auto n = static_cast<double>(count);
    const double z = to.z - from.z, at = static_cast<double>(begin) + 0.5 * (n - 1);
    const double xx = n * (n * n - 1) / 12, xz = to.iz - from.iz - at * z;
    return {z / n, xz / xx, std::max(to.zz - from.zz - z * z / n - xz * xz / xx, 0.0)};
  }

 private:
  struct Sums {
    double z = 0, iz = 0, zz = 0;
  };
  std::vector<Sums> sum_;
};

/// How far values fall from one group to the next.
struct Fall {
  std::size_t group = 0;  ///< the first after it
  double size = 0, errors = 0;
};

/// How much lower the first third of the window from a group on is than the last third before it.
double step_down(std::span<const double> z, std::size_t group, std::size_t window) {
  const std::size_t third = std::max<std::size_t>(3, window / 3);
  const std::span<const double> before = z.subspan(group - third, third),
                                after = z.subspan(group, third);
  std::vector<double> last(before.begin(), before.end()), first(after.begin(), after.end());
  return median(last) - median(first);
}

/// From the line before a group to the line from it on; and no more than the values next to it
/// differ, as a bend falls by less there.
Fall fall_at(std::span<const double> z, const Lines& lines, std::size_t group, std::size_t window) {
  const Lines::Line before = lines.line(group - window, window), after = lines.line(group, window);
  const auto n = static_cast<double>(window);
  const double size = before.middle - after.middle + 0.5 * n * (before.slope + after.slope);
  const double noise = std::sqrt((before.rss + after.rss) / (2 * n - 4));
  const double errors = size / std::max(noise * std::sqrt(8 / n), kMinError);
  if (errors < kMinErrors || size < kMinEpochFall) return {group, 0, 0};
  return {group, std::min(size, step_down(z, group, window)), errors};
}

/// Groups on each side of a fall that are looked at.
std::size_t window_of(std::size_t groups) { return std::max(kMinWindow, groups / kWindowShare); }

/// The falls that stand out, none within a window of a greater one, in order.
std::vector<Fall> falls_of(std::span<const double> z) {
  const std::size_t n = z.size(), window = window_of(n);
  const Lines lines(z);
  std::vector<Fall> found;
  for (std::size_t i = std::max(window, n / kSkippedShare); i + kMinWindow <= n; ++i) {
    const Fall fall = fall_at(z, lines, i, std::min(window, n - i));
    if (fall.size >= kMinEpochFall) found.push_back(fall);
  }
  std::ranges::stable_sort(found, std::greater{}, &Fall::errors);
  std::vector<Fall> kept;
  for (const Fall& fall : found) {
    const bool apart = std::ranges::all_of(kept, [&](const Fall& other) {
      const std::size_t away =
          fall.group > other.group ? fall.group - other.group : other.group - fall.group;
      return away > window;
    });
    if (apart) kept.push_back(fall);
  }
  std::ranges::sort(kept, {}, &Fall::group);
  return kept;
}

/// Whether the known rate falls at a step: its annealed fraction, which lags, follows soon after.
bool is_scheduled(const Annealing& plan, double step) {
  if (!plan.known()) return false;
  const auto fraction = [&](double t) { return interpolate(t, plan.step, plan.fraction); };
  return fraction(step + kRateLag * plan.step.back()) - fraction(step) > kMaxScheduled;
}

}  // namespace

double EpochFalls::ahead(double step) const {
  const double ends = std::floor(step / epoch * (1 + 1e-9));
  return std::clamp(ends - static_cast<double>(fall.size()), 0.0, kMaxAhead);
}

EpochFalls epoch_falls(const Prepared& run, const Annealing& plan) {
  const bool is_loss = run.coordinate.logarithmic && run.coordinate.sign > 0;
  if (!is_loss || run.z.size() < kMinGroups || starts_late(run.step, run.count)) return {};
  const Groups groups = groups_of(run);
  const std::vector<Fall> found = falls_of(groups.z);
  if (found.empty()) return {};
  const double spacing =
      (run.step.back() - run.step.front()) / static_cast<double>(groups.z.size());
  const auto end_of_epoch = [&](const Fall& fall) {
    const std::size_t point = groups.first[fall.group];
    return 0.5 * (run.step[point - 1] + run.step[point]);
  };
  const double first = end_of_epoch(found.front());
  const std::size_t first_point = groups.first[found.front().group];
  const auto begin = run.count.begin();
  const double points =
      std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(first_point), 0.0);
  if (points < kMinEpochPoints) return {};

  EpochFalls falls;
  for (const Fall& fall : found) {
    const double number = static_cast<double>(falls.fall.size() + 1), at = end_of_epoch(fall);
    const double tolerance = number * std::max(kTolerance * first, kToleranceGroups * spacing);
    if (std::abs(at - number * first) > tolerance) return {};
    const std::size_t point = groups.first[fall.group];
    if (is_scheduled(plan, run.step[point - 1])) return {};
    falls.epoch = at / number;
    falls.first.push_back(point);
    falls.fall.push_back(fall.size);
  }
  // The next one must not have failed to come.
  const double next = static_cast<double>(falls.fall.size() + 1) * falls.epoch;
  const auto window = static_cast<double>(window_of(groups.z.size()));
  return run.step.back() < next + window * spacing ? falls : EpochFalls{};
}

Mixture law_with_falls(const Prepared& run, const Annealing& plan, const EpochFalls& falls,
                       std::span<const double> knots, const ForecastConstants& constants, Use use) {
  Prepared level = run;
  double total = 0;
  for (std::size_t k = 0; k < falls.fall.size(); ++k) {
    total += falls.fall[k];
    for (std::size_t i = falls.first[k]; i < level.z.size(); ++i) level.z[i] += falls.fall[k];
  }
  const auto [low, high] = std::ranges::minmax_element(level.z);
  level.range = *high - *low;
  Mixture mixture = by_clock(Observed(level, plan), knots, {}, constants, use);
  const double next = kNextFall * total / static_cast<double>(falls.fall.size());
  for (std::size_t j = 0; j < mixture.queries; ++j) {
    const double ahead = next * falls.ahead(knots[j]);
    for (std::size_t i = j * mixture.components; i < (j + 1) * mixture.components; ++i) {
      mixture.location[i] -= total + ahead;
      mixture.scale[i] = std::hypot(mixture.scale[i], kNextDeviation * ahead);
    }
  }
  return mixture;
}

void add_knots_at_falls(const EpochFalls& falls, std::span<const double> steps, double step_shift,
                        std::vector<double>& knots) {
  double before = falls.ahead(steps.front() + step_shift);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double now = falls.ahead(steps[i] + step_shift);
    if (now == before) continue;
    before = now;
    knots.push_back(steps[i - 1] + step_shift);
    knots.push_back(steps[i] + step_shift);
  }
  std::ranges::sort(knots);
  knots.erase(std::unique(knots.begin(), knots.end()), knots.end());
}

}  // namespace glidepath::detail
