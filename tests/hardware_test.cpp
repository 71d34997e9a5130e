// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"

#include "glidepath/error.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "common/rng.hpp"
#include "refusal.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

TEST(HardwareTest, EveryGpuOfTheCatalogueIsPhysicalAndNamesItsSource) {
  std::set<std::string> names;
  for (const Gpu& gpu : catalogue()) {
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    EXPECT_GT(gpu.memory_gb, 0) << gpu.name;
    EXPECT_GT(gpu.bandwidth_gb_s, 0) << gpu.name;
    EXPECT_GT(gpu.fp32_tflops, 0) << gpu.name;
    EXPECT_LT(gpu.idle_watts, 0.25 * gpu.busy_watts) << gpu.name;
    EXPECT_GT(gpu.idle_watts, 0) << gpu.name;
    EXPECT_GE(gpu.year, 2014) << gpu.name;
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
  }
  EXPECT_GE(names.size(), 15u);
}

TEST(HardwareTest, TheSeedsTiersComeOutOfTheCatalogue) {
  const Tier bronze = make_tier("Bronze", "RTX 2080 Ti", 2, 4);
  EXPECT_EQ(bronze.gpus(), 8);
  EXPECT_DOUBLE_EQ(bronze.memory_gb, 11);
  EXPECT_DOUBLE_EQ(bronze.busy_watts, 250);
  EXPECT_DOUBLE_EQ(make_tier("Silver", "RTX 3090", 1, 1).memory_gb, 24);
}

TEST(HardwareTest, AnUnknownGpuIsNamedTogetherWithTheKnownOnes) {
  try {
    (void)gpu_named("RTX 9090");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("'RTX 9090'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("RTX 3090"), std::string::npos);
  }
}

TEST(HardwareTest, PowerIsLinearBetweenIdleAndBusy) {
  const Tier tier{.name = "a", .nodes = 1, .idle_watts = 50, .busy_watts = 250};
  EXPECT_DOUBLE_EQ(watts(tier, 0), 50);
  EXPECT_DOUBLE_EQ(watts(tier, 0.5), 150);
  EXPECT_DOUBLE_EQ(watts(tier, 1), 250);
}

TEST(HardwareTest, BrokenTiersAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const Tier& tier) { return refusal([&] { validate(tier); }); };
  EXPECT_EQ(refused({.name = "t", .nodes = -1}), "tier 't': nodes is -1, expected 0 or more");
  EXPECT_EQ(refused({.name = "t", .nodes = 1, .gpus_per_node = 0}),
            "tier 't': gpus_per_node is 0, expected 1 or more");
  EXPECT_EQ(refused({.name = "t", .nodes = 1 << 30, .gpus_per_node = 8}),
            "tier 't': 1073741824 nodes of 8 GPUs, expected at most 2^31 - 1 GPUs in all");
  EXPECT_EQ(refused({.name = "t", .nodes = 1, .memory_gb = nan}),
            "tier 't': memory_gb is nan, expected 0 or more and finite");
  EXPECT_EQ(refused({.name = "t", .nodes = 1, .idle_watts = -5}),
            "tier 't': idle_watts is -5, expected 0 or more and finite");
  EXPECT_NO_THROW(validate({.name = "empty", .nodes = 0}));
}

TEST(ScalingTest, RecoversStepTimesThatFollowTheModel) {
  std::vector<StepTime> all;
  for (int nodes = 1; nodes <= 4; nodes *= 2) {
    for (int gpus = nodes; gpus <= 8 * nodes; gpus *= 2) {
      const double k = gpus, n = nodes;
      all.push_back({gpus, nodes, 64 / k,
                     0.02 + 0.004 * 64 / k + 0.03 * (1 - n / k) + (nodes > 1 ? 0.05 : 0.0) +
                         0.01 * std::log2(n)});
    }
  }
  for (std::size_t held = 0; held < all.size(); ++held) {
    std::vector<StepTime> seen = all;
    seen.erase(seen.begin() + static_cast<std::ptrdiff_t>(held));
    const StepTime& m = all[held];
    EXPECT_NEAR(step_seconds(fit_scaling(seen), m.gpus, m.nodes, m.batch_per_gpu) / m.seconds, 1,
                0.05)
        << m.gpus << " GPUs on " << m.nodes;
  }
  EXPECT_LT(fit_scaling(all).typical_error, 0.01);
}

