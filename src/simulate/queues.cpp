// SPDX-License-Identifier: Apache-2.0
// Indexed schedulers for one tier and jobs without curves, each run to the end. Per event they look
// at the heads of their queues and at the few running jobs behind them, never at all waiting jobs.
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "common/numbers.hpp"
#include "simulate/policy_table.hpp"
#include "simulate/preemptive.hpp"
#include "simulate/ranks.hpp"

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
  [[nodiscard]] Tick wake() const { return kNever; }
  void schedule() {
    while (head_ < cluster_.arrived && cluster_.runs[head_].gpus <= cluster_.free[0]) {
      cluster_.start(head_++, 0);
    }
  }

 private:
  Cluster& cluster_;
  int head_ = 0;
};

/// FIFO that skips what does not fit: backfill without reservation.
class FirstFit {
 public:
  explicit FirstFit(Cluster& cluster) : cluster_(cluster), waiting_(cluster.capacity[0]) {}
  void arrive(int job) { waiting_[cluster_.runs[job].gpus].push_back(job); }
  void leave(int) {}
  [[nodiscard]] Tick wake() const { return kNever; }
  void schedule() {
    for (;;) {
      std::deque<int>* first = nullptr;
      for (auto& of : waiting_) {
        if (of.gpus > cluster_.free[0] || of.queue.empty()) continue;
        if (first == nullptr || of.queue.front() < first->front()) first = &of.queue;
      }
      if (first == nullptr) return;
      cluster_.start(first->front(), 0);
      first->pop_front();
    }
  }

 private:
  Cluster& cluster_;
  ByGang<std::deque<int>> waiting_;
};

/// A session each, then to the tail; strict head of line. At one instant: ended sessions in order
/// of their start, arrivals, starts.
class SessionFifo {
 public:
  explicit SessionFifo(Cluster& cluster)
      : cluster_(cluster), session_(cluster.ticks(*cluster.options.session_s)) {}
  void arrive(int job) { arrivals_.push_back(job); }
  void leave(int) {}
  [[nodiscard]] Tick wake() const { return sessions_.empty() ? kNever : sessions_.top().end; }
  void schedule() {
    while (!sessions_.empty() && sessions_.top().end == cluster_.now) {
      const int job = sessions_.top().job;
      sessions_.pop();
      cluster_.suspend(job);
      queue_.push_back(job);
    }
    queue_.insert(queue_.end(), arrivals_.begin(), arrivals_.end());
    arrivals_.clear();
    while (!queue_.empty() && cluster_.runs[queue_.front()].gpus <= cluster_.free[0]) {
      const int job = queue_.front();
      queue_.pop_front();
      cluster_.start(job, 0);
      const Run& run = cluster_.runs[job];
      if (run.finishes > run.resumes + session_) {
        sessions_.push({run.resumes + session_, starts_++, job});
      }
    }
  }

 private:
  struct Session {
    Tick end;
    std::int64_t start;
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
/// 2019): demotion is looked at in events only, and the next demotion is awaited for (limit -
/// executed seconds) / gpus, which is late for gangs that were preempted.
class Las {
 public:
  explicit Las(Cluster& cluster) : cluster_(cluster) {
    for (Level& level : levels_) level.waiting = ByGang<std::deque<Waiting>>(cluster.capacity[0]);
    for (Index q = 0; q < limits_.size(); ++q) limits_[q] = cluster.ticks(kLasLimitsGpuS[q]);
  }
  void arrive(int job) { levels_[0].append(gpus(job), job); }
  void leave(int job) {
    for (Level& level : levels_) std::erase(level.running, job);
  }
  [[nodiscard]] Tick wake() const { return wake_; }

