// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl/filesystem.h>
#include <pybind11/typing.h>

#include "forecast_records.hpp"
#include "long_call.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

using FloatArray = py::array_t<float, py::array::c_style>;
using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

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
      if (!(column[i] == std::floor(column[i]) && std::abs(column[i]) <= 1e9)) {
        throw InputError(text("workload: job ", out[i].id, " has ", name, " ", column[i],
                              ", expected a whole number"));
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
  return jobs;
}

Workload make_workload(std::vector<Tier> tiers, const ColumnsByName& jobs, const AnyTraces& curves,
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

ColumnsByName job_columns(const Workload& workload) {
  const std::vector<WorkloadJob>& jobs = workload.jobs;
  ColumnsByName out;
  for (const auto& [name, member] : kJobColumns) {
    const bool of_curves =
        std::string_view(name) == "truth" || std::string_view(name) == "target_loss";
    if (of_curves && workload.curves.empty()) continue;
    const auto as_all = [](const WorkloadJob& job) { return job.restart_s < 0; };
    if (std::string_view(name) == "restart_s" && std::ranges::all_of(jobs, as_all)) continue;
    const auto* words = std::get_if<std::string WorkloadJob::*>(&member);
    if (words != nullptr && std::ranges::all_of(jobs, &std::string::empty, *words)) continue;
    std::visit([&, name = name](auto each) { add(out, name, jobs, each); }, member);
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
    out["gangs"] = gangs;
  }
  return out;
}

ColumnsByName result_columns(const Simulation& run) {
  const JobColumns& jobs = run.jobs;
  ColumnsByName out;
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
  out["ftf_static"] = adopt(std::vector(jobs.ftf_static));
  std::vector<std::int64_t> outcomes;
  for (const JobOutcome outcome : jobs.outcome) outcomes.push_back(static_cast<int>(outcome));
  out["outcome"] = adopt(std::move(outcomes));
  const bool named = std::any_of(jobs.user.begin(), jobs.user.end(),
                                 [](const std::string& user) { return !user.empty(); });
  if (named) out["user"] = py::cast(jobs.user);
  return out;
}

ArraysByName span_columns(const Simulation& run) {
  ArraysByName out;
  add(out, "job", run.spans, &JobSpan::job);
  add(out, "tier", run.spans, &JobSpan::tier);
  add(out, "gpus", run.spans, &JobSpan::gpus);
  add(out, "start_s", run.spans, &JobSpan::start_s);
  add(out, "end_s", run.spans, &JobSpan::end_s);
  add(out, "partner", run.spans, &JobSpan::partner);
  return out;
}

ArraysByName timeline_columns(const Simulation& run) {
  ArraysByName out;
  add(out, "time_s", run.timeline, &TimelineRow::time_s);
  add(out, "running", run.timeline, &TimelineRow::running);
  add(out, "queued", run.timeline, &TimelineRow::queued);
  add(out, "busy", run.timeline, &TimelineRow::busy);
  return out;
}

ColumnsByName user_columns(const Simulation& run) {
  const std::vector<UserAccount>& rows = run.user_accounts;
  ColumnsByName out;
  add(out, "name", rows, &UserAccount::name);
  add(out, "jobs", rows, &UserAccount::jobs);
  add(out, "mean_jct_s", rows, &UserAccount::mean_jct_s);
  add(out, "wait_s", rows, &UserAccount::wait_s);
  add(out, "gpu_seconds", rows, &UserAccount::gpu_seconds);
  add(out, "energy_kwh", rows, &UserAccount::energy_kwh);
  return out;
}

ColumnsByName tier_columns(const Simulation& run) {
  const std::vector<TierAccount>& rows = run.tier_accounts;
  ColumnsByName out;
  add(out, "name", rows, &TierAccount::name);
  add(out, "starts", rows, &TierAccount::starts);
  add(out, "gpu_seconds", rows, &TierAccount::gpu_seconds);
  add(out, "utilization", rows, &TierAccount::utilization);
  add(out, "energy_kwh", rows, &TierAccount::energy_kwh);
  return out;
}

// ---- options

/// A struct that Python gives as a mapping of its fields but for `hidden`, None is the defaults.
template <class T>
T from_mapping(py::handle value, const Where& where,
               std::initializer_list<std::string_view> hidden = {}) {
  if (value.is_none()) return {};
  if (!py::hasattr(value, "items")) where.refuse(value, "a mapping");
  const detail::Fields<T>& fields = detail::fields_of<T>();
  std::vector<std::string> known;
  for (const auto& field : fields.list) {
    if (std::ranges::find(hidden, field.name) == hidden.end()) known.push_back(field.name);
  }
  const py::dict given(py::reinterpret_borrow<py::object>(value));
  for (const auto& [key, number] : given) {
    const auto name = std::string(py::str(key));
    if (std::ranges::find(known, name) != known.end()) continue;
    throw InputError(text("simulate: ", where.field, " has no '", name, "', known are ",
                          listed(known, std::identity())));
  }
  return fields.make({}, py::kwargs(given));
}

template <class T>
detail::Fields<T>& fields_named(const char* name) {
  detail::fields_of<T>().record = name;
  return detail::fields_of<T>();
}

}  // namespace

