// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "common/interrupt.hpp"
#include "common/numbers.hpp"
#include "simulate/phases.hpp"

namespace glidepath {

namespace {

using detail::kInfinity;

// The linear program over (job j, tier t, interval i) of Hall, Schulz, Shmoys and Wein (1997):
//   M_j = sum_i f_ji max(tau_i, r_j),   sum_i f_ji = 1,   f_ji <= L_i / p_j,
//   sum_j k_j w_jt f_jti <= C_t L_i,    C_j >= M_j + p_j / 2   (Goemans 1997)
// f: share of a job's work in an interval, r: submission, p: its time on the fastest tier, w_jt:
// its time on tier t, k: gang, L: length of an interval, C_t: GPUs; work after the last interval
// waits for nothing. Prices on the capacities decouple the jobs, and every price gives a bound; a
// subgradient with a target step (Polyak 1969) makes it large.
constexpr int kIntervals = 96;
constexpr int kSteps = 150;
constexpr double kMaxJobs = 5000;  // above, this bound is left out: it would take seconds

struct Task {
  double submit, fastest;
  std::vector<double> gpu_s;  // least k w of each tier, infinite where it cannot run
};

template <class Look>
void for_each_gang(const WorkloadJob& job, Look&& look) {
  look(job.gpus, job.steps_per_s);
  for (const Gang& gang : job.gangs) look(gang.gpus, gang.steps_per_s);
}

Task task_of(const WorkloadJob& job, const std::vector<Tier>& tiers) {
  Task task{job.submit_s, kInfinity, std::vector<double>(tiers.size(), kInfinity)};
  const double work = detail::work_of(job);
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    if (tiers[t].memory_gb > 0 && job.memory_gb > tiers[t].memory_gb) continue;
    for_each_gang(job, [&](int gpus, const std::vector<double>& rates) {
      const double rate = rates.empty() ? 1 : rates[t];
      if (rate <= 0 || gpus > tiers[t].gpus()) return;
      task.fastest = std::min(task.fastest, work / rate);
      task.gpu_s[t] = std::min(task.gpu_s[t], gpus * work / rate);
    });
  }
  return task;
}

/// The program over (job, tier, interval), and prices of the room of each (tier, interval).
class Intervals {
 public:
  explicit Intervals(const Workload& workload) : tiers_(workload.tiers) {
    double last = 0, gpu_s = 0, gpus = 0;
    for (const Tier& tier : tiers_) gpus += tier.gpus();
    for (const WorkloadJob& job : workload.jobs) {
      const Task& task = tasks_.emplace_back(task_of(job, tiers_));
      first_ = std::min(first_, job.submit_s);
      last = std::max(last, job.submit_s + task.fastest);
      gpu_s += *std::max_element(task.gpu_s.begin(), task.gpu_s.end(), [](double a, double b) {
        return (a < kInfinity ? a : 0) < (b < kInfinity ? b : 0);
      });
    }
    length_ = std::max(1.0, (std::max(last, first_ + gpu_s / gpus) - first_) / kIntervals);
    price_.assign(tiers_.size() * kIntervals, 0.0);
    used_ = price_;
  }

  /// The best bound on the sum of completion times that the steps find.
  double ascend() {
    double best = 0;
    double target = 0;
    int stalled = 0;
    for (int step = 0; step < kSteps; ++step) {
      detail::check_interrupt();
      std::fill(used_.begin(), used_.end(), 0.0);
      double bound = 0;
      for (const Task& task : tasks_) cheapest(task, bound);
      const double norm = subgradient(bound);
      if (step == 0) target = 0.5 * std::abs(bound);
      if (bound > best) {
        best = bound;
        stalled = 0;
      } else if (++stalled >= 6) {
        target /= 2;
        stalled = 0;
      }
      if (norm <= 0) break;
      const double size = (best + target - bound) / norm;
      for (std::size_t k = 0; k < price_.size(); ++k)
        price_[k] = std::max(0.0, price_[k] + size * used_[k]);
    }
    return best;
  }

 private:
  struct Slot {
    double cost;
    int interval;
    std::size_t tier;
  };

  [[nodiscard]] static std::size_t at(std::size_t tier, int interval) {
    return tier * kIntervals + static_cast<std::size_t>(interval);
  }

