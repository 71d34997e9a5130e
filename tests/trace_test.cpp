// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include "glidepath/error.hpp"

#include <cmath>
#include <limits>

#include "common/rng.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

using Columns = std::vector<double>;

TEST(ValidateTest, NamesTheIndexAndValueItRefuses) {
  const auto message = [](const Columns& step, const Columns& loss, const Columns& weight = {}) {
    return message_of<InputError>([&] { validate({step, loss, weight}); });
  };
  EXPECT_EQ(message({1, 2}, {1}), "trace: 2 steps but 1 losses");
  EXPECT_EQ(message({1, 2}, {1, 1}, {1}), "trace: 2 steps but 1 weights");
  EXPECT_EQ(message({1, kNan}, {1, 1}), "trace: step[1] is nan, expected between -1e300 and 1e300");
  EXPECT_EQ(message({1, kInf}, {1, 1}), "trace: step[1] is inf, expected between -1e300 and 1e300");
  EXPECT_EQ(message({-1.7e308, 1}, {1, 1}),
            "trace: step[0] is -1.7e+308, expected between -1e300 and 1e300");
  EXPECT_EQ(message({1, 3, 3}, {1, 1, 1}), "trace: step[2] is 3, expected above the 3 before it");
  EXPECT_EQ(message({5, 3}, {1, 1}), "trace: step[1] is 3, expected above the 5 before it");
  EXPECT_EQ(message({1, 2}, {1, 1}, {1, -1}), "trace: weight[1] is -1, expected 0 to 1e+100");
  EXPECT_EQ(message({1, 2}, {1, 1}, {1, kNan}), "trace: weight[1] is nan, expected 0 to 1e+100");
}

TEST(ValidateTest, AcceptsAnEmptyTraceAndLossesThatAreNotFinite) {
  EXPECT_NO_THROW(validate({}));
  const Columns step{-3, 0, 7}, loss{kNan, kInf, -kInf};
  EXPECT_NO_THROW(validate({step, loss, {}}));
}

TEST(HeadTest, ColumnsOfUnlikeLengthAreRefused) {
  const Columns step{1, 2, 3}, three{3, 2, 1}, two{3, 2};
  const auto said = [](TraceView trace) {
    return message_of<InputError>([&] { (void)until(trace, 3); });
  };
  EXPECT_EQ(said({step, two, {}}), "trace: 3 steps but 2 losses");
  EXPECT_EQ(said({step, three, two}), "trace: 3 steps but 2 weights");
  EXPECT_EQ(said({step, three, {}, two}), "trace: 3 steps but 2 learning rates");
}

TEST(HeadTest, KeepsThePointsUpToAndIncludingTheLastStep) {
  const Columns step{1, 2, 4}, loss{9, 8, 7}, weight{1, 2, 3};
  EXPECT_EQ(until({step, loss, weight}, 2).loss.size(), 2U);
  EXPECT_EQ(until({step, loss, weight}, 3.9).weight.size(), 2U);
  EXPECT_EQ(until({step, loss, {}}, 4).step.size(), 3U);
  EXPECT_EQ(until({step, loss, {}}, kInf).step.size(), 3U);
  EXPECT_EQ(until({step, loss, {}}, 0.5).step.size(), 0U);
  EXPECT_EQ(until({step, loss, {}}, 2).step.data(), step.data());
  EXPECT_THROW((void)until({step, loss, {}}, kNan), InputError);
}

TEST(DirectionTest, NamesGoThereAndBack) {
  EXPECT_EQ(direction_named("min"), Direction::min);
  EXPECT_EQ(direction_named(name(Direction::max)), Direction::max);
  EXPECT_EQ(message_of<InputError>([] { (void)direction_named("up"); }),
            "trace: direction is 'up', expected min or max");
}

using LongCsvTest = TemporaryFiles;

