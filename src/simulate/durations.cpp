// SPDX-License-Identifier: Apache-2.0
#include "simulate/durations.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/numbers.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;

constexpr int kRounds = 12;      ///< of EM from a flat start: few, so that the law stays smooth
constexpr double kFlatJobs = 4;  ///< jobs that the flat start is worth
constexpr double kAnyJobs = 10;  ///< jobs that the law of all gangs is worth to one gang

template <class Range>
void normalise(Range& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  for (double& value : values) value /= sum;
}

}  // namespace

Durations::Durations(const Cluster& cluster, double sigma, std::vector<double> log_forecast)
    : cluster_(cluster),
      sigma_(sigma),
      origin_(std::log(static_cast<double>(cluster.per_second))),
      log_forecast_(std::move(log_forecast)) {
  start();
}

int Durations::gap(int before, int job) const {
  const Tick ticks = cluster_.runs[job].submit - cluster_.runs[before].submit;
  return std::min(kGaps - 1, static_cast<int>(std::log10(1 + cluster_.seconds(ticks))));
}

const Durations::Grid& Durations::law_of(int gpus) const {
  const auto found = of_gang_.find(gpus);
  return found == of_gang_.end() ? any_ : found->second;
}

void Durations::meet(int job) {
  if (job < std::ssize(prior_)) return;
  const int gpus = cluster_.runs[job].gpus;
  Chain& chain = chains_[{cluster_.submitted(job).user, gpus}];
  chain.gpus = gpus;
  chain.jobs.push_back(job);
  for (auto* grids : {&likelihood_, &forward_, &backward_, &prior_, &log_prior_}) {
    grids->resize(job + 1);
  }
  scale_.resize(job + 1);
  final_.resize(job + 1);
  observe(job);
  forward(chain, chain.jobs.size() - 1, law_of(gpus));
  remember(job);
}

void Durations::observe(int job) {
  if (final_[job]) return;
  const Run& run = cluster_.runs[job];
  const bool ended = run.end >= 0;
  final_[job] = ended;
  const double done = ended ? run.work : cluster_.done(job);
  const double y = ended ? std::log(run.work) : log_forecast_[job];
  const double s = std::hypot(ended ? 0.0 : sigma_, 0.5 * kGridStep);
  Grid& out = likelihood_[job];
  double sum = 0;
  for (int k = 0; k < kGrid; ++k) {
    const double x = origin_ + kGridStep * k;
    const double u = (y - x) / s;
    const bool over = !ended && done > 0 && x + 0.5 * kGridStep < std::log(done);
    out[k] = over ? 0 : std::exp(-0.5 * std::min(u * u, 1e3));
    sum += out[k];
  }
  if (sum > 0) return;
  const double place =
      std::clamp((std::log(std::max(done, 1.0)) - origin_) / kGridStep, 0.0, kGrid - 1.0);
  out[static_cast<Index>(place)] = 1;
}

Durations::Grid Durations::stay(const Grid& from) const {
  std::array<double, kGrid + 2 * kReach> padded{};
  std::copy(from.begin(), from.end(), padded.begin() + kReach);
  Grid out{};
  for (Index d = 0; d < near_.size(); ++d) {
    for (Index k = 0; k < kGrid; ++k) out[k] += near_[d] * padded[k + d];
  }
  return out;
}

/// What the jobs before the i-th of a chain tell of it, and the same with its own forecast.
void Durations::forward(const Chain& chain, Index i, const Grid& law) {
  const Index job = chain.jobs[i];
  Grid& prior = prior_[job];
  prior = law;
  if (i > 0) {
    const double s = stays_[gap(chain.jobs[i - 1], chain.jobs[i])];
    const Grid near = stay(forward_[chain.jobs[i - 1]]);
    for (Index k = 0; k < kGrid; ++k) prior[k] = s * near[k] + (1 - s) * law[k];
  }
  double sum = 0;
  for (Index k = 0; k < kGrid; ++k) sum += forward_[job][k] = prior[k] * likelihood_[job][k];
  scale_[job] = std::max(sum, 1e-300);
  for (double& value : forward_[job]) value /= scale_[job];
}

void Durations::remember(int job) {
  Grid& prior = prior_[job];
  normalise(prior);
  for (Index k = 0; k < kGrid; ++k) log_prior_[job][k] = std::log(prior[k] + 1e-12);
}

void Durations::recall(int job) {
  if (!final_[job]) return;
  for (Index k = 0; k < kGrid; ++k) prior_[job][k] *= backward_[job][k];
  remember(job);
}

