// SPDX-License-Identifier: Apache-2.0
/// For programs that use Eigen: matrices as glidepath takes them, and back, without a copy. No
/// other header includes this one, and the library's own needs no Eigen.
#pragma once

#include "glidepath/error.hpp"
#include "glidepath/rows.hpp"

#include <concepts>
#include <string>
#include <type_traits>

#include <Eigen/Core>

namespace glidepath {

using EigenRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

namespace detail {
/// What may lie in memory as glidepath takes it: doubles, those of a row one after the other.
template <class Matrix>
concept EigenRowMajor = Matrix::IsRowMajor != 0 && std::same_as<typename Matrix::Scalar, double> &&
                        (Matrix::InnerStrideAtCompileTime == 1 ||
                         Matrix::InnerStrideAtCompileTime == Eigen::Dynamic);
}  // namespace detail

/// A row-major matrix, map or block of rows as what functions take: a MutableRowsView where it may
/// be written to, else a RowsView. It must outlive the view. Throws InputError where a map takes
/// its rows apart: an inner stride that is not 1.
template <class Matrix>
requires detail::EigenRowMajor<std::remove_cvref_t<Matrix>>
[[nodiscard]] auto as_rows(Matrix&& matrix) {
  if (matrix.innerStride() != 1) {
    throw InputError("as_rows: the inner stride is " + std::to_string(matrix.innerStride()) +
                     ", expected 1");
  }
  using Double = std::remove_pointer_t<decltype(matrix.data())>;
  return BasicRowsView<Double>(matrix.data(), matrix.rows(), matrix.cols(), matrix.outerStride());
}

/// A result as a matrix of Eigen; it must outlive the map.
[[nodiscard]] inline Eigen::Map<const EigenRows, 0, Eigen::OuterStride<>> as_eigen(RowsView rows) {
  return {rows.data(), rows.rows(), rows.cols(), Eigen::OuterStride<>(rows.stride())};
}

}  // namespace glidepath
