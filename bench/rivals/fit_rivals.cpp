// SPDX-License-Identifier: Apache-2.0
// Fits the same curves with glidepath and with others and prints one JSON object a line:
//   {"what": ..., "family": ..., "n": ..., "per_second": ..., "error": ...}
// Thread CPU time, median of interleaved rounds; what says "threads" is the shortest of many turns
// by the wall clock, which other work on the machine can only lengthen. Batches on shared steps
// hold the curves over and over, 10 240 in all. Error: largest relative parameter error against
// Newton in long double. Usage: fit_rivals CURVES.bin, where the file holds, as doubles, family (0
// pow3, 1 exp3, 2 pow4), n, m, the n steps, the m rows of losses.
#include "glidepath/curve.hpp"
#include "glidepath/eigen.hpp"
#include "glidepath/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <ceres/autodiff_cost_function.h>
#include <ceres/problem.h>
#include <ceres/solver.h>
#include <ceres/tiny_solver.h>

#include "common/parallel.hpp"

#ifdef GLIDEPATH_HAS_CMINPACK
#include <cminpack.h>
#endif

namespace {

using glidepath::Family;
using Parameters = std::array<double, 4>;  // floor, scale, rate, shift

double now(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Curves {
  Family family = Family::pow3;
  int n = 0, m = 0, count = 3;
  std::vector<double> t, log_t;
  glidepath::EigenRows own_t;  // t once for every curve
  glidepath::EigenRows y;
  glidepath::EigenRows many;  // y over and over

  const double* row(int i) const { return y.data() + static_cast<std::ptrdiff_t>(i) * n; }
};

/// φ at one point for any number type, and the start all iterative solvers share.
template <class T>
T basis(const Curves& c, int i, const T* p) {
  using std::exp;
  using std::log;
  if (c.family == Family::exp3) return exp(-p[2] * c.t[i]);
  if (c.family == Family::pow4) return exp(-p[2] * log(c.t[i] + p[3]));
  return exp(-p[2] * c.log_t[i]);
}

Parameters start(const Curves& c, int i) {
  Parameters p{c.row(i)[c.n - 1], 1.0, c.family == Family::exp3 ? 3.0 / c.n : 0.5, 1.0};
  p[1] = (c.row(i)[0] - p[0]) / basis(c, 0, p.data());
  return p;
}

/// Residuals and, unless null, derivatives in the layout [point * by_point + parameter *
/// by_column].
void residuals(const Curves& c, const double* y, const double* p, double* r, double* jacobian,
               int by_point, int by_column) {
  for (int i = 0; i < c.n; ++i) {
    const double u = c.family == Family::pow4 ? c.t[i] + p[3] : c.t[i];
    const double l = c.family == Family::exp3   ? c.t[i]
                     : c.family == Family::pow4 ? std::log(u)
                                                : c.log_t[i];
    const double f = std::exp(-p[2] * l);
    if (r != nullptr) r[i] = p[0] + p[1] * f - y[i];
    if (jacobian == nullptr) continue;
    double* j = jacobian + static_cast<std::ptrdiff_t>(i) * by_point;
    j[0] = 1.0;
    j[by_column] = f;
    j[2 * by_column] = -p[1] * f * l;
    if (c.family == Family::pow4) j[3 * by_column] = -p[1] * p[2] * f / u;
  }
}

template <int kCount>
struct OneResidual {
  const Curves& c;
  int i;
  double y;
  template <class T>
  bool operator()(const T* p, T* r) const {
    *r = p[0] + p[1] * basis(c, i, p) - y;
    return true;
  }
};

/// What a user writes first: a residual block a point, default tolerances.
template <int kCount>
Parameters by_ceres(const Curves& c, int i) {
  Parameters p = start(c, i);
  ceres::Problem problem;
  for (int k = 0; k < c.n; ++k) {
    problem.AddResidualBlock(new ceres::AutoDiffCostFunction<OneResidual<kCount>, 1, kCount>(
                                 new OneResidual<kCount>{c, k, c.row(i)[k]}),
                             nullptr, p.data());
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  options.max_num_iterations = 100;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return p;
}

template <int kCount>
struct Tiny {
  using Scalar = double;
  enum { NUM_RESIDUALS = Eigen::Dynamic, NUM_PARAMETERS = kCount };
  const Curves& c;
  const double* y;
  int NumResiduals() const { return c.n; }
  bool operator()(const double* p, double* r, double* jacobian) const {
    residuals(c, y, p, r, jacobian, 1, c.n);
    return true;
  }
};

template <int kCount>
Parameters by_tiny_solver(const Curves& c, int i) {
  static thread_local ceres::TinySolver<Tiny<kCount>> solver;
  solver.options = typename ceres::TinySolver<Tiny<kCount>>::Options();
  solver.options.max_num_iterations = 100;
  solver.options.gradient_tolerance = 1e-14;
  solver.options.parameter_tolerance = 1e-12;
  solver.options.function_tolerance = 1e-14;
  const Parameters from = start(c, i);
  Eigen::Matrix<double, kCount, 1> x;
  for (int k = 0; k < kCount; ++k) x[k] = from[k];
  solver.Solve(Tiny<kCount>{c, c.row(i)}, &x);
  Parameters p{};
  for (int k = 0; k < kCount; ++k) p[k] = x[k];
  return p;
}

#ifdef GLIDEPATH_HAS_CMINPACK
Parameters by_cminpack(const Curves& c, int i) {
  struct Context {
    const Curves& c;
    const double* y;
  } context{c, c.row(i)};
  static thread_local std::vector<double> r, jacobian, work;
  r.resize(c.n);
  jacobian.resize(static_cast<std::size_t>(c.n) * c.count);
  work.resize(5 * c.count + c.n);
  int pivots[4];
  Parameters p = start(c, i);
  lmder1(
      [](void* data, int, int, const double* x, double* f, double* j, int columns, int flag) {
        const auto& at = *static_cast<Context*>(data);
        residuals(at.c, at.y, x, flag == 1 ? f : nullptr, flag == 2 ? j : nullptr, 1, columns);
        return 0;
      },
      &context, c.n, c.count, p.data(), r.data(), jacobian.data(), c.n, 1.49012e-8, pivots,
      work.data(), static_cast<int>(work.size()));
  return p;
}
#endif

Parameters by_glidepath(const Curves& c, int i) {
  const glidepath::Fit fit = glidepath::fit(
      {c.t, std::span(c.row(i), static_cast<std::size_t>(c.n))}, {.family = c.family});
  return fit.curve.parameters;
}

/// Newton on all parameters in long double, from a solution: Gauss-Newton steps converge to the
/// stationary point, and a few dozen of them to all digits.
Parameters reference(const Curves& c, int i, Parameters from) {
  const int count = c.count;
  std::array<long double, 4> p{from[0], from[1], from[2], from[3]};
  for (int pass = 0; pass < 60; ++pass) {
    long double h[4][5] = {};
    for (int k = 0; k < c.n; ++k) {
      const long double u = c.family == Family::pow4 ? c.t[k] + p[3] : c.t[k];
      const long double l = c.family == Family::exp3 ? u : std::log(u);
      const long double f = std::exp(-p[2] * l), r = p[0] + p[1] * f - c.row(i)[k];
      const long double d[4] = {1, f, -p[1] * f * l, -p[1] * p[2] * f / u};
      for (int a = 0; a < count; ++a) {
        for (int b = 0; b < count; ++b) h[a][b] += d[a] * d[b];
        h[a][4] -= d[a] * r;
      }
      // second derivatives of φ times the residual: Newton, not Gauss-Newton
      h[1][2] += r * -f * l;
      h[2][1] += r * -f * l;
      h[2][2] += r * p[1] * f * l * l;
      if (count == 4) {
        h[1][3] += r * -p[2] * f / u;
        h[3][1] += r * -p[2] * f / u;
        h[2][3] += r * p[1] * f * (p[2] * l - 1) / u;
        h[3][2] += r * p[1] * f * (p[2] * l - 1) / u;
        h[3][3] += r * p[1] * p[2] * (p[2] + 1) * f / (u * u);
      }
    }
    for (int a = 0; a < count; ++a) {  // elimination with pivots
      int best = a;
      for (int b = a + 1; b < count; ++b) {
        if (std::abs(h[b][a]) > std::abs(h[best][a])) best = b;
      }
      std::swap_ranges(h[a], h[a] + 5, h[best]);
      for (int b = 0; b < count; ++b) {
        if (b == a) continue;
        const long double factor = h[b][a] / h[a][a];
        for (int k = a; k < 5; ++k) h[b][k] -= factor * h[a][k];
      }
    }
    long double moved = 0;
    for (int a = 0; a < count; ++a) {
      const long double step = h[a][4] / h[a][a];
      p[a] += step;
      moved = std::max(moved, std::abs(step / p[a]));
    }
    if (moved < 1e-17L) break;
  }
  return {static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2]),
          static_cast<double>(p[3])};
}

struct Rival {
  std::string what;
  std::function<void(const Curves&, int count, std::vector<Parameters>&)> run;
  bool batch = false;  // runs on `many`, whatever the count
  int curves = 0;
  std::vector<double> seconds{};
  double error = 0;
};

Rival each(std::string what, Parameters (*fit)(const Curves&, int)) {
  return {std::move(what), [fit](const Curves& c, int count, std::vector<Parameters>& out) {
            for (int i = 0; i < count; ++i) out[i] = fit(c, i);
          }};
}

void columns_to(const glidepath::FitBatch& columns, std::vector<Parameters>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (int k = 0; k < 4; ++k) {
      out[i][k] = columns.parameters[k].empty() ? 0.0 : columns.parameters[k][i];
    }
  }
}

