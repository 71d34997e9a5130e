// SPDX-License-Identifier: Apache-2.0
// Curves that the tests of curves and fits share.
#pragma once

#include "glidepath/fit.hpp"

#include <numeric>
#include <vector>

#include "common/rng.hpp"

namespace glidepath {

inline std::vector<double> counting(int n) {
  std::vector<double> t(n);
  std::iota(t.begin(), t.end(), 1.0);
  return t;
}

inline Trace sample(const Curve& curve, const std::vector<double>& steps, double noise = 0,
                    std::uint64_t seed = 1) {
  Trace trace{.step = steps};
  const detail::Rng rng{seed};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    trace.loss.push_back(evaluate(curve, steps[i]) + noise * rng.normal(0, i));
  }
  return trace;
}

inline const std::vector<Curve> kExamples{
    {Family::pow2, {3.0, 0.3}},
    {Family::pow3, {1.5, 3.0, 0.4}},
    {Family::pow4, {1.5, 3.0, 0.6, 5.0}},
    {Family::exp3, {1.5, 3.0, 0.03}},
    {Family::weibull4, {1.5, 3.0, 0.02, 0.7}},
    {Family::mmf4, {1.5, 3.0, 40.0, 1.2}},
    {Family::log2, {5.0, 0.3}},
    {Family::powexp, {1.5, 3.0, 0.3, 0.005}},
};

}  // namespace glidepath
