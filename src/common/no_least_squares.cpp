// SPDX-License-Identifier: Apache-2.0
// What stands in place of least_squares.cpp in a build without Ceres.
#include "common/least_squares.hpp"
#include "common/require.hpp"

namespace glidepath::detail {

void require_ceres(std::string_view what) {
  refuse(what, " needs Ceres, and this glidepath was built without it");
}

LeastSquaresSolution minimise(const LeastSquares&, std::span<const double>,
                              const LeastSquaresOptions&) {
  require_ceres("least squares");
  return {};
}

}  // namespace glidepath::detail
