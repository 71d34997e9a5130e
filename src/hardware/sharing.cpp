// SPDX-License-Identifier: Apache-2.0
// Speeds of two jobs on one GPU from what each does alone: u = activity of the multiprocessors,
// m = activity of the memory, h = u + m how much of the card a kernel fills.
//
//   time slices, MPS:  slowdown_1 = 1 + u_1 u_2^2 sqrt(h_2 / h_1)
//   MIG halves:        slowdown_1 = 1 + sqrt(u_1 m_1)
//
// The first has the form of a queue of two customers that takes kernels in order: job 1 is at the
// GPU for u_1 of its time, finds job 2 there with a chance that grows with u_2, and waits the
// longer, the larger the other's kernels are beside its own. Two jobs that fill the card halve. The
// second is Amdahl's law: sqrt(u m) of the step needs the whole card. No constant was fitted but
// kMemoryPerSm; the exponents are round ones among the best for the pairs and slices that MISO
// measured on an A100 (Li, Patel, Samsi, Gadepalli, Tiwari, SoCC 2022), where the errors are
// printed by bench/accuracy/unseen_pairs.py.
#include "hardware/sharing.hpp"

#include "glidepath/hardware.hpp"

#include <algorithm>
#include <cmath>

#include "common/names.hpp"
#include "common/require.hpp"

namespace glidepath {
namespace {

constexpr detail::Names<4> kModes{"exclusive", "naive", "mps", "mig"};

constexpr double kMemoryPerSm = 0.4;  // mean m / u of the jobs of that table

double memory_activity(const Profile& alone) {
  return alone.memory_activity < 0 ? kMemoryPerSm * alone.sm_activity : alone.memory_activity;
}

double slowdown(const Profile& own, const Profile& other, Sharing sharing) {
  if (sharing == Sharing::mig) return 1 + detail::whole_card_share(own);
  const double u = own.sm_activity, m = memory_activity(own);
  if (sharing == Sharing::exclusive || u <= 0) return 1;
  const double u2 = other.sm_activity, m2 = memory_activity(other);
  return 1 + u * u2 * u2 * std::sqrt((u2 + m2) / (u + m));
}

}  // namespace

void detail::refuse_bad(const Profile& alone, std::string_view verb) {
  if (!(alone.sm_activity >= 0 && alone.sm_activity <= 1)) {
    refuse(verb, ": activity is ", alone.sm_activity, ", expected 0 to 1");
  }
  if (!(alone.memory_activity <= 1)) {
    refuse(verb, ": activity of the memory is ", alone.memory_activity, ", expected 1 at most");
  }
  if (!(alone.memory_gb >= 0)) {
    refuse(verb, ": memory is ", alone.memory_gb, " GB, expected 0 or more");
  }
}

double detail::whole_card_share(const Profile& alone) {
  refuse_bad(alone, "shared_speeds");
  return std::sqrt(alone.sm_activity * memory_activity(alone));
}

void detail::refuse_unknown(Sharing sharing, std::string_view what) {
  refuse_unnamed(kModes, sharing, what);
}

std::string_view name(Sharing sharing) noexcept { return detail::name_in(kModes, sharing); }

Sharing sharing_named(std::string_view text) {
  return detail::value_named<Sharing>(kModes, text, "sharing is '",
                                      "', expected one of " + detail::listed(kModes));
}

SharedSpeeds shared_speeds(const Profile& first, const Profile& second, Sharing sharing,
                           double gpu_memory_gb) {
  detail::refuse_bad(first, "shared_speeds");
  detail::refuse_bad(second, "shared_speeds");
  detail::refuse_unknown(sharing, "shared_speeds: sharing");
  if (!(gpu_memory_gb >= 0)) {
    detail::refuse("shared_speeds: gpu_memory_gb is ", gpu_memory_gb, ", expected 0 or more");
  }
  if (sharing == Sharing::exclusive) detail::refuse("shared_speeds: 'exclusive' shares no GPU");
  const double memory = sharing == Sharing::mig
                            ? 2 * std::max(first.memory_gb, second.memory_gb)  // halves are fixed
                            : first.memory_gb + second.memory_gb;
  if (gpu_memory_gb > 0 && memory > gpu_memory_gb) return {0, 0};
  return {1 / slowdown(first, second, sharing), 1 / slowdown(second, first, sharing)};
}

}  // namespace glidepath