TEST_F(LongCsvTest, ReadsCurvesInOrderOfFirstAppearancePlainAndGzip) {
  const std::string text =
      "curve,step,value,lr,wall_seconds\n"
      "b,1,2.5,0.1,\n"
      "\"a, or \"\"A\"\"\",10,nan,,\n"
      "b,2.5,-inf,,7\r\n"
      "\n"
      "\"a, or \"\"A\"\"\",20,1e3,,\n";
  for (const auto& file : {write("plain.csv", text), write_gzip("packed.csv.gz", text)}) {
    const std::vector<Trace> traces = read_long_csv(file);
    ASSERT_EQ(traces.size(), 2U);
    EXPECT_EQ(traces[0].name, "b");
    EXPECT_EQ(traces[0].step, (Columns{1, 2.5}));
    EXPECT_EQ(traces[0].loss, (Columns{2.5, -kInf}));
    ASSERT_EQ(traces[0].lr.size(), 2U);
    EXPECT_EQ(traces[0].lr[0], 0.1);
    EXPECT_TRUE(std::isnan(traces[0].lr[1]));
    EXPECT_EQ(traces[0].wall_seconds[1], 7);
    EXPECT_EQ(traces[1].name, "a, or \"A\"");
    EXPECT_EQ(traces[1].step, (Columns{10, 20}));
    EXPECT_TRUE(std::isnan(traces[1].loss[0]));
    EXPECT_TRUE(traces[1].lr.empty());
    EXPECT_EQ(traces[1].direction, Direction::min);
  }
}

TEST_F(LongCsvTest, TakesTheMetricAskedForAndPassesOverRowsWithoutIt) {
  const auto file = write("a.csv", "curve,step,value,val_loss\nx,1,3,\nx,2,2,2.5\nx,2.5,1.9,\n");
  EXPECT_EQ(read_long_csv(file).at(0).step, (Columns{1, 2, 2.5}));
  EXPECT_EQ(read_long_csv(file, "val_loss").at(0).step, (Columns{2}));
  EXPECT_EQ(message_of<IoError>([&] { (void)read_long_csv(file, "accuracy"); }),
            file.string() + ":1: no column 'accuracy', only curve, step, value, val_loss");
}

TEST_F(LongCsvTest, ReadsTheDirectionFromTheJsonBesideIt) {
  const auto file = write_gzip("acc.csv.gz", "curve,step,value\nx,1,3\n");
  write("acc.json",
        "{\"setup\": {\"direction\": \"min\"}, \"notes\": [\"direction\", \"a \\\" : max\"],"
        " \"direction\" : \"max\", \"points\": 3}");
  EXPECT_EQ(read_long_csv(file).at(0).direction, Direction::max);
  write("acc.json", "{\"metric\": \"direction\", \"other\": \"max\"}");
  EXPECT_EQ(read_long_csv(file).at(0).direction, Direction::min);
  write("acc.json", "{\"direction\": \"upwards\"}");
  EXPECT_EQ(message_of<IoError>([&] { (void)read_long_csv(file); }),
            path("acc.json").string() + ": direction is 'upwards', expected min or max");
  write("acc.json", "[{\"direction\": \"max\"}]");  // no object: it says nothing of the curves
  EXPECT_EQ(read_long_csv(file).at(0).direction, Direction::min);
  write("acc.json", "\xEF\xBB\xBF{\"direction\": \"max\"}");
  EXPECT_EQ(read_long_csv(file).at(0).direction, Direction::max);
}

TEST_F(LongCsvTest, RefusesABrokenJsonBesideItByItsName) {
  const auto file = write("acc.csv", "curve,step,value\nx,1,3\n");
  const std::string whole = "{\"metric\": \"accuracy\", \"direction\": \"max\"}";
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    write("acc.json", whole.substr(0, kept));
    const std::string said = message_of<IoError>([&] { (void)read_long_csv(file); });
    EXPECT_TRUE(said.starts_with(path("acc.json").string() + ": not JSON: ")) << kept << said;
  }
  write("acc.json", "{\"metric\": \"accuracy\" \"direction\": \"max\"}");
  EXPECT_EQ(message_of<IoError>([&] { (void)read_long_csv(file); }),
            path("acc.json").string() + ": not JSON: Expecting ',' delimiter at byte 22");
  write("acc.json", whole);
  EXPECT_EQ(read_long_csv(file).at(0).direction, Direction::max);
}

TEST(LongCsvOfADeviceTest, IsRefusedAsItMayNeverEnd) {
  EXPECT_EQ(message_of<IoError>([] { (void)read_long_csv("/dev/zero"); }),
            "/dev/zero: not a regular file");
}

