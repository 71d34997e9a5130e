// SPDX-License-Identifier: Apache-2.0
// What `fair_finish` knows of fair shares, for its queues and for its plans from Snapshots.
#pragma once

#include "glidepath/simulate.hpp"

#include <algorithm>
#include <vector>

namespace glidepath::detail {

/// How `fair_finish` decides. A job that heads for `max_ftf` goes before all others, the earliest
/// deadline first: submission + worst x its time with a fair share, `worst` the largest of max_ftf
/// and what such jobs head for. If the multiple cannot be kept, so is the least that can be
/// (Bender, Chakrabarti, Muthukrishnan, SODA 1998). Once it goes first a job does so until it ends.
struct FairFinish {
  static constexpr double kMaxFtf = 2;
  /// Quantile of the forecast by which a job's fair share is judged: the shorter a job, the less
  /// it may wait.
  static constexpr double kQuantile = 0.25;
  static constexpr double kMedian = 0.5;
  /// By which `worst` changes before jobs are sorted anew.
  static constexpr double kResortFactor = 1.02;
  double max_ftf = kMaxFtf;
  double long_share = 0;

  explicit FairFinish(const SimulationOptions& options)
      : max_ftf(options.max_ftf.value_or(kMaxFtf)), long_share(options.long_share.value_or(0)) {}
};

/// What a job heads for if it runs from now on, as Simulation::worst_ftf counts.
struct Heading {
  double total = 0;        ///< time from submission to its end
  double alone = 0;        ///< that it takes alone with the same share of each tier
  double live_before = 0;  ///< sum over time of the number of live jobs, since its submission
  double live = 0;         ///< jobs from now on
  double left = 0;         ///< of `total`, from now on
  double share = 1;        ///< its gang over all GPUs

  /// Time with a fair share of the GPUs.
  [[nodiscard]] double fair() const {
    return alone * std::max(1.0, (live_before + live * left) / total * share);
  }
  [[nodiscard]] double ftf() const { return total / fair(); }
};

/// What a job heads for by a quantile of its forecast, as if there had always been so many jobs.
[[nodiscard]] Heading heading_of(const Snapshot& snapshot, const Job& job, double quantile,
                                 double gpus);

/// A live job as the end of all work sees it.
struct Length {
  double left = 0;  ///< time still needed
  int gpus = 1;
  int job = 0;  ///< the earlier ones first among equals
};

/// The jobs that take longer than all of this work would take on all GPUs: they make the end of it
/// late unless they run from now on. The longest first, on at most a share of the GPUs; as
/// increasing numbers of jobs.
[[nodiscard]] inline std::vector<int> long_jobs(std::vector<Length> jobs, double gpus,
                                                double share) {
  double work = 0;
  for (const Length& each : jobs) work += each.left * each.gpus;
  std::erase_if(jobs, [&](const Length& each) { return each.left * gpus < work; });
  std::sort(jobs.begin(), jobs.end(), [](const Length& a, const Length& b) {
    return a.left != b.left ? a.left > b.left : a.job < b.job;
  });
  double room = share * gpus;
  std::vector<int> out;
  for (const Length& each : jobs) {
    if (each.gpus > room) continue;
    room -= each.gpus;
    out.push_back(each.job);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace glidepath::detail
