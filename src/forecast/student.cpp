// SPDX-License-Identifier: Apache-2.0
#include "forecast/student.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "common/numbers.hpp"
#include "forecast/math.hpp"

namespace glidepath::detail {
namespace {

constexpr int kMaxIterations = 80;
constexpr std::size_t kRemembered = 3;  ///< mixtures, through which a parabola goes
constexpr double kLastStep = .007;  ///< of a step that is the last one: the CDF is right to 1e-10

/// As mixture() of kernels.cpp.
double student3_cdf(double u) {
  const double w = u * kInvSqrt3;
  return 0.5 + (w / (1 + w * w) + std::atan(w)) / kPi;
}

/// Logarithm of the gamma function of a number above 0. That of the C library writes its sign into
/// a global, which two threads must not do at once.
double log_gamma(double x) {
#ifdef __unix__
  int sign = 0;
  return lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

/// Regularised incomplete beta by Lentz's continued fraction (Numerical Recipes 6.4).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double front = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) +
                                b * std::log1p(-x)) /
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
  return std::exp(log_gamma(0.5 * (degrees + 1)) - log_gamma(0.5 * degrees)) /
         std::sqrt(degrees * kPi) * std::pow(1 + x * x / degrees, -0.5 * (degrees + 1));
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

Mixture mixed(const Mixture& first, const Mixture& second, double share) {
  Mixture both;
  both.degrees = first.degrees;
  both.queries = first.queries;
  both.components = first.components + second.components;
  for (const double w : first.weight) both.weight.push_back(share * w);
  for (const double w : second.weight) both.weight.push_back((1 - share) * w);
  for (std::size_t j = 0; j < both.queries; ++j) {
    for (const MixtureView& part : {first.at(j), second.at(j)}) {
      both.location.insert(both.location.end(), part.location.begin(), part.location.end());
      both.scale.insert(both.scale.end(), part.scale.begin(), part.scale.end());
    }
  }
  return both;
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
  MixtureQuantiles({&level, 1}, {&unit, 1}).find(mixture, 0, {&median, 1});
  return median;
}

double mixture_mean(const MixtureView& mixture) {
  return std::inner_product(mixture.weight.begin(), mixture.weight.end(), mixture.location.begin(),
                            0.0);
}

double mean_distance(const MixtureView& mixture, double middle) {
  double sum = 0;
  for (std::size_t k = 0; k < mixture.weight.size(); ++k) {
    const double away = mixture.location[k] - middle, scale = mixture.scale[k];
    sum += mixture.weight[k] * std::sqrt(away * away + scale * scale);
  }
  return sum;
}

MixtureQuantiles::MixtureQuantiles(std::span<const double> levels, std::span<const double> unit)
    : levels_(levels),
      padded_((levels.size() + kMaxLanes - 1) / kMaxLanes * kMaxLanes),
      memory_(11 * padded_),
      index_(levels.size()) {
  double* next = memory_.data();
  for (double** column : {&unit_, &quantile_, &level_, &x_, &low_, &high_, &is_found_, &cdf_,
                          &density_, &slope_, &bend_}) {
    *column = next;
    next += padded_;
  }
  std::ranges::copy(unit, unit_);
}

void MixtureQuantiles::find(const MixtureView& mixture, double at, std::span<double> out) {
  take_moments(mixture);
  forecast_kernels().bracket(levels_.size(), unit_, mixture.weight.size(), mixture.location.data(),
                             mixture.scale.data(), low_, high_);
  guess(at);
  std::ranges::copy(levels_, level_);
  std::iota(index_.begin(), index_.end(), std::size_t{0});
  std::size_t count = levels_.size();
  for (int iteration = 0; iteration < kMaxIterations && count > 0; ++iteration) {
    evaluate(mixture, count);
    forecast_kernels().search_step(count, level_, {cdf_, density_, slope_, bend_},
                                   kLastStep * least_, x_, low_, high_, is_found_);
    count = drop_found(count);
  }
  remember(at);
  // Where all values are alike to sixteen digits, steps that round may end in another order.
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = i == 0 ? quantile_[i] : std::max(quantile_[i], out[i - 1]);
  }
}

/// Keeps the levels that are still searched in front; how many they are.
std::size_t MixtureQuantiles::drop_found(std::size_t count) {
  std::size_t left = 0;
  for (std::size_t s = 0; s < count; ++s) {
    quantile_[index_[s]] = x_[s];
    if (is_found_[s] != 0) continue;
    for (double* column : {level_, x_, low_, high_}) column[left] = column[s];
    index_[left++] = index_[s];
  }
  return left;
}

void MixtureQuantiles::take_moments(const MixtureView& mixture) {
  const std::size_t count = mixture.weight.size();
  double square = 0;
  mean_ = scale_ = 0;
  least_ = kInfinity;
  components_.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    const double weight = mixture.weight[k], location = mixture.location[k];
    mean_ += weight * location;
    scale_ += weight * mixture.scale[k];
    least_ = std::min(least_, mixture.scale[k]);
    const double step = kInvSqrt3 / mixture.scale[k], each = weight / kPi;
    const double density = 2 * each * step;
    components_[k] = {location, step, each, density, -4 * density * step, density * step * step};
  }
  for (std::size_t k = 0; k < count; ++k) {
    const double d = mixture.location[k] - mean_;
    square += mixture.weight[k] * (d * d + mixture.scale[k] * mixture.scale[k]);
  }
  deviation_ = std::sqrt(square);
}

