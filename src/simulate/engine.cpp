// SPDX-License-Identifier: Apache-2.0
#include "simulate/engine.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/require.hpp"

namespace glidepath::detail {

namespace {

/// Whether x seconds are a whole number of ticks, as far as a decimal file can say.
bool whole(double seconds, double per_second) {
  const double ticks = seconds * per_second;
  return std::abs(ticks - std::nearbyint(ticks)) <= 1e-9 * std::max(1.0, std::abs(ticks));
}

/// First logged step with a loss at or below the target; infinite where there is none.
double first_step_at(const Trace& curve, double target) {
  for (std::size_t i = 0; i < curve.step.size(); ++i) {
    if (curve.loss[i] <= target) return curve.step[i];
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

std::int64_t ticks_per_second(const Workload& workload, const SimulationOptions& options) {
  bool real_rates = false;
  for (const WorkloadJob& job : workload.jobs) {
    if (job.duration_s == 0) real_rates = true;
    for (const double rate : job.steps_per_s) real_rates |= rate != 0 && rate != 1;
    if (real_rates) return 1'000'000;
  }
  for (const std::int64_t per_second : {1, 1'000}) {
    const auto fine = [&](double seconds) {
      return whole(seconds, static_cast<double>(per_second));
    };
    if (!fine(options.restart_s) || !fine(options.session_s.value_or(0)) ||
        !fine(options.round_s.value_or(0))) {
      continue;
    }
    if (std::all_of(workload.jobs.begin(), workload.jobs.end(), [&](const WorkloadJob& job) {
          return fine(job.submit_s) && fine(job.duration_s);
        })) {
      return per_second;
    }
  }
  return 1'000'000;
}

Engine::Engine(const Workload& given, const SimulationOptions& how, bool stop_at_target)
    : workload(given),
      options(how),
      per_second(ticks_per_second(given, how)),
      order(given.jobs.size()),
      runs(given.jobs.size()),
      held_gpu_s(given.tiers.size(), 0.0) {
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return given.jobs[a].submit_s < given.jobs[b].submit_s;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const WorkloadJob& job = given.jobs[order[i]];
    runs[i].submit = ticks(job.submit_s);
    runs[i].gpus = job.gpus;
    runs[i].work = job.duration_s > 0
                       ? std::nearbyint(job.duration_s * static_cast<double>(per_second))
                       : job.budget_steps * static_cast<double>(per_second);
    if (job.truth < 0 || !stop_at_target) continue;
    const double reached = first_step_at(given.curves[index(job.truth)], job.target_loss);
    if (reached <= job.budget_steps) {
      runs[i].work = reached * static_cast<double>(per_second);
      runs[i].at_end = Outcome::target;
    }
  }
  for (const Tier& tier : given.tiers) capacity.push_back(tier.gpus());
  free = capacity;
  restart = ticks(how.restart_s);
  if (how.events) spans.reserve(runs.size());
}

Tick Engine::ticks(double seconds) const {
  return static_cast<Tick>(std::nearbyint(seconds * static_cast<double>(per_second)));
}

double Engine::rate(int job, int tier) const {
  const std::vector<double>& rates = asked(job).steps_per_s;
  return rates.empty() ? 1.0 : rates[index(tier)];
}

bool Engine::fits_memory(int job, int tier) const {
  const double room = workload.tiers[index(tier)].memory_gb;
  return room <= 0 || asked(job).memory_gb <= room;
}

Tick Engine::next_event() const {
  Tick next = ends.empty() ? kNever : ends.begin()->first;
  if (index(arrived) < runs.size()) next = std::min(next, runs[index(arrived)].submit);
  return next;
}

void Engine::start(int job, int tier) {
  Run& run = runs[index(job)];
  free[index(tier)] -= run.gpus;
  run.tier = tier;
  run.rate = rate(job, tier);
  run.began = now;
  run.resumes = run.first_start < 0 ? now : now + restart;
  if (run.first_start < 0) run.first_start = now;
  // Whole where the rate is 1; elsewhere the first tick at which the work is surely done.
  const double left = (run.work - run.done) / run.rate;
  run.finishes = run.resumes + std::max<Tick>(0, static_cast<Tick>(std::ceil(left - 1e-6)));
  ends.emplace(run.finishes, job);
  run.slot = static_cast<int>(running.size());
  running.push_back({run.finishes, job, run.gpus});
}

namespace {

void release(Engine& engine, int job) {
  Run& run = engine.runs[Engine::index(job)];
  engine.ends.erase({run.finishes, job});
  const Running last = engine.running.back();
  engine.running[Engine::index(run.slot)] = last;
  engine.runs[Engine::index(last.job)].slot = run.slot;
  engine.running.pop_back();
  engine.free[Engine::index(run.tier)] += run.gpus;
  const Tick held = engine.now - run.began;
  run.held += held;
  const double gpu_s = engine.seconds(held) * run.gpus;
  const WorkloadJob& asked = engine.asked(job);
  engine.held_gpu_s[Engine::index(run.tier)] += gpu_s;
  run.energy_j += gpu_s * watts(engine.workload.tiers[Engine::index(run.tier)], asked.utilisation);
  if (engine.options.events && held > 0) {
    engine.spans.push_back(
        {asked.id, run.tier, run.gpus, engine.seconds(run.began), engine.seconds(engine.now)});
  }
}

}  // namespace

void Engine::suspend(int job) {
  Run& run = runs[index(job)];
  run.done = std::min(run.work, done(job));
  release(*this, job);
  run.tier = -1;
  run.finishes = kNever;
  ++run.suspensions;
}

void Engine::finish(int job, Outcome outcome) {
  Run& run = runs[index(job)];
  if (run.tier >= 0) {
    run.done = outcome == run.at_end ? run.work : done(job);
    release(*this, job);
    run.tier = -1;
  }
  run.finishes = kNever;
  run.end = now;
  run.outcome = outcome;
  --live;
}

}  // namespace glidepath::detail
