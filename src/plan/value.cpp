// SPDX-License-Identifier: Apache-2.0
#include "plan/value.hpp"

#include <algorithm>
#include <limits>

namespace glidepath::detail {

Ends ends_of(const Job& job) {
  if (job.remaining_steps.empty()) return {};
  double reached = 0, never = 0;
  for (const double s : job.remaining_steps) {
    reached += s <= 0;
    never += s == std::numeric_limits<double>::infinity();
  }
  const auto n = static_cast<double>(job.remaining_steps.size());
  return {reached / n, never / n};
}

double index_per_step(const Job& job, double round_s) {
  double fastest = 0;
  for (const Option& option : job.options) fastest = std::max(fastest, option.steps_per_s);
  if (job.remaining_steps.empty()) return 1.0 / std::max(job.steps_done, fastest * round_s);
  // No decision is finer than a second, so no sample is shorter: keeps the index finite.
  std::vector<double> samples = job.remaining_steps;
  for (double& s : samples) s = std::max(s, fastest);
  return gittins_index(samples);
}

double value_per_second(const Job& job, const Option& option, double index, bool restarts) {
  if (index <= 0 || option.steps_per_s <= 0) return 0;
  const double seconds = 1.0 / (option.steps_per_s * index) + (restarts ? job.restart_s : 0.0);
  return job.weight / seconds;
}

}  // namespace glidepath::detail
