// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"
#include "glidepath/plan.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "common/statistics.hpp"
#include "long_call.hpp"
#include "numpy_view.hpp"
#include "path.hpp"
#include "plan_types.hpp"

namespace glidepath::python {

/// One line for each job: a dict in Python.
template <>
struct Convert<std::vector<Reason>> {
  static std::string type() { return "collections.abc.Mapping[int, str]"; }
  static py::object hint() { return dict_hint("int", "str"); }
  static std::vector<Reason> in(py::handle value, const Where& where) {
    if (!py::isinstance<py::dict>(value)) where.refuse(value, "a dict");
    std::vector<Reason> out;
    for (const auto& [job, text] : py::reinterpret_borrow<py::dict>(value)) {
      out.push_back({Convert<std::int64_t>::in(job, where), Convert<std::string>::in(text, where)});
    }
    return out;
  }
  static py::typing::Dict<py::int_, py::str> out(const std::vector<Reason>& reasons) {
    py::typing::Dict<py::int_, py::str> lines;
    for (const Reason& reason : reasons) lines[py::int_(reason.job)] = reason.text;
    return lines;
  }
};

/// GPUs by name: a dict in Python, None is empty.
template <>
struct Convert<std::vector<Quota>> {
  static std::string type() { return "collections.abc.Mapping[str, int] | None"; }
  static std::vector<Quota> in(py::handle value, const Where& where) {
    std::vector<Quota> out;
    if (value.is_none()) return out;
    if (!py::hasattr(value, "items")) where.refuse(value, "a dict of names and numbers of GPUs");
    for (const auto& [name, gpus] : py::dict(py::reinterpret_borrow<py::object>(value))) {
      if (!py::isinstance<py::str>(name) || PyIndex_Check(gpus.ptr()) == 0) {
        throw py::type_error(text(where.field, ": expected names and whole numbers of GPUs, got ",
                                  std::string(py::repr(name)), ": ", std::string(py::repr(gpus))));
      }
      out.push_back({name.cast<std::string>(), Convert<std::int64_t>::in(gpus, where)});
    }
    return out;
  }
  static py::typing::Dict<py::str, py::int_> out(const std::vector<Quota>& quotas) {
    py::typing::Dict<py::str, py::int_> gpus;
    for (const Quota& quota : quotas) gpus[py::str(quota.name)] = quota.gpus;
    return gpus;
  }
};

namespace {

/// Values of the objective `learned`: numbers, or a file that holds them.
struct Learned {
  std::vector<double> values{};
  friend bool operator==(const Learned&, const Learned&) = default;
};

/// What Python calls objective: a name, names with weights, or names in order. None is jct.
struct Objectives {
  std::vector<WeightedObjective> list{};
  Combine combine = Combine::weighted;

