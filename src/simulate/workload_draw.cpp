// SPDX-License-Identifier: Apache-2.0
// Jobs drawn anew from the classes and habits of a folder.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "common/require.hpp"
#include "common/rng.hpp"
#include "simulate/workload_tables.hpp"
#include "trace/readers/text.hpp"

namespace glidepath {
namespace {

using detail::CsvReader;

/// A row of classes.csv, with the curves that its jobs may have.
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
  const std::vector<int> rate = detail::rate_columns(csv, tiers);
  std::vector<JobClass> out;
  while (csv.next()) {
    JobClass made{.name = std::string(csv.text(name)),
                  .share = detail::number_at_least(csv, share, "share", 0),
                  .memory_gb = detail::number_at_least(csv, memory, "memory_gb", 0),
                  .utilization = detail::number_at_least(csv, utilization, "utilization", 0),
                  .steps_per_s = detail::read_rates(csv, rate),
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
    while (csv.next())
      values_.emplace(csv.text(name), detail::number_at_least(csv, value, "value", 0));
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
  const std::string text = detail::general(value, 10);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Workload generate_workload(const std::filesystem::path& folder, int users, std::uint64_t seed) {
  if (users < 1 || users > 100'000) {
    detail::refuse("generate_workload: users is ", users, ", expected 1 to 100000");
  }
  Workload out;
  out.name = detail::sentence(folder.filename().string(), "-", users, "-users-seed-", seed);
  out.tiers = detail::read_tiers(folder / "tiers.csv", out.notes);
  out.curves = detail::read_truth(folder);
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
      const bool rises = model.direction == Direction::max;
      double best = model.loss.front();
      for (std::size_t i = 0; i < model.step.size() && model.step[i] <= upto; ++i) {
        best = rises ? std::max(best, model.loss[i]) : std::min(best, model.loss[i]);
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

}  // namespace glidepath
