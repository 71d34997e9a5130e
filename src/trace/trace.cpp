// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <algorithm>
#include <cmath>

#include "common/names.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "trace/direction.hpp"

namespace glidepath {
namespace {
constexpr detail::Names<2> kDirections{"min", "max"};
}

std::string_view name(Direction direction) noexcept {
  return detail::name_in(kDirections, direction);
}

void detail::refuse_unknown(Direction direction, std::string_view what) {
  refuse_unnamed(kDirections, direction, what);
}

Direction direction_named(std::string_view text) {
  if (text == "min") return Direction::min;
  if (text == "max") return Direction::max;
  detail::refuse("trace: direction is '", text, "', expected min or max");
}

namespace {

void require_equal_lengths(const TraceView& trace) {
  const std::size_t steps = trace.step.size();
  const auto require = [&](std::size_t length, const char* what) {
    if (length != steps) detail::refuse("trace: ", steps, " steps but ", length, what);
  };
  require(trace.loss.size(), " losses");
  if (!trace.weight.empty()) require(trace.weight.size(), " weights");
  if (!trace.lr.empty()) require(trace.lr.size(), " learning rates");
}

}  // namespace

void validate(TraceView trace) {
  using detail::refuse;
  require_equal_lengths(trace);
  const auto& [step, loss, weight, lr, settings, metric] = trace;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (!detail::is_step(step[i])) {
      refuse("trace: step[", i, "] is ", step[i], ", expected ", detail::kStepRange);
    }
    if (i > 0 && step[i] <= step[i - 1]) {
      refuse("trace: step[", i, "] is ", step[i], ", expected above the ", step[i - 1],
             " before it");
    }
  }
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if (!(weight[i] >= 0 && weight[i] <= detail::kMaxWeight)) {
      refuse("trace: weight[", i, "] is ", weight[i], ", expected 0 to ", detail::kMaxWeight);
    }
  }
  if (settings == nullptr) return;
  for (const auto& [key, value] : *settings) {
    const double* number = std::get_if<double>(&value);
    if (number != nullptr && !std::isfinite(*number)) {
      refuse("trace: setting '", key, "' is ", *number, ", expected a finite number");
    }
  }
}

TraceView until(TraceView trace, double step) {
  if (std::isnan(step)) detail::refuse("until: step is nan, expected a number");
  require_equal_lengths(trace);
  const std::size_t kept = std::ranges::upper_bound(trace.step, step) - trace.step.begin();
  return {trace.step.first(kept),
          trace.loss.first(kept),
          trace.weight.empty() ? trace.weight : trace.weight.first(kept),
          trace.lr.empty() ? trace.lr : trace.lr.first(kept),
          trace.settings,
          trace.metric};
}

}  // namespace glidepath
