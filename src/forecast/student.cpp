// SPDX-License-Identifier: Apache-2.0
#include "forecast/student.hpp"

#include <algorithm>
#include <cmath>

#include "common/numbers.hpp"
#include "forecast/kernels.hpp"
#include "forecast/math.hpp"

namespace glidepath::detail {
namespace {

constexpr int kMaxIterations = 80;

/// As add_components() of kernels.cpp.
double student3_cdf(double u) {
  const double w = u * kInvSqrt3;
  return 0.5 + (w / (1 + w * w) + std::atan(w)) / kPi;
}

/// Regularised incomplete beta by Lentz's continued fraction (Numerical Recipes 6.4).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x)) /
                       a;
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double fraction = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = std::abs(c) < kTiny ? kTiny : c;
      change = d * c;
      fraction *= change;
    }
    if (std::abs(change - 1) < 1e-16) break;
  }
  return front * fraction;
}

double student_density(double degrees, double x) {
  return std::exp(std::lgamma(0.5 * (degrees + 1)) - std::lgamma(0.5 * degrees)) /
         std::sqrt(degrees * kPi) * std::pow(1 + x * x / degrees, -0.5 * (degrees + 1));
}

/// CDF of a mixture, its density and, at 3 degrees, its slope at each of `count` points x.
void evaluate(const MixtureView& mixture, std::size_t count, std::size_t lanes, const double* x,
              double* cdf, double* density, double* slope) {
  const std::size_t components = mixture.weight.size();
  if (mixture.degrees == 3) {
    std::fill(cdf, cdf + lanes, 0.5);
    std::fill(density, density + lanes, 0.0);
    std::fill(slope, slope + lanes, 0.0);
    forecast_kernels().add_components(lanes, x, components, mixture.weight.data(),
                                      mixture.location.data(), mixture.scale.data(), cdf, density,
                                      slope);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    cdf[i] = density[i] = 0;
    for (std::size_t k = 0; k < components; ++k) {
      const double u = (x[i] - mixture.location[k]) / mixture.scale[k];
      cdf[i] += mixture.weight[k] * student_cdf(mixture.degrees, u);
      density[i] += mixture.weight[k] * student_density(mixture.degrees, u) / mixture.scale[k];
    }
  }
}

}  // namespace

double student_cdf(double degrees, double x) {
  return degrees == 3 ? student3_cdf(x) : student_cdf_general(degrees, x);
}

double student_cdf_general(double degrees, double x) {
  const double tail = 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + x * x));
  return x > 0 ? 1 - tail : tail;
}

double student_quantile(double degrees, double p) {
  if (p == 0.5) return 0;
  double low = -1, high = 1;
  while (student_cdf(degrees, low) > p) low *= 2;
  while (student_cdf(degrees, high) < p) high *= 2;
  double x = 0.5 * (low + high);
  for (int i = 0; i < kMaxIterations; ++i) {
    const double error = student_cdf(degrees, x) - p;
    (error < 0 ? low : high) = x;
    double next = x - error / student_density(degrees, x);
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    const bool done = std::abs(next - x) <= 1e-15 * std::max(1.0, std::abs(x));
    x = next;
    if (done) break;
  }
  return x;
}

double mixture_cdf(const MixtureView& mixture, double x) {
  double cdf = 0;
  for (std::size_t k = 0; k < mixture.weight.size(); ++k) {
    cdf += mixture.weight[k] *
           student_cdf(mixture.degrees, (x - mixture.location[k]) / mixture.scale[k]);
  }
  return std::clamp(cdf, 0.0, 1.0);
}

double mixture_median(const MixtureView& mixture) {
  const double level = 0.5, unit = 0;
  double median = 0;
  std::vector<double> guess;
  mixture_quantiles(mixture, {&level, 1}, {&unit, 1}, guess, {&median, 1});
  return median;
}

void mixture_quantiles(const MixtureView& mixture, std::span<const double> levels,
                       std::span<const double> unit, std::vector<double>& guess,
                       std::span<double> out) {
  const std::size_t count = levels.size(), lanes = (count + 3) / 4 * 4;
  const std::size_t components = mixture.weight.size();
  thread_local std::vector<double> memory;
  memory.assign(7 * lanes, 0.0);
  double *x = memory.data(), *low = x + lanes, *high = low + lanes, *cdf = high + lanes,
         *density = cdf + lanes, *slope = density + lanes, *units = slope + lanes;
  std::copy(unit.begin(), unit.end(), units);
  std::fill(low, high, kInfinity);
  std::fill(high, cdf, -kInfinity);

  double mean = 0, square = 0, wide = 0, least = kInfinity;
  for (std::size_t k = 0; k < components; ++k) {
    mean += mixture.weight[k] * mixture.location[k];
    wide += mixture.weight[k] * mixture.scale[k];
    least = std::min(least, mixture.scale[k]);
  }
  forecast_kernels().bracket(lanes, units, components, mixture.location.data(),
                             mixture.scale.data(), low, high);
  for (std::size_t k = 0; k < components; ++k) {
    const double d = mixture.location[k] - mean;
    square += mixture.weight[k] * (d * d + mixture.scale[k] * mixture.scale[k]);
  }
  const double spread = std::sqrt(square);
  // From the last two mixtures, in a straight line.
  const bool fresh = guess.size() != 2 * count;
  guess.resize(2 * count);
  double *newer = guess.data(), *older = newer + count;
  for (std::size_t i = 0; i < count; ++i) {
    const double from = fresh ? unit[i] * wide : (2 * newer[i] - older[i]) * spread;
    x[i] = std::clamp(mean + from, low[i], high[i]);
  }
  const double tolerance = (mixture.degrees == 3 ? 1e-3 : 1e-5) * least;  // else slope = 0: Newton
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    evaluate(mixture, count, lanes, x, cdf, density, slope);
    double largest = 0;  // Halley's method triples the digits: a small step is the last one
    for (std::size_t i = 0; i < count; ++i) {
      const double error = cdf[i] - levels[i];
      (error < 0 ? low : high)[i] = x[i];
      const double newton = error / density[i];
      const double bend = 1 - 0.5 * newton * slope[i] / density[i];
      double next = x[i] - newton / (bend > 0.5 && bend < 2 ? bend : 1.0);
      if (!(next >= low[i] && next <= high[i])) next = 0.5 * (low[i] + high[i]);
      largest = std::max(largest, std::abs(next - x[i]));
      x[i] = next;
    }
    if (largest <= tolerance) break;
  }
  for (std::size_t i = 0; i < count; ++i) {
    // Where all values are alike to sixteen digits, steps that round may end in another order.
    out[i] = i == 0 ? x[i] : std::max(x[i], out[i - 1]);
    const double standard = spread > 0 ? (x[i] - mean) / spread : 0.0;
    older[i] = fresh ? standard : newer[i];
    newer[i] = standard;
  }
}

}  // namespace glidepath::detail
