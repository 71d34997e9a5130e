// SPDX-License-Identifier: Apache-2.0
// Speeds of two jobs on one GPU from what each does alone.
//
//   time slices, MPS:  slowdown_1 = 1 + a u_2 + b u_1 u_2
//   MIG halves:        slowdown_1 = c max(1, u_1 / (1/2))^d
//
// u = activity of the multiprocessors. b u_1 u_2 is the time for which both want them, a u_2 what
// switching costs a job that hardly uses them. The constants are solved from the one pair that was
// measured under all three modes (a recommender at 5 % and an image model at 82 % activity on an
// A100: Robroek, Yousefzadeh-Asl-Miandoab, Tozun, arXiv 2209.06018); at u_1 = u_2 = 1 they give
// slowdowns of 2.4, 2.1 and 1.7, where 2 is what sharing the time fairly gives.
#include "glidepath/hardware.hpp"

#include <algorithm>
#include <cmath>

#include "common/names.hpp"

namespace glidepath {
namespace {

constexpr detail::Names<4> kModes{"exclusive", "naive", "mps", "mig"};

constexpr double kNaiveSwitch = 0.103, kNaiveBoth = 1.265;
constexpr double kMpsBoth = 1.06;
constexpr double kMigOverhead = 1.045, kMigPower = 0.67, kMigShare = 0.5;

double slowdown(double own, double other, Sharing sharing) {
  switch (sharing) {
    case Sharing::naive:
      return 1 + kNaiveSwitch * other + kNaiveBoth * own * other;
    case Sharing::mps:
      return 1 + kMpsBoth * own * other;
    case Sharing::mig:
      return kMigOverhead * std::pow(std::max(1.0, own / kMigShare), kMigPower);
    case Sharing::exclusive:
      break;
  }
  return 1;
}

}  // namespace

std::string_view name(Sharing sharing) noexcept { return detail::name_in(kModes, sharing); }

Sharing sharing_named(std::string_view text) {
  return detail::value_named<Sharing>(kModes, text, "unknown way of sharing '",
                                      "', known: " + detail::listed(kModes));
}

SharedSpeeds shared_speeds(const Profile& first, const Profile& second, Sharing sharing,
                           double gpu_memory_gb) {
  for (const Profile* profile : {&first, &second}) {
    if (!(profile->sm_activity >= 0 && profile->sm_activity <= 1)) {
      detail::refuse("shared_speeds: activity is ", profile->sm_activity, ", expected 0 to 1");
    }
    if (!(profile->memory_gb >= 0)) {
      detail::refuse("shared_speeds: memory is ", profile->memory_gb, " GB");
    }
  }
  if (sharing == Sharing::exclusive) return {0, 0};
  const double memory = sharing == Sharing::mig
                            ? 2 * std::max(first.memory_gb, second.memory_gb)  // halves are fixed
                            : first.memory_gb + second.memory_gb;
  if (gpu_memory_gb > 0 && memory > gpu_memory_gb) return {0, 0};
  return {1 / slowdown(first.sm_activity, second.sm_activity, sharing),
          1 / slowdown(second.sm_activity, first.sm_activity, sharing)};
}

}  // namespace glidepath
