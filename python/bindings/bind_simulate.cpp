// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/typing.h>

#include "numpy_view.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

using Shared = std::shared_ptr<Workload>;
using FloatArray = py::array_t<float, py::array::c_style>;
using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

Shared share(Workload&& workload) { return std::make_shared<Workload>(std::move(workload)); }

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

void fill_rates(const py::dict& jobs, std::vector<WorkloadJob>& out) {
  if (!jobs.contains("steps_per_s")) return;
  const DoubleArray rates = borrow(jobs["steps_per_s"], "steps_per_s", 2);
  if (static_cast<std::size_t>(rates.shape(0)) != out.size()) {
    throw InputError("workload: " + std::to_string(out.size()) + " jobs but " +
                     std::to_string(rates.shape(0)) + " rows of steps_per_s");
  }
  const py::ssize_t tier_count = rates.shape(1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double* row = rates.data() + static_cast<py::ssize_t>(i) * tier_count;
    out[i].steps_per_s.assign(row, row + tier_count);
  }
}

std::vector<WorkloadJob> jobs_of(const py::dict& columns) {
  if (!columns.contains("job")) throw InputError("workload: the jobs have no column 'job'");
  const Int64Array ids = borrow_int64(columns["job"], "job");
  std::vector<WorkloadJob> jobs(static_cast<std::size_t>(ids.size()));
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].id = ids.data()[i];
  fill(columns, "user", jobs, &WorkloadJob::user);
  fill(columns, "job_class", jobs, &WorkloadJob::job_class);
  fill(columns, "submit_s", jobs, &WorkloadJob::submit_s);
  fill(columns, "gpus", jobs, &WorkloadJob::gpus);
  fill(columns, "memory_gb", jobs, &WorkloadJob::memory_gb);
  fill(columns, "duration_s", jobs, &WorkloadJob::duration_s);
  fill(columns, "truth", jobs, &WorkloadJob::truth);
  fill(columns, "target_loss", jobs, &WorkloadJob::target_loss);
  fill(columns, "budget_steps", jobs, &WorkloadJob::budget_steps);
  fill(columns, "utilization", jobs, &WorkloadJob::utilization);
  fill(columns, "sm_activity", jobs, &WorkloadJob::sm_activity);
  fill(columns, "weight", jobs, &WorkloadJob::weight);
  fill(columns, "priority", jobs, &WorkloadJob::priority);
  fill(columns, "deadline_s", jobs, &WorkloadJob::deadline_s);
  fill_rates(columns, jobs);
  return jobs;
}

/// The columns of a glidepath.Trace that a simulation uses.
Trace curve_of(const py::handle& trace) {
  const auto owned = [&](const char* name) {
    const DoubleArray array = borrow_or_empty(trace.attr(name), name);
    return std::vector<double>(array.data(), array.data() + array.size());
  };
  Trace curve{.name = trace.attr("name").cast<std::string>(),
              .step = owned("step"),
              .loss = owned("loss"),
              .lr = owned("lr")};
  validate(curve.view());
  return curve;
}

