// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "glidepath/hardware.hpp"
#include "glidepath/plan.hpp"
#include "glidepath/trace.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace glidepath {

/// A job with its truth. Either `duration_s` is known (a job of a cluster trace) or the job is
/// driven by the loss curve `truth` at `steps_per_s` of the tier it runs on.
struct WorkloadJob {
  std::int64_t id = 0;
  std::string user{}, job_class{};
  double submit_s = 0;
  int gpus = 1;
  double memory_gb = 0;
  double duration_s = 0;  ///< on the reference GPU at the gang asked for; 0 with a curve
  int truth = -1;         ///< index into Workload::curves, -1 without one
  double target_loss = 0;
  double budget_steps = 0;            ///< steps the user asked for
  std::vector<double> steps_per_s{};  ///< per tier; 0 where the job cannot run
};

struct Workload {
  std::string name{};
  std::vector<Tier> tiers{};
  std::vector<WorkloadJob> jobs{};
  std::vector<Trace> curves{};
};

/// One tier of `gpus` GPUs and the jobs of a CSV `job,submit_s,gpus,duration_s[,...]`, plain or
/// gzip.
[[nodiscard]] Workload workload_from_trace(const std::filesystem::path& file, int gpus,
                                           std::optional<int> gpus_per_node = {});

/// `tiers.csv`, `jobs.csv` and `truth/` of a folder. Throws IoError naming file and line.
[[nodiscard]] Workload read_workload(const std::filesystem::path& folder);

using Policy = std::function<Plan(const Snapshot&)>;

struct SimulationOptions {
  std::uint64_t seed = 0;
  double restart_s = 0;               ///< GPUs held without progress at every start after the first
  std::optional<double> session_s{};  ///< session length of session_fifo and of dare's profile
  std::optional<double> round_s{};    ///< policies that plan in rounds
  std::optional<double>
      forecast_sigma{};         ///< policies see duration exp(N(0, sigma)), not the duration
  bool stop_at_target = false;  ///< end a loss-driven job once its target is reached
};

/// Columns over jobs in order of submission; times in seconds, NaN where a job never started.
struct JobColumns {
  std::vector<std::int64_t> job;
  std::vector<double> submit_s, start_s, end_s, jct_s, wait_s, gpu_seconds, energy_j;
  std::vector<std::int64_t> preemptions;
  std::vector<std::string>
      outcome;  ///< "finished", "target", "never" (stopped as out of reach), "budget"
};

/// A stretch of time during which a job held GPUs of a tier.
struct Span {
  std::int64_t job = 0;
  int tier = 0, gpus = 0;
  double start_s = 0, end_s = 0;
};

struct Simulation {
  std::string policy{};
  JobColumns jobs{};
  std::vector<Span> events{};
  double mean_jct_s = 0, median_jct_s = 0, p95_jct_s = 0;
  double mean_wait_s = 0, total_wait_s = 0, makespan_s = 0;
  std::int64_t preemptions = 0;
  double gpu_seconds = 0, utilization = 0, energy_kwh = 0;
};

/// `policy` is one of fifo, first_fit, srtf, session_fifo, dare, best_value. Throws InputError
/// naming an unknown policy and the known ones, a job larger than every tier, or a negative
/// duration.
[[nodiscard]] Simulation simulate(const Workload& workload, const std::string& policy,
                                  const SimulationOptions& options = {});
[[nodiscard]] Simulation simulate(const Workload& workload, const Policy& policy,
                                  const SimulationOptions& options = {});

}  // namespace glidepath
