// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "common/statistics.hpp"
#include "trace/direction.hpp"

namespace glidepath {
namespace {

using Indices = std::vector<std::size_t>;

/// Keeps the rows of `from` at `indices`; an empty column stays empty.
Trace rows(const Trace& from, const Indices& indices) {
  const auto pick = [&](const std::vector<double>& column) {
    std::vector<double> picked;
    if (column.empty()) return picked;
    picked.reserve(indices.size());
    for (const std::size_t i : indices) picked.push_back(column[i]);
    return picked;
  };
  return {.name = from.name,
          .step = pick(from.step),
          .loss = pick(from.loss),
          .lr = pick(from.lr),
          .wall_seconds = pick(from.wall_seconds),
          .metric = from.metric,
          .direction = from.direction,
          .planned_steps = from.planned_steps,
          .settings = from.settings,
          .notes = from.notes};
}

/// Standard deviation of the noise from the successive differences of the losses, which a slow
/// trend leaves alone: 1.4826 median |d - median d| / sqrt 2.
double noise_of(const std::vector<double>& loss) {
  std::vector<double> d(loss.size() - 1);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = loss[i + 1] - loss[i];
  const double centre = detail::median(d);
  for (double& each : d) each = std::abs(each - centre);
  return detail::kDeviationPerMad * detail::median(d) / std::sqrt(2.0);
}

/// Pulls each loss to within `sigmas` noise levels of the median of its window of five. A monotone
/// stretch equals its own medians, so a steep start is no spike; nor is an end point ever pulled,
/// since it alone cannot tell a spike from a turn.
std::size_t winsorize(std::vector<double>& loss, double sigmas) {
  if (loss.size() < 3) return 0;
  const double reach = sigmas * noise_of(loss);
  if (!(reach > 0)) return 0;  // no noise to measure a spike by
  const std::vector<double> raw = loss;
  std::size_t pulled = 0;
  for (std::size_t i = 1; i + 1 < raw.size(); ++i) {
    const std::size_t arm = std::min({std::size_t{2}, i, raw.size() - 1 - i});
    std::array<double, 5> window{};
    std::copy_n(raw.begin() + (i - arm), 2 * arm + 1, window.begin());
    const double centre = detail::median({window.data(), 2 * arm + 1});
    loss[i] = std::clamp(raw[i], centre - reach, centre + reach);
    pulled += loss[i] != raw[i];
  }
  return pulled;
}

/// `count` indices from first to last, as even in log step as the points allow: each time the rest
/// of the way is divided by the points left, so what sparse early steps cannot use goes to later
/// ones.
Indices log_spaced(const std::vector<double>& step, std::size_t count) {
  // Steps that start at or below 0 are moved so that the first interval starts at its own length.
  const double origin = step.front() > 0 ? 0.0 : 2 * step.front() - step[1];
  const auto x = [&](std::size_t i) { return std::log(step[i] - origin); };
  Indices kept{0};
  for (std::size_t left = count - 1; left > 0; --left) {
    const double target =
        x(kept.back()) + (x(step.size() - 1) - x(kept.back())) / static_cast<double>(left);
    std::size_t i = kept.back() + 1;
    while (i + left < step.size() && x(i) < target) ++i;
    if (i > kept.back() + 1 && x(i) - target > target - x(i - 1)) --i;
    kept.push_back(left == 1 ? step.size() - 1 : i);
  }
  return kept;
}

void require_columns(const Trace& raw) {
  const auto check = [&](const std::vector<double>& column, const char* what) {
    if (column.size() == raw.step.size()) return;
    detail::refuse("clean: ", raw.step.size(), " steps but ", column.size(), " ", what);
  };
  check(raw.loss, "losses");
  if (!raw.lr.empty()) check(raw.lr, "learning rates");
  if (!raw.wall_seconds.empty()) check(raw.wall_seconds, "wall times");
}

}  // namespace

Cleaned clean(const Trace& raw, const CleanOptions& options) {
  require_columns(raw);
  detail::refuse_unknown(raw.direction, "clean: direction");
  if (options.max_points < 2) {
    detail::refuse("clean: max_points is ", options.max_points, ", expected at least 2");
  }
  if (!(options.winsorize_sigmas >= 0)) {
    detail::refuse("clean: winsorize_sigmas is ", options.winsorize_sigmas, ", expected 0 or more");
  }
  Cleaned cleaned;

  Indices order(raw.step.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) {
    return !detail::is_step(raw.step[i]) || !std::isfinite(raw.loss[i]);
  });
  cleaned.dropped_nonfinite = raw.step.size() - order.size();

  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return raw.step[a] < raw.step[b]; });
  Indices once;
  once.reserve(order.size());
  for (const std::size_t i : order) {
    if (!once.empty() && raw.step[once.back()] == raw.step[i]) {
      once.back() = i;
    } else {
      once.push_back(i);
    }
  }
  cleaned.dropped_repeats = order.size() - once.size();
  cleaned.trace = rows(raw, once);

  if (options.winsorize_sigmas > 0) {
    cleaned.pulled_in = winsorize(cleaned.trace.loss, options.winsorize_sigmas);
  }

  const std::size_t most = options.max_points;
  if (once.size() > most) {
    cleaned.thinned = once.size() - most;
    cleaned.trace = rows(cleaned.trace, log_spaced(cleaned.trace.step, most));
  }
  return cleaned;
}

}  // namespace glidepath
