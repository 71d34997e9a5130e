// SPDX-License-Identifier: Apache-2.0
// The readers of logs from C++: the points that stand in them, and what is said of those that are
// refused. `tests/python/test_readers*.py` try the same readers on many more logs.
#include "glidepath/error.hpp"
#include "glidepath/trace.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "common/rng.hpp"
#include "temporary_files.hpp"
#include "trace/metric_name.hpp"
#include "trace/readers/json.hpp"
#include "trace/readers/names.hpp"
#include "trace/readers/rows.hpp"
#include "trace/readers/text.hpp"

namespace glidepath {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using Columns = std::vector<double>;

class ReadersTest : public TemporaryFiles {
 protected:
  [[nodiscard]] Trace one(std::string_view name, std::string_view bytes,
                          const ReadOptions& options = {}) const {
    const std::vector<Trace> traces = read_traces(write(name, bytes), options);
    EXPECT_EQ(traces.size(), 1U);
    return traces.front();
  }
  /// What is said of a file, from its name on.
  [[nodiscard]] std::string said(std::string_view name, std::string_view bytes,
                                 const ReadOptions& options = {}) const {
    const std::filesystem::path file = write(name, bytes);
    const std::string all = message_of<IoError>([&] { (void)read_traces(file, options); });
    return all.substr(std::min(all.find(name), all.size()));
  }
};

TEST_F(ReadersTest, ATrainerStateGivesLossRatesAndThePlan) {
  const Trace run = one("trainer_state.json", R"({"max_steps": 40, "log_history": [
      {"step": 10, "loss": 2.5, "learning_rate": 0.5, "grad_norm": 1.0},
      {"step": 10, "eval_loss": 2.75},
      {"step": 20, "loss": 0.0, "learning_rate": 0.25, "grad_norm": NaN},
      {"step": 30, "loss": 2, "grad_norm": 1.0},
      {"step": 30, "train_loss": 2.25, "train_runtime": 60.0}]})");
  EXPECT_EQ(run.step, (Columns{10, 20, 30}));
  EXPECT_EQ(run.loss[0], 2.5);
  EXPECT_TRUE(std::isnan(run.loss[1]));  // what the Trainer writes for NaN
  EXPECT_EQ(run.loss[2], 2);
  EXPECT_EQ(run.lr[1], 0.25);
  EXPECT_EQ(run.planned_steps, 40);
  EXPECT_EQ(run.name, "trainer_state.json");
  EXPECT_EQ(run.metric, "loss");
  EXPECT_EQ(run.notes,
            (std::vector<std::string>{"loss 0 beside a NaN grad_norm in 1 row: read as NaN"}));
}

TEST_F(ReadersTest, WhatAToolWritesBesideItsTableAreSettings) {
  write("args.yaml", "lr0: 0.01\noptimizer: SGD\ncos_lr: false\nlist: [1]\napi_key: 5\nfree:\n");
  const std::string rows = "epoch,train/box_loss\n1,3\n2,2\n3,1.5\n";
  EXPECT_EQ(one("results.csv", rows).settings,
            (Settings{{"lr0", 0.01}, {"optimizer", "SGD"}, {"cos_lr", "False"}}));
  EXPECT_TRUE(one("own.csv", rows).settings.empty());
  write("args.yaml", "lr0: 0.01\nlr0: 0.02\n");
  const Trace damaged = one("results.csv", rows);
  EXPECT_EQ(damaged.step.size(), 3U);
  EXPECT_TRUE(damaged.settings.empty());
  EXPECT_EQ(damaged.notes.front(),
            "no settings were read of args.yaml: line 2 is not 'key: value'");
}

TEST_F(ReadersTest, JsonLinesHaveTimesAndMayBeCut) {
  const std::string rows =
      "{\"current_steps\": 5, \"total_steps\": 20, \"loss\": 2.0, \"elapsed_time\": \"0:00:10\"}\n"
      "{\"current_steps\": 10, \"total_steps\": 20, \"loss\": 1.5, \"elapsed_time\": "
      "\"0:01:00\"}\n";
  const Trace run = one("log.jsonl", rows + "{\"current_st");
  EXPECT_EQ(run.step, (Columns{5, 10}));
  EXPECT_EQ(run.wall_seconds, (Columns{10, 60}));
  EXPECT_EQ(run.planned_steps, 20);
  EXPECT_EQ(run.notes, (std::vector<std::string>{"the last line is cut: left out"}));
  EXPECT_EQ(said("log.jsonl", "{\"step\": 1, \"loss\": 1}\n{\"step\": 2,\n{\"step\": 3}\n"),
            "log.jsonl:2: Expecting property name enclosed in double quotes");
}

