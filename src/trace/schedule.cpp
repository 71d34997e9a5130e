// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numbers>
#include <optional>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"

namespace glidepath {
namespace {

constexpr int kCosinePieces = 128;  // the largest error of a straight piece is 4e-5 of the fall

constexpr const char* kRateRange = "0 or more and finite";
bool is_rate(double lr) { return std::isfinite(lr) && lr >= 0; }

/// The warm-up up to the peak, after the options were checked.
Schedule warmed_up(const char* name, double peak, double steps, double warmup, double final) {
  using detail::refuse;
  if (!is_rate(peak)) refuse(name, ": peak is ", peak, ", expected ", kRateRange);
  if (!is_rate(final)) refuse(name, ": final is ", final, ", expected ", kRateRange);
  if (!(steps > 0)) refuse(name, ": steps is ", steps, ", expected more than 0");
  if (!detail::is_step(steps)) refuse(name, ": steps is ", steps, ", expected at most 1e300");
  if (!(warmup >= 0 && warmup < steps)) {
    refuse(name, ": warmup is ", warmup, ", expected 0 to below the ", steps, " steps");
  }
  Schedule schedule;
  const auto add = [&](double step, double lr) {
    schedule.step.push_back(step);
    schedule.lr.push_back(lr);
  };
  if (warmup > 0) add(0, 0);
  add(warmup, peak);
  return schedule;
}

}  // namespace

void Schedule::validate() const {
  using detail::refuse;
  if (step.size() != lr.size()) {
    refuse("schedule: ", step.size(), " steps but ", lr.size(), " learning rates");
  }
  if (step.empty()) refuse("schedule: it has no point");
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (!detail::is_step(step[i])) {
      refuse("schedule: step[", i, "] is ", step[i], ", expected ", detail::kStepRange);
    }
    if (i > 0 && step[i] <= step[i - 1]) {
      refuse("schedule: step[", i, "] is ", step[i], ", expected above the ", step[i - 1],
             " before it");
    }
    if (!is_rate(lr[i])) refuse("schedule: lr[", i, "] is ", lr[i], ", expected ", kRateRange);
  }
}

double Schedule::at(double at_step) const {
  validate();
  if (std::isnan(at_step)) detail::refuse("schedule: step is nan, expected a number");
  return detail::interpolate(at_step, step, lr);
}

Schedule Schedule::constant(double lr) {
  if (!is_rate(lr)) detail::refuse("constant: lr is ", lr, ", expected ", kRateRange);
  return {{0}, {lr}};
}

Schedule Schedule::cosine(double peak, double steps, const ScheduleEnds& ends) {
  Schedule schedule = warmed_up("cosine", peak, steps, ends.warmup, ends.final);
  for (int i = 1; i <= kCosinePieces; ++i) {
    const double share = static_cast<double>(i) / kCosinePieces;
    schedule.step.push_back(ends.warmup + (steps - ends.warmup) * share);
    schedule.lr.push_back(i == kCosinePieces
                              ? ends.final
                              : ends.final + (peak - ends.final) * 0.5 *
                                                 (1 + std::cos(std::numbers::pi * share)));
  }
  schedule.step.back() = steps;
  return schedule;
}

Schedule Schedule::linear(double peak, double steps, const ScheduleEnds& ends) {
  Schedule schedule = warmed_up("linear", peak, steps, ends.warmup, ends.final);
  schedule.step.push_back(steps);
  schedule.lr.push_back(ends.final);
  return schedule;
}

Schedule Schedule::wsd(double peak, double steps, const WsdShape& shape) {
  Schedule schedule = warmed_up("wsd", peak, steps, shape.warmup, shape.final);
  if (!(shape.decay > 0 && shape.decay <= 1)) {
    detail::refuse("wsd: decay is ", shape.decay, ", expected a share of the steps, above 0 to 1");
  }
  const double falls = steps * (1 - shape.decay);
  if (falls < shape.warmup) {
    detail::refuse("wsd: the decay begins at step ", falls, ", within the warm-up of ",
                   shape.warmup, " steps");
  }
  if (falls > shape.warmup) {
    schedule.step.push_back(falls);
    schedule.lr.push_back(peak);
  }
  schedule.step.push_back(steps);
  schedule.lr.push_back(shape.final);
  return schedule;
}

std::optional<Schedule> Schedule::logged(const Trace& trace) {
  glidepath::validate(trace.view());
  if (2 * std::ranges::count_if(trace.lr, is_rate) <= std::ssize(trace.lr)) return std::nullopt;
  Schedule schedule{trace.step, trace.lr};
  double value = *std::ranges::find_if(trace.lr, is_rate);
  for (double& lr : schedule.lr) {
    if (is_rate(lr)) value = lr;
    lr = value;
  }
  return schedule;
}

}  // namespace glidepath
