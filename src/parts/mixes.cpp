// SPDX-License-Identifier: Apache-2.0
#include "glidepath/parts.hpp"

#include "common/require.hpp"
#include "hardware/sharing.hpp"

namespace glidepath {
namespace {

constexpr std::size_t kMaxJobs = 4;

/// Speed of a job among others, from its speeds beside each of them alone.
double among(std::span<const double> beside, Sharing sharing) {
  double speed = 1, waiting = 0;
  for (const double pair : beside) {
    if (pair <= 0) return 0;
    // Time slices take turns: what each of the others takes adds up.
    if (sharing == Sharing::naive && pair < 1) {
      waiting += 1 / pair - 1;
    } else {
      speed *= pair;
    }
  }
  return speed / (1 + waiting);
}

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
  std::vector<double> speeds;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<double> beside{fits ? 1.0 : 0.0};
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j != i) beside.push_back(shared_speeds(jobs[i], jobs[j], sharing, tier, pairs).first);
    }
    speeds.push_back(among(beside, sharing));
  }
  return speeds;
}

}  // namespace glidepath
