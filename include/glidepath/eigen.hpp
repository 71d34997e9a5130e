// SPDX-License-Identifier: Apache-2.0
/// For programs that use Eigen: matrices as glidepath takes them, and back, without a copy. No
/// other header includes this one, and the library's own needs no Eigen.
#pragma once

#include "glidepath/rows.hpp"

#include <Eigen/Core>

namespace glidepath {

using EigenRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A row-major matrix, map or block of rows as what functions take; it must outlive the view.
template <class Matrix>
requires(Matrix::IsRowMajor != 0) [[nodiscard]] RowsView as_rows(const Matrix& matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols(), matrix.outerStride()};
}
/// The same to write to.
template <class Matrix>
requires(Matrix::IsRowMajor != 0) [[nodiscard]] MutableRowsView as_rows(Matrix& matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols(), matrix.outerStride()};
}

/// A result as a matrix of Eigen; it must outlive the map.
[[nodiscard]] inline Eigen::Map<const EigenRows, 0, Eigen::OuterStride<>> as_eigen(RowsView rows) {
  return {rows.data(), rows.rows(), rows.cols(), Eigen::OuterStride<>(rows.stride())};
}

}  // namespace glidepath
