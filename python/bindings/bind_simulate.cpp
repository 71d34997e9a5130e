// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/functional.h>

#include "numpy_view.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

using Shared = std::shared_ptr<const Workload>;
using FloatArray = py::array_t<float, py::array::c_style>;
using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

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
                     const py::list& pairs, std::string name) {
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
  fill(jobs, "utilization", out.jobs, &WorkloadJob::utilization);
  fill(jobs, "sm_activity", out.jobs, &WorkloadJob::sm_activity);
  fill(jobs, "weight", out.jobs, &WorkloadJob::weight);
  fill(jobs, "priority", out.jobs, &WorkloadJob::priority);
  fill(jobs, "deadline_s", out.jobs, &WorkloadJob::deadline_s);
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
  for (const py::handle pair : pairs) {  // (first, second, tier, speed of first, of second)
    const auto parts = pair.cast<py::tuple>();
    out.pairs.push_back({parts[0].cast<std::string>(),
                         parts[1].cast<std::string>(),
                         parts[2].cast<int>(),
                         {parts[3].cast<double>(), parts[4].cast<double>()}});
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
  out["utilization"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.utilization; });
  out["sm_activity"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.sm_activity; });
  out["weight"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.weight; });
  out["priority"] = gathered<std::int64_t>(jobs, [](const WorkloadJob& j) { return j.priority; });
  out["deadline_s"] = gathered<double>(jobs, [](const WorkloadJob& j) { return j.deadline_s; });
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

py::list pair_rows(const Workload& workload) {
  py::list out;
  for (const PairSpeeds& pair : workload.pairs) {
    out.append(
        py::make_tuple(pair.first, pair.second, pair.tier, pair.speeds.first, pair.speeds.second));
  }
  return out;
}

py::tuple accounts_of(const std::vector<UserAccount>& accounts) {
  py::list out;
  for (const UserAccount& a : accounts) {
    out.append(py::dict(py::arg("user") = a.name, py::arg("jobs") = a.jobs,
                        py::arg("mean_jct_s") = a.mean_jct_s, py::arg("wait_s") = a.wait_s,
                        py::arg("gpu_seconds") = a.gpu_seconds,
                        py::arg("energy_kwh") = a.energy_kwh));
  }
  return out;
}

py::tuple accounts_of(const std::vector<TierAccount>& accounts) {
  py::list out;
  for (const TierAccount& a : accounts) {
    out.append(py::dict(py::arg("tier") = a.name, py::arg("starts") = a.starts,
                        py::arg("gpu_seconds") = a.gpu_seconds,
                        py::arg("utilization") = a.utilization,
                        py::arg("energy_kwh") = a.energy_kwh));
  }
  return out;
}

template <class T, class Row, class Member>
py::object column_of(const std::vector<Row>& rows, Member Row::*member) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(static_cast<T>(row.*member));
  return adopt(std::move(values));
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
  jobs["failures"] = adopt(std::move(run.jobs.failures));
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

  py::dict spans;
  spans["job"] = column_of<std::int64_t>(run.spans, &Span::job);
  spans["tier"] = column_of<std::int64_t>(run.spans, &Span::tier);
  spans["gpus"] = column_of<std::int64_t>(run.spans, &Span::gpus);
  spans["start_s"] = column_of<double>(run.spans, &Span::start_s);
  spans["end_s"] = column_of<double>(run.spans, &Span::end_s);
  spans["partner"] = column_of<std::int64_t>(run.spans, &Span::partner);
  py::dict timeline;
  timeline["time_s"] = column_of<double>(run.timeline, &TimelineRow::time_s);
  timeline["running"] = column_of<std::int64_t>(run.timeline, &TimelineRow::running);
  timeline["queued"] = column_of<std::int64_t>(run.timeline, &TimelineRow::queued);
  timeline["busy"] = column_of<double>(run.timeline, &TimelineRow::busy);

  return py::dict(
      py::arg("policy") = run.policy, py::arg("jobs") = jobs, py::arg("spans") = spans,
      py::arg("timeline") = timeline, py::arg("users") = accounts_of(run.users),
      py::arg("tier_accounts") = accounts_of(run.tiers), py::arg("mean_jct_s") = run.mean_jct_s,
      py::arg("median_jct_s") = run.median_jct_s, py::arg("p95_jct_s") = run.p95_jct_s,
      py::arg("mean_wait_s") = run.mean_wait_s, py::arg("total_wait_s") = run.total_wait_s,
      py::arg("mean_wait_per_user_s") = run.mean_wait_per_user_s,
      py::arg("makespan_s") = run.makespan_s, py::arg("preemptions") = run.preemptions,
      py::arg("gpu_seconds") = run.gpu_seconds, py::arg("utilization") = run.utilization,
      py::arg("energy_kwh") = run.energy_kwh, py::arg("carbon_kg") = run.carbon_kg,
      py::arg("worst_ftf") = run.worst_ftf, py::arg("share_unfair") = run.share_unfair,
      py::arg("share_in_time") = run.share_in_time, py::arg("failures") = run.failures,
      py::arg("lost_gpu_seconds") = run.lost_gpu_seconds,
      py::arg("lower_bound_jct_s") = run.lower_bound_jct_s, py::arg("events") = run.events);
}