glidepath::FitBatch shared_steps(const Curves& c, int threads) {
  return glidepath::fit_batch(c.t, glidepath::as_rows(c.many), {.family = c.family},
                              {.threads = threads});
}

/// Multiplications and additions in registers, shared out as a batch is: what threads can gain
/// here.
double arithmetic(int threads) {
  constexpr int kItems = 10240;
  std::vector<double> sums(kItems);
  glidepath::detail::for_each_block(
      kItems, 64, {.threads = threads}, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        for (std::ptrdiff_t i = begin; i < end; ++i) {
          Eigen::Array<double, 16, 1> x = Eigen::Array<double, 16, 1>::Constant(1e-3 * i);
          for (int k = 0; k < 100; ++k) x = x * 0.999 + 0.5;
          sums[i] = x.sum();
        }
      });
  return sums.back();
}

void print(const std::string& what, const Curves& c, double seconds, double error) {
  std::printf(
      "{\"what\": \"%s\", \"family\": \"%s\", \"n\": %d, \"per_second\": %.6g, "
      "\"error\": %.3g}\n",
      what.c_str(), std::string(glidepath::name(c.family)).c_str(), c.n, 1.0 / seconds, error);
}

/// One thread and two by turns.
void print_threads(const Curves& c) {
  static double sink = 0;
  struct Turn {
    std::string what;
    std::function<void()> run;
    double shortest = 1e300;
  };
  std::vector<Turn> turns;
  for (const int threads : {1, 2}) {
    const std::string suffix = threads == 1 ? "1 of 2 threads" : "2 threads";
    turns.push_back({"shared steps, " + suffix, [&c, threads] { shared_steps(c, threads); }});
    turns.push_back({"arithmetic alone, " + suffix, [threads] { sink += arithmetic(threads); }});
  }
  for (int turn = 0; turn < 300; ++turn) {
    for (Turn& each : turns) {
      const double begin = now(CLOCK_MONOTONIC);
      each.run();
      each.shortest = std::min(each.shortest, now(CLOCK_MONOTONIC) - begin);
    }
  }
  for (const Turn& each : turns) {
    print(each.what, c, each.shortest / static_cast<double>(c.many.rows()), 0.0);
  }
}

