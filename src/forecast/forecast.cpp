// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/parallel.hpp"
#include "common/require.hpp"
#include "forecast/interpolate.hpp"
#include "forecast/law.hpp"
#include "forecast/student.hpp"

namespace glidepath {
namespace {

using detail::Levels;
using detail::Predicted;

constexpr std::size_t kKnots = 14;  // log-spaced; between them quantiles are linear in log step
constexpr std::ptrdiff_t kBatchBlock = 16;
constexpr int kBisections = 60;

std::vector<double> asked_levels(const ForecastOptions& options) {
  if (options.levels.empty()) return default_levels();
  return {options.levels.begin(), options.levels.end()};
}

/// The levels of the last call on this thread, most often those of this one.
const Levels& cached_levels(const std::vector<double>& asked, const ForecastOptions& options) {
  struct Key {
    std::vector<double> asked{};
    double degrees = 0;
    bool falling = false;
    bool operator==(const Key&) const = default;
  };
  thread_local Key key;
  thread_local Levels levels;
  Key wanted{asked, detail::constants_of(options).degrees, options.direction == Direction::max};
  if (!(wanted == key)) {
    levels = detail::prepare_levels(asked, wanted.degrees, wanted.falling);
    key = std::move(wanted);
  }
  return levels;
}

/// One forecast into rows: `mean` (steps), `raw` and `curve` (levels, steps) whose rows are
/// `row_stride` apart; `curve` may be null.
Predicted forecast_into(TraceView trace, std::span<const double> steps, const Levels& levels,
                        const ForecastOptions& options, std::span<double> mean, double* raw,
                        double* curve, std::size_t row_stride) {
  Predicted predicted = detail::predict_law(trace, steps, kKnots, options, detail::Use::intervals);
  const ForecastLaw& law = predicted.law;
  thread_local std::vector<double> z_curve, z_raw;
  detail::law_quantiles(law, levels, z_curve, z_raw);
  const std::size_t knots = law.knots.size(), h = steps.size();
  const auto write = [&](const std::vector<double>& z, std::size_t level, double* out) {
    detail::spread_to_steps(law, predicted.prepared.step_shift, steps,
                            {z.data() + level * knots, knots}, {out, h});
  };
  write(z_raw, levels.median, mean.data());
  for (std::size_t i = 0; i < levels.row.size(); ++i) {
    write(z_raw, levels.row[i], raw + i * row_stride);
    if (curve != nullptr) write(z_curve, levels.row[i], curve + i * row_stride);
  }
  return predicted;
}

/// P(z <= target) of a raw observation at knot j: the p whose quantile is the target.
double prob_at_knot(const ForecastLaw& law, std::size_t j, double target) {
  const std::size_t k = law.weight.size();
  const detail::MixtureView mixture{
      law.weight, {law.location.data() + j * k, k}, {law.scale.data() + j * k, k}, law.degrees};
  const double levels[] = {0.5};
  const double unit[] = {0.0};
  double median[] = {0.0};
  std::vector<double> guess;
  detail::mixture_quantiles(mixture, levels, unit, guess, median);
  const double middle = std::clamp(median[0], law.lowest, law.highest);
  const double wanted = (target - middle) / law.stretch[j];
  if (wanted == 0) return 0.5;
  // The raw half-width at the curve's own quantile x, sqrt((x - middle)^2 + (noise t_8(F(x)))^2),
  // grows with |x - middle|.
  const auto half_width = [&](double x) {
    const double half = std::clamp(x, law.lowest, law.highest) - middle;
    if (law.noise[j] == 0) return std::abs(half);
    const double p = std::clamp(detail::mixture_cdf(mixture, x), 1e-9, 1 - 1e-9);
    const double noise = law.noise[j] * detail::student_quantile(8, p);
    return std::sqrt(half * half + noise * noise);
  };
  const double side = wanted < 0 ? -1.0 : 1.0;
  const double limit = std::abs(wanted);
  const double edge = side < 0 ? middle - law.lowest : law.highest - middle;
  double inside = 0, outside = limit;  // the noise only widens: |x - middle| <= limit
  if (half_width(middle + side * outside) < limit && outside >= edge) return side < 0 ? 0.0 : 1.0;
  for (int i = 0; i < kBisections; ++i) {
    const double x = 0.5 * (inside + outside);
    (half_width(middle + side * x) < limit ? inside : outside) = x;
  }
  return detail::mixture_cdf(mixture, middle + side * outside);
}

}  // namespace

std::string_view name(ForecastStatus status) noexcept {
  switch (status) {
    case ForecastStatus::good:
      return "good";
    case ForecastStatus::too_few_points:
      return "too_few_points";
    case ForecastStatus::flat:
      return "flat";
    case ForecastStatus::not_finite:
      return "not_finite";
  }
  return "";
}

std::vector<double> default_levels() {
  std::vector<double> levels;
  for (int i = 1; i < 20; ++i) levels.push_back(i / 20.0);
  return levels;
}

Forecast forecast(TraceView trace, std::span<const double> steps, const ForecastOptions& options) {
  Forecast f;
  f.at.assign(steps.begin(), steps.end());
  f.levels = asked_levels(options);
  const Levels& levels = cached_levels(f.levels, options);
  f.median.resize(steps.size());
  f.quantiles.resize(f.levels.size() * steps.size());
  f.curve_quantiles.resize(f.quantiles.size());
  Predicted predicted = forecast_into(trace, steps, levels, options, f.median, f.quantiles.data(),
                                      f.curve_quantiles.data(), steps.size());
  f.status = predicted.prepared.status;
  f.law = std::move(predicted.law);
  f.law.step_shift = predicted.prepared.step_shift;
  return f;
}

std::vector<double> quantile(const Forecast& f, double level, bool raw) {
  const std::vector<double> asked{level};
  const Levels levels = detail::prepare_levels(asked, f.law.degrees, f.law.sign < 0);
  std::vector<double> z_curve, z_raw, out(f.at.size());
  detail::law_quantiles(f.law, levels, z_curve, z_raw);
  const std::size_t knots = f.law.knots.size();
  const std::vector<double>& z = raw ? z_raw : z_curve;
  detail::spread_to_steps(f.law, f.law.step_shift, f.at, {z.data() + levels.row[0] * knots, knots},
                          out);
  return out;
}

std::vector<double> prob_below(const Forecast& f, double target) {
  if (std::isnan(target)) detail::refuse("forecast: the target is NaN");
  const detail::Coordinate coordinate = detail::coordinate_of(f.law);
  std::vector<double> out(f.at.size(), 0.0);
  if (target < coordinate.floor) return out;
  const bool falling = f.law.sign < 0;
  if (target >= coordinate.ceiling) {
    std::fill(out.begin(), out.end(), 1.0);
    return out;
  }
  const double z = std::clamp(coordinate.z(target), -1e300, 1e300);
  std::vector<double> at_knots, log_knots;
  for (std::size_t j = 0; j < f.law.knots.size(); ++j) {
    const double p = prob_at_knot(f.law, j, z);
    at_knots.push_back(falling ? 1 - p : p);
    log_knots.push_back(std::log(f.law.knots[j]));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = out.size() == at_knots.size()
                 ? at_knots[i]
                 : detail::interpolate(std::log(f.at[i] + f.law.step_shift), log_knots, at_knots);
  }
  return out;
}

ForecastBatch forecast_batch(std::span<const double> step, Eigen::Ref<const Rows> losses,
                             std::span<const double> steps, const ForecastOptions& options,
                             const Execution& execution) {
  if (static_cast<std::size_t>(losses.cols()) != step.size()) {
    detail::refuse("forecast_batch: losses have ", losses.cols(), " columns, ", step.size(),
                   " steps");
  }
  ForecastBatch out;
  out.at.assign(steps.begin(), steps.end());
  out.levels = asked_levels(options);
  const auto m = static_cast<std::size_t>(losses.rows());
  const std::size_t h = steps.size();
  out.median.resize(m * h);
  out.quantiles.resize(out.levels.size() * m * h);
  out.status.resize(m);
  detail::for_each_block(
      losses.rows(), kBatchBlock, execution, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        const Levels& levels = cached_levels(out.levels, options);
        for (std::ptrdiff_t i = begin; i < end; ++i) {
          const auto row = static_cast<std::size_t>(i);
          const TraceView trace{step, {losses.data() + i * losses.outerStride(), step.size()}, {}};
          const Predicted predicted =
              forecast_into(trace, steps, levels, options, {out.median.data() + row * h, h},
                            out.quantiles.data() + row * h, nullptr, m * h);
          out.status[row] = predicted.prepared.status;
        }
      });
  return out;
}

}  // namespace glidepath