Shared make_workload(std::vector<Tier> tiers, const py::dict& jobs, const py::list& curves,
                     std::vector<PairSpeeds> pairs, std::string name) {
  Workload out{.name = std::move(name),
               .tiers = std::move(tiers),
               .jobs = jobs_of(jobs),
               .curves = {},
               .pairs = std::move(pairs)};
  for (const py::handle curve : curves) out.curves.push_back(curve_of(curve));
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

/// The arguments of a glidepath.Trace for each curve.
py::list curve_columns(const Workload& workload) {
  py::list out;
  for (const Trace& curve : workload.curves) {
    py::object lr = py::none();
    if (!curve.lr.empty()) lr = adopt(std::vector(curve.lr));
    out.append(py::dict(py::arg("step") = adopt(std::vector(curve.step)),
                        py::arg("loss") = adopt(std::vector(curve.loss)), py::arg("lr") = lr,
                        py::arg("name") = curve.name));
  }
  return out;
}

template <class Row, class Member>
void add(py::dict& columns, const char* name, const std::vector<Row>& rows, Member Row::*member) {
  if constexpr (std::is_same_v<Member, std::string>) {
    py::list values;
    for (const Row& row : rows) values.append(row.*member);
    columns[name] = values;
  } else {
    using Value = std::conditional_t<std::is_integral_v<Member>, std::int64_t, double>;
    std::vector<Value> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(row.*member);
    columns[name] = adopt(std::move(values));
  }
}

py::dict result_columns(const Simulation& run) {
  const JobColumns& jobs = run.jobs;
  py::dict out;
  out["job"] = adopt(std::vector(jobs.job));
  out["submit_s"] = adopt(std::vector(jobs.submit_s));
  out["start_s"] = adopt(std::vector(jobs.start_s));
  out["end_s"] = adopt(std::vector(jobs.end_s));
  out["jct_s"] = adopt(std::vector(jobs.jct_s));
  out["wait_s"] = adopt(std::vector(jobs.wait_s));
  out["preemptions"] = adopt(std::vector(jobs.preemptions));
  out["failures"] = adopt(std::vector(jobs.failures));
  out["gpu_seconds"] = adopt(std::vector(jobs.gpu_seconds));
  out["energy_j"] = adopt(std::vector(jobs.energy_j));
  out["ftf"] = adopt(std::vector(jobs.ftf));
  std::vector<std::int64_t> outcomes;
  for (const JobOutcome outcome : jobs.outcome) outcomes.push_back(static_cast<int>(outcome));
  out["outcome"] = adopt(std::move(outcomes));
  const bool named = std::any_of(jobs.user.begin(), jobs.user.end(),
                                 [](const std::string& user) { return !user.empty(); });
  if (named) out["user"] = py::cast(jobs.user);
  return out;
}

py::dict span_columns(const Simulation& run) {
  py::dict out;
  add(out, "job", run.spans, &JobSpan::job);
  add(out, "tier", run.spans, &JobSpan::tier);
  add(out, "gpus", run.spans, &JobSpan::gpus);
  add(out, "start_s", run.spans, &JobSpan::start_s);
  add(out, "end_s", run.spans, &JobSpan::end_s);
  add(out, "partner", run.spans, &JobSpan::partner);
  return out;
}

py::dict timeline_columns(const Simulation& run) {
  py::dict out;
  add(out, "time_s", run.timeline, &TimelineRow::time_s);
  add(out, "running", run.timeline, &TimelineRow::running);
  add(out, "queued", run.timeline, &TimelineRow::queued);
  add(out, "busy", run.timeline, &TimelineRow::busy);
  return out;
}

py::dict user_columns(const Simulation& run) {
  const std::vector<UserAccount>& rows = run.user_accounts;
  py::dict out;
  add(out, "name", rows, &UserAccount::name);
  add(out, "jobs", rows, &UserAccount::jobs);
  add(out, "mean_jct_s", rows, &UserAccount::mean_jct_s);
  add(out, "wait_s", rows, &UserAccount::wait_s);
  add(out, "gpu_seconds", rows, &UserAccount::gpu_seconds);
  add(out, "energy_kwh", rows, &UserAccount::energy_kwh);
  return out;
}

py::dict tier_columns(const Simulation& run) {
  const std::vector<TierAccount>& rows = run.tier_accounts;
  py::dict out;
  add(out, "name", rows, &TierAccount::name);
  add(out, "starts", rows, &TierAccount::starts);
  add(out, "gpu_seconds", rows, &TierAccount::gpu_seconds);
  add(out, "utilization", rows, &TierAccount::utilization);
  add(out, "energy_kwh", rows, &TierAccount::energy_kwh);
  return out;
}

// ---- options

using Numbers = std::map<std::string, double>;

template <class T>
using Members = std::vector<std::pair<std::string, double T::*>>;
const Members<Failures> kFailures{{"node_every_s", &Failures::node_every_s},
                                  {"repair_s", &Failures::repair_s},
                                  {"job_every_s", &Failures::job_every_s},
                                  {"checkpoint_s", &Failures::checkpoint_s}};
const Members<NodeSleep> kSleep{
    {"after_s", &NodeSleep::after_s}, {"watts", &NodeSleep::watts}, {"wake_s", &NodeSleep::wake_s}};

/// Sets the members that a mapping names; refuses names that are none of them.
template <class Value, class T>
void set(const std::map<std::string, Value>& given, const char* what, const Members<T>& members,
         T& out) {
  for (const auto& [name, value] : given) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& member) { return member.first == name; });
    if (found != members.end()) {
      if constexpr (std::is_same_v<Value, double>) {
        out.*found->second = value;
      } else {
        out.*found->second = py::float_(value);
      }
      continue;
    }
    std::string known;
    for (const auto& member : members) known += (known.empty() ? "" : ", ") + member.first;
    throw InputError(std::string("simulate: ") + what + " has no '" + name + "', known are " +
                     known);
  }
}

