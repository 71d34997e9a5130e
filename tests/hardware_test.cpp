// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"

#include "glidepath/error.hpp"

#include <limits>
#include <set>

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

}  // namespace
}  // namespace glidepath
