// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "common/names.hpp"
#include "common/numbers.hpp"
#include "common/require.hpp"
#include "common/rng.hpp"

namespace glidepath {

namespace {

using detail::CsvReader;

/// A number with bounds, or the reader's complaint with file and line.
double number(const CsvReader& csv, int column, std::string_view what, double least) {
  const double value = csv.finite_number(column);
  if (value < least) csv.fail(what, " is ", value, ", expected at least ", least);
  return value;
}

double above_zero(const CsvReader& csv, int column, std::string_view what) {
  const double value = csv.finite_number(column);
  if (value <= 0) csv.fail(what, " is ", value, ", expected more than 0");
  return value;
}

int whole(const CsvReader& csv, int column, std::string_view what, std::int64_t least) {
  const std::int64_t value = csv.integer(column);
  if (value < least || value > std::numeric_limits<int>::max()) {
    csv.fail(what, " is ", value, ", expected at least ", least);
  }
  return static_cast<int>(value);
}

/// Says which columns of the file count for nothing.
void note_unread(const CsvReader& csv, const std::filesystem::path& file,
                 std::vector<std::string>& notes) {
  const std::vector<std::string> unread = csv.unread();
  if (unread.empty()) return;
  const std::string names =
      detail::listed(unread, [](const std::string& each) { return detail::shown(each); });
  notes.push_back(detail::sentence(detail::shown(file.filename().string()), ": ",
                                   unread.size() == 1 ? "the column " : "the columns ",
                                   detail::shown(names, 200),
                                   unread.size() == 1 ? " is not read" : " are not read"));
}

std::vector<Tier> read_tiers(const std::filesystem::path& folder, std::vector<std::string>& notes) {
  CsvReader csv(folder / "tiers.csv");
  const int name = csv.column("name");
  const int nodes = csv.column("nodes");
  const int per_node = csv.column("gpus_per_node");
  const int gpu = csv.find("gpu");
  const int memory = csv.find("memory_gb");
  const int host = csv.find("host_memory_gb");
  const int idle = csv.find("idle_watts");
  const int busy = csv.find("busy_watts");
  const int price = csv.find("price_per_gpu_hour");
  (void)csv.find("note");  // for people
  const auto optional = [&](int column, std::string_view what) {
    return column < 0 ? 0.0 : number(csv, column, what, 0);
  };
  std::vector<Tier> tiers;
  while (csv.next()) {
    tiers.push_back({.name = std::string(csv.text(name)),
                     .gpu = gpu < 0 ? "" : std::string(csv.text(gpu)),
                     .nodes = whole(csv, nodes, "nodes", 1),
                     .gpus_per_node = whole(csv, per_node, "gpus_per_node", 1),
                     .memory_gb = optional(memory, "memory_gb"),
                     .host_memory_gb = optional(host, "host_memory_gb"),
                     .idle_watts = optional(idle, "idle_watts"),
                     .busy_watts = optional(busy, "busy_watts"),
                     .price_per_gpu_hour = optional(price, "price_per_gpu_hour")});
  }
  if (tiers.empty()) {
    detail::refuse_file(detail::shown_path(folder / "tiers.csv"), ": no tiers below the header");
  }
  note_unread(csv, "tiers.csv", notes);
  return tiers;
}

/// The columns steps_per_s_<tier>, -1 where a tier has none.
std::vector<int> rate_columns(const CsvReader& csv, const std::vector<Tier>& tiers) {
  std::vector<int> columns;
  for (const Tier& tier : tiers) columns.push_back(csv.find("steps_per_s_" + tier.name));
  return columns;
}

std::vector<double> rates(const CsvReader& csv, const std::vector<int>& columns) {
  if (std::all_of(columns.begin(), columns.end(), [](int column) { return column < 0; })) return {};
  std::vector<double> out;
  for (const int column : columns) {
    out.push_back(column < 0 ? 0.0 : number(csv, column, "steps_per_s", 0));
  }
  return out;
}

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
    if (priority_ >= 0) job.priority = static_cast<int>(csv_.integer(priority_));
    if (filled(deadline_)) job.deadline_s = csv_.finite_number(deadline_);
    if (filled(restart_)) read(restart_, "restart_s", job.restart_s);
  }

 private:
  void read(int column, std::string_view what, double& out) const {
    if (column >= 0) out = number(csv_, column, what, 0);
  }
  [[nodiscard]] bool filled(int column) const { return column >= 0 && !csv_.text(column).empty(); }

  const CsvReader& csv_;
  int user_, job_class_, memory_, utilization_, sm_activity_, memory_activity_, weight_, priority_,
      deadline_, restart_;
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
  const std::vector<int> rate = rate_columns(csv, out.tiers);
  const JobsById jobs(out.jobs);
  while (csv.next()) {
    WorkloadJob& job = jobs.named(csv, id);
    Gang gang{whole(csv, gpus, "gpus", 1), rates(csv, rate)};
    if (gang.steps_per_s.empty()) gang.steps_per_s.assign(out.tiers.size(), 1.0);
    job.gangs.push_back(std::move(gang));
  }
  note_unread(csv, "gangs.csv", out.notes);
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
    job.phases.push_back({number(csv, from, "from", 0), above_zero(csv, speed, "speed")});
  }
  note_unread(csv, "phases.csv", out.notes);
}

