// SPDX-License-Identifier: Apache-2.0
// Schedulers that need no Snapshot, each run to the end. Per event they look at the heads of their
// queues and at running jobs, never at all waiting ones; on one tier of GPUs that gangs may spread
// over, of the running jobs only at the few behind the first head with room.
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/fair_rank.hpp"
#include "simulate/fill.hpp"
#include "simulate/in_order.hpp"
#include "simulate/learned_rank.hpp"
#include "simulate/patient.hpp"
#include "simulate/policy_table.hpp"
#include "simulate/preemptive.hpp"
#include "simulate/ranks.hpp"
#include "simulate/waiting.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;

// ---- no preemption

/// Strict head of line: the first that does not fit blocks the others.
class Fifo {
 public:
  explicit Fifo(Cluster& cluster) : cluster_(cluster) {}
  void arrive(int) {}
  void leave(int) {}
  void fail(int job) { before_.insert(job); }
  [[nodiscard]] Tick wake() const { return kNever; }
  void schedule() {
    for (auto job = before_.begin(); job != before_.end();) {
      if (start(*job)) {
        job = before_.erase(job);
      } else if (cluster_.in_service(*job)) {
        return;
      } else {
        ++job;
      }
    }
    for (; head_ < cluster_.arrived; ++head_) {
      if (start(head_)) continue;
      if (cluster_.in_service(head_)) return;
      before_.insert(head_);
    }
  }

 private:
  bool start(int job) {
    const int tier = cluster_.tier_with_room(job);
    return tier >= 0 && cluster_.start(job, tier);
  }
  Cluster& cluster_;
  int head_ = 0;
  std::set<int> before_;  ///< those that failed, and those that nodes in service cannot hold
};

/// FIFO that skips what does not fit: backfill without reservation.
class FirstFit {
 public:
  explicit FirstFit(Cluster& cluster) : cluster_(cluster), waiting_(cluster) {}
  void arrive(int job) { waiting_[job].push_back(job); }
  void leave(int) {}
  void fail(int job) {
    std::deque<int>& queue = waiting_[job];
    queue.insert(std::lower_bound(queue.begin(), queue.end(), job), job);
  }
  [[nodiscard]] Tick wake() const { return kNever; }
  void schedule() {
    waiting_.look();
    while (auto* first = waiting_.first([](const auto& queue) { return queue.front(); })) {
      const int job = first->queue.front();
      const int tier = cluster_.tier_with_room(job);
      first->passed = tier < 0;
      if (tier < 0) continue;
      cluster_.start(job, tier);
      first->queue.pop_front();
    }
  }

 private:
  Cluster& cluster_;
  ByKind<std::deque<int>> waiting_;
};

/// A session each, then to the tail; strict head of line. At one instant: ended sessions in order
/// of their start, failures and arrivals, starts.
class SessionFifo {
 public:
  explicit SessionFifo(Cluster& cluster)
      : cluster_(cluster), session_(std::max<Tick>(1, cluster.ticks(*cluster.options.session_s))) {}
  void arrive(int job) { arrivals_.push_back(job); }
  void leave(int) {}
  void fail(int job) { arrivals_.push_back(job); }
  [[nodiscard]] Tick wake() const { return sessions_.empty() ? kNever : sessions_.top().end; }
  void schedule() {
    while (!sessions_.empty() && sessions_.top().end == cluster_.now) {
      const Session over = sessions_.top();
      sessions_.pop();
      const Run& run = cluster_.runs[over.job];
      if (run.tier < 0 || run.since != over.since) continue;  // it failed, and perhaps began anew
      cluster_.suspend(over.job);
      queue_.push_back(over.job);
    }
    queue_.insert(queue_.end(), arrivals_.begin(), arrivals_.end());
    arrivals_.clear();
    for (auto next = queue_.begin(); next != queue_.end();) {
      const int job = *next;
      const int tier = cluster_.tier_with_room(job);
      if (tier < 0 && cluster_.in_service(job)) return;
      if (tier < 0) {
        ++next;
        continue;
      }
      next = queue_.erase(next);
      cluster_.start(job, tier);
      const Run& run = cluster_.runs[job];
      if (run.finishes > run.resumes + session_) {
        sessions_.push({run.resumes + session_, starts_++, run.since, job});
      }
    }
  }

