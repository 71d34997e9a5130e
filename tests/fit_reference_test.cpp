// SPDX-License-Identifier: Apache-2.0
// The closed-form engine against Ceres from eight starts, on real curves.
#include "glidepath/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/parallel.hpp"
#include "needs_ceres.hpp"

namespace glidepath {
namespace {

/// Residual sum of the curve as a user would compute it, in long double.
long double residual_sum(const Trace& trace, const Fit& fit) {
  long double sum = 0;
  const std::size_t from = trace.step.size() - static_cast<std::size_t>(fit.points);
  for (std::size_t i = from; i < trace.step.size(); ++i) {
    const long double r = trace.loss[i] - evaluate(fit.curve, trace.step[i]);
    sum += r * r;
  }
  return sum;
}

/// Every finite curve of ../shared, or every 40th without GLIDEPATH_ALL_CURVES=1.
std::vector<Trace> real_curves() {
  std::vector<Trace> kept;
  const std::filesystem::path folder = GLIDEPATH_SHARED "/data/curves";
  if (!std::filesystem::is_directory(folder)) return kept;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".gz") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  const char* all = std::getenv("GLIDEPATH_ALL_CURVES");
  const std::size_t stride = all != nullptr && std::string(all) == "1" ? 1 : 40;
  for (const auto& file : files) {
    const std::vector<Trace> traces = read_long_csv(file);
    for (std::size_t i = 0; i < traces.size(); i += stride) {
      kept.push_back(traces[i]);
      kept.back().name = file.stem().string() + "/" + traces[i].name;
    }
  }
  return kept;
}

TEST(FitReferenceTest, NoSilentWrongOptimumOnRealCurves) {
  NEEDS_CERES;
  const std::vector<Trace> traces = real_curves();
  if (traces.empty()) GTEST_SKIP() << "no ../shared/data/curves";
  std::mutex mutex;
  std::vector<std::string> worse, better, silent;
  int compared = 0;
  const auto n = static_cast<std::ptrdiff_t>(traces.size());
  detail::for_each_block(n, 1, {}, [&](std::ptrdiff_t i, std::ptrdiff_t) {
    for (const Family family : kFamilies) {
      const Trace& trace = traces[i];
      const Fit ours = fit(trace.view(), {.family = family});
      if (ours.status == FitStatus::not_finite || ours.status == FitStatus::too_few_points ||
          ours.status == FitStatus::flat) {
        continue;
      }
      const Fit reference =
          fit(trace.view(), {.family = family, .solver = Solver::ceres, .starts = 8});
      const double ratio = ours.rss / reference.rss - 1.0;
      double scale = 0;
      for (const double y : trace.loss) scale += y * y;
      const auto seen = static_cast<double>(residual_sum(trace, ours));
      char line[256];
      std::snprintf(line, sizeof line, "%-9s %+.2e %s (%s, n %d)", name(family).data(), ratio,
                    trace.name.c_str(), name(ours.status).data(), ours.points);
      const std::lock_guard lock(mutex);
      ++compared;
      // A residual sum of losses of many orders has no nine digits in double: then the curves
      // decide.
      if (ours.rss - reference.rss > 1e-9 * reference.rss + 1e-26 * scale &&
          seen > static_cast<double>(residual_sum(trace, reference)) * (1 + 1e-9)) {
        worse.push_back(line);
        for (const Fit* f : {&ours, &reference}) {
          char more[256];
          std::snprintf(more, sizeof more, "    rss %.12g  %g %g %g %g", f->rss,
                        f->curve.parameters[0], f->curve.parameters[1], f->curve.parameters[2],
                        f->curve.parameters[3]);
          worse.back() += std::string("\n") + more;
        }
      }
      if (ratio < -1e-9) better.push_back(line);
      // what is reported is what the curve gives, up to the digits that floor + scale keep
      if (!(std::abs(seen - ours.rss) <= 1e-4 * ours.rss + 1e-20 * scale)) silent.push_back(line);
    }
  });
  std::ranges::sort(worse);
  std::printf("%d fits compared; Ceres from eight starts is worse by more than 1e-9 in %zu\n",
              compared, better.size());
  for (const std::string& line : worse) std::printf("worse: %s\n", line.c_str());
  for (const std::string& line : silent) std::printf("residuals disagree: %s\n", line.c_str());
  EXPECT_TRUE(worse.empty()) << worse.size() << " fits end above Ceres";
  EXPECT_TRUE(silent.empty()) << silent.size() << " fits report another residual sum";
}

}  // namespace
}  // namespace glidepath
