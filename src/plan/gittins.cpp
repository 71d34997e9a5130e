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

namespace glidepath {
namespace {

double index_of_sorted(std::span<const double> q) {
  // Samples at infinity come last and only count as not done.
  auto finite = static_cast<std::ptrdiff_t>(q.size());
  if (std::isinf(q.back())) {
    finite = std::lower_bound(q.begin(), q.end(), q.back()) - q.begin();
    if (finite == 0) return 0;
  }
  if (q.front() == 0) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(q.size());
  // Four at a time: only one addition waits for the four before, divisions and maxima do not.
  std::array<double, 4> best{};
  double served = 0;
  std::ptrdiff_t i = 0;
  for (; i + 4 <= finite; i += 4) {
    const double* d = &q[static_cast<std::size_t>(i)];
    const double two = d[0] + d[1];
    const std::array<double, 4> sum{d[0], two, two + d[2], two + (d[2] + d[3])};
    for (std::size_t l = 0; l < 4; ++l) {
      const double done = static_cast<double>(i) + static_cast<double>(l + 1);
      const double index = done / (served + sum[l] + (n - done) * d[l]);
      best[l] = index > best[l] ? index : best[l];
    }
    served += sum[3];
  }
  for (; i < finite; ++i) {
    const double d = q[static_cast<std::size_t>(i)];
    served += d;
    const auto done = static_cast<double>(i + 1);
    best[0] = std::max(best[0], done / (served + (n - done) * d));
  }
  return *std::max_element(best.begin(), best.end());
}

bool sorted_from_zero(std::span<const double> q) {
  bool broken = !(q.front() >= 0);
  for (std::size_t i = 1; i < q.size(); ++i) broken |= !(q[i] >= q[i - 1]);
  return !broken;
}

}  // namespace

double gittins_index(std::span<const double> samples) {
  if (samples.empty()) detail::refuse("gittins_index: no samples");
  if (sorted_from_zero(samples)) return index_of_sorted(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!(samples[i] >= 0)) detail::refuse("gittins_index: sample ", i, " is ", samples[i]);
  }
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return index_of_sorted(copy);
}

}  // namespace glidepath
