// SPDX-License-Identifier: Apache-2.0
// Answers of published simulators and of a prototype on large public traces. The traces are not in
// the repository: without them these tests are skipped.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "simulated.hpp"

namespace glidepath {
namespace {

// ---- published and prototype figures on shared traces

std::filesystem::path shared_trace(const std::string& name) {
  return std::filesystem::path(GLIDEPATH_SHARED) / "data/traces" / (name + ".csv.gz");
}

#define SKIP_WITHOUT(name)                                                      \
  if (!std::filesystem::exists(shared_trace(name))) {                           \
    GTEST_SKIP() << "the shared trace " << (name) << " is not on this machine"; \
  }

struct Reference {
  const char* trace;
  int gpus;
  const char* policy;
  double mean, median, p95, makespan;
  std::int64_t preemptions;
};

// Output of the Tiresias simulator (SymbioticLab/Tiresias 959f9b0, Apache-2.0), placement "count".
constexpr Reference kTiresias[] = {
    // clang-format off
    {"philly_0e4a51_480", 60, "fifo", 405836.292, 350404.0, 877428.1, 4377445, 0},
    {"philly_0e4a51_480", 60, "first_fit", 395254.525, 350404.0, 877428.1, 4377445, 0},
    {"philly_0e4a51_480", 60, "sjf", 225769.925, 47536.0, 983241.25, 4533952, 66},
    {"philly_0e4a51_480", 60, "srtf", 179684.673, 45490.5, 835123.6, 4674294, 315},
    {"philly_0e4a51_480", 60, "srsf", 178882.983, 45490.5, 835123.6, 4688057, 308},
    {"philly_0e4a51_480", 60, "las", 224936.008, 52369.0, 987590.15, 4534502, 664},
    {"philly_103959", 16, "fifo", 1774103.535, 2010862.5, 3473532.1, 10454516, 0},
    {"philly_103959", 16, "first_fit", 846938.436, 519937.0, 2615372.8, 10112781, 0},
    {"philly_103959", 16, "sjf", 384281.506, 474.0, 3135244.4, 10465214, 513},
    {"philly_103959", 16, "srtf", 165008.856, 474.0, 438932.65, 11075341, 1383},
    {"philly_103959", 16, "srsf", 175244.875, 474.0, 430405.15, 11263256, 907},
    {"philly_103959", 16, "las", 377077.96, 474.0, 3115257.15, 10387268, 1639},
    {"philly_0e4a51", 32, "fifo", 3179904.353, 3628406.0, 4977507.3, 9695303, 0},
    {"philly_0e4a51", 32, "first_fit", 1792242.306, 1580265.0, 4308783.2, 9646010, 0},
    {"philly_0e4a51", 32, "sjf", 885630.673, 251069.0, 4594626.1, 9710038, 110},
    {"philly_0e4a51", 32, "srtf", 375894.939, 358.0, 2171585.5, 11109682, 974},
    {"philly_0e4a51", 32, "srsf", 353150.428, 358.0, 1754623.9, 11109425, 851},
    {"philly_0e4a51", 32, "las", 799725.25, 449.0, 4607754.1, 9704333, 1627},
    {"philly_b436b2", 64, "fifo", 1723133.096, 1745075.0, 1826884.8, 8118736, 0},
    {"philly_b436b2", 64, "first_fit", 83727.436, 54509.0, 135796.2, 8118736, 0},
    {"philly_b436b2", 64, "sjf", 34280.243, 7023.0, 23150.8, 8128566, 179},
    {"philly_b436b2", 64, "srtf", 25765.651, 3354.0, 23408.9, 8351703, 2747},
    {"philly_b436b2", 64, "srsf", 23932.867, 3351.0, 23406.5, 8728543, 2454},
    {"philly_b436b2", 64, "las", 29510.521, 6659.0, 19792.6, 8118736, 671},
    // clang-format on
};

class TiresiasTest : public ::testing::TestWithParam<Reference> {};

TEST_P(TiresiasTest, IsReproducedToSixDigitsWithEqualPreemptions) {
  const Reference& want = GetParam();
  SKIP_WITHOUT(want.trace);
  const Simulation got =
      simulate(workload_from_trace(shared_trace(want.trace), want.gpus), want.policy);
  expect_reference(got, want);
}

INSTANTIATE_TEST_SUITE_P(Traces, TiresiasTest, ::testing::ValuesIn(kTiresias),
                         [](const auto& given) {
                           return std::string(given.param.trace) + "_" + given.param.policy;
                         });

struct SessionReference {
  const char* trace;
  int gpus, session_s, restart_s;
  double mean, p95, first_response, makespan;
  std::int64_t suspensions;
};

// An independent prototype of Session FIFO, see docs/method/simulate.md.
constexpr SessionReference kSessions[] = {
    // clang-format off
    {"philly_0e4a51_480", 60, 1800, 0, 254252.146, 945427.3, 2963.685, 4549265, 30265},
    {"philly_0e4a51_480", 60, 1800, 60, 267148.883, 1046304.5, 3056.148, 4659982, 30265},
    {"philly_0e4a51_480", 60, 3600, 0, 255874.715, 945655.1, 5777.723, 4548954, 15073},
    {"philly_0e4a51_480", 60, 3600, 60, 262179.465, 996492.1, 5854.104, 4603582, 15073},
    {"philly_0e4a51_480", 60, 14400, 0, 264430.271, 954309.0, 21452.417, 4544614, 3668},
    {"philly_0e4a51_480", 60, 14400, 60, 266133.315, 963307.15, 21787.988, 4558569, 3668},
    {"philly_103959", 16, 1800, 0, 573069.098, 3695823.4, 37944.213, 10627164, 27087},
    {"philly_103959", 16, 1800, 60, 621892.328, 4126723.1, 40704.393, 11058512, 27087},
    {"philly_103959", 16, 3600, 0, 597143.324, 3688243.35, 74961.734, 10663038, 13329},
    {"philly_103959", 16, 3600, 60, 616828.362, 3817109.9, 77469.711, 10768775, 13329},
    {"philly_103959", 16, 14400, 0, 727056.844, 3523594.05, 279785.996, 10579442, 3040},
    {"philly_103959", 16, 14400, 60, 744172.907, 3573804.15, 286544.089, 10656872, 3040},
    {"philly_0e4a51", 32, 1800, 0, 971096.943, 4611082.6, 20210.367, 10505054, 71082},
    {"philly_0e4a51", 32, 1800, 60, 1035021.507, 4897493.6, 21807.953, 10861635, 71082},
    {"philly_0e4a51", 32, 3600, 0, 987934.0, 4627435.3, 40134.464, 10523284, 35403},
    {"philly_0e4a51", 32, 3600, 60, 1018418.279, 4760456.7, 41682.678, 10698380, 35403},
    {"philly_0e4a51", 32, 14400, 0, 1056539.443, 4606517.6, 155032.615, 10499185, 8636},
    {"philly_0e4a51", 32, 14400, 60, 1065448.26, 4652586.0, 155924.309, 10560097, 8636},
    // clang-format on
};

class SessionFifoTest : public ::testing::TestWithParam<SessionReference> {};

TEST_P(SessionFifoTest, IsReproducedToSixDigitsWithEqualSuspensions) {
  const SessionReference& want = GetParam();
  SKIP_WITHOUT(want.trace);
  SimulationOptions options;
  options.session_s = want.session_s;
  options.restart_s = want.restart_s;
  const Simulation got =
      simulate(workload_from_trace(shared_trace(want.trace), want.gpus), "session_fifo", options);
  double response = 0;
  for (std::size_t i = 0; i < got.jobs.job.size(); ++i) {
    response += got.jobs.start_s[i] - got.jobs.submit_s[i];
  }
  response /= static_cast<double>(got.jobs.job.size());
  EXPECT_NEAR(got.mean_jct_s, want.mean, 1e-6 * want.mean);
  EXPECT_NEAR(got.p95_jct_s, want.p95, 1e-6 * want.p95);
  EXPECT_NEAR(response, want.first_response, 1e-6 * want.first_response);
  EXPECT_EQ(got.makespan_s, want.makespan);
  EXPECT_EQ(got.preemptions, want.suspensions);
}

INSTANTIATE_TEST_SUITE_P(Traces, SessionFifoTest, ::testing::ValuesIn(kSessions),
                         [](const auto& given) {
                           return std::string(given.param.trace) + "_" +
                                  std::to_string(given.param.session_s) + "s_" +
                                  std::to_string(given.param.restart_s) + "s";
                         });

TEST(LowerBoundTest, EqualsThePrototypesPooledSrpt) {
  const std::map<std::string, std::pair<int, double>> bounds{{"philly_0e4a51_480", {60, 114019.8}},
                                                             {"philly_103959", {16, 134308.8}},
                                                             {"philly_0e4a51", {32, 296903.7}},
                                                             {"philly_b436b2", {64, 14394.2}}};
  for (const auto& [trace, bound] : bounds) {
    SKIP_WITHOUT(trace);
    EXPECT_NEAR(lower_bound_jct_s(workload_from_trace(shared_trace(trace), bound.first)),
                bound.second, 0.05);
  }
}

double ratio_to_las(const char* trace, int gpus, const char* policy, double sigma) {
  return glidepath::ratio_to_las(workload_from_trace(shared_trace(trace), gpus), policy, sigma);
}

TEST(ForecastErrorTest, PointForecastsWithDoublingCostWhatThePrototypeFound) {
  SKIP_WITHOUT("philly_0e4a51");
  // sigma = 0.5 and 2, mean of 3 seeds, known to +-0.03
  const std::map<const char*, std::pair<int, std::pair<double, double>>> ratios{
      {"philly_0e4a51_480", {60, {0.816, 0.904}}},
      {"philly_103959", {16, {0.619, 0.664}}},
      {"philly_0e4a51", {32, {0.491, 0.742}}}};
  for (const auto& [trace, want] : ratios) {
    EXPECT_NEAR(ratio_to_las(trace, want.first, "srsf", 0.5), want.second.first, 0.04) << trace;
    EXPECT_NEAR(ratio_to_las(trace, want.first, "srsf", 2), want.second.second, 0.04) << trace;
  }
}

TEST(ForecastErrorTest, KnowingTheErrorOfForecastsIsWorthSomething) {
  SKIP_WITHOUT("philly_0e4a51");
  for (const double sigma : {0.5, 2.0}) {
    EXPECT_LT(ratio_to_las("philly_103959", 16, "gittins", sigma),
              ratio_to_las("philly_103959", 16, "srsf", sigma));
    EXPECT_LT(ratio_to_las("philly_0e4a51", 32, "gittins", sigma),
              ratio_to_las("philly_0e4a51", 32, "srsf", sigma));
  }
}

TEST(ForecastErrorTest, ForecastsThatSayNothingCostLittleAgainstAttainedService) {
  SKIP_WITHOUT("philly_0e4a51");
  EXPECT_LE(ratio_to_las("philly_0e4a51_480", 60, "gittins", 20), 1.05);
  EXPECT_LE(ratio_to_las("philly_103959", 16, "gittins", 20), 1.05);
  EXPECT_LE(ratio_to_las("philly_0e4a51", 32, "gittins", 20), 1.05);
}

const std::map<const char*, int> kCases{
    {"philly_0e4a51_480", 60}, {"philly_103959", 16}, {"philly_0e4a51", 32}};

TEST(RestartCostTest, PatienceTakesPreemptionsForLittleMeanJctAndNoFairness) {
  SimulationOptions options;
  options.restart_s = 60;
  const std::map<std::string_view, double> share_of_preemptions{
      {"philly_0e4a51_480", 0.6}, {"philly_103959", 0.85}, {"philly_0e4a51", 0.65}};
  for (const auto& [trace, gpus] : kCases) {
    SKIP_WITHOUT(trace);
    const Workload workload = workload_from_trace(shared_trace(trace), gpus);
    const Simulation time = simulate(workload, "srtf", options);
    const Simulation gpu_time = simulate(workload, "srsf", options);
    const Simulation& better = time.mean_jct_s < gpu_time.mean_jct_s ? time : gpu_time;
    for (const char* policy : {"gittins", "best_value"}) {
      const Simulation patient = simulate(workload, policy, options);
      EXPECT_LT(static_cast<double>(patient.preemptions),
                share_of_preemptions.at(trace) * static_cast<double>(better.preemptions))
          << trace << " " << policy;
      EXPECT_LE(patient.mean_jct_s, 1.02 * better.mean_jct_s) << trace << " " << policy;
      EXPECT_LE(patient.worst_ftf, 1.05 * better.worst_ftf) << trace << " " << policy;
    }
  }
}

TEST(FairFinishTest, BoundsTheWorstFairnessOnTracesThatItWasNotChosenOnForLittleMeanJct) {
  const std::map<const char*, int> judges{{"philly_103959", 16}, {"philly_b436b2", 64}};
  for (const auto& [trace, gpus] : judges) {
    SKIP_WITHOUT(trace);
    const Workload workload = workload_from_trace(shared_trace(trace), gpus);
    const double jct = simulate(workload, "gittins").mean_jct_s;
    for (const auto& [multiple, dearer] : {std::pair{1.5, 1.05}, std::pair{2.0, 1.02}}) {
      SimulationOptions options;
      options.max_ftf = multiple;
      const Simulation run = simulate(workload, "fair_finish", options);
      EXPECT_LE(run.worst_ftf, 1.25 * multiple) << trace;
      EXPECT_LE(run.mean_jct_s, dearer * jct) << trace;
    }
  }
}

TEST(KnownSizesTest, ThePlannerIsNotBehindTheBetterOfSrtfAndSrsf) {
  for (const auto& [trace, gpus] : kCases) {
    SKIP_WITHOUT(trace);
    const Workload workload = workload_from_trace(shared_trace(trace), gpus);
    const double better =
        std::min(simulate(workload, "srtf").mean_jct_s, simulate(workload, "srsf").mean_jct_s);
    EXPECT_LE(simulate(workload, "best_value").mean_jct_s, better) << trace;
    EXPECT_LE(simulate(workload, "gittins").mean_jct_s, better) << trace;
  }
}

}  // namespace
}  // namespace glidepath
