// SPDX-License-Identifier: Apache-2.0
#include "glidepath/parts.hpp"

#include "common/require.hpp"
#include "hardware/sharing.hpp"

namespace glidepath {
namespace {

constexpr std::size_t kMaxJobs = 4;

}  // namespace

std::vector<double> mix_speeds(std::span<const Profile> jobs, Sharing sharing, const Tier& tier,
                               const Pairs* pairs) {
  if (jobs.empty() || jobs.size() > kMaxJobs) {
    detail::refuse("mix_speeds: ", jobs.size(), " jobs, expected 1 to ", kMaxJobs);
  }
  if (sharing != Sharing::naive && sharing != Sharing::mps) {
    detail::refuse("mix_speeds: '", name(sharing), "', expected naive or mps");
  }
  double memory_gb = 0;
  for (const Profile& job : jobs) {
    detail::refuse_bad(job, "mix_speeds");
    memory_gb += job.memory_gb;
  }
  const bool fits = tier.memory_gb <= 0 || memory_gb <= tier.memory_gb;
  std::vector<double> speeds(jobs.size(), fits ? 1.0 : 0.0);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j != i) speeds[i] *= shared_speeds(jobs[i], jobs[j], sharing, tier, pairs).first;
    }
  }
  return speeds;
}

}  // namespace glidepath
