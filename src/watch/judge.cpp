// SPDX-License-Identifier: Apache-2.0
#include "glidepath/watch.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "forecast/gaps.hpp"

namespace glidepath {
namespace {

constexpr double kNearlyApart = 0.9;  // few points lie at whole hundredths

/// The newest point, and before it the newest that lie apart; the oldest first.
std::vector<std::size_t> looks_at(const Watch& watch, std::span<const double> step,
                                  std::span<const double> loss) {
  const bool broken = detail::gaps_of(loss).failing();
  const auto& budget = watch.options().budget;
  const double apart = budget && !broken ? kNearlyApart * *budget / kLooks : 0.0;
  std::vector<std::size_t> looks;
  double latest = detail::kInfinity;
  for (std::size_t i = step.size(); i-- > 0 && looks.size() < kPatience;) {
    if (!(step[i] <= latest)) continue;
    looks.push_back(i);
    latest = step[i] - apart;
  }
  return {looks.rbegin(), looks.rend()};
}

}  // namespace

Ruling judge(Watch& given, std::span<const double> step, std::span<const double> loss) {
  if (step.size() != loss.size()) {
    detail::refuse("judge: ", step.size(), " steps but ", loss.size(), " losses");
  }
  Watch watch = given;  // which stays as it is where something throws
  const std::vector<std::size_t> looks = looks_at(watch, step, loss);
  std::vector<Watch> seen;  // as it was at each look
  for (std::size_t i = 0; i < step.size(); ++i) {
    watch.add(step[i], loss[i]);
    if (seen.size() < looks.size() && looks[seen.size()] == i) seen.push_back(watch);
  }
  Ruling ruling{.decision = watch.decision()};
  const auto is_lost = [](const Decision& d) {
    return d.verdict == Verdict::never || d.verdict == Verdict::diverged;
  };
  ruling.stop = ruling.decision.verdict == Verdict::reached;
  // Most runs are not lost, and then one forecast is enough.
  if (is_lost(ruling.decision) && seen.size() >= kPatience) {
    seen.pop_back();
    ruling.stop = true;
    for (std::size_t i = seen.size(); ruling.stop && i-- > 0;) {
      ruling.stop = is_lost(seen[i].decision());
    }
  }
  given = std::move(watch);
  return ruling;
}

}  // namespace glidepath
