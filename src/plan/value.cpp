// SPDX-License-Identifier: Apache-2.0
#include "plan/value.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/numbers.hpp"
#include "common/statistics.hpp"

namespace glidepath::detail {
namespace {

constexpr double kJctTieWeight = 1e-3;  // weight of completion time where deadlines leave a choice
constexpr double kFairnessGamma = 1.0;  // gamma in exp(gamma rho)
constexpr double kMaxUnfairness = 30;

double fastest_of(const Job& job) {
  double fastest = 0;
  for (const Option& option : job.options) fastest = std::max(fastest, option.steps_per_s);
  return fastest;
}

/// Loss at `steps` from now on the expected path, by straight lines; flat past its end.
double loss_ahead(const Job& job, double steps) {
  const auto& x = job.ahead_steps;
  const auto& y = job.ahead_loss;
  const std::size_t above = std::upper_bound(x.begin(), x.end(), steps) - x.begin();
  if (above == 0) return y.front();
  if (above == x.size()) return y.back();
  const double share = (steps - x[above - 1]) / (x[above] - x[above - 1]);
  return y[above - 1] + share * (y[above] - y[above - 1]);
}

/// Range of the losses seen so far, the unit in which SLAQ compares jobs.
double loss_range(const Job& job) {
  double low = job.ahead_loss.front(), high = low;
  for (const double loss : job.observed.loss) {
    if (!std::isfinite(loss)) continue;
    low = std::min(low, loss);
    high = std::max(high, loss);
  }
  return high > low ? high - low : std::abs(job.ahead_loss.front() - job.ahead_loss.back());
}

}  // namespace

const std::vector<WeightedObjective>& objectives_of(const PlanOptions& options) {
  static const std::vector<WeightedObjective> kJctAlone{{}};
  return options.objectives.empty() ? kJctAlone : options.objectives;
}

double RemainingWork::prob_within(double x) const {
  if (x <= 0) return 0;
  if (steps.empty()) return 1 - std::exp(-x / unknown_mean);
  const auto done = std::upper_bound(steps.begin(), steps.end(), x) - steps.begin();
  return static_cast<double>(done) / static_cast<double>(steps.size());
}

double RemainingWork::quantile(double p) const {
  if (steps.empty()) return kInfinity;
  return steps[quantile_index(steps.size(), p)];
}

RemainingWork remaining_work(const Job& job, const PlanOptions& options) {
  RemainingWork work;
  remaining_work(job, options, work);
  return work;
}

void remaining_work(const Job& job, const PlanOptions& options, RemainingWork& work) {
  std::vector<double> steps = std::move(work.steps);
  steps.clear();
  work = {.steps = std::move(steps)};
  const double progress =
      job.forecast_at_steps >= 0 ? std::max(0.0, job.steps_done - job.forecast_at_steps) : 0.0;
  // No decision is finer than a second, so no sample is shorter: keeps the index finite.
  const double fastest = fastest_of(job);
  const auto n = static_cast<double>(job.remaining_steps.size());
  double passed = 0;
  work.steps.reserve(job.remaining_steps.size());
  for (const double s : job.remaining_steps) {
    work.reached += s <= 0;
    work.never += s == kInfinity;
    if (progress > 0 && s <= progress) {
      passed += 1;
    } else {
      work.steps.push_back(std::max(s - progress, fastest));
    }
  }
  if (n > 0) work.reached /= n;
  if (n > passed) work.never /= n - passed;  // given that it has not ended
  work.unknown_mean = std::max(job.steps_done, fastest * options.round_s);
  work.outrun = progress > 0 && passed >= options.outrun_probability * n;
  if (work.outrun) {
    work.steps.clear();
    work.never = 0;  // the few samples left are of a forecast that was wrong
  }
  if (work.steps.empty()) {
    // Least attained service: as much again as it has had. The hazard of a power law.
    work.index = work.unknown_mean > 0 ? 1 / work.unknown_mean : 0;
    return;
  }
  if (!std::is_sorted(work.steps.begin(), work.steps.end())) {
    std::sort(work.steps.begin(), work.steps.end());
  }
  work.index = fastest > 0 ? gittins_index(work.steps) : 0;
}

double waited_s(const Job& job, double now_s) {
  if (job.waiting_s >= 0) return job.waiting_s;
  return std::max(0.0, now_s - job.submit_s - job.attained_s);
}

bool counts_speed_alone(Objective objective) {
  switch (objective) {
    case Objective::jct:
    case Objective::known_size:
    case Objective::quality:
    case Objective::deadline:
    case Objective::fairness:
      return true;
    case Objective::energy:
    case Objective::edp:
    case Objective::cost:
    case Objective::learned:
      return false;
  }
  return false;
}

Valuation::Valuation(const Snapshot& snapshot, const PlanOptions& options)
    : snapshot_(snapshot), options_(options) {
  for (const WeightedObjective& each : options.objectives) {
    counts_joules_ =
        counts_joules_ || each.objective == Objective::energy || each.objective == Objective::edp;
    counts_money_ = counts_money_ || each.objective == Objective::cost;
  }
}

void Valuation::set_job(const Job& job, const RemainingWork& work,
                        const std::vector<const Option*>& usable) {
  job_ = &job;
  work_ = &work;
  fastest_ = 0;
  least_joules_ = least_money_ = kInfinity;
  for (const Option* option : usable) {
    if (option->steps_per_s <= 0) continue;
    fastest_ = std::max(fastest_, option->steps_per_s);
    if (counts_joules_) least_joules_ = std::min(least_joules_, joules(*option));
    if (counts_money_) least_money_ = std::min(least_money_, money(*option));
  }
}

double Valuation::power(const Option& option) const {
  return option.gpus * watts(tier(option), option.utilization);
}

double Valuation::joules(const Option& option) const { return power(option) / option.steps_per_s; }

double Valuation::money(const Option& option) const {
  return option.gpus * tier(option).price_per_gpu_hour / (3600 * option.steps_per_s);
}

double Valuation::value(Objective objective, const Option& option, double restart_s) const {
  if (option.steps_per_s <= 0 || work_->index <= 0) return 0;
  const auto discount = [](double least, double own) { return own > 0 ? least / own : 1.0; };
  const auto at_best_speed = [&] {  // where only joules or money count
    Option fastest = option;
    fastest.steps_per_s = fastest_;
    return jct(fastest, restart_s);
  };
  switch (objective) {
    case Objective::jct:
    case Objective::learned:  // corrected by the planner
      return jct(option, restart_s);
    case Objective::known_size:
      return known_size(option, restart_s);
    case Objective::quality:
      return quality(option, restart_s);
    case Objective::deadline:
      return deadline(option, restart_s) + kJctTieWeight * jct(option, restart_s);
    case Objective::fairness:
      return fairness(option, restart_s);
    case Objective::energy:
      return at_best_speed() * discount(least_joules_, joules(option));
    case Objective::edp:
      return jct(option, restart_s) * discount(least_joules_, joules(option));
    case Objective::cost:
      return at_best_speed() * discount(least_money_, money(option));
  }
  return 0;
}

/// w / (1 / (mu G) + restart): the Gittins index of a job that first has to pay its restart.
double Valuation::jct(const Option& option, double restart_s) const {
  return job_->weight / (1 / (option.steps_per_s * work_->index) + restart_s);
}

/// w P(S finite) / (E[S | finite] / mu + restart)
double Valuation::known_size(const Option& option, double restart_s) const {
  double sum = 0, finite = 0;
  for (const double s : work_->steps) {
    if (s == kInfinity) break;
    sum += s;
    finite += 1;
  }
  if (work_->steps.empty()) return jct(option, restart_s);
  if (finite == 0) return 0;
  const double mean = sum / finite;
  const double share = finite / static_cast<double>(work_->steps.size());
  return job_->weight * share / (mean / option.steps_per_s + restart_s);
}

/// w (l(0) - l(mu (Delta - restart))) / (Delta range). Without a path the loss is taken to fall as
/// fast as it did so far; a job that has not begun may fall through its whole range.
double Valuation::quality(const Option& option, double restart_s) const {
  const double round = options_.round_s;
  const double steps = option.steps_per_s * std::max(0.0, round - restart_s);
  if (!job_->ahead_steps.empty()) {
    const double range = loss_range(*job_);
    if (range <= 0) return 0;
    const double fall = loss_ahead(*job_, 0) - loss_ahead(*job_, steps);
    return job_->weight * std::max(0.0, fall) / (range * round);
  }
  return job_->weight * steps / (std::max(job_->steps_done, fastest_ * round) * round);
}

/// w (P(S <= mu (d - t)) - P(S <= mu_best (d - t - Delta))) / Delta
double Valuation::deadline(const Option& option, double restart_s) const {
  const double left = job_->deadline_s - snapshot_.now_s;
  if (left == kInfinity || left <= 0) return 0;
  const double now = work_->prob_within(option.steps_per_s * (left - restart_s));
  const double later = work_->prob_within(fastest_ * (left - options_.round_s));
  return job_->weight * std::max(0.0, now - later) / options_.round_s;
}

/// w exp(gamma rho) mu / mu_best, rho = (age + R) / (attained + R), R = 1 / (mu_best G): how much
/// longer the job takes than it would alone. Weights that grow with rho lead to max-min (Arora,
/// Hazan, Kale 2012).
double Valuation::fairness(const Option& option, double restart_s) const {
  const double left = 1 / (fastest_ * work_->index);
  const double age = std::max(0.0, snapshot_.now_s - job_->submit_s);
  const double rho = (age + left) / (std::min(job_->attained_s, age) + left);
  const double speed = option.steps_per_s / fastest_;
  const double progress = options_.round_s / (options_.round_s + restart_s);
  return job_->weight * std::exp(kFairnessGamma * std::min(rho, kMaxUnfairness)) * speed * progress;
}

}  // namespace glidepath::detail
