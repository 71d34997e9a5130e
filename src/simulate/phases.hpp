// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/simulate.hpp"

#include <algorithm>

namespace glidepath::detail {

/// The work of a job W, in seconds or steps, as what takes as long at speed 1 throughout:
///
///   E = W int_0^1 dp / f(p) = W (1 + sum_i (1 / f_i - 1 / f_(i-1)) (1 - p_i)),   f_0 = 1
///
/// with phase i from share p_i on at speed f_i. A speed is a factor of all rates of a job, so E at
/// constant rates is the job itself, to the second: everything in a simulation counts work so.
/// Without phases, or where all are 1, it is W to the last bit.
[[nodiscard]] inline double work_of(const WorkloadJob& job) {
  double stretch = 1, slowness = 1;
  for (const Phase& phase : job.phases) {
    stretch += (1 / phase.speed - slowness) * (1 - phase.from);
    slowness = 1 / phase.speed;
  }
  return (job.duration_s > 0 ? job.duration_s : job.budget_steps) * stretch;
}

/// What is still to be done of that after `done` of it, if the phase of now were the last: the work
/// of the job that is left, over its speed.
[[nodiscard]] inline double left_at_present_speed(const WorkloadJob& job, double done) {
  const double work = job.duration_s > 0 ? job.duration_s : job.budget_steps;
  double share = 0, speed = 1, spent = done / work;
  for (const Phase& phase : job.phases) {
    const double length = (phase.from - share) / speed;
    if (spent < length - 1e-12) break;  // 0.3 - 0.2 is not 0.1
    spent -= length;
    share = phase.from;
    speed = phase.speed;
  }
  return work * std::max(0.0, 1 - share - spent * speed) / speed;
}

}  // namespace glidepath::detail
