// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/interpolate.hpp"
#include "common/interrupt.hpp"
#include "common/names.hpp"
#include "common/parallel.hpp"
#include "common/views.hpp"
#include "forecast/constants.hpp"
#include "forecast/law.hpp"
#include "trace/counted.hpp"
#include "trace/direction.hpp"

namespace glidepath {
namespace {

using detail::Law;
using detail::Levels;
using detail::Predicted;

constexpr std::size_t kKnots = 14;  // log-spaced; between them quantiles are linear in log step
constexpr std::ptrdiff_t kBatchBlock = 16;

void refuse_bad_options(const ForecastOptions& options) {
  detail::refuse_unknown(options.direction, "forecast: direction");
  if (options.reached_by) detail::refuse("forecast: reached_by is for reach()");
}

std::vector<double> levels_of(const ForecastOptions& options) {
  if (options.levels.empty()) return default_levels();
  return {options.levels.begin(), options.levels.end()};
}

/// The levels of the last call on this thread, most often those of this one.
const Levels& cached_levels(const std::vector<double>& wanted, const ForecastOptions& options) {
  struct Key {
    std::vector<double> level{};
    double degrees = 0;
    Direction best = Direction::min;
    bool operator==(const Key&) const = default;
  };
  thread_local Key key;
  thread_local Levels levels;
  Key now{wanted, detail::constants_of(options).degrees, options.direction};
  if (!(now == key)) {
    levels = detail::prepare_levels(wanted, now.degrees, now.best);
    key = std::move(now);
  }
  return levels;
}

/// Where one forecast is written: `median` (at), `raw` and `curve` (levels, at) whose rows are
/// `row_stride` apart; `curve` may be null.
struct Target {
  double* median = nullptr;
  double* raw = nullptr;
  double* curve = nullptr;
  std::size_t row_stride = 0;
};

Predicted forecast_into(TraceView trace, std::span<const double> at, const Levels& levels,
                        const ForecastOptions& options, const Target& out) {
  Predicted predicted = detail::predict_law(trace, at, kKnots, options, detail::Use::intervals);
  const Law& law = predicted.law;
  thread_local std::vector<double> z_curve, z_raw;
  law.quantiles(levels, z_curve, z_raw);
  const std::size_t knots = law.knots.size();
  const auto write = [&](const std::vector<double>& z, std::size_t level, double* row) {
    law.spread({z.data() + level * knots, knots}, at, {row, at.size()});
  };
  write(z_raw, levels.median, out.median);
  for (std::size_t i = 0; i < levels.row.size(); ++i) {
    write(z_raw, levels.row[i], out.raw + i * out.row_stride);
    if (out.curve != nullptr) write(z_curve, levels.row[i], out.curve + i * out.row_stride);
  }
  // Between knots that lie many orders of magnitude apart rounding may turn two levels round.
  for (double* rows : {out.raw, out.curve}) {
    for (std::size_t i = 1; rows != nullptr && i < levels.row.size(); ++i) {
      double* row = rows + i * out.row_stride;
      for (std::size_t j = 0; j < at.size(); ++j) {
        row[j] = std::max(row[j], rows[(i - 1) * out.row_stride + j]);
      }
    }
  }
  return predicted;
}

const Law& law_of(const Forecast& f) {
  if (!f.law) detail::refuse("forecast: this one was not made by forecast(), it has no quantiles");
  return *f.law;
}

struct Quantiles {
  std::vector<double> raw, curve;
};

Quantiles quantiles_at(const Forecast& f, double p) {
  const Law& law = law_of(f);
  if (!(p > 0 && p < 1)) detail::refuse("forecast: p is ", p, ", expected above 0 and below 1");
  const Levels levels = detail::prepare_levels({&p, 1}, law.mixture.degrees, law.direction());
  std::vector<double> z_curve, z_raw;
  law.quantiles(levels, z_curve, z_raw);
  const std::size_t knots = law.knots.size(), row = levels.row[0] * knots;
  Quantiles out{std::vector<double>(f.at.size()), std::vector<double>(f.at.size())};
  law.spread({z_raw.data() + row, knots}, f.at, out.raw);
  law.spread({z_curve.data() + row, knots}, f.at, out.curve);
  return out;
}

}  // namespace

std::string_view name(ForecastStatus status) noexcept {
  return detail::name_in(detail::Names<4>{"good", "too_few_points", "flat", "not_finite"}, status);
}

std::vector<double> default_levels() {
  std::vector<double> levels;
  for (int i = 1; i < 20; ++i) levels.push_back(i / 20.0);
  return levels;
}

Forecast forecast(TraceView trace, std::span<const double> at, const ForecastOptions& options) {
  detail::check_interrupt();
  refuse_bad_options(options);
  Forecast f;
  f.at.assign(at.begin(), at.end());
  f.levels = levels_of(options);
  f.median.resize(at.size());
  f.quantiles.resize(std::ssize(f.levels), std::ssize(f.at));
  f.curve_quantiles.resize(f.quantiles.rows(), f.quantiles.cols());
  if (!trace.weight.empty()) validate(trace);
  const detail::Counted counted(trace);
  Predicted predicted =
      forecast_into(counted.view(), at, cached_levels(f.levels, options), options,
                    {f.median.data(), f.quantiles.data(), f.curve_quantiles.data(), at.size()});
  f.status = predicted.prepared.status;
  f.law = std::make_shared<const Law>(std::move(predicted.law));
  return f;
}

std::vector<double> quantile(const Forecast& f, double p) { return quantiles_at(f, p).raw; }

std::vector<double> curve_quantile(const Forecast& f, double p) { return quantiles_at(f, p).curve; }

ForecastInterval interval(const Forecast& f, double coverage) {
  if (!(coverage > 0 && coverage < 1)) {
    detail::refuse("forecast: coverage is ", coverage, ", expected above 0 and below 1");
  }
  return {quantile(f, 0.5 - 0.5 * coverage), quantile(f, 0.5 + 0.5 * coverage)};
}

std::vector<double> prob_below(const Forecast& f, double target) {
  const Law& law = law_of(f);
  if (std::isnan(target)) detail::refuse("forecast: target is nan, expected a number");
  const detail::Coordinate& coordinate = law.coordinate;
  std::vector<double> out(f.at.size(), 0.0);
  if (target < coordinate.floor) return out;
  if (target >= coordinate.ceiling) {
    std::ranges::fill(out, 1.0);
    return out;
  }
  law.prob_below(target, f.at, out);
  return out;
}

ForecastBatch forecast_batch(std::span<const double> step, RowsView loss,
                             std::span<const double> at, const ForecastOptions& options,
                             const Execution& execution) {
  if (loss.rows() < 0) {
    detail::refuse("forecast_batch: rows is ", loss.rows(), ", expected 0 or more");
  }
  if (static_cast<std::size_t>(loss.cols()) != step.size()) {
    detail::refuse("forecast_batch: losses have ", loss.cols(), " columns, ", step.size(),
                   " steps");
  }
  detail::require_numbers(loss, "forecast_batch: loss");
  refuse_bad_options(options);
  ForecastBatch out;
  out.at.assign(at.begin(), at.end());
  out.levels = levels_of(options);
  const std::ptrdiff_t m = loss.rows();
  if (m == 0) {  // what is refused does not depend on how many rows there are
    const std::vector<double> nothing(step.size(), std::numeric_limits<double>::quiet_NaN());
    (void)forecast({step, nothing}, at, options);
  }
  out.median.resize(m, std::ssize(at));
  out.quantiles.resize(std::ssize(out.levels) * m, std::ssize(at));
  out.status.resize(static_cast<std::size_t>(m));
  detail::for_each_block(m, kBatchBlock, execution, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    const Levels& levels = cached_levels(out.levels, options);
    for (std::ptrdiff_t i = begin; i < end; ++i) {
      const TraceView trace{step, loss.row(i), {}};
      const Target row{out.median.row(i).data(), out.quantiles.row(i).data(), nullptr,
                       static_cast<std::size_t>(m) * at.size()};
      const Predicted predicted = forecast_into(trace, at, levels, options, row);
      out.status[i] = predicted.prepared.status;
    }
  });
  return out;
}

}  // namespace glidepath