  [[nodiscard]] bool is_jct() const {
    return list.empty() || (combine == Combine::weighted && list.size() == 1 &&
                            list.front() == WeightedObjective{});
  }
  friend bool operator==(const Objectives& a, const Objectives& b) {
    return (a.is_jct() && b.is_jct()) || (a.list == b.list && a.combine == b.combine);
  }
};

}  // namespace

template <>
struct Convert<Objectives> {
  static std::string type() {
    return "str | collections.abc.Mapping[str, float] | collections.abc.Sequence[str]";
  }
  static Objectives in(py::handle value, const Where& where) {
    const auto named = [&](py::handle text) {
      return objective_named(Convert<std::string>::in(text, where));
    };
    if (py::isinstance<py::str>(value)) return {{{named(value)}}};
    Objectives out{{}, Combine::weighted};
    if (py::hasattr(value, "items")) {
      for (const auto& [text, weight] : py::dict(py::reinterpret_borrow<py::object>(value))) {
        out.list.push_back({named(text), Convert<double>::in(weight, where)});
      }
      if (out.list.empty()) throw InputError("plan: no objective");
      return out;
    }
    if (!py::isinstance<py::iterable>(value)) where.refuse(value, "a name, a dict or a list");
    out.combine = Combine::in_order;
    for (const py::handle text : value) out.list.push_back({named(text)});
    if (out.list.empty()) throw InputError("plan: no objective");
    return out;
  }
  using Given = py::typing::Union<py::str, NumbersByName, py::typing::List<py::str>>;
  static Given out(const Objectives& value) {
    if (value.combine == Combine::in_order) {
      py::list names;
      for (const WeightedObjective& each : value.list) names.append(name(each.objective));
      return names;
    }
    if (value.list.empty()) return py::cast(name(Objective::jct));
    if (value.list.size() == 1 && value.list.front().weight == 1) {
      return py::cast(name(value.list.front().objective));
    }
    py::dict weights;
    for (const WeightedObjective& each : value.list) {
      weights[py::cast(name(each.objective))] = each.weight;
    }
    return weights;
  }
};

template <>
struct Convert<Learned> {
  static std::string type() {
    return "str | os.PathLike[str] | " + Convert<std::vector<double>>::type() + " | None";
  }
  static Learned in(py::handle value, const Where& where) {
    if (value.is_none()) return {};
    const bool is_file = py::isinstance<py::str>(value) || py::hasattr(value, "__fspath__");
    if (is_file) return {read_learned_values(path_of(value, where.field).value())};
    return {Convert<std::vector<double>>::in(value, where)};
  }
  static std::vector<double> out(const Learned& learned) { return learned.values; }
};

namespace {

void bind_option(py::module_& module) {
  Record<Option>(module, "Option", R"(One way to run a job.

Parameters
----------
tier : int
    Index into the snapshot's tiers.
gpus : int
    The whole gang.
steps_per_s : float
    Pace of the whole gang, in the job's own steps.
utilization : float
    Share of each GPU that is busy, in [0, 1], for power.
sharing : str
    Other than ``exclusive``: the rate is that beside a partner, and `plan` may pair the job on this
    tier and gang. A job without any such option may be paired wherever it may run.
)")
      .required("tier", &Option::tier)
      .required("gpus", &Option::gpus)
      .required("steps_per_s", &Option::steps_per_s)
      .keyword("utilization", &Option::utilization)
      .keyword("sharing", &Option::sharing)
      .init();
  Record<Allocation>(module, "Allocation", R"(GPUs that a job holds.

Parameters
----------
job : int
    Its id.
tier : int
    Index into the snapshot's tiers.
gpus : int
    The whole gang.
since_s : float
    When it got them, on the clock of the snapshot's `now_s`.
partner : int
    Job that shares the same GPUs; -1 = they are its own.
)")
      .required("job", &Allocation::job)
      .required("tier", &Allocation::tier)
      .required("gpus", &Allocation::gpus)
      .optional("since_s", &Allocation::since_s)
      .optional("partner", &Allocation::partner)
      .init();
}

constexpr char kJobDoc[] = R"(A live job as a scheduler may see it.

Parameters
----------
id : int
options : list of Option
    The ways to run it.
user, group : str
    For quotas.
submit_s : float
    When it was submitted, on the clock of the snapshot's `now_s`.
weight : float
    What a second of it is worth, relative to the other jobs.
memory_gb : float
    Per GPU.
steps_done : float
    Steps that it has done.
attained_s : float
    Seconds for which it has held GPUs.
attained_gpu_s : float
    The same times the GPUs that it held.
target_loss : float
    The loss at which it would be done.
budget_steps : float
    The step at which it ends at the latest; 0 = no budget.
remaining_steps : array_like, shape (n,)
    Equally likely values of the steps still needed; inf = never, None = nothing is known.
restart_s : float
    Cost of a start after a preemption.
observed_step, observed_loss : array_like, shape (m,)
    The curve so far.
forecast_at_steps : float
    `steps_done` when `remaining_steps` was made; negative = now.
priority : int
    A higher class is served strictly first.
preemptible : bool
    False: keeps its GPUs until it ends.
waiting_s : float
    Seconds since it ran last; negative = since submission, less what it ran.
deadline_s : float
    When it should be done, on the clock of the snapshot's `now_s`.
ahead_steps, ahead_loss : array_like, shape (k,)
    Expected loss at steps from now on, for the objective ``quality``.
sm_activity : float
    Share of the multiprocessors busy when alone, for sharing.
kind : str
    As measured pairs name it, for sharing.
memory_activity : float
    Share of the time in which it reads or writes the card's memory alone; negative = not known.
)";

void bind_job(py::module_& module) {
  const auto observed = [](std::span<const double> TraceView::*column) {
    return [column](const OwnedJob& job) {
      const std::span<const double> values = job.observed.*column;
      return std::vector<double>(values.begin(), values.end());
    };
  };
  const auto observe = [](std::vector<double> Trace::*column) {
    return [column](OwnedJob& job, std::vector<double> values) {
      job.observe(column, std::move(values));
    };
  };
  Record<OwnedJob>(module, "Job", kJobDoc)
      .required("id", &OwnedJob::id)
      .required("options", &OwnedJob::options)
      .keyword("user", &OwnedJob::user)
      .keyword("submit_s", &OwnedJob::submit_s)
      .keyword("weight", &OwnedJob::weight)
      .keyword("memory_gb", &OwnedJob::memory_gb)
      .keyword("steps_done", &OwnedJob::steps_done)
      .keyword("attained_s", &OwnedJob::attained_s)
      .keyword("attained_gpu_s", &OwnedJob::attained_gpu_s)
      .keyword("target_loss", &OwnedJob::target_loss)
      .keyword("budget_steps", &OwnedJob::budget_steps)
      .keyword("remaining_steps", &OwnedJob::remaining_steps)
      .keyword("restart_s", &OwnedJob::restart_s)
      .keyword("observed_step", observed(&TraceView::step), observe(&Trace::step))
      .keyword("observed_loss", observed(&TraceView::loss), observe(&Trace::loss))
      .keyword("forecast_at_steps", &OwnedJob::forecast_at_steps)
      .keyword("group", &OwnedJob::group)
      .keyword("priority", &OwnedJob::priority)
      .keyword("preemptible", &OwnedJob::preemptible)
      .keyword("waiting_s", &OwnedJob::waiting_s)
      .keyword("deadline_s", &OwnedJob::deadline_s)
      .keyword("ahead_steps", &OwnedJob::ahead_steps)
      .keyword("ahead_loss", &OwnedJob::ahead_loss)
      .keyword("sm_activity", &OwnedJob::sm_activity)
      .keyword("kind", &OwnedJob::kind)
      .keyword("memory_activity", &OwnedJob::memory_activity)
      .init([](const OwnedJob& job) {
        if (!job.observed.step.empty() || !job.observed.loss.empty()) validate(job.observed);
      })
      .cls()
      .def(
          "with_remaining",
          [](OwnedJob job, const std::optional<ArrayLike>& remaining_steps) {
            job.remaining_steps = Convert<std::vector<double>>::in(
                remaining_steps.value_or(ArrayLike(py::none())), {"Job", "remaining_steps"});
            job.forecast_at_steps = -1;
            return job;
          },
          py::arg("remaining_steps"), R"(The job with a new forecast, made now.

Raises
------
TypeError, InputError
    Where they are no column of numbers; whoever plans with it refuses values out of range.
)");
}

void bind_snapshot(py::module_& module) {
  Record<OwnedSnapshot>(module, "Snapshot", R"(All that a policy may know at one moment.

Parameters
----------
tiers : list of Tier
jobs : list of Job
    Waiting and running.
running : list of Allocation
now_s : float
)")
      .required("tiers", &OwnedSnapshot::tiers)
      .required("jobs", &OwnedSnapshot::jobs, &OwnedSnapshot::set_jobs)
      .keyword("running", &OwnedSnapshot::running)
      .keyword("now_s", &OwnedSnapshot::now_s)
      .init()
      .repr([](const OwnedSnapshot& s) {
        const Snapshot view = s.view();
        return text("<Snapshot at ", view.now_s, " s: ", view.jobs.size(), " jobs, ",
                    view.running.size(), " of them running, on ", view.tiers.size(), " tiers>");
      });
}

/// Small statistics that have one home, in common/statistics.hpp.
void bind_statistics(py::module_& module) {
  module.attr("MAD_PER_DEVIATION") = glidepath::detail::kMadPerDeviation;
  module.def(
      "sample_quantile",
      [](const std::vector<double>& sorted, double level) {
        if (sorted.empty()) throw InputError("sample_quantile: no samples");
        return sorted[glidepath::detail::quantile_index(sorted.size(), level)];
      },
      py::arg("sorted"), py::arg("level"),
      "The least of increasing samples that at least a share `level` of them does not exceed.");
  module.def(
      "gittins_index",
      [](const ArrayLike& samples) { return gittins_index(view(borrow(samples, "samples"))); },
      py::arg("samples"));
}

void bind_learned_values(py::module_& module) {
  module.def("learned_values", [] {
    const std::span<const double> values = learned_values();
    return adopt(std::vector<double>(values.begin(), values.end()));
  });
  module.def(
      "read_learned_values",
      [](const std::filesystem::path& file) {
        std::vector<double> values = [&] {
          const LongCall call;
          return read_learned_values(file);
        }();
        return adopt(std::move(values));
      },
      py::arg("file"));
  module.def(
      "write_learned_values",
      [](const std::vector<double>& values, const std::filesystem::path& file) {
        const LongCall call;
        write_learned_values(values, file);
      },
      py::arg("values"), py::arg("file"));
}

void bind_live_plan(py::module_& module) {
  module.attr("ROUND_GAP") = RoundOptions{}.gap;
  Record<OwnedPlanOptions>(module, "PlanOptions", "Options of `plan`.")
      .keyword(
          "objective",
          [](const OwnedPlanOptions& o) {
            return Objectives{o.objectives, o.combine};
          },
          [](OwnedPlanOptions& o, Objectives given) {
            o.objectives = std::move(given.list);
            o.combine = given.combine;
          })
      .keyword("slack", &OwnedPlanOptions::slack)
      .keyword("round_s", &OwnedPlanOptions::round_s)
      .keyword("gap", &OwnedPlanOptions::gap)
      .keyword("stop_probability", &OwnedPlanOptions::stop_probability)
      .keyword("outrun_probability", &OwnedPlanOptions::outrun_probability)
      .keyword("power_cap_w", &OwnedPlanOptions::limits, &PlanLimits::power_cap_w)
      .keyword("user_quota", &OwnedPlanOptions::limits, &PlanLimits::user_quota)
      .keyword("group_quota", &OwnedPlanOptions::limits, &PlanLimits::group_quota)
      .keyword("in_nodes", &OwnedPlanOptions::limits, &PlanLimits::in_nodes)
      .keyword("sharing", &OwnedPlanOptions::limits, &PlanLimits::sharing)
      .keyword("min_run_s", &OwnedPlanOptions::limits, &PlanLimits::min_run_s)
      .keyword("pairs", &OwnedPlanOptions::known)
      .keyword("joule_value", &OwnedPlanOptions::joule_value)
      .keyword("hysteresis", &OwnedPlanOptions::dynamics, &PlanDynamics::hysteresis)
      .keyword("ageing_s", &OwnedPlanOptions::dynamics, &PlanDynamics::ageing_s)
      .keyword("max_wait_s", &OwnedPlanOptions::dynamics, &PlanDynamics::max_wait_s)
      .keyword(
          "learned", [](const OwnedPlanOptions& o) { return Learned{o.learned}; },
          [](OwnedPlanOptions& o, Learned given) { o.learned = std::move(given.values); })
      .keyword("reasons", &OwnedPlanOptions::reasons)
      .keyword("prices", &OwnedPlanOptions::last_prices)
      .init();
  Record<Plan>(module, "PlanRecord", "What `plan` decided.")
      .keyword("allocations", &Plan::allocations)
      .keyword("stop", &Plan::stop)
      .keyword("value", &Plan::value)
      .keyword("bound", &Plan::bound)
      .keyword("gap", &Plan::gap)
      .keyword("prices", &Plan::prices)
      .keyword("reasons", &Plan::reasons)
      .keyword("fallback", &Plan::fallback);
  module.def(
      "plan",
      [](const OwnedSnapshot& snapshot, const OwnedPlanOptions& options) {
        const PlanOptions view = options.view();
        const LongCall call;
        return plan(snapshot.view(), view);
      },
      py::arg("snapshot"), py::arg("options"));
  Record<PlanLimits>(module, "PlanLimits", "What a plan must keep to.")
      .keyword("power_cap_w", &PlanLimits::power_cap_w)
      .keyword("user_quota", &PlanLimits::user_quota)
      .keyword("group_quota", &PlanLimits::group_quota)
      .keyword("in_nodes", &PlanLimits::in_nodes)
      .keyword("sharing", &PlanLimits::sharing)
      .keyword("min_run_s", &PlanLimits::min_run_s)
      .init();
  module.def(
      "violations",
      [](const OwnedSnapshot& snapshot, const AnyPlan& plan, const PlanLimits& limits) {
        return violations(snapshot.view(), plan_from_python(plan), limits);
      },
      py::arg("snapshot"), py::arg("plan"), py::arg("limits"));
}

}  // namespace
}  // namespace glidepath::python

void bind_plan(pybind11::module_& module) {
  using namespace glidepath::python;
  bind_option(module);
  bind_job(module);
  bind_snapshot(module);
  bind_statistics(module);
  bind_learned_values(module);
  bind_live_plan(module);
}
