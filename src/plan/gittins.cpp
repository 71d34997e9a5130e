// SPDX-License-Identifier: Apache-2.0
// G = sup_d P(S <= d) / E[min(S, d)]. For equally likely q_1 <= ... <= q_n only d = q_i matter:
//
//   G = max_i  i / (q_1 + ... + q_i + (n - i) q_i)
#include "glidepath/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "common/require.hpp"
#include "common/statistics.hpp"

namespace glidepath {
namespace {

/// Four at a time, so that no comparison waits for the one before.
bool sorted_from_zero(std::span<const double> q) {
  std::array<double, 4> broken{};
  std::size_t i = 1;
  for (; i + 4 <= q.size(); i += 4) {
    for (std::size_t l = 0; l < 4; ++l) broken[l] += q[i + l] >= q[i + l - 1] ? 0.0 : 1.0;
  }
  for (; i < q.size(); ++i) broken[0] += q[i] >= q[i - 1] ? 0.0 : 1.0;
  return q.front() >= 0 && (broken[0] + broken[1]) + (broken[2] + broken[3]) == 0;
}

double index_of_sorted(std::span<const double> q) {
  // Samples at infinity come last and only count as not done.
  auto finite = q.size();
  if (std::isinf(q.back())) {
    finite = std::lower_bound(q.begin(), q.end(), q.back()) - q.begin();
    if (finite == 0) return 0;
  }
  if (q.front() == 0) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(q.size());
  // Divisions are what costs, and E[min(S, d)] grows with d, so no sample of a block has an index
  // above (those done at its end) / (n E[min(S, d)] at its first sample). The ends of the blocks
  // give an index that few blocks can exceed.
  constexpr std::size_t kBlock = 16;
  const auto block = [&](std::size_t b) {
    return q.subspan(b * kBlock, std::min(kBlock, finite - b * kBlock));
  };
  const std::size_t blocks = (finite + kBlock - 1) / kBlock;
  constexpr std::size_t kFewBlocks = 32;  // so many need no memory
  std::array<double, kFewBlocks + 1> few;
  std::vector<double> many;
  if (blocks > kFewBlocks) many.resize(blocks + 1);
  double* const served = blocks > kFewBlocks ? many.data() : few.data();
  served[0] = 0;  // by the blocks before
  double best = 0, done = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    served[b + 1] = served[b] + detail::sum_of(block(b));
    done += static_cast<double>(block(b).size());
    best = std::max(best, done / (served[b + 1] + (n - done) * block(b).back()));
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto before = static_cast<double>(b * kBlock);
    const auto end = before + static_cast<double>(block(b).size());
    if (end <= best * (served[b] + (n - before) * block(b).front())) continue;
    double sum = served[b];
    done = before;
    for (const double d : block(b)) {
      sum += d, done += 1;
      best = std::max(best, done / (sum + (n - done) * d));
    }
  }
  return best;
}

}  // namespace

double gittins_index(std::span<const double> samples) {
  if (samples.empty()) detail::refuse("gittins_index: samples is empty, expected at least one");
  if (sorted_from_zero(samples)) return index_of_sorted(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!(samples[i] >= 0)) {
      detail::refuse("gittins_index: sample ", i, " is ", samples[i], ", expected 0 or more");
    }
  }
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return index_of_sorted(copy);
}

}  // namespace glidepath
