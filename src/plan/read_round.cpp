// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "common/require.hpp"
#include "plan/round.hpp"

namespace glidepath::detail {
namespace {

constexpr double kLargestValue = 1e15;

void check(const RoundView& view) {
  const std::size_t n = view.job.size();
  if (view.tier.size() != n || view.gpus.size() != n || view.value.size() != n) {
    refuse("solve_round: columns of different length: job ", n, ", tier ", view.tier.size(),
           ", gpus ", view.gpus.size(), ", value ", view.value.size());
  }
  if (n > 0x7fffffff) refuse("solve_round: ", n, " options, at most 2147483647");
  for (std::size_t t = 0; t < view.capacity.size(); ++t) {
    if (view.capacity[t] < 0) {
      refuse("solve_round: tier ", t, " has the negative capacity ", view.capacity[t]);
    }
  }
  const auto tiers = static_cast<std::int64_t>(view.capacity.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (view.tier[i] < 0 || view.tier[i] >= tiers) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " names tier ", view.tier[i],
             ", there are ", tiers);
    }
    if (view.gpus[i] < 1) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " asks ", view.gpus[i], " GPUs");
    }
    if (!(view.value[i] >= 0 && view.value[i] <= kLargestValue)) {
      refuse("solve_round: option ", i, " of job ", view.job[i], " has value ", view.value[i],
             ", expected 0 to 1e15");
    }
  }
}

/// Option indices job by job, in order of the job's id; empty when they already are.
std::vector<std::int32_t> grouped(std::span<const std::int64_t> job) {
  if (std::is_sorted(job.begin(), job.end())) return {};
  std::vector<std::int32_t> order(job.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return job[static_cast<std::size_t>(a)] < job[static_cast<std::size_t>(b)];
  });
  return order;
}

}  // namespace

Round read_round(const RoundView& view) {
  check(view);
  const std::size_t n = view.job.size();
  const std::size_t tiers = view.capacity.size();
  const std::vector<std::int32_t> order = grouped(view.job);
  const auto at = [&](std::size_t i) { return order.empty() ? i : std::size_t(order[i]); };

  Round round;
  round.capacity.assign(view.capacity.begin(), view.capacity.end());
  round.first.reserve(n / 4 + 2);
  round.option.reserve(n);
  round.original.reserve(n);
  round.first.push_back(0);

  // Jobs, the GPUs they could use at most, and the largest value.
  std::vector<std::int64_t> demand(tiers, 0), largest(tiers, 0);
  double top = 0;
  const auto close_job = [&] {
    const auto end = static_cast<std::int32_t>(round.option.size());
    if (end == round.first.back()) return;
    round.first.push_back(end);
    for (std::size_t t = 0; t < tiers; ++t) demand[t] += largest[t];
    std::fill(largest.begin(), largest.end(), 0);
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t o = at(i);
    if (i > 0 && view.job[o] != view.job[at(i - 1)]) close_job();
    const auto t = static_cast<std::size_t>(view.tier[o]);
    const std::int64_t k = view.gpus[o];
    if (k > std::min<std::int64_t>(view.capacity[t], 0x7fffffff) || view.value[o] == 0) continue;
    round.option.push_back({0, static_cast<std::int32_t>(t), static_cast<std::int32_t>(k)});
    round.original.push_back(static_cast<std::int64_t>(o));
    largest[t] = std::max(largest[t], k);
    top = std::max(top, view.value[o]);
  }
  close_job();
  for (std::size_t t = 0; t < tiers; ++t) {
    round.capacity[t] = std::min(round.capacity[t], demand[t]);
  }

  // The finest quantum 2^e at which the sum of one value per job stays below 2^62.
  if (top > 0) {
    const auto sum_bits =
        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(round.jobs())));
    const int exponent = std::ilogb(top) + 1 - std::min(52, 61 - sum_bits);
    round.quantum = std::ldexp(1.0, std::max(exponent, -1020));
  }
  const double per_quantum = 1.0 / round.quantum;
  for (std::size_t i = 0; i < round.option.size(); ++i) {
    const double quanta = view.value[static_cast<std::size_t>(round.original[i])] * per_quantum;
    round.option[i].value = static_cast<std::int64_t>(quanta);
    round.exact = round.exact && static_cast<double>(round.option[i].value) == quanta;
  }
  return round;
}

}  // namespace glidepath::detail
