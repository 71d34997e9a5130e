// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set by Highway's foreach_target; see kernels.cpp.
//
// A curve passes four stages. Lanes are functions, nodes and coefficients in the first three and
// curves in the last, and no lane looks at another, so that an answer knows nothing of the curves
// beside it.
#include "fit/low_rank.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fit/low_rank_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "curve/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace glidepath::detail::HWY_NAMESPACE {

constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int kBlock = 64;  // rows; a multiple of every kLanes
static_assert(kRank % kLanes == 0 && kCoefficients % kLanes == 0 && kCells % kLanes == 0);

/// Rows of a block between the stages, by columns.
struct Block {
  HWY_ALIGN double z[kBlock * kRank];
  HWY_ALIGN double sum[kBlock], squares[kBlock], tail[kBlock], pivot[kBlock], centre[kBlock];
  HWY_ALIGN double projected[kCoefficients * kBlock];
  HWY_ALIGN double inverse_norm[kCoefficients * kBlock];
  HWY_ALIGN double mean[kCoefficients * kBlock];
  bool plain[kBlock];
};

void columns(const double* x, int n, const double* beta, const double* lift, const double* factor,
             double* columns, double* sums) {
  const Tag d;
  Vec total[kRank];
  for (int k = 0; k < kRank; ++k) total[k] = set(0);
  for (int i = 0; i < n; i += kLanes) {
    HWY_ALIGN double at[kLanes] = {};
    const int here = n - i < kLanes ? n - i : kLanes;
    for (int lane = 0; lane < here; ++lane) at[lane] = x[i + lane];
    const Vec minus_x = hn::Neg(hn::Load(d, at));  // past the end x = 0, where every column is 0
    Vec q[kRank];
    for (int k = 0; k < kRank; ++k) {
      q[k] = hn::Mul(less_one(hn::Mul(minus_x, set(beta[k]))), set(lift[k]));
    }
    for (int k = 0; k < kRank; ++k) {
      q[k] = hn::Mul(q[k], set(factor[k * kRank + k]));
      for (int j = k + 1; j < kRank; ++j) {
        q[j] = hn::NegMulAdd(q[k], set(factor[k * kRank + j]), q[j]);
      }
      total[k] = hn::Add(total[k], q[k]);
      hn::Store(q[k], d, at);
      for (int lane = 0; lane < here; ++lane) columns[(i + lane) * kRank + k] = at[lane];
    }
  }
  for (int k = 0; k < kRank; ++k) sums[k] = hn::GetLane(hn::SumOfLanes(d, total[k]));
}

/// Σ (y - pivot) and its square over points from..to.
struct Moments {
  double sum, squares;
};
HWY_INLINE Moments moments(const double* y, int from, int to, double pivot) {
  const Tag d;
  const Vec p = set(pivot);
  Vec s0 = set(0), s1 = s0, q0 = s0, q1 = s0;
  int i = from;
  for (; i + 2 * kLanes <= to; i += 2 * kLanes) {
    const Vec a = hn::Sub(hn::LoadU(d, y + i), p), b = hn::Sub(hn::LoadU(d, y + i + kLanes), p);
    s0 = hn::Add(s0, a);
    s1 = hn::Add(s1, b);
    q0 = hn::MulAdd(a, a, q0);
    q1 = hn::MulAdd(b, b, q1);
  }
  Moments m{hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1))),
            hn::GetLane(hn::SumOfLanes(d, hn::Add(q0, q1)))};
  for (; i < to; ++i) {
    const double a = y[i] - pivot;
    m.sum += a;
    m.squares += a * a;
  }
  return m;
}

/// z_k = Σ_i column_k(i) y(i) for rows of values that lie `apart`, as many rows at a time as there
/// are registers.
HWY_INLINE void project(const double* columns, int n, const double* values, ptrdiff_t stride,
                        int apart, int rows, double* z) {
  const Tag d;
  constexpr int kVectors = kRank / kLanes;
  constexpr int kRowsAtOnce = kVectors >= 8 ? 1 : 12 / kVectors;
  for (int row = 0; row < rows; row += kRowsAtOnce) {
    const double* y[kRowsAtOnce];
    Vec sum[kRowsAtOnce][kVectors];
    for (int r = 0; r < kRowsAtOnce; ++r) {
      y[r] = values + (row + r < rows ? row + r : row) * stride;
      for (int v = 0; v < kVectors; ++v) sum[r][v] = set(0);
    }
    const double* q = columns;
    for (int i = 0; i < n; ++i, q += kRank) {
      for (int r = 0; r < kRowsAtOnce; ++r) {
        const Vec yi = set(y[r][i * apart]);
        for (int v = 0; v < kVectors; ++v) {
          sum[r][v] = hn::MulAdd(hn::LoadU(d, q + v * kLanes), yi, sum[r][v]);
        }
      }
    }
    for (int r = 0; r < kRowsAtOnce && row + r < rows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        hn::Store(sum[r][v], d, z + (row + r) * kRank + v * kLanes);
      }
    }
  }
}