/// What the machine allows a projection of every curve on sixteen columns: Eigen's product.
Rival product() {
  return {"limit: product with 16 columns",
          [](const Curves& at, int, std::vector<Parameters>&) {
            static const glidepath::EigenRows columns = glidepath::EigenRows::Random(at.n, 16);
            static thread_local glidepath::EigenRows out;
            out.noalias() = at.many * columns;
          },
          true};
}

/// And what the memory allows that reads them.
Rival reading() {
  return {"limit: read every loss once",
          [](const Curves& at, int, std::vector<Parameters>& out) {
            out[0][0] = Eigen::Map<const Eigen::ArrayXd>(at.many.data(), at.many.size()).sum();
          },
          true};
}

bool same_bytes(const glidepath::FitBatch& a, const glidepath::FitBatch& b) {
  return a.parameters == b.parameters && a.sigma == b.sigma && a.status == b.status;
}

/// False, with a sentence on stderr, where the file is none.
bool read_curves(const char* path, Curves& c) {
  std::FILE* file = std::fopen(path, "rb");
  double head[3];
  if (file == nullptr || std::fread(head, sizeof(double), 3, file) != 3) {
    std::fprintf(stderr, "fit_rivals: cannot read %s\n", path);
    return false;
  }
  c.family = head[0] == 0 ? Family::pow3 : head[0] == 1 ? Family::exp3 : Family::pow4;
  c.count = c.family == Family::pow4 ? 4 : 3;
  c.n = static_cast<int>(head[1]);
  c.m = static_cast<int>(head[2]);
  c.t.resize(c.n);
  c.y.resize(c.m, c.n);
  if (std::fread(c.t.data(), sizeof(double), c.t.size(), file) != c.t.size() ||
      std::fread(c.y.data(), sizeof(double), static_cast<std::size_t>(c.y.size()), file) !=
          static_cast<std::size_t>(c.y.size())) {
    std::fprintf(stderr, "fit_rivals: %s is too short\n", path);
    return false;
  }
  std::fclose(file);
  for (const double t : c.t) c.log_t.push_back(std::log(t));
  c.own_t = Eigen::Map<const Eigen::RowVectorXd>(c.t.data(), c.n).replicate(c.m, 1);
  c.many.resize(10240, c.n);
  for (int i = 0; i < c.many.rows(); ++i) c.many.row(i) = c.y.row(i % c.m);
  return true;
}

