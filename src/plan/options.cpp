// SPDX-License-Identifier: Apache-2.0
// The options of a job: every tier that has the memory, gangs of 1, 2, 4, ... GPUs for as long as
// each is faster than the one before, on their own or shared with a partner.
#include "glidepath/plan.hpp"

#include <algorithm>
#include <cmath>

#include "common/require.hpp"

namespace glidepath {
namespace {

// A fit says little beyond the gangs that were measured.
constexpr std::int64_t kBeyondMeasured = 2;

void check(std::span<const Tier> tiers, std::span<const Scaling> scaling, const Ways& ways) {
  if (tiers.size() != scaling.size()) {
    detail::refuse("options_of: ", scaling.size(), " fits of scaling for ", tiers.size(), " tiers");
  }
  for (const Tier& tier : tiers) validate(tier);
  if (!(ways.alone.memory_gb >= 0 && std::isfinite(ways.alone.memory_gb))) {
    detail::refuse("options_of: memory is ", ways.alone.memory_gb, " GB");
  }
  if (!(ways.batch >= 0 && std::isfinite(ways.batch))) {
    detail::refuse("options_of: the batch is ", ways.batch);
  }
  if (ways.most_gpus < 1) detail::refuse("options_of: most_gpus is ", ways.most_gpus);
  if (!(ways.utilization >= 0 && ways.utilization <= 1)) {
    detail::refuse("options_of: utilization is ", ways.utilization, ", expected 0 to 1");
  }
}

}  // namespace

std::vector<Option> options_of(std::span<const Tier> tiers, std::span<const Scaling> scaling,
                               const Ways& ways) {
  check(tiers, scaling, ways);
  std::vector<Option> own, shared;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const Tier& tier = tiers[t];
    const std::vector<StepTime>& measured = scaling[t].measured;
    if (measured.empty()) continue;  // nothing is known of the job there
    if (tier.memory_gb > 0 && ways.alone.memory_gb > tier.memory_gb) continue;
    std::int64_t largest = 0;
    for (const StepTime& m : measured) largest = std::max<std::int64_t>(largest, m.gpus);
    largest = std::min<std::int64_t>({kBeyondMeasured * largest, tier.gpus(), ways.most_gpus});
    const SharedSpeeds speed =
        ways.partner ? shared_speeds(ways.alone, *ways.partner, ways.sharing, tier, ways.pairs)
                     : SharedSpeeds{};
    double fastest = 0;
    for (std::int64_t k = 1; k <= largest; k *= 2) {
      const int gpus = static_cast<int>(k);
      const int nodes = (gpus - 1) / tier.gpus_per_node + 1;
      const double batch = ways.batch > 0 ? ways.batch / gpus : 1;
      const double rate = 1 / step_seconds(scaling[t], gpus, nodes, batch);
      if (rate <= fastest) continue;  // more GPUs for nothing
      fastest = rate;
      own.push_back({static_cast<int>(t), gpus, rate, ways.utilization});
      if (speed.first <= 0) continue;
      shared.push_back({static_cast<int>(t), gpus, rate * speed.first,
                        ways.utilization * speed.first, ways.sharing});
    }
  }
  own.insert(own.end(), shared.begin(), shared.end());
  return own;
}

}  // namespace glidepath
