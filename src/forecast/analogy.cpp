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
constexpr double kDoubt = 10;       // runs, as in calibrate()
constexpr double kAlike = 4;        // square distance in kernels that is still alike

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

/// Gaussian kernel around `mine`, the nearest run first with weight 1; `skip` gets none.
/// Returns the square distance of the nearest.
double kernel(std::span<const Traits> traits, const Traits& mine, const Traits& scale,
              std::size_t skip, std::span<double> weight) {
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < traits.size(); ++r) {
    weight[r] = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double d = (traits[r][i] - mine[i]) / (kKernel * scale[i]);
      weight[r] += d * d;
    }
    if (r != skip) nearest = std::min(nearest, weight[r]);
  }
  for (std::size_t r = 0; r < traits.size(); ++r) {
    weight[r] = r == skip ? 0.0 : std::exp(-0.5 * (weight[r] - nearest));
  }
  return nearest;
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

  // How much better than by the last level the past runs would have foretold each other.
  std::vector<double> weight(runs);
  double error = 0, last_error = 0;
  for (std::size_t k = 0; k < std::min(runs, kMost); ++k) {
    const std::size_t r = k * runs / std::min(runs, kMost);
    kernel(traits, traits[r], scale, r, weight);
    for (const std::size_t j : {queried / 2, queried - 1}) {
      error += std::abs(weighted_median(change[j], weight) - change[j][r]);
      last_error += std::abs(change[j][r]);
    }
  }
  const double skill = std::max(1 - error / std::max(last_error, 1e-300), 0.0);
  const double nearest = kernel(traits, mine, scale, runs, weight);
  const auto count = static_cast<double>(runs);
  const double mass = constants.analogy * skill * skill * count / (count + kDoubt) /
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