template <class T>
struct FieldsByName {
  static std::string type() {
    return "collections.abc.Mapping[str, " + Convert<double>::type() + "] | None";
  }
  static T in(py::handle value, const Where& where) { return from_mapping<T>(value, where); }
  static py::typing::Dict<py::str, py::float_> out(const T& value) {
    return detail::fields_of<T>().state(value);
  }
};

namespace {

/// Grams of each hour: one number, or many; None is not known.
struct Grams {
  std::vector<double> hours{};
  friend bool operator==(const Grams&, const Grams&) = default;
};

/// Keyword arguments of glidepath.plan, but for those that the simulation itself decides.
struct Planner {
  OwnedPlanOptions options{};
  friend bool operator==(const Planner& a, const Planner& b) {
    return detail::same(a.options, b.options);
  }
};

}  // namespace

template <>
struct Convert<Failures> : FieldsByName<Failures> {};
template <>
struct Convert<NodeSleep> : FieldsByName<NodeSleep> {};

template <>
struct Convert<Grams> {
  static std::string type() {
    return Convert<double>::type() + " | collections.abc.Sequence[" + Convert<double>::type() +
           "] | None";
  }
  static Grams in(py::handle value, const Where& where) {
    if (value.is_none() || py::isinstance<py::iterable>(value)) {
      return {Convert<std::vector<double>>::in(value, where)};
    }
    return {{Convert<double>::in(value, where)}};
  }
  static std::vector<double> out(const Grams& grams) { return grams.hours; }
};

template <>
struct Convert<Planner> {
  static std::string type() { return "collections.abc.Mapping[str, typing.Any]"; }
  static Planner in(py::handle value, const Where& where) {
    if (py::isinstance<OwnedPlanOptions>(value)) return {value.cast<OwnedPlanOptions>()};
    return {from_mapping<OwnedPlanOptions>(value, where,
                                           {"sharing", "in_nodes", "pairs", "reasons", "prices"})};
  }
  static OwnedPlanOptions out(const Planner& planner) { return planner.options; }
};