/// Every curve of the CSV files of truth/, in order of their names.
std::vector<Trace> read_truth(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path truth = folder / "truth";
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(truth, absent)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".csv") || name.ends_with(".csv.gz")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Trace> curves;
  for (const auto& file : files) {
    for (Trace& curve : read_long_csv(file)) curves.push_back(std::move(curve));
  }
  return curves;
}

/// Tiers, curves and classes of a folder: what jobs are drawn from.
struct JobClass {
  std::string name;
  double share = 1, memory_gb = 0, utilization = 1;
  std::vector<double> steps_per_s;
  std::vector<int> curves;
};

std::vector<JobClass> read_classes(const std::filesystem::path& folder,
                                   const std::vector<Tier>& tiers,
                                   const std::vector<Trace>& curves) {
  CsvReader csv(folder / "classes.csv");
  const int name = csv.column("class");
  const int memory = csv.column("memory_gb");
  const int share = csv.column("share");
  const int prefixes = csv.column("curves");
  const int utilization = csv.column("utilization");
  const std::vector<int> rate = rate_columns(csv, tiers);
  std::vector<JobClass> out;
  while (csv.next()) {
    JobClass made{.name = std::string(csv.text(name)),
                  .share = number(csv, share, "share", 0),
                  .memory_gb = number(csv, memory, "memory_gb", 0),
                  .utilization = number(csv, utilization, "utilization", 0),
                  .steps_per_s = rates(csv, rate),
                  .curves = {}};
    std::string_view left = csv.text(prefixes);
    while (!left.empty()) {
      const std::string_view prefix = left.substr(0, left.find(';'));
      left.remove_prefix(std::min(left.size(), prefix.size() + 1));
      for (std::size_t c = 0; c < curves.size(); ++c) {
        if (curves[c].name.starts_with(prefix)) made.curves.push_back(static_cast<int>(c));
      }
    }
    if (made.curves.empty()) {
      csv.fail("no curve of truth/ begins with '", csv.text(prefixes), "'");
    }
    out.push_back(std::move(made));
  }
  if (out.empty()) {
    detail::refuse_file(detail::shown_path(folder / "classes.csv"),
                        ": no classes below the header");
  }
  return out;
}

/// The numbers of habits.csv by name.
class Habits {
 public:
  explicit Habits(const std::filesystem::path& folder) : file_(folder / "habits.csv") {
    CsvReader csv(file_);
    const int name = csv.column("habit");
    const int value = csv.column("value");
    while (csv.next()) values_.emplace(csv.text(name), number(csv, value, "value", 0));
  }
  double operator[](const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end()) {
      detail::refuse_file(detail::shown_path(file_), ": no habit '", name, "'");
    }
    return it->second;
  }

 private:
  std::filesystem::path file_;
  std::map<std::string, double> values_;
};

/// What a value is written as in a file, and so what it is from the start: read back it is equal.
double rounded(double value, double unit) { return std::nearbyint(value / unit) * unit; }

double written(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return std::strtod(text, nullptr);
}

}  // namespace

Workload read_workload(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    detail::refuse_file(detail::shown_path(folder), ": not a folder");
  }
  Workload out;
  out.name = folder.filename().empty() ? folder.parent_path().filename().string()
                                       : folder.filename().string();
  out.tiers = read_tiers(folder, out.notes);
  out.curves = read_truth(folder);
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
  const std::vector<int> rate = rate_columns(csv, out.tiers);
  while (csv.next()) {
    WorkloadJob job{.id = csv.integer(id)};
    job.submit_s = number(csv, submit, "submit_s", 0);
    optional.read(job);
    if (gang >= 0) job.gpus = whole(csv, gang, "gpus", 1);
    const auto filled = [&](int column) { return column >= 0 && !csv.text(column).empty(); };
    if (filled(duration)) job.duration_s = above_zero(csv, duration, "duration_s");
    if (filled(budget)) job.budget_steps = above_zero(csv, budget, "budget_steps");
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
    job.steps_per_s = rates(csv, rate);
    out.jobs.push_back(std::move(job));
  }
  if (out.jobs.empty()) {
    detail::refuse_file(detail::shown_path(folder / "jobs.csv"), ": no jobs below the header");
  }
  note_unread(csv, "jobs.csv", out.notes);
  read_gangs(folder, out);
  read_phases(folder, out);
  validate(out);
  return out;
}

