// SPDX-License-Identifier: Apache-2.0
// The options of a job: every tier that has the memory, of the gangs of 1, 2, 4, ... GPUs those
// that are faster than every smaller one, on their own or shared with a partner.
#include "glidepath/plan.hpp"

#include <algorithm>
#include <cmath>

#include "common/require.hpp"

namespace glidepath {
namespace {

// Gangs up to this multiple of the largest measured one: beyond it the fit is a guess.
constexpr std::int64_t kMaxExtrapolation = 2;

void check(std::span<const Tier> tiers, std::span<const Scaling> scaling,
           const PlacementOptions& options) {
  if (tiers.size() != scaling.size()) {
    detail::refuse("options_of: scaling has ", scaling.size(), " fits, expected ", tiers.size(),
                   ", one for each tier");
  }
  for (const Tier& tier : tiers) validate(tier);
  if (!(options.alone.memory_gb >= 0 && std::isfinite(options.alone.memory_gb))) {
    detail::refuse("options_of: memory is ", options.alone.memory_gb,
                   " GB, expected 0 or more and finite");
  }
  if (!(options.batch >= 0 && std::isfinite(options.batch))) {
    detail::refuse("options_of: batch is ", options.batch, ", expected 0 or more and finite");
  }
  if (options.batches && options.batch > 0) {
    detail::refuse("options_of: batch and batches, one of which is enough");
  }
  if (options.max_gpus < 1) {
    detail::refuse("options_of: max_gpus is ", options.max_gpus, ", expected at least 1");
  }
  if (!(options.utilization >= 0 && options.utilization <= 1)) {
    detail::refuse("options_of: utilization is ", options.utilization, ", expected 0 to 1");
  }
  const bool shares = options.sharing != Sharing::exclusive;
  if (shares != options.partner.has_value()) {
    detail::refuse("options_of: ",
                   shares ? "sharing without a partner" : "a partner without sharing");
  }
  if (options.pairs != nullptr && !shares) detail::refuse("options_of: pairs without sharing");
}

/// Steps per second with the batch that is given or the best one; 0 where the gang has none.
double rate_of(const Scaling& scaling, int gpus, int nodes, const PlacementOptions& options) {
  if (options.batches) {
    const std::optional<BatchChoice> best = best_batch(scaling, gpus, nodes, *options.batches);
    return best ? best->steps_per_s : 0;
  }
  const double batch = options.batch > 0 ? options.batch / gpus : 1;
  return 1 / step_seconds(scaling, gpus, nodes, batch);
}

}  // namespace

std::vector<Option> options_of(std::span<const Tier> tiers, std::span<const Scaling> scaling,
                               const PlacementOptions& options) {
  check(tiers, scaling, options);
  std::vector<Option> own, shared;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const Tier& tier = tiers[t];
    const std::vector<StepTime>& measured = scaling[t].measured;
    if (measured.empty()) continue;  // nothing is known of the job there
    if (tier.memory_gb > 0 && options.alone.memory_gb > tier.memory_gb) continue;
    std::int64_t largest = 0;
    for (const StepTime& m : measured) largest = std::max<std::int64_t>(largest, m.gpus);
    largest = std::min<std::int64_t>({kMaxExtrapolation * largest, tier.gpus(), options.max_gpus});
    const SharedSpeeds speed = options.partner ? shared_speeds(options.alone, *options.partner,
                                                               options.sharing, tier, options.pairs)
                                               : SharedSpeeds{};
    double fastest = 0;
    for (std::int64_t k = 1; k <= largest; k *= 2) {
      const int gpus = static_cast<int>(k);
      const int nodes = (gpus - 1) / tier.gpus_per_node + 1;
      const double rate = rate_of(scaling[t], gpus, nodes, options);
      if (rate <= fastest) continue;  // more GPUs for nothing
      fastest = rate;
      own.push_back({static_cast<int>(t), gpus, rate, options.utilization});
      if (speed.first <= 0) continue;
      shared.push_back({static_cast<int>(t), gpus, rate * speed.first,
                        options.utilization * speed.first, options.sharing});
    }
  }
  own.insert(own.end(), shared.begin(), shared.end());
  return own;
}

}  // namespace glidepath