namespace {

/// What runs of the same jobs have forecast, for the next of them.
struct Memo {
  std::shared_ptr<ForecastMemo> forecasts = make_forecast_memo();
};

void bind_options(py::module_& module) {
  fields_named<Failures>("failures")
      .add("node_every_s", &Failures::node_every_s)
      .add("repair_s", &Failures::repair_s)
      .add("job_every_s", &Failures::job_every_s)
      .add("checkpoint_s", &Failures::checkpoint_s);
  fields_named<NodeSleep>("sleep")
      .add("after_s", &NodeSleep::after_s)
      .add("watts", &NodeSleep::watts)
      .add("wake_s", &NodeSleep::wake_s);
  using Options = SimulationOptions;
  Record<Options>(module, "SimulationOptions")
      .keyword("seed", &Options::seed)
      .keyword("restart_s", &Options::restart_s)
      .keyword("session_s", &Options::session_s)
      .keyword("round_s", &Options::round_s)
      .keyword("forecast_sigma", &Options::forecast_sigma)
      .keyword("stop_at_target", &Options::stop_at_target)
      .keyword("failures", &Options::failures)
      .keyword("sleep", &Options::sleep)
      .keyword("in_nodes", &Options::in_nodes)
      .keyword("sharing", &Options::sharing)
      .keyword("user_gpus", &Options::user_gpus)
      .keyword(
          "carbon_g_per_kwh", [](const Options& o) { return Grams{o.carbon_g_per_kwh}; },
          [](Options& o, Grams given) { o.carbon_g_per_kwh = std::move(given.hours); })
      .keyword(
          "planner",
          [](const Options& o) {
            return o.planner ? std::optional(Planner{{*o.planner, {}, {}}}) : std::nullopt;
          },
          [](Options& o, const std::optional<Planner>& given) {
            o.planner = given ? std::optional<PlanOptions>(given->options) : std::nullopt;
          })
      .keyword("max_ftf", &Options::max_ftf)
      .keyword("long_share", &Options::long_share)
      .keyword("unfair_above", &Options::unfair_above)
      .keyword("spans", &Options::spans)
      .init();
}

// ---- runs

constexpr int kMostEnvironments = 1 << 16;  // side by side: a slip is not all of the memory

/// Environments side by side, each with a workload drawn anew at every episode.
class EnvironmentBatch {
 public:
  EnvironmentBatch(std::vector<std::shared_ptr<Workload>> workloads, int count,
                   const SimulationOptions& simulation, int slots, int running,
                   double energy_weight, double weights_for_s)
      : workloads_(std::move(workloads)) {
    if (workloads_.empty()) throw InputError("environment: no workload");
    if (count < 1 || count > kMostEnvironments) {
      throw InputError("environment: " + std::to_string(count) + " environments, expected 1 to " +
                       std::to_string(kMostEnvironments));
    }
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
    const Turn turn(busy_);
    const LongCall call;
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

  Simulation simulation(std::size_t i) {
    const Turn turn(busy_);
    return environments_.at(i).simulation();
  }

 private:
  /// Refuses a call while another thread, or a handler of a signal, finds one at work. Made and
  /// ended under Python's lock.
  class Turn {
   public:
    explicit Turn(bool& busy) : busy_(busy) {
      if (busy) throw InputError("environment: one call at a time, another thread is in it");
      busy = true;
    }
    ~Turn() { busy_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    bool& busy_;
  };

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
    const Turn turn(busy_);
    const LongCall call;
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
  bool busy_ = false;
};

using Stream = py::typing::Callable<py::object(JobSpan)>;
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
      stream(span);
    };
  }
  const auto* name = std::get_if<std::string>(&policy);
  const Policy decide = [&policy](const Snapshot& snapshot) {
    const py::gil_scoped_acquire hold;
    return plan_from_python(std::get<1>(policy)(OwnedSnapshot(snapshot)));
  };
  const LongCall call;
  return name != nullptr ? simulate(*workload, *name, options)
                         : simulate(*workload, decide, options);
}

py::typing::Tuple<py::str, py::ellipsis> texts(std::span<const std::string_view> all) {
  py::list out;
  for (const std::string_view each : all) out.append(each);
  return py::tuple(out);
}