TEST_F(LongCsvTest, TheMetricIsTheColumnOrWhatTheFileBesideItSaysOfValue) {
  const std::filesystem::path file =
      write("acc.csv", "curve,step,value,val_loss\na,1,0.5,3\na,2,0.6,2\n");
  EXPECT_EQ(read_long_csv(file).at(0).metric, "value");
  EXPECT_EQ(read_long_csv(file, "val_loss").at(0).metric, "val_loss");
  write("acc.json", "{\"metric\": \"test accuracy (top 1), in %\"}");
  EXPECT_EQ(read_long_csv(file).at(0).metric, "test accuracy");
  EXPECT_EQ(read_long_csv(file, "val_loss").at(0).metric, "val_loss");
  for (const char* unreadable : {"{\"metric\": \" (x)\"}", "{\"metric\": 3}"}) {
    write("acc.json", unreadable);
    EXPECT_EQ(read_long_csv(file).at(0).metric, "value") << unreadable;
  }
  write("acc.json", "{\"metric\": \"\\u00e9\"}");
  EXPECT_EQ(read_long_csv(file).at(0).metric, "\xC3\xA9");
}

TEST_F(LongCsvTest, ADirectionBesideItIsThatOfValueAndOtherColumnsGoByTheirNames) {
  const std::filesystem::path file =
      write("a.csv", "curve,step,value,val_loss,val_acc,apples\na,1,0.5,3,0.5,1\n");
  const auto direction = [&](const char* metric) {
    return read_long_csv(file, metric).at(0).direction;
  };
  EXPECT_EQ(direction("value"), Direction::min);
  EXPECT_EQ(direction("val_loss"), Direction::min);
  EXPECT_EQ(direction("val_acc"), Direction::max);
  EXPECT_EQ(direction("apples"), Direction::min);
  write("a.json", R"({"metric": "share named right", "direction": "max"})");
  EXPECT_EQ(direction("value"), Direction::max);
  EXPECT_EQ(direction("share named right"), Direction::max);
  EXPECT_EQ(direction("val_loss"), Direction::min);
  EXPECT_EQ(direction("val_acc"), Direction::max);
  EXPECT_EQ(direction("apples"), Direction::max);
  write("a.json", R"({"metric": "accuracy", "direction": "min"})");
  EXPECT_EQ(direction("value"), Direction::min);
  EXPECT_EQ(direction("val_acc"), Direction::max);
  write("a.json", R"({"metric": "accuracy"})");
  EXPECT_EQ(direction("value"), Direction::max);
}

TEST_F(LongCsvTest, NamesFileAndLineOfWhatItRefuses) {
  const auto message = [&](std::string_view bytes) {
    return message_of<IoError>([&] { (void)read_long_csv(write("a.csv", bytes)); })
        .substr(path("a.csv").string().size());
  };
  EXPECT_EQ(message(""), ": the file is empty");
  EXPECT_EQ(message("curve,step,value\n"), ": no row has a value");
  EXPECT_EQ(message("curve,step\n"), ":1: no column 'value', only curve, step");
  EXPECT_EQ(message("step,value\n1,2\n"), ":1: no column 'curve', only step, value");
  EXPECT_EQ(message("curve,step,value\na,1,2\na,2,2.5e\n"), ":3: value '2.5e' is not a number");
  EXPECT_EQ(message("curve,step,value\na,one,2\n"), ":2: step 'one' is not a number");
  EXPECT_EQ(message("curve,step,value\na,nan,2\n"), ":2: step 'nan' is not finite");
  EXPECT_EQ(message("curve,step,value\na,2e300,2\n"),
            ":2: step is 2e+300, expected between -1e300 and 1e300");
  EXPECT_EQ(message("curve,step,value\na,,2\n"), ":2: step is empty");
  EXPECT_EQ(message("curve,step,value,lr\na,1,2,x\n"), ":2: lr 'x' is not a number");
  EXPECT_EQ(message("curve,step,value\na,1,2\nb,1,2\na,1,3\n"),
            ":4: step 1 of curve 'a' is not above the 1 before it");
  EXPECT_EQ(message("curve,step,value\ncaf\xE9,2,2\ncaf\xE9,1,3\n"),
            ":3: step 1 of curve 'caf\\xe9' is not above the 2 before it");
}