/// Sets the members that a mapping names; refuses names that are none of them.
template <class T>
void set(const py::dict& given, const char* what,
         const std::vector<std::pair<std::string_view, double T::*>>& members, T& out) {
  for (const auto& [key, value] : given) {
    const std::string name = py::cast<std::string>(key);
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& member) { return member.first == name; });
    if (found != members.end()) {
      out.*found->second = py::cast<double>(value);
      continue;
    }
    std::string known;
    for (const auto& member : members) {
      known += (known.empty() ? "" : ", ") + std::string(member.first);
    }
    throw InputError(std::string("simulate: ") + what + " has no '" + name + "', known are " +
                     known);
  }
}

/// Keyword arguments of glidepath.plan, but for those that the simulation itself decides.
PlanOptions planner_options(const py::dict& given) {
  constexpr std::array kOfSimulation{"sharing", "in_nodes", "pairs", "reasons", "prices"};
  const py::object planner = py::type::of<OwnedPlanOptions>();
  py::list known;
  for (const py::handle name : planner.attr("__match_args__")) {
    if (std::none_of(kOfSimulation.begin(), kOfSimulation.end(),
                     [&](const char* each) { return name.equal(py::str(each)); })) {
      known.append(name);
    }
  }
  for (const auto& [name, value] : given) {
    if (known.contains(name)) continue;
    throw InputError("simulate: planner has no '" + std::string(py::str(name)) + "', known are " +
                     std::string(py::str(py::str(", ").attr("join")(known))));
  }
  return planner(**given).cast<const OwnedPlanOptions&>();
}

/// What runs of the same jobs have forecast, for the next of them.
struct Memo {
  std::shared_ptr<ForecastMemo> forecasts = make_forecast_memo();
};

SimulationOptions options_of(const py::dict& given) {
  SimulationOptions options;
  const auto get = [&](const char* name, auto& out) {
    out = given[name].cast<std::remove_reference_t<decltype(out)>>();
  };
  get("seed", options.seed);
  get("restart_s", options.restart_s);
  get("session_s", options.session_s);
  get("round_s", options.round_s);
  get("forecast_sigma", options.forecast_sigma);
  get("stop_at_target", options.stop_at_target);
  get("in_nodes", options.in_nodes);
  get("user_gpus", options.user_gpus);
  get("carbon_g_per_kwh", options.carbon_g_per_kwh);
  get("spans", options.spans);
  if (!given["memo"].is_none()) options.memo = given["memo"].cast<const Memo&>().forecasts;
  options.sharing = sharing_named(given["sharing"].cast<std::string>());
  set<Failures>(given["failures"], "failures",
                {{"node_every_s", &Failures::node_every_s},
                 {"repair_s", &Failures::repair_s},
                 {"job_every_s", &Failures::job_every_s},
                 {"checkpoint_s", &Failures::checkpoint_s}},
                options.failures);
  set<Sleep>(given["sleep"], "sleep",
             {{"after_s", &Sleep::after_s}, {"watts", &Sleep::watts}, {"wake_s", &Sleep::wake_s}},
             options.sleep);
  options.planner = planner_options(py::dict(given["planner"]));
  return options;
}

