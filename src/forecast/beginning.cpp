// SPDX-License-Identifier: Apache-2.0
#include "forecast/beginning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/interpolate.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "forecast/gaps.hpp"
#include "forecast/level.hpp"
#include "forecast/passages.hpp"
#include "forecast/past_runs.hpp"
#include "forecast/settings.hpp"
#include "forecast/weighted.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMinBegun = 3;              // past runs that tell anything
constexpr std::size_t kMaxBegun = 48;             // heaviest ones
constexpr double kMinCovered = 0.98;              // of the last step, that a past run must reach
constexpr double kValueWidth = 0.5;               // of the kernel over the value now, in spreads
constexpr double kMaxSquareDistance = 1e6;        // also of what overflows
constexpr double kUnlikeShare = 1e-3;             // of the weight, shared by all runs
constexpr double kSmoothing = 0.5;                // width of a component, in deviations of the runs
constexpr double kMinDeviation = 0.4;             // of what all runs deviate
constexpr double kBegunPoints = 3;                // points of a run that weigh as much as past runs
constexpr double kRoomBelow = 3, kRoomAbove = 1;  // how far the law goes beyond the past runs, in z
constexpr double kLeastShare = 0.01;              // of a law, that is worth its time
constexpr std::size_t kMinNoisePoints = 6;        // of a later half that shows its noise
constexpr std::size_t kMaxNoisePoints = 64;       // newest ones
constexpr double kLatestStart = 0.1;              // of the last knot, at which a past run may begin
constexpr double kMinLogSmoothing = 0.05;         // of the log steps at which runs arrive

/// A past run as one that has just begun sees it.
struct Begun {
  const Trace* run = nullptr;
  const Coordinate* coordinate = nullptr;
  double weight = 0;
  double shift = 0;  // from its value now to that of the live run

  [[nodiscard]] double z(std::size_t point) const { return coordinate->z(run->loss[point]); }
  [[nodiscard]] bool has_value() const {
    return std::ranges::any_of(run->loss,
                               [&](double loss) { return std::isfinite(coordinate->z(loss)); });
  }
  /// On the line between the points beside a step that have a value; there is one at least.
  [[nodiscard]] double z_at(double step) const {
    const std::vector<double>& at = run->step;
    auto after = static_cast<std::size_t>(std::ranges::upper_bound(at, step) - at.begin());
    std::size_t before = after;
    while (before > 0 && !std::isfinite(z(before - 1))) --before;
    while (after < at.size() && !std::isfinite(z(after))) ++after;
    if (before == 0) return z(after);
    if (after == at.size()) return z(before - 1);
    return interpolate(step, std::array{at[before - 1], at[after]},
                       std::array{z(before - 1), z(after)});
  }
};

/// Square distances into shares of a Gaussian kernel, the nearest run with the most.
void into_shares(std::vector<double>& square) {
  for (double& d : square) {
    if (!(d < kMaxSquareDistance)) d = kMaxSquareDistance;
  }
  const double nearest = *std::ranges::min_element(square);
  const double least = kUnlikeShare / static_cast<double>(square.size());
  double total = 0;
  for (double& d : square) total += d = std::exp(-0.5 * (d - nearest)) + least;
  for (double& share : square) share /= total;
}

/// Weighs the runs by their settings and by their value at the last step of the live run, and keeps
/// the heaviest. Half of the weight goes by what is learned of the settings, half by all alike:
/// what few runs teach is too sure.
void weigh(const Prepared& p, const Settings* settings, std::span<const Relevance> relevance,
           std::vector<Begun>& runs) {
  std::vector<double> learned(runs.size(), 0.0);
  if (!p.step.empty()) {
    const double now = p.step.back() - p.step_shift;
    std::vector<double> values;
    for (const Begun& run : runs) values.push_back(run.z_at(now));
    const double width = kValueWidth * spread(values);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      runs[r].shift = p.last_z - values[r];
      learned[r] += runs[r].shift * runs[r].shift / (width * width);
    }
  }
  std::vector<double> alike = learned;
  if (settings != nullptr && !settings->empty()) {
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const SettingsDistance d = settings_distance(*settings, runs[r].run->settings, relevance);
      learned[r] += d.learned;
      alike[r] += d.plain;
    }
  }
  into_shares(learned);
  into_shares(alike);
  for (std::size_t r = 0; r < runs.size(); ++r) runs[r].weight = 0.5 * (learned[r] + alike[r]);
  std::ranges::stable_sort(runs,
                           [](const Begun& a, const Begun& b) { return a.weight > b.weight; });
  runs.resize(std::min(runs.size(), kMaxBegun));
  const double total = std::accumulate(runs.begin(), runs.end(), 0.0,
                                       [](double sum, const Begun& b) { return sum + b.weight; });
  for (Begun& run : runs) run.weight /= total;
}

