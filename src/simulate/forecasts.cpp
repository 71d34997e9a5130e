// SPDX-License-Identifier: Apache-2.0
#include "simulate/forecasts.hpp"

#include "glidepath/forecast.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "common/rng.hpp"

namespace glidepath {
namespace detail {
namespace {

constexpr int kSamples = 40;        ///< equally likely values of a law
constexpr std::size_t kFewest = 5;  ///< points before the first forecast of a curve

/// The number of points of the last forecast that is due when there are `points`.
std::size_t due(std::size_t points) {
  std::size_t at = kFewest;
  for (std::size_t next = at; next <= points; next = at + std::max<std::size_t>(2, at / 4)) {
    at = next;
  }
  return at;
}

std::uint64_t hash_of(const Trace& curve) {
  std::uint64_t hash = 0;
  for (const auto* column : {&curve.step, &curve.loss, &curve.lr}) {
    hash = Rng{hash}.bits(column->size(), 0);
    for (const double value : *column)
      hash = Rng{hash}.bits(std::bit_cast<std::uint64_t>(value), 1);
  }
  return hash;
}

}  // namespace
}  // namespace detail

std::shared_ptr<ForecastMemo> make_forecast_memo() { return std::make_shared<ForecastMemo>(); }

std::shared_ptr<const ForecastMemo::Law> ForecastMemo::find(const Key& key,
                                                            const std::function<Law()>& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = laws_.find(key);
    if (found != laws_.end()) return found->second;
  }
  auto law = std::make_shared<const Law>(make());
  const std::lock_guard lock(mutex_);
  return laws_.emplace(key, std::move(law)).first->second;
}

