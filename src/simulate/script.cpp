// SPDX-License-Identifier: Apache-2.0
// What is the same in every sample: the parts, their orders and the draws.
#include "glidepath/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "common/rng.hpp"
#include "common/statistics.hpp"
#include "plan/value.hpp"
#include "simulate/play.hpp"
#include "simulate/policy_table.hpp"

namespace glidepath::detail {
namespace {

/// Least E[min(S, d)] / P(S <= d) over d of what is left, just after each value and at 0; the
/// target is reached by the first `reach` values only.
std::vector<double> ranks_of(const std::vector<double>& left, std::size_t reach) {
  const std::size_t n = left.size();
  std::vector<double> out(n, kInfinity);
  for (std::size_t k = 0; k < n; ++k) {
    const double done = k == 0 ? 0 : left[k - 1];
    double sum = 0;
    for (std::size_t j = k; j < reach; ++j) {
      const double more = left[j] - done;
      sum += more;
      const auto behind = static_cast<double>(n - 1 - j);
      out[k] = std::min(out[k], (sum + behind * more) / static_cast<double>(j + 1 - k));
    }
  }
  return out;
}

/// Whether it may run on several numbers of GPUs of a tier.
bool is_elastic(const Part& part) {
  return std::any_of(part.ways.begin(), part.ways.end(), [&](const Way& way) {
    return std::any_of(part.ways.begin(), part.ways.end(), [&](const Way& other) {
      return other.tier == way.tier && other.gpus != way.gpus;
    });
  });
}

/// What is left of a believed size; once that is done, as long again.
double left_of(double believed, double progress, double done) {
  const double left = believed - progress;
  return left > 0 ? left : std::max(1.0, done + progress);
}

/// The value below which a standard normal variable is with probability u, 0 < u < 1. Newton's
/// method from 0: the distribution is concave on that side, so no step passes the root.
double normal_quantile(double u) {
  const double tail = std::min(u, 1 - u);
  double z = 0;
  for (int step = 0; step < 40; ++step) {
    const double density = std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const double more = (std::erfc(z / std::numbers::sqrt2) / 2 - tail) / density;
    z += more;
    if (!(more > 1e-12)) break;
  }
  return u < 0.5 ? -z : z;
}

}  // namespace

int las_level(double attained_gpu_s) {
  return static_cast<int>(std::count_if(kLasLimitsGpuS.begin(), kLasLimitsGpuS.end(),
                                        [&](double limit) { return attained_gpu_s >= limit; }));
}

double Part::fastest() const {
  double rate = 0;
  for (const Way& way : ways) rate = std::max(rate, way.steps_per_s);
  return rate;
}

double Part::least_gpu_s() const {
  double least = kInfinity;
  for (const Way& way : ways) least = std::min(least, way.gpus / way.steps_per_s);
  return least;
}

double Part::counted_s(double progress) const {
  const double counted = is_believed ? believed : left[quantile_index(left.size(), kEndQuantile)];
  return left_of(counted, progress, steps_done) / fastest();
}

PlayKey Script::waiting_key(const Part& part) const {
  PlayKey out{rule.classes ? -part.priority : 0, 0, part.place};
  const double gpus = part.gpus();
  const double left = left_of(part.believed, 0, part.steps_done) / part.fastest();
  if (divides) {
    out.key = part.law->rank * part.unit;
    return out;
  }
  switch (rule.order) {
    case PlayOrder::arrival:
      break;
    case PlayOrder::gang:
      out.key = gpus;
      break;
    case PlayOrder::time:
      out.key = left;
      break;
    case PlayOrder::service:
      out.key = left * gpus;
      break;
    case PlayOrder::level:
      out.key = las_level(part.attained_gpu_s);
      break;
    case PlayOrder::index:
      out.key = part.law->rank / part.fastest() * gpus / (rule.weighs ? part.weight : 1);
      break;
  }
  return out;
}

/// What the recent jobs bring within the horizon.
double Script::recent_load() const {
  double work = 0;
  for (std::size_t i = live; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (part.ways.empty()) continue;
    double sum_s = 0;
    for (const double left : part.left) sum_s += std::min(left / part.fastest(), horizon_s);
    const double gpus = divides ? part.least_gpu_s() * part.fastest() : part.gpus();
    if (sum_s < kInfinity) work += gpus * sum_s / static_cast<double>(part.left.size());
  }
  const double gpus = std::accumulate(capacity.begin(), capacity.end(), 0.0);
  return window_s > 0 && gpus > 0 ? work / (gpus * window_s) : 0;
}

/// One after the other as well, since an event reads some values of a law that are neighbours.
void Script::rank_laws() {
  std::size_t count = 0;
  for (const Part& part : parts) count += part.left.size() + 1;
  atoms.reserve(count);
  for (Part& part : parts) {
    const std::size_t first = atoms.size();
    if (part.is_believed) {
      atoms.push_back({.rank = left_of(part.believed, 0, part.steps_done)});
    } else {
      const std::vector<double> ranks = ranks_of(part.left, part.reach);
      for (std::size_t k = 0; k < ranks.size(); ++k) {
        atoms.push_back({.left = part.left[k], .rank = ranks[k]});
      }
      atoms.push_back({.left = kInfinity});  // the index falls to 0 towards the last value
      double peak = 0;
      for (std::size_t k = atoms.size(); k-- > first;) {
        atoms[k].peak = peak = std::max(peak, atoms[k].rank);
      }
    }
    part.law = &atoms[first];
  }
}

void Script::find_prices() {
  std::vector<std::int64_t> job, tier, gpus;
  std::vector<double> value;
  for (int j = 0; j < live; ++j) {
    const double rank = std::max(parts[j].fastest(), parts[j].law->rank);
    for (const Way& way : parts[j].ways) {
      job.push_back(j);
      tier.push_back(way.tier);
      gpus.push_back(way.gpus);
      value.push_back(parts[j].weight * way.steps_per_s / rank);
    }
  }
  prices.assign(capacity.size(), 0);
  const double top = value.empty() ? 0 : *std::max_element(value.begin(), value.end());
  if (!(top > 0)) return;
  for (double& each : value) each /= top;
  const std::vector<std::int64_t> all(capacity.begin(), capacity.end());
  const RoundPlan now = solve_round(
      {.job = job, .tier = tier, .gpus = gpus, .value = value, .capacity = all}, {}, Execution{1});
  for (std::size_t t = 0; t < prices.size(); ++t) prices[t] = now.prices[t] * top;
}

void Script::prepare() {
  divides = divides && std::any_of(parts.begin(), parts.end(), is_elastic);
  load = recent_load();
  if (rule.order == PlayOrder::index) rank_laws();
  for (Part& part : parts) {
    part.unit = (rule.order == PlayOrder::time ? 1.0 : part.gpus()) / part.fastest() /
                (rule.weighs ? part.weight : 1);
    if (divides && !part.ways.empty()) part.unit = part.least_gpu_s() / part.weight;
    one_class = one_class && !(rule.classes && part.priority != 0);
    part.by_law = rule.order == PlayOrder::index && !part.is_believed;
    part.end = part.by_law ? part.left.back() : part.believed;
    std::vector<Way> shape(part.ways.begin(), part.ways.end());
    for (Way& way : shape) way.steps_per_s = 0;
    const auto same = [&](const std::vector<Way>& other) {
      return std::equal(
          shape.begin(), shape.end(), other.begin(), other.end(),
          [](const Way& a, const Way& b) { return a.tier == b.tier && a.gpus == b.gpus; });
    };
    const auto found = std::find_if(shapes.begin(), shapes.end(), same);
    part.shape = static_cast<int>(found - shapes.begin());
    if (found == shapes.end()) shapes.push_back(std::move(shape));
  }
  const bool one_way = capacity.size() == 1 &&
                       std::all_of(shapes.begin(), shapes.end(),
                                   [](const std::vector<Way>& shape) { return shape.size() <= 1; });
  for (const std::vector<Way>& shape : shapes) {
    const int gang = shape.empty() ? std::numeric_limits<int>::max() : shape.front().gpus;
    if (one_way) gangs.push_back(gang);
  }
  by_prices = divides && one_class && capacity.size() > 1;
  if (by_prices) find_prices();
  if (rule.reserves) {
    for (const Part& part : parts) {
      needs.push_back({part.counted_s(0), std::numeric_limits<int>::max()});
      Need& need = needs.back();
      for (const Way& way : part.ways) need.gpus = std::min(need.gpus, way.gpus);
    }
  }
  waiting.resize(shapes.size());
  for (int job = 0; job < live; ++job) {
    const Part& part = parts[job];
    if (part.running >= 0 || part.ways.empty()) continue;
    waiting[part.shape].push_back({waiting_key(part), job, job});
  }
  for (auto& jobs : waiting) std::sort(jobs.begin(), jobs.end());
}

Script::Luck Script::luck(std::uint64_t sample) const {
  const Rng rng{seed};
  constexpr double kLeast = 1e-15;
  const auto in_turn = [&](std::uint64_t which, double step) {
    const double turn = rng.uniform(0, which) + static_cast<double>(sample) * step;
    return normal_quantile(std::clamp(turn - std::floor(turn), kLeast, 1 - kLeast));
  };
  return {in_turn(0, std::numbers::sqrt3), in_turn(1, std::numbers::phi)};
}

void Script::draw_uniforms(int job, std::span<double> uniforms) const {
  const Rng rng{seed}, shuffle{seed ^ 0x7368756666ULL};
  const std::uint64_t id = parts[job].id;
  const auto n = static_cast<std::uint64_t>(samples);
  const auto of = [&](std::uint64_t sample) -> double& { return uniforms[sample * live + job]; };
  for (std::uint64_t s = 0; s < n; ++s) {
    const auto count = static_cast<double>(s + 1);
    const auto other = static_cast<std::uint64_t>(shuffle.uniform(id, s) * count);
    of(s) = of(other);
    of(other) = static_cast<double>(s);
  }
  for (std::uint64_t s = 0; s < n; ++s) {
    of(s) = (of(s) + rng.uniform(id, s)) / static_cast<double>(n);
  }
}

// ---- one sample

}  // namespace glidepath::detail