std::vector<Rival> rivals_for(const Curves& c) {
  const bool four = c.count == 4;
  std::vector<Rival> rivals;
  rivals.push_back(each("glidepath fit", by_glidepath));
  rivals.push_back(
      {"glidepath fit_batch, own steps",
       [](const Curves& at, int count, std::vector<Parameters>& out) {
         std::vector<glidepath::TraceView> traces;
         for (int i = 0; i < count; ++i) {
           const double* t = at.own_t.data() + static_cast<std::ptrdiff_t>(i) * at.n;
           traces.push_back({std::span(t, at.t.size()), std::span(at.row(i), at.t.size()), {}});
         }
         const auto fits = glidepath::fit_batch(traces, {.family = at.family}, {.threads = 1});
         for (int i = 0; i < count; ++i) out[i] = fits[i].curve.parameters;
       }});
  rivals.push_back({"glidepath fit_batch, shared steps",
                    [](const Curves& at, int, std::vector<Parameters>& out) {
                      columns_to(shared_steps(at, 1), out);
                    },
                    true});
  rivals.push_back(product());
  rivals.push_back(reading());
  rivals.push_back(
      each("TinySolver analytic, tight", four ? by_tiny_solver<4> : by_tiny_solver<3>));
#ifdef GLIDEPATH_HAS_CMINPACK
  rivals.push_back(each("cminpack lmder1", by_cminpack));
#endif
  rivals.push_back(each("Ceres loop, autodiff, default", four ? by_ceres<4> : by_ceres<3>));
  return rivals;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: fit_rivals CURVES.bin [rounds]\n", stderr);
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  Curves c;
  if (!read_curves(argv[1], c)) return 2;
  if (!same_bytes(shared_steps(c, 1), shared_steps(c, 2))) {
    std::fputs("fit_rivals: two threads give other bytes than one\n", stderr);
    return 1;
  }

  std::vector<Rival> rivals = rivals_for(c);
  std::vector<Parameters> truth(c.m), found(c.m);
  for (int i = 0; i < c.m; ++i) truth[i] = reference(c, i, by_glidepath(c, i));
  for (Rival& rival : rivals) {
    const double begin = now();
    rival.run(c, 2, found);
    const double one = (now() - begin) / 2;
    rival.curves = std::clamp(static_cast<int>(0.05 / one), std::min(8, c.m), c.m);
    if (rival.batch) rival.curves = static_cast<int>(c.many.rows());
  }
  for (int round = 0; round < rounds; ++round) {
    for (Rival& rival : rivals) {
      const int repeats = rival.curves >= c.m ? 3 : 1;
      const double begin = now();
      for (int k = 0; k < repeats; ++k) rival.run(c, rival.curves, found);
      rival.seconds.push_back((now() - begin) / repeats / rival.curves);
      const bool limit = rival.what.starts_with("limit");
      for (int i = 0; !limit && i < std::min(rival.curves, c.m); ++i) {
        for (int k = 0; k < c.count; ++k) {
          const double error = std::abs(found[i][k] / truth[i][k] - 1.0);
          if (!(error <= rival.error)) rival.error = error;
        }
      }
    }
  }
  for (Rival& rival : rivals) {
    std::ranges::sort(rival.seconds);
    print(rival.what, c, rival.seconds[rival.seconds.size() / 2], rival.error);
  }
  if (c.count == 3 && c.n == 200) print_threads(c);
  return 0;
}
