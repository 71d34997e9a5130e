// SPDX-License-Identifier: Apache-2.0
#include "forecast/ended_runs.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "forecast/gaps.hpp"
#include "forecast/level.hpp"
#include "forecast/passages.hpp"

namespace glidepath::detail {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kTarget = 0.5;

/// 2 (step / pace)^-rate at 10, 20, 30 ..., until the first value at the target or `last` step.
Trace run_of(double pace, double rate = 0.3, double last = 1e5, double noise = 0.0,
             std::uint64_t seed = 1) {
  Trace run;
  const Rng rng{seed};
  for (int i = 1; 10.0 * i <= last; ++i) {
    run.step.push_back(10 * i);
    run.loss.push_back(2 * std::pow(10 * i / pace, -rate) * std::exp(noise * rng.normal(1, i)));
    if (run.loss.back() <= kTarget) break;
  }
  return run;
}

/// What is seen of a run until a share of its steps.
Trace seen_of(const Trace& run, double share) {
  Trace seen = run;
  const auto points = static_cast<std::size_t>(share * static_cast<double>(run.step.size()));
  seen.step.resize(points);
  seen.loss.resize(points);
  return seen;
}

EndLaw law_of(const std::vector<EndLaw>& laws) { return laws.empty() ? EndLaw{} : laws.front(); }

EndLaw law_at(const Trace& live, const std::vector<Trace>& past) {
  return law_of(laws_of_end(live.view(), kTarget, {}, PastRuns::unlearned(past)));
}

/// Runs of paces 10 to 12, alike but for a little noise.
std::vector<Trace> alike_runs(int count) {
  std::vector<Trace> past;
  for (int i = 0; i < count; ++i) {
    past.push_back(run_of(10 + 2.0 * i / count, 0.3, 1e5, 0.005, 10 + static_cast<unsigned>(i)));
  }
  return past;
}

double error_of(const EndLaw& law, const Trace& whole) {
  return std::abs(std::log(law.quantile(0.5) / whole.step.back()));
}

TEST(EndedRunsTest, IdenticalPastRunsGiveANarrowLawAtTheirEnd) {
  const Trace whole = run_of(10);
  const EndLaw law = law_at(seen_of(whole, 0.4), std::vector<Trace>(8, whole));
  EXPECT_EQ(law.runs, 8);
  EXPECT_LT(error_of(law, whole), 0.02);
  EXPECT_LT(std::log(law.quantile(0.9) / law.quantile(0.1)), 0.15);
  EXPECT_GT(law.weight(0.3), 0.95);
  EXPECT_EQ(law.arrives, 1);
}

TEST(EndedRunsTest, ALawIsADistributionOverTheStepsAfterNow) {
  const Trace whole = run_of(11, 0.3, 1e5, 0.005, 5);
  const Trace live = seen_of(whole, 0.5);
  const EndLaw law = law_at(live, alike_runs(6));
  EXPECT_EQ(law.cdf(live.step.back()), 0);
  EXPECT_EQ(law.cdf(0.5 * live.step.back()), 0);
  double before = 0;
  for (double step = live.step.back(); step < 1e5; step *= 1.1) {
    EXPECT_GE(law.cdf(step), before);
    before = law.cdf(step);
  }
  EXPECT_GT(before, 0.99);
  for (const double p : {0.1, 0.5, 0.9}) EXPECT_NEAR(law.cdf(law.quantile(p)), p, 1e-9);
}

TEST(EndedRunsTest, ASlowRunEndsLaterThanItsPastRuns) {
  const Trace slow = run_of(20), fast = run_of(6);
  EXPECT_LT(error_of(law_at(seen_of(slow, 0.5), alike_runs(10)), slow), 0.2);
  EXPECT_LT(error_of(law_at(seen_of(fast, 0.5), alike_runs(10)), fast), 0.2);
}

TEST(EndedRunsTest, StepsInAnotherUnitDoNoHarm) {
  const Trace whole = run_of(11);
  std::vector<Trace> past = alike_runs(8);
  for (std::size_t i = 0; i < past.size(); i += 2) {
    for (double& step : past[i].step) step *= 512;
  }
  EXPECT_LT(error_of(law_at(seen_of(whole, 0.5), past), whole), 0.1);
}

TEST(EndedRunsTest, OneOddRunDoesNoHarm) {
  const Trace whole = run_of(11, 0.3, 1e5, 0.005, 5);
  std::vector<Trace> past = alike_runs(9);
  const Trace live = seen_of(whole, 0.5);
  const EndLaw without = law_at(live, past);
  Trace odd = run_of(11);  // as the others until the middle, then ten times as slow
  for (std::size_t i = odd.step.size() / 2; i < odd.step.size(); ++i) {
    odd.step[i] += 9 * (odd.step[i] - odd.step[odd.step.size() / 2 - 1]);
  }
  past.push_back(odd);
  const EndLaw with = law_at(live, past);
  EXPECT_NEAR(with.location, without.location, 0.05);
  EXPECT_LT(error_of(with, whole), 0.1);
}

TEST(EndedRunsTest, UnlikeRunsGetLittleWeight) {
  const Trace live = seen_of(run_of(10, 0.3), 0.5);
  std::vector<Trace> past;
  for (int i = 0; i < 12; ++i) {
    Trace other;  // falls at once to where the live run stood halfway, then rests for long
    for (int k = 1; k <= 400; ++k) {
      other.step.push_back(k + 0.05 * i);
      other.loss.push_back(k < 8     ? 3 - 0.3 * k
                           : k < 300 ? 0.7 - 1e-5 * k
                                     : 0.7 - 0.002 * (k - 300));
    }
    past.push_back(other);
  }
  const EndLaw law = law_at(live, past);
  EXPECT_EQ(law.runs, 12);
  EXPECT_LT(law.weight(0.5), 0.2);
  EXPECT_GT(law_at(seen_of(past[0], 0.85), past).weight(0.5), 0.9);
}

TEST(EndedRunsTest, RunsThatNeverStoodWhereTheLiveOneStandsTeachNothing) {
  const Trace live = seen_of(run_of(10), 0.5);
  for (const double level : {5.0, 0.1}) {
    Trace other = run_of(10);
    other.loss.assign(other.step.size(), level);
    EXPECT_EQ(law_at(live, std::vector<Trace>(12, other)).runs, 0);
    EXPECT_EQ(law_at(live, std::vector<Trace>(12, other)).weight(0.5), 0);
  }
}

TEST(EndedRunsTest, PastRunsThatNeverMetTheTargetGiveNoLaw) {
  const Trace live = seen_of(run_of(10), 0.3);
  const EndLaw law = law_at(live, std::vector<Trace>(5, run_of(10, 0.3, 600)));
  EXPECT_EQ(law.runs, 0);
  EXPECT_EQ(law.weight(1), 0);
}

TEST(EndedRunsTest, ARunThatStoppedEarlyIsNoEvidenceOfNever) {
  const Trace whole = run_of(11, 0.3, 1e5, 0.005, 5), live = seen_of(whole, 0.5);
  std::vector<Trace> stopped = alike_runs(6), spent = stopped;
  for (int i = 0; i < 6; ++i) {
    stopped.push_back(run_of(11, 0.3, 1.1 * live.step.back()));
    Trace flat = run_of(11, 0.3, 1.1 * live.step.back());  // stays there for long
    const double level = flat.loss.back();
    for (int k = 1; k < 1000; ++k) {
      flat.step.push_back(flat.step.back() + 10);
      flat.loss.push_back(level);
    }
    spent.push_back(flat);
  }
  EXPECT_GT(law_at(live, stopped).arrives, 0.95);
  EXPECT_NEAR(law_at(live, spent).arrives, 7.0 / 13.1, 0.05);
}

TEST(EndedRunsTest, RunsThatDivergedNeverArrive) {
  const Trace live = seen_of(run_of(10), 0.5);
  Trace diverged = seen_of(run_of(10), 0.7);
  diverged.loss.back() = kNaN;
  EXPECT_EQ(law_at(live, std::vector<Trace>(5, diverged)).runs, 0);
  std::vector<Trace> past(5, diverged);
  past.resize(10, run_of(10));
  EXPECT_NEAR(law_at(live, past).arrives, 6.0 / 11.1, 0.01);
}

TEST(EndedRunsTest, APastRunThatEndsBetweenTwoOfItsNumbersHasNotFailed) {
  // An evaluation every third row: the rows after the last one say nothing.
  const auto in_rows = [](const Trace& run) {
    Trace rows;
    for (std::size_t i = 0; i < run.step.size(); ++i) {
      for (const double part : {0.0, 3.0, 6.0}) {
        rows.step.push_back(run.step[i] + part);
        rows.loss.push_back(part == 0 ? run.loss[i] : kNaN);
      }
    }
    return rows;
  };
  const Trace stopped = run_of(10, 0.3, 800);
  ASSERT_GT(stopped.loss.back(), kTarget);
  const Trace live = seen_of(run_of(10), 0.5);
  std::vector<Trace> past(5, in_rows(run_of(10)));
  past.resize(8, in_rows(stopped));
  EXPECT_GT(law_at(live, past).arrives, 0.95);
  const auto last = static_cast<double>(run_of(10).loss.size());
  EXPECT_EQ(*Passages(past[0]).points_until(run_of(10).loss.back(), ReachedBy::curve),
            3 * last - 2);
  past.back().loss.insert(past.back().loss.end(), 3, kNaN);
  for (int i = 1; i <= 3; ++i) past.back().step.push_back(past.back().step.back() + i);
  EXPECT_LT(law_at(live, past).arrives, 0.95);
}

TEST(EndedRunsTest, AMetricThatRisesGivesTheSameLaw) {
  const std::vector<Trace> past = alike_runs(5);
  const Trace live = seen_of(run_of(11), 0.5);
  const auto flipped = [](Trace run) {
    run.direction = Direction::max;
    for (double& loss : run.loss) loss = -loss;
    return run;
  };
  std::vector<Trace> risen;
  for (const Trace& run : past) risen.push_back(flipped(run));
  const Trace live_risen = flipped(live);
  const EndLaw a = law_at(live, past);
  const EndLaw b = law_of(laws_of_end(live_risen.view(), -kTarget, {.direction = Direction::max},
                                      PastRuns::unlearned(risen)));
  EXPECT_EQ(a.location, b.location);
  EXPECT_EQ(a.scale, b.scale);
  EXPECT_EQ(a.arrives, b.arrives);
}

TEST(EndedRunsTest, FewerPastRunsGiveAWiderLawOfLessWeight) {
  const Trace live = seen_of(run_of(11, 0.3, 1e5, 0.005, 5), 0.5);
  double width = 1e9, weight = 0;
  for (const int count : {1, 3, 12}) {
    const EndLaw law = law_at(live, alike_runs(count));
    EXPECT_EQ(law.runs, count);
    EXPECT_LT(std::log(law.quantile(0.9) / law.quantile(0.1)), width);
    EXPECT_GT(law.weight(0.5), weight);
    width = std::log(law.quantile(0.9) / law.quantile(0.1));
    weight = law.weight(0.5);
  }
  EXPECT_EQ(law_at(live, {}).runs, 0);
}

TEST(EndedRunsTest, ARunThatOutlivesItsPastRunsIsStillExpected) {
  Trace live = run_of(10);
  live.loss.back() = 0.51;
  for (int i = 0; i < 500; ++i) {
    live.step.push_back(live.step.back() + 10);
    live.loss.push_back(0.51);
  }
  const EndLaw law = law_at(live, std::vector<Trace>(8, run_of(10)));
  EXPECT_GT(law.quantile(0.5), live.step.back());
  EXPECT_TRUE(std::isfinite(law.quantile(0.9)));
}

TEST(EndedRunsTest, ManyPastRunsUseTheNearest) {
  const Trace whole = run_of(11, 0.3, 1e5, 0.005, 5);
  const EndLaw law = law_at(seen_of(whole, 0.5), alike_runs(100));
  EXPECT_EQ(law.runs, 24);
  EXPECT_LT(error_of(law, whole), 0.05);
}

/// Noise around a falling curve, now and then no number.
Trace noisy_run(std::uint64_t seed, int points, Direction direction) {
  const Rng rng{seed};
  Trace run;
  run.direction = direction;
  for (int i = 0; i < points; ++i) {
    const double y = 1 / std::sqrt(1.0 + i) + 0.2 * rng.normal(1, i);
    run.step.push_back(3.0 * i + 1);
    run.loss.push_back(rng.uniform(2, i) < 0.1 ? kNaN : direction == Direction::max ? -y : y);
  }
  return run;
}

/// Reads every point, as the passages do once.
std::optional<std::size_t> points_until(const Trace& run, double target, ReachedBy reached_by) {
  const double sign = run.direction == Direction::max ? -1 : 1;
  Level level{.target = target, .reached_by = reached_by};
  for (std::size_t i = 0; i < run.step.size(); ++i) {
    const double y = sign * run.loss[i];
    if (level.add(y) || (i == last_number(run.loss) && y <= target)) return i + 1;
  }
  return std::nullopt;
}

TEST(PassagesTest, SayWhenARunWasAtAnyTargetAsReadingAllOfItDoes) {
  for (const Direction direction : {Direction::min, Direction::max}) {
    for (const int points : {1, 2, 5, 12, 40, 300, 900}) {
      const Trace run = noisy_run(static_cast<unsigned>(points), points, direction);
      const Passages passages(run);
      for (const ReachedBy by : {ReachedBy::curve, ReachedBy::point}) {
        for (double target = -0.6; target < 1.2; target += 0.013) {
          EXPECT_EQ(passages.points_until(target, by), points_until(run, target, by)) << target;
        }
        const double hardest = passages.hardest(by);
        if (std::isinf(hardest)) continue;
        EXPECT_TRUE(points_until(run, hardest, by).has_value());
        EXPECT_FALSE(points_until(run, std::nextafter(hardest, -1e9), by).has_value());
      }
    }
  }
}

TEST(PassagesTest, SayAtWhichStepTheBestValuePassedALevel) {
  Trace run;
  run.step = {1, 2, 4, 8, 16};
  run.loss = {4, 3, 5, 1, 2};
  const Passages passages(run);
  EXPECT_DOUBLE_EQ(passages.passed(3.5, 5), std::log(2) / 2);
  EXPECT_DOUBLE_EQ(passages.passed(2, 5), 0.5 * (std::log(4) + std::log(8)));
  EXPECT_TRUE(std::isnan(passages.passed(2, 3)));    // within the first three it was not there
  EXPECT_TRUE(std::isnan(passages.passed(4.5, 5)));  // it began beyond
  EXPECT_TRUE(std::isnan(passages.passed(0.5, 5)));
}

TEST(PassagesTest, AreReadOnceForAllCopiesOfThePastRuns) {
  const PastRuns past = PastRuns::unlearned(alike_runs(3));
  const PastRuns copy = past;
  EXPECT_EQ(passages_of(copy).size(), 3);
  EXPECT_EQ(passages_of(copy).data(), passages_of(past).data());
  EXPECT_TRUE(passages_of(PastRuns()).empty());
}

TEST(EndedRunsTest, NoTargetIsLikelierThanAnEasierOneAtWhichAPastRunEnded) {
  // The past runs flatten, at .5 the best of them; the live run falls on as if it never would.
  std::vector<Trace> traces(6);
  Trace live;
  for (int step = 10; step <= 3000; step += 10) {
    for (int i = 0; i < 6; ++i) {
      traces[i].step.push_back(step);
      traces[i].loss.push_back(0.5 + 0.02 * i + 2 * std::exp(-step / (200.0 + 10 * i)));
    }
    if (step > 500) continue;
    live.step.push_back(step);
    live.loss.push_back(2 * std::pow(step / 10.0, -0.3));
  }
  const PastRuns past = PastRuns::unlearned(traces);
  const auto never = [&](double target, const PastRuns* with) {
    return reach(live.view(), target, 3000, {.past = with}).prob_never;
  };
  EXPECT_GT(never(traces[0].loss.back(), &past), 0.3);
  for (double target = 0.49; target > 0.35; target -= 0.01) {
    EXPECT_GT(never(target, &past), never(traces[0].loss.back(), &past) - 0.02) << target;
  }
  EXPECT_LT(never(0.49, nullptr), 0.1);  // as they had no say where none of them came
}

TEST(EndedRunsTest, ATargetThatAllPastRunsCameToHasOneLaw) {
  const std::vector<Trace> past = alike_runs(6);
  const Trace live = seen_of(run_of(11), 0.5);
  EXPECT_EQ(laws_of_end(live.view(), kTarget, {}, PastRuns::unlearned(past)).size(), 1);
  EXPECT_EQ(laws_of_end(live.view(), kTarget / 2, {}, PastRuns::unlearned(past)).size(), 7);
  EXPECT_EQ(laws_of_end(live.view(), kTarget / 2, {}, PastRuns::unlearned(alike_runs(60))).size(),
            9);
}

}  // namespace
}  // namespace glidepath::detail