TEST_F(LongCsvTest, LeavesOutALastRowThatItsWriterDidNotFinish) {
  const std::string whole = "curve,step,value\n\"a,b\",98,2.125\n\"a,b\",99,2.250\n";
  const std::string last = "\"a,b\",100,1.875";
  const std::vector<std::string> note{"the last row is cut: left out"};
  for (std::size_t kept = 1; kept < last.size(); ++kept) {
    const Trace trace = read_long_csv(write("a.csv", whole + last.substr(0, kept))).at(0);
    EXPECT_EQ(trace.step, (Columns{98, 99})) << kept;
    EXPECT_EQ(trace.loss, (Columns{2.125, 2.25})) << kept;
    // A row without its value yet is passed over, as such a row is anywhere.
    EXPECT_EQ(trace.notes, kept == last.size() - 5 ? std::vector<std::string>{} : note) << kept;
  }
  const Trace all = read_long_csv(write("a.csv", whole + last)).at(0);
  EXPECT_EQ(all.loss, (Columns{2.125, 2.25, 1.875}));
  EXPECT_TRUE(all.notes.empty());
  const Trace half_step = read_long_csv(write("a.csv", "curve,value,step\na,3,9\na,2,1")).at(0);
  EXPECT_EQ(half_step.step, Columns{9});
  EXPECT_EQ(half_step.notes, note);
}

TEST_F(LongCsvTest, KeepsTheBytesOfANameInAnyEncoding) {
  EXPECT_EQ(read_long_csv(write("a.csv", "curve,step,value\ncaf\xE9,1,3\n")).at(0).name, "caf\xE9");
}

TEST_F(LongCsvTest, SurvivesEveryTruncationAndEveryFlippedByte) {
  const std::string text =
      "curve,step,value,lr\n\"a,b\",1,2.5,1e-3\r\n\"a,b\",2,2.25,\nc,1,nan,0\n";
  std::vector<std::string> inputs;
  for (std::size_t kept = 0; kept < text.size(); ++kept) inputs.push_back(text.substr(0, kept));
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'\0', '"', ',', '\n', '\r', '\xFF'}) {
      inputs.push_back(text);
      inputs.back()[i] = byte;
    }
  }
  int read = 0;
  for (const std::string& input : inputs) {
    try {
      for (const Trace& trace : read_long_csv(write("a.csv", input))) validate(trace.view());
      ++read;
    } catch (const IoError&) {
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, static_cast<int>(inputs.size()));
}

TEST(CleanTest, LeavesACleanTraceAsItIs) {
  const Trace raw{.name = "x",
                  .step = {1, 2, 3},
                  .loss = {3, 2, 1},
                  .lr = {.1, .2, .3},
                  .wall_seconds = {5, 6, 7},
                  .metric = "val_acc",
                  .direction = Direction::max,
                  .planned_steps = 9};
  const Cleaned cleaned = clean(raw, {.winsorize_sigmas = 6});
  EXPECT_EQ(cleaned.trace.name, "x");
  EXPECT_EQ(cleaned.trace.step, raw.step);
  EXPECT_EQ(cleaned.trace.loss, raw.loss);
  EXPECT_EQ(cleaned.trace.lr, raw.lr);
  EXPECT_EQ(cleaned.trace.wall_seconds, raw.wall_seconds);
  EXPECT_EQ(cleaned.trace.metric, "val_acc");
  EXPECT_EQ(cleaned.trace.direction, Direction::max);
  EXPECT_EQ(cleaned.trace.planned_steps, 9);
  EXPECT_EQ(
      cleaned.dropped_nonfinite + cleaned.dropped_repeats + cleaned.pulled_in + cleaned.thinned,
      0U);
}

TEST(CleanTest, KeepsWhatTheRunWasStartedWith) {
  const Trace raw{.step = {3, 1, 2}, .loss = {1, 3, 2}, .settings = {{"lr", 0.1}}, .notes = {"x"}};
  for (const int most : {2, 512}) {
    const Trace kept = clean(raw, {.max_points = most}).trace;
    EXPECT_EQ(kept.settings, raw.settings);
    EXPECT_EQ(kept.notes, raw.notes);
  }
}