  void schedule() {
    demote();
    suspended_.clear();
    started_.clear();
    int room = cluster_.capacity[0];
    for (Level& level : levels_) fill(level, room);
    for (const int job : suspended_) cluster_.suspend(job);
    for (const int job : started_) cluster_.start(job, 0);

    wake_ = kNever;
    for (Index q = 0; q < limits_.size(); ++q) {
      for (const int job : levels_[q].running) {
        const Tick left = limits_[q] - executed(job);
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
    std::vector<int> running;   ///< in queue order, all before the waiting ones
    std::vector<int> incoming;  ///< running jobs demoted in this event, behind the waiting ones
    ByGang<std::deque<Waiting>> waiting{0};
    std::int64_t front = 0, back = 0;
    void append(int gpus, int job) { waiting[gpus].push_back({back++, job}); }
    void prepend(int gpus, int job) { waiting[gpus].push_front({--front, job}); }
  };

  [[nodiscard]] int gpus(int job) const { return cluster_.runs[job].gpus; }
  [[nodiscard]] Tick executed(int job) const { return static_cast<Tick>(cluster_.done(job)); }

  void demote() {
    demoted_.clear();
    for (Index q = 0; q < limits_.size(); ++q) {
      for (const int job : levels_[q].running) {
        if (executed(job) * gpus(job) >= limits_[q]) demoted_.emplace_back(job, q);
      }
    }
    std::sort(demoted_.begin(), demoted_.end());
    for (const auto& [job, q] : demoted_) {
      std::erase(levels_[q].running, job);
      levels_[q + 1].incoming.push_back(job);
    }
  }

  /// Greedy fill of one queue, then the jobs that do not run move behind those that do.
  void fill(Level& level, int& room) {
    kept_.clear();
    out_.clear();
    for (const int job : level.running) {
      if (gpus(job) <= room) {
        room -= gpus(job);
        kept_.push_back(job);
      } else {
        out_.push_back(job);
      }
    }
    for (;;) {
      std::deque<Waiting>* first = nullptr;
      for (auto& of : level.waiting) {
        if (of.gpus > room || of.queue.empty()) continue;
        if (first == nullptr || of.queue.front().place < first->front().place) first = &of.queue;
      }
      if (first == nullptr) break;
      const int job = first->front().job;
      first->pop_front();
      room -= gpus(job);
      kept_.push_back(job);
      started_.push_back(job);
    }
    for (const int job : level.incoming) {
      if (gpus(job) <= room) {
        room -= gpus(job);
        kept_.push_back(job);
      } else {
        level.append(gpus(job), job);
        suspended_.push_back(job);
      }
    }
    level.incoming.clear();
    for (auto job = out_.rbegin(); job != out_.rend(); ++job) {
      level.prepend(gpus(*job), *job);
      suspended_.push_back(*job);
    }
    level.running = kept_;
  }

  Cluster& cluster_;
  std::array<Level, kLasLimitsGpuS.size() + 1> levels_;
  std::array<Tick, kLasLimitsGpuS.size()> limits_{};
  Tick wake_ = kNever;
  std::vector<std::pair<int, Index>> demoted_;
  std::vector<int> kept_, out_, suspended_, started_;
};

template <class Scheduler>
void run_as(Cluster& cluster) {
  Scheduler scheduler(cluster);
  run(cluster, scheduler);
}

bool knows_durations(const Cluster& cluster) {
  return cluster.options.forecast_sigma.value_or(0) == 0;
}

/// One rank where durations are known, another where they are forecast.
template <class Known, class Forecast>
void run_by(Cluster& cluster) {
  if (knows_durations(cluster)) {
    run_as<Preemptive<Known>>(cluster);
  } else {
    run_as<Preemptive<Forecast>>(cluster);
  }
}

}  // namespace

void run_fifo(Cluster& cluster) { run_as<Fifo>(cluster); }
void run_first_fit(Cluster& cluster) { run_as<FirstFit>(cluster); }
void run_sjf(Cluster& cluster) { run_as<Preemptive<GangRank>>(cluster); }
void run_srtf(Cluster& cluster) { run_by<TimeRank, ForecastRank<false>>(cluster); }
void run_srsf(Cluster& cluster) { run_by<ServiceRank, ForecastRank<true>>(cluster); }
void run_las(Cluster& cluster) { run_as<Las>(cluster); }
void run_session_fifo(Cluster& cluster) { run_as<SessionFifo>(cluster); }

void run_gittins(Cluster& cluster) {
  if (cluster.restart == 0) return run_by<LedRank, GittinsRank>(cluster);
  if (knows_durations(cluster)) {
    run_as<Patient<ServiceRank>>(cluster);
  } else {
    run_as<Patient<GittinsRank>>(cluster);
  }
}

}  // namespace glidepath::detail
