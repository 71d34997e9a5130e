// SPDX-License-Identifier: Apache-2.0
// Which curve fits a run? Usage: 01_fit_one_trace [FILE]
#include "glidepath/glidepath.hpp"

#include <cstdio>

namespace gp = glidepath;

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[1] : "data/curves/docs-transformer.csv.gz";
  const gp::Trace run = gp::read_long_csv(file).front();

  const gp::Fit fit = gp::fit(run.view());
  std::printf("%s: %s, %s, sigma %.3g\n", run.name.c_str(), name(fit.curve.family).data(),
              name(fit.status).data(), fit.sigma);

  const auto names = gp::parameter_names(fit.curve.family);
  for (std::size_t k = 0; k < names.size(); ++k) {
    std::printf("  %-6s %10.4g +- %.2g\n", names[k].data(), fit.curve.parameters[k],
                fit.standard_error[k]);
  }
  for (const gp::FamilyScore& score : fit.scores) {
    std::printf("  AICc of %-8s %10.1f (%s)\n", name(score.family).data(), score.aicc,
                name(score.status).data());
  }
}