/// A property of SimulationOptions that is a mapping of names to numbers; None = the defaults.
template <class T>
void numbers(py::class_<SimulationOptions>& record, const char* name, T SimulationOptions::*part,
             const Members<T>& members) {
  record.def_property(
      name,
      [part, &members](const SimulationOptions& options) {
        Numbers out;
        for (const auto& [key, member] : members) out[key] = options.*part.*member;
        return out;
      },
      [name, part, &members](SimulationOptions& options, const std::optional<Numbers>& given) {
        options.*part = {};
        if (given) set(*given, name, members, options.*part);
      });
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

using Grams = std::variant<std::vector<double>, double>;

void bind_options(py::module_& module) {
  py::class_<SimulationOptions> record(module, "SimulationOptions");
  record.def(py::init<>())
      .def_readwrite("seed", &SimulationOptions::seed)
      .def_readwrite("restart_s", &SimulationOptions::restart_s)
      .def_readwrite("session_s", &SimulationOptions::session_s)
      .def_readwrite("round_s", &SimulationOptions::round_s)
      .def_readwrite("forecast_sigma", &SimulationOptions::forecast_sigma)
      .def_readwrite("stop_at_target", &SimulationOptions::stop_at_target);
  numbers(record, "failures", &SimulationOptions::failures, kFailures);
  numbers(record, "sleep", &SimulationOptions::sleep, kSleep);
  record.def_readwrite("in_nodes", &SimulationOptions::in_nodes)
      .def_property(
          "sharing", [](const SimulationOptions& o) { return std::string(name(o.sharing)); },
          [](SimulationOptions& o, const std::string& text) { o.sharing = sharing_named(text); })
      .def_readwrite("user_gpus", &SimulationOptions::user_gpus)
      .def_property(
          "carbon_g_per_kwh", [](const SimulationOptions& o) { return o.carbon_g_per_kwh; },
          [](SimulationOptions& o, const std::optional<Grams>& given) {
            o.carbon_g_per_kwh.clear();
            if (!given) return;
            const auto* hours = std::get_if<std::vector<double>>(&*given);
            o.carbon_g_per_kwh = hours != nullptr ? *hours : std::vector{std::get<double>(*given)};
          })
      .def_property("planner", nullptr,
                    [](SimulationOptions& o, const std::optional<py::dict>& given) {
                      o.planner = given ? planner_options(given->attr("copy")()) : PlanOptions{};
                    })
      .def_readwrite("spans", &SimulationOptions::spans);
}

// ---- runs

/// Environments side by side, each with a workload drawn anew at every episode.
class EnvironmentBatch {
 public:
  EnvironmentBatch(std::vector<std::shared_ptr<Workload>> workloads, int count,
                   const SimulationOptions& simulation, int slots, int running,
                   double energy_weight, double weights_for_s)
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
    options.simulation = simulation;
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

  Simulation simulation(std::size_t i) { return environments_.at(i).simulation(); }

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

using Stream =
    py::typing::Callable<py::object(std::int64_t, int, int, double, double, std::int64_t)>;
using Decider = std::variant<std::string, py::typing::Callable<py::object(OwnedSnapshot)>>;
using Progress = py::typing::Callable<py::object(std::int64_t, std::int64_t)>;

Simulation run_simulation(const std::shared_ptr<Workload>& workload, const Decider& policy,
                          SimulationOptions options, const std::optional<Memo>& memo,
                          const py::typing::Optional<Stream>& stream,
                          const py::typing::Optional<Progress>& progress) {
  if (memo) options.memo = memo->forecasts;
  if (!progress.is_none()) {
    options.progress = [&progress](std::int64_t ended, std::int64_t jobs) {
      const py::gil_scoped_acquire hold;
      progress(ended, jobs);
    };
  }
  if (!stream.is_none()) {
    options.stream = [&stream](const JobSpan& span) {
      const py::gil_scoped_acquire hold;
      stream(span.job, span.tier, span.gpus, span.start_s, span.end_s, span.partner);
    };
  }
  const auto* name = std::get_if<std::string>(&policy);
  const Policy decide = [&policy](const Snapshot& snapshot) {
    const py::gil_scoped_acquire hold;
    return plan_from_python(std::get<1>(policy)(OwnedSnapshot(snapshot)));
  };
  const py::gil_scoped_release release;
  return name != nullptr ? simulate(*workload, *name, options)
                         : simulate(*workload, decide, options);
}

void bind_policies(py::module_& module) {
  py::class_<PolicyInfo>(module, "PolicyInfo", "A policy that simulate() knows by name.")
      .def_readonly("name", &PolicyInfo::name)
      .def_readonly("description", &PolicyInfo::description)
      .def_readonly("source", &PolicyInfo::source)
      .def_property_readonly("sees",
                             [](const PolicyInfo& info) { return std::string(name(info.sees)); })
      .def_readonly("stops_at_target", &PolicyInfo::stops_at_target)
      .def_readonly("session_s", &PolicyInfo::session_s)
      .def_readonly("round_s", &PolicyInfo::round_s)
      .def("__eq__",
           [](const PolicyInfo& a, const py::object& b) {
             return py::isinstance<PolicyInfo>(b) && b.cast<const PolicyInfo&>().name == a.name;
           })
      .def("__hash__",
           [](const PolicyInfo& info) { return std::hash<std::string_view>{}(info.name); })
      .def("__repr__",
           [](const PolicyInfo& info) {
             return text("<PolicyInfo ", info.name, ": ", info.description, ">");
           })
      .def(py::pickle([](const PolicyInfo& info) { return std::string(info.name); },
                      [](const std::string& name) {
                        const auto all = policies();
                        const auto found =
                            std::find_if(all.begin(), all.end(),
                                         [&](const PolicyInfo& info) { return info.name == name; });
                        if (found == all.end()) throw InputError("no policy '" + name + "'");
                        return *found;
                      }));
  module.def("policies", [] {
    const auto all = policies();
    return std::vector<PolicyInfo>(all.begin(), all.end());
  });
  py::list outcomes, objectives;
  for (int code = 0; code <= static_cast<int>(JobOutcome::never); ++code) {
    outcomes.append(std::string(name(static_cast<JobOutcome>(code))));
  }
  for (int code = 0; code <= static_cast<int>(Objective::cost); ++code) {
    objectives.append(std::string(name(static_cast<Objective>(code))));
  }
  module.attr("OUTCOMES") = py::tuple(outcomes);
  module.attr("OBJECTIVES") = py::tuple(objectives);
}

void bind_workload(py::module_& module) {
  py::class_<PairSpeeds>(module, "PairSpeeds",
                         "Measured speeds of two jobs on the same GPUs of a tier, each as a share "
                         "of its own speed alone.")
      .def(
          py::init([](std::string first, std::string second, int tier, double first_speed,
                      double second_speed) {
            return PairSpeeds{std::move(first), std::move(second), tier, first_speed, second_speed};
          }),
          py::arg("first"), py::arg("second"), py::arg("tier"), py::arg("first_speed"),
          py::arg("second_speed"))
      .def_readonly("first", &PairSpeeds::first)
      .def_readonly("second", &PairSpeeds::second)
      .def_readonly("tier", &PairSpeeds::tier)
      .def_readonly("first_speed", &PairSpeeds::first_speed)
      .def_readonly("second_speed", &PairSpeeds::second_speed)
      .def("__eq__",
           [](const PairSpeeds& a, const py::object& b) {
             return py::isinstance<PairSpeeds>(b) && b.cast<const PairSpeeds&>() == a;
           })
      .def("__repr__",
           [](const PairSpeeds& pair) {
             return text("PairSpeeds(first='", pair.first, "', second='", pair.second,
                         "', tier=", pair.tier, ", first_speed=", pair.first_speed,
                         ", second_speed=", pair.second_speed, ")");
           })
      .def("__reduce__", [](const PairSpeeds& pair) {
        return py::make_tuple(py::type::of<PairSpeeds>(),
                              py::make_tuple(pair.first, pair.second, pair.tier, pair.first_speed,
                                             pair.second_speed));
      });
  py::class_<Workload, std::shared_ptr<Workload>>(module, "WorkloadRecord")
      .def_readonly("name", &Workload::name)
      .def_readonly("tiers", &Workload::tiers)
      .def_readonly("pairs", &Workload::pairs)
      .def_property_readonly("job_count", [](const Workload& w) { return w.jobs.size(); })
      .def_property_readonly("lower_bound_jct_s", &lower_bound_jct_s)
      .def("jobs", &job_columns, "Columns of the jobs.")
      .def("curves", &curve_columns, "Arguments of a Trace for each hidden curve.")
      .def(
          "write_jobs",
          [](const Workload& workload, const py::bytes& path) {
            write_jobs(workload, std::string(path));
          },
          py::arg("path"));
  module.def("make_workload", &make_workload, py::arg("tiers"), py::arg("jobs"), py::arg("curves"),
             py::arg("pairs"), py::arg("name"));
  module.def(
      "workload_from_trace",
      [](const py::bytes& path, int gpus, std::optional<int> gpus_per_node) {
        const std::string file = path;
        const py::gil_scoped_release release;
        return share(workload_from_trace(file, gpus, gpus_per_node));
      },
      py::arg("path"), py::arg("gpus"), py::arg("gpus_per_node"));
  module.def(
      "read_workload",
      [](const py::bytes& path) {
        const std::string folder = path;
        const py::gil_scoped_release release;
        return share(read_workload(folder));
      },
      py::arg("path"));
  module.def(
      "generate_workload",
      [](const py::bytes& path, int users, std::uint64_t seed) {
        const std::string folder = path;
        const py::gil_scoped_release release;
        return share(generate_workload(folder, users, seed));
      },
      py::arg("path"), py::arg("users"), py::arg("seed"));
}

void bind_result(py::module_& module) {
  py::class_<Simulation>(module, "SimulationRecord")
      .def_readonly("policy", &Simulation::policy)
      .def_readonly("workload", &Simulation::workload)
      .def_readonly("tiers", &Simulation::tiers)
      .def_property_readonly("jobs", &result_columns)
      .def_property_readonly("spans", &span_columns)
      .def_property_readonly("timeline", &timeline_columns)
      .def_property_readonly("user_accounts", &user_columns)
      .def_property_readonly("tier_accounts", &tier_columns)
      .def_readonly("mean_jct_s", &Simulation::mean_jct_s)
      .def_readonly("median_jct_s", &Simulation::median_jct_s)
      .def_readonly("p95_jct_s", &Simulation::p95_jct_s)
      .def_readonly("mean_wait_s", &Simulation::mean_wait_s)
      .def_readonly("total_wait_s", &Simulation::total_wait_s)
      .def_readonly("mean_wait_per_user_s", &Simulation::mean_wait_per_user_s)
      .def_readonly("makespan_s", &Simulation::makespan_s)
      .def_readonly("preemptions", &Simulation::preemptions)
      .def_readonly("gpu_seconds", &Simulation::gpu_seconds)
      .def_readonly("utilization", &Simulation::utilization)
      .def_readonly("energy_kwh", &Simulation::energy_kwh)
      .def_readonly("carbon_kg", &Simulation::carbon_kg)
      .def_readonly("worst_ftf", &Simulation::worst_ftf)
      .def_readonly("share_unfair", &Simulation::share_unfair)
      .def_readonly("share_in_time", &Simulation::share_in_time)
      .def_readonly("failures", &Simulation::failures)
      .def_readonly("lost_gpu_seconds", &Simulation::lost_gpu_seconds)
      .def_readonly("lower_bound_jct_s", &Simulation::lower_bound_jct_s)
      .def_readonly("events", &Simulation::events);
}

void bind_environment(py::module_& module) {
  py::class_<EnvironmentBatch>(module, "EnvironmentBatch")
      .def(py::init<std::vector<std::shared_ptr<Workload>>, int, const SimulationOptions&, int, int,
                    double, double>(),
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
}

}  // namespace
}  // namespace glidepath::python

void bind_simulate(pybind11::module_& module) {
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)
  bind_policies(module);
  bind_workload(module);
  bind_options(module);
  bind_result(module);
  py::class_<Memo>(module, "ForecastMemo").def(py::init<>());
  module.def("simulate", &run_simulation, py::arg("workload"), py::arg("policy"),
             py::arg("options"), py::arg("memo") = py::none(), py::arg("stream") = py::none(),
             py::arg("progress") = py::none());
  bind_environment(module);
}