/// Environments side by side, each with a workload drawn anew at every episode.
class EnvironmentBatch {
 public:
  EnvironmentBatch(std::vector<std::shared_ptr<Workload>> workloads, int count,
                   const py::dict& simulation, int slots, int running, double energy_weight,
                   double weights_for_s)
      : workloads_(std::move(workloads)) {
    if (workloads_.empty()) throw InputError("environment: no workload");
    if (count < 1) throw InputError("environment: " + std::to_string(count) + " environments");
    for (const auto& workload : workloads_) {
      if (workload->tiers.size() != workloads_.front()->tiers.size()) {
        throw InputError("environment: workload '" + workload->name + "' has " +
                         std::to_string(workload->tiers.size()) + " tiers, the first has " +
                         std::to_string(workloads_.front()->tiers.size()));
      }
    }
    EnvironmentOptions options;
    options.simulation = options_of(simulation);
    options.slots = slots;
    options.running = running;
    options.energy_weight = energy_weight;
    options.weights_for_s = weights_for_s;
    for (int i = 0; i < count; ++i) environments_.emplace_back(options);
    over_.assign(environments_.size(), false);
    episodes_.assign(environments_.size(), 0);
  }

  [[nodiscard]] int actions() const { return environments_.front().actions(); }
  [[nodiscard]] int observation_size() const {
    return environments_.front().observation_size(workloads_.front()->tiers.size());
  }

  /// Environment i plays `first + i` of the workloads, or with first < 0 one that the seed draws.
  void reset(std::uint64_t seed, std::int64_t first, FloatArray& observation, ByteArray& mask) {
    seed_ = seed;
    first_ = first;
    std::fill(episodes_.begin(), episodes_.end(), 0);
    check(observation, mask);
    float* seen = observation.mutable_data();
    std::uint8_t* may = mask.mutable_data();
    const py::gil_scoped_release release;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      begin(i);
      show(i, seen, may);
    }
  }

  void step(const Int64Array& chosen, FloatArray& observation, DoubleArray& reward,
            ByteArray& terminated, ByteArray& mask) {
    take(chosen.size(), 1, observation, reward, terminated, mask,
         [&, action = chosen.data()](std::size_t i) {
           return environments_[i].step(static_cast<int>(action[i]));
         });
  }
  void weigh(const DoubleArray& weights, FloatArray& observation, DoubleArray& reward,
             ByteArray& terminated, ByteArray& mask) {
    const auto each = static_cast<std::size_t>(actions());
    take(weights.size(), actions(), observation, reward, terminated, mask,
         [&, weight = weights.data()](std::size_t i) {
           return environments_[i].step(std::span(weight + i * each, each));
         });
  }

  py::dict simulation(std::size_t i) { return fields_of(environments_.at(i).simulation()); }

 private:
  void check(const FloatArray& observation, const ByteArray& mask) const {
    const auto n = static_cast<py::ssize_t>(environments_.size());
    if (observation.size() != n * observation_size() || mask.size() != n * actions()) {
      throw InputError("environment: the arrays are not of the spaces' shapes");
    }
  }
  /// Steps each environment by `act`, given `size` numbers of which each takes `each`.
  template <class Act>
  void take(py::ssize_t size, int each, FloatArray& observation, DoubleArray& reward,
            ByteArray& terminated, ByteArray& mask, Act&& act) {
    check(observation, mask);
    const auto n = static_cast<py::ssize_t>(environments_.size());
    if (size != n * each || reward.size() != n || terminated.size() != n) {
      throw InputError("environment: expected " + std::to_string(n * each) + " numbers");
    }
    float* seen = observation.mutable_data();
    double* gain = reward.mutable_data();
    std::uint8_t* over = terminated.mutable_data();
    std::uint8_t* may = mask.mutable_data();
    const py::gil_scoped_release release;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      if (over_[i]) {  // the step after an end begins the next episode, as gymnasium's vectors do
        begin(i);
        gain[i] = 0;
      } else {
        gain[i] = act(i);
      }
      over_[i] = environments_[i].done();
      over[i] = over_[i] ? 1 : 0;
      show(i, seen, may);
    }
  }
  void begin(std::size_t i) {
    const std::uint64_t episode = episodes_[i]++;
    const std::size_t of = workloads_.size();
    std::uint64_t z = seed_ + 0x9e3779b97f4a7c15ULL * (episode * environments_.size() + i + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;  // splitmix64
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    const std::size_t which =
        first_ < 0 ? z % of : (static_cast<std::size_t>(first_) + i + episode * of) % of;
    environments_[i].reset(*workloads_[which], first_ < 0 ? z : seed_);
    over_[i] = false;
  }
  void show(std::size_t i, float* seen, std::uint8_t* may) {
    const auto size = static_cast<std::size_t>(observation_size());
    const auto count = static_cast<std::size_t>(actions());
    environments_[i].observe({seen + i * size, size});
    environments_[i].mask({may + i * count, count});
  }

  std::vector<std::shared_ptr<Workload>> workloads_;
  std::vector<Environment> environments_;
  std::vector<bool> over_;
  std::vector<std::uint64_t> episodes_;
  std::uint64_t seed_ = 0;
  std::int64_t first_ = -1;
};

