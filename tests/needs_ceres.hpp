// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/fit.hpp"
#include "glidepath/version.hpp"

#include <vector>

#include <gtest/gtest.h>

/// First line of a test of what only Ceres does.
#define NEEDS_CERES \
  if (GLIDEPATH_WITH_CERES == 0) GTEST_SKIP() << "this build has no Ceres"

namespace glidepath {

/// Those of this build.
inline std::vector<Solver> solvers() {
  if (GLIDEPATH_WITH_CERES == 0) return {Solver::closed_form};
  return {Solver::closed_form, Solver::ceres};
}

}  // namespace glidepath
