// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"

#include "glidepath/error.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

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
  EXPECT_THROW(validate({.name = "t", .nodes = -1}), InputError);
  EXPECT_THROW(validate({.name = "t", .nodes = 1, .gpus_per_node = 0}), InputError);
  EXPECT_THROW(validate({.name = "t", .nodes = 1 << 30, .gpus_per_node = 8}), InputError);
  EXPECT_THROW(validate({.name = "t", .nodes = 1, .memory_gb = nan}), InputError);
  EXPECT_THROW(validate({.name = "t", .nodes = 1, .idle_watts = -5}), InputError);
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
  for (const double c : fit_scaling(noisy).seconds) EXPECT_GE(c, 0);
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
  EXPECT_THROW((void)fit_scaling({}), InputError);
}

TEST(SharingTest, TheMeasuredPairComesBackUnderEveryMode) {
  // hours alone and together on one A100: DLRM (5 % activity), ResNet152 (82 %)
  const Profile dlrm{0.05, 29.14}, resnet{0.82, 8.47};
  for (const auto& [mode, first, second] :
       {std::tuple{Sharing::naive, 6.09, 1.11}, std::tuple{Sharing::mps, 5.57, 1.10}}) {
    const SharedSpeeds speeds = shared_speeds(dlrm, resnet, mode, 40);
    EXPECT_NEAR(speeds.first, 5.36 / first, 0.04);
    EXPECT_NEAR(speeds.second, 1.05 / second, 0.02);
  }
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
  EXPECT_THROW((void)shared_speeds({1.5}, {0.5}, Sharing::mps), InputError);
}

}  // namespace
}  // namespace glidepath
