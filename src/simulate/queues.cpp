// SPDX-License-Identifier: Apache-2.0
#include "simulate/queues.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <queue>
#include <vector>

#include "simulate/forecasts.hpp"

namespace glidepath::detail {

namespace {

using Index = std::size_t;
Index at(int i) { return static_cast<Index>(i); }

// ---- no preemption

/// Strict head of line: the first that does not fit blocks the others.
class Fifo {
 public:
  explicit Fifo(Engine& engine) : engine_(engine) {}
  void arrive(int) {}
  void leave(int) {}
  [[nodiscard]] Tick wake() const { return kNever; }
  void schedule() {
    while (head_ < engine_.arrived && engine_.runs[at(head_)].gpus <= engine_.free[0]) {
      engine_.start(head_++, 0);
    }
  }

 private:
  Engine& engine_;
  int head_ = 0;
};

/// Waiting jobs by size of gang. Room only shrinks along a greedy fill, so that of the jobs of one
/// size only the first can be next: a fill looks at one head for each size.
template <class Queue>
class ByGang {
 public:
  explicit ByGang(int capacity) : of_gang_(at(capacity) + 1, -1) {}
  Queue& operator[](int gpus) {
    int& place = of_gang_[at(gpus)];
    if (place < 0) {
      place = static_cast<int>(queues_.size());
      queues_.push_back({gpus, {}});
    }
    return queues_[at(place)].queue;
  }
  struct Of {
    int gpus;
    Queue queue;
  };
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }

 private:
  std::vector<Of> queues_;
  std::vector<int> of_gang_;
};

/// FIFO that skips what does not fit: backfill without reservation.
class FirstFit {
 public:
  explicit FirstFit(Engine& engine) : engine_(engine), waiting_(engine.capacity[0]) {}
  void arrive(int job) { waiting_[engine_.runs[at(job)].gpus].push_back(job); }
  void leave(int) {}
  [[nodiscard]] Tick wake() const { return kNever; }
  void schedule() {
    for (;;) {
      std::deque<int>* first = nullptr;
      for (auto& of : waiting_) {
        if (of.gpus > engine_.free[0] || of.queue.empty()) continue;
        if (first == nullptr || of.queue.front() < first->front()) first = &of.queue;
      }
      if (first == nullptr) return;
      engine_.start(first->front(), 0);
      first->pop_front();
    }
  }