  /// Puts a job where it costs least: adds its cost to the bound and its room to `used_`.
  void cheapest(const Task& task, double& bound) {
    slots_.clear();
    for (int i = 0; i < kIntervals; ++i) {
      const double start = first_ + i * length_;
      if (start + length_ <= task.submit) continue;
      Slot slot{kInfinity, i, 0};
      for (std::size_t t = 0; t < tiers_.size(); ++t) {
        if (task.gpu_s[t] == kInfinity) continue;
        const double cost = price_[at(t, i)] * task.gpu_s[t];
        if (cost < slot.cost) slot = {cost, i, t};
      }
      slot.cost += std::max(start, task.submit);
      slots_.push_back(slot);
    }
    std::sort(slots_.begin(), slots_.end(),
              [](const Slot& a, const Slot& b) { return a.cost < b.cost; });
    double left = 1;
    const double after = first_ + kIntervals * length_;
    for (const Slot& slot : slots_) {
      if (left <= 0 || slot.cost >= after) break;
      const double share = std::min(left, length_ / task.fastest);
      left -= share;
      bound += share * slot.cost;
      used_[at(slot.tier, slot.interval)] += share * task.gpu_s[slot.tier];
    }
    bound += left * after + task.fastest / 2 - task.submit;
  }

  /// Takes the price of all room off the bound and the room off `used_`, which becomes the
  /// subgradient. Returns its squared norm.
  double subgradient(double& bound) {
    double norm = 0;
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      const double room = tiers_[t].gpus() * length_;
      for (int i = 0; i < kIntervals; ++i) {
        double& used = used_[at(t, i)];
        bound -= price_[at(t, i)] * room;
        used -= room;
        if (used > 0 || price_[at(t, i)] > 0) norm += used * used;
      }
    }
    return norm;
  }

  const std::vector<Tier>& tiers_;
  std::vector<Task> tasks_;
  double first_ = kInfinity, length_ = 1;
  std::vector<double> price_, used_;
  std::vector<Slot> slots_;
};

double by_intervals(const Workload& workload) {
  const auto n = static_cast<double>(workload.jobs.size());
  return n > kMaxJobs ? 0 : Intervals(workload).ascend() / n;
}

}  // namespace

double lower_bound_jct_s(const Workload& workload) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double speed = 0;  // GPUs of the pool
  for (const Tier& tier : workload.tiers) speed += tier.gpus();
  if (speed <= 0 || workload.jobs.empty()) return nan;
  validate(workload);
  bool by_tier = false;
  for (const WorkloadJob& job : workload.jobs) {
    if (job.truth >= 0) return nan;
    for_each_gang(job, [&](int, const std::vector<double>& rates) {
      by_tier |=
          std::adjacent_find(rates.begin(), rates.end(), std::not_equal_to<>()) != rates.end();
    });
  }

  struct Item {
    double submit, size;
  };
  std::vector<Item> items;
  double mean_alone = 0;
  for (const WorkloadJob& job : workload.jobs) {
    // Where a job needs the fewest GPU-seconds, for every GPU of the pool: nothing real is better.
    double alone = kInfinity, gpu_s = kInfinity;
    const double work = detail::work_of(job);
    for_each_gang(job, [&](int gpus, const std::vector<double>& rates) {
      const double rate = rates.empty() ? 1.0 : *std::max_element(rates.begin(), rates.end());
      alone = std::min(alone, work / rate);
      gpu_s = std::min(gpu_s, work / rate * gpus);
    });
    items.push_back({job.submit_s, gpu_s / speed});
    mean_alone += alone;
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.submit < b.submit; });
  const auto n = static_cast<double>(items.size());
  // SRPT: a heap of remaining sizes, the smallest is served.
  std::vector<double> heap;
  const auto larger = std::greater<>();
  double now = 0;
  double ends = 0;
  double submits = 0;
  std::size_t next = 0;
  while (next < items.size() || !heap.empty()) {
    if (heap.empty()) now = std::max(now, items[next].submit);
    while (next < items.size() && items[next].submit <= now) {
      heap.push_back(items[next].size);
      std::push_heap(heap.begin(), heap.end(), larger);
      submits += items[next++].submit;
    }
    std::pop_heap(heap.begin(), heap.end(), larger);
    const double left = heap.back();
    heap.pop_back();
    const double until = next < items.size() ? items[next].submit : kInfinity;
    if (now + left <= until) {
      now += left;
      ends += now;
    } else {
      heap.push_back(left - (until - now));
      std::push_heap(heap.begin(), heap.end(), larger);
      now = until;
    }
  }
  const double pooled = std::max((ends - submits) / n, mean_alone / n);
  return by_tier ? std::max(pooled, by_intervals(workload)) : pooled;
}

}  // namespace glidepath