TEST_F(ReadersTest, EventsOfMlperfAreRows) {
  const Trace run =
      one("mlperf.txt",
          "starting\n"
          ":::MLLOG {\"key\": \"loss\", \"value\": 3, \"metadata\": {\"step\": 1}}\n"
          ":::MLLOG {\"key\": \"loss\", \"value\": 2, \"metadata\": {\"step\": 4}}\n");
  EXPECT_EQ(run.step, (Columns{1, 4}));
  EXPECT_EQ(run.loss, (Columns{3, 2}));
}

TEST_F(ReadersTest, ATableHasCommasTabsOrBlanksAndTheLaterRowsWin) {
  const Columns step{1, 2, 3}, loss{4, 2, 1};
  for (const std::string_view text :
       {"step,loss\n1,4\n2,3\n3,9\n2,2\n3,1\n", "step\tloss\n1\t4\n2\t2\n3\t1\n",
        "# seed 1\n\"step\",\"loss\"\r\n1,\"4\"\r\n2,2\r\n3,1\r\n",
        "step loss\n1 4\n2 2\n3  1\n"}) {
    const Trace run = one("log.csv", text);
    EXPECT_EQ(run.step, step) << text;
    EXPECT_EQ(run.loss, loss) << text;
  }
  EXPECT_EQ(said("log.csv", "step,loss\n1,4\n2,x\n"), "log.csv:3: loss 'x' is not a number");
  EXPECT_EQ(said("log.csv", "step,loss\n1,4,5\n"), "log.csv:2: 3 fields where the header has 2");
  EXPECT_EQ(said("log.csv", "step loss\n1 4\n2 3\n3 2 1\n"),
            "log.csv:4: 3 fields where the header has 2");
  EXPECT_EQ(said("log.csv", "step,loss,step\n1,2,3\n"), "log.csv:1: two columns are called 'step'");
}

TEST_F(ReadersTest, ConsoleLogsAreReadByTheirForm) {
  const Trace megatron = one("a.log",
                             "loading data\n"
                             " iteration 10/ 500 | lm loss: 2.5E+00 | learning rate: 1.0E-04 |\n"
                             " iteration 20/ 500 | lm loss: 2.0E+00 | learning rate: 2.0E-04 |\n");
  EXPECT_EQ(megatron.step, (Columns{10, 20}));
  EXPECT_EQ(megatron.loss, (Columns{2.5, 2}));
  EXPECT_EQ(megatron.lr, (Columns{1e-4, 2e-4}));
  EXPECT_EQ(megatron.planned_steps, 500);
  EXPECT_EQ(megatron.metric, "lm loss");

  const Trace keras =
      one("b.log",
          "Epoch 1/3\n9/9 [=========] - 1s 2ms/step - loss: 3.0 - accuracy: 0.5\n"
          "Epoch 2/3\n9/9 [=========] - 1s 2ms/step - loss: 2.0 - accuracy: 0.75\n");
  EXPECT_EQ(keras.step, (Columns{1, 2}));
  EXPECT_EQ(keras.loss, (Columns{3, 2}));

  const Trace episodes = one("c.log",
                             "-----\n| rollout/ | |\n|    ep_rew_mean | 10 |\n| time/ | |\n"
                             "|    total_timesteps | 100 |\n-----\n| rollout/ | |\n"
                             "|    ep_rew_mean | 20 |\n| time/ | |\n"
                             "|    total_timesteps | 200 |\n-----\n");
  EXPECT_EQ(episodes.step, (Columns{100, 200}));
  EXPECT_EQ(episodes.direction, Direction::max);
}

