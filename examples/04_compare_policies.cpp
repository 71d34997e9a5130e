// SPDX-License-Identifier: Apache-2.0
// What would each policy have made of the same workload? Usage: 04_compare_policies [FOLDER]
#include "glidepath/glidepath.hpp"

#include <cstdio>

namespace gp = glidepath;

int main(int argc, char** argv) {
  const gp::Workload workload = gp::read_workload(argc > 1 ? argv[1] : "data/workloads/supercom");

  std::printf("%-14s %12s %12s %10s %12s\n", "policy", "mean wait h", "mean JCT h", "kWh",
              "preemptions");
  for (const char* policy : {"fifo", "session_fifo", "srtf", "dare", "best_value"}) {
    const gp::Simulation run = gp::simulate(workload, policy);
    std::printf("%-14s %12.2f %12.2f %10.1f %12lld\n", policy, run.mean_wait_s / 3600,
                run.mean_jct_s / 3600, run.energy_kwh, static_cast<long long>(run.preemptions));
  }
}