namespace detail {

Predictor::Predictor(const Engine& engine)
    : engine_(engine), sigma_(engine.options.forecast_sigma.value_or(0)) {
  const Rng rng{engine.options.seed};
  total_.reserve(engine.runs.size());
  for (std::size_t i = 0; i < engine.runs.size(); ++i) {
    total_.push_back(engine.runs[i].work * std::exp(sigma_ * rng.normal(i, 0)));
  }
  if (engine.workload.curves.empty()) return;
  known_.resize(engine.runs.size());
  memo_ = engine.options.memo ? engine.options.memo : make_forecast_memo();
  for (const Trace& curve : engine.workload.curves) hash_.push_back(hash_of(curve));
}

void Predictor::curve(int job, Job& seen, bool ahead) {
  Known& known = known_[Engine::index(job)];
  if (seen.observed.step.size() < kFewest) return;
  const std::size_t points =
      known.outrun ? seen.observed.step.size() : due(seen.observed.step.size());
  if (points > known.points) {
    const std::size_t which = Engine::index(engine_.asked(job).truth);
    const auto make = [&] {
      const TraceView prefix{
          seen.observed.step.first(points), seen.observed.loss.first(points), {}};
      // The schedule of the learning rate is part of what the user submitted, unlike the losses.
      const Trace& curve = engine_.workload.curves[which];
      ForecastOptions options;
      if (!curve.lr.empty()) {
        const std::span<const double> lr = curve.lr, step = curve.step;
        options.learning_rate = {lr.first(points), lr.subspan(points), step.subspan(points)};
      }
      ForecastMemo::Law law;
      const Reach reached = reach(prefix, seen.target_loss, seen.budget_steps, options);
      for (int i = 0; i < kSamples; ++i) {
        law.reached_at.push_back(reached.quantile((i + 0.5) / kSamples));
      }
      const double last = prefix.step.back();
      if (ahead && seen.budget_steps > last) {
        for (int i = 1; i <= 8; ++i) law.step.push_back(last + (seen.budget_steps - last) * i / 8);
        law.loss = forecast(prefix, law.step, options).mean;
      }
      return law;
    };
    known.law =
        memo_->find({hash_[which], points, seen.target_loss, seen.budget_steps, ahead}, make);
    known.points = points;
  }
  if (ahead && !known.law->step.empty()) {
    seen.ahead_steps.assign(1, 0);
    seen.ahead_loss.assign(1, seen.observed.loss.back());
    for (std::size_t i = 0; i < known.law->step.size(); ++i) {
      if (known.law->step[i] <= seen.steps_done) continue;
      seen.ahead_steps.push_back(known.law->step[i] - seen.steps_done);
      seen.ahead_loss.push_back(known.law->loss[i]);
    }
  }
  // Steps at which it should have happened by now, and did not, tell nothing any more.
  seen.remaining_steps.clear();
  for (const double step : known.law->reached_at) {
    if (step > seen.steps_done) seen.remaining_steps.push_back(step - seen.steps_done);
  }
  known.outrun = seen.remaining_steps.empty();  // forecast again at the next decision
}

// ---- durations without a curve
//
// The scheduler knows for each job a forecast y = log(work) + sigma z, for the ended ones the work
// itself and for the others that it is more than what they have had. Empirical Bayes: the law of
// log work on a grid that makes this most likely, by EM (Laird 1978), separately for each size of
// gang and drawn to the law of all jobs where a gang has been seen a few times only.

namespace {

constexpr int kGrid = 56;           ///< points of log work over kGridLow + log(ticks per second)
constexpr double kGridLow = 0;      ///< one second
constexpr double kGridStep = 0.32;  ///< up to 4e7 seconds
constexpr int kLawPoints = 64;
constexpr int kRounds = 12;      ///< of EM from a flat start: few, so that the law stays smooth
constexpr double kFlatJobs = 4;  ///< jobs that the flat start is worth
constexpr double kAnyJobs = 10;  ///< jobs that the law of all gangs is worth to one gang

}  // namespace

bool Predictor::refresh() {
  if (sigma_ == 0 || engine_.arrived < learn_at_) return false;
  learn_at_ = engine_.arrived + engine_.arrived / 4 + 1;
  const double origin = kGridLow + std::log(static_cast<double>(engine_.per_second));
  const auto n = static_cast<std::size_t>(engine_.arrived);
  std::vector<double> likelihood(n * kGrid);
  int largest = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const Run& run = engine_.runs[j];
    largest = std::max(largest, run.gpus);
    const bool ended = run.end >= 0;
    const double done = ended ? run.work : engine_.done(static_cast<int>(j));
    const double y = ended ? std::log(run.work) : std::log(total_[j]);
    const double s = std::hypot(ended ? 0.0 : sigma_, 0.5 * kGridStep);
    double sum = 0;
    for (int k = 0; k < kGrid; ++k) {
      const double at = origin + kGridStep * k;
      const double u = (y - at) / s;
      double value = std::exp(-0.5 * std::min(u * u, 1e3));
      if (!ended && done > 0 && at + 0.5 * kGridStep < std::log(done)) value = 0;
      likelihood[j * kGrid + Engine::index(k)] = value;
      sum += value;
    }
    if (sum > 0) continue;
    const double place =
        std::clamp((std::log(std::max(done, 1.0)) - origin) / kGridStep, 0.0, kGrid - 1.0);
    likelihood[j * kGrid + static_cast<std::size_t>(place)] = 1;
  }
  // One fit: the jobs that `take` names, from and towards `base`, which counts as `strength` jobs.
  const auto fit = [&](auto&& take, const std::vector<double>& base, double strength) {
    std::vector<double> weight = base;
    std::vector<double> next(kGrid);
    for (int round = 0; round < kRounds; ++round) {
      double jobs = strength;
      for (int k = 0; k < kGrid; ++k) next[Engine::index(k)] = strength * base[Engine::index(k)];
      for (std::size_t j = 0; j < n; ++j) {
        if (!take(j)) continue;
        const double* row = &likelihood[j * kGrid];
        double sum = 0;
        for (std::size_t k = 0; k < kGrid; ++k) sum += weight[k] * row[k];
        if (sum <= 0) continue;
        for (std::size_t k = 0; k < kGrid; ++k) next[k] += weight[k] * row[k] / sum;
        jobs += 1;
      }
      for (std::size_t k = 0; k < kGrid; ++k) weight[k] = next[k] / jobs;
    }
    return weight;
  };
  any_ = fit([](std::size_t) { return true; }, std::vector<double>(kGrid, 1.0 / kGrid), kFlatJobs);
  of_gang_.assign(Engine::index(largest) + 1, {});
  for (std::size_t j = 0; j < n; ++j) {
    std::vector<double>& weights = of_gang_[Engine::index(engine_.runs[j].gpus)];
    if (!weights.empty()) continue;
    weights = fit([&](std::size_t i) { return engine_.runs[i].gpus == engine_.runs[j].gpus; }, any_,
                  kAnyJobs);
  }
  return true;
}