TEST_F(ReadersTest, AFolderNamesRunsByTheirPathsAndPassesOverOtherFiles) {
  std::filesystem::create_directories(path("runs/b"));
  write("runs/b/log.csv", "step,loss\n1,2\n2,1\n");
  write_gzip("runs/a.jsonl.gz", "{\"step\": 1, \"loss\": 5}\n{\"step\": 2, \"loss\": 4}\n");
  write("runs/picture.png", "\x89PNG\r\n");
  write("runs/c.csv", "step,accuracy\n1,0.5\n");
  const std::vector<Trace> runs = read_traces(path("runs"), {.metric = "loss"});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].name, "a.jsonl.gz");
  EXPECT_EQ(runs[1].name, "b/log.csv");
  EXPECT_EQ(read_traces(path("runs"), {.format = "jsonl"}).size(), 1U);
  const std::string none =
      message_of<IoError>([&] { (void)read_traces(path("runs"), {.metric = "x"}); });
  EXPECT_NE(none.find("no traces in this folder with a metric 'x'"), std::string::npos) << none;
}

TEST_F(ReadersTest, SummariesBesideACurveAreLeftOutOfAFolder) {
  write("results.json", "{\"epoch\": 3, \"train_loss\": 0.5}\n");
  const std::filesystem::path file = write("time_left.csv", "iter,Passed\n0,1\n1,2\n2,3\n");
  EXPECT_EQ(read_traces(file.parent_path()).size(), 2U);  // where there is nothing else
  write("log.csv", "step,loss\n1,3\n2,2\n3,1\n");
  const std::vector<Trace> traces = read_traces(file.parent_path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces.front().name, "log.csv");
}

TEST_F(ReadersTest, AFolderReadsWhatIsInItTwiceOnce) {
  const std::string row = R"({"step": 1, "loss": 3})";
  const std::string two = row + R"(, {"step": 2, "loss": 2})";
  std::filesystem::create_directories(path("out/checkpoint-1"));
  std::filesystem::create_directories(path("out/checkpoint-2"));
  write("out/checkpoint-1/trainer_state.json", R"({"log_history": [)" + row + "]}");
  write("out/checkpoint-2/trainer_state.json", R"({"log_history": [)" + two + "]}");
  const std::filesystem::path file =
      write("out/trainer_state.json", R"({"log_history": [)" + two + "]}");
  std::filesystem::create_symlink(file, file.parent_path() / "latest.json");
  const std::vector<Trace> traces = read_traces(file.parent_path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].name, "trainer_state.json");
  EXPECT_EQ(traces[0].step, (Columns{1, 2}));
  EXPECT_EQ(read_traces(file.parent_path() / "checkpoint-1")[0].step, (Columns{1}));
}

TEST_F(ReadersTest, AFolderHasARunOnceThatAToolWritesInTwoFormats) {
  std::filesystem::create_directories(path("trial"));
  const std::string table = "training_iteration,loss\n1,3\n2,2\n3,1\n";
  const std::filesystem::path file = write("trial/progress.csv", table);
  write("trial/result.json",
        "{\"training_iteration\": 1, \"loss\": 3}\n{\"training_iteration\": 2, \"loss\": 2}\n");
  std::vector<Trace> traces = read_traces(file.parent_path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].name, "progress.csv");  // which has a point more
  write("trial/copy.csv", table);             // of one format: another run
  traces = read_traces(file.parent_path());
  EXPECT_EQ(traces.size(), 2U);
}

TEST_F(ReadersTest, AColumnOfRunsGivesATraceEach) {
  const std::filesystem::path file =
      write("runs.csv", "seed,step,loss\n7,1,3\n8,1,4\n7,2,2\n8,2,3\n7,3,1\n8,3,2\n");
  const std::vector<Trace> traces = read_traces(file);
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[1].name, "8");
  EXPECT_EQ(traces[1].loss, (Columns{4, 3, 2}));
}

