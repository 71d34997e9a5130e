// SPDX-License-Identifier: Apache-2.0
// Which curve fits a run? Usage: 01_fit_one_trace [FILE]
#include "glidepath/glidepath.hpp"

#include <iomanip>
#include <iostream>

namespace gp = glidepath;

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[1] : "data/curves/docs-transformer.csv.gz";
  const gp::Trace run = gp::read_traces(file).front();

  const gp::Fit fit = gp::fit(run.view());
  std::cout << std::setprecision(4) << run.name << ": " << name(fit.curve.family) << ", "
            << name(fit.status) << ", sigma " << fit.sigma << '\n';

  const auto names = gp::parameter_names(fit.curve.family);
  for (std::size_t k = 0; k < names.size(); ++k) {
    std::cout << "  " << names[k] << ' ' << fit.curve.parameters[k] << " +- "
              << fit.standard_error[k] << '\n';
  }
  for (const gp::FitScore& score : fit.scores) {
    std::cout << "  AICc of " << name(score.family) << ' ' << score.aicc << " ("
              << name(score.status) << ")\n";
  }
}
