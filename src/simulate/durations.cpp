// SPDX-License-Identifier: Apache-2.0
#include "simulate/durations.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/numbers.hpp"
#include "simulate/kernels.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;

constexpr int kRounds = 6;  ///< of EM from a flat start: few, so that the law stays smooth
constexpr double kNegligibleChange =
    1e-6;                        ///< relative: of messages that change nothing behind them
constexpr double kFlatJobs = 4;  ///< jobs that the flat start is worth
constexpr double kAnyJobs = 10;  ///< jobs that the law of all gangs is worth to one gang

/// The loops over the grid, for the machine.
const DurationKernels& loops() { return duration_kernels(); }

template <class Grid>
void normalise(Grid& grid) {
  loops().divide(grid.data(), loops().sum(grid.data()));
}

/// A law of steps up and down that gives one half of it.
template <class Half>
void normalise_both(Half& steps) {
  const double all = 2 * std::accumulate(steps.begin(), steps.end(), 0.0) - steps[0];
  for (double& step : steps) step /= all;
}

template <class Grid>
Grid product(const Grid& a, const Grid& b) {
  Grid out;
  loops().multiply(a.data(), b.data(), out.data());
  return out;
}

template <class Grid>
bool same(const Grid& a, const Grid& b) {
  return loops().same(a.data(), b.data(), kNegligibleChange);
}

}  // namespace

Durations::Durations(const Cluster& cluster, double sigma, std::vector<double> log_forecast)
    : cluster_(cluster),
      sigma_(sigma),
      origin_(std::log(static_cast<double>(cluster.per_second))),
      log_forecast_(std::move(log_forecast)) {
  start();
}

int Durations::decade(int before, int job) const {
  const Tick ticks = cluster_.runs[job].submit - cluster_.runs[before].submit;
  return std::min(kGaps - 1, static_cast<int>(std::log10(1 + cluster_.seconds(ticks))));
}

const Durations::Grid& Durations::law_of(int gpus) const {
  const auto found = of_gang_.find(gpus);
  return found == of_gang_.end() ? any_ : found->second;
}

void Durations::meet(int job) {
  while (std::ssize(prior_) <= job) join(static_cast<int>(prior_.size()));
}

Durations::Chain& Durations::chain_of(int job) {
  return chains_[{cluster_.submitted(job).user, cluster_.runs[job].gpus}];
}

void Durations::join(int job) {
  Chain& chain = chain_of(job);
  chain.gpus = cluster_.runs[job].gpus;
  gap_.push_back(chain.jobs.empty() ? 0 : decade(chain.jobs.back(), job));
  chain.jobs.push_back(job);
  for (auto* grids : {&likelihood_, &forward_, &backward_, &prior_, &log_prior_}) {
    grids->resize(job + 1);
  }
  scale_.resize(job + 1);
  passed_.resize(job + 1, -1);
  new_.resize(job + 1);
  version_.resize(job + 1);
  observe(job);
  forward(chain, chain.jobs.size() - 1, law_of(chain.gpus), prior_[job]);
  remember(job, prior_[job]);
}

void Durations::observe(int job) {
  if (passed_[job] == kEnded) return;
  const Run& run = cluster_.runs[job];
  const bool ended = run.end >= 0;
  const double done = ended ? run.work : cluster_.done(job);
  int passed = ended ? kEnded : 0;
  const double least = done > 0 ? std::log(done) - 0.5 * kGridStep : 0;
  while (!ended && done > 0 && passed < kGrid && origin_ + kGridStep * passed < least) ++passed;
  if (passed == std::exchange(passed_[job], passed)) return;
  new_[job] = true;
  const double y = ended ? std::log(run.work) : log_forecast_[job];
  const double s = std::hypot(ended ? 0.0 : sigma_, 0.5 * kGridStep);
  Grid& out = likelihood_[job];
  for (int k = 0; k < kGrid; ++k) {
    const double u = (y - origin_ - kGridStep * k) / s;
    out[k] = k < passed && !ended ? 0 : std::exp(-0.5 * std::min(u * u, 1e3));
  }
  if (passed == kGrid) out.back() = 1;
}

/// What the jobs before the i-th of a chain tell of it, and the same with its own forecast.
void Durations::forward(const Chain& chain, Index i, const Grid& law, Grid& prior) {
  const Index job = chain.jobs[i];
  if (i == 0) {
    prior = law;
  } else {
    loops().follow(forward_[chain.jobs[i - 1]].data(), near_.data(), stays_[gap_[job]], law.data(),
                   prior.data());
  }
  scale_[job] = loops().observe(prior.data(), likelihood_[job].data(), forward_[job].data());
}

void Durations::remember(int job, Grid prior) {
  normalise(prior);
  for (Index k = 0; k < kGrid; ++k) log_prior_[job][k] = std::log(prior[k] + 1e-12);
  ++version_[job];
}

void Durations::recall(int job) {
  if (passed_[job] != kEnded) return;
  Chain& chain = chain_of(job);
  const Index renewed = std::exchange(chain.stale, false) ? chain.settled : 0;
  for (Index i = renewed; i-- > 0;) renew_backward(chain, i, law_of(chain.gpus));
  remember(job, product(prior_[job], backward_[job]));
}

