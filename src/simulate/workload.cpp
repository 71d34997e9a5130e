// SPDX-License-Identifier: Apache-2.0
// A workload from its folder, or from the trace of a cluster.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "common/require.hpp"
#include "simulate/workload_tables.hpp"

namespace glidepath {
namespace {

using detail::CsvReader;

constexpr std::int64_t kLargestWhole = std::numeric_limits<int>::max();

/// What `jobs.csv` and a trace of a cluster may say of a job beside its work.
class OptionalColumns {
 public:
  explicit OptionalColumns(const CsvReader& csv)
      : csv_(csv),
        user_(csv.find("user")),
        job_class_(csv.find("class")),
        memory_(csv.find("memory_gb")),
        utilization_(csv.find("utilization")),
        sm_activity_(csv.find("sm_activity")),
        memory_activity_(csv.find("memory_activity")),
        weight_(csv.find("weight")),
        priority_(csv.find("priority")),
        deadline_(csv.find("deadline_s")),
        restart_(csv.find("restart_s")) {}

  void read(WorkloadJob& job) const {
    if (user_ >= 0) job.user = csv_.text(user_);
    if (job_class_ >= 0) job.job_class = csv_.text(job_class_);
    read(memory_, "memory_gb", job.memory_gb);
    read(utilization_, "utilization", job.utilization);
    read(sm_activity_, "sm_activity", job.sm_activity);
    if (filled(memory_activity_)) read(memory_activity_, "memory_activity", job.memory_activity);
    read(weight_, "weight", job.weight);
    if (priority_ >= 0) {
      job.priority = detail::whole_at_least(csv_, priority_, "priority", -kLargestWhole);
    }
    if (filled(deadline_)) job.deadline_s = csv_.finite_number(deadline_);
    if (filled(restart_)) read(restart_, "restart_s", job.restart_s);
  }

 private:
  void read(int column, std::string_view what, double& out) const {
    if (column >= 0) out = detail::number_at_least(csv_, column, what, 0);
  }
  [[nodiscard]] bool filled(int column) const { return column >= 0 && !csv_.text(column).empty(); }

  const CsvReader& csv_;
  int user_, job_class_, memory_, utilization_, sm_activity_, memory_activity_, weight_, priority_,
      deadline_, restart_;
};

/// The ids of a file so far: 0 or more, each once.
class Ids {
 public:
  void add(const CsvReader& csv, std::int64_t id) {
    if (id < 0) csv.fail("job ", id, " has an id below 0");
    if (!seen_.insert(id).second) csv.fail("job ", id, " is there twice");
  }

 private:
  std::unordered_set<std::int64_t> seen_;
};

/// The jobs of a workload by the ids that a file beside jobs.csv names.
class JobsById {
 public:
  explicit JobsById(std::vector<WorkloadJob>& jobs) {
    for (WorkloadJob& job : jobs) of_id_.emplace(job.id, &job);
  }
  [[nodiscard]] WorkloadJob& named(const CsvReader& csv, int column) const {
    const auto it = of_id_.find(csv.integer(column));
    if (it == of_id_.end()) csv.fail("jobs.csv has no job ", csv.integer(column));
    return *it->second;
  }

 private:
  std::unordered_map<std::int64_t, WorkloadJob*> of_id_;
};

/// Adds the rows of gangs.csv, which may be absent, to the jobs that they name.
void read_gangs(const std::filesystem::path& folder, Workload& out) {
  if (!std::filesystem::exists(folder / "gangs.csv")) return;
  CsvReader csv(folder / "gangs.csv");
  const int id = csv.column("job");
  const int gpus = csv.column("gpus");
  const std::vector<int> rate = detail::rate_columns(csv, out.tiers);
  const JobsById jobs(out.jobs);
  while (csv.next()) {
    WorkloadJob& job = jobs.named(csv, id);
    Gang gang{detail::whole_at_least(csv, gpus, "gpus", 1), detail::read_rates(csv, rate)};
    if (gang.steps_per_s.empty()) gang.steps_per_s.assign(out.tiers.size(), 1.0);
    job.gangs.push_back(std::move(gang));
  }
  detail::note_unread(csv, "gangs.csv", out.notes);
}

/// The same of phases.csv.
void read_phases(const std::filesystem::path& folder, Workload& out) {
  if (!std::filesystem::exists(folder / "phases.csv")) return;
  CsvReader csv(folder / "phases.csv");
  const int id = csv.column("job");
  const int from = csv.column("from");
  const int speed = csv.column("speed");
  const JobsById jobs(out.jobs);
  while (csv.next()) {
    WorkloadJob& job = jobs.named(csv, id);
    job.phases.push_back({detail::number_at_least(csv, from, "from", 0),
                          detail::number_above_zero(csv, speed, "speed")});
  }
  detail::note_unread(csv, "phases.csv", out.notes);
}

}  // namespace

Workload read_workload(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    detail::refuse_file(detail::shown_path(folder), ": not a folder");
  }
  Workload out;
  out.name = folder.filename().empty() ? folder.parent_path().filename().string()
                                       : folder.filename().string();
  out.tiers = detail::read_tiers(folder / "tiers.csv", out.notes);
  out.curves = detail::read_truth(folder);
  std::unordered_map<std::string_view, int> curve_of;
  for (std::size_t c = 0; c < out.curves.size(); ++c) {
    curve_of.emplace(out.curves[c].name, static_cast<int>(c));
  }

