// SPDX-License-Identifier: Apache-2.0
#include "simulate/forecasts.hpp"

#include "glidepath/forecast.hpp"
#include "glidepath/watch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "common/numbers.hpp"
#include "common/rng.hpp"
#include "common/statistics.hpp"
#include "plan/learned.hpp"
#include "simulate/phases.hpp"

namespace glidepath {
namespace detail {
namespace {

/// Equally likely values of a law of steps or service: fewer than choose_accelerator() takes of one
/// job, as a simulation forecasts thousands.
constexpr int kSamples = 40;
constexpr double kLeastShare = 1e-9;             ///< of a law: a smaller part decides no index
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
/// where `judge` gives the run up, and only there.
std::vector<double> samples_of(const Reach& reached, TraceView seen, const Schedule* schedule) {
  std::vector<double> at;
  for (int i = 0; i < kSamples; ++i) at.push_back(reached.quantile((i + 0.5) / kSamples));
  if (std::isfinite(at.front())) return at;
  WatchOptions options{
      .target = reached.target, .budget = reached.budget, .reached_by = ReachedBy::point};
  if (schedule != nullptr) options.schedule = *schedule;
  Watch watch(std::move(options));
  const Ruling ruling = judge(watch, seen.step, seen.loss);
  if (!ruling.stop || ruling.decision.verdict == Verdict::reached) at.front() = reached.budget;
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
    std::vector<double> log_total;
    for (const double total : total_) log_total.push_back(std::log(total));
    durations_ = std::make_unique<Durations>(cluster, sigma_, std::move(log_total));
    served_.resize(cluster.runs.size());
    laws_.resize(cluster.runs.size());
  }
  if (cluster.workload.curves.empty()) return;
  known_.resize(cluster.runs.size());
  memo_ = cluster.options.memo ? cluster.options.memo : make_forecast_memo();
  for (const Trace& curve : cluster.workload.curves) hash_.push_back(hash_of(curve));
}

double Predictor::total(int job) const {
  if (cluster_.options.knows_phases || cluster_.submitted(job).phases.empty()) return total_[job];
  const double done = cluster_.done(job), per_second = static_cast<double>(cluster_.per_second);
  return done + per_second * left_at_present_speed(cluster_.submitted(job), done / per_second);
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
  if (sigma_ == 0 || !durations_->refresh()) return false;
  std::erase_if(with_law_, [&](int job) {
    const bool ended = cluster_.runs[job].end >= 0;
    if (ended) laws_[job].reset();
    return ended;
  });
  return true;
}

/// A law serves until a quarter of its cells are passed; then it is made anew, finer. So it is
/// where work was lost, and where other jobs tell something new.
Predictor::WorkLaw& Predictor::law_of(int job) const {
  durations_->meet(job);
  const double done = cluster_.done(job);
  if (!laws_[job]) {
    laws_[job] = std::make_unique<WorkLaw>();
    with_law_.push_back(job);
  }
  WorkLaw& law = *laws_[job];
  const bool passed = !law.empty && done >= law.renew_at;
  if (passed || done < law.from || law.version != durations_->version(job))
    make_law(job, done, law);
  return law;
}

void Predictor::make_law(int job, double done, WorkLaw& law) const {
  const double lowest = durations_->lowest();
  const double least = std::max(lowest, done > 0 ? std::log(done) : lowest);
  law.from = done;
  law.version = durations_->version(job);
  law.ranked_at = -1;
  law.ceiling = law.quantile = {};
  law.empty = least >= durations_->highest();
  if (law.empty) return;
  // A coarse look for the range that matters.
  constexpr int kGridCells = Durations::kGrid;
  const double stride = (durations_->highest() - least) / kGridCells;
  std::array<double, kGridCells> look;
  durations_->log_weights(job, least, stride, look);
  const double top = *std::max_element(look.begin(), look.end());
  const auto matters = [&](double value) { return value > top - 12; };
  const auto first = std::find_if(look.begin(), look.end(), matters) - look.begin();
  const auto last = look.rend() - std::find_if(look.rbegin(), look.rend(), matters);
  law.low = least + stride * static_cast<double>(first);
  law.width = stride * static_cast<double>(last - first) / kLawCells;
  durations_->log_weights(job, law.low, law.width, law.weight);
  const double largest = *std::max_element(law.weight.begin(), law.weight.end());
  for (double& weight : law.weight) weight = std::exp(weight - largest);
  const double half = std::exp(0.5 * law.width);
  law.edge[0] = std::exp(law.low);
  for (int i = 0; i < kLawCells; ++i) {
    law.work[i] = law.edge[i] * half;
    law.edge[i + 1] = law.work[i] * half;
  }
  law.renew_at = law.edge[kLawCells / 4];
  law.above[kLawCells] = 0;
  for (int i = kLawCells; i-- > 0;) law.above[i] = law.above[i + 1] + law.weight[i];
}

Predictor::Left Predictor::left_of(const WorkLaw& law, double done) {
  const auto above = std::upper_bound(law.edge.begin(), law.edge.end() - 1, done);
  const int first = std::max(0, static_cast<int>(above - law.edge.begin()) - 1);
  Left out{law, first, law.work[first], law.weight[first], law.above[first]};
  const double from = law.edge[first], to = law.edge[first + 1];
  if (done <= from) return out;
  const double share = std::max(0.0, to - done) / (to - from);
  out.first_work = done + share * (law.work[first] - from);
  out.first_weight *= share;
  out.weight = out.first_weight + law.above[first + 1];
  return out;
}

double Predictor::gittins_rank(int job) const {
  const double done = cluster_.done(job);
  if (sigma_ == 0) return std::max(0.0, total(job) - done);
  WorkLaw& law = law_of(job);
  if (law.empty) return std::max(1.0, done);
  if (law.ranked_at == done) return law.rank;
  const Left known = left_of(law, done);
  double best = std::numeric_limits<double>::infinity();
  double p = 0;
  double served = 0;
  for (int i = known.first; i < kLawCells; ++i) {
    p += known.part(i);
    served += known.part(i) * (known.work(i) - done);
    const double least = served + (known.weight - p) * (law.edge[i + 1] - done);
    if (p > kLeastShare * known.weight) best = std::min(best, least / p);
    // E[min(S, d)] only grows, and P(S <= d) is at most 1; but for rounding.
    if (least > (1 + kRoundingSlack) * best * known.weight) break;
  }
  law.ranked_at = done;
  return law.rank = best;
}

/// The numerators of gittins_rank() fall as more is done; so do its denominators, as the cell where
/// that falls loses weight. So the numerators now over the denominators at the end of that cell are
/// a ceiling until then.
Predictor::Ceiling Predictor::rank_ceiling(int job) const {
  const double done = cluster_.done(job);
  if (sigma_ == 0) return {std::max(0.0, total(job) - done)};
  WorkLaw& law = law_of(job);
  if (law.empty) return {std::max(1.0, done)};
  if (law.ceiling.holds(done)) return {law.ceiling.value, law.ceiling.until};
  const Left known = left_of(law, done);
  double best = std::numeric_limits<double>::infinity();
  double p = 0;
  double served = known.first_weight * (known.first_work - done);
  for (int i = known.first + 1; i < kLawCells; ++i) {
    p += law.weight[i];
    served += law.weight[i] * (law.work[i] - done);
    const double least = served + law.above[i + 1] * (law.edge[i + 1] - done);
    if (p > kLeastShare * known.weight) best = std::min(best, least / p);
    if (least > best * known.weight) break;
  }
  law.ceiling = {done, law.edge[known.first + 1], best * (1 + kRoundingSlack)};
  return {law.ceiling.value, law.ceiling.until};
}

Predictor::Outlook Predictor::outlook(int job) const {
  const double rank = gittins_rank(job);
  if (sigma_ == 0) return {rank, 0};
  std::vector<double> steps;
  find_steps(law_of(job), cluster_.done(job), steps);
  return {rank, spread_of(steps)};
}

Predictor::SpreadWithin Predictor::spread_within(int job) const {
  if (sigma_ == 0) return {};
  const double done = cluster_.done(job);
  if (law_of(job).empty) return {.until = done};
  const Left known = left_of(law_of(job), done);
  const auto quartile = [&](std::size_t nth) {
    return quantile_cell(known, done, (static_cast<double>(nth) + 0.5) / kSamples);
  };
  const Cell lower = quartile(kSamples / 4), upper = quartile(3 * kSamples / 4);
  const double until = std::min(lower.until, upper.until);
  const auto left = [&](const Cell& cell, double by) {
    return std::max(1.0, known.work(cell.i) - by);
  };
  return {spread_between(left(lower, done), left(upper, until)),
          spread_between(left(lower, until), left(upper, done)), until};
}

double Predictor::likely(int job) const {
  if (sigma_ == 0) return total(job);
  const double done = cluster_.done(job);
  const WorkLaw& law = law_of(job);
  if (law.empty) return 2 * std::max(1.0, done);
  const Left known = left_of(law, done);
  double sum = known.first_weight * std::log(known.first_work);
  for (int i = known.first + 1; i < kLawCells; ++i) {
    sum += law.weight[i] * (law.low + law.width * (i + 0.5));
  }
  return std::exp(sum / known.weight);
}

Predictor::Quantile Predictor::quantile(int job, double p) const {
  const double done = cluster_.done(job);
  if (sigma_ == 0) {
    const double work = total(job);
    const bool stays = cluster_.options.knows_phases || cluster_.submitted(job).phases.empty();
    return {std::max(0.0, work - done), work, stays ? kInfinity : done};
  }
  WorkLaw& law = law_of(job);
  if (law.empty) return {std::max(1.0, done), done, done};
  if (law.quantile_p != p || !law.quantile.holds(done)) {
    const Left known = left_of(law, done);
    const Cell cell = quantile_cell(known, done, p);
    law.quantile_p = p;
    law.quantile = {done, cell.until, known.work(cell.i)};
  }
  const double work = law.quantile.value;
  return {std::max(0.0, work - done), work, law.quantile.until};
}

/// So much of the weight that is left lies before the end of the cell. Unless `done` falls there it
/// is that of the quantile p until the cell where it falls has lost so much of its weight.
Predictor::Cell Predictor::quantile_cell(const Left& known, double done, double p) {
  const WorkLaw& law = known.law;
  const double rest = (1 - p) * known.weight;
  const auto end = law.above.begin() + kLawCells;
  const auto found =
      std::lower_bound(law.above.begin() + known.first + 1, end, rest, std::greater());
  const int i = static_cast<int>(found - law.above.begin()) - 1;
  if (i == known.first) return {i, done};
  const double spare = (rest - *found - kRoundingSlack * known.weight) / (1 - p);
  const double from = std::max(done, law.edge[known.first]), to = law.edge[known.first + 1];
  const double share = std::clamp(spare / known.first_weight, 0.0, 1.0);
  return {i, from + share * (to - from)};
}

Predictor::Quantile Predictor::sample(int job, double share) const {
  const double nth = static_cast<double>(quantile_index(kSamples, share));
  Quantile of = quantile(job, (nth + 0.5) / kSamples);
  if (sigma_ > 0) of.left = std::max(1.0, of.left);
  return of;
}

void Predictor::meet() {
  if (durations_ && cluster_.arrived > 0) durations_->meet(cluster_.arrived - 1);
}

void Predictor::service(int job, Job& seen) {
  const double done = cluster_.done(job);
  if (sigma_ == 0) {
    const auto per_second = static_cast<double>(cluster_.per_second);
    seen.remaining_steps.assign(1, std::max(0.0, total(job) - done) / per_second);
    return;
  }
  refresh();
  const WorkLaw& law = law_of(job);
  Served& served = served_[job];
  if (served.done == done && served.version == law.version && !seen.remaining_steps.empty()) return;
  served = {done, law.version};
  find_steps(law, done, seen.remaining_steps);
}

std::vector<double> Predictor::at_arrival(int job) {
  if (sigma_ == 0) {
    const auto per_second = static_cast<double>(cluster_.per_second);
    const WorkloadJob& submitted = cluster_.submitted(job);
    return {cluster_.options.knows_phases ? total_[job] / per_second
                                          : left_at_present_speed(submitted, 0)};
  }
  refresh();
  durations_->recall(job);
  WorkLaw law;
  make_law(job, 0, law);
  std::vector<double> out;
  find_steps(law, 0, out);
  return out;
}

void Predictor::find_steps(const WorkLaw& law, double done, std::vector<double>& out) const {
  const auto per_second = static_cast<double>(cluster_.per_second);
  out.clear();
  if (law.empty) {
    out.push_back(std::max(1.0, done) / per_second);  // as long again
    return;
  }
  const Left known = left_of(law, done);
  int i = known.first;
  for (int k = 0; k < kSamples; ++k) {
    const double rest = (1 - (k + 0.5) / kSamples) * known.weight;
    while (i + 1 < kLawCells && law.above[i + 1] > rest) ++i;
    out.push_back(std::max(1.0, known.work(i) - done) / per_second);
  }
}

}  // namespace detail
}  // namespace glidepath