TEST(ScalingTest, OneMeasurementIsEnoughForItself) {
  const std::vector<StepTime> one{{4, 1, 8, 0.25}};
  const Scaling scaling = fit_scaling(one);
  EXPECT_NEAR(step_seconds(scaling, 4, 1, 8), 0.25, 0.01);
  EXPECT_GT(step_seconds(scaling, 8, 2, 4), 0);
}

TEST(ScalingTest, EveryTimeIsASumOfTimes) {
  const std::vector<StepTime> noisy{{1, 1, 1, 1.0}, {2, 1, 1, 0.4}, {4, 1, 1, 2.0}, {8, 2, 1, 0.1}};
  for (const double c : fit_scaling(noisy).terms) EXPECT_GE(c, 0);
}

TEST(ScalingTest, BrokenMeasurementsAreRefusedByIndex) {
  const auto refused = [](StepTime bad) {
    const std::vector<StepTime> measured{{1, 1, 1, 1.0}, bad};
    try {
      (void)fit_scaling(measured);
    } catch (const InputError& error) {
      return std::string(error.what()).find("measurement 1") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused({0, 1, 1, 1.0}));
  EXPECT_TRUE(refused({2, 4, 1, 1.0}));
  EXPECT_TRUE(refused({2, 1, 1, 0.0}));
  EXPECT_TRUE(refused({2, 1, 1, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_TRUE(refused({2, 1, -1, 1.0}));
  EXPECT_TRUE(refused({2, 1, 1, 1e-320}));
  EXPECT_EQ(refusal([] { (void)fit_scaling({}); }),
            "fit_scaling: no measurement, expected 1 or more");
}

TEST(HardwareTest, TheUtilizationOfMeasuredPowerGivesThatPowerBack) {
  const Tier tier{.name = "a", .nodes = 1, .idle_watts = 50, .busy_watts = 250};
  for (const double drawn : {50.0, 61.5, 250.0}) {
    EXPECT_DOUBLE_EQ(watts(tier, utilization(tier, drawn)), drawn);
  }
  EXPECT_EQ(refusal([&] { (void)utilization(tier, 260); }),
            "tier 'a': watts is 260, expected between the idle 50 W and the busy 250 W of a GPU");
  EXPECT_NE(refusal([&] { (void)utilization(tier, std::nan("")); }), "");
  EXPECT_NE(refusal([] { (void)utilization(Tier{.name = "b"}, 0); }), "");
}

TEST(SharingTest, TheOnePairMeasuredElsewhereIsNotFarOff) {
  // hours alone and together on one A100: DLRM (5 % activity), ResNet152 (82 %); no constant of the
  // law is from here
  const Profile dlrm{0.05, 29.14}, resnet{0.82, 8.47};
  double error = 0;
  for (const auto& [mode, first, second] :
       {std::tuple{Sharing::naive, 6.09, 1.11}, std::tuple{Sharing::mps, 5.57, 1.10}}) {
    const SharedSpeeds speeds = shared_speeds(dlrm, resnet, mode, 40);
    error += std::abs(speeds.first - 5.36 / first) / 4;
    error += std::abs(speeds.second - 1.05 / second) / 4;
  }
  EXPECT_LT(error, 0.05);
}

TEST(SharingTest, TwoJobsThatFillTheCardHalve) {
  const Profile full{.sm_activity = 1, .memory_activity = 1};
  for (const Sharing mode : {Sharing::naive, Sharing::mps, Sharing::mig}) {
    EXPECT_DOUBLE_EQ(shared_speeds(full, full, mode).first, 0.5);
    const Profile idle{.sm_activity = 0, .memory_activity = 0};
    EXPECT_DOUBLE_EQ(shared_speeds(full, idle, Sharing::mps).first, 1);
    EXPECT_DOUBLE_EQ(shared_speeds(idle, full, mode).first, 1);
  }
}

TEST(SharingTest, LargeKernelsHoldUpSmallOnes) {
  const Profile small{.sm_activity = 0.6, .memory_activity = 0.05};
  const Profile large{.sm_activity = 0.6, .memory_activity = 0.8};
  const SharedSpeeds speeds = shared_speeds(small, large, Sharing::mps);
  EXPECT_LT(speeds.first, speeds.second);
  // On half a card the one that needs the memory loses more.
  const SharedSpeeds halves = shared_speeds(small, large, Sharing::mig);
  EXPECT_GT(halves.first, halves.second);
  EXPECT_EQ(refusal([&] {
              (void)shared_speeds(small, {.sm_activity = 0.5, .memory_activity = 1.5},
                                  Sharing::mps);
            }),
            "shared_speeds: activity of the memory is 1.5, expected 1 at most");
}

TEST(SharingTest, AnUnknownActivityOfTheMemoryIsThatOfAnAverageJob) {
  const Profile known{.sm_activity = 0.5, .memory_activity = 0.2}, unknown{.sm_activity = 0.5};
  EXPECT_DOUBLE_EQ(shared_speeds(known, known, Sharing::mps).first,
                   shared_speeds(unknown, unknown, Sharing::mps).first);
}

TEST(SharingTest, NoPairGoesBeyondTheMemoryOfTheCard) {
  const Profile a{0.5, 10}, b{0.5, 8};
  EXPECT_GT(shared_speeds(a, b, Sharing::mps, 18).first, 0);
  EXPECT_EQ(shared_speeds(a, b, Sharing::mps, 17).first, 0);
  EXPECT_EQ(shared_speeds(a, b, Sharing::mig, 18).first, 0);  // half a card has 9 GB
  EXPECT_GT(shared_speeds(a, b, Sharing::mig, 20).first, 0);
}

TEST(SharingTest, MoreActivityNeverMakesAPairFaster) {
  for (const Sharing mode : {Sharing::naive, Sharing::mps, Sharing::mig}) {
    for (double u = 0; u < 0.85; u += 0.1) {
      EXPECT_GE(shared_speeds({u}, {0.5}, mode).first, shared_speeds({u + 0.1}, {0.5}, mode).first);
      EXPECT_GE(shared_speeds({0.5}, {u}, mode).first, shared_speeds({0.5}, {u + 0.1}, mode).first);
      EXPECT_LE(shared_speeds({u}, {0.5}, mode).first, 1);
    }
  }
  EXPECT_EQ(refusal([] { (void)shared_speeds({1.5}, {0.5}, Sharing::mps); }),
            "shared_speeds: activity is 1.5, expected 0 to 1");
}

using PairsFileTest = TemporaryFiles;

TEST_F(PairsFileTest, PairsAreReadWithTheirWayOfSharing) {
  const auto file = write("pairs.csv",
                          "gpu,job_a,job_b,slowdown_a,slowdown_b,sharing\n"
                          "A100,dlrm,resnet,1.14,1.06,\n"
                          "A100,dlrm,resnet,1.04,1.05,mps\n"
                          "A100,resnet,llm,inf,inf,mig\n");
  const std::vector<KindPair> pairs = read_pairs(file);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0], (KindPair{"A100", Sharing::naive, "dlrm", "resnet", 1.14, 1.06}));
  EXPECT_EQ(pairs[1].sharing, Sharing::mps);
  EXPECT_TRUE(std::isinf(pairs[2].first_slowdown));
  EXPECT_EQ(read_pairs(write_gzip("pairs.csv.gz", "gpu,job_a,job_b,slowdown_a,slowdown_b\n")),
            std::vector<KindPair>{});
}

TEST_F(PairsFileTest, ABrokenPairNamesItsLine) {
  const std::string header = "gpu,job_a,job_b,slowdown_a,slowdown_b,sharing\n";
  for (const char* row : {"A100,a,b,0,1,mps\n", "A100,a,b,nan,1,mps\n", "A100,a,b,1,1,magic\n"}) {
    const auto file = write("pairs.csv", header + "A100,a,c,1,1,mps\n" + row);
    EXPECT_NE(message_of<IoError>([&] { return read_pairs(file); }).find("pairs.csv:3: "),
              std::string::npos)
        << row;
  }
  EXPECT_THROW((void)read_pairs(write("other.csv", "gpu,a,b\n")), IoError);
}

/// Speeds of twelve kinds beside one another: each suffers and makes suffer by its model and batch.
struct Zoo {
  std::vector<JobKind> alone{};
  static double suffers(int i) { return 0.1 * (i / 4) + 0.02 * (i % 4); }
  static double harms(int i) { return 0.15 * (2 - i / 4) + 0.03 * (i % 4); }
  static double slowdown(int a, int b) { return 1 / (0.9 - suffers(a) - harms(b)); }
  [[nodiscard]] std::vector<KindPair> pairs(int without) const {
    std::vector<KindPair> out;
    for (int a = 0; a < 12; ++a) {
      for (int b = a; b < 12; ++b) {
        if (a == without || b == without) continue;
        out.push_back({"V100", Sharing::mps, alone[static_cast<std::size_t>(a)].kind,
                       alone[static_cast<std::size_t>(b)].kind, slowdown(a, b), slowdown(b, a)});
      }
    }
    return out;
  }
  Zoo() {
    for (int i = 0; i < 12; ++i) {
      alone.push_back({"kind" + std::to_string(i),
                       "V100",
                       "model" + std::to_string(i / 4),
                       {static_cast<double>(i % 4), std::exp(0.1 * i)}});
    }
  }
};

TEST(PairsTest, AKindThatWasNeverPairedIsPredictedFromItsModelsOtherBatchSizes) {
  const Zoo zoo;
  const Tier tier{.gpu = "V100"};
  double error = 0, spread = 0;
  for (int held = 0; held < 12; ++held) {
    const Pairs pairs = learn_pairs(zoo.pairs(held), zoo.alone);
    EXPECT_EQ(pairs.rows.size(), 144u);
    for (int b = 0; b < 12; ++b) {
      const auto kind = [](int i) { return Profile{.kind = "kind" + std::to_string(i)}; };
      const SharedSpeeds speeds = shared_speeds(kind(held), kind(b), Sharing::mps, tier, &pairs);
      error += std::abs(speeds.first - 1 / Zoo::slowdown(held, b)) / 144;
      spread += std::abs(0.6 - 1 / Zoo::slowdown(held, b)) / 144;
      const SharedSpeeds back = shared_speeds(kind(b), kind(held), Sharing::mps, tier, &pairs);
      EXPECT_DOUBLE_EQ(back.second, speeds.first);
    }
  }
  EXPECT_LT(error, 0.03);
  EXPECT_GT(spread, 3 * error);
}

TEST(PairsTest, WhatWasMeasuredIsTakenAsItIsOnItsGpuAndWayOfSharingOnly) {
  const Zoo zoo;
  std::vector<KindPair> measured = zoo.pairs(-1);
  measured.push_back({"A100", Sharing::mps, "kind0", "kind1", 1.25, 2.0});
  const Pairs pairs = learn_pairs(measured, zoo.alone);
  const Profile a{.sm_activity = 0.5, .kind = "kind0"}, b{.sm_activity = 0.5, .kind = "kind1"};
  const auto speeds = [&](const char* gpu, Sharing mode, double gb = 0) {
    return shared_speeds(a, b, mode, Tier{.gpu = gpu, .memory_gb = gb}, &pairs);
  };
  EXPECT_DOUBLE_EQ(speeds("A100", Sharing::mps).first, 0.8);
  EXPECT_DOUBLE_EQ(speeds("A100", Sharing::mps).second, 0.5);
  EXPECT_DOUBLE_EQ(speeds("V100", Sharing::mps).first, 1 / Zoo::slowdown(0, 1));
  EXPECT_DOUBLE_EQ(speeds("V100", Sharing::naive).first, shared_speeds(a, b, Sharing::naive).first);
  EXPECT_DOUBLE_EQ(speeds("H100", Sharing::mps).first, shared_speeds(a, b, Sharing::mps).first);
  EXPECT_DOUBLE_EQ(shared_speeds(a, b, Sharing::mps, Tier{.gpu = "A100"}, nullptr).first,
                   shared_speeds(a, b, Sharing::mps).first);
}

TEST(PairsTest, NoMeasurementPutsAPairBeyondTheCard) {
  const std::vector<KindPair> measured{{"A100", Sharing::mps, "a", "b", 1.1, 1.1},
                                       {"A100", Sharing::mig, "a", "b", 1.1, 1.1}};
  const Pairs pairs = learn_pairs(measured);
  const Profile a{0.5, 25, "a"}, b{0.5, 10, "b"};
  const Tier large{.gpu = "A100", .memory_gb = 40}, small{.gpu = "A100", .memory_gb = 32};
  EXPECT_GT(shared_speeds(a, b, Sharing::mps, large, &pairs).first, 0.9);
  EXPECT_EQ(shared_speeds(a, b, Sharing::mps, small, &pairs).first, 0);
  EXPECT_EQ(shared_speeds(a, b, Sharing::mig, large, &pairs).first, 0);  // half a card has 20 GB
}

TEST(PairsTest, APairThatDidNotRunHasNoSpeed) {
  const double never = std::numeric_limits<double>::infinity();
  const std::vector<KindPair> measured{{"A100", Sharing::mps, "a", "b", never, never}};
  const Pairs pairs = learn_pairs(measured);
  const Profile a{.sm_activity = 0.1, .kind = "a"}, b{.sm_activity = 0.1, .kind = "b"};
  EXPECT_EQ(shared_speeds(a, b, Sharing::mps, Tier{.gpu = "A100"}, &pairs).first, 0);
}

TEST(PairsTest, ASpeedAboveOneIsKeptWhereItWasMeasured) {
  const Profile a{.sm_activity = 0.1, .kind = "a"}, b{.sm_activity = 0.1, .kind = "b"};
  const std::vector<KindPair> measured{{"A100", Sharing::mps, "a", "b", 0.8, 1.25},
                                       {"A100", Sharing::mps, "a", "a", 0.8, 0.8}};
  const std::vector<JobKind> alone{{"a", "A100", "m", {1}}, {"b", "A100", "m", {1}}};
  const Pairs pairs = learn_pairs(measured, alone);
  const Tier tier{.gpu = "A100"};
  const SharedSpeeds speeds = shared_speeds(a, b, Sharing::mps, tier, &pairs);
  EXPECT_DOUBLE_EQ(speeds.first, 1.25);
  EXPECT_DOUBLE_EQ(speeds.second, 0.8);
  // What is learned goes no further than what was measured.
  EXPECT_LE(shared_speeds(b, b, Sharing::mps, tier, &pairs).first, 1.25);
}

TEST(PairsTest, BrokenTablesAreRefusedByName) {
  const auto message = [](std::vector<KindPair> measured, std::vector<JobKind> alone = {}) {
    return message_of<InputError>([&] { return learn_pairs(measured, alone); });
  };
  const KindPair good{"A100", Sharing::mps, "a", "b", 1.1, 1.2};
  KindPair bad = good;
  bad.second_slowdown = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message({bad}).find("'a' beside 'b' on 'A100' has slowdown nan"), std::string::npos);
  bad.sharing = static_cast<Sharing>(9);
  EXPECT_EQ(message({bad}),
            "learn_pairs: sharing is value 9, expected one of exclusive, naive, mps, mig");
  KindPair other{"A100", Sharing::mps, "b", "a", 1.3, 1.1};
  EXPECT_NE(message({good, other}).find("has two results"), std::string::npos);
  other.first_slowdown = 1.2;  // the same, the other way round
  EXPECT_EQ(learn_pairs(std::vector{good, other}).rows.size(), 2u);
  EXPECT_NE(message({good}, {{"a", "A100", "", {1, 2}}, {"b", "A100", "", {1}}}).find("1 features"),
            std::string::npos);
  EXPECT_NE(message({good}, {{"a", "A100"}, {"a", "A100"}}).find("described twice"),
            std::string::npos);
  EXPECT_NE(
      message({good}, {{"a", "A100", "", {bad.second_slowdown}}}).find("a feature of 'a' is nan"),
      std::string::npos);
  EXPECT_NE(message({good}, {{"a", "T4"}, {"a", "T4"}}).find("described twice on 'T4'"),
            std::string::npos)
      << "also where nothing was measured on that GPU";
}

TEST(ScalingTest, AScalingThatNothingWasFittedToIsRefused) {
  EXPECT_EQ(refusal([] { (void)step_seconds({}, 2, 1); }),
            "step_seconds: the scaling has no term above 0, fit_scaling gives it some");
  EXPECT_THROW((void)best_batch({}, 2, 1, {.reference = 32, .largest = 64}), InputError);
  Scaling cut = fit_scaling(std::vector<StepTime>{{1, 1, 1, 1.0}, {2, 1, 1, 1.2}});
  cut.measured.clear();
  EXPECT_EQ(refusal([&] { (void)step_seconds(cut, 2, 1); }),
            "step_seconds: 2 corrections of 0 measurements, expected at most as many");
  Scaling broken = fit_scaling(std::vector<StepTime>{{1, 1, 1, 1.0}, {2, 1, 1, 1.2}});
  broken.correction.assign(2, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(refusal([&] { (void)step_seconds(broken, 2, 1); }),
            "step_seconds: the log of the correction is nan, expected a finite number");
  broken.terms[1] = -1;
  EXPECT_EQ(refusal([&] { (void)step_seconds(broken, 2, 1); }),
            "step_seconds: the term 'compute' is -1, expected 0 or more and finite");
}

TEST(SharingTest, AMemoryBelowZeroOrAModeThatIsNoneIsRefused) {
  for (const double memory_gb : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const std::string said = refusal([&] { (void)shared_speeds({}, {}, Sharing::mps, memory_gb); });
    EXPECT_TRUE(said.starts_with("shared_speeds: gpu_memory_gb is ")) << said;
  }
  EXPECT_EQ(refusal([] { (void)shared_speeds({}, {}, static_cast<Sharing>(99)); }),
            "shared_speeds: sharing is value 99, expected one of exclusive, naive, mps, mig");
}

}  // namespace
}  // namespace glidepath