void bind_policies(py::module_& module) {
  py::class_<PolicyInfo>(module, "PolicyInfo", "A policy that simulate() knows by name.")
      .def_readonly("name", &PolicyInfo::name)
      .def_readonly("description", &PolicyInfo::description)
      .def_readonly("source", &PolicyInfo::source)
      .def_property_readonly("sees",
                             [](const PolicyInfo& info) { return std::string(name(info.sees)); })
      .def_readonly("stops_at_target", &PolicyInfo::stops_at_target)
      .def_readonly("compared", &PolicyInfo::compared)
      .def_readonly("session_s", &PolicyInfo::session_s)
      .def_readonly("round_s", &PolicyInfo::round_s)
      .def_readonly("elastic", &PolicyInfo::elastic)
      .def_property_readonly("reads", [](const PolicyInfo& info) { return texts(info.reads); })
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
  module.attr("POLICY_READS") = texts(kPolicyReads);
  module.attr("SLOT_FEATURES") = texts(Environment::kSlotFeatureNames);
  module.attr("RUNNING_FEATURES") = texts(Environment::kRunningFeatureNames);
  module.def("policies", [] {
    const auto all = policies();
    return std::vector<PolicyInfo>(all.begin(), all.end());
  });
  using enum JobOutcome;
  using enum Objective;
  module.attr("OUTCOMES") = names_of(std::array{unfinished, finished, target, never});
  module.attr("OBJECTIVES") =
      names_of(std::array{jct, known_size, quality, deadline, fairness, energy, edp, cost});
}

void bind_workload(py::module_& module) {
  Record<PairSpeeds>(module, "PairSpeeds",
                     "Measured speeds of two jobs on the same GPUs of a tier, each as a share of "
                     "its own speed alone.")
      .required("first", &PairSpeeds::first)
      .required("second", &PairSpeeds::second)
      .required("tier", &PairSpeeds::tier)
      .required("first_speed", &PairSpeeds::first_speed)
      .required("second_speed", &PairSpeeds::second_speed)
      .init();
  py::class_<Workload, std::shared_ptr<Workload>>(module, "WorkloadRecord")
      .def_readonly("name", &Workload::name)
      .def_readonly("tiers", &Workload::tiers)
      .def_readonly("pairs", &Workload::pairs)
      .def_readonly("notes", &Workload::notes)
      .def_property_readonly("job_count", [](const Workload& w) { return w.jobs.size(); })
      .def_property_readonly("lower_bound_jct_s",
                             [](const Workload& workload) {
                               const LongCall call;
                               return lower_bound_jct_s(workload);
                             })
      .def_readonly("curves", &Workload::curves)
      .def("jobs", &job_columns)
      .def("write_jobs", &write_jobs, py::arg("path"));
  const py::call_guard<LongCall> long_call;
  module.def("make_workload", &make_workload, py::arg("tiers"), py::arg("jobs"), py::arg("curves"),
             py::arg("pairs"), py::arg("name"));
  module.def("workload_from_trace", &workload_from_trace, py::arg("path"), py::arg("gpus"),
             py::arg("gpus_per_node"), long_call);
  module.def("read_workload", &read_workload, py::arg("path"), long_call);
  module.def("generate_workload", &generate_workload, py::arg("path"), py::arg("users"),
             py::arg("seed"), long_call);
}

void bind_result(py::module_& module) {
  Record<JobSpan>(module, "JobSpan", R"(A stretch for which a job held GPUs.

Attributes
----------
job, partner : int
    The job, and the one that shared its GPUs; -1 = nobody did.
tier, gpus : int
    Index of the tier, and how many of its GPUs.
start_s, end_s : float
    Seconds since the start of the simulation.
)")
      .keyword("job", &JobSpan::job)
      .keyword("tier", &JobSpan::tier)
      .keyword("gpus", &JobSpan::gpus)
      .keyword("start_s", &JobSpan::start_s)
      .keyword("end_s", &JobSpan::end_s)
      .keyword("partner", &JobSpan::partner);
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
      .def_readonly("worst_ftf_static", &Simulation::worst_ftf_static)
      .def_readonly("share_unfair_static", &Simulation::share_unfair_static)
      .def_readonly("share_in_time", &Simulation::share_in_time)
      .def_readonly("failures", &Simulation::failures)
      .def_readonly("lost_gpu_seconds", &Simulation::lost_gpu_seconds)
      .def_readonly("lower_bound_jct_s", &Simulation::lower_bound_jct_s)
      .def_readonly("events", &Simulation::events)
      .def_readonly("fallback", &Simulation::fallback);
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
