// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <vector>

#include <glidepath/glidepath.hpp>

// Exit code 0 when the installed library fits a curve: headers, library and all it links are there.
int main() {
  std::vector<double> step, loss;
  for (int t = 1; t <= 40; ++t) {
    step.push_back(t);
    loss.push_back(2.0 + 3.0 * std::pow(t, -0.5));
  }
  const glidepath::Fit fit = glidepath::fit({step, loss, {}}, {.family = glidepath::Family::pow3});
  std::printf("glidepath %s: floor %.6f\n", GLIDEPATH_VERSION, fit.curve.parameters[0]);
  return std::abs(fit.curve.parameters[0] - 2.0) < 1e-6 ? 0 : 1;
}
