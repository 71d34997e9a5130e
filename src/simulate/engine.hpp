// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace glidepath::detail {

/// Integer time: one tick is a second, a millisecond or a microsecond, see ticks_per_second().
using Tick = std::int64_t;
inline constexpr Tick kNever = std::numeric_limits<Tick>::max();

/// The coarsest of 1, 1e3 and 1e6 ticks a second at which every time of the workload is whole.
[[nodiscard]] std::int64_t ticks_per_second(const Workload& workload,
                                            const SimulationOptions& options);

/// A job under simulation. Work is counted in ticks of service at rate 1, so that it stays a whole
/// number, exact in a double, wherever rates are 1.
struct Run {
  Tick submit = 0, first_start = -1, end = -1;
  Tick began = 0;          ///< start of the present stretch
  Tick resumes = 0;        ///< when that stretch begins to make progress: began + restart cost
  Tick finishes = kNever;  ///< when it ends if it is left alone
  Tick held = 0;           ///< GPUs held so far, present stretch excluded
  double work = 0;         ///< total, hidden from every policy
  double done = 0;         ///< up to `began`
  double rate = 1;         ///< of the present stretch
  double energy_j = 0;
  int gpus = 1;
  int tier = -1;  ///< -1 while it does not run
  int slot = -1;  ///< in Engine::running
  std::int64_t suspensions = 0;
  Outcome outcome = Outcome::unfinished;
  Outcome at_end = Outcome::finished;  ///< what doing all of `work` means
};

/// A running job, packed: what an event may have to look at for each of them.
struct Running {
  Tick finishes;
  int job, gpus;
};

/// State of the cluster and the mechanics of starting, suspending and ending jobs. Which job runs
/// is a scheduler's business; a job's index is its place in order of submission.
class Engine {
 public:
  /// `stop_at_target`: the work of a job with a curve ends where the curve reaches its target.
  Engine(const Workload& workload, const SimulationOptions& options, bool stop_at_target);

  void start(int job, int tier);
  void suspend(int job);
  void finish(int job, Outcome outcome);

  /// Work done by now, in ticks at rate 1.
  [[nodiscard]] double done(int job) const {
    const Run& run = runs[index(job)];
    return run.tier < 0 || now <= run.resumes
               ? run.done
               : run.done + static_cast<double>(now - run.resumes) * run.rate;
  }
  [[nodiscard]] const WorkloadJob& asked(int job) const { return workload.jobs[order[index(job)]]; }
  [[nodiscard]] double seconds(Tick tick) const {
    return static_cast<double>(tick) / static_cast<double>(per_second);
  }
  /// The next whole tick at or after `seconds`.
  [[nodiscard]] Tick ticks(double seconds) const;
  [[nodiscard]] double rate(int job, int tier) const;
  [[nodiscard]] bool fits_memory(int job, int tier) const;

  /// Next arrival or end; kNever when there is none.
  [[nodiscard]] Tick next_event() const;

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  const Workload& workload;
  const SimulationOptions& options;
  std::int64_t per_second;
  Tick now = 0;
  Tick restart = 0;
  std::vector<std::size_t> order;  ///< order[job] = place in workload.jobs
  std::vector<Run> runs;
  std::vector<int> capacity, free;      ///< GPUs of each tier
  std::set<std::pair<Tick, int>> ends;  ///< (finish, job) of the running jobs
  std::vector<Running> running;         ///< the same jobs in no order
  int arrived = 0;                      ///< jobs [0, arrived) have been submitted
  int live = 0;
  std::vector<Span> spans;
  std::vector<double> held_gpu_s;  ///< per tier
  std::int64_t events = 0;
};

/// Runs until nothing is left to happen. At one instant: ends in order of submission, then
/// arrivals, then the scheduler decides. A scheduler has arrive(job), leave(job), wake() and
/// schedule().
template <class Scheduler>
void run(Engine& engine, Scheduler& scheduler) {
  const int jobs = static_cast<int>(engine.runs.size());
  for (;;) {
    const Tick wake = scheduler.wake();
    const Tick next = std::min(engine.next_event(), wake);
    if (next == kNever) return;
    engine.now = std::max(engine.now, next);
    while (!engine.ends.empty() && engine.ends.begin()->first == engine.now) {
      const int job = engine.ends.begin()->second;
      engine.finish(job, engine.runs[Engine::index(job)].at_end);
      scheduler.leave(job);
      ++engine.events;
    }
    while (engine.arrived < jobs &&
           engine.runs[Engine::index(engine.arrived)].submit == engine.now) {
      ++engine.live;
      scheduler.arrive(engine.arrived++);
      ++engine.events;
    }
    if (wake == engine.now) ++engine.events;
    scheduler.schedule();
    if (engine.options.progress) engine.options.progress(engine.arrived - engine.live, jobs);
  }
}

}  // namespace glidepath::detail
