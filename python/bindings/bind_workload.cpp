// SPDX-License-Identifier: Apache-2.0
// Workloads: their jobs travel as columns.
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/typing.h>

#include "forecast_records.hpp"
#include "long_call.hpp"
#include "path.hpp"
#include "plan_types.hpp"
#include "result_columns.hpp"
#include "simulate/workload_tables.hpp"

namespace glidepath::python {
namespace {

/// Columns of the jobs of a workload, but for the rates, in the order in which Python has them.
using Member = std::variant<std::int64_t WorkloadJob::*, int WorkloadJob::*, double WorkloadJob::*,
                            std::string WorkloadJob::*>;
const std::vector<std::pair<const char*, Member>> kJobColumns{
    {"job", &WorkloadJob::id},
    {"user", &WorkloadJob::user},
    {"job_class", &WorkloadJob::job_class},
    {"submit_s", &WorkloadJob::submit_s},
    {"gpus", &WorkloadJob::gpus},
    {"memory_gb", &WorkloadJob::memory_gb},
    {"duration_s", &WorkloadJob::duration_s},
    {"utilization", &WorkloadJob::utilization},
    {"sm_activity", &WorkloadJob::sm_activity},
    {"memory_activity", &WorkloadJob::memory_activity},
    {"weight", &WorkloadJob::weight},
    {"priority", &WorkloadJob::priority},
    {"deadline_s", &WorkloadJob::deadline_s},
    {"restart_s", &WorkloadJob::restart_s},
    {"truth", &WorkloadJob::truth},
    {"target_loss", &WorkloadJob::target_loss},
    {"budget_steps", &WorkloadJob::budget_steps}};

void check_length(std::size_t jobs, std::size_t found, const char* what) {
  if (found == jobs) return;
  throw InputError(text("workload: ", jobs, " jobs but ", found, " ", what));
}

template <class T>
void fill(py::handle values, const char* name, std::vector<WorkloadJob>& out,
          T WorkloadJob::*member) {
  const auto column = [&] {
    if constexpr (std::is_same_v<T, std::string>) {
      return values.cast<std::vector<std::string>>();
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      return Convert<Indices>::in(values, {"Workload", name}).values;
    } else {
      return Convert<std::vector<double>>::in(values, {"Workload", name});
    }
  }();
  check_length(out.size(), column.size(), (std::string("of ") + name).c_str());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_same_v<T, int>) {
      constexpr double kMostShown = 1e15;  // with all of its digits
      constexpr int kMost = std::numeric_limits<int>::max();
      const bool whole = column[i] == std::floor(column[i]);
      if (!whole || std::abs(column[i]) > kMost) {
        const bool fits = whole && std::abs(column[i]) < kMostShown;
        const std::string given =
            fits ? std::to_string(static_cast<std::int64_t>(column[i])) : text(column[i]);
        std::string expected = "a whole number";
        if (whole) expected += (column[i] > 0 ? " up to " : " from -") + std::to_string(kMost);
        throw InputError(
            text("workload: job ", out[i].id, " has ", name, " ", given, ", expected ", expected));
      }
    }
    out[i].*member = static_cast<T>(column[i]);
  }
}

/// Gangs of a job: a mapping of GPUs to the rates on each tier.
std::vector<Gang> gangs_of(py::handle given) {
  const Where where{"Workload", "gangs"};
  if (!py::isinstance<py::dict>(given)) where.refuse(given, "a mapping of GPUs to step rates");
  std::vector<Gang> out;
  for (const auto& [gpus, rates] : py::reinterpret_borrow<py::dict>(given)) {
    out.push_back({Convert<int>::in(gpus, where), Convert<std::vector<double>>::in(rates, where)});
  }
  return out;
}

/// Phases of a job: a mapping of shares of its work to speeds, in any order.
std::vector<Phase> phases_of(py::handle given) {
  const Where where{"Workload", "phases"};
  if (!py::isinstance<py::dict>(given)) where.refuse(given, "a mapping of shares to speeds");
  std::vector<Phase> out;
  for (const auto& [from, speed] : py::reinterpret_borrow<py::dict>(given)) {
    out.push_back({Convert<double>::in(from, where), Convert<double>::in(speed, where)});
  }
  std::ranges::stable_sort(out, {}, &Phase::from);
  return out;
}