void gram(const double* columns, int n, double* out) {
  HWY_ALIGN double z[kRank * kRank];
  project(columns, n, columns, 1, kRank, kRank, z);
  for (int k = 0; k < kRank * kRank; ++k) out[k] = z[k];
}

/// The node that explains most of a row, where the nodes rise to it and fall from it; else -1.
int best_node(const LowRankGrid& grid, const double* z) {
  const Tag d;
  constexpr int kVectors = kCells / kLanes, kRowsAtOnce = kVectors < 8 ? kVectors : 8;
  HWY_ALIGN double explained[kCells + kLanes];
  for (int from = 0; from < kVectors; from += kRowsAtOnce) {
    Vec sum[kRowsAtOnce];
    for (int v = 0; v < kRowsAtOnce; ++v) sum[v] = set(0);
    for (int k = 0; k < kRank; ++k) {
      const Vec zk = set(z[k]);
      const double* node = &grid.nodes[k * kCells + from * kLanes];
      for (int v = 0; v < kRowsAtOnce; ++v) {
        sum[v] = hn::MulAdd(hn::LoadU(d, node + v * kLanes), zk, sum[v]);
      }
    }
    for (int v = 0; v < kRowsAtOnce; ++v) {
      hn::Store(hn::Mul(sum[v], sum[v]), d, explained + (from + v) * kLanes);
    }
  }
  hn::Store(set(0), d, explained + kCells);
  uint64_t rises = 0;  // bit k: node k + 1 explains more than node k
  for (int v = 0; v < kVectors; ++v) {
    const Vec here = hn::Load(d, explained + v * kLanes),
              next = hn::LoadU(d, explained + v * kLanes + 1);
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, hn::Gt(next, here), bits);
    rises |= uint64_t{bits[0]} << (v * kLanes);
  }
  if ((rises & (rises + 1)) != 0) return -1;
  return static_cast<int>(hwy::PopCount(rises));
}

/// The polynomial of a row on its cell, and those of the grid.
void take_cell(const LowRankGrid& grid, int cell, int row, Block& block) {
  const Tag d;
  constexpr int kVectors = kCoefficients / kLanes;
  Vec sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = set(0);
  const double* weights = &grid.weights[static_cast<size_t>(cell) * kRank * kCoefficients];
  for (int k = 0; k < kRank; ++k) {
    const Vec z = set(block.z[row * kRank + k]);
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(hn::LoadU(d, weights + k * kCoefficients + v * kLanes), z, sum[v]);
    }
  }
  HWY_ALIGN double powers[kCoefficients];
  for (int v = 0; v < kVectors; ++v) hn::Store(sum[v], d, powers + v * kLanes);
  for (int p = 0; p < kCoefficients; ++p) {
    block.projected[p * kBlock + row] = powers[p];
    block.inverse_norm[p * kBlock + row] = grid.inverse_norm[cell * kCoefficients + p];
    block.mean[p * kBlock + row] = grid.mean[cell * kCoefficients + p];
  }
  block.centre[row] = grid.first_centre + cell * grid.spacing;
}

HWY_INLINE Vec polynomial(const double* coefficients, Vec u) {
  const Tag d;
  Vec value = hn::Load(d, coefficients + (kCoefficients - 1) * kBlock);
  for (int p = kCoefficients - 2; p >= 0; --p) {
    value = hn::MulAdd(value, u, hn::Load(d, coefficients + p * kBlock));
  }
  return value;
}