double Predictor::log_prior(int gpus, double log_work) const {
  const std::size_t g = Engine::index(gpus);
  const std::vector<double>& weight =
      g < of_gang_.size() && !of_gang_[g].empty() ? of_gang_[g] : any_;
  if (weight.empty()) return 0;
  const double origin = kGridLow + std::log(static_cast<double>(engine_.per_second));
  const double place = std::clamp((log_work - origin) / kGridStep, 0.0, kGrid - 1.001);
  const std::size_t k = static_cast<std::size_t>(place);
  const double f = place - static_cast<double>(k);
  return std::log(weight[k] * (1 - f) + weight[k + 1] * f + 1e-12);
}

const Predictor::Law& Predictor::law(int job) const {
  const double done = engine_.done(job);
  const double y = std::log(total_[Engine::index(job)]);
  const double origin = kGridLow + std::log(static_cast<double>(engine_.per_second));
  const double top = origin + kGridStep * (kGrid - 1);
  double low = std::max(origin, std::min(y - 4 * sigma_, top - 1));
  const double high = std::min(top, std::max(y + 4 * sigma_, origin + 1));
  if (done > 0) low = std::max(low, std::log(done));
  law_.work.clear();
  law_.weight.clear();
  if (low >= high) return law_;
  double largest = -1e300;
  for (int i = 0; i < kLawPoints; ++i) {
    const double at = low + (high - low) * (i + 0.5) / kLawPoints;
    const double u = (at - y) / sigma_;
    law_.work.push_back(std::exp(at));
    law_.weight.push_back(-0.5 * u * u + log_prior(engine_.runs[Engine::index(job)].gpus, at));
    largest = std::max(largest, law_.weight.back());
  }
  double sum = 0;
  for (double& weight : law_.weight) sum += weight = std::exp(weight - largest);
  for (double& weight : law_.weight) weight /= sum;
  return law_;
}

double Predictor::gittins_rank(int job) const {
  const double done = engine_.done(job);
  if (sigma_ == 0) return std::max(0.0, total_[Engine::index(job)] - done);
  const Law& known = law(job);
  if (known.work.empty()) return std::max(1.0, done);
  double best = std::numeric_limits<double>::infinity();
  double p = 0;
  double served = 0;
  for (std::size_t i = 0; i < known.work.size(); ++i) {
    const double left = known.work[i] - done;
    p += known.weight[i];
    served += known.weight[i] * left;
    if (p > 1e-9) best = std::min(best, (served + (1 - p) * left) / p);
  }
  return best;
}

void Predictor::service(int job, Job& seen) {
  const auto per_second = static_cast<double>(engine_.per_second);
  const double done = engine_.done(job);
  seen.remaining_steps.clear();
  if (sigma_ == 0) {
    seen.remaining_steps.push_back(std::max(0.0, total_[Engine::index(job)] - done) / per_second);
    return;
  }
  refresh();
  const Law& known = law(job);
  if (known.work.empty()) {  // as long again
    seen.remaining_steps.push_back(std::max(1.0, done) / per_second);
    return;
  }
  double p = 0;
  std::size_t i = 0;
  for (int k = 0; k < kSamples; ++k) {
    while (i + 1 < known.work.size() && p + known.weight[i] < (k + 0.5) / kSamples) {
      p += known.weight[i++];
    }
    seen.remaining_steps.push_back(std::max(1.0, known.work[i] - done) / per_second);
  }
}

}  // namespace detail
}  // namespace glidepath