/// Width of the kernel around each run as a share of their deviation: narrower the more there are.
double smoothing(std::span<const Begun> runs) {
  double square = 0;
  for (const Begun& run : runs) square += run.weight * run.weight;
  return kSmoothing * std::pow(square, 0.2);
}

struct Deviation {
  double all = 0, weighted = 0;
};

Deviation deviation(std::span<const double> value, std::span<const Begun> runs) {
  double mean = 0, weighted_mean = 0;
  const auto n = static_cast<double>(value.size());
  for (std::size_t r = 0; r < value.size(); ++r) {
    mean += value[r] / n;
    weighted_mean += runs[r].weight * value[r];
  }
  double square = 0, weighted = 0;
  for (std::size_t r = 0; r < value.size(); ++r) {
    square += (value[r] - mean) * (value[r] - mean) / n;
    weighted += runs[r].weight * (value[r] - weighted_mean) * (value[r] - weighted_mean);
  }
  return {std::sqrt(square), std::sqrt(weighted)};
}

/// The runs that tell of a beginning, and the step as far as which they do: the horizon where
/// enough of them go there, else as far as half of them go. Those that end before it are left out.
struct Beginnings {
  std::vector<Begun> runs{};
  double end = 0;
};

Beginnings beginnings_of(const Prepared& p, const Coordinate& coordinate, const PastRuns& past,
                         double horizon) {
  const double now = p.step.empty() ? -kInfinity : p.step.back() - p.step_shift;
  Beginnings found;
  std::vector<double> ends;
  for (const Trace& run : past.runs()) {
    const auto ended = last_number(run.loss);
    if (!ended || !std::isfinite(coordinate.z(run.loss[*ended]))) continue;
    const double last = std::min(run.step[*ended] / kMinCovered, horizon);
    if (last <= now) continue;
    if (!p.step.empty() && run.step.front() > std::max(now, kLatestStart * last)) continue;
    found.runs.push_back({.run = &run, .coordinate = &coordinate});
    ends.push_back(last);
  }
  if (ends.size() < kMinBegun) return {};
  std::vector<double> sorted = ends;
  std::ranges::sort(sorted, std::greater{});
  const bool covered = sorted[kMinBegun - 1] == horizon;
  found.end = covered ? horizon : sorted[std::max(kMinBegun - 1, (sorted.size() - 1) / 2)];
  std::size_t r = 0;
  std::erase_if(found.runs, [&](const Begun&) { return ends[r++] < found.end; });
  return found;
}

/// One component for each run, which stays where it was at the end of what they tell, and widens;
/// none where they are too few.
std::optional<Mixture> begun_like(const Prepared& p, const Coordinate& coordinate,
                                  const Settings* settings, const PastRuns& past, const Law& law) {
  auto [runs, end] = beginnings_of(p, coordinate, past, law.knots.back() - law.step_shift);
  if (runs.empty()) return std::nullopt;
  weigh(p, settings, past.relevance(), runs);
  const double smooth = smoothing(runs);

  Mixture mixture;
  mixture.components = runs.size();
  mixture.queries = law.knots.size();
  for (const Begun& run : runs) mixture.weight.push_back(run.weight);
  std::vector<double> at(runs.size());
  for (const double knot : law.knots) {
    const double step = std::min(knot - law.step_shift, end);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      at[r] = runs[r].z_at(step) + runs[r].shift;
    }
    const Deviation d = deviation(at, runs);
    const double told = smooth * std::max(d.weighted, kMinDeviation * d.all) + 1e-6;
    const double beyond = scale_of_unknown(knot / (step + law.step_shift));
    const double scale = knot - law.step_shift <= end ? told : std::hypot(told, beyond);
    mixture.location.insert(mixture.location.end(), at.begin(), at.end());
    mixture.scale.insert(mixture.scale.end(), at.size(), scale);
    // Values near the limits of a double leave nothing that could be told.
    if (!is_scale(scale) || !std::ranges::all_of(at, is_location)) return std::nullopt;
  }
  return mixture;
}

