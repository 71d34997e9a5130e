// SPDX-License-Identifier: Apache-2.0
#include "forecast/settings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/interpolate.hpp"
#include "common/interrupt.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "forecast/prepare.hpp"

namespace glidepath::detail {
namespace {

constexpr std::size_t kMinAlike = 3;      // runs with settings that can tell anything
constexpr std::size_t kMaxTaught = 50;    // newest runs; more take their time and teach little
constexpr std::size_t kMaxSettings = 32;  // in order of their names
constexpr std::size_t kCompared = 8;      // steps at which curves are compared
constexpr double kComparedLogs = 4;       // the last so many log steps of the median run
constexpr std::array kWeights{0.0, 0.25, 1.0, 4.0, 16.0, 64.0};
// Of the error where nothing is known, which another weight must gain.
constexpr double kMinGain = 0.005;
constexpr int kPasses = 2;             // over the settings
constexpr double kFloorWeight = 1e-6;  // of a run that is unlike in everything
constexpr std::array<std::string_view, 2> kPassedOver{"seed", "random_seed"};

/// Square difference of one setting, in spreads; 1 where it is another word or only one run has it.
double difference(const Settings& a, const Settings& b, const std::string& key, double spread) {
  const auto mine = a.find(key), other = b.find(key);
  const bool absent = mine == a.end(), other_absent = other == b.end();
  if (absent || other_absent) return absent == other_absent ? 0 : 1;
  if (mine->second == other->second) return 0;
  const double* x = std::get_if<double>(&mine->second);
  const double* y = std::get_if<double>(&other->second);
  if (x == nullptr || y == nullptr || !(*x > 0) || !(*y > 0)) return 1;
  const double ratio = (std::log(*x) - std::log(*y)) / spread;
  return ratio * ratio;
}

/// Standard deviation of the logarithms of the positive numbers; 1 where they do not differ.
double spread_of(std::span<const Trace* const> runs, const std::string& key) {
  double n = 0, sum = 0, square = 0;
  for (const Trace* run : runs) {
    const auto found = run->settings.find(key);
    if (found == run->settings.end()) continue;
    const double* number = std::get_if<double>(&found->second);
    if (number == nullptr || !(*number > 0)) continue;
    const double log = std::log(*number);
    n += 1;
    sum += log;
    square += log * log;
  }
  if (n < 2) return 1;
  const double variance = square / n - (sum / n) * (sum / n);
  return variance > 1e-12 ? std::sqrt(variance) : 1;
}

/// The curves at the compared steps, NaN past the end of a run, and what one differs by there.
struct Curves {
  std::vector<std::array<double, kCompared>> z{};
  std::array<double, kCompared> spread{};
};

Curves curves_of(std::span<const Trace* const> runs) {
  std::vector<double> ends;
  for (const Trace* run : runs) ends.push_back(std::log1p(run->step.back() - run->step.front()));
  const double last = median(ends), first = std::max(last - kComparedLogs, 0.1 * last);
  const Coordinate coordinate = pooled_coordinate(runs);
  Curves curves;
  for (const Trace* run : runs) {
    std::vector<double> at, z;
    for (std::size_t i = 0; i < run->step.size(); ++i) {
      const double value = coordinate.z(run->loss[i]);
      if (!std::isfinite(value)) continue;
      at.push_back(std::log1p(run->step[i] - run->step.front()));
      z.push_back(value);
    }
    auto& row = curves.z.emplace_back();
    for (std::size_t h = 0; h < kCompared; ++h) {
      const double part = static_cast<double>(h) / static_cast<double>(kCompared - 1);
      const double query = first + part * (last - first);
      row[h] = !at.empty() && query <= at.back() + 1e-9 ? interpolate(query, at, z)
                                                        : std::numeric_limits<double>::quiet_NaN();
    }
  }
  for (std::size_t h = 0; h < kCompared; ++h) {
    double n = 0, sum = 0, square = 0;
    for (const auto& row : curves.z) {
      if (std::isnan(row[h])) continue;
      n += 1;
      sum += row[h];
      square += row[h] * row[h];
    }
    const double variance = n > 0 ? square / n - (sum / n) * (sum / n) : 0;
    curves.spread[h] = std::sqrt(std::max(variance, 0.0)) + 1e-9;
  }
  return curves;
}

/// Square differences by setting and pair of runs, and which pairs have the same settings.
struct Differences {
  std::size_t runs = 0;
  std::vector<std::vector<double>> by_setting{};  // (settings, runs x runs)
  std::vector<bool> same{};                       // (runs x runs)
};

Differences differences_of(std::span<const Trace* const> runs,
                           std::span<const Relevance> relevance) {
  Differences d;
  d.runs = runs.size();
  d.same.assign(d.runs * d.runs, true);
  for (const Relevance& setting : relevance) {
    auto& column = d.by_setting.emplace_back(d.runs * d.runs);
    for (std::size_t i = 0; i < d.runs; ++i) {
      for (std::size_t j = 0; j < d.runs; ++j) {
        const double unlike =
            difference(runs[i]->settings, runs[j]->settings, setting.setting, setting.spread);
        column[i * d.runs + j] = unlike;
        if (unlike > 0) d.same[i * d.runs + j] = false;
      }
    }
  }
  return d;
}

/// Mean error, in spreads, of what runs of other settings say of each run by their kernel weights.
double error_of(const Differences& d, const Curves& curves, std::span<const double> square) {
  double error = 0, counted = 0;
  for (std::size_t i = 0; i < d.runs; ++i) {
    std::array<double, kCompared> sum{}, total{};
    for (std::size_t j = 0; j < d.runs; ++j) {
      if (d.same[i * d.runs + j]) continue;
      const double weight = std::exp(-0.5 * square[i * d.runs + j]) + kFloorWeight;
      for (std::size_t h = 0; h < kCompared; ++h) {
        if (std::isnan(curves.z[j][h])) continue;
        sum[h] += weight * curves.z[j][h];
        total[h] += weight;
      }
    }
    for (std::size_t h = 0; h < kCompared; ++h) {
      if (!(total[h] > 0) || std::isnan(curves.z[i][h])) continue;
      error += std::abs(sum[h] / total[h] - curves.z[i][h]) / curves.spread[h];
      counted += 1;
    }
  }
  return counted > 0 ? error / counted : 0;
}

/// The names of settings in which the runs differ, each with its spread.
std::vector<Relevance> varied(std::span<const Trace* const> runs) {
  std::set<std::string> names;
  for (const Trace* run : runs) {
    for (const auto& [name, value] : run->settings) names.insert(name);
  }
  std::vector<Relevance> found;
  for (const std::string& name : names) {
    if (std::ranges::find(kPassedOver, name) != kPassedOver.end()) continue;
    const bool differs = std::ranges::any_of(runs, [&](const Trace* run) {
      return difference(run->settings, runs.front()->settings, name, 1) > 0;
    });
    if (differs && found.size() < kMaxSettings) found.push_back({name, 0, spread_of(runs, name)});
  }
  return found;
}

}  // namespace

std::vector<Relevance> learn_relevance(std::span<const Trace> all) {
  std::vector<const Trace*> runs;
  for (const Trace& run : all.last(std::min(all.size(), kMaxTaught))) {
    if (!run.settings.empty() && run.step.size() > 1) runs.push_back(&run);
  }
  if (runs.size() < kMinAlike) return {};
  std::vector<Relevance> relevance = varied(runs);
  if (relevance.empty()) return {};
  const Curves curves = curves_of(runs);
  const Differences d = differences_of(runs, relevance);
  std::vector<double> square(d.runs * d.runs, 0.0);
  const double unknown = error_of(d, curves, square);
  double best = unknown;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::size_t s = 0; s < relevance.size(); ++s) {
      check_interrupt();
      const std::vector<double> others = [&] {
        std::vector<double> rest = square;
        for (std::size_t k = 0; k < rest.size(); ++k) {
          rest[k] = std::max(rest[k] - relevance[s].weight * d.by_setting[s][k], 0.0);
        }
        return rest;
      }();
      for (const double weight : kWeights) {
        std::vector<double> tried = others;
        for (std::size_t k = 0; k < tried.size(); ++k) tried[k] += weight * d.by_setting[s][k];
        const double error = error_of(d, curves, tried);
        if (!(error < best - kMinGain * unknown)) continue;
        best = error;
        relevance[s].weight = weight;
        square = std::move(tried);
      }
    }
  }
  return relevance;
}

SettingsDistance settings_distance(const Settings& a, const Settings& b,
                                   std::span<const Relevance> relevance) {
  SettingsDistance square;
  for (const Relevance& setting : relevance) {
    const double unlike = difference(a, b, setting.setting, setting.spread);
    square.learned += setting.weight * unlike;
    square.plain += unlike;
  }
  return square;
}

}  // namespace glidepath::detail