Workload generate_workload(const std::filesystem::path& folder, int users, std::uint64_t seed) {
  if (users < 1 || users > 100'000) {
    detail::refuse("generate_workload: users is ", users, ", expected 1 to 100000");
  }
  Workload out;
  out.name = detail::sentence(folder.filename().string(), "-", users, "-users-seed-", seed);
  out.tiers = read_tiers(folder, out.notes);
  out.curves = read_truth(folder);
  const std::vector<JobClass> classes = read_classes(folder, out.tiers, out.curves);
  const Habits habits(folder);
  double shares = 0;
  for (const JobClass& made : classes) shares += made.share;
  const auto class_at = [&](double u) -> const JobClass& {
    double left = u * shares;
    for (const JobClass& made : classes) {
      if ((left -= made.share) < 0) return made;
    }
    return classes.back();
  };

  // Draw k of job j of user u is uniform(1000 u + j, k): a function of these alone, so that more
  // users add jobs and change none.
  const detail::Rng rng{seed};
  for (int u = 0; u < users; ++u) {
    const auto stream = [&](int job, std::uint64_t draw) {
      return rng.uniform(static_cast<std::uint64_t>(u) * 1000 + static_cast<std::uint64_t>(job),
                         draw);
    };
    const JobClass& favourite = class_at(stream(0, 0));
    double submit_s = 3600 * habits["window_h"] * stream(0, 1);
    const double another = 1 - 1 / habits["jobs_per_user"];
    for (int j = 0; j < 999; ++j) {
      if (j > 0) {
        if (stream(j, 2) >= another) break;
        submit_s -= 3600 * habits["gap_h"] * std::log(1 - stream(j, 3));
      }
      const JobClass& made =
          stream(j, 4) < habits["same_class"] ? favourite : class_at(stream(j, 5));
      const auto one_of = [&](double u01) {
        return made.curves[static_cast<std::size_t>(u01 * static_cast<double>(made.curves.size()))];
      };
      const auto between = [&](const char* from, const char* to, double u01) {
        return habits[from] + (habits[to] - habits[from]) * u01;
      };
      WorkloadJob job;
      job.user = detail::sentence("user", u + 1);
      job.job_class = made.name;
      job.submit_s = rounded(submit_s, 1);
      job.memory_gb = made.memory_gb;
      job.utilization = made.utilization;
      job.steps_per_s = made.steps_per_s;
      job.truth = one_of(stream(j, 6));
      const Trace& curve = out.curves[job.truth];
      job.budget_steps = std::max(
          1.0, rounded(curve.step.back() * between("budget_from", "budget_to", stream(j, 7)), 1));
      // What another run of the class had reached after part of its steps.
      const Trace& model = out.curves[one_of(stream(j, 8))];
      const double upto = model.step.back() * between("target_from", "target_to", stream(j, 9));
      double best = model.loss.front();
      for (std::size_t i = 0; i < model.step.size() && model.step[i] <= upto; ++i) {
        best = std::min(best, model.loss[i]);
      }
      job.target_loss = written(rounded(best, 1e-4));
      out.jobs.push_back(std::move(job));
    }
  }
  std::stable_sort(
      out.jobs.begin(), out.jobs.end(),
      [](const WorkloadJob& a, const WorkloadJob& b) { return a.submit_s < b.submit_s; });
  for (std::size_t i = 0; i < out.jobs.size(); ++i) {
    out.jobs[i].id = static_cast<std::int64_t>(i);
  }
  validate(out);
  return out;
}

namespace {

/// The shorter of two texts that are read back to the number.
std::string exact(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  if (std::strtod(text, nullptr) != value) std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// A table that is there as a whole or refused.
class CsvFile {
 public:
  explicit CsvFile(std::filesystem::path file) : file_(std::move(file)), out_(file_) {}
  void row(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) out_ << (i == 0 ? "" : ",") << quoted(cells[i]);
    out_ << "\n";
  }
  void close() {
    out_.close();
    if (!out_) detail::refuse_file(detail::shown_path(file_), ": could not be written");
  }

 private:
  static std::string quoted(const std::string& cell) {
    const bool blank = !cell.empty() && (cell.front() == ' ' || cell.back() == ' ');
    if (!blank && cell.find_first_of(",\"\r\n\t") == std::string::npos) return cell;
    std::string out = "\"";
    for (const char c : cell) out.append(c == '"' ? 2 : 1, c);
    return out + "\"";
  }
  std::filesystem::path file_;
  std::ofstream out_;
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
    const int found = csv.find(theirs);
    return found >= 0 ? found : csv.column(ours);
  };
  const int job_column = either("job", "job_id");
  const int submit = either("submit_s", "submit_time");
  const int gang = either("gpus", "num_gpu");
  const int duration = either("duration_s", "duration");
  const OptionalColumns optional(csv);
  std::vector<std::int64_t> without_gpus;
  while (csv.next()) {
    WorkloadJob job{.id = csv.integer(job_column)};
    job.gpus = whole(csv, gang, "gpus", 0);
    if (job.gpus == 0) {
      without_gpus.push_back(job.id);
      continue;
    }
    job.submit_s = number(csv, submit, "submit_s", 0);
    job.duration_s = above_zero(csv, duration, "duration_s");
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
  note_unread(csv, file, out.notes);
  if (!without_gpus.empty()) {
    out.notes.push_back(
        detail::sentence(detail::shown(file.filename().string()), ": ", without_gpus.size(),
                         without_gpus.size() == 1 ? " job" : " jobs",
                         " of 0 GPUs left out, the first is job ", without_gpus.front()));
  }
  return out;
}

}  // namespace glidepath
