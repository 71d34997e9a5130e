// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "common/rng.hpp"
#include "simulate/phases.hpp"

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
  return kInfinity;
}

/// What a rising curve is taken from, as forecasts turn a score round: the 1 or 100 that it cannot
/// pass, else 0.
double top_of(const Trace& curve) {
  double lowest = kInfinity, highest = -kInfinity;
  for (const double value : curve.loss) {
    if (!std::isfinite(value)) continue;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  if (!(lowest >= 0 && highest <= 100)) return 0;
  return highest <= 1 ? 1 : 100;
}

/// The workload with each curve that rises to its target, and that target, turned round: so that
/// less is better to policies, forecasts and plans alike. Empty where no curve does.
std::optional<Workload> as_losses(const Workload& given) {
  const auto rises = [](const Trace& curve) { return curve.direction == Direction::max; };
  if (std::ranges::none_of(given.curves, rises)) return std::nullopt;
  Workload out = given;
  for (WorkloadJob& job : out.jobs) {
    if (job.truth < 0 || !rises(out.curves[job.truth])) continue;
    job.target_loss = top_of(out.curves[job.truth]) - job.target_loss;
  }
  for (Trace& curve : out.curves) {
    if (!rises(curve)) continue;
    const double top = top_of(curve);
    for (double& value : curve.loss) value = top - value;
    curve.direction = Direction::min;
  }
  return out;
}

}  // namespace

std::int64_t ticks_per_second(const Workload& workload, const SimulationOptions& options) {
  if (options.sharing != Sharing::exclusive) return 1'000'000;  // any speed beside a partner
  bool real_rates = false;
  for (const WorkloadJob& job : workload.jobs) {
    if (job.duration_s == 0) real_rates = true;
    for (const double rate : job.steps_per_s) real_rates |= rate != 0 && rate != 1;
    if (real_rates || !job.gangs.empty()) return 1'000'000;
  }
  for (const std::int64_t per_second : {1, 1'000}) {
    const auto fine = [&](double seconds) {
      return whole(seconds, static_cast<double>(per_second));
    };
    const auto fine_or_never = [&](double seconds) {
      return seconds == kInfinity || fine(seconds);
    };
    if (!fine(options.restart_s) || !fine(options.session_s.value_or(0)) ||
        !fine(options.round_s.value_or(0)) || !fine(options.failures.repair_s) ||
        !fine_or_never(options.failures.checkpoint_s) || !fine_or_never(options.sleep.after_s) ||
        !fine(options.sleep.wake_s)) {
      continue;
    }
    if (std::all_of(workload.jobs.begin(), workload.jobs.end(), [&](const WorkloadJob& job) {
          return fine(job.submit_s) && fine(work_of(job)) && fine(std::max(0.0, job.restart_s));
        })) {
      return per_second;
    }
  }
  return 1'000'000;
}

Cluster::Cluster(const Workload& given, const SimulationOptions& how)
    : turned_(as_losses(given)),
      workload(turned_ ? *turned_ : given),
      options(how),
      clock(ticks_per_second(given, how), how.carbon_g_per_kwh),
      per_second(clock.per_second()),
      order(given.jobs.size()),
      runs(given.jobs.size()),
      held(given.tiers.size()),
      energy(given.tiers.size()),
      starts(given.tiers.size()) {
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return given.jobs[a].submit_s < given.jobs[b].submit_s;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const WorkloadJob& job = workload.jobs[order[i]];
    runs[i].submit = ticks(job.submit_s);
    runs[i].gpus = job.gpus;
    const double work = work_of(job) * static_cast<double>(per_second);
    // No job is shorter than a tick: it would end in the decision that starts it, and the next one
    // at that instant would take the GPUs of who has just got them.
    runs[i].work = job.duration_s > 0 ? std::max(1.0, std::nearbyint(work)) : work;
    if (job.truth < 0 || !how.stop_at_target.value_or(false)) continue;
    const double reached = first_step_at(workload.curves[job.truth], job.target_loss);
    if (reached <= job.budget_steps) {
      runs[i].work = reached * static_cast<double>(per_second);
      runs[i].at_end = JobOutcome::target;
    }
  }
  for (const Tier& tier : given.tiers) capacity.push_back(tier.gpus());
  for (int job = 0; job < static_cast<int>(runs.size()); ++job) {
    double fastest = 0;
    for (int t = 0; t < static_cast<int>(capacity.size()); ++t) {
      if (usable(job, t)) fastest = std::max(fastest, rate(job, t));
    }
    runs[job].fastest = fastest;
  }
  free = capacity;
  for (int job = 0; job < static_cast<int>(runs.size()); ++job) {
    restart = std::max(restart, restart_of(job));
  }
  if (how.round_s) round = std::max<Tick>(1, ticks(*how.round_s));
  for (const PairSpeeds& pair : given.pairs) {
    pairs_[{pair.first, pair.second, pair.tier}] = {pair.first_speed, pair.second_speed};
    pairs_[{pair.second, pair.first, pair.tier}] = {pair.second_speed, pair.first_speed};
  }
  if (how.spans) spans.reserve(runs.size());
  if (how.in_nodes || how.failures.node_every_s < kInfinity || how.sleep.after_s < kInfinity) {
    nodes.emplace(given, how, clock, runs.front().submit);
  }
}

