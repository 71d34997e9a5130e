// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/functional.h>

#include "numpy_view.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

using Shared = std::shared_ptr<const Workload>;

Shared share(Workload&& workload) { return std::make_shared<const Workload>(std::move(workload)); }

/// A column of the jobs, or nothing where the mapping has none.
std::optional<DoubleArray> column(const py::dict& jobs, const char* name, std::size_t n) {
  if (!jobs.contains(name)) return {};
  DoubleArray array = borrow(jobs[name], name);
  if (static_cast<std::size_t>(array.size()) != n) {
    throw InputError("workload: " + std::to_string(n) + " jobs but " +
                     std::to_string(array.size()) + " of " + name);
  }
  return array;
}

template <class T>
void fill(const py::dict& jobs, const char* name, std::vector<WorkloadJob>& out,
          T WorkloadJob::*member) {
  const std::optional<DoubleArray> values = column(jobs, name, out.size());
  if (!values) return;
  for (std::size_t i = 0; i < out.size(); ++i) out[i].*member = static_cast<T>(values->data()[i]);
}

void fill(const py::dict& jobs, const char* name, std::vector<WorkloadJob>& out,
          std::string WorkloadJob::*member) {
  if (!jobs.contains(name)) return;
  const auto values = jobs[name].cast<std::vector<std::string>>();
  if (values.size() != out.size()) {
    throw InputError("workload: " + std::to_string(out.size()) + " jobs but " +
                     std::to_string(values.size()) + " of " + name);
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i].*member = values[i];
}

Shared make_workload(std::vector<Tier> tiers, const py::dict& jobs, const py::list& curves,
                     std::string name) {
  Workload out;
  out.name = std::move(name);
  out.tiers = std::move(tiers);
  if (!jobs.contains("job")) throw InputError("workload: the jobs have no column 'job'");
  const Int64Array ids = borrow_int64(jobs["job"], "job");
  out.jobs.resize(static_cast<std::size_t>(ids.size()));
  for (std::size_t i = 0; i < out.jobs.size(); ++i) out.jobs[i].id = ids.data()[i];
  fill(jobs, "user", out.jobs, &WorkloadJob::user);
  fill(jobs, "job_class", out.jobs, &WorkloadJob::job_class);
  fill(jobs, "submit_s", out.jobs, &WorkloadJob::submit_s);
  fill(jobs, "gpus", out.jobs, &WorkloadJob::gpus);
  fill(jobs, "memory_gb", out.jobs, &WorkloadJob::memory_gb);
  fill(jobs, "duration_s", out.jobs, &WorkloadJob::duration_s);
  fill(jobs, "truth", out.jobs, &WorkloadJob::truth);
  fill(jobs, "target_loss", out.jobs, &WorkloadJob::target_loss);
  fill(jobs, "budget_steps", out.jobs, &WorkloadJob::budget_steps);
  fill(jobs, "utilisation", out.jobs, &WorkloadJob::utilisation);
  if (jobs.contains("steps_per_s")) {
    const DoubleArray rates = borrow(jobs["steps_per_s"], "steps_per_s", 2);
    if (static_cast<std::size_t>(rates.shape(0)) != out.jobs.size()) {
      throw InputError("workload: " + std::to_string(out.jobs.size()) + " jobs but " +
                       std::to_string(rates.shape(0)) + " rows of steps_per_s");
    }
    const py::ssize_t tier_count = rates.shape(1);
    for (std::size_t i = 0; i < out.jobs.size(); ++i) {
      const double* row = rates.data() + static_cast<py::ssize_t>(i) * tier_count;
      out.jobs[i].steps_per_s.assign(row, row + tier_count);
    }
  }
  for (const py::handle curve : curves) {  // (name, step, loss)
    const auto parts = curve.cast<py::tuple>();
    const DoubleArray step = borrow(parts[1], "step"), loss = borrow(parts[2], "loss");
    Trace trace;
    trace.name = parts[0].cast<std::string>();
    trace.step.assign(step.data(), step.data() + step.size());
    trace.loss.assign(loss.data(), loss.data() + loss.size());
    validate(trace.view());
    out.curves.push_back(std::move(trace));
  }
  validate(out);
  return share(std::move(out));
}

template <class T, class Get>
py::object gathered(const std::vector<WorkloadJob>& jobs, Get&& get) {
  std::vector<T> values;
  values.reserve(jobs.size());
  for (const WorkloadJob& job : jobs) values.push_back(static_cast<T>(get(job)));
  return adopt(std::move(values));
}