 private:
  Engine& engine_;
  ByGang<std::deque<int>> waiting_;
};

/// A session each, then to the tail; strict head of line. At one instant: ended sessions in order
/// of their start, arrivals, starts.
class SessionFifo {
 public:
  explicit SessionFifo(Engine& engine)
      : engine_(engine), session_(engine.ticks(engine.options.session_s.value_or(3600))) {}
  void arrive(int job) { arrivals_.push_back(job); }
  void leave(int) {}
  [[nodiscard]] Tick wake() const { return sessions_.empty() ? kNever : sessions_.top().end; }
  void schedule() {
    while (!sessions_.empty() && sessions_.top().end == engine_.now) {
      const int job = sessions_.top().job;
      sessions_.pop();
      engine_.suspend(job);
      queue_.push_back(job);
    }
    queue_.insert(queue_.end(), arrivals_.begin(), arrivals_.end());
    arrivals_.clear();
    while (!queue_.empty() && engine_.runs[at(queue_.front())].gpus <= engine_.free[0]) {
      const int job = queue_.front();
      queue_.pop_front();
      engine_.start(job, 0);
      const Run& run = engine_.runs[at(job)];
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
  Engine& engine_;
  Tick session_;
  std::deque<int> queue_, arrivals_;
  std::priority_queue<Session, std::vector<Session>, std::greater<>> sessions_;
  std::int64_t starts_ = 0;
};

// ---- preemptive: a greedy fill in the order of a key

/// Place of a job in a total order: smaller runs first.
struct Place {
  double key;
  int job;
  friend bool operator<(const Place& a, const Place& b) {
    return a.key != b.key ? a.key < b.key : a.job < b.job;
  }
  friend bool operator>(const Place& a, const Place& b) { return b < a; }
};

/// At each event the live jobs are taken in the order of their key, each that still fits runs, the
/// others wait. `Rank` gives the key of a job; it must not grow while the job runs, nor change
/// while it waits. Then nothing can change but by an arrival or an end, and only from the first
/// waiting job that fits onward: the event costs what lies behind that job.
template <class Rank>
class Preemptive {
 public:
  explicit Preemptive(Engine& engine)
      : engine_(engine), rank_(engine), waiting_(engine.capacity[0]) {}
  void arrive(int job) {
    wait(job);
    arrivals_.push_back(job);
  }
  void leave(int) { left_ = true; }
  [[nodiscard]] Tick wake() const { return kNever; }

  void schedule() {
    const bool nothing_new = Rank::kMonotone && !left_ && !an_arrival_is_a_head();
    arrivals_.clear();
    left_ = false;
    if (nothing_new) return;
    if constexpr (requires { rank_.refresh(); }) {
      if (rank_.refresh()) rebuild();  // what is known of durations changed, and so did all keys
    }
    heads_.clear();
    for (auto& of : waiting_) {
      if (!of.queue.empty()) heads_.push_back({of.queue.top(), of.gpus, &of.queue});
    }
    if (heads_.empty()) return;
    const Place first =
        std::min_element(heads_.begin(), heads_.end(), [](const Head& a, const Head& b) {
          return a.place < b.place;
        })->place;
    collect_behind(first);
    // The first head that has room where it stands: nothing changes before it. Mostly there is
    // none, or free GPUs are enough for it, and nothing has to be sorted.
    Head* start = first_with_room(engine_.free[0]);
    while (start != nullptr && start->gpus <= engine_.free[0]) {
      engine_.start(start->place.job, 0);
      advance(*start);
      start = first_with_room(engine_.free[0]);
    }
    if (start == nullptr) return;

    // It takes GPUs of those behind it. Wherever the room is still that of the largest of them,
    // nobody before that place is touched: the last ones are enough, up to the next such head.
    int room = engine_.free[0] - start->gpus;
    std::erase_if(behind_, [&](const Behind& behind) { return behind.place < start->place; });
    suspended_.clear();
    started_.assign(1, start->place.job);
    advance(*start);
    const Head* next = first_with_room(room);
    take_last(room, next);

    Head* head = first_fitting(room);
    for (auto running = last_.rbegin(); running != last_.rend() || head != nullptr;) {
      if (running != last_.rend() && (head == nullptr || running->place < head->place)) {
        if (running->gpus <= room) {
          room -= running->gpus;
          if (head != nullptr && head->gpus > room) head = first_fitting(room);
        } else {
          suspended_.push_back(running->place.job);
        }
        ++running;
      } else {
        room -= head->gpus;
        started_.push_back(head->place.job);
        advance(*head);
        head = first_fitting(room);
      }
    }
    for (const int job : suspended_) {
      engine_.suspend(job);
      wait(job);
    }
    for (const int job : started_) engine_.start(job, 0);
  }

 private:
  using Heap = std::priority_queue<Place, std::vector<Place>, std::greater<>>;
  struct Head {
    Place place;
    int gpus;
    Heap* queue;
  };

  /// Without an end the room of waiting jobs does not grow: only a new head can change anything.
  [[nodiscard]] bool an_arrival_is_a_head() {
    return std::any_of(arrivals_.begin(), arrivals_.end(), [&](int job) {
      return waiting_[engine_.runs[at(job)].gpus].top().job == job;
    });
  }

  struct Behind {
    Place place;
    int gpus;
  };

  void rebuild() {
    std::vector<int> all;
    for (auto& of : waiting_) {
      for (; !of.queue.empty(); of.queue.pop()) all.push_back(of.queue.top().job);
    }
    for (const int job : all) wait(job);
  }

  void wait(int job) { waiting_[engine_.runs[at(job)].gpus].push({rank_.waiting(job), job}); }

  /// The first waiting job that fits into the room.
  [[nodiscard]] Head* first_fitting(int room) {
    Head* first = nullptr;
    for (Head& head : heads_) {
      if (head.gpus > room || head.queue->empty()) continue;
      if (first == nullptr || head.place < first->place) first = &head;
    }
    return first;
  }

  /// Running jobs after `first`; in order where that is the order of ends.
  void collect_behind(const Place& first) {
    behind_.clear();
    if constexpr (Rank::kByEnd) {  // the order of ends is the order of keys
      for (auto it = engine_.ends.rbegin(); it != engine_.ends.rend(); ++it) {
        const Place place{static_cast<double>(it->first - engine_.now), it->second};
        if (place < first) break;
        behind_.push_back({place, engine_.runs[at(place.job)].gpus});
      }
      std::reverse(behind_.begin(), behind_.end());
      return;
    }
    for (const Running& running : engine_.running) {
      const Place place{rank_.running(running), running.job};
      if (!(place < first)) behind_.push_back({place, running.gpus});
    }
  }

  static void advance(Head& head) {
    head.queue->pop();
    if (!head.queue->empty()) head.place = head.queue->top();
  }

  /// The first head with enough GPUs among the free ones and those behind it.
  [[nodiscard]] Head* first_with_room(int free) {
    Head* first = nullptr;
    for (Head& head : heads_) {
      if (head.queue->empty() || (first != nullptr && first->place < head.place)) continue;
      int room = free;
      for (const Behind& behind : behind_) room += head.place < behind.place ? behind.gpus : 0;
      if (room >= head.gpus) first = &head;
    }
    return first;
  }

  /// Moves jobs from the end of `behind_` to `last_`, the last first, until their GPUs make `room`
  /// as large as the largest gang, and `next` is reached.
  void take_last(int& room, const Head* next) {
    const auto before = [](const Behind& a, const Behind& b) { return a.place < b.place; };
    int largest = 0;
    for (const Behind& behind : behind_) largest = std::max(largest, behind.gpus);
    if constexpr (!Rank::kByEnd) std::make_heap(behind_.begin(), behind_.end(), before);
    last_.clear();
    while (!behind_.empty()) {
      const Behind& latest = Rank::kByEnd ? behind_.back() : behind_.front();
      if (room >= largest && (next == nullptr || latest.place < next->place)) break;
      if constexpr (!Rank::kByEnd) std::pop_heap(behind_.begin(), behind_.end(), before);
      room += behind_.back().gpus;
      last_.push_back(behind_.back());
      behind_.pop_back();
    }
  }

  Engine& engine_;
  Rank rank_;
  ByGang<Heap> waiting_;
  std::vector<Head> heads_;
  std::vector<Behind> behind_, last_;
  std::vector<int> suspended_, started_, arrivals_;
  bool left_ = false;
};

/// Smallest gang first.
struct GangRank {
  static constexpr bool kByEnd = false, kMonotone = true;
  explicit GangRank(Engine& e) : engine(e) {}
  [[nodiscard]] double waiting(int job) const { return engine.runs[at(job)].gpus; }
  [[nodiscard]] double running(const Running& job) const { return job.gpus; }
  Engine& engine;
};

/// Shortest remaining time by forecast: what is left of it, and once it is passed as long again.
struct ForecastRank {
  static constexpr bool kByEnd = false, kMonotone = false;
  ForecastRank(Engine& e, bool times_gpus) : engine(e), predict(e), by_gpu(times_gpus) {}
  [[nodiscard]] double waiting(int job) const {
    const double done = engine.done(job);
    const double total = predict.total(job);
    return (done < total ? total - done : done) * (by_gpu ? engine.runs[at(job)].gpus : 1);
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  Engine& engine;
  Predictor predict;
  bool by_gpu;
};
struct ForecastTimeRank : ForecastRank {
  explicit ForecastTimeRank(Engine& e) : ForecastRank(e, false) {}
};
struct ForecastServiceRank : ForecastRank {
  explicit ForecastServiceRank(Engine& e) : ForecastRank(e, true) {}
};

/// Shortest remaining time, exactly known.
struct TimeRank {
  static constexpr bool kByEnd = true, kMonotone = true;
  explicit TimeRank(Engine& e) : engine(e) {}
  [[nodiscard]] double waiting(int job) const {
    const Run& run = engine.runs[at(job)];
    return run.work - run.done;
  }
  [[nodiscard]] double running(const Running& running) const {
    return static_cast<double>(running.finishes - engine.now);
  }
  Engine& engine;
};

/// Smallest remaining time x GPUs, exactly known.
struct ServiceRank {
  static constexpr bool kByEnd = false, kMonotone = true;
  explicit ServiceRank(Engine& e) : time(e) {}
  [[nodiscard]] double waiting(int job) const { return time.waiting(job) * gpus(job); }
  [[nodiscard]] double running(const Running& running) const {
    return time.running(running) * running.gpus;
  }
  [[nodiscard]] double gpus(int job) const { return time.engine.runs[at(job)].gpus; }
  TimeRank time;
};

/// The same where a start costs something: a running job is preempted only for one that is half as
/// long, which saves a third of the preemptions for less than 2 % of mean JCT on Philly.
struct StickyServiceRank {
  static constexpr bool kByEnd = false, kMonotone = true;
  explicit StickyServiceRank(Engine& e) : service(e), stays(e.restart > 0 ? 0.5 : 1.0) {}
  [[nodiscard]] double waiting(int job) const { return service.waiting(job); }
  [[nodiscard]] double running(const Running& running) const {
    return stays * service.running(running);
  }
  ServiceRank service;
  double stays;
};

/// Smallest E[min(S, d)] / P(S <= d) x GPUs first, the inverse of the Gittins index of the GPU-time
/// that is still needed (Gittins 1989; for gangs as in Tiresias). Known sizes: SRSF.
struct GittinsRank {
  static constexpr bool kByEnd = false, kMonotone = false;
  explicit GittinsRank(Engine& e) : engine(e), predict(e) {}
  bool refresh() { return predict.refresh(); }
  [[nodiscard]] double waiting(int job) const {
    return predict.gittins_rank(job) * engine.runs[at(job)].gpus;
  }
  [[nodiscard]] double running(const Running& running) const { return waiting(running.job); }
  Engine& engine;
  Predictor predict;
};

// ---- discretised 2D-LAS

/// Three queues on attained GPU-seconds, as the Tiresias simulator runs them (Gu et al., NSDI
/// 2019): demotion is looked at in events only, and the next demotion is awaited for (limit -
/// executed seconds) / gpus, which is late for gangs that were preempted.
class Las {
 public:
  explicit Las(Engine& engine) : engine_(engine) {
    for (Level& level : levels_) level.waiting = ByGang<std::deque<Waiting>>(engine.capacity[0]);
    limits_ = {engine.ticks(3250), engine.ticks(7200)};
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
    int room = engine_.capacity[0];
    for (Level& level : levels_) fill(level, room);
    for (const int job : suspended_) engine_.suspend(job);
    for (const int job : started_) engine_.start(job, 0);

    wake_ = kNever;
    for (Index q = 0; q < limits_.size(); ++q) {
      for (const int job : levels_[q].running) {
        const Tick left = limits_[q] - executed(job);
        const Tick wait = (left + gpus(job) - 1) / gpus(job);
        wake_ = std::min(wake_, engine_.now + std::max<Tick>(1, wait));
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

  [[nodiscard]] int gpus(int job) const { return engine_.runs[at(job)].gpus; }
  [[nodiscard]] Tick executed(int job) const { return static_cast<Tick>(engine_.done(job)); }

  void demote() {
    demoted_.clear();
    for (Index q = 0; q < limits_.size(); ++q) {
      for (const int job : levels_[q].running) {
        if (executed(job) * gpus(job) >= limits_[q]) demoted_.push_back({job, q});
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

  Engine& engine_;
  std::array<Level, 3> levels_;
  std::array<Tick, 2> limits_{};
  Tick wake_ = kNever;
  std::vector<std::pair<int, Index>> demoted_;
  std::vector<int> kept_, out_, suspended_, started_;
};

template <class Scheduler>
void run_as(Engine& engine) {
  Scheduler scheduler(engine);
  run(engine, scheduler);
}

/// One rank where durations are known, another where they are forecast.
template <class Known, class Forecast>
void run_by(Engine& engine) {
  if (engine.options.forecast_sigma.value_or(0) == 0) {
    run_as<Preemptive<Known>>(engine);
  } else {
    run_as<Preemptive<Forecast>>(engine);
  }
}

struct Named {
  std::string_view name;
  void (*run)(Engine&);
};
constexpr std::array kQueues{
    Named{"fifo", &run_as<Fifo>},
    Named{"first_fit", &run_as<FirstFit>},
    Named{"sjf", &run_as<Preemptive<GangRank>>},
    Named{"srtf", &run_by<TimeRank, ForecastTimeRank>},
    Named{"srsf", &run_by<ServiceRank, ForecastServiceRank>},
    Named{"gittins", &run_by<StickyServiceRank, GittinsRank>},
    Named{"las", &run_as<Las>},
    Named{"session_fifo", &run_as<SessionFifo>},
};

}  // namespace

bool has_queue(std::string_view policy) {
  return std::any_of(kQueues.begin(), kQueues.end(),
                     [&](const Named& named) { return named.name == policy; });
}

void run_queue(Engine& engine, std::string_view policy) {
  for (const Named& named : kQueues) {
    if (named.name == policy) named.run(engine);
  }
}

}  // namespace glidepath::detail