/// What the search ends with, a lane a curve.
void finish(const LowRankGrid& grid, int row, double lowest_floor, const Block& block,
            double (*answer)[kLanes], bool* stands) {
  const Tag d;
  // Explained² is largest where the projection P(u) turns: Newton on P'.
  const double* c = block.projected + row;
  Vec u = set(0), moved = set(1), bend = set(0);
  for (int pass = 0; pass < 4; ++pass) {
    Vec slope = hn::Mul(set(kCoefficients - 1), hn::Load(d, c + (kCoefficients - 1) * kBlock));
    bend = set(0);
    for (int p = kCoefficients - 2; p >= 1; --p) {
      bend = hn::MulAdd(bend, u, slope);
      slope = hn::MulAdd(slope, u, hn::Mul(set(p), hn::Load(d, c + p * kBlock)));
    }
    moved = hn::Div(slope, bend);
    const Vec next = hn::Min(hn::Max(hn::Sub(u, moved), set(-1.1)), set(1.1));
    u = next;
  }
  const Vec projected = polynomial(c, u);
  const Vec a = hn::Mul(projected, polynomial(block.inverse_norm + row, u));
  const Vec mean = polynomial(block.mean + row, u);
  const Vec beta = exp(hn::MulAdd(u, set(grid.half), hn::Load(d, block.centre + row)));
  const Vec rate = hn::Mul(beta, set(1.0 / grid.unit));
  const Vec lift = hn::Mul(rate, set(grid.origin));
  const Vec y_mean = hn::Load(d, block.sum + row), squares = hn::Load(d, block.squares + row);
  const Vec floor = hn::NegMulAdd(a, mean, y_mean);
  const Vec rss = hn::NegMulAdd(projected, projected, squares);
  hn::StoreU(floor, d, answer[0]);
  hn::StoreU(hn::Mul(a, exp(lift)), d, answer[1]);
  hn::StoreU(rate, d, answer[2]);
  hn::StoreU(hn::Sqrt(hn::Mul(rss, set(1.0 / (grid.n - 3)))), d, answer[3]);

  // What stands: a maximum inside its cell that Newton has reached, a decay that bends, a residual
  // sum that keeps its digits, and no faster decay that could do better: that would leave all of
  // what the tail varies, but for what it leaks into it, be its scale as much as twice this one's.
  auto good = hn::And(hn::Le(hn::Abs(u), set(1.0)), hn::Lt(hn::Abs(moved), set(1e-5)));
  good = hn::And(good, hn::Lt(hn::Mul(projected, bend), set(0)));
  good = hn::And(good, hn::Gt(beta, set(0.5)));
  good = hn::And(good, hn::Gt(rss, hn::Mul(set(1e-8), squares)));
  const Vec leak = hn::Mul(set(2.0 * grid.leak), hn::Abs(a));
  good =
      hn::And(good, hn::Lt(hn::Add(hn::Sqrt(rss), leak), hn::Sqrt(hn::Load(d, block.tail + row))));
  good = hn::And(good, hn::Lt(hn::Abs(lift), set(600.0)));
  good = hn::And(good, hn::Ge(floor, set(lowest_floor)));
  good = hn::And(good, hn::Gt(squares, hn::Mul(set(1e-8 * grid.n), hn::Mul(y_mean, y_mean))));
  good = hn::And(good, hn::And(hn::Gt(squares, set(1e-200)), hn::Lt(squares, set(1e200))));
  HWY_ALIGN double flags[kLanes];
  hn::Store(hn::IfThenElseZero(good, set(1.0)), d, flags);
  for (int lane = 0; lane < kLanes; ++lane) stands[lane] = flags[lane] != 0;
}

void fit_rows(const LowRankGrid& grid, const double* losses, ptrdiff_t stride, int rows,
              double lowest_floor, const LowRankAnswers& out) {
  Block block{};  // lanes past the last row hold whatever was there
  for (int from = 0; from < rows; from += kBlock) {
    const int here = rows - from < kBlock ? rows - from : kBlock;
    const double* first = losses + from * stride;
    project(grid.columns.data(), grid.n, first, stride, 1, here, block.z);
    for (int row = 0; row < here; ++row) {
      const double* y = first + row * stride;
      const double pivot = y[grid.n - 1];
      const Moments head = moments(y, 0, grid.tail, pivot),
                    tail = moments(y, grid.tail, grid.n, pivot);
      const double sum = head.sum + tail.sum;
      block.sum[row] = pivot + sum / grid.n;
      block.squares[row] = head.squares + tail.squares - sum * sum / grid.n;
      block.tail[row] = tail.squares - tail.sum * tail.sum / (grid.n - grid.tail);
      const int cell = best_node(grid, block.z + row * kRank);
      block.plain[row] = cell > 0 && cell < kCells - 1;
      take_cell(grid, block.plain[row] ? cell : 1, row, block);
    }
    for (int row = 0; row < here; row += kLanes) {
      double answer[4][kLanes];
      bool stands[kLanes];
      finish(grid, row, lowest_floor, block, answer, stands);
      for (int lane = 0; lane < kLanes && row + lane < here; ++lane) {
        const int at = from + row + lane;
        out.floor[at] = answer[0][lane];
        out.scale[at] = answer[1][lane];
        out.rate[at] = answer[2][lane];
        out.sigma[at] = answer[3][lane];
        out.stands[at] = stands[lane] && block.plain[row + lane] ? 1 : 0;
      }
    }
  }
}

LowRankKernels low_rank_table() { return {columns, gram, fit_rows}; }

}  // namespace glidepath::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace glidepath::detail {

HWY_EXPORT(low_rank_table);

const LowRankKernels& low_rank_kernels(Isa isa) {
  static const LowRankKernels best = HWY_DYNAMIC_DISPATCH(low_rank_table)();
  static const LowRankKernels baseline = HWY_STATIC_DISPATCH(low_rank_table)();
  return isa == Isa::best ? best : baseline;
}

}  // namespace glidepath::detail
#endif