double Cluster::rate(int job, int tier) const {
  const std::vector<double>& rates = submitted(job).steps_per_s;
  return rates.empty() ? 1.0 : rates[tier];
}

double Cluster::rate(int job, int tier, int gpus) const {
  const WorkloadJob& own = submitted(job);
  if (gpus == own.gpus) return rate(job, tier);
  for (const Gang& gang : own.gangs) {
    if (gang.gpus == gpus) return gang.steps_per_s[tier];
  }
  return 0;
}

Tick Cluster::restart_of(int job) const {
  const double own_s = submitted(job).restart_s;
  return ticks(own_s < 0 ? options.restart_s : own_s);
}

bool Cluster::fits_memory(int job, int tier) const {
  const double room = workload.tiers[tier].memory_gb;
  return room <= 0 || submitted(job).memory_gb <= room;
}

bool Cluster::usable(int job, int tier) const {
  return rate(job, tier) > 0 && fits_memory(job, tier) &&
         runs[job].gpus <= workload.tiers[tier].gpus();
}

bool Cluster::in_service(int job) const {
  for (std::size_t t = 0; t < capacity.size(); ++t) {
    if (runs[job].gpus <= capacity[t] && usable(job, static_cast<int>(t))) return true;
  }
  return false;
}

int Cluster::tier_with_room(int job) const {
  int best = -1;
  for (int t = 0; t < static_cast<int>(free.size()); ++t) {
    if (runs[job].gpus > free[t] || !usable(job, t)) continue;
    if (best >= 0 && rate(job, t) <= rate(job, best)) continue;
    if (!nodes || nodes->fits(t, runs[job].gpus)) best = t;
  }
  return best;
}

SharedSpeeds Cluster::shared(int first, int second, int tier) const {
  const WorkloadJob &a = submitted(first), &b = submitted(second);
  const double memory = workload.tiers[tier].memory_gb;
  if (memory > 0 && a.memory_gb + b.memory_gb > memory) return {0, 0};
  const auto pair = pairs_.find({a.job_class, b.job_class, tier});
  if (pair != pairs_.end()) return pair->second;
  const auto alone = [](const WorkloadJob& job) {
    return Profile{job.sm_activity, job.memory_gb, {}, job.memory_activity};
  };
  return shared_speeds(alone(a), alone(b), options.sharing, memory);
}

Tick Cluster::next_event() const {
  Tick next = ends.empty() ? kNever : ends.begin()->first;
  if (arrived < std::ssize(runs)) next = std::min(next, runs[arrived].submit);
  if (!crashes_.empty()) next = std::min(next, crashes_.begin()->first);
  // Where nothing runs, comes or is under repair, a failure more changes nothing.
  if (nodes && (next != kNever || (live > 0 && !nodes->all_up()))) {
    next = std::min(next, nodes->next_change());
  }
  return next;
}

bool Cluster::start(int job, int tier, int gpus) {
  Run& run = runs[job];
  if (nodes && !nodes->place(job, tier, gpus, now)) return false;
  run.gpus = gpus;
  free[tier] -= gpus;
  ++starts[tier];
  run.tier = tier;
  prepare(job, job);
  run_on(job);
  return true;
}

bool Cluster::start_moving(int job, int tier, int gpus) {
  if (start(job, tier, gpus)) return true;
  if (options.sharing != Sharing::exclusive) return false;  // a pair stays where it is
  const std::optional<std::vector<int>> moved = nodes->make_room(job, tier, gpus);
  if (!moved) return false;
  std::vector<int> gangs;
  for (const int other : *moved) {
    gangs.push_back(runs[other].gpus);
    make_way(other);
  }
  start(job, tier, gpus);
  for (std::size_t k = 0; k < gangs.size(); ++k) start((*moved)[k], tier, gangs[k]);
  return true;
}

/// A job that was started at this very instant gives its nodes back as if it had not been: nothing
/// of a run is cut short, so that it is no preemption and its next start costs no more.
void Cluster::make_way(int job) {
  Run& run = runs[job];
  if (run.since < now) return suspend(job);
  --starts[run.tier];
  leave(job);
  if (run.first_start == now) run.first_start = -1;
}