py::dict run_simulation(const Shared& workload, const py::object& policy, const py::dict& given) {
  SimulationOptions options = options_of(given);
  const py::object progress = given["progress"];
  const py::object stream = given["stream"];
  if (!progress.is_none()) {
    options.progress = [&progress](std::int64_t ended, std::int64_t jobs) {
      const py::gil_scoped_acquire hold;
      progress(ended, jobs);
    };
  }
  if (!stream.is_none()) {
    options.stream = [&stream](const Span& span) {
      const py::gil_scoped_acquire hold;
      stream(span.job, span.tier, span.gpus, span.start_s, span.end_s, span.partner);
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
  py::class_<Memo>(module, "ForecastMemo").def(py::init<>());
  py::class_<glidepath::Workload, std::shared_ptr<glidepath::Workload>>(module, "WorkloadRecord")
      .def_readonly("name", &glidepath::Workload::name)
      .def_readonly("tiers", &glidepath::Workload::tiers)
      .def_property_readonly("job_count",
                             [](const glidepath::Workload& w) { return w.jobs.size(); })
      .def("jobs", &job_columns, "Columns of the jobs.")
      .def("curves", &curve_columns, "(name, step, loss) of each hidden curve.")
      .def("pairs", &pair_rows, "(first, second, tier, speed of first, of second) of each pair.");
  const auto record = [](const Shared& shared) {
    return std::const_pointer_cast<glidepath::Workload>(shared);
  };
  module.def(
      "make_workload",
      [record](std::vector<glidepath::Tier> tiers, const py::dict& jobs, const py::list& curves,
               const py::list& pairs, std::string name) {
        return record(make_workload(std::move(tiers), jobs, curves, pairs, std::move(name)));
      },
      py::arg("tiers"), py::arg("jobs"), py::arg("curves"), py::arg("pairs"), py::arg("name"));
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
         const py::dict& options) { return run_simulation(workload, policy, options); },
      py::arg("workload"), py::arg("policy"), py::arg("options"));
  module.def(
      "lower_bound_jct_s",
      [](const std::shared_ptr<glidepath::Workload>& workload) {
        return glidepath::lower_bound_jct_s(*workload);
      },
      py::arg("workload"));
  py::class_<EnvironmentBatch>(module, "EnvironmentBatch")
      .def(py::init<std::vector<std::shared_ptr<glidepath::Workload>>, int, const py::dict&, int,
                    int, double, double>(),
           py::arg("workloads"), py::arg("count"), py::arg("simulation"), py::arg("slots"),
           py::arg("running"), py::arg("energy_weight"), py::arg("weights_for_s"))
      .def_property_readonly("actions", &EnvironmentBatch::actions)
      .def_property_readonly("observation_size", &EnvironmentBatch::observation_size)
      .def("reset", &EnvironmentBatch::reset, py::arg("seed"), py::arg("first"),
           py::arg("observation").noconvert(), py::arg("mask").noconvert())
      .def("step", &EnvironmentBatch::step, py::arg("actions"), py::arg("observation").noconvert(),
           py::arg("reward").noconvert(), py::arg("terminated").noconvert(),
           py::arg("mask").noconvert())
      .def("weigh", &EnvironmentBatch::weigh, py::arg("weights"),
           py::arg("observation").noconvert(), py::arg("reward").noconvert(),
           py::arg("terminated").noconvert(), py::arg("mask").noconvert())
      .def("simulation", &EnvironmentBatch::simulation, py::arg("environment"));
  py::list names, outcomes;
  for (const auto name : glidepath::policy_names()) names.append(py::str(std::string(name)));
  for (const auto outcome : {glidepath::Outcome::unfinished, glidepath::Outcome::finished,
                             glidepath::Outcome::target, glidepath::Outcome::never}) {
    outcomes.append(py::str(std::string(glidepath::name(outcome))));
  }
  module.attr("POLICIES") = py::tuple(names);
  module.attr("OUTCOMES") = py::tuple(outcomes);
}
