// SPDX-License-Identifier: Apache-2.0
// G = sup_d P(S <= d) / E[min(S, d)]. For equally likely q_1 <= ... <= q_n only d = q_i matter:
//
//   G = max_i  i / (q_1 + ... + q_i + (n - i) q_i)
#include "glidepath/plan.hpp"

#include <algorithm>
#include <cmath>

#include "common/require.hpp"

namespace glidepath {
namespace {

double index_of_sorted(std::span<const double> q) {
  const auto n = static_cast<double>(q.size());
  double done = 0, served = 0, best = 0;
  for (const double d : q) {
    if (d == std::numeric_limits<double>::infinity()) break;
    done += 1;
    served += d;
    best = std::max(best, done / (served + (n - done) * d));  // 1/0 = inf: done at once
  }
  return best;
}

}  // namespace

double gittins_index(std::span<const double> samples) {
  if (samples.empty()) detail::refuse("gittins_index: no samples");
  bool sorted = true;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!(samples[i] >= 0)) detail::refuse("gittins_index: sample ", i, " is ", samples[i]);
    sorted = sorted && (i == 0 || samples[i - 1] <= samples[i]);
  }
  if (sorted) return index_of_sorted(samples);
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return index_of_sorted(copy);
}

}  // namespace glidepath