TEST(CleanTest, SortsDropsAndKeepsTheLaterOfRepeatedSteps) {
  // A run restarted from step 2, with a NaN step, a NaN loss and an infinite one.
  const Trace raw{.step = {1, 2, 3, 2, 3, kNan, 4, 5, 6},
                  .loss = {9, 8, 7, 8.5, 7.5, 1, kNan, kInf, 6},
                  .lr = {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const Cleaned cleaned = clean(raw);
  EXPECT_EQ(cleaned.trace.step, (Columns{1, 2, 3, 6}));
  EXPECT_EQ(cleaned.trace.loss, (Columns{9, 8.5, 7.5, 6}));
  EXPECT_EQ(cleaned.trace.lr, (Columns{1, 4, 5, 9}));
  EXPECT_EQ(cleaned.dropped_nonfinite, 3U);
  EXPECT_EQ(cleaned.dropped_repeats, 2U);
  validate(cleaned.trace.view());
}

TEST(CleanTest, PullsInSpikesButNotASteepStart) {
  Trace raw;
  const detail::Rng rng{5};
  for (int i = 1; i <= 200; ++i) {
    raw.step.push_back(i);
    raw.loss.push_back(2 + 50 * std::exp(-i / 3.0) +
                       0.01 * rng.normal(0, static_cast<std::uint64_t>(i)));
  }
  Columns spiked = raw.loss;
  spiked[60] = 40;
  spiked[120] = -40;
  Trace with_spikes = raw;
  with_spikes.loss = spiked;
  const Cleaned cleaned = clean(with_spikes, {.winsorize_sigmas = 6});
  EXPECT_EQ(cleaned.pulled_in, 2U);
  for (std::size_t i = 0; i < raw.loss.size(); ++i) {
    EXPECT_NEAR(cleaned.trace.loss[i], raw.loss[i], 0.15) << i;
  }
  EXPECT_EQ(cleaned.trace.loss[0], raw.loss[0]);
  EXPECT_EQ(clean(with_spikes).trace.loss, spiked);
}

TEST(CleanTest, ThinsEvenlyInLogStepToExactlyTheNumberAsked) {
  Trace raw;
  for (int i = 1; i <= 100000; ++i) {
    raw.step.push_back(i);
    raw.loss.push_back(1.0 / i);
  }
  const Cleaned cleaned = clean(raw, {.max_points = 64});
  const Columns& step = cleaned.trace.step;
  ASSERT_EQ(step.size(), 64U);
  EXPECT_EQ(cleaned.thinned, 100000U - 64U);
  EXPECT_EQ(step.front(), 1);
  EXPECT_EQ(step.back(), 100000);
  validate(cleaned.trace.view());
  for (std::size_t i = 0; i < step.size(); ++i) EXPECT_EQ(cleaned.trace.loss[i], 1.0 / step[i]);
  // Beyond the first, integer steps, each gap in log step is near the same.
  const double gap = std::log(step[63] / step[62]);
  for (std::size_t i = 24; i < 63; ++i)
    EXPECT_NEAR(std::log(step[i] / step[i - 1]) / gap, 1, 0.1) << i;
  for (const int most : {2, 3, 99999}) {
    EXPECT_EQ(clean(raw, {.max_points = most}).trace.step.size(), static_cast<std::size_t>(most));
  }
}

TEST(CleanTest, ThinsStepsThatStartAtZeroOrBelow) {
  for (const double first : {0.0, -50.0}) {
    Trace raw;
    for (int i = 0; i < 1000; ++i) {
      raw.step.push_back(first + 10.0 * i);
      raw.loss.push_back(1);
    }
    const Trace thin = clean(raw, {.max_points = 20}).trace;
    ASSERT_EQ(thin.step.size(), 20U);
    EXPECT_EQ(thin.step.front(), first);
    EXPECT_EQ(thin.step.back(), raw.step.back());
    validate(thin.view());
  }
}

TEST(CleanTest, RefusesColumnsThatDoNotMatchAndOptionsOutOfRange) {
  const Trace two{.step = {1, 2}, .loss = {1, 2}};
  EXPECT_EQ(message_of<InputError>([&] {
              (void)clean({.step = {1, 2}, .loss = {1}});
            }),
            "clean: 2 steps but 1 losses");
  Trace turned = two;
  turned.direction = static_cast<Direction>(9);
  EXPECT_EQ(message_of<InputError>([&] { (void)clean(turned); }),
            "clean: direction is value 9, expected one of min, max");
  EXPECT_THROW((void)clean({.step = {1, 2}, .loss = {1, 2}, .lr = {1}}), InputError);
  EXPECT_THROW((void)clean({.step = {1, 2}, .loss = {1, 2}, .wall_seconds = {1}}), InputError);
  EXPECT_THROW((void)clean(two, {.max_points = 1}), InputError);
  EXPECT_THROW((void)clean(two, {.winsorize_sigmas = kNan}), InputError);
  EXPECT_EQ(clean({}).trace.step.size(), 0U);
  EXPECT_EQ(
      clean({.step = {3}, .loss = {1}}, {.max_points = 2, .winsorize_sigmas = 6}).trace.step.size(),
      1U);
}

}  // namespace
}  // namespace glidepath