  CsvReader csv(folder / "jobs.csv");
  const int id = csv.column("job");
  const int submit = csv.column("submit_s");
  const int gang = csv.find("gpus");
  const int duration = csv.find("duration_s");
  const int curve = csv.find("curve");
  const int target = csv.find("target_loss");
  const int budget = csv.find("budget_steps");
  const OptionalColumns optional(csv);
  const std::vector<int> rate = detail::rate_columns(csv, out.tiers);
  Ids ids;
  while (csv.next()) {
    WorkloadJob job{.id = csv.integer(id)};
    ids.add(csv, job.id);
    job.submit_s = detail::number_at_least(csv, submit, "submit_s", 0);
    optional.read(job);
    if (gang >= 0) job.gpus = detail::whole_at_least(csv, gang, "gpus", 1);
    const auto filled = [&](int column) { return column >= 0 && !csv.text(column).empty(); };
    if (filled(duration)) job.duration_s = detail::number_above_zero(csv, duration, "duration_s");
    if (filled(budget)) job.budget_steps = detail::number_above_zero(csv, budget, "budget_steps");
    if (filled(curve)) {
      const auto it = curve_of.find(csv.text(curve));
      if (it == curve_of.end()) {
        csv.fail("truth/ has no curve '", detail::shown(csv.text(curve)), "'");
      }
      job.truth = it->second;
      job.target_loss = target < 0 ? 0 : csv.finite_number(target);
      if (!filled(budget)) csv.fail("a job with a curve needs budget_steps");
      const double last = out.curves[job.truth].step.back();
      if (job.budget_steps > last) {
        csv.fail("budget_steps is ", job.budget_steps, ", the curve ends at ", last);
      }
    } else if (!filled(duration) && !filled(budget)) {
      csv.fail("a job needs duration_s, budget_steps or a curve");
    }
    job.steps_per_s = detail::read_rates(csv, rate);
    out.jobs.push_back(std::move(job));
  }
  if (out.jobs.empty()) {
    detail::refuse_file(detail::shown_path(folder / "jobs.csv"), ": no jobs below the header");
  }
  detail::note_unread(csv, "jobs.csv", out.notes);
  read_gangs(folder, out);
  read_phases(folder, out);
  validate(out);
  return out;
}

Workload workload_from_trace(const std::filesystem::path& file, int gpus,
                             std::optional<int> gpus_per_node) {
  const int per_node = gpus_per_node.value_or(1);
  if (gpus < 1) detail::refuse("workload_from_trace: gpus is ", gpus, ", expected at least 1");
  if (per_node < 1) {
    detail::refuse("workload_from_trace: gpus_per_node is ", per_node, ", expected at least 1");
  }
  if (gpus % per_node != 0) {
    detail::refuse("workload_from_trace: ", gpus, " GPUs are not whole nodes of ", per_node);
  }
  Workload out;
  out.name = file.stem().stem().string();
  out.tiers.push_back({.name = "gpu", .nodes = gpus / per_node, .gpus_per_node = per_node});

  CsvReader csv(file);
  // Our names, and those of Tiresias, so that its traces are read as they are.
  const auto either = [&](std::string_view ours, std::string_view theirs) {
    const bool named = csv.find(ours) >= 0 || csv.find(theirs) < 0;
    return named ? csv.column(ours) : csv.find(theirs);
  };
  const int job_column = either("job", "job_id");
  const int submit = either("submit_s", "submit_time");
  const int gang = either("gpus", "num_gpu");
  const int duration = either("duration_s", "duration");
  const OptionalColumns optional(csv);
  std::vector<std::int64_t> without_gpus;
  Ids ids;
  while (csv.next()) {
    WorkloadJob job{.id = csv.integer(job_column)};
    job.gpus = detail::whole_at_least(csv, gang, "gpus", 0);
    if (job.gpus == 0) {
      without_gpus.push_back(job.id);
      continue;
    }
    ids.add(csv, job.id);
    job.submit_s = detail::number_at_least(csv, submit, "submit_s", 0);
    job.duration_s = detail::number_above_zero(csv, duration, "duration_s");
    optional.read(job);
    if (job.gpus > gpus) {
      csv.fail("job ", job.id, " asks ", job.gpus, " GPUs, the cluster has ", gpus);
    }
    out.jobs.push_back(std::move(job));
  }
  if (out.jobs.empty()) {
    detail::refuse_file(detail::shown_path(file),
                        without_gpus.empty() ? ": no jobs below the header" : ": no job with GPUs");
  }
  detail::note_unread(csv, file, out.notes);
  if (!without_gpus.empty()) {
    out.notes.push_back(
        detail::sentence(detail::shown(file.filename().string()), ": ", without_gpus.size(),
                         without_gpus.size() == 1 ? " job" : " jobs",
                         " of 0 GPUs left out, the first is job ", without_gpus.front()));
  }
  return out;
}

}  // namespace glidepath