void Durations::pass(const Chain& chain, const Grid& law, Counts* counts, Grid* drawn) {
  const std::vector<int>& jobs = chain.jobs;
  for (Index i = 0; i < jobs.size(); ++i) forward(chain, i, law);
  for (Index i = jobs.size(); i-- > 0;) {  // backward
    const Index job = jobs[i];
    if (i + 1 == jobs.size()) {
      backward_[job].fill(1);
    } else {
      const Index next = jobs[i + 1];
      const int g = gap(jobs[i], jobs[i + 1]);
      const double s = stays_[g];
      Grid ahead{};
      double moved = 0;
      for (Index k = 0; k < kGrid; ++k) {
        ahead[k] = likelihood_[next][k] * backward_[next][k] / scale_[next];
        moved += law[k] * ahead[k];
      }
      const Grid near = stay(ahead);  // symmetric
      for (Index k = 0; k < kGrid; ++k) backward_[job][k] = s * near[k] + (1 - s) * moved;
      if (counts != nullptr) {
        counts->moves[g] += (1 - s) * moved;
        counts->stays[g] += 1 - (1 - s) * moved;
        for (Index k = 0; k < kGrid; ++k) (*drawn)[k] += (1 - s) * law[k] * ahead[k];
        for (int d = -kReach; d <= kReach; ++d) {
          double sum = 0;
          for (int k = std::max(0, -d); k < std::min(kGrid, kGrid - d); ++k) {
            sum += forward_[job][k] * ahead[k + d];
          }
          counts->near[d + kReach] += s * near_[d + kReach] * sum;
        }
      }
    }
    if (counts != nullptr && i == 0) {
      for (Index k = 0; k < kGrid; ++k) (*drawn)[k] += forward_[job][k] * backward_[job][k];
    }
  }
}

/// Knows nothing.
void Durations::start() {
  any_.fill(1.0 / kGrid);
  of_gang_.clear();
  stays_.fill(0.5);
  for (int d = -kReach; d <= kReach; ++d) near_[d + kReach] = std::pow(0.5, std::abs(d));
  normalise(near_);
}

void Durations::learn() {
  start();
  const Grid flat = any_;
  const auto start = near_;
  for (int round = 0; round < kRounds; ++round) {
    Counts counts;
    std::map<int, Grid> drawn;
    Grid all{};
    for (const auto& [key, chain] : chains_) {
      pass(chain, law_of(chain.gpus), &counts, &drawn[chain.gpus]);
    }
    for (const auto& [gpus, grid] : drawn) {
      for (Index k = 0; k < kGrid; ++k) all[k] += grid[k];
    }
    for (Index k = 0; k < kGrid; ++k) any_[k] = all[k] + kFlatJobs * flat[k];
    normalise(any_);
    for (auto& [gpus, grid] : drawn) {
      for (Index k = 0; k < kGrid; ++k) grid[k] += kAnyJobs * any_[k];
      normalise(grid);
    }
    of_gang_ = std::move(drawn);
    for (Index g = 0; g < kGaps; ++g) {
      stays_[g] = (counts.stays[g] + 1) / (counts.stays[g] + counts.moves[g] + 2);
    }
    for (int d = 0; d <= kReach; ++d) {
      const double both = counts.near[kReach + d] + counts.near[kReach - d];
      near_[kReach + d] = near_[kReach - d] = both / 2 + kAnyJobs * start[kReach + d];
    }
    normalise(near_);
  }
}

bool Durations::refresh() {
  const int happened = 2 * cluster_.arrived - cluster_.live;
  if (happened < look_at_) return false;
  look_at_ = happened + happened / 100 + 1;
  for (int job = 0; job < cluster_.arrived; ++job) {
    meet(job);
    observe(job);
  }
  if (cluster_.arrived >= learn_at_) {
    learn_at_ = cluster_.arrived + cluster_.arrived / 4 + 1;
    learn();
  }
  for (const auto& [key, chain] : chains_) {
    pass(chain, law_of(chain.gpus), nullptr, nullptr);
    for (const int job : chain.jobs) {
      if (final_[job]) continue;
      for (Index k = 0; k < kGrid; ++k) prior_[job][k] *= backward_[job][k];
      remember(job);
    }
  }
  return true;
}

double Durations::log_prior(int job, double log_work) const {
  const Grid& value = log_prior_[job];
  const double place = std::clamp((log_work - origin_) / kGridStep, 0.0, kGrid - 1.001);
  const auto k = static_cast<Index>(place);
  const double f = place - static_cast<double>(k);
  return value[k] * (1 - f) + value[k + 1] * f;
}

}  // namespace glidepath::detail
