// SPDX-License-Identifier: Apache-2.0
#include "glidepath/simulate.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/typing.h>

#include "long_call.hpp"
#include "plan_types.hpp"
#include "result_columns.hpp"

namespace glidepath::python {
namespace {

ArraysByName result_columns(const Simulation& run) {
  const JobColumns& jobs = run.jobs;
  ArraysByName out;
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
  if (named) out["user"] = array_of(texts_of(jobs.user));
  return out;
}

ArraysByName span_columns(const Simulation& run) {
  ArraysByName out;
  add_column(out, "job", run.spans, &JobSpan::job);
  add_column(out, "tier", run.spans, &JobSpan::tier);
  add_column(out, "gpus", run.spans, &JobSpan::gpus);
  add_column(out, "start_s", run.spans, &JobSpan::start_s);
  add_column(out, "end_s", run.spans, &JobSpan::end_s);
  add_column(out, "partner", run.spans, &JobSpan::partner);
  return out;
}

ArraysByName timeline_columns(const Simulation& run) {
  ArraysByName out;
  add_column(out, "time_s", run.timeline, &TimelineRow::time_s);
  add_column(out, "running", run.timeline, &TimelineRow::running);
  add_column(out, "queued", run.timeline, &TimelineRow::queued);
  add_column(out, "busy", run.timeline, &TimelineRow::busy);
  return out;
}

ArraysByName user_columns(const Simulation& run) {
  const std::vector<UserAccount>& rows = run.user_accounts;
  ArraysByName out;
  add_column(out, "name", rows, &UserAccount::name);
  add_column(out, "jobs", rows, &UserAccount::jobs);
  add_column(out, "mean_jct_s", rows, &UserAccount::mean_jct_s);
  add_column(out, "wait_s", rows, &UserAccount::wait_s);
  add_column(out, "gpu_seconds", rows, &UserAccount::gpu_seconds);
  add_column(out, "energy_kwh", rows, &UserAccount::energy_kwh);
  return out;
}

ArraysByName tier_columns(const Simulation& run) {
  const std::vector<TierAccount>& rows = run.tier_accounts;
  ArraysByName out;
  add_column(out, "name", rows, &TierAccount::name);
  add_column(out, "starts", rows, &TierAccount::starts);
  add_column(out, "gpu_seconds", rows, &TierAccount::gpu_seconds);
  add_column(out, "utilization", rows, &TierAccount::utilization);
  add_column(out, "energy_kwh", rows, &TierAccount::energy_kwh);
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
    throw InputError(text("simulate: ", where.field, " has no '", name, "', expected one of ",
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
  static std::string type() { return "collections.abc.Mapping[str, object]"; }
  static py::object hint() { return Convert<OwnedPlanOptions>::hint(); }
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
      .keyword("knows_phases", &Options::knows_phases)
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
      .keyword("patience", &Options::patience)
      .keyword("unfair_above", &Options::unfair_above)
      .keyword("spans", &Options::spans)
      .init();
}

// ---- runs

using Stream = py::typing::Callable<Anything(JobSpan)>;
using Decider = std::variant<std::string, py::typing::Callable<AnyPlan(OwnedSnapshot)>>;
using Progress = py::typing::Callable<Anything(std::int64_t, std::int64_t)>;

Simulation run_simulation(const std::shared_ptr<Workload>& workload, const Decider& policy,
                          SimulationOptions options, const std::optional<Memo>& memo,
                          const py::typing::Optional<Stream>& stream,
                          const py::typing::Optional<Progress>& progress) {
  if (memo) options.memo = memo->forecasts;
  if (!progress.is_none()) {
    options.progress = [&progress](std::int64_t ended, std::int64_t jobs) {
      const Hold hold;
      called(progress, ended, jobs);
    };
  }
  if (!stream.is_none()) {
    options.stream = [&stream](const JobSpan& span) {
      const Hold hold;
      called(stream, span);
    };
  }
  const auto* name = std::get_if<std::string>(&policy);
  const Policy decide = [&policy](const Snapshot& snapshot) {
    const Hold hold;
    return plan_from_python(called(std::get<1>(policy), OwnedSnapshot(snapshot)));
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

constexpr std::array kPolicyFields{
    "name",     "description", "source",  "sees",    "stops_at_target",
    "compared", "session_s",   "round_s", "elastic", "reads"};

void bind_policies(py::module_& module) {
  py::class_<PolicyInfo>(module, "PolicyInfo", "A policy that simulate() knows by name.")
      .def_readonly("name", &PolicyInfo::name)
      .def_readonly("description", &PolicyInfo::description)
      .def_readonly("source", &PolicyInfo::source)
      .def_readonly("checked_on", &PolicyInfo::checked_on)
      .def_property_readonly("sees",
                             [](const PolicyInfo& info) { return std::string(name(info.sees)); })
      .def_readonly("stops_at_target", &PolicyInfo::stops_at_target)
      .def_readonly("compared", &PolicyInfo::compared)
      .def_readonly("session_s", &PolicyInfo::session_s)
      .def_readonly("round_s", &PolicyInfo::round_s)
      .def_readonly("elastic", &PolicyInfo::elastic)
      .def_property_readonly("reads", [](const PolicyInfo& info) { return texts(info.reads); })
      .def(
          "to_dict",
          [](const PolicyInfo& info) {
            Document out;
            for (const char* field : kPolicyFields) {
              out[field] = imported("glidepath._json", "plain")(py::cast(info).attr(field));
            }
            return out;
          },
          "Give plain lists and numbers, fit for JSON.")
      .def_static(
          "from_dict",
          [](const JsonLike& state) {
            const auto all = policies();
            const std::vector<PolicyInfo> known(all.begin(), all.end());
            return imported("glidepath._json", "one_of")(known, state).cast<PolicyInfo>();
          },
          py::arg("state"),
          "Read what `to_dict` wrote; InputError for a policy that this library does not have.")
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
      .def_property_readonly(
          "workload", [](const Simulation& run) { return Convert<std::string>::out(run.workload); })
      .def_property_readonly("tiers", [](const Simulation& run) { return texts_of(run.tiers); })
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

}  // namespace
}  // namespace glidepath::python

void bind_simulate(pybind11::module_& module) {
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)
  bind_policies(module);
  bind_options(module);
  bind_result(module);
  py::class_<Memo>(module, "ForecastMemo").def(py::init<>());
  module.def("simulate", &run_simulation, py::arg("workload"), py::arg("policy"),
             py::arg("options"), py::arg("memo") = py::none(), py::arg("stream") = py::none(),
             py::arg("progress") = py::none());
}
