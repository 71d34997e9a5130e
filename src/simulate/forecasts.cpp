// SPDX-License-Identifier: Apache-2.0
#include "simulate/forecasts.hpp"

#include "glidepath/forecast.hpp"
#include "glidepath/watch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "common/rng.hpp"
#include "plan/learned.hpp"

namespace glidepath {
namespace detail {
namespace {

constexpr int kSamples = 40;    ///< equally likely values of a law of steps or service
constexpr int kLawPoints = 64;  ///< atoms of a law of durations
constexpr std::size_t kFirstForecastPoints = 5;  ///< points before the first forecast of a curve

/// The number of points of the last forecast that is due when there are `points`.
std::size_t due(std::size_t points) {
  std::size_t at = kFirstForecastPoints;
  for (std::size_t next = at; next <= points; next = at + std::max<std::size_t>(2, at / 4)) {
    at = next;
  }
  return at;
}

/// Steps at which the target is reached, equally likely, infinite where it is not. All are infinite
/// where `Watch` gives the run up, and only there.
std::vector<double> samples_of(const Reach& reached, TraceView seen, const Schedule* schedule) {
  std::vector<double> at;
  for (int i = 0; i < kSamples; ++i) at.push_back(reached.quantile((i + 0.5) / kSamples));
  if (std::isfinite(at.front())) return at;
  WatchOptions options{
      .target = reached.target, .budget = reached.budget, .reached_by = ReachedBy::point};
  if (schedule != nullptr) options.schedule = *schedule;
  Watch watch(std::move(options));
  for (std::size_t i = 0; i < seen.step.size(); ++i) watch.add(seen.step[i], seen.loss[i]);
  const Verdict verdict = watch.decision().verdict;
  if (verdict != Verdict::never && verdict != Verdict::diverged) at.front() = reached.budget;
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

std::shared_ptr<const ForecastMemo::ReachLaw> ForecastMemo::find(
    const Key& key, const std::function<ReachLaw()>& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = laws_.find(key);
    if (found != laws_.end()) return found->second;
  }
  auto law = std::make_shared<const ReachLaw>(make());
  const std::lock_guard lock(mutex_);
  return laws_.emplace(key, std::move(law)).first->second;
}

namespace detail {

Predictor::Predictor(const Cluster& cluster)
    : cluster_(cluster), sigma_(cluster.options.forecast_sigma.value_or(0)) {
  const Rng rng{cluster.options.seed};
  total_.reserve(cluster.runs.size());
  for (std::size_t i = 0; i < cluster.runs.size(); ++i) {
    const int job = static_cast<int>(i);  // a user with a curve asks for a budget
    const WorkloadJob& submitted = cluster.submitted(job);
    total_.push_back(submitted.truth >= 0
                         ? submitted.budget_steps * static_cast<double>(cluster.per_second)
                         : cluster.runs[i].work * std::exp(sigma_ * rng.normal(i, 0)));
  }
  if (sigma_ > 0) {
    std::vector<double> logs;
    for (const double total : total_) logs.push_back(std::log(total));
    durations_ = std::make_unique<Durations>(cluster, sigma_, std::move(logs));
    served_.resize(cluster.runs.size());
  }
  if (cluster.workload.curves.empty()) return;
  known_.resize(cluster.runs.size());
  memo_ = cluster.options.memo ? cluster.options.memo : make_forecast_memo();
  for (const Trace& curve : cluster.workload.curves) hash_.push_back(hash_of(curve));
}

void Predictor::curve(int job, Job& seen, LossesAhead losses) {
  const bool ahead = losses == LossesAhead::wanted;
  Known& known = known_[job];
  if (seen.observed.step.size() < kFirstForecastPoints) return;
  const std::size_t points =
      known.outrun ? seen.observed.step.size() : due(seen.observed.step.size());
  if (points > known.points) {
    const std::size_t which = cluster_.submitted(job).truth;
    const auto make = [&] {
      const TraceView prefix{
          seen.observed.step.first(points), seen.observed.loss.first(points), {}};
      // The schedule of the learning rate is part of what the user submitted, unlike the losses.
      const Trace& curve = cluster_.workload.curves[which];
      // As a simulated run ends: at the first logged value at its target.
      ForecastOptions by_point{.reached_by = ReachedBy::point};
      const std::optional<Schedule> schedule = Schedule::logged(curve);
      if (schedule && points < curve.step.size()) by_point.schedule = &*schedule;
      ForecastMemo::ReachLaw law;
      const Reach reached = reach(prefix, seen.target_loss, seen.budget_steps, by_point);
      law.reached_at = samples_of(reached, prefix, by_point.schedule);
      const double last = prefix.step.back();
      if (ahead && seen.budget_steps > last) {
        for (int i = 1; i <= 8; ++i) law.step.push_back(last + (seen.budget_steps - last) * i / 8);
        law.loss = forecast(prefix, law.step, {.schedule = by_point.schedule}).median;
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

bool Predictor::refresh() {
  const bool changed = sigma_ > 0 && durations_->refresh();
  learned_ += changed ? 1 : 0;
  return changed;
}

const Predictor::WorkLaw& Predictor::law(int job, double done) const {
  const double y = std::log(total_[job]);
  const auto log_weight = [&](double at) {
    const double u = (at - y) / sigma_;
    return -0.5 * u * u + durations_->log_prior(job, at);
  };
  durations_->meet(job);
  const double least = std::max(durations_->lowest(), done > 0 ? std::log(done) : 0.0);
  law_.work.clear();
  law_.weight.clear();
  if (least >= durations_->highest()) return law_;
  // A coarse look for the range that matters.
  constexpr int kGridCells = Durations::kGrid;
  const double stride = (durations_->highest() - least) / kGridCells;
  std::array<double, kGridCells> look;
  for (int i = 0; i < kGridCells; ++i) look[i] = log_weight(least + stride * (i + 0.5));
  const double top = *std::max_element(look.begin(), look.end());
  const auto matters = [&](double value) { return value > top - 12; };
  const auto first = std::find_if(look.begin(), look.end(), matters) - look.begin();
  const auto last = look.rend() - std::find_if(look.rbegin(), look.rend(), matters);
  const double low = least + stride * static_cast<double>(first);
  const double high = least + stride * static_cast<double>(last);
  double largest = -1e300;
  for (int i = 0; i < kLawPoints; ++i) {
    const double at = low + (high - low) * (i + 0.5) / kLawPoints;
    law_.work.push_back(std::exp(at));
    law_.weight.push_back(log_weight(at));
    largest = std::max(largest, law_.weight.back());
  }
  double sum = 0;
  for (double& weight : law_.weight) sum += weight = std::exp(weight - largest);
  for (double& weight : law_.weight) weight /= sum;
  return law_;
}

double Predictor::gittins_rank(int job) const {
  const double done = cluster_.done(job);
  if (sigma_ == 0) return std::max(0.0, total_[job] - done);
  const WorkLaw& known = law(job, done);
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

Predictor::Outlook Predictor::outlook(int job) const {
  const double rank = gittins_rank(job);
  if (sigma_ == 0) return {rank, 0};
  return {rank, spread_of(steps_of(law_, cluster_.done(job)))};  // of the law just made
}

double Predictor::likely(int job) const {
  if (sigma_ == 0) return total(job);
  const WorkLaw& known = law(job, cluster_.done(job));
  if (known.work.empty()) return 2 * std::max(1.0, cluster_.done(job));
  double sum = 0;
  for (std::size_t i = 0; i < known.work.size(); ++i) {
    sum += known.weight[i] * std::log(known.work[i]);
  }
  return std::exp(sum);
}

double Predictor::left(int job, double p) const {
  const double done = cluster_.done(job);
  if (sigma_ == 0) return std::max(0.0, total_[job] - done);
  const WorkLaw& known = law(job, done);
  if (known.work.empty()) return std::max(1.0, done);
  double below = 0;
  std::size_t i = 0;
  while (i + 1 < known.work.size() && below + known.weight[i] < p) below += known.weight[i++];
  return std::max(0.0, known.work[i] - done);
}

void Predictor::service(int job, Job& seen) {
  const double done = cluster_.done(job);
  if (sigma_ == 0) {
    const auto per_second = static_cast<double>(cluster_.per_second);
    seen.remaining_steps.assign(1, std::max(0.0, total_[job] - done) / per_second);
    return;
  }
  refresh();
  Served& served = served_[job];
  if (served.done == done && served.learned == learned_ && !seen.remaining_steps.empty()) return;
  served = {done, learned_};
  seen.remaining_steps = steps_of(law(job, done), done);
}

std::vector<double> Predictor::at_arrival(int job) {
  if (sigma_ == 0) return {total_[job] / static_cast<double>(cluster_.per_second)};
  refresh();
  durations_->recall(job);
  return steps_of(law(job, 0), 0);
}

std::vector<double> Predictor::steps_of(const WorkLaw& known, double done) const {
  const auto per_second = static_cast<double>(cluster_.per_second);
  if (known.work.empty()) return {std::max(1.0, done) / per_second};  // as long again
  std::vector<double> out;
  double p = 0;
  std::size_t i = 0;
  for (int k = 0; k < kSamples; ++k) {
    while (i + 1 < known.work.size() && p + known.weight[i] < (k + 0.5) / kSamples) {
      p += known.weight[i++];
    }
    out.push_back(std::max(1.0, known.work[i] - done) / per_second);
  }
  return out;
}

}  // namespace detail
}  // namespace glidepath