 private:
  struct Session {
    Tick end;
    std::int64_t start;
    Tick since;
    int job;
    bool operator>(const Session& other) const {
      return end != other.end ? end > other.end : start > other.start;
    }
  };
  Cluster& cluster_;
  Tick session_;
  std::deque<int> queue_, arrivals_;
  std::priority_queue<Session, std::vector<Session>, std::greater<>> sessions_;
  std::int64_t starts_ = 0;
};

// ---- discretised 2D-LAS

/// Three queues on attained GPU-seconds, as the Tiresias simulator runs them (Gu et al., NSDI
/// 2019): demotion is looked at in events only, and after each the next look is (limit - seconds
/// held) / GPUs later. Seconds times GPUs count against the limit, so gangs are demoted late.
class Las {
 public:
  explicit Las(Cluster& cluster) : cluster_(cluster), fill_(cluster) {
    for (std::size_t q = 0; q <= limits_.size(); ++q) levels_.emplace_back(cluster);
    for (Index q = 0; q < limits_.size(); ++q) limits_[q] = cluster.ticks(kLasLimitsGpuS[q]);
  }
  void arrive(int job) { levels_[0].append(job); }
  void leave(int job) {
    for (Level& level : levels_) std::erase(level.running, job);
  }
  void fail(int job) {
    for (Level& level : levels_) {
      if (std::erase(level.running, job) > 0) level.prepend(job);
    }
  }
  [[nodiscard]] Tick wake() const { return wake_; }

  void schedule() {
    demote();
    changes_.clear();
    fill_.begin();
    for (Level& level : levels_) fill(level);
    carry_out(cluster_, changes_);
    for (Level& level : levels_) {  // without nodes for it although others moved
      std::erase_if(level.running, [&](int job) {
        const bool waits = cluster_.runs[job].tier < 0;
        if (waits) level.prepend(job);
        return waits;
      });
    }

    wake_ = kNever;
    for (Index q = 0; q < limits_.size(); ++q) {
      for (const int job : levels_[q].running) {
        const Tick left = limits_[q] - cluster_.attained(job);
        const Tick wait = (left + gpus(job) - 1) / gpus(job);
        wake_ = std::min(wake_, cluster_.now + std::max<Tick>(1, wait));
      }
    }
  }

 private:
  struct Waiting {
    std::int64_t place;
    int job;
  };
  struct Level {
    explicit Level(const Cluster& cluster) : waiting(cluster) {}
    std::vector<int> running;   ///< in queue order, all before the waiting ones
    std::vector<int> incoming;  ///< running jobs demoted in this event, behind the waiting ones
    ByKind<std::deque<Waiting>> waiting;
    std::int64_t front = 0, back = 0;
    void append(int job) { waiting[job].push_back({back++, job}); }
    void prepend(int job) { waiting[job].push_front({--front, job}); }
  };

  [[nodiscard]] int gpus(int job) const { return cluster_.runs[job].gpus; }

  void demote() {
    demoted_.clear();
    for (Index q = 0; q < limits_.size(); ++q) {
      for (const int job : levels_[q].running) {
        if (cluster_.attained(job) * gpus(job) >= limits_[q]) demoted_.emplace_back(job, q);
      }
    }
    std::sort(demoted_.begin(), demoted_.end());
    for (const auto& [job, q] : demoted_) {
      std::erase(levels_[q].running, job);
      levels_[q + 1].incoming.push_back(job);
    }
  }

  /// Greedy fill of one queue, then the jobs that do not run move behind those that do.
  void fill(Level& level) {
    kept_.clear();
    out_.clear();
    for (const int job : level.running) stays(job) ? kept_.push_back(job) : out_.push_back(job);
    level.waiting.look();
    while (auto* first = level.waiting.first([](const auto& q) { return q.front().place; })) {
      const int job = first->queue.front().job;
      const int tier = fill_.place(job);
      first->passed = tier < 0;
      if (tier < 0) continue;
      first->queue.pop_front();
      kept_.push_back(job);
      changes_.started.emplace_back(job, tier);
    }
    for (const int job : level.incoming) stays(job) ? kept_.push_back(job) : level.append(job);
    level.incoming.clear();
    for (auto job = out_.rbegin(); job != out_.rend(); ++job) level.prepend(*job);
    level.running = kept_;
  }