std::vector<WorkloadJob> jobs_of(const py::dict& columns) {
  if (!columns.contains("job")) throw InputError("workload: the jobs have no column 'job'");
  std::vector<WorkloadJob> jobs(
      Convert<Indices>::in(columns["job"], {"Workload", "job"}).values.size());
  for (const auto& [name, member] : kJobColumns) {
    if (!columns.contains(name)) continue;
    std::visit([&, name = name](auto each) { fill(columns[name], name, jobs, each); }, member);
  }
  if (columns.contains("steps_per_s")) {
    const Rows rates = Convert<Rows>::in(columns["steps_per_s"], {"Workload", "steps_per_s"});
    check_length(jobs.size(), static_cast<std::size_t>(rates.rows()), "rows of steps_per_s");
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto row = rates.row(static_cast<std::ptrdiff_t>(i));
      jobs[i].steps_per_s.assign(row.begin(), row.end());
    }
  }
  if (columns.contains("gangs")) {
    const py::list gangs(columns["gangs"]);
    check_length(jobs.size(), gangs.size(), "of gangs");
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].gangs = gangs_of(gangs[i]);
  }
  if (columns.contains("phases")) {
    const py::list phases(columns["phases"]);
    check_length(jobs.size(), phases.size(), "of phases");
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].phases = phases_of(phases[i]);
  }
  return jobs;
}

// Numbers or texts by the name of their column; `gangs` and `phases` have a mapping for each job.
using GivenColumns = py::typing::Dict<py::str, ArrayLike>;

Workload make_workload(std::vector<Tier> tiers, const GivenColumns& jobs, const AnyTraces& curves,
                       std::vector<PairSpeeds> pairs, std::string name) {
  Workload out{.name = std::move(name),
               .tiers = std::move(tiers),
               .jobs = jobs_of(jobs),
               .curves = traces_of(curves),
               .pairs = std::move(pairs)};
  for (const Trace& curve : out.curves) validate(curve.view());
  validate(out);
  return out;
}

ArraysByName job_columns(const Workload& workload) {
  const std::vector<WorkloadJob>& jobs = workload.jobs;
  ArraysByName out;
  for (const auto& [name, member] : kJobColumns) {
    const bool of_curves =
        std::string_view(name) == "truth" || std::string_view(name) == "target_loss";
    if (of_curves && workload.curves.empty()) continue;
    const auto as_all = [](const WorkloadJob& job) { return job.restart_s < 0; };
    if (std::string_view(name) == "restart_s" && std::ranges::all_of(jobs, as_all)) continue;
    const auto* words = std::get_if<std::string WorkloadJob::*>(&member);
    if (words != nullptr && std::ranges::all_of(jobs, &std::string::empty, *words)) continue;
    std::visit([&, name = name](auto each) { add_column(out, name, jobs, each); }, member);
  }
  std::vector<double> rates;
  for (const WorkloadJob& job : jobs) {
    rates.insert(rates.end(), job.steps_per_s.begin(), job.steps_per_s.end());
  }
  const std::size_t tiers = workload.tiers.size();
  if (!rates.empty() && rates.size() == jobs.size() * tiers) {
    out["steps_per_s"] = adopt(std::move(rates), {std::ssize(jobs), std::ssize(workload.tiers)});
  }
  if (!std::ranges::all_of(jobs, &std::vector<Gang>::empty, &WorkloadJob::gangs)) {
    py::list gangs;
    for (const WorkloadJob& job : jobs) {
      py::dict of_job;
      for (const Gang& gang : job.gangs) of_job[py::int_(gang.gpus)] = py::cast(gang.steps_per_s);
      gangs.append(of_job);
    }
    out["gangs"] = array_of(gangs);
  }
  if (!std::ranges::all_of(jobs, &std::vector<Phase>::empty, &WorkloadJob::phases)) {
    py::list phases;
    for (const WorkloadJob& job : jobs) {
      py::dict of_job;
      for (const Phase& phase : job.phases) of_job[py::float_(phase.from)] = phase.speed;
      phases.append(of_job);
    }
    out["phases"] = array_of(phases);
  }
  return out;
}

