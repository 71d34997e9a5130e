// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace glidepath {

/// Row-major matrix of doubles that belongs to somebody else: row i begins `stride` doubles after
/// row i - 1. Nothing is checked. For a matrix of Eigen there is `as_rows` in eigen.hpp.
template <class Double>
class BasicRowsView {
 public:
  BasicRowsView(Double* data, std::ptrdiff_t rows, std::ptrdiff_t cols) noexcept
      : BasicRowsView(data, rows, cols, cols) {}
  BasicRowsView(Double* data, std::ptrdiff_t rows, std::ptrdiff_t cols,
                std::ptrdiff_t stride) noexcept
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {}
  /// What may be written to may be read.
  template <std::same_as<std::remove_const_t<Double>> Other>
  BasicRowsView(BasicRowsView<Other> other) noexcept  // NOLINT: borrowing
      : BasicRowsView(other.data(), other.rows(), other.cols(), other.stride()) {}

  [[nodiscard]] std::ptrdiff_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::ptrdiff_t cols() const noexcept { return cols_; }
  [[nodiscard]] std::ptrdiff_t stride() const noexcept { return stride_; }
  [[nodiscard]] Double* data() const noexcept { return data_; }
  Double& operator()(std::ptrdiff_t i, std::ptrdiff_t j) const noexcept {
    return data_[i * stride_ + j];
  }
  [[nodiscard]] std::span<Double> row(std::ptrdiff_t i) const noexcept {
    return {data_ + i * stride_, static_cast<std::size_t>(cols_)};
  }
  /// `count` rows from `first` on.
  [[nodiscard]] BasicRowsView middle_rows(std::ptrdiff_t first,
                                          std::ptrdiff_t count) const noexcept {
    return {data_ + first * stride_, count, cols_, stride_};
  }

 private:
  Double* data_;
  std::ptrdiff_t rows_, cols_, stride_;
};
using RowsView = BasicRowsView<const double>;
using MutableRowsView = BasicRowsView<double>;

/// Row-major matrix of doubles, the layout of a C-contiguous numpy array. New elements are 0.
class Rows {
 public:
  Rows() = default;
  Rows(std::ptrdiff_t rows, std::ptrdiff_t cols) { resize(rows, cols); }
  /// A copy.
  explicit Rows(RowsView other) : Rows(other.rows(), other.cols()) {
    for (std::ptrdiff_t i = 0; i < rows_; ++i) {
      for (std::ptrdiff_t j = 0; j < cols_; ++j) (*this)(i, j) = other(i, j);
    }
  }
  /// Without keeping what was there.
  void resize(std::ptrdiff_t rows, std::ptrdiff_t cols) {
    values_.assign(static_cast<std::size_t>(rows * cols), 0.0);
    rows_ = rows;
    cols_ = cols;
  }

  [[nodiscard]] std::ptrdiff_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::ptrdiff_t cols() const noexcept { return cols_; }
  [[nodiscard]] std::ptrdiff_t size() const noexcept { return rows_ * cols_; }
  [[nodiscard]] double* data() noexcept { return values_.data(); }
  [[nodiscard]] const double* data() const noexcept { return values_.data(); }
  double& operator()(std::ptrdiff_t i, std::ptrdiff_t j) noexcept { return data()[i * cols_ + j]; }
  const double& operator()(std::ptrdiff_t i, std::ptrdiff_t j) const noexcept {
    return data()[i * cols_ + j];
  }
  [[nodiscard]] std::span<double> row(std::ptrdiff_t i) noexcept {
    return MutableRowsView(*this).row(i);
  }
  [[nodiscard]] std::span<const double> row(std::ptrdiff_t i) const noexcept {
    return RowsView(*this).row(i);
  }
  operator RowsView() const noexcept { return {data(), rows_, cols_}; }   // NOLINT: borrowing
  operator MutableRowsView() noexcept { return {data(), rows_, cols_}; }  // NOLINT: borrowing

  bool operator==(const Rows&) const = default;

 private:
  std::vector<double> values_{};
  std::ptrdiff_t rows_ = 0, cols_ = 0;
};

}  // namespace glidepath