/// What the jobs after the i-th of a chain tell of it, given what those after the next tell of
/// that.
Durations::Ahead Durations::backward(const Chain& chain, Index i, const Grid& law,
                                     const Grid& behind, Grid& out) const {
  Ahead ahead;
  const int next = chain.jobs[i + 1];
  ahead.moved = loops().look_back(likelihood_[next].data(), behind.data(), scale_[next], law.data(),
                                  near_.data(), stays_[gap_[next]], ahead.next.data(), out.data());
  return ahead;
}

void Durations::renew_backward(const Chain& chain, Index i, const Grid& law) {
  Grid& out = backward_[chain.jobs[i]];
  if (i + 1 == chain.jobs.size()) {
    out.fill(1);
  } else {
    backward(chain, i, law, backward_[chain.jobs[i + 1]], out);
  }
}

/// The messages that go back are needed one at a time here: to keep those of all jobs, which the
/// cache does not hold, takes longer.
void Durations::count(const Chain& chain, const Grid& law, Counts& counts, Grid& drawn) {
  const std::vector<int>& jobs = chain.jobs;
  Grid prior, behind, out;
  for (Index i = 0; i < jobs.size(); ++i) forward(chain, i, law, prior);
  behind.fill(1);
  for (Index i = jobs.size() - 1; i-- > 0;) {
    const Ahead ahead = backward(chain, i, law, behind, out);
    behind = out;
    const int g = gap_[jobs[i + 1]];
    const double s = stays_[g];
    const double moved = (1 - s) * ahead.moved;
    counts.moves[g] += moved;
    counts.stays[g] += 1 - moved;
    loops().count(forward_[jobs[i]].data(), ahead.next.data(), law.data(), s, drawn.data(),
                  counts.near.front().data());
  }
  const Grid first = product(forward_[jobs.front()], behind);
  for (Index k = 0; k < kGrid; ++k) drawn[k] += first[k];
}

/// Knows nothing.
void Durations::start() {
  any_.fill(1.0 / kGrid);
  of_gang_.clear();
  stays_.fill(0.5);
  for (int d = 0; d <= kReach; ++d) near_[d] = std::pow(0.5, d);
  normalise_both(near_);
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
      count(chain, law_of(chain.gpus), counts, drawn[chain.gpus]);
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
    for (Index d = 0; d <= kReach; ++d) {
      const double ways = d == 0 ? 1 : 2;
      near_[d] = near_[d] * loops().sum(counts.near[d].data()) / ways + kAnyJobs * start[d];
    }
    normalise_both(near_);
  }
}

bool Durations::refresh() {
  const int happened = 2 * cluster_.arrived - cluster_.live;
  if (happened < look_at_) return false;
  look_at_ = happened + happened / 100 + 1;
  meet(cluster_.arrived - 1);
  for (auto& [key, chain] : chains_) {
    for (Index i = chain.settled; i < chain.jobs.size(); ++i) observe(chain.jobs[i]);
  }
  const bool learns = cluster_.arrived >= learn_at_;
  if (learns) {
    learn_at_ = cluster_.arrived + cluster_.arrived / 4 + 1;
    learn();
  }
  for (auto& [key, chain] : chains_) renew(chain, learns ? Renewal::all : Renewal::what_is_new);
  return true;
}

/// Passes messages along a chain, forward and back. One that stays what it was changes none behind
/// it, and what has ended has no more to say but to those after it.
void Durations::renew(Chain& chain, Renewal renewal) {
  const bool all = renewal == Renewal::all;
  const std::vector<int>& jobs = chain.jobs;
  const Grid& law = law_of(chain.gpus);
  const Index from = all ? 0 : chain.settled;
  bool moves = all;
  for (Index i = from; i < jobs.size(); ++i) {
    if (!moves && !new_[jobs[i]]) continue;
    const Grid before = forward_[jobs[i]];
    forward(chain, i, law, prior_[jobs[i]]);
    moves = all || !same(before, forward_[jobs[i]]);
    new_[jobs[i]] = true;
  }
  moves = all;
  for (Index i = jobs.size(); i-- > chain.settled;) {
    const int job = jobs[i];
    if (moves || i + 1 == jobs.size() || new_[jobs[i + 1]]) {
      const Grid before = backward_[job];
      renew_backward(chain, i, law);
      moves = all || !same(before, backward_[job]);
    } else if (!new_[job]) {
      continue;
    }
    if (passed_[job] != kEnded) remember(job, product(prior_[job], backward_[job]));
  }
  for (Index i = from; i < jobs.size(); ++i) new_[jobs[i]] = false;
  chain.stale = chain.settled > 0;
  while (chain.settled < jobs.size() && passed_[jobs[chain.settled]] == kEnded) ++chain.settled;
}

void Durations::log_weights(int job, double low, double width, std::span<double> out) const {
  loops().weigh(out.size(), low, width, log_forecast_[job], sigma_, log_prior_[job].data(), origin_,
                kGridStep, out.data());
}

}  // namespace glidepath::detail
