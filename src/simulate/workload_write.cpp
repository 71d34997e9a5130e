// SPDX-License-Identifier: Apache-2.0
// The tables of a workload's jobs, as they are read.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "common/numbers.hpp"
#include "trace/readers/text.hpp"

namespace glidepath {
namespace {

/// The shorter of two texts that are read back to the number.
std::string exact(double value) {
  const std::string text = detail::general(value, 10);
  double back = 0;
  std::from_chars(text.data(), text.data() + text.size(), back);
  return back == value ? text : detail::general(value, 17);
}

/// The rows of a table, which close() writes.
class CsvFile {
 public:
  explicit CsvFile(std::filesystem::path file) : file_(std::move(file)) {}
  void row(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text_.append(i == 0 ? "" : ",").append(quoted(cells[i]));
    }
    text_ += '\n';
  }
  void close() const { detail::write_file(file_, text_); }

 private:
  static std::string quoted(const std::string& cell) {
    const bool blank = !cell.empty() && (cell.front() == ' ' || cell.back() == ' ');
    if (!blank && cell.find_first_of(",\"\r\n\t") == std::string::npos) return cell;
    std::string out = "\"";
    for (const char c : cell) out.append(c == '"' ? 2 : 1, c);
    return out + "\"";
  }
  std::filesystem::path file_;
  std::string text_;
};

/// A column of jobs.csv: what it is called, a job's cell, and whether it is always there; else
/// where some job has more than the default.
struct JobColumn {
  const char* name;
  std::function<std::string(const WorkloadJob&)> cell;
  enum class There : std::uint8_t { always, where_some_job_differs } there = There::always;
};

std::vector<JobColumn> job_columns(const Workload& workload) {
  constexpr auto kMaybe = JobColumn::There::where_some_job_differs;
  const auto of = [](double WorkloadJob::*member) {
    return [member](const WorkloadJob& job) { return exact(job.*member); };
  };
  const auto above_zero = [](double WorkloadJob::*member) {
    return [member](const WorkloadJob& job) {
      return job.*member > 0 ? exact(job.*member) : std::string();
    };
  };
  return {
      {"job", [](const WorkloadJob& job) { return std::to_string(job.id); }},
      {"user", [](const WorkloadJob& job) { return job.user; }},
      {"class", [](const WorkloadJob& job) { return job.job_class; }},
      {"submit_s", of(&WorkloadJob::submit_s)},
      {"gpus", [](const WorkloadJob& job) { return std::to_string(job.gpus); }},
      {"memory_gb", of(&WorkloadJob::memory_gb)},
      {"duration_s", above_zero(&WorkloadJob::duration_s), kMaybe},
      {"curve",
       [&workload](const WorkloadJob& job) {
         return job.truth < 0 ? std::string() : workload.curves[job.truth].name;
       },
       kMaybe},
      {"target_loss",
       [](const WorkloadJob& job) {
         return job.truth < 0 ? std::string() : exact(job.target_loss);
       },
       kMaybe},
      {"budget_steps", above_zero(&WorkloadJob::budget_steps), kMaybe},
      {"utilization", of(&WorkloadJob::utilization)},
      {"sm_activity", of(&WorkloadJob::sm_activity), kMaybe},
      {"memory_activity",
       [](const WorkloadJob& job) {
         return job.memory_activity < 0 ? std::string() : exact(job.memory_activity);
       },
       kMaybe},
      {"weight", of(&WorkloadJob::weight), kMaybe},
      {"priority", [](const WorkloadJob& job) { return std::to_string(job.priority); }, kMaybe},
      {"deadline_s",
       [](const WorkloadJob& job) {
         return job.deadline_s < detail::kInfinity ? exact(job.deadline_s) : std::string();
       },
       kMaybe},
      {"restart_s",
       [](const WorkloadJob& job) {
         return job.restart_s < 0 ? std::string() : exact(job.restart_s);
       },
       kMaybe},
  };
}

/// The columns of the rates on each tier, and a row of them.
void add_rates(const Workload& workload, std::vector<std::string>& header) {
  for (const Tier& tier : workload.tiers) header.push_back("steps_per_s_" + tier.name);
}
void add_rates(const Workload& workload, const std::vector<double>& rates,
               std::vector<std::string>& row) {
  for (std::size_t t = 0; t < workload.tiers.size(); ++t) {
    row.push_back(exact(rates.empty() ? 1.0 : rates[t]));
  }
}

void write_gangs(const Workload& workload, const std::filesystem::path& file) {
  CsvFile csv(file);
  std::vector<std::string> header{"job", "gpus"};
  add_rates(workload, header);
  csv.row(header);
  for (const WorkloadJob& job : workload.jobs) {
    for (const Gang& gang : job.gangs) {
      std::vector<std::string> row{std::to_string(job.id), std::to_string(gang.gpus)};
      add_rates(workload, gang.steps_per_s, row);
      csv.row(row);
    }
  }
  csv.close();
}

void write_phases(const Workload& workload, const std::filesystem::path& file) {
  CsvFile csv(file);
  csv.row({"job", "from", "speed"});
  for (const WorkloadJob& job : workload.jobs) {
    for (const Phase& phase : job.phases) {
      csv.row({std::to_string(job.id), exact(phase.from), exact(phase.speed)});
    }
  }
  csv.close();
}

}  // namespace

void write_jobs(const Workload& workload, const std::filesystem::path& file) {
  validate(workload);
  std::vector<JobColumn> columns = job_columns(workload);
  std::erase_if(columns, [&](const JobColumn& column) {
    return column.there == JobColumn::There::where_some_job_differs &&
           std::ranges::all_of(workload.jobs, [&](const WorkloadJob& job) {
             return column.cell(job) == column.cell(WorkloadJob{});
           });
  });
  const bool has_rates =
      !std::ranges::all_of(workload.jobs, &std::vector<double>::empty, &WorkloadJob::steps_per_s);
  CsvFile csv(file);
  std::vector<std::string> header;
  for (const JobColumn& column : columns) header.emplace_back(column.name);
  if (has_rates) add_rates(workload, header);
  csv.row(header);
  for (const WorkloadJob& job : workload.jobs) {
    std::vector<std::string> row;
    for (const JobColumn& column : columns) row.push_back(column.cell(job));
    if (has_rates) add_rates(workload, job.steps_per_s, row);
    csv.row(row);
  }
  csv.close();
  // Without a row, too, where a table of other jobs is there, which would be read with these.
  const std::filesystem::path gangs = file.parent_path() / "gangs.csv";
  const std::filesystem::path phases = file.parent_path() / "phases.csv";
  const bool one_gang =
      std::ranges::all_of(workload.jobs, &std::vector<Gang>::empty, &WorkloadJob::gangs);
  const bool one_phase =
      std::ranges::all_of(workload.jobs, &std::vector<Phase>::empty, &WorkloadJob::phases);
  if (!one_gang || std::filesystem::exists(gangs)) write_gangs(workload, gangs);
  if (!one_phase || std::filesystem::exists(phases)) write_phases(workload, phases);
}

}  // namespace glidepath