py::dict job_columns(const Workload& workload) {
  const std::vector<WorkloadJob>& jobs = workload.jobs;
  py::dict out;
  py::list users, classes;
  bool named = false;
  bool classed = false;
  std::vector<double> rates;
  for (const WorkloadJob& job : jobs) {
    users.append(job.user);
    classes.append(job.job_class);
    named |= !job.user.empty();
    classed |= !job.job_class.empty();
    rates.insert(rates.end(), job.steps_per_s.begin(), job.steps_per_s.end());
  }
  out["job"] = gathered<std::int64_t>(jobs, [](const WorkloadJob& j) { return j.id; });
  if (named) out["user"] = users;
  if (classed) out["job_class"] = classes;
  out["submit_s"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.submit_s; });
  out["gpus"] = gathered<std::int64_t>(jobs, [](const WorkloadJob& j) { return j.gpus; });
  out["memory_gb"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.memory_gb; });
  out["duration_s"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.duration_s; });
  out["utilisation"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.utilisation; });
  if (!workload.curves.empty()) {
    out["truth"] = gathered<std::int64_t>(jobs, [](const WorkloadJob& j) { return j.truth; });
    out["target_loss"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.target_loss; });
  }
  out["budget_steps"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.budget_steps; });
  const std::size_t tiers = workload.tiers.size();
  if (!rates.empty() && rates.size() == jobs.size() * tiers) {
    out["steps_per_s"] = adopt(
        std::move(rates), {static_cast<py::ssize_t>(jobs.size()), static_cast<py::ssize_t>(tiers)});
  }
  return out;
}

py::list curve_columns(const Workload& workload) {
  py::list out;
  for (const Trace& curve : workload.curves) {
    out.append(
        py::make_tuple(curve.name, adopt(std::vector(curve.step)), adopt(std::vector(curve.loss))));
  }
  return out;
}

/// The columns and numbers of a Simulation, in the order of python/glidepath/_simulate.py.
py::dict fields_of(Simulation&& run) {
  py::dict jobs;
  py::list outcomes, users;
  bool named = false;
  for (const std::string& user : run.jobs.user) named |= !user.empty();
  jobs["job"] = adopt(std::move(run.jobs.job));
  jobs["submit_s"] = adopt(std::move(run.jobs.submit_s));
  jobs["start_s"] = adopt(std::move(run.jobs.start_s));
  jobs["end_s"] = adopt(std::move(run.jobs.end_s));
  jobs["jct_s"] = adopt(std::move(run.jobs.jct_s));
  jobs["wait_s"] = adopt(std::move(run.jobs.wait_s));
  jobs["preemptions"] = adopt(std::move(run.jobs.preemptions));
  jobs["gpu_seconds"] = adopt(std::move(run.jobs.gpu_seconds));
  jobs["energy_j"] = adopt(std::move(run.jobs.energy_j));
  jobs["ftf"] = adopt(std::move(run.jobs.ftf));
  std::vector<std::int64_t> codes;
  for (const Outcome outcome : run.jobs.outcome) codes.push_back(static_cast<int>(outcome));
  jobs["outcome"] = adopt(std::move(codes));
  if (named) {
    for (const std::string& user : run.jobs.user) users.append(user);
    jobs["user"] = users;
  }

  const std::size_t n = run.events.size();
  std::vector<std::int64_t> job(n), tier(n), gpus(n);
  std::vector<double> start(n), end(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Span& span = run.events[i];
    job[i] = span.job;
    tier[i] = span.tier;
    gpus[i] = span.gpus;
    start[i] = span.start_s;
    end[i] = span.end_s;
  }
  py::dict events;
  events["job"] = adopt(std::move(job));
  events["tier"] = adopt(std::move(tier));
  events["gpus"] = adopt(std::move(gpus));
  events["start_s"] = adopt(std::move(start));
  events["end_s"] = adopt(std::move(end));

  return py::dict(
      py::arg("policy") = run.policy, py::arg("jobs") = jobs, py::arg("events") = events,
      py::arg("mean_jct_s") = run.mean_jct_s, py::arg("median_jct_s") = run.median_jct_s,
      py::arg("p95_jct_s") = run.p95_jct_s, py::arg("mean_wait_s") = run.mean_wait_s,
      py::arg("total_wait_s") = run.total_wait_s,
      py::arg("mean_wait_per_user_s") = run.mean_wait_per_user_s,
      py::arg("makespan_s") = run.makespan_s, py::arg("preemptions") = run.preemptions,
      py::arg("gpu_seconds") = run.gpu_seconds, py::arg("utilization") = run.utilization,
      py::arg("energy_kwh") = run.energy_kwh, py::arg("worst_ftf") = run.worst_ftf,
      py::arg("lower_bound_jct_s") = run.lower_bound_jct_s, py::arg("decisions") = run.decisions);
}

