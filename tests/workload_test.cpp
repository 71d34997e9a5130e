// SPDX-License-Identifier: Apache-2.0
#include "glidepath/error.hpp"
#include "glidepath/simulate.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "refusal.hpp"
#include "temporary_files.hpp"

namespace glidepath {
namespace {

Workload one_job() {
  Workload out;
  out.tiers = {{.name = "a100", .nodes = 2, .gpus_per_node = 4, .memory_gb = 40}};
  WorkloadJob job{.id = 17};
  job.duration_s = 10;
  out.jobs.push_back(job);
  return out;
}

TEST(BadInputTest, OneSentenceNamesTheJob) {
  const auto message = [](auto&& change) {
    Workload workload = one_job();
    change(workload);
    return message_of<InputError>([&] { (void)simulate(workload, "fifo"); });
  };
  EXPECT_EQ(message([](Workload& w) { w.jobs[0].gpus = 9; }),
            "workload: job 17 asks 9 GPUs, the largest tier has 8");
  EXPECT_EQ(message([](Workload& w) { w.jobs[0].gpus = 0; }),
            "workload: job 17 asks 0 GPUs, expected at least 1");
  EXPECT_EQ(message([](Workload& w) { w.jobs[0].duration_s = -1; }),
            "workload: job 17 has duration_s -1, expected more than 0 and finite");
  EXPECT_EQ(message([](Workload& w) { w.jobs[0].duration_s = 0; }),
            "workload: job 17 has neither duration_s nor budget_steps above 0");
  EXPECT_EQ(message([](Workload& w) { w.jobs[0].submit_s = std::nan(""); }),
            "workload: job 17 has submit_s nan, expected 0 or more");
  EXPECT_EQ(message([](Workload& w) { w.jobs.push_back(w.jobs[0]); }),
            "workload: job 17 is there twice");
  EXPECT_EQ(message([](Workload& w) { w.jobs[0].memory_gb = 80; }),
            "workload: job 17 fits no tier: it asks 1 GPUs of 80 GB each (largest memory 40 GB) "
            "and a step rate above 0");
  EXPECT_EQ(message([](Workload& w) { w.jobs.clear(); }), "workload: it has no job");
  EXPECT_EQ(message([](Workload& w) { w.tiers.clear(); }), "workload: it has no tier");
}

TEST(BadInputTest, ACurveWhoseStepsGoBackIsRefusedByTheNameOfItsJob) {
  Workload workload = one_job();
  WorkloadJob& job = workload.jobs[0];
  job.duration_s = 0;
  job.budget_steps = 4;
  job.truth = 0;
  const auto message = [&](std::vector<double> step) {
    workload.curves = {{.name = "c", .step = std::move(step), .loss = {4, 3, 2}}};
    return refusal([&] { (void)simulate(workload, "fifo"); });
  };
  const std::string curve = "workload: job 17 names curve 0 'c': trace: ";
  EXPECT_EQ(message({1, 2, 4}), "");
  EXPECT_EQ(message({1, 0, 4}), curve + "step[1] is 0, expected above the 1 before it");
  EXPECT_EQ(message({1, 2, std::nan("")}),
            curve + "step[2] is nan, expected between -1e300 and 1e300");
  EXPECT_EQ(message({1, 2}), curve + "2 steps but 3 losses");
}

TEST(BadInputTest, AJobThatWouldTakeLongerThanAnyTimeOnATierIsRefused) {
  const auto message = [](auto&& change) {
    Workload workload = one_job();
    workload.tiers.push_back({.name = "v100", .nodes = 4});
    change(workload.jobs[0]);
    return refusal([&] { (void)simulate(workload, "fifo"); });
  };
  const std::string expected = ", expected at most 1e12, or a rate of 0 where it cannot run";
  EXPECT_EQ(message([](WorkloadJob& job) {
              job.steps_per_s = {1, 1e-12};
            }),
            "workload: job 17 would take 1e+13 s on 1 GPUs of tier 'v100'" + expected);
  EXPECT_EQ(message([](WorkloadJob& job) {
              job.steps_per_s = {1e-300, 0};
            }),
            "workload: job 17 would take 1e+301 s on 1 GPUs of tier 'a100'" + expected);
  EXPECT_EQ(message([](WorkloadJob& job) { job.duration_s = 0, job.budget_steps = 1e13; }),
            "workload: job 17 would take 1e+13 s on 1 GPUs of tier 'a100'" + expected);
  EXPECT_EQ(message([](WorkloadJob& job) {
              job.gangs = {{2, {1e-20, 1}}};
            }),
            "workload: job 17 would take 1e+21 s on 2 GPUs of tier 'a100'" + expected);
  // Where it cannot run, or not so slowly, nothing is wrong.
  EXPECT_EQ(message([](WorkloadJob& job) { job.steps_per_s = {1, 0}; }), "");
  EXPECT_EQ(message([](WorkloadJob& job) { job.gpus = 8, job.steps_per_s = {1, 1e-12}; }), "");
  EXPECT_EQ(message([](WorkloadJob& job) {
              job.memory_gb = 40, job.steps_per_s = {1, 1e-11};
            }),
            "");
}

TEST(BadInputTest, AnEndBeyondTheClockIsRefusedAndNoJobEndsAtOnce) {
  Workload workload = one_job();
  workload.jobs.clear();
  for (int i = 0; i < 12; ++i) {
    WorkloadJob& job = workload.jobs.emplace_back(WorkloadJob{.id = i});
    job.gpus = 8;
    job.duration_s = 1e12;
    job.submit_s = 0.000001;  // ticks of a microsecond
  }
  EXPECT_EQ(message_of<InputError>([&] { (void)simulate(workload, "fifo"); }),
            "simulate: job 4 would end later than after 4e+12 seconds");
}

TEST(BadInputTest, OnePairOfClassesHasOneResult) {
  const auto message = [](std::vector<PairSpeeds> pairs) {
    Workload workload = one_job();
    workload.pairs = std::move(pairs);
    return refusal([&] { validate(workload); });
  };
  EXPECT_EQ(message({{"x", "y", 0, 0.5, 0.6}, {"y", "x", 0, 0.6, 0.5}}), "");
  EXPECT_EQ(message({{"x", "x", 0, 0.5, 0.6}}), "");  // two of one class
  EXPECT_EQ(message({{"x", "y", 0, 0.5, 0.6}, {"x", "y", 0, 0.6, 0.6}}),
            "workload: the pair of 'x' and 'y' has two results on tier 0");
  EXPECT_EQ(message({{"x", "y", 0, 0.5, 0.6}, {"y", "x", 0, 0.5, 0.6}}),
            "workload: the pair of 'y' and 'x' has two results on tier 0");
}

TEST(BadInputTest, AnUnknownPolicyIsRefusedWithTheKnownOnes) {
  const std::string text =
      message_of<InputError>([] { (void)simulate(one_job(), "shortest_first"); });
  EXPECT_EQ(text.find("simulate: policy is 'shortest_first', expected one of fifo, first_fit, "),
            0U)
      << text;
  EXPECT_NE(text.find("best_value"), std::string::npos);
}

TEST(BadInputTest, OptionsOutOfRangeAreNamed) {
  const auto message = [](auto&& change) {
    SimulationOptions options;
    change(options);
    return message_of<InputError>([&] { (void)simulate(one_job(), "fifo", options); });
  };
  EXPECT_EQ(message([](SimulationOptions& o) { o.restart_s = -1; }),
            "simulate: restart_s is -1, expected 0 or more");
  EXPECT_EQ(message([](SimulationOptions& o) { o.session_s = 0; }),
            "simulate: session_s is 0, expected a time above 0");
  EXPECT_EQ(message([](SimulationOptions& o) { o.forecast_sigma = std::nan(""); }),
            "simulate: forecast_sigma is nan, expected 0 or more and finite");
  EXPECT_EQ(message([](SimulationOptions& o) { o.sharing = static_cast<Sharing>(99); }),
            "simulate: sharing is value 99, expected one of exclusive, naive, mps, mig");
}

TEST(BadInputTest, NoTimeOfTheOptionsIsLongerThanTheClock) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto message = [](auto&& change) {
    SimulationOptions options;
    change(options);
    return message_of<InputError>([&] { (void)simulate(one_job(), "session_fifo", options); });
  };
  const std::string most = ", expected at most 1e12";
  const auto nodes = [](SimulationOptions& o) -> Failures& {
    o.failures.node_every_s = 1000;
    return o.failures;
  };
  EXPECT_EQ(message([&](SimulationOptions& o) { nodes(o).repair_s = inf; }),
            "simulate: failures.repair_s is inf" + most);
  EXPECT_EQ(message([&](SimulationOptions& o) { nodes(o).repair_s = 1e13; }),
            "simulate: failures.repair_s is 1e+13" + most);
  EXPECT_EQ(message([&](SimulationOptions& o) { o.sleep = {.after_s = 1, .wake_s = 1e300}; }),
            "simulate: sleep.wake_s is 1e+300" + most);
  EXPECT_EQ(message([](SimulationOptions& o) { o.session_s = 1e15; }),
            "simulate: session_s is 1e+15" + most);
  EXPECT_EQ(message([&](SimulationOptions& o) {
              o.carbon_g_per_kwh = {100, inf};
            }),
            "simulate: carbon_g_per_kwh is inf" + most);
  EXPECT_EQ(message([](SimulationOptions& o) { o.carbon_g_per_kwh = {-1}; }),
            "simulate: carbon_g_per_kwh is -1, expected 0 or more");
}

class TraceFileTest : public TemporaryFiles {};

TEST_F(TraceFileTest, ReadsPlainAndGzipAlike) {
  const std::string text = "job,submit_s,gpus,duration_s,user\n3,0,2,10,ann\n4,1.5,1,2,bob\n";
  for (const auto& file : {write("a.csv", text), write_gzip("a.csv.gz", text)}) {
    const Workload workload = workload_from_trace(file, 4, 2);
    ASSERT_EQ(workload.jobs.size(), 2U);
    EXPECT_EQ(workload.jobs[1].id, 4);
    EXPECT_EQ(workload.jobs[1].submit_s, 1.5);
    EXPECT_EQ(workload.jobs[0].user, "ann");
    EXPECT_EQ(workload.tiers[0].nodes, 2);
  }
}

TEST_F(TraceFileTest, ReadsTracesOfTiresiasAsTheyAre) {
  const auto file = write("60_job.csv",
                          "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
                          "0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n");
  const Workload workload = workload_from_trace(file, 60);
  ASSERT_EQ(workload.jobs.size(), 2U);
  EXPECT_EQ(workload.jobs[1].gpus, 8);
  EXPECT_EQ(workload.jobs[1].submit_s, 30);
  EXPECT_EQ(workload.jobs[1].duration_s, 147);
}

TEST_F(TraceFileTest, PrefersItsOwnNamesWhereATraceHasThoseOfTiresiasToo) {
  const auto file = write("a.csv",
                          "job_id,job,submit_time,submit_s,gpus,duration,duration_s\n"
                          "90,1,2023-01-01,7,2,1:00:00,3600\n");
  const Workload workload = workload_from_trace(file, 4, 2);
  ASSERT_EQ(workload.jobs.size(), 1U);
  EXPECT_EQ(workload.jobs[0].id, 1);
  EXPECT_EQ(workload.jobs[0].submit_s, 7);
  EXPECT_EQ(workload.jobs[0].duration_s, 3600);
}

TEST_F(TraceFileTest, ReadsWhatJobsMaySayBesideTheirWork) {
  const auto file = write("a.csv",
                          "job,submit_s,gpus,duration_s,class,weight,priority,deadline_s\n"
                          "1,0,1,5,bert,2.5,3,60\n2,0,1,5,gpt,1,0,\n");
  const Workload workload = workload_from_trace(file, 4);
  EXPECT_EQ(workload.jobs[0].job_class, "bert");
  EXPECT_EQ(workload.jobs[0].weight, 2.5);
  EXPECT_EQ(workload.jobs[0].priority, 3);
  EXPECT_EQ(workload.jobs[0].deadline_s, 60);
  EXPECT_EQ(workload.jobs[1].deadline_s, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(workload.notes.empty());
}

TEST_F(TraceFileTest, SaysWhichColumnsAreNotReadAndWhichJobsAreLeftOut) {
  const auto file = write("pods.csv",
                          "job,submit_s,gpus,gpu_milli,duration_s,qos\n"
                          "7,0,1,460,5,LS\n8,,0,0,,BE\n9,1,2,1000,5,LS\n10,2,0,0,5,BE\n");
  const Workload workload = workload_from_trace(file, 4);
  ASSERT_EQ(workload.jobs.size(), 2U);
  EXPECT_EQ(workload.jobs[1].id, 9);
  EXPECT_EQ(workload.notes,
            (std::vector<std::string>{"pods.csv: the columns gpu_milli, qos are not read",
                                      "pods.csv: 2 jobs of 0 GPUs left out, the first is job 8"}));
  const auto none = write("cpu.csv", "job,submit_s,gpus,duration_s\n1,0,0,5\n");
  EXPECT_NE(message_of<IoError>([&] { (void)workload_from_trace(none, 4); }).find("no job with"),
            std::string::npos);
}

TEST_F(TraceFileTest, SaysWhichColumnsOfAFolderAreNotRead) {
  write("tiers.csv", "name,nodes,gpus_per_node,colour\ngold,1,4,blue\n");
  write("jobs.csv", "job,submit_s,duration_s,steps_per_s_golf\n1,0,5,2\n");
  EXPECT_EQ(read_workload(path("")).notes,
            (std::vector<std::string>{"tiers.csv: the column colour is not read",
                                      "jobs.csv: the column steps_per_s_golf is not read"}));
}

TEST_F(TraceFileTest, AJobThatIsThereTwiceInAFolderIsRefusedByItsLine) {
  write("tiers.csv", "name,nodes,gpus_per_node\ngold,1,4\n");
  write("jobs.csv", "job,submit_s,duration_s\n1,0,5\n2,0,5\n1,9,5\n");
  const std::string what = message_of<IoError>([&] { (void)read_workload(path("")); });
  EXPECT_NE(what.find("jobs.csv:4: job 1 is there twice"), std::string::npos) << what;
}

TEST_F(TraceFileTest, ComplainsWithFileAndLine) {
  const auto message = [&](const std::string& text) {
    const auto file = write("bad.csv", text);
    const std::string what = message_of<IoError>([&] { (void)workload_from_trace(file, 4); });
    EXPECT_NE(what.find("bad.csv"), std::string::npos) << what;
    return what;
  };
  const std::string header = "job,submit_s,gpus,duration_s\n";
  EXPECT_NE(message(header + "1,0,4294967297,5\n")
                .find(":2: gpus is 4294967297, expected at most 2147483647"),
            std::string::npos);
  EXPECT_NE(message(header + "1,0,-1,5\n").find(":2: gpus is -1, expected at least 0"),
            std::string::npos);
  EXPECT_NE(
      message(header + "1,0,1,5\n2,0,1,-5\n").find(":3: duration_s is -5, expected more than 0"),
      std::string::npos);
  EXPECT_NE(message(header + "1,0,9,5\n").find(":2: job 1 asks 9 GPUs, the cluster has 4"),
            std::string::npos);
  EXPECT_NE(message(header + "1,0,1,5\n1,0,1,5\n").find(":3: job 1 is there twice"),
            std::string::npos);
  EXPECT_NE(message(header + "-1,0,1,5\n").find(":2: job -1 has an id below 0"), std::string::npos);
  EXPECT_NE(message(header).find("no jobs below the header"), std::string::npos);
  message("");
  message("job,submit_s\n1,2\n");
  message(header + "1,zero,1,5\n");
  message(header + "1,0,1\n");
  EXPECT_THROW((void)workload_from_trace(path("absent.csv"), 4), IoError);
  const auto good = write("good.csv", header + "1,0,1,5\n");
  EXPECT_THROW((void)workload_from_trace(good, 0), InputError);
  EXPECT_THROW((void)workload_from_trace(good, 4, 3), InputError);
}

}  // namespace
}  // namespace glidepath