void Cluster::join(int job, int host) {
  settle(host);
  Run& run = runs[job];
  Run& other = runs[host];
  run.tier = other.tier;
  run.gpus = other.gpus;
  ++starts[run.tier];
  prepare(job, host);
  run.partner = host;
  other.partner = job;
  run_on(host);
  run_on(job);
}

/// What comes before the progress of a run on GPUs that `seated` was given: a restart, and until
/// their nodes are awake.
void Cluster::prepare(int job, int seated) {
  Run& run = runs[job];
  const Tick restart_ticks = run.first_start < 0 ? 0 : restart_of(job);
  run.since = run.began = now;
  run.resumes = now + std::max(nodes ? nodes->waking(seated, now) : 0, restart_ticks);
  if (run.first_start < 0) run.first_start = now;
  run.saved = run.done;
  run.progressed = 0;
  run.unsaved = {};
}

double Cluster::speed(int job) const {
  const Run& run = runs[job];
  const double alone = rate(job, run.tier, run.gpus);
  return run.partner < 0 ? alone : alone * shared(job, run.partner, run.tier).first;
}

/// Begins a stretch at the rate that the job has now.
void Cluster::run_on(int job) {
  Run& run = runs[job];
  run.rate = speed(job);
  // Whole where the rate is 1; elsewhere the first tick at which the work is surely done.
  const double left = std::max(0.0, std::ceil((run.work - run.done) / run.rate - 1e-6));
  if (!(left <= static_cast<double>(kLastTick - run.resumes))) {
    refuse("simulate: job ", submitted(job).id, " would end later than after ", seconds(kLastTick),
           " seconds");
  }
  run.finishes = run.resumes + static_cast<Tick>(left);
  ends.emplace(run.finishes, job);
  run.slot = static_cast<int>(running.size());
  running.push_back({run.finishes, job, run.gpus});
  if (options.failures.job_every_s == kInfinity) return;
  if (run.crashes == kNever) draw_crash(job);
  crashes_.emplace(now + (run.crashes - run.held), job);
}

/// Crash k of a job comes after a time of running that the seed alone decides.
void Cluster::draw_crash(int job) {
  Run& run = runs[job];
  if (options.failures.job_every_s == kInfinity) return;
  const Rng rng{options.seed ^ 0x6a6f62ULL};
  const double u = rng.uniform(static_cast<std::uint64_t>(submitted(job).id), run.drawn++);
  const double gap_s = std::min(kMaxSeconds, -options.failures.job_every_s * std::log(1 - u));
  run.crashes = (run.crashes == kNever ? 0 : run.crashes) + std::max<Tick>(1, ticks(gap_s));
}

/// Books progress at one rate: of it, what was done since the last checkpoint.
void Cluster::progress(Run& run, Tick length, double gpus) const {
  run.progressed += length;
  const Tick every = ticks(options.failures.checkpoint_s);
  const Tick since = every == 0 ? 0 : run.progressed % every;
  const bool saved = since <= length;  // in this stretch, or at its start
  const auto last = static_cast<double>(saved ? since : length);
  const double work = std::min(run.done - run.saved, run.rate * last);
  const double gpu_s = work / run.rate / static_cast<double>(per_second) * gpus;
  run.unsaved = {(saved ? 0 : run.unsaved.work) + work, (saved ? 0 : run.unsaved.gpu_s) + gpu_s};
}

/// Ends a stretch: books what was held and done in it.
void Cluster::settle(int job) {
  Run& run = runs[job];
  ends.erase({run.finishes, job});
  if (options.failures.job_every_s < kInfinity)
    crashes_.erase({run.began + run.crashes - run.held, job});
  const Running last = running.back();
  running[run.slot] = last;
  runs[last.job].slot = run.slot;
  running.pop_back();

  const bool sharing = run.partner >= 0;
  run.done = std::min(run.work, done(job));
  if (now > run.resumes) {
    progress(run, now - run.resumes, run.gpus * (sharing ? 0.5 : 1.0));
    run.resumes = now;
  }
  const Tick length = now - run.began;
  run.held += length;
  if (sharing) run.shared += length;
  // Two jobs on the same GPUs have a half of them each, and of the power at both utilizations.
  const double gpus = run.gpus * (sharing ? 0.5 : 1.0);
  const Stretch gpu = gpus * clock.between(run.began, now);
  run.extra_gpu +=
      (run.gpus - submitted(job).gpus) * (sharing ? 0.5 : 1.0) * static_cast<double>(length);
  const WorkloadJob& own = submitted(job);
  const double utilization =
      sharing ? std::min(1.0, own.utilization + submitted(run.partner).utilization)
              : own.utilization;
  const double power = watts(workload.tiers[run.tier], utilization);
  held[run.tier] += gpu;
  if (length > 0) last_held = std::max(last_held, now);
  energy[run.tier] += power * gpu;
  run.energy_j += gpu.s * power;
  if (length > 0 && (options.spans || options.stream)) {
    const JobSpan span{own.id,       run.tier,
                       run.gpus,     seconds(run.began),
                       seconds(now), sharing ? submitted(run.partner).id : -1};
    if (options.spans) spans.push_back(span);
    if (options.stream) options.stream(span);
  }
  run.began = now;
}