TEST_F(ReadersTest, WhatIsNoLogIsRefusedInASentence) {
  EXPECT_EQ(
      said("log.txt", "a line\nanother\n"),
      "log.txt: a log of no known format (formats: csv, trainer_state, jsonl, table, text); of a "
      R"(console log say pattern=r'step (?P<step>\d+) .* loss (?P<value>\S+)' as the lines are)");
  EXPECT_EQ(said("run.wandb", ":W&B step 1 loss 2\nstep 2 loss 1\n"),
            "run.wandb: a log of a tracker, which Python's read_traces reads");
  EXPECT_EQ(said("log.csv", ""), "log.csv: the file is empty");
  EXPECT_EQ(said("log.csv", "a,b\n1,2\n"),
            "log.csv:1: a table needs a column of steps (step, epoch, iteration …) or a loss, the "
            "long form curve, step and value: found only a, b");
  EXPECT_EQ(said("loss.csv", "0.9,2.5\n0.8,2.25\n0.7,2\n"),
            "loss.csv:1: the first line is the numbers 0.9, 2.5, expected the names of its columns "
            "above it, such as step,loss");
  EXPECT_EQ(said("log.csv", "step,loss\n1,2\n", {.metric = "x"}),
            "log.csv: no metric 'x', only loss");
  EXPECT_EQ(message_of<InputError>([&] { (void)read_traces(path("x"), {.format = "y"}); }),
            "read_traces: format is 'y', expected one of csv, trainer_state, jsonl, table, text");
  EXPECT_THROW((void)read_traces(""), InputError);
  EXPECT_THROW((void)read_traces(path("absent")), IoError);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const char* format : {"csv", "jsonl", "text"}) {
    EXPECT_NE(message_of<IoError>([&] {
                (void)read_traces(path("pipe"), {.format = format});
              }).find("not a regular file"),
              std::string::npos);
  }
}

TEST_F(ReadersTest, DamageOfAPackedLogIsSaidWithItsLine) {
  std::string rows = "step,loss\n";
  for (int i = 1; i < 500; ++i) rows += std::to_string(i) + "," + std::to_string(1.0 / i) + "\n";
  const std::filesystem::path file = write_gzip("log.csv.gz", rows);
  EXPECT_EQ(read_traces(file).front().step.size(), 499U);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 4);
  EXPECT_NE(message_of<IoError>([&] { (void)read_traces(file); }).find("log.csv.gz:501: "),
            std::string::npos);
}

TEST_F(ReadersTest, NoBytesEndInAnythingButTracesOrASentence) {
  const std::string logs[] = {
      "{\"log_history\": [{\"step\": 1, \"loss\": 2.5}, {\"step\": 2, \"loss\": 1e-3}]}",
      "{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"loss\": \"nan\"}\n",
      "step,loss,\"a \"\"b\"\"\"\n1,2,3\n2,1,inf\n",
      "[rank0] step 3/9 | loss 2.5 (12:30:01) | 50%|##| acc 1e-3%\nstep 4/9 | loss -inf\n",
      "epoch train valid\n1/3 0.5 0.25\n2/3 0.4 np.float64(0.2)\n"};
  const detail::Rng rng{7};
  std::uint64_t draw = 0;
  for (const std::string& log : logs) {
    for (std::size_t at = 0; at < log.size(); ++at) {
      std::string changed = log;
      changed[at] = static_cast<char>(rng.bits(0, draw++) & 0xFF);
      for (const std::string& text : {changed, log.substr(0, at)}) {
        const std::filesystem::path file = write("log", text);
        for (const char* format : {"trainer_state", "jsonl", "table", "text", ""}) {
          ReadOptions options;
          if (*format != '\0') options.format = format;
          try {
            for (const Trace& trace : read_traces(file, options)) validate(trace.view());
          } catch (const IoError& error) {
            EXPECT_NE(std::string(error.what()).find("log"), std::string::npos);
          }
        }
      }
    }
  }
}

TEST_F(ReadersTest, APlanThatOnlyACutRowHasIsNone) {
  const Trace run = one("log.csv", "step,loss,max_steps\n100,2.0,\n200,1.9,\n3,1.8,500");
  EXPECT_EQ(run.step, (Columns{100, 200}));
  EXPECT_EQ(run.planned_steps, std::nullopt);
  EXPECT_EQ(run.notes.front(), "the last row is cut: left out");
}

