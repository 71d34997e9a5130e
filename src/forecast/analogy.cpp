// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "forecast/predict.hpp"
#include "forecast/weighted.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMinRuns = 3;         // past runs
constexpr std::size_t kMaxComponents = 24;  // and most runs by which the analogy is tried
constexpr double kLevelWindow = 1.15;       // a level is the mean over steps t / 1.15 to t
constexpr double kKernelWidth = 0.5;        // in spreads of each trait over the past runs
constexpr double kHalfBelievedRuns = 20;    // past runs of which half are believed
constexpr double kAlikeDistance = 2;        // square distance in kernels that is still alike
// Weight 1 / (1 + (error as a share of that of the last level / kHalfShare)^kSharePower).
constexpr double kHalfShare = 0.55, kSharePower = 4;
constexpr double kMinMass = 1e-3;

/// Level, and the falls over the last three octaves.
using Traits = std::array<double, 4>;

double level(std::span<const double> step, std::span<const double> z, double at) {
  const auto index = [&](double t) {
    return static_cast<std::size_t>(std::ranges::upper_bound(step, t) - step.begin());
  };
  const std::size_t from = index(at / kLevelWindow), to = index(at);
  if (from == to) return interpolate(at, step, z);
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += z[i];
  return sum / static_cast<double>(to - from);
}

Traits traits_of(std::span<const double> step, std::span<const double> z, double at) {
  const double a = level(step, z, at), b = level(step, z, at / 2), c = level(step, z, at / 4);
  return {a, a - b, b - c, c - level(step, z, at / 8)};
}

/// Square distance in kernels of each run from `mine`; infinite for the run `skip`, and for those
/// nearer than `nearest` where enough are farther.
void distances(std::span<const Traits> traits, const Traits& mine, const Traits& scale,
               std::size_t skip, double nearest, std::span<double> square) {
  std::size_t farther = 0;
  for (std::size_t r = 0; r < traits.size(); ++r) {
    square[r] = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double d = (traits[r][i] - mine[i]) / (kKernelWidth * scale[i]);
      square[r] += d * d;
    }
    if (r == skip) square[r] = kInfinity;
    farther += square[r] >= nearest && square[r] < kInfinity;
  }
  if (farther < 2) return;
  for (double& d : square) {
    if (d < nearest) d = kInfinity;
  }
}

/// Turns square distances into a Gaussian kernel, the nearest run with weight 1.
void kernel(std::span<double> square) {
  const double nearest = *std::ranges::min_element(square);
  for (double& d : square) d = std::exp(-0.5 * (d - nearest));
}

/// The past runs as seen from the last step of the live one.
struct PastView {
  std::vector<Traits> traits{};
  std::vector<std::vector<double>> change{};  // (queries, runs): from now to each query
  Traits scale{};                             // spread of each trait
};

PastView view_of(std::span<const Template> past, double now, std::span<const double> queries) {
  PastView view;
  view.change.assign(queries.size(), std::vector<double>(past.size()));
  for (std::size_t r = 0; r < past.size(); ++r) {
    view.traits.push_back(traits_of(past[r].step, past[r].z, now));
    for (std::size_t j = 0; j < queries.size(); ++j) {
      view.change[j][r] = interpolate(queries[j], past[r].step, past[r].z) - view.traits[r][0];
    }
  }
  for (std::size_t i = 0; i < view.scale.size(); ++i) {
    std::vector<double> column;
    for (const Traits& t : view.traits) column.push_back(t[i]);
    view.scale[i] = spread(std::move(column));
  }
  return view;
}

/// The error that the past runs would have made about each other, were they as unlike as the live
/// one is from the nearest of them, as a share of the error of the last level.
double error_share(std::span<const Template> past, const PastView& view, double nearest) {
  const std::size_t runs = past.size(), tried = std::min(runs, kMaxComponents);
  const std::size_t queried = view.change.size();
  double error = 0, error_last = 0;
  std::vector<double> others(runs);
  for (std::size_t k = 0; k < tried; ++k) {
    const std::size_t r = k * runs / tried;
    distances(view.traits, view.traits[r], view.scale, r, nearest, others);
    kernel(others);
    const auto [least, most] = std::ranges::minmax_element(past[r].z);
    const double range = std::max(*most - *least, 1e-300);
    for (const std::size_t j : {queried / 2, queried - 1}) {
      const double change = view.change[j][r];
      error += std::min(std::abs(weighted_median(view.change[j], others) - change) / range, 1.0);
      error_last += std::min(std::abs(change) / range, 1.0);
    }
  }
  return error / std::max(error_last, 1e-300);
}

/// `mixture` with `mass` of it for the changes of the past runs of greatest `weight`, from `level`.
Mixture mixed(const Mixture& mixture, const PastView& view, std::span<const double> weight,
              double level, double mass) {
  const std::size_t runs = weight.size(), kept = std::min(runs, kMaxComponents);
  std::vector<std::size_t> heaviest(runs);
  std::iota(heaviest.begin(), heaviest.end(), std::size_t{0});
  std::ranges::stable_sort(heaviest,
                           [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
  heaviest.resize(kept);
  double total = 0, square = 0;
  for (const std::size_t r : heaviest) {
    total += weight[r];
    square += weight[r] * weight[r];
  }
  // Width of the kernel around each: narrower the more runs there are to smooth over.
  const double smooth = 0.5 * std::pow(total * total / square, -0.2);

  Mixture both;
  both.degrees = mixture.degrees;
  both.queries = mixture.queries;
  both.components = mixture.components + kept;
  for (const double w : mixture.weight) both.weight.push_back((1 - mass) * w);
  for (const std::size_t r : heaviest) both.weight.push_back(mass * weight[r] / total);
  std::vector<double> distance(runs);
  for (std::size_t j = 0; j < mixture.queries; ++j) {
    const std::vector<double>& change = view.change[j];
    const double middle = weighted_median(change, weight);
    for (std::size_t r = 0; r < runs; ++r) distance[r] = std::abs(change[r] - middle);
    const double width = kDeviationPerMad * smooth * weighted_median(distance, weight) +
                         0.05 * std::abs(middle) + 1e-6;
    const MixtureView shapes = mixture.at(j);
    both.location.insert(both.location.end(), shapes.location.begin(), shapes.location.end());
    both.scale.insert(both.scale.end(), shapes.scale.begin(), shapes.scale.end());
    for (const std::size_t r : heaviest) {
      both.location.push_back(level + change[r]);
      both.scale.push_back(width);
    }
  }
  return both;
}

}  // namespace

double mix_in_analogy(std::span<const double> step, std::span<const double> z,
                      std::span<const double> queries, std::span<const Template> past,
                      const ForecastConstants& constants, Mixture& mixture) {
  const std::size_t runs = past.size();
  if (runs < 2) return 1;
  const double now = step.back();
  const Traits mine = traits_of(step, z, now);
  const PastView view = view_of(past, now, queries);
  std::vector<double> weight(runs);
  distances(view.traits, mine, view.scale, runs, 0, weight);
  const double nearest = *std::ranges::min_element(weight);
  const double error = error_share(past, view, nearest);
  const auto count = static_cast<double>(runs);
  const double mass = constants.analogy / (1 + std::pow(error / kHalfShare, kSharePower)) * count /
                      (count + kHalfBelievedRuns) / (1 + std::max(nearest - kAlikeDistance, 0.0));
  if (runs < kMinRuns || !(mass > kMinMass)) return error;
  kernel(weight);
  mixture = mixed(mixture, view, weight, mine[0], mass);
  return error;
}

}  // namespace glidepath::detail
