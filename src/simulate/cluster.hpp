// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/interrupt.hpp"
#include "simulate/clock.hpp"
#include "simulate/nodes.hpp"

namespace glidepath::detail {

inline constexpr double kRoundingSlack = 1e-9;  ///< relative: more than rounding may change

/// The coarsest of 1, 1e3 and 1e6 ticks a second at which every time of the workload is whole; 1e6
/// where jobs have rates or share GPUs, whose speeds leave no time whole.
[[nodiscard]] std::int64_t ticks_per_second(const Workload& workload,
                                            const SimulationOptions& options);

/// A job under simulation. Work is counted in ticks of service at rate 1, so that it stays a whole
/// number, exact in a double, wherever rates are 1.
struct Run {
  Tick submit = 0, first_start = -1, end = -1;
  Tick since = 0;          ///< start of the present run
  Tick began = 0;          ///< of the present stretch of it, at one rate
  Tick resumes = 0;        ///< when that stretch begins to make progress
  Tick finishes = kNever;  ///< when it ends if it is left alone
  Tick held = 0;           ///< GPUs held so far, present stretch excluded
  Tick shared = 0;         ///< with another job
  Tick crashes = kNever;   ///< next failure, in ticks of `held`
  double work = 0;         ///< total, hidden from every policy
  double done = 0;         ///< up to `began`
  double rate = 1;         ///< of the present stretch
  double fastest = 1;      ///< rate on the fastest tier that can run it
  double saved = 0;  ///< work that no failure takes: what was done at the start of the present run
  Tick progressed = 0;  ///< ticks of progress in the present run, up to `began`
  struct {
    double work = 0, gpu_s = 0;  ///< the work, and the GPU-seconds that it took
  } unsaved{};                   ///< what a failure at `began` would take
  double energy_j = 0;
  int gpus = 1;             ///< that it holds, or asks for while it does not run
  double extra_gpu = 0;     ///< GPU-ticks held beyond those of the gang that it asks for
  int tier = -1;            ///< -1 while it does not run
  int partner = -1;         ///< on the same GPUs
  int slot = -1;            ///< in Cluster::running
  std::uint64_t drawn = 0;  ///< crashes so far and the next
  std::int64_t suspensions = 0, failures = 0;
  JobOutcome outcome = JobOutcome::unfinished;
  JobOutcome at_end = JobOutcome::finished;  ///< what doing all of `work` means
};

/// A running job, packed: what an event may have to look at for each of them.
struct Running {
  Tick finishes;
  int job, gpus;
};

/// Decisions that the objective `learned` left to jct.
struct Fallback {
  std::int64_t decisions = 0, left = 0;
  std::string why{};  ///< the first time
  void note(const std::string& reason) {
    ++decisions;
    if (reason.empty()) return;
    if (left++ == 0) why = reason;
  }
};

/// State of the cluster and the mechanics of starting, suspending and ending jobs. Which job runs
/// is a scheduler's business; a job's index is its place in order of submission.
class Cluster {
 public:
  /// With `options.stop_at_target` the work of a job with a curve ends where it reaches its target.
  Cluster(const Workload& workload, const SimulationOptions& options);

  /// On GPUs of its own. False where they must be of whole nodes and are not.
  bool start(int job, int tier, int gpus);
  bool start(int job, int tier) { return start(job, tier, submitted(job).gpus); }
  /// The same, and where no nodes have room other gangs of the tier change theirs: a suspension and
  /// a start of each that moves. False where that does not help.
  bool start_moving(int job, int tier, int gpus);
  bool start_moving(int job, int tier) { return start_moving(job, tier, submitted(job).gpus); }
  /// On the GPUs of `host`, which runs alone; both slow down.
  void join(int job, int host);
  void suspend(int job);
  void finish(int job, JobOutcome outcome);
  /// Fails: waits again with the work of its last checkpoint.
  void fail(int job);
  /// Failures and repairs of nodes and crashes of jobs that are due now. `before` is called for
  /// each job that will fail, while it still runs.
  void apply_failures(const std::function<void(int)>& before);

  /// Work done by now, in ticks at rate 1.
  [[nodiscard]] double done(int job) const {
    const Run& run = runs[job];
    return run.tier < 0 || now <= run.resumes
               ? run.done
               : run.done + static_cast<double>(now - run.resumes) * run.rate;
  }
  /// A tick until which a running job that is left alone has not done so much: now where it has,
  /// and none so late that rounding could count.
  [[nodiscard]] Tick tick_before(int job, double work) const {
    const double slack = kRoundingSlack * static_cast<double>(now) + 2;
    const double length = (work - done(job)) / runs[job].rate * (1 - kRoundingSlack) - slack;
    return now + static_cast<Tick>(std::clamp(length, 0.0, 1e15));
  }
  [[nodiscard]] const WorkloadJob& submitted(int job) const { return workload.jobs[order[job]]; }
  [[nodiscard]] double seconds(Tick tick) const { return clock.seconds(tick); }
  [[nodiscard]] Tick ticks(double seconds) const { return clock.ticks(seconds); }
  /// With the gang that it asks for.
  [[nodiscard]] double rate(int job, int tier) const;
  /// 0 where it has no such gang.
  [[nodiscard]] double rate(int job, int tier, int gpus) const;
  /// What a start after the first takes.
  [[nodiscard]] Tick restart_of(int job) const;
  [[nodiscard]] bool fits_memory(int job, int tier) const;
  /// Whether the tier, all of its nodes in service, can run the job.
  [[nodiscard]] bool usable(int job, int tier) const;
  /// Whether some tier can, with the nodes that are in service now.
  [[nodiscard]] bool in_service(int job) const;
  /// The fastest tier with room for the job now; -1 where there is none.
  [[nodiscard]] int tier_with_room(int job) const;
  /// Ticks for which the job has held GPUs.
  [[nodiscard]] Tick attained(int job) const {
    const Run& run = runs[job];
    return run.held + (run.tier < 0 ? 0 : now - run.began);
  }

