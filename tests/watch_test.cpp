// SPDX-License-Identifier: Apache-2.0
#include "glidepath/watch.hpp"

#include "glidepath/error.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "refusal.hpp"

namespace glidepath {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// 1 + 2 / sqrt(t) with noise of 0.2 %.
double loss_at(int step) {
  static const detail::Rng rng{5};
  return (1 + 2 / std::sqrt(step)) * std::exp(0.002 * rng.normal(1, step));
}

Watch watched(WatchOptions options, int points) {
  Watch watch(std::move(options));
  for (int step = 1; step <= points; ++step) watch.add(step, loss_at(step));
  return watch;
}

std::string refusal(const WatchOptions& options) {
  try {
    const Watch watch(options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(WatchTest, TellsReachedFromWillReachFromNeverFromDiverged) {
  EXPECT_EQ(watched({.target = 1.2, .budget = 1000}, 200).decision().verdict, Verdict::reached);
  const double best = watched({}, 200).state().best_loss;
  EXPECT_EQ(watched({.target = best, .budget = 2000, .alpha = 0.1}, 190).decision().verdict,
            Verdict::will_reach);
  EXPECT_EQ(watched({.target = 0.4, .budget = 400}, 200).decision().verdict, Verdict::never);
  EXPECT_EQ(watched({.target = 1.1, .budget = 1000}, 3).decision().verdict, Verdict::unknown);
  EXPECT_EQ(watched({}, 200).decision().verdict, Verdict::unknown);
  Watch watch = watched({.target = 1.1, .budget = 1000}, 60);
  watch.add(61, kNaN);
  EXPECT_NE(watch.decision().verdict, Verdict::diverged);  // one NaN may be the logger's
  watch.add(62, kInfinity);
  EXPECT_EQ(watch.decision().verdict, Verdict::diverged);
}

TEST(WatchTest, AMetricThatIsLoggedNowAndThenHasNotDivergedUntilItIsMissingForLonger) {
  Watch watch({.target = 1.1, .budget = 4000});
  for (int step = 1; step <= 409; ++step) watch.add(step, step % 10 == 0 ? loss_at(step) : kNaN);
  EXPECT_EQ(watch.state().longest_gap, 9);
  EXPECT_NE(watch.decision().verdict, Verdict::diverged);
  watch.add(410, kInfinity);
  EXPECT_EQ(watch.decision().verdict, Verdict::diverged);
}

TEST(WatchTest, AReasonGivesLossesInSixDigits) {
  Watch spent({.target = 1.0123456789, .budget = 3});
  spent.add(2, 2.0123456789);
  spent.add(3, 2.1123456789);
  EXPECT_EQ(spent.decision().reason,
            "the budget of 3 steps is spent and target 1.01235 was not reached");
  spent.add(4, 1.0123456788);
  EXPECT_EQ(spent.decision().reason, "target 1.01235 was reached at step 4");
  const auto end_of = [](double budget) {
    Watch watch({.target = 1, .budget = budget});
    watch.add(budget, 2);
    return watch.decision().reason;
  };
  const std::string spent_on = " steps is spent and target 1 was not reached";
  EXPECT_EQ(end_of(1), "the budget of 1 step is spent and target 1 was not reached");
  EXPECT_EQ(end_of(999), "the budget of 999" + spent_on);
  EXPECT_EQ(end_of(1000), "the budget of 1 000" + spent_on);
  EXPECT_EQ(end_of(1234567), "the budget of 1 234 567" + spent_on);
  EXPECT_EQ(end_of(1234567.5), "the budget of 1234567.5" + spent_on);
  EXPECT_EQ(end_of(1e200), "the budget of 1e+200" + spent_on);
  Watch climbed;
  for (int step = 1; step <= 12; ++step) climbed.add(step, step < 7 ? 2.0123456789 : 99.123456789);
  EXPECT_EQ(climbed.decision().reason,
            "the last points are around 99.1235, the run began at 2.01235 and its lowest value was "
            "2.01235");
  Watch fell({.direction = Direction::max});
  for (int step = 1; step <= 12; ++step) fell.add(step, step < 7 ? 2.0 : -99.0);
  EXPECT_EQ(fell.decision().reason,
            "the last points are around -99, the run began at 2 and its highest value was 2");
}

TEST(WatchTest, StepsToTheTargetAreThoseOfItsReach) {
  const Watch watch = watched({.target = 1.1, .budget = 2000}, 100);
  const WatchState& s = watch.state();
  const Reach r = reach({s.step, s.loss, s.weight}, 1.1, 2000);
  const Decision d = watch.decision();
  EXPECT_EQ(d.probability, 1 - r.prob_never);
  EXPECT_EQ(d.steps_to_target[0], r.quantile(0.1) - 100);
  EXPECT_EQ(d.steps_to_target[1], r.quantile(0.5) - 100);
  EXPECT_LT(d.steps_to_target[0], d.steps_to_target[1]);
  const Decision reached = watched({.target = 1.5}, 100).decision();
  EXPECT_EQ(reached.probability, 1);
  EXPECT_EQ(reached.steps_to_target[2], 0);
}

TEST(WatchTest, AFewPointsHaveTheFiguresOfTheirReachAndNoVerdict) {
  Trace run;
  for (int step = 1; step <= 200; ++step) {
    run.step.push_back(step);
    run.loss.push_back(loss_at(step));
  }
  const auto past = std::make_shared<const PastRuns>(std::vector<Trace>(5, run));
  const Watch one = watched({.target = 1.2, .budget = 1000, .past = past}, 1);
  const WatchState& s = one.state();
  const Reach r = reach({s.step, s.loss, s.weight}, 1.2, 1000, {.past = past.get()});
  const Decision d = one.decision();
  EXPECT_EQ(d.verdict, Verdict::unknown);
  EXPECT_GT(d.probability, 0.9);
  EXPECT_EQ(d.probability, 1 - r.prob_never);
  EXPECT_EQ(d.steps_to_target[1], r.quantile(0.5) - 1);
  EXPECT_EQ(d.reason, "1 point is too few to tell");

  const Decision none = watched({.target = 1.2, .budget = 1000}, 0).decision();
  EXPECT_EQ(none.verdict, Verdict::unknown);
  EXPECT_EQ(none.probability, 0.5);  // nothing is known
}

/// Finished runs of the kind of loss_at(), a little apart.
std::shared_ptr<const PastRuns> finished_runs() {
  std::vector<Trace> runs(4);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (int step = 10; step <= 1000; step += 10) {
      runs[i].step.push_back(step);
      runs[i].loss.push_back(1 + 2 / std::pow(step, 0.45 + 0.03 * static_cast<double>(i)));
    }
  }
  return std::make_shared<const PastRuns>(PastRuns::unlearned(runs));
}

TEST(WatchTest, ARunWithoutANumberHasTheFiguresOfOneThatHasNotBegun) {
  const WatchOptions options{.target = 1.1,
                             .budget = 1000,
                             .past = finished_runs(),
                             .schedule = Schedule{{0, 1000}, {1e-3, 0}}};
  const Reach begun =
      reach({}, 1.1, 1000, {.schedule = &*options.schedule, .past = options.past.get()});
  EXPECT_GT(1 - begun.prob_never, 0.2);
  Watch watch(options);
  EXPECT_EQ(watch.decision().probability, 1 - begun.prob_never);
  watch.add(10, kNaN);
  EXPECT_NEAR(watch.decision().probability, 1 - begun.prob_never, 0.02);
  Watch restarted(options);
  restarted.add(10, 3);
  restarted.add(20, 2.9);
  restarted.add(5, kNaN);
  EXPECT_NEAR(restarted.decision().probability, 1 - begun.prob_never, 0.02);
}

TEST(WatchTest, StepsToTheTargetCountFromWhereARunStandsBetweenTwoOfItsNumbers) {
  Watch watch({.target = 1.08, .budget = 5000, .reached_by = ReachedBy::point});
  std::vector<double> steps, losses;
  for (int step = 10; step <= 390; step += 10) {
    steps.push_back(step);
    losses.push_back(step % 100 == 0 ? loss_at(step) : kNaN);
    watch.add(steps.back(), losses.back());
  }
  const Reach law = reach({steps, losses}, 1.08, 5000, {.reached_by = ReachedBy::point});
  const Decision decision = watch.decision();
  EXPECT_EQ(decision.probability, 1 - law.prob_never);
  for (std::size_t i = 0; i < kShownLevels.size(); ++i) {
    EXPECT_EQ(decision.steps_to_target[i], law.quantile(kShownLevels[i]) - 390);
  }
}

TEST(WatchTest, ALuckyBatchIsReachedByPointAndNotByTheCurve) {
  for (const ReachedBy reached_by : {ReachedBy::curve, ReachedBy::point}) {
    Watch watch({.target = 1.15, .budget = 2000, .reached_by = reached_by});
    for (int step = 1; step <= 60; ++step) watch.add(step, step == 40 ? 1.1 : loss_at(step));
    const bool by_point = reached_by == ReachedBy::point;
    EXPECT_EQ(watch.decision().verdict == Verdict::reached, by_point) << name(reached_by);
    // 2 / sqrt(178) is 0.15; half of the window later the level is there.
    for (int step = 61; step <= 178 + 10; ++step) watch.add(step, loss_at(step));
    EXPECT_EQ(watch.decision().verdict, Verdict::reached);
    EXPECT_NEAR(watch.state().reached_step, by_point ? 40 : 182, by_point ? 0 : 6);
  }
}

TEST(WatchTest, ReachesATargetAtTheStepThatReachGives) {
  static const detail::Rng rng{7};
  for (const Direction direction : {Direction::min, Direction::max}) {
    for (const int points : {9, 15, 45, 150, 900}) {
      const double sign = direction == Direction::max ? -1 : 1;
      Trace run;
      run.direction = direction;
      Watch watch({.target = sign * 1.4, .budget = 2000, .direction = direction});
      for (int step = 1; step <= points; ++step) {
        const double noise = rng.normal(static_cast<std::uint64_t>(points), step);
        run.step.push_back(step);
        run.loss.push_back(sign *
                           (step % 10 == 3 ? kNaN : 1.5 - 0.2 * step / points + 0.1 * noise));
        watch.add(step, run.loss.back());
      }
      const Reach law = reach(run.view(), sign * 1.4, 2000, {.direction = direction});
      ASSERT_EQ(law.prob_never, 0) << points;
      EXPECT_EQ(watch.state().reached_step, law.step.front()) << points;
    }
  }
}

TEST(WatchTest, ARestartTakesTheLostPointsOutOfTheLevel) {
  const auto run = [](Watch& watch, int from, int to, double loss) {
    for (int step = from; step <= to; ++step) watch.add(step, loss);
  };
  Watch watch({.target = 1, .budget = 2000});
  run(watch, 1, 100, 2);
  run(watch, 101, 105, 1);  // five of the newest nine would be needed, of which it has five
  EXPECT_EQ(watch.state().reached_step, 105);
  run(watch, 99, 100, 2);
  EXPECT_NE(watch.decision().verdict, Verdict::reached);
  run(watch, 101, 104, 1);
  EXPECT_NE(watch.decision().verdict, Verdict::reached);
  run(watch, 105, 105, 1);
  EXPECT_EQ(watch.state().reached_step, 105);
}

TEST(WatchTest, ExcludesNothingBeforeItHasSeenEnough) {
  const auto verdict = [](int points, double budget) {
    Watch watch({.target = 0.01, .budget = budget});
    for (int step = 1; step <= points; ++step) watch.add(step, 0.9 + 1.1 / step);
    return watch.decision().verdict;
  };
  EXPECT_EQ(verdict(35, 100), Verdict::never);
  EXPECT_EQ(verdict(25, 100), Verdict::unknown);  // it still gains
  EXPECT_EQ(verdict(30, 301), Verdict::unknown);  // not a tenth of the budget
  EXPECT_EQ(verdict(60, 601), Verdict::unknown);  // however many points
}

TEST(WatchTest, AnUndecidedRunNamesTheProbabilitiesThatWouldDecide) {
  Watch watch({.target = 0.2, .budget = 1000});
  for (int step = 1; step <= 40; ++step) watch.add(step, 0.1 + 1 / std::sqrt(step));
  const Decision early = watch.decision();
  ASSERT_EQ(early.verdict, Verdict::unknown);
  ASSERT_GT(early.probability, 0.1);
  EXPECT_NE(early.reason.find("; by now never is at most "), std::string::npos) << early.reason;
  EXPECT_NE(early.reason.find(", will_reach at least 98.0 %"), std::string::npos) << early.reason;
}

TEST(WatchTest, ARunThatHasNotLeftItsStartIsExcludedAfterHalfOfItsBudget) {
  const auto watch_plateau = [](Direction direction, double start, double target, int points) {
    Watch watch({.target = target, .budget = 100, .direction = direction});
    for (int step = 1; step <= points; ++step) watch.add(step, start + 1e-3 * (step % 2));
    return watch.decision();
  };
  for (const int points : {12, 30, 49}) {
    const Decision loss = watch_plateau(Direction::min, 2, 0.01, points);
    EXPECT_EQ(loss.verdict, Verdict::unknown);
    EXPECT_NE(loss.reason.find("too near its start"), std::string::npos) << loss.reason;
    EXPECT_EQ(watch_plateau(Direction::max, 0.1, 0.9, points).verdict, Verdict::unknown);
  }
  EXPECT_EQ(watch_plateau(Direction::min, 2, 0.01, 50).verdict, Verdict::never);
}

/// A curve that levels off far above the target, judged after so many of a hundred steps.
Ruling judged(int points, double target) {
  std::vector<double> step, loss;
  for (int i = 1; i <= points; ++i) {
    step.push_back(i);
    loss.push_back(0.9 + 1.1 / i);
  }
  Watch watch({.target = target, .budget = 100});
  return judge(watch, step, loss);
}

TEST(WatchTest, ALogIsStoppedWhereItsRunIsLostAtFiveLooksOrReached) {
  int first = 0;  // of the points at which it is never
  for (int points = 1; first == 0; ++points) {
    ASSERT_LT(points, 100);
    const Ruling ruling = judged(points, 0.01);
    EXPECT_FALSE(ruling.stop) << points;
    if (ruling.decision.verdict == Verdict::never) first = points;
  }
  for (int points = first; points < first + 8; ++points) {
    const Ruling ruling = judged(points, 0.01);
    EXPECT_EQ(ruling.decision.verdict, Verdict::never);
    EXPECT_EQ(ruling.stop, points >= first + 4) << points;
  }
  EXPECT_TRUE(judged(20, 1.0).stop);
  EXPECT_EQ(judged(20, 1.0).decision.verdict, Verdict::reached);
  EXPECT_EQ(judged(0, 1.0).decision.verdict, Verdict::unknown);
}

TEST(WatchTest, AStepThatIsLoggedTwiceDoesNotTakeNeverBack) {
  Watch watch({.target = 0.01, .budget = 100});
  for (int step = 1; step <= 40; ++step) watch.add(step, 0.9 + 1.1 / step);
  EXPECT_EQ(watch.decision().verdict, Verdict::never);
  watch.add(40, 0.9 + 1.1 / 40);
  EXPECT_EQ(watch.decision().verdict, Verdict::never);
}

TEST(WatchTest, MergesOldPointsAndKeepsTheirNumber) {
  const Watch watch = watched({.target = 0.9}, 3000);
  const WatchState& s = watch.state();
  EXPECT_LE(s.step.size(), 128u);
  EXPECT_EQ(s.points, 3000);
  double points = 0;
  for (const double weight : s.weight) points += weight;
  EXPECT_EQ(points, 3000);
  EXPECT_EQ(s.step.back(), 3000);
  EXPECT_EQ(s.loss.back(), loss_at(3000));
}

TEST(WatchTest, AStepBackForgetsWhatCameAfterIt) {
  Watch straight = watched({.target = 0.5, .budget = 500}, 40);
  Watch restarted = watched({.target = 0.5, .budget = 500}, 60);
  for (int step = 41; step <= 80; ++step) {
    straight.add(step, loss_at(step));
    restarted.add(step, loss_at(step));
  }
  EXPECT_EQ(restarted.state().restarts, 1);
  EXPECT_EQ(straight.decision().probability, restarted.decision().probability);
  EXPECT_EQ(straight.decision().verdict, restarted.decision().verdict);
}

TEST(WatchTest, ARestartForgetsTheBestOfWhatIsLost) {
  Watch restarted, straight;
  for (int step = 1; step < 40; ++step) restarted.add(step, 3 - 0.07 * step);
  restarted.add(3, 2.8);
  straight.add(1, 2.93);
  straight.add(2, 2.86);
  straight.add(3, 2.8);
  for (Watch* watch : {&restarted, &straight}) {
    for (int step = 4; step < 30; ++step) watch->add(step, 2.8 + 0.1 * (step - 4));
  }
  EXPECT_EQ(restarted.state().best_loss, 2.8);
  EXPECT_EQ(restarted.decision().verdict, Verdict::diverged);
  EXPECT_EQ(straight.decision().verdict, Verdict::diverged);
}

TEST(WatchTest, ContinuesFromItsStateAndRefusesABrokenOne) {
  Watch watch = watched({.target = 1.05, .budget = 5000}, 700);
  Watch again({.target = 1.05, .budget = 5000});
  again.restore(watch.state());
  watch.add(701, 1.08);
  again.add(701, 1.08);
  EXPECT_EQ(again.decision().probability, watch.decision().probability);
  WatchState broken = watch.state();
  broken.weight.pop_back();
  EXPECT_THROW(again.restore(broken), InputError);
  broken = watch.state();
  broken.lr[0] = -1;
  EXPECT_THROW(again.restore(broken), InputError);
  EXPECT_EQ(again.decision().probability, watch.decision().probability);
}

TEST(WatchTest, AProbabilityIsNeverWrittenAsHundredOrZeroPercent) {
  for (const auto& [alpha, bound] : {std::pair{0.02, "98.0 %"}, std::pair{0.0006, "99.94 %"},
                                     std::pair{0.0004, "99.96 %"}, std::pair{1e-6, "99.9999 %"}}) {
    const Decision d = watched({.target = 1.1, .budget = 1000, .alpha = alpha}, 200).decision();
    ASSERT_EQ(d.verdict, Verdict::unknown);
    EXPECT_TRUE(d.reason.ends_with(std::string("at least ") + bound)) << d.reason;
    EXPECT_EQ(d.reason.find(" 0.0 %"), std::string::npos) << d.reason;
  }
  const Decision never = watched({.target = 0.4, .budget = 400}, 200).decision();
  ASSERT_EQ(never.verdict, Verdict::never);
  ASSERT_GT(never.probability, 0);
  EXPECT_EQ(never.reason.find("probability 0 %"), std::string::npos) << never.reason;
  EXPECT_EQ(never.reason.find(" 0.0 %"), std::string::npos) << never.reason;
  const Decision surely = watched({.target = 0.1, .budget = 400}, 300).decision();
  ASSERT_GT(surely.probability, 0);
  ASSERT_LT(surely.probability, 1e-6);
  EXPECT_NE(surely.reason.find("probability < 0.0001 %, no more"), std::string::npos)
      << surely.reason;
}

TEST(WatchTest, AScheduleForeseesWhatItsDecayBrings) {
  const WatchOptions blind{.target = 1.095, .budget = 300};
  WatchOptions planned = blind;
  planned.schedule = Schedule::wsd(1, 300, {.decay = 0.5});
  EXPECT_GT(watched(planned, 120).decision().probability,
            watched(blind, 120).decision().probability + 0.05);
  // A rate that was used takes the place of the planned one, whatever it was.
  Watch other(planned);
  Watch same(planned);
  for (int step = 1; step <= 120; ++step) {
    other.add(step, loss_at(step), step < 60 ? 2 : 1);
    same.add(step, loss_at(step), 1);
  }
  EXPECT_EQ(same.decision().probability, watched(planned, 120).decision().probability);
  EXPECT_NE(other.decision().probability, same.decision().probability);
}

TEST(WatchTest, BrokenOptionsAreRefusedInASentence) {
  EXPECT_EQ(refusal({.target = kNaN}), "watch: target is nan, expected a number");
  EXPECT_EQ(refusal({.budget = kInfinity}),
            "watch: budget is inf, expected between -1e300 and 1e300");
  EXPECT_EQ(refusal({.target = 1, .budget = -1}), "watch: budget is -1, expected above 0");
  EXPECT_EQ(refusal({.target = 1, .budget = 0}), "watch: budget is 0, expected above 0");
  EXPECT_EQ(refusal({.alpha = 0.5}), "watch: alpha is 0.5, expected above 0 and below 0.5");
  EXPECT_EQ(refusal({.schedule = Schedule{{10, 5}, {1, 1}}}),
            "schedule: step[1] is 5, expected above the 10 before it");
  Trace rising{.name = "accuracy", .step = {1, 2}, .loss = {0, 1}};
  rising.direction = Direction::max;
  const auto past = std::make_shared<const PastRuns>(PastRuns::unlearned({rising}));
  EXPECT_EQ(refusal({.past = past}), "past: 'accuracy' has direction 'max', the live run 'min'");
  for (const auto& [options, name] : {
           std::pair{WatchOptions{.budget = 100}, "budget"},
           std::pair{
               WatchOptions{.past = std::make_shared<const PastRuns>(PastRuns::unlearned({}))},
               "past"},
           std::pair{WatchOptions{.alpha = 0.1}, "alpha"},
           std::pair{WatchOptions{.reached_by = ReachedBy::point}, "reached_by"},
           std::pair{WatchOptions{.schedule = Schedule{{0, 9}, {1, 0}}}, "schedule"},
       }) {
    EXPECT_EQ(refusal(options), "watch: " + std::string(name) + " without target");
  }
  Watch watch;
  EXPECT_THROW(watch.add(kNaN, 1), InputError);
  EXPECT_THROW(watch.add(1, 1, 0.1), InputError);  // without a schedule it has no effect
}

TEST(WatchTest, AStateThatNoWatchCanBeInIsRefused) {
  const Watch whole = watched({.target = 0.5, .budget = 500}, 300);
  const auto refused = [&](auto change) {
    WatchState state = whole.state();
    change(state);
    Watch again({.target = 0.5, .budget = 500});
    try {
      again.restore(state);
    } catch (const InputError& error) {
      EXPECT_EQ(again.state().points, 0);
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_EQ(refused([](WatchState&) {}), "not refused");
  EXPECT_EQ(refused([](WatchState& s) { s.weight = std::vector(s.step.size(), 1e308); }),
            "watch: state has points of weight inf in all, of 300");
  EXPECT_EQ(refused([](WatchState& s) { s.newest.resize(11); }),
            "watch: state has 11 newest losses, expected at most 10");
  EXPECT_EQ(refused([](WatchState& s) { s.last_step = 299; }),
            "watch: state has last step 299, expected 300 to 1e+300");
  EXPECT_EQ(refused([](WatchState& s) { s.last_step = kNaN; }),
            "watch: state has last step nan, expected 300 to 1e+300");
  EXPECT_EQ(refused([](WatchState& s) { s.points = std::numeric_limits<std::int64_t>::max(); }),
            "watch: state has 9223372036854775807 points, expected 0 to 9007199254740992");
  EXPECT_EQ(refused([](WatchState& s) { s.nonfinite = -1; }),
            "watch: state has -1 points that are not finite, expected 0 to 300");
  EXPECT_EQ(refused([](WatchState& s) { s.nonfinite = 1; }),
            "watch: state has points of weight 300 in all, of 299");
  EXPECT_EQ(refused([](WatchState& s) { s.trailing_nonfinite = 1; }),
            "watch: state has 1 points that are not finite at its end, expected 0 to 0");
  EXPECT_EQ(refused([](WatchState& s) { s.trailing_nonfinite = -1; }),
            "watch: state has -1 points that are not finite at its end, expected 0 to 0");
  EXPECT_EQ(refused([](WatchState& s) { s.longest_gap = 1; }),
            "watch: state has 1 points that are not finite in a row, expected 0 to 0");
  EXPECT_EQ(refused([](WatchState& s) { s.restarts = 300; }),
            "watch: state has 300 restarts, expected 0 to 299");
  EXPECT_EQ(refused([](WatchState& s) { s.first_loss = -kInfinity; }),
            "watch: state has the first loss -inf, expected a finite one or nan");
  EXPECT_EQ(refused([](WatchState& s) { s.best_loss = kInfinity; }),
            "watch: state has the best loss inf, expected a finite one or nan");
  EXPECT_EQ(refused([](WatchState& s) { s.reached_step = 301; }),
            "watch: state has reached its target at step 301, its last step is 300");
}

TEST(WatchTest, EveryStateThatAWatchComesToIsRestored) {
  const double worst = std::numeric_limits<double>::max();
  std::vector<double> losses{worst, worst, -worst, kNaN, 1, kInfinity, kNaN, 2, -kInfinity, 0.1};
  for (const Direction direction : {Direction::min, Direction::max}) {
    Watch watch({.target = 0.5, .direction = direction});
    for (int i = 0; i < 400; ++i) {
      // It goes back now and then, once before all that it has seen.
      const double step = i == 250 ? -7 : i - (i % 37 == 0 ? 20 : 0);
      watch.add(step, losses[static_cast<std::size_t>(i) % losses.size()]);
      Watch again({.target = 0.5, .direction = direction});
      ASSERT_EQ(glidepath::refusal([&] { again.restore(watch.state()); }), "") << i;
    }
  }
}

TEST(WatchTest, AJudgementThatThrowsLeavesTheWatchAsItWas) {
  Watch watch({.target = 0.5, .budget = 500});
  watch.add(1, 3);
  const std::vector<double> steps{2, 3, kNaN}, losses{2.9, 2.8, 2.7};
  EXPECT_EQ(glidepath::refusal([&] { (void)judge(watch, steps, losses); }),
            "watch: step is nan, expected between -1e300 and 1e300");
  EXPECT_EQ(watch.state().points, 1);
  EXPECT_EQ(watch.state().last_step, 1);
  (void)judge(watch, std::vector{2.0, 3.0}, std::vector{2.9, 2.8});
  EXPECT_EQ(watch.state().points, 3);
}

TEST(WatchTest, WithoutABudgetStepsAtTheLimitGiveADecision) {
  Watch watch({.target = 0.5});
  for (int i = 1; i <= 20; ++i) watch.add(i * 5e298, 3 - 0.1 * i);
  EXPECT_EQ(open_budget(0, 1e300), 1e300);
  const double probability = watch.decision().probability;
  EXPECT_TRUE(probability >= 0 && probability <= 1) << probability;
}

TEST(WatchTest, OptionsThatAreNoValueOfTheirsAreRefused) {
  EXPECT_EQ(
      glidepath::refusal([] { Watch({.target = 1, .direction = static_cast<Direction>(9)}); }),
      "watch: direction is value 9, expected one of min, max");
  EXPECT_EQ(
      glidepath::refusal([] { Watch({.target = 1, .reached_by = static_cast<ReachedBy>(9)}); }),
      "watch: reached_by is value 9, expected one of curve, point");
}

TEST(WatchTest, StepsAndLossesAtTheLimitsOfADoubleGiveAProbability) {
  Watch watch({.target = -1e308, .budget = 1e300});
  EXPECT_THROW(watch.add(-1.7e308, 1), InputError);
  EXPECT_THROW(watch.add(1.7e308, 1), InputError);
  const std::vector<double> steps{-1e300, -9.9e299, -5e299, 0, 5e-324, 1e-323, 1, 1e299};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    watch.add(steps[i], i % 2 == 0 ? 1.7e308 : -0.9e308);
    const double probability = watch.decision().probability;
    EXPECT_TRUE(probability >= 0 && probability <= 1) << i << ": " << probability;
  }
}

TEST(WatchTest, LossesAtTheLimitsOfADoubleStayFiniteAsTheyAreMerged) {
  Watch watch;
  for (int step = 1; step <= 2000; ++step) watch.add(step, step % 2 == 0 ? 1.7e308 : -1.7e308);
  Watch again;
  again.restore(watch.state());
  EXPECT_EQ(again.state().loss, watch.state().loss);
}

TEST(WatchTest, ARunWithoutABudgetHasNotSpentItAtItsFirstPoint) {
  for (const double step : {0.0, -5.0}) {
    Watch watch({.target = 0.5});
    watch.add(step, 1);
    const Decision first = watch.decision();
    EXPECT_EQ(first.verdict, Verdict::unknown) << first.reason;
    EXPECT_EQ(first.reason, "1 point is too few to tell");
    EXPECT_EQ(first.probability, 0.5);
    watch.add(step + 1, 0.9);
    EXPECT_EQ(watch.decision().verdict, Verdict::unknown);
  }
}

TEST(WatchTest, AScheduleIsFollowedAsByReachWhereverItEnds) {
  for (const double end : {50.0, 100.0, 200.0, 400.0, 800.0}) {
    const Schedule schedule = Schedule::cosine(1e-3, end, {.final = 5e-4});
    const Watch watch = watched({.target = 1.08, .budget = 400, .schedule = schedule}, 60);
    const WatchState& s = watch.state();
    const Reach r = reach({s.step, s.loss}, 1.08, 400, {.schedule = &schedule});
    EXPECT_NEAR(watch.decision().probability, 1 - r.prob_never, 1e-9) << end;
  }
}

TEST(WatchTest, StepsWithoutANumberAreSeenToo) {
  Watch watch({.target = 0.5});
  watch.add(1, 1);
  watch.add(10, kNaN);  // once: a metric that is logged now and then
  const Decision d = watch.decision();
  EXPECT_EQ(d.verdict, Verdict::unknown) << d.reason;
  EXPECT_GT(d.probability, 0);
}

TEST(WatchTest, ABudgetThatIsSpentWithoutANumberIsSpent) {
  Watch watch({.target = 0.5, .budget = 100});
  watch.add(100, kNaN);
  const Decision d = watch.decision();
  EXPECT_EQ(d.verdict, Verdict::never);
  EXPECT_EQ(d.probability, 1 - reach({std::vector{100.0}, std::vector{kNaN}}, 0.5, 100).prob_never);
}

TEST(WatchTest, EveryVerdictHasANameOfItsOwn) {
  std::vector<std::string> names;
  for (const Verdict verdict : kVerdicts) names.emplace_back(name(verdict));
  EXPECT_EQ(names,
            (std::vector<std::string>{"unknown", "reached", "will_reach", "never", "diverged"}));
  EXPECT_EQ(name(static_cast<Verdict>(9)), "?");
}

}  // namespace
}  // namespace glidepath
