// SPDX-License-Identifier: Apache-2.0
#include "forecast/analogy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "forecast/interpolate.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kFewest = 3;  // past runs
constexpr std::size_t kMost = 24;   // components, and runs by which the analogy is tried
constexpr double kWindow = 1.15;    // a level is the mean over steps t / 1.15 to t
constexpr double kKernel = 0.5;     // width, in spreads of each trait over the past runs
constexpr double kDoubt = 20;       // past runs of which half are believed
constexpr double kAlike = 2;        // square distance in kernels that is still alike
constexpr double kHalf = 0.55;      // share of the error of the last level where it weighs a half
constexpr double kSteep = 4;        // power of that share

/// Level, and the falls over the last three octaves.
using Traits = std::array<double, 4>;

double level(std::span<const double> step, std::span<const double> z, double at) {
  const auto index = [&](double t) {
    return static_cast<std::size_t>(std::upper_bound(step.begin(), step.end(), t) - step.begin());
  };
  const std::size_t from = index(at / kWindow), to = index(at);
  if (from == to) return interpolate(at, step, z);
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += z[i];
  return sum / static_cast<double>(to - from);
}

Traits traits_of(std::span<const double> step, std::span<const double> z, double at) {
  const double a = level(step, z, at), b = level(step, z, at / 2), c = level(step, z, at / 4);
  return {a, a - b, b - c, c - level(step, z, at / 8)};
}

/// The value below which half of the weight lies.
double weighted_median(std::span<const double> value, std::span<const double> weight) {
  std::vector<std::size_t> order(value.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return value[a] != value[b] ? value[a] < value[b] : a < b;
  });
  const double half = 0.5 * std::accumulate(weight.begin(), weight.end(), 0.0);
  double sum = 0;
  for (const std::size_t i : order) {
    sum += weight[i];
    if (sum >= half) return value[i];
  }
  return value[order.back()];
}

/// 1.4826 times the median distance from the median, no less than 0.3 of the standard deviation.
double spread(std::vector<double> values) {
  const std::vector<double> even(values.size(), 1.0);
  const double middle = weighted_median(values, even);
  double square = 0;
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (double& v : values) {
    square += (v - mean) * (v - mean) / static_cast<double>(values.size());
    v = std::abs(v - middle);
  }
  return std::max({1.4826 * weighted_median(values, even), 0.3 * std::sqrt(square), 1e-6});
}

/// Square distance in kernels of each run from `mine`; infinite for the run `skip`, and for those
/// nearer than `nearest` where enough are farther.
void distances(std::span<const Traits> traits, const Traits& mine, const Traits& scale,
               std::size_t skip, double nearest, std::span<double> square) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::size_t farther = 0;
  for (std::size_t r = 0; r < traits.size(); ++r) {
    square[r] = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double d = (traits[r][i] - mine[i]) / (kKernel * scale[i]);
      square[r] += d * d;
    }
    if (r == skip) square[r] = kNone;
    farther += square[r] >= nearest && square[r] < kNone;
  }
  if (farther < 2) return;
  for (double& d : square) {
    if (d < nearest) d = kNone;
  }
}

/// Turns square distances into a Gaussian kernel, the nearest run with weight 1.
void kernel(std::span<double> square) {
  const double nearest = *std::min_element(square.begin(), square.end());
  for (double& d : square) d = std::exp(-0.5 * (d - nearest));
}

}  // namespace

void mix_in_analogy(std::span<const double> step, std::span<const double> z,
                    std::span<const double> queries, std::span<const Template> past,
                    const ForecastConstants& constants, Mixture& mixture) {
  const std::size_t runs = past.size(), queried = queries.size();
  if (runs < kFewest || !(constants.analogy > 0)) return;
  const double now = step.back();
  const Traits mine = traits_of(step, z, now);
  std::vector<Traits> traits;
  std::vector<std::vector<double>> change(queried, std::vector<double>(runs));
  for (std::size_t r = 0; r < runs; ++r) {
    traits.push_back(traits_of(past[r].step, past[r].z, now));
    for (std::size_t j = 0; j < queried; ++j) {
      change[j][r] = interpolate(queries[j], past[r].step, past[r].z) - traits[r][0];
    }
  }
  Traits scale{};
  for (std::size_t i = 0; i < scale.size(); ++i) {
    std::vector<double> column;
    for (const Traits& t : traits) column.push_back(t[i]);
    scale[i] = spread(std::move(column));
  }

  std::vector<double> weight(runs);
  distances(traits, mine, scale, runs, 0, weight);
  const double nearest = *std::min_element(weight.begin(), weight.end());

  // What the past runs would have missed of each other, were they as unlike as this one is from
  // the nearest of them, as a share of what the last level misses.
  double missed = 0, missed_last = 0;
  std::vector<double> others(runs);
  for (std::size_t k = 0; k < std::min(runs, kMost); ++k) {
    const std::size_t r = k * runs / std::min(runs, kMost);
    distances(traits, traits[r], scale, r, nearest, others);
    kernel(others);
    const auto [least, most] = std::minmax_element(past[r].z.begin(), past[r].z.end());
    const double range = std::max(*most - *least, 1e-300);
    for (const std::size_t j : {queried / 2, queried - 1}) {
      const double change_r = change[j][r];
      missed += std::min(std::abs(weighted_median(change[j], others) - change_r) / range, 1.0);
      missed_last += std::min(std::abs(change_r) / range, 1.0);
    }
  }
  kernel(weight);
  const double share = missed / std::max(missed_last, 1e-300) / kHalf;
  const auto count = static_cast<double>(runs);
  const double mass = constants.analogy / (1 + std::pow(share, kSteep)) * count / (count + kDoubt) /
                      (1 + std::max(nearest - kAlike, 0.0));
  if (!(mass > 1e-3)) return;

  std::vector<std::size_t> heaviest(runs);
  std::iota(heaviest.begin(), heaviest.end(), std::size_t{0});
  std::stable_sort(heaviest.begin(), heaviest.end(),
                   [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
  heaviest.resize(std::min(runs, kMost));
  double total = 0, square = 0;
  for (const std::size_t r : heaviest) {
    total += weight[r];
    square += weight[r] * weight[r];
  }
  // Width of the kernel around each: narrower the more runs there are to smooth over.
  const double smooth = 0.5 * std::pow(total * total / square, -0.2);

  const std::size_t before = mixture.components;
  Mixture both;
  both.queries = queried;
  both.components = before + heaviest.size();
  for (const double w : mixture.weight) both.weight.push_back((1 - mass) * w);
  for (const std::size_t r : heaviest) both.weight.push_back(mass * weight[r] / total);
  std::vector<double> distance(runs);
  for (std::size_t j = 0; j < queried; ++j) {
    const double middle = weighted_median(change[j], weight);
    for (std::size_t r = 0; r < runs; ++r) distance[r] = std::abs(change[j][r] - middle);
    const double width =
        1.4826 * smooth * weighted_median(distance, weight) + 0.05 * std::abs(middle) + 1e-6;
    const auto row = static_cast<std::ptrdiff_t>(j * before);
    const auto end = row + static_cast<std::ptrdiff_t>(before);
    both.location.insert(both.location.end(), mixture.location.begin() + row,
                         mixture.location.begin() + end);
    both.scale.insert(both.scale.end(), mixture.scale.begin() + row, mixture.scale.begin() + end);
    for (const std::size_t r : heaviest) {
      both.location.push_back(mine[0] + change[j][r]);
      both.scale.push_back(width);
    }
  }
  mixture = std::move(both);
}

}  // namespace glidepath::detail