/// Gives the GPUs back, or leaves them to the partner.
void Cluster::leave(int job) {
  Run& run = runs[job];
  const int partner = run.partner;
  if (partner >= 0) settle(partner);
  settle(job);
  run.finishes = kNever;
  if (partner < 0) {
    free[run.tier] += run.gpus;
    if (nodes) nodes->release(job, now);
  } else {
    if (nodes && nodes->holds(job)) nodes->pass(job, partner);
    run.partner = runs[partner].partner = -1;
    run_on(partner);
  }
  run.tier = -1;
  run.gpus = submitted(job).gpus;
}

void Cluster::suspend(int job) {
  leave(job);
  ++runs[job].suspensions;
}

void Cluster::finish(int job, JobOutcome outcome) {
  Run& run = runs[job];
  if (run.tier >= 0) {
    leave(job);
    if (outcome == run.at_end) run.done = run.work;
  }
  run.finishes = kNever;
  run.end = now;
  run.outcome = outcome;
  --live;
}

void Cluster::fail(int job) {
  Run& run = runs[job];
  leave(job);
  ++run.failures;
  run.done -= std::min(run.done - run.saved, run.unsaved.work);
  lost_gpu_s += run.unsaved.gpu_s;
  if (run.crashes <= run.held) draw_crash(job);  // also where a node failed at that very instant
}

void Cluster::apply_failures(const std::function<void(int)>& before) {
  const auto fails = [&](int job) {
    before(job);
    fail(job);
  };
  while (nodes && nodes->next_change() <= now) {
    const Nodes::Change change = nodes->take_change();
    const int gpus = nodes->size(change.tier);
    if (!change.up) {
      for (const int job : nodes->jobs_on(change.tier, change.node)) {
        const int partner = runs[job].partner;
        fails(job);
        if (partner >= 0) fails(partner);
      }
    }
    nodes->apply(change, now);
    capacity[change.tier] += change.up ? gpus : -gpus;
    free[change.tier] += change.up ? gpus : -gpus;
    ++events;
  }
  while (!crashes_.empty() && crashes_.begin()->first <= now) {
    fails(crashes_.begin()->second);
    ++events;
  }
}

namespace {

/// On the tiers that can run the job, whichever of its gangs it has.
double slowest_rate(const Cluster& cluster, int job) {
  const WorkloadJob& submitted = cluster.submitted(job);
  double slowest = kInfinity;
  const auto look = [&](int gpus) {
    for (int t = 0; t < static_cast<int>(cluster.workload.tiers.size()); ++t) {
      const double rate = cluster.rate(job, t, gpus);
      const bool holds = cluster.fits_memory(job, t) && gpus <= cluster.workload.tiers[t].gpus();
      if (holds && rate > 0) slowest = std::min(slowest, rate);
    }
  };
  look(submitted.gpus);
  for (const Gang& gang : submitted.gangs) look(gang.gpus);
  return slowest;
}

}  // namespace

DecisionLimit::DecisionLimit(const Cluster& cluster) : cluster_(cluster) {
  constexpr double kBase = 1e5, kPerJob = 100, kPerPeriod = 4, kMaxPeriods = 3e5;
  const double max_wait_s = cluster.options.planner.value_or(PlanOptions{}).dynamics.max_wait_s;
  const double period = std::min({cluster.options.round_s.value_or(kInfinity),
                                  cluster.options.session_s.value_or(kInfinity),
                                  max_wait_s > 0 ? max_wait_s : kInfinity});
  double work_s = 0;
  for (int job = 0; job < static_cast<int>(cluster.runs.size()); ++job) {
    work_s += cluster.runs[job].work / static_cast<double>(cluster.per_second) /
              slowest_rate(cluster, job);
  }
  most_ = static_cast<std::int64_t>(kBase + kPerJob * static_cast<double>(cluster.runs.size()) +
                                    kPerPeriod * std::min(kMaxPeriods, work_s / period));
}

void DecisionLimit::spend() {
  if (++spent_ <= most_) return;
  refuse("simulate: after ", most_, " decisions ",
         cluster_.live + std::ssize(cluster_.runs) - cluster_.arrived, " of ", cluster_.runs.size(),
         " jobs have not ended, at ", cluster_.seconds(cluster_.now),
         " s: restarts, failures, rounds or max_wait_s leave them no time to make progress");
}

}  // namespace glidepath::detail