  /// Speeds of two jobs on the same GPUs of a tier, as shares of each alone; 0 where they do not
  /// fit.
  [[nodiscard]] SharedSpeeds shared(int first, int second, int tier) const;

  /// Next arrival, end or failure; kNever when there is none.
  [[nodiscard]] Tick next_event() const;
  /// The next end of a round of SimulationOptions::round_s, while jobs are live.
  [[nodiscard]] Tick next_round() const {
    return round == kNever || live == 0 ? kNever : (now / round + 1) * round;
  }

 private:
  std::optional<Workload> turned_;  ///< where curves rise to their targets

 public:
  const Workload& workload;  ///< its curves are losses: those of the other direction turned round
  const SimulationOptions& options;
  Clock clock;
  std::int64_t per_second;
  Tick now = 0;
  Tick restart = 0;  ///< the longest restart of a job
  Tick round = kNever;
  std::vector<std::size_t> order;  ///< order[job] = place in workload.jobs
  std::vector<Run> runs;
  std::vector<int> capacity, free;  ///< GPUs of each tier
  std::pmr::unsynchronized_pool_resource pool;
  std::pmr::set<std::pair<Tick, int>> ends{&pool};  ///< (finish, job) of the running jobs
  std::vector<Running> running;                     ///< the same jobs in no order
  int arrived = 0;                                  ///< jobs [0, arrived) have been submitted
  std::optional<bool> by_gpu_time;                  ///< the order that leads, for those who look on
  int live = 0;
  std::vector<JobSpan> spans;
  std::vector<Stretch> held;  ///< GPU-seconds per tier
  Tick last_held = 0;         ///< end of the last of them
  std::optional<Nodes> nodes;
  std::vector<Stretch> energy;       ///< joules of the jobs per tier
  std::vector<std::int64_t> starts;  ///< per tier
  double lost_gpu_s = 0;
  std::int64_t events = 0;
  /// Rounds in a row in which nothing runs or comes, whatever nodes fail meanwhile. A policy may
  /// let time pass; with so many of them it has left the jobs that wait for good, but for those
  /// that it wakes for by itself.
  static constexpr std::int64_t kMaxIdleRounds = 10'000;
  std::int64_t idle_rounds = 0;
  Fallback fallback;

 private:
  void settle(int job);
  void progress(Run& run, Tick length, double gpus) const;
  void make_way(int job);
  void prepare(int job, int seated);
  void run_on(int job);
  void draw_crash(int job);
  void leave(int job);
  [[nodiscard]] double speed(int job) const;
  std::set<std::pair<Tick, int>> crashes_;
  std::map<std::tuple<std::string_view, std::string_view, int>, SharedSpeeds> pairs_;
};

/// Goes to the next instant at which something happens: ends in order of submission, failures,
/// arrivals in order of submission, then the scheduler decides. False when nothing is left. A
/// scheduler has arrive(job), leave(job), fail(job) (which still runs, and waits from then on),
/// wake() and schedule().
template <class Scheduler>
bool advance(Cluster& cluster, Scheduler& scheduler) {
  check_interrupt();
  const int jobs = static_cast<int>(cluster.runs.size());
  const bool idle = cluster.running.empty() && cluster.arrived == jobs;
  if (!idle) cluster.idle_rounds = 0;
  const bool left_for_good = cluster.idle_rounds >= Cluster::kMaxIdleRounds;
  const Tick round = left_for_good ? kNever : cluster.next_round();
  const Tick wake = std::min(scheduler.wake(), round);
  const Tick next = std::min(cluster.next_event(), wake);
  if (next == kNever) return false;
  if (idle && next == round) ++cluster.idle_rounds;
  cluster.now = std::max(cluster.now, next);
  while (!cluster.ends.empty() && cluster.ends.begin()->first == cluster.now) {
    const int job = cluster.ends.begin()->second;
    cluster.finish(job, cluster.runs[job].at_end);
    scheduler.leave(job);
    ++cluster.events;
  }
  cluster.apply_failures([&](int job) { scheduler.fail(job); });
  while (cluster.arrived < jobs && cluster.runs[cluster.arrived].submit == cluster.now) {
    ++cluster.live;
    scheduler.arrive(cluster.arrived++);
    ++cluster.events;
  }
  if (wake == cluster.now) ++cluster.events;
  scheduler.schedule();
  if (cluster.options.progress) cluster.options.progress(cluster.arrived - cluster.live, jobs);
  return true;
}

/// Ends a simulation that comes to nothing: throws InputError after more decisions than its jobs
/// need by far. Rounds and sessions let it make more, as many as the work has of them.
class DecisionLimit {
 public:
  explicit DecisionLimit(const Cluster& cluster);
  /// To be called for each decision.
  void spend();

 private:
  const Cluster& cluster_;
  std::int64_t most_, spent_ = 0;
};

template <class Scheduler>
void run(Cluster& cluster, Scheduler& scheduler) {
  DecisionLimit limit(cluster);
  while (advance(cluster, scheduler)) limit.spend();
}

}  // namespace glidepath::detail