py::dict run_simulation(const Shared& workload, const py::object& policy, std::uint64_t seed,
                        double restart_s, std::optional<double> session_s,
                        std::optional<double> round_s, std::optional<double> forecast_sigma,
                        std::optional<bool> stop_at_target, bool events,
                        const py::object& progress) {
  SimulationOptions options;
  options.seed = seed;
  options.restart_s = restart_s;
  options.session_s = session_s;
  options.round_s = round_s;
  options.forecast_sigma = forecast_sigma;
  options.stop_at_target = stop_at_target;
  options.events = events;
  if (!progress.is_none()) {
    options.progress = [&progress](std::int64_t ended, std::int64_t jobs) {
      const py::gil_scoped_acquire hold;
      progress(ended, jobs);
    };
  }
  Simulation run;
  if (py::isinstance<py::str>(policy)) {
    const std::string name = policy.cast<std::string>();
    const py::gil_scoped_release release;
    run = simulate(*workload, name, options);
  } else {
    const Policy decide = [&policy](const Snapshot& snapshot) {
      const py::gil_scoped_acquire hold;
      return plan_from_python(policy(OwnedSnapshot(snapshot)));
    };
    const py::gil_scoped_release release;
    run = simulate(*workload, decide, options);
  }
  return fields_of(std::move(run));
}

}  // namespace
}  // namespace glidepath::python

void bind_simulate(pybind11::module_& module) {
  using namespace glidepath::python;
  namespace py = pybind11;
  py::class_<glidepath::Workload, std::shared_ptr<glidepath::Workload>>(module, "WorkloadRecord")
      .def_readonly("name", &glidepath::Workload::name)
      .def_readonly("tiers", &glidepath::Workload::tiers)
      .def_property_readonly("job_count",
                             [](const glidepath::Workload& w) { return w.jobs.size(); })
      .def("jobs", &job_columns, "Columns of the jobs.")
      .def("curves", &curve_columns, "(name, step, loss) of each hidden curve.");
  const auto record = [](const Shared& shared) {
    return std::const_pointer_cast<glidepath::Workload>(shared);
  };
  module.def(
      "make_workload",
      [record](std::vector<glidepath::Tier> tiers, const py::dict& jobs, const py::list& curves,
               std::string name) {
        return record(make_workload(std::move(tiers), jobs, curves, std::move(name)));
      },
      py::arg("tiers"), py::arg("jobs"), py::arg("curves"), py::arg("name"));
  module.def(
      "workload_from_trace",
      [record](const py::bytes& path, int gpus, std::optional<int> gpus_per_node) {
        const std::string file = path;
        const py::gil_scoped_release release;
        return record(share(glidepath::workload_from_trace(file, gpus, gpus_per_node)));
      },
      py::arg("path"), py::arg("gpus"), py::arg("gpus_per_node"));
  module.def(
      "read_workload",
      [record](const py::bytes& path) {
        const std::string folder = path;
        const py::gil_scoped_release release;
        return record(share(glidepath::read_workload(folder)));
      },
      py::arg("path"));
  module.def(
      "generate_workload",
      [record](const py::bytes& path, int users, std::uint64_t seed) {
        const std::string folder = path;
        const py::gil_scoped_release release;
        return record(share(glidepath::generate_workload(folder, users, seed)));
      },
      py::arg("path"), py::arg("users"), py::arg("seed"));
  module.def(
      "write_jobs",
      [](const std::shared_ptr<glidepath::Workload>& workload, const py::bytes& path) {
        glidepath::write_jobs(*workload, std::string(path));
      },
      py::arg("workload"), py::arg("path"));
  module.def(
      "simulate",
      [](const std::shared_ptr<glidepath::Workload>& workload, const py::object& policy,
         std::uint64_t seed, double restart_s, std::optional<double> session_s,
         std::optional<double> round_s, std::optional<double> forecast_sigma,
         std::optional<bool> stop_at_target, bool events, const py::object& progress) {
        return run_simulation(workload, policy, seed, restart_s, session_s, round_s, forecast_sigma,
                              stop_at_target, events, progress);
      },
      py::arg("workload"), py::arg("policy"), py::arg("seed"), py::arg("restart_s"),
      py::arg("session_s"), py::arg("round_s"), py::arg("forecast_sigma"),
      py::arg("stop_at_target"), py::arg("events"), py::arg("progress"));
  module.def(
      "lower_bound_jct_s",
      [](const std::shared_ptr<glidepath::Workload>& workload) {
        return glidepath::lower_bound_jct_s(*workload);
      },
      py::arg("workload"));
  py::list names, outcomes;
  for (const auto name : glidepath::policy_names()) names.append(py::str(std::string(name)));
  for (const auto outcome : {glidepath::Outcome::unfinished, glidepath::Outcome::finished,
                             glidepath::Outcome::target, glidepath::Outcome::never}) {
    outcomes.append(py::str(std::string(glidepath::name(outcome))));
  }
  module.attr("POLICIES") = py::tuple(names);
  module.attr("OUTCOMES") = py::tuple(outcomes);
}