TEST(JsonTest, SaysWhatIsWrongAndReadsWhatNoDoubleHolds) {
  const auto message = [](const std::string& text) {
    return message_of<detail::JsonError>([&] { (void)detail::parse_json(text); });
  };
  EXPECT_EQ(message("{\"a\" 1}"), "Expecting ':' delimiter");
  EXPECT_EQ(message("[1 2]"), "Expecting ',' delimiter");
  EXPECT_EQ(message("[1,"), "Expecting value");
  EXPECT_EQ(message("{} x"), "Extra data");
  EXPECT_EQ(message("\"a"), "Unterminated string starting at");
  EXPECT_EQ(message("\"\\q\""), "Invalid \\escape");
  EXPECT_EQ(message("\"\\u12\""), "Invalid \\uXXXX escape");
  EXPECT_EQ(message("\"\n\""), "Invalid control character at");
  EXPECT_NE(message(std::string(5000, '[')).find("recursion"), std::string::npos);
  const detail::Json read =
      detail::parse_json("{\"a\": 1, \"b\": [1e999, -Infinity, NaN, -0.5e1], \"a\": \"\\u00e9\"}");
  ASSERT_EQ(read.members.size(), 2U);
  EXPECT_EQ(read.find("a")->text, "é");
  const std::vector<detail::Json>& items = read.find("b")->items;
  EXPECT_EQ(items[0].number, kInf);
  EXPECT_EQ(items[1].number, -kInf);
  EXPECT_TRUE(std::isnan(items[2].number));
  EXPECT_EQ(items[3].number, -5);
}

TEST(TextTest, NumbersAndDurationsAreReadAsPythonWritesThem) {
  using detail::number_in;
  using detail::seconds_in;
  EXPECT_EQ(number_in(" 1_000.5 "), 1000.5);
  EXPECT_EQ(number_in("+.5e1"), 5);
  EXPECT_EQ(number_in("12.5%"), 12.5);
  EXPECT_EQ(number_in("tensor([0.25], device='cuda:0')"), 0.25);
  EXPECT_EQ(number_in("tensor(0.25, device='cuda:0', grad_fn=<NllLossBackward0>)"), 0.25);
  EXPECT_EQ(number_in("<tf.Tensor: shape=(), dtype=float32, numpy=0.25>"), 0.25);
  EXPECT_EQ(number_in("np.float64(2.0)"), 2);
  for (const char* text : {"", "x", "1__0", "_1", "1_", "0x10", "nan(1)", "--1", "1 2", "tensor()",
                           "tensor(1, 2)", "tensor([1, 2], device='cuda:0')", "Array(1, dtype"}) {
    EXPECT_FALSE(number_in(text)) << text;
  }
  EXPECT_EQ(seconds_in("1:02:03.5"), 3723.5);
  EXPECT_EQ(seconds_in("2 days, 0:00:01"), 172801);
  EXPECT_EQ(seconds_in("90"), 90);
  EXPECT_TRUE(std::isnan(seconds_in("1:2:3")));
  EXPECT_EQ(detail::repaired("a\xFF\xE2\x82z \xC3\xA9"), "a\xC3\xBF\xC3\xA2\xC2\x82z \xC3\xA9");
  EXPECT_EQ(detail::repr("it's\n\x01"), "\"it's\\n\\x01\"");
}

TEST(NamesTest, SayWhichMetricIsReadAndWhichWayIsBetter) {
  using detail::best_name;
  EXPECT_EQ(detail::normal(" Train/someLosses (avg)"), "train_some_loss_avg_");
  EXPECT_EQ(best_name({{"lr", 50}, {"val_loss", 50}, {"loss", 50}, {"accuracy", 50}}), "loss");
  EXPECT_EQ(best_name({{"rollout/ep_rew_mean", 50}, {"loss", 50}}), "rollout/ep_rew_mean");
  EXPECT_EQ(best_name({{"loss", 2}, {"val_loss", 50}}), "val_loss");
  EXPECT_EQ(best_name({{"a", 5}, {"b", 5}}), std::nullopt);
  EXPECT_EQ(best_name({{"a", 5}, {"time", 5}}), "a");
  EXPECT_EQ(detail::direction_by_name("val/Accuracy@1"), Direction::max);
  EXPECT_EQ(detail::direction_by_name("bits_per_byte"), Direction::min);
  EXPECT_EQ(detail::direction_by_name("mapping"), std::nullopt);
  for (const auto* name :
       {"rollout/ep_rew_mean", "mean return of 32 episodes", "Reward", "EpRet"}) {
    EXPECT_TRUE(detail::is_return_by_name(name)) << name;
  }
  for (const auto* name : {"", "accuracy", "rewards/accuracies", "returned", "retrieval mAP"}) {
    EXPECT_FALSE(detail::is_return_by_name(name)) << name;
  }
  EXPECT_EQ(detail::reached_by_name("train_accuracy"), "curve");
  EXPECT_EQ(detail::reached_by_name("wer"), "point");
}

}  // namespace
}  // namespace glidepath