/// When a past run came to the target, or where it ended before.
struct Arrival {
  double weight = 0;
  double log_step = 0;
  bool arrived = false, failed = false;
};

Arrival arrival_of(const Begun& run, const Coordinate& coordinate, double target,
                   const ForecastOptions& options) {
  Level level{.target = target, .direction = options.direction, .reached_by = reading(options)};
  const Trace& trace = *run.run;
  const std::size_t n = trace.step.size();
  const auto ended = last_number(trace.loss);
  Arrival seen{.weight = run.weight, .log_step = log_step(trace.step[n - 1], 0), .failed = !ended};
  for (std::size_t i = 0; i < n; ++i) {
    double y = trace.loss[i];
    // As far from the live run's value as it is now, so far it will be.
    const double z = run.shift != 0 ? coordinate.z(y) : kInfinity;
    if (std::isfinite(z)) y = coordinate.metric(z + run.shift);
    const bool there = options.direction == Direction::max ? y >= target : y <= target;
    if (!level.add(y) && !(there && i == ended)) continue;
    seen.log_step = log_step(trace.step[i], 0);
    seen.arrived = true;
    return seen;
  }
  return seen;
}

/// The weight of a run that ended before its target goes to those that came later (redistribution
/// to the right, Efron 1967), or to never where there are none or it failed.
double redistribute(std::vector<Arrival>& arrivals) {
  // Who ended at a step was not there yet when others arrived at it.
  std::ranges::stable_sort(arrivals, [](const Arrival& a, const Arrival& b) {
    return a.log_step != b.log_step ? a.log_step < b.log_step : a.arrived && !b.arrived;
  });
  double never = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    Arrival& run = arrivals[i];
    if (run.arrived) continue;
    double later = 0;
    for (std::size_t j = i + 1; j < arrivals.size(); ++j) later += arrivals[j].weight;
    if (run.failed || !(later > 0)) {
      never += run.weight;
    } else {
      for (std::size_t j = i + 1; j < arrivals.size(); ++j) {
        arrivals[j].weight *= 1 + run.weight / later;
      }
    }
    run.weight = 0;
  }
  std::erase_if(arrivals, [](const Arrival& run) { return run.weight == 0; });
  return never;
}

/// White noise of one value, the median of the runs: from second differences of their later halves,
/// in which a curve hardly shows.
double noise_of(const PastRuns& past, const Coordinate& coordinate) {
  std::vector<double> noises;
  for (const Trace& run : past.runs()) {
    const std::size_t n = run.loss.size(), newest = std::min(n - n / 2, kMaxNoisePoints);
    std::vector<double> z, differences;
    for (const double loss : std::span(run.loss).last(newest)) {
      if (std::isfinite(coordinate.z(loss))) z.push_back(coordinate.z(loss));
    }
    if (z.size() < kMinNoisePoints) continue;
    for (std::size_t i = 2; i < z.size(); ++i) {
      differences.push_back(std::abs(z[i] - 2 * z[i - 1] + z[i - 2]));
    }
    noises.push_back(median(differences) / (kMadPerDeviation * std::sqrt(6.0)));
  }
  return noises.empty() ? 0.0 : median(noises);
}

