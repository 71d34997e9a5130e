// SPDX-License-Identifier: Apache-2.0
#include "plan/learned.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "common/numbers.hpp"
#include "common/require.hpp"
#include "plan/learned_values.hpp"

namespace glidepath {

std::span<const double> learned_values() noexcept { return detail::kBuiltInValues; }

namespace detail {
namespace {

constexpr double kMaxCorrection = 8;
constexpr double kQuartilesOfNormal = 1.349;  ///< its interquartile range in standard deviations

std::span<const double> checked(std::span<const double> given) {
  if (given.empty()) given = kBuiltInValues;
  if (given.size() != kLearnedValues) {
    refuse("plan: learned has ", given.size(), " values, expected ", kLearnedValues);
  }
  for (const double value : given) {
    if (!std::isfinite(value))
      refuse("plan: learned has the value ", value, ", expected a finite one");
  }
  return given;
}

}  // namespace

LearnedValues::LearnedValues(std::span<const double> given)
    : round(checked(given).first<kTerms>()),
      queue(checked(given).subspan<kTerms, kTerms>()),
      patience(checked(given).subspan<2 * kTerms, kPatienceTerms>()),
      budget(checked(given).subspan<2 * kTerms + kPatienceTerms, kTerms>()),
      shares(checked(given).subspan<3 * kTerms + kPatienceTerms, kShares>()),
      low(checked(given).subspan<kLearnedValues - 2 * kRanges, kRanges>()),
      high(checked(given).last<kRanges>()) {}

void Crowd::add(double gpus, double log_rank, double spread, double restart_s) {
  jobs_ += 1;
  asked_ += gpus;
  largest_ = std::max(largest_, gpus);
  log_rank_ += log_rank;
  spread_ += spread;
  restart_s_ = std::max(restart_s_, restart_s);
}

void Crowd::add_speed(int tier, double log_speed) {
  speed_[tier] += log_speed;
  members_[tier] += 1;
  slowest_ = std::min(slowest_, log_speed);
}

void Crowd::close(double gpus) {
  if (jobs_ > 0) log_rank_ /= jobs_, spread_ /= jobs_;
  for (std::size_t t = 0; t < speed_.size(); ++t) {
    if (members_[t] > 0) speed_[t] /= members_[t];
  }
  load_ = std::log(std::max(asked_, 1.0) / std::max(gpus, 1.0));
}

Crowd Crowd::on_one_tier(const Sums& sums, double gpus) {
  Crowd out;
  out.asked_ = sums.gpus;
  out.largest_ = sums.largest;
  out.spread_ = sums.spread;
  out.restart_s_ = sums.restart_s;
  out.close(gpus);
  return out;
}

std::array<double, kRanges> Crowd::inputs() const {
  return {std::exp(load_), largest_, spread_, restart_s_, std::exp(slowest_)};
}

double correction(std::span<const double, kTerms> weights, const Prospect& job,
                  const Crowd& crowd) {
  const double r = std::max(job.rank_s, 1.0);
  const double a = std::log2(job.gpus) / 3;
  const double s = std::clamp((std::log(r) - crowd.log_rank()) / 2, -3.0, 3.0);
  const double l = std::clamp(crowd.load(), -2.0, 4.0);
  const double u = std::min(job.spread, 3.0);
  const double p = job.attained_s / (job.attained_s + r);
  const double w = std::min(std::log1p(job.waited_s / r) / 3, 3.0);
  const double k = job.keeps ? 1 : 0;
  const double m = job.moves ? 1 : 0;
  const double c = job.advantage;
  const std::array<double, kTerms> terms{a,     s,     u,     p,     w,     job.share,
                                         k,     m,     c,     a * s, a * l, s * std::abs(s),
                                         s * l, s * u, k * p, k * u, c * s};
  double z = 0;
  for (std::size_t i = 0; i < kTerms; ++i) z += weights[i] * terms[i];
  return std::clamp(std::isnan(z) ? 0.0 : z, -kMaxCorrection, kMaxCorrection);
}

std::vector<double> within_budget(std::vector<double> samples, double left,
                                  const LearnedValues& values) {
  if (samples.empty()) {
    const double most = left * std::exp(values.shares[0]);
    return {most / 4, most / 2, 3 * most / 4, most};
  }
  const double instead = left * std::exp(values.shares[1]);
  std::replace(samples.begin(), samples.end(), kInfinity, instead);
  std::sort(samples.begin(), samples.end());
  return samples;
}

double spread_of(std::span<const double> sorted) {
  if (sorted.size() < 4) return 0;
  return spread_between(sorted[sorted.size() / 4], sorted[3 * sorted.size() / 4]);
}

double spread_between(double low, double high) {
  return low > 0 ? std::log(high / low) / kQuartilesOfNormal : 0;
}

std::string out_of_range(const LearnedValues& values, const Crowd& crowd) {
  constexpr std::array<std::string_view, kRanges> kWhat{
      "GPUs wanted over GPUs", "the largest gang", "the mean spread of the forecasts",
      "the restart in seconds", "the least speed as a share of the job's best"};
  const std::array<double, kRanges> inputs = crowd.inputs();
  for (std::size_t i = 0; i < kRanges; ++i) {
    if (inputs[i] >= values.low[i] && inputs[i] <= values.high[i]) continue;
    return sentence(kWhat[i], " is ", inputs[i], ", learned from ", values.low[i], " to ",
                    values.high[i]);
  }
  return "";
}

}  // namespace detail
}  // namespace glidepath