/// No further beyond the last mixture than those remembered reach back.
void MixtureQuantiles::guess(double at) {
  const std::size_t known = found_.size();
  std::array<double, kRemembered> part{};
  for (std::size_t f = 0; f < known; ++f) {
    const double to = std::min(at, 2 * found_.front().at - found_.back().at);
    part[f] = 1;
    for (std::size_t g = 0; g < known; ++g) {
      if (g != f) part[f] *= (to - found_[g].at) / (found_[f].at - found_[g].at);
    }
  }
  std::fill(x_, x_ + padded_, mean_);
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    double from = known > 0 ? 0.0 : unit_[i] * scale_;
    for (std::size_t f = 0; f < known; ++f) from += part[f] * found_[f].quantile[i] * deviation_;
    x_[i] = std::clamp(mean_ + from, low_[i], high_[i]);
  }
}

void MixtureQuantiles::evaluate(const MixtureView& mixture, std::size_t count) {
  if (mixture.degrees == 3) {
    forecast_kernels().mixture(count, x_, components_.size(), components_.data(),
                               {cdf_, density_, slope_, bend_});
    return;
  }
  const double degrees = mixture.degrees;
  for (std::size_t s = 0; s < count; ++s) {
    cdf_[s] = density_[s] = slope_[s] = bend_[s] = 0;
    for (std::size_t k = 0; k < mixture.weight.size(); ++k) {
      const double scale = mixture.scale[k], u = (x_[s] - mixture.location[k]) / scale;
      const double over = degrees + u * u, fall = (degrees + 1) * u / over;
      const double density = mixture.weight[k] * student_density(degrees, u) / scale;
      cdf_[s] += mixture.weight[k] * student_cdf(degrees, u);
      density_[s] += density;
      slope_[s] -= density * fall / scale;
      bend_[s] += density * (fall * fall - (degrees + 1) * (degrees - u * u) / over / over) /
                  (scale * scale);
    }
  }
}

/// A mixture at the same place as the last takes its place: guess() divides by their distance, and
/// the largest steps have the same logarithm.
void MixtureQuantiles::remember(double at) {
  if (found_.empty() || found_.front().at != at) {
    if (found_.size() < kRemembered) found_.push_back({at, std::vector<double>(levels_.size())});
    std::rotate(found_.begin(), found_.end() - 1, found_.end());
  }
  Found& newest = found_.front();
  newest.at = at;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    newest.quantile[i] = deviation_ > 0 ? (quantile_[i] - mean_) / deviation_ : 0.0;
  }
}

}  // namespace glidepath::detail