/// The coordinate of the live run; before its first point that of all past runs.
Coordinate coordinate_of(const Prepared& p, const PastRuns& past) {
  if (!p.step.empty()) return p.coordinate;
  std::vector<const Trace*> all;
  for (const Trace& run : past.runs()) all.push_back(&run);
  return pooled_coordinate(all);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

bool begin(const Prepared& p, const Settings* settings, const PastRuns& past, Law& law) {
  if (past.runs().size() < kMinBegun) return false;
  const Coordinate coordinate = coordinate_of(p, past);
  std::optional<Mixture> mixture = begun_like(p, coordinate, settings, past, law);
  if (!mixture) return false;
  law.coordinate = coordinate;
  law.mixture = std::move(*mixture);
  // The value from which they go on is a noisy one; where there is none, they are as noisy as it.
  law.noise = p.step.empty() ? 0.0 : noise_of(past, coordinate);
  const auto [low, high] = std::ranges::minmax_element(law.mixture.location);
  // A signed metric has no unit but how far the runs are apart.
  const double room = coordinate.logarithmic ? 1.0 : std::max(1.0, *high - *low);
  law.lowest = *low - kRoomBelow * room;
  law.highest = *high + kRoomAbove * room;
  return true;
}

void mix_in_beginnings(const Prepared& p, const Settings* settings, const PastRuns& past,
                       double likeness, Law& law) {
  if (starts_late(p.step, p.count)) return;  // few points of a run that was resumed, not begun
  const double points = static_cast<double>(p.step.size()) / kBegunPoints;
  const bool taught = settings != nullptr && !settings->empty() && !past.relevance().empty();
  const double share = (taught ? 1.0 : likeness) / (points * points + 1);
  if (share < kLeastShare) return;
  std::optional<Mixture> alike = begun_like(p, p.coordinate, settings, past, law);
  if (!alike) return;
  alike->degrees = law.mixture.degrees;
  law.mixture = mixed(*alike, law.mixture, share);
  const auto [low, high] = std::ranges::minmax_element(alike->location);
  law.lowest = std::min(law.lowest, *low);
  law.highest = std::max(law.highest, *high);
}

std::optional<std::vector<double>> arrivals(TraceView trace, double target,
                                            std::span<const double> steps,
                                            const ForecastOptions& options) {
  const PastRuns& past = *options.past;
  const Prepared p =
      prepare(trace, options.direction, constants_of(options), metric_range_of(options.past));
  const double now = p.step.empty() ? 0 : p.step.back() - p.step_shift;
  const Coordinate coordinate = coordinate_of(p, past);
  std::vector<Begun> runs;
  for (const Trace& run : past.runs()) {
    if (run.step.empty() || run.step.back() <= now) continue;
    const Begun seen{.run = &run, .coordinate = &coordinate};
    // Before a first point one without any value counts as well: it never arrives.
    if (p.step.empty() || seen.has_value()) runs.push_back(seen);
  }
  if (runs.size() < kMinBegun) return std::nullopt;
  weigh(p, trace.settings, past.relevance(), runs);
  const double smooth = smoothing(runs);
  std::vector<Arrival> seen;
  for (const Begun& run : runs) {
    seen.push_back(arrival_of(run, coordinate, target, options));
  }
  const double never = redistribute(seen);
  double mean = 0, square = 0, total = 0;
  for (const Arrival& run : seen) {
    total += run.weight;
    mean += run.weight * run.log_step;
    square += run.weight * run.log_step * run.log_step;
  }
  std::vector<double> cdf(steps.size(), 0.0);
  if (!(total > 0)) return cdf;
  mean /= total;
  const double width =
      std::max(smooth * std::sqrt(std::max(square / total - mean * mean, 0.0)), kMinLogSmoothing);
  const auto by = [&](double step) {
    if (!(step > 0)) return 0.0;
    double sum = 0;
    for (const Arrival& run : seen) {
      sum += run.weight * normal_cdf((std::log(step) - run.log_step) / width);
    }
    return sum / (total + never);
  };
  const double before = by(now);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    cdf[i] = std::clamp((by(steps[i]) - before) / std::max(1 - before, 1e-12), 0.0, 1.0);
  }
  return cdf;
}

}  // namespace glidepath::detail
