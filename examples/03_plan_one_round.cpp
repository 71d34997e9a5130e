// SPDX-License-Identifier: Apache-2.0
// Which jobs get which GPUs in the next round? Usage: 03_plan_one_round
#include "glidepath/glidepath.hpp"

#include <cstdint>
#include <cstdio>
#include <vector>

namespace gp = glidepath;

int main() {
  // Two tiers of 8 and 4 GPUs. Job 0 may run on 4 of either; job 1 needs 8 of tier 0; jobs 2 and 3
  // take 2 or 4. The value says what a round of it is worth.
  const std::vector<std::int64_t> job{0, 0, 1, 2, 2, 3, 3};
  const std::vector<std::int64_t> tier{0, 1, 0, 0, 1, 0, 1};
  const std::vector<std::int64_t> gpus{4, 4, 8, 2, 2, 4, 2};
  const std::vector<double> value{4.0, 7.0, 8.0, 2.5, 3.0, 4.5, 3.5};
  const std::vector<std::int64_t> capacity{8, 4};

  const gp::RoundPlan round = gp::solve_round({job, tier, gpus, value, capacity});
  for (const std::int64_t index : round.chosen) {
    const auto i = static_cast<std::size_t>(index);
    std::printf("job %lld: %lld GPUs of tier %lld\n", static_cast<long long>(job[i]),
                static_cast<long long>(gpus[i]), static_cast<long long>(tier[i]));
  }
  std::printf("value %.2f, no plan is worth more than %.2f\n", round.value, round.bound);
}