/// The tiers of a file and notes on what of it is not read.
std::pair<std::vector<Tier>, std::vector<std::string>> read_tiers_of(
    const std::filesystem::path& path) {
  std::vector<std::string> notes;
  std::vector<Tier> tiers = glidepath::detail::read_tiers(path, notes);
  return {std::move(tiers), std::move(notes)};
}

/// The columns of a CSV, and each row with its line, for tables that Python makes sense of.
struct TextTable {
  std::vector<std::string> columns{};
  std::vector<std::pair<std::size_t, std::vector<std::string>>> rows{};
};

TextTable read_cells(const std::filesystem::path& path, const std::vector<std::string>& needed) {
  glidepath::detail::CsvReader csv(path);
  const auto checked = [&](std::string_view text) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t length = glidepath::detail::character_length(rest);
      if (length == 0) csv.fail("'", glidepath::detail::shown(text), "' is not UTF-8");
      rest.remove_prefix(length);
    }
    return std::string(text);
  };
  TextTable table;
  for (const std::string& column : csv.columns()) table.columns.push_back(checked(column));
  for (const std::string& column : needed) (void)csv.column(column);
  const int count = static_cast<int>(table.columns.size());
  while (csv.next()) {
    std::vector<std::string> cells;
    for (int column = 0; column < count; ++column) cells.push_back(checked(csv.text(column)));
    table.rows.emplace_back(csv.line(), std::move(cells));
  }
  return table;
}

}  // namespace
}  // namespace glidepath::python

void bind_workload(pybind11::module_& module) {
  using namespace glidepath;          // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)
  Record<PairSpeeds>(module, "PairSpeeds",
                     "Measured speeds of two jobs on the same GPUs of a tier, each as a share of "
                     "its own speed alone.")
      .required("first", &PairSpeeds::first)
      .required("second", &PairSpeeds::second)
      .required("tier", &PairSpeeds::tier)
      .required("first_speed", &PairSpeeds::first_speed)
      .required("second_speed", &PairSpeeds::second_speed)
      .init();
  const py::call_guard<LongCall> long_call;
  py::class_<Workload, std::shared_ptr<Workload>>(module, "WorkloadRecord")
      .def_property_readonly(
          "name", [](const Workload& workload) { return Convert<std::string>::out(workload.name); })
      .def_readonly("tiers", &Workload::tiers)
      .def_readonly("pairs", &Workload::pairs)
      .def_property_readonly("notes",
                             [](const Workload& workload) { return texts_of(workload.notes); })
      .def(
          "note",
          [](Workload& workload, std::string text) { workload.notes.push_back(std::move(text)); },
          py::arg("text"))
      .def_property_readonly("job_count", [](const Workload& w) { return w.jobs.size(); })
      .def_property_readonly("lower_bound_jct_s",
                             [](const Workload& workload) {
                               const LongCall call;
                               return lower_bound_jct_s(workload);
                             })
      .def_readonly("curves", &Workload::curves)
      .def("jobs", &job_columns)
      .def("write_jobs", &write_jobs, py::arg("path"), long_call);
  module.def("make_workload", &make_workload, py::arg("tiers"), py::arg("jobs"), py::arg("curves"),
             py::arg("pairs"), py::arg("name"));
  module.def("workload_from_trace", &workload_from_trace, py::arg("path"),
             py::arg("gpus").noconvert(), py::arg("gpus_per_node").noconvert(), long_call);
  py::class_<TextTable>(module, "TextTable")
      .def_readonly("columns", &TextTable::columns)
      .def_readonly("rows", &TextTable::rows);
  module.def("read_cells", &read_cells, py::arg("path"), py::arg("needed"), long_call,
             "A CSV as text: its columns, and each row with its line.");
  module.def("read_tiers", &read_tiers_of, py::arg("path"), long_call,
             "The tiers of a tiers.csv, and what of it is not read.");
  module.def("read_workload", &read_workload, py::arg("path"), long_call);
  module.def("generate_workload", &generate_workload, py::arg("path"), py::arg("users").noconvert(),
             py::arg("seed").noconvert(), long_call);
}