  /// Whether a running job goes on, if need be on another tier.
  bool stays(int job) {
    if (fill_.keep(job)) return true;
    changes_.suspended.push_back(job);
    const int tier = fill_.place(job);
    if (tier >= 0) changes_.started.emplace_back(job, tier);
    return tier >= 0;
  }

  Cluster& cluster_;
  Fill fill_;
  Changes changes_;
  std::vector<Level> levels_;
  std::array<Tick, kLasLimitsGpuS.size()> limits_{};
  Tick wake_ = kNever;
  std::vector<std::pair<int, Index>> demoted_;
  std::vector<int> kept_, out_;
};

template <class Scheduler>
void run_as(Cluster& cluster) {
  Scheduler scheduler(cluster);
  run(cluster, scheduler);
}

bool knows_durations(const Cluster& cluster) {
  return cluster.options.forecast_sigma.value_or(0) == 0 && cluster.options.knows_phases;
}

bool is_patient(const Cluster& cluster) { return cluster.options.patience && cluster.restart > 0; }

/// One rank, whatever is known of durations.
template <class Rank>
void run_in_order_of(Cluster& cluster) {
  if (!plain(cluster.workload, cluster.options)) return run_as<InOrder<Rank>>(cluster);
  run_as<Preemptive<Rank>>(cluster);
}

/// A start takes time: that of a job that ran before, or of a node that sleeps.
bool delays_starts(const Cluster& cluster) {
  return cluster.restart > 0 || cluster.options.sleep.wake_s > 0;
}

/// One rank where durations are known, another where they are forecast or budgets stand for them.
template <template <bool> class Known, class Forecast>
void run_by(Cluster& cluster) {
  if (!plain(cluster.workload, cluster.options)) return run_as<InOrder<Forecast>>(cluster);
  if (!knows_durations(cluster)) return run_as<Preemptive<Forecast>>(cluster);
  if (delays_starts(cluster)) {
    run_as<Preemptive<Known<true>>>(cluster);
  } else {
    run_as<Preemptive<Known<false>>>(cluster);
  }
}

}  // namespace

void run_fifo(Cluster& cluster) { run_as<Fifo>(cluster); }
void run_first_fit(Cluster& cluster) { run_as<FirstFit>(cluster); }
void run_sjf(Cluster& cluster) { run_in_order_of<GangRank>(cluster); }
void run_srtf(Cluster& cluster) { run_by<TimeRank, ForecastRank<false>>(cluster); }
void run_srsf(Cluster& cluster) { run_by<ServiceRank, ForecastRank<true>>(cluster); }
void run_edf(Cluster& cluster) { run_in_order_of<DeadlineRank>(cluster); }
void run_las(Cluster& cluster) { run_as<Las>(cluster); }
void run_session_fifo(Cluster& cluster) { run_as<SessionFifo>(cluster); }

void run_gittins(Cluster& cluster) {
  if (!is_patient(cluster) || !plain(cluster.workload, cluster.options)) {
    return run_by<LedRank, GittinsRank>(cluster);
  }
  if (knows_durations(cluster)) {
    run_as<Patient<LedRank<true>>>(cluster);
  } else {
    run_as<Patient<GittinsRank>>(cluster);
  }
}

void run_fair_finish(Cluster& cluster) {
  if (!plain(cluster.workload, cluster.options)) return run_as<InOrder<FairRank>>(cluster);
  if (!is_patient(cluster)) return run_as<Preemptive<FairRank>>(cluster);
  run_as<Patient<FairRank>>(cluster);
}

void run_learned(Cluster& cluster) {
  if (cluster.options.forecast_sigma.value_or(0) == 0) {
    cluster.fallback.note("durations are known exactly");
    return run_gittins(cluster);
  }
  if (!is_patient(cluster)) return run_as<Preemptive<LearnedRank>>(cluster);
  run_as<Patient<LearnedRank>>(cluster);
}

}  // namespace glidepath::detail
