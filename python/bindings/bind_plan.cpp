// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"
#include "glidepath/plan.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "numpy_view.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

std::vector<double> numbers(const py::object& object, const char* name) {
  const DoubleArray array = borrow_or_empty(object, name);
  return {array.data(), array.data() + array.size()};
}

bool same_job(const OwnedJob& a, const OwnedJob& b) {
  const auto equal = [](std::span<const double> x, std::span<const double> y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  const Job &x = a.job, &y = b.job;
  return x.id == y.id && x.user == y.user && x.submit_s == y.submit_s && x.weight == y.weight &&
         x.memory_gb == y.memory_gb && x.options == y.options && x.steps_done == y.steps_done &&
         x.attained_s == y.attained_s && x.attained_gpu_s == y.attained_gpu_s &&
         x.target_loss == y.target_loss && x.budget_steps == y.budget_steps &&
         x.restart_s == y.restart_s && x.remaining_steps == y.remaining_steps &&
         x.forecast_at_steps == y.forecast_at_steps && x.group == y.group &&
         x.priority == y.priority && x.preemptible == y.preemptible && x.waiting_s == y.waiting_s &&
         x.deadline_s == y.deadline_s && x.ahead_steps == y.ahead_steps &&
         x.ahead_loss == y.ahead_loss && x.sm_activity == y.sm_activity && x.kind == y.kind &&
         equal(x.observed.step, y.observed.step) && equal(x.observed.loss, y.observed.loss);
}

void bind_option(py::module_& module) {
  py::class_<Option>(module, "Option", R"(One way to run a job.

Parameters
----------
tier : int
    Index into the snapshot's tiers.
gpus : int
    The whole gang.
steps_per_s : float
    Of the gang, in the job's own steps.
utilization : float
    Of each GPU in [0, 1], for power.
sharing : str
    Other than ``exclusive``: the rate is that beside a partner, and `plan` may pair the job on this
    tier and gang. A job without any such option may be paired wherever it may run.
)")
      .def(py::init([](int tier, int gpus, double steps_per_s, double utilization,
                       const std::string& sharing) {
             return Option{tier, gpus, steps_per_s, utilization, sharing_named(sharing)};
           }),
           py::arg("tier"), py::arg("gpus"), py::arg("steps_per_s"), py::kw_only(),
           py::arg("utilization") = 1.0, py::arg("sharing") = "exclusive")
      .def_readonly("tier", &Option::tier)
      .def_readonly("gpus", &Option::gpus)
      .def_readonly("steps_per_s", &Option::steps_per_s)
      .def_readonly("utilization", &Option::utilization)
      .def_property_readonly("sharing",
                             [](const Option& o) { return std::string(name(o.sharing)); })
      .def("__eq__",
           [](const Option& a, const py::object& b) {
             return py::isinstance<Option>(b) && a == b.cast<const Option&>();
           })
      .def("__repr__",
           [](const Option& o) {
             const std::string how = o.sharing == Sharing::exclusive
                                         ? ""
                                         : " shared (" + std::string(name(o.sharing)) + ")";
             return text("<Option ", o.gpus, " x tier ", o.tier, how, ": ", o.steps_per_s,
                         " steps/s>");
           })
      .def(py::pickle(
          [](const Option& o) {
            return py::make_tuple(o.tier, o.gpus, o.steps_per_s, o.utilization,
                                  std::string(name(o.sharing)));
          },
          [](const py::tuple& t) {
            return Option{t[0].cast<int>(), t[1].cast<int>(), t[2].cast<double>(),
                          t[3].cast<double>(), sharing_named(t[4].cast<std::string>())};
          }));
}

void bind_allocation(py::module_& module) {
  py::class_<Allocation>(module, "Allocation", "GPUs that a job holds, since `since_s`.")
      .def(py::init([](std::int64_t job, int tier, int gpus, double since_s, std::int64_t partner) {
             return Allocation{job, tier, gpus, since_s, partner};
           }),
           py::arg("job"), py::arg("tier"), py::arg("gpus"), py::arg("since_s") = 0.0,
           py::arg("partner") = -1)
      .def_readonly("job", &Allocation::job)
      .def_readonly("tier", &Allocation::tier)
      .def_readonly("gpus", &Allocation::gpus)
      .def_readonly("since_s", &Allocation::since_s)
      .def_readonly("partner", &Allocation::partner,
                    "Job that shares the same GPUs; -1 = they are its own.")
      .def("__eq__",
           [](const Allocation& a, const py::object& b) {
             return py::isinstance<Allocation>(b) && a == b.cast<const Allocation&>();
           })
      .def("__repr__",
           [](const Allocation& a) {
             return text("<Allocation job ", a.job, ": ", a.gpus, " x tier ", a.tier, " since ",
                         a.since_s, " s>");
           })
      .def(py::pickle(
          [](const Allocation& a) {
            return py::make_tuple(a.job, a.tier, a.gpus, a.since_s, a.partner);
          },
          [](const py::tuple& t) {
            return Allocation{t[0].cast<std::int64_t>(), t[1].cast<int>(), t[2].cast<int>(),
                              t[3].cast<double>(), t[4].cast<std::int64_t>()};
          }));
}

OwnedJob make_job(std::int64_t id, std::vector<Option> options, std::string user, double submit_s,
                  double weight, double memory_gb, double steps_done, double attained_s,
                  double attained_gpu_s, double target_loss, double budget_steps,
                  const py::object& remaining_steps, double restart_s,
                  const py::object& observed_step, const py::object& observed_loss,
                  double forecast_at_steps, std::string group, int priority, bool preemptible,
                  double waiting_s, double deadline_s, const py::object& ahead_steps,
                  const py::object& ahead_loss, double sm_activity, std::string kind) {
  OwnedJob owned;
  owned.job = {.id = id,
               .user = std::move(user),
               .submit_s = submit_s,
               .weight = weight,
               .memory_gb = memory_gb,
               .options = std::move(options),
               .steps_done = steps_done,
               .attained_s = attained_s,
               .attained_gpu_s = attained_gpu_s,
               .target_loss = target_loss,
               .budget_steps = budget_steps,
               .remaining_steps = numbers(remaining_steps, "remaining_steps"),
               .restart_s = restart_s,
               .forecast_at_steps = forecast_at_steps,
               .group = std::move(group),
               .priority = priority,
               .preemptible = preemptible,
               .waiting_s = waiting_s,
               .deadline_s = deadline_s,
               .ahead_steps = numbers(ahead_steps, "ahead_steps"),
               .ahead_loss = numbers(ahead_loss, "ahead_loss"),
               .sm_activity = sm_activity,
               .kind = std::move(kind)};
  owned.observe(numbers(observed_step, "observed_step"), numbers(observed_loss, "observed_loss"));
  if (!owned.job.observed.step.empty() || !owned.job.observed.loss.empty()) {
    validate(owned.job.observed);
  }
  return owned;
}

template <class Values>
py::object column(const Values& values) {
  return adopt(std::vector<double>(values.begin(), values.end()));
}

/// The arguments of make_job, in order: equality and pickle follow from them.
py::tuple fields_of(const OwnedJob& o) {
  const Job& j = o.job;
  return py::make_tuple(j.id, j.options, j.user, j.submit_s, j.weight, j.memory_gb, j.steps_done,
                        j.attained_s, j.attained_gpu_s, j.target_loss, j.budget_steps,
                        column(j.remaining_steps), j.restart_s, column(j.observed.step),
                        column(j.observed.loss), j.forecast_at_steps, j.group, j.priority,
                        j.preemptible, j.waiting_s, j.deadline_s, column(j.ahead_steps),
                        column(j.ahead_loss), j.sm_activity, j.kind);
}

void bind_job(py::module_& module) {
  py::class_<OwnedJob> job(module, "Job", R"(A live job as a scheduler may see it.

Parameters
----------
id : int
options : list of Option
    The ways to run it.
user, group : str
    For quotas.
submit_s : float
weight : float
    What a second of it is worth, relative to the other jobs.
memory_gb : float
    Per GPU.
steps_done, attained_s, attained_gpu_s : float
    What it has had so far.
target_loss, budget_steps : float
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
ahead_steps, ahead_loss : array_like, shape (k,)
    Expected loss at steps from now on, for the objective ``quality``.
sm_activity : float
    Share of the multiprocessors busy when alone, for sharing.
kind : str
    As measured pairs name it, for sharing.
)");
  job.def(py::init(&make_job), py::arg("id"), py::arg("options"), py::kw_only(),
          py::arg("user") = "", py::arg("submit_s") = 0.0, py::arg("weight") = 1.0,
          py::arg("memory_gb") = 0.0, py::arg("steps_done") = 0.0, py::arg("attained_s") = 0.0,
          py::arg("attained_gpu_s") = 0.0, py::arg("target_loss") = 0.0,
          py::arg("budget_steps") = 0.0, py::arg("remaining_steps") = py::none(),
          py::arg("restart_s") = 0.0, py::arg("observed_step") = py::none(),
          py::arg("observed_loss") = py::none(), py::arg("forecast_at_steps") = -1.0,
          py::arg("group") = "", py::arg("priority") = 0, py::arg("preemptible") = true,
          py::arg("waiting_s") = -1.0,
          py::arg("deadline_s") = std::numeric_limits<double>::infinity(),
          py::arg("ahead_steps") = py::none(), py::arg("ahead_loss") = py::none(),
          py::arg("sm_activity") = 1.0, py::arg("kind") = "");
#define GLIDEPATH_JOB_FIELD(field) \
  job.def_property_readonly(#field, [](const OwnedJob& o) { return o.job.field; })
  GLIDEPATH_JOB_FIELD(id);
  GLIDEPATH_JOB_FIELD(options);
  GLIDEPATH_JOB_FIELD(user);
  GLIDEPATH_JOB_FIELD(submit_s);
  GLIDEPATH_JOB_FIELD(weight);
  GLIDEPATH_JOB_FIELD(memory_gb);
  GLIDEPATH_JOB_FIELD(steps_done);
  GLIDEPATH_JOB_FIELD(attained_s);
  GLIDEPATH_JOB_FIELD(attained_gpu_s);
  GLIDEPATH_JOB_FIELD(target_loss);
  GLIDEPATH_JOB_FIELD(budget_steps);
  GLIDEPATH_JOB_FIELD(restart_s);
  GLIDEPATH_JOB_FIELD(forecast_at_steps);
  GLIDEPATH_JOB_FIELD(group);
  GLIDEPATH_JOB_FIELD(priority);
  GLIDEPATH_JOB_FIELD(preemptible);
  GLIDEPATH_JOB_FIELD(waiting_s);
  GLIDEPATH_JOB_FIELD(deadline_s);
  GLIDEPATH_JOB_FIELD(sm_activity);
  GLIDEPATH_JOB_FIELD(kind);
#undef GLIDEPATH_JOB_FIELD
#define GLIDEPATH_JOB_COLUMN(name, field) \
  job.def_property_readonly(name, [](const OwnedJob& o) { return column(o.job.field); })
  GLIDEPATH_JOB_COLUMN("remaining_steps", remaining_steps);
  GLIDEPATH_JOB_COLUMN("observed_step", observed.step);
  GLIDEPATH_JOB_COLUMN("observed_loss", observed.loss);
  GLIDEPATH_JOB_COLUMN("ahead_steps", ahead_steps);
  GLIDEPATH_JOB_COLUMN("ahead_loss", ahead_loss);
#undef GLIDEPATH_JOB_COLUMN
  job.def(
         "with_remaining",
         [](OwnedJob o, const py::object& remaining_steps) {
           o.job.remaining_steps = numbers(remaining_steps, "remaining_steps");
           o.job.forecast_at_steps = -1;
           return o;
         },
         py::arg("remaining_steps"), "The job with a new forecast, made now.")
      .def("__eq__",
           [](const OwnedJob& a, const py::object& b) {
             return py::isinstance<OwnedJob>(b) && same_job(a, b.cast<const OwnedJob&>());
           })
      .def("__repr__",
           [](const OwnedJob& o) {
             return text("<Job ", o.job.id, ": ", o.job.options.size(), " options, ",
                         o.job.attained_s, " s attained, ",
                         o.job.remaining_steps.empty() ? "no forecast" : "forecast", ">");
           })
      .def(py::pickle(&fields_of, [](const py::tuple& t) {
        return make_job(
            t[0].cast<std::int64_t>(), t[1].cast<std::vector<Option>>(), t[2].cast<std::string>(),
            t[3].cast<double>(), t[4].cast<double>(), t[5].cast<double>(), t[6].cast<double>(),
            t[7].cast<double>(), t[8].cast<double>(), t[9].cast<double>(), t[10].cast<double>(),
            t[11], t[12].cast<double>(), t[13], t[14], t[15].cast<double>(),
            t[16].cast<std::string>(), t[17].cast<int>(), t[18].cast<bool>(), t[19].cast<double>(),
            t[20].cast<double>(), t[21], t[22], t[23].cast<double>(), t[24].cast<std::string>());
      }));
}

void bind_snapshot(py::module_& module) {
  py::class_<OwnedSnapshot>(module, "Snapshot", R"(All that a policy may know at one moment.

Parameters
----------
tiers : list of Tier
jobs : list of Job
    Waiting and running.
running : list of Allocation
now_s : float
)")
      .def(py::init<std::vector<Tier>, const std::vector<OwnedJob>&, std::vector<Allocation>,
                    double>(),
           py::arg("tiers"), py::arg("jobs"), py::kw_only(), py::arg("running") = py::list(),
           py::arg("now_s") = 0.0)
      .def_property_readonly("now_s", &OwnedSnapshot::now_s)
      .def_property_readonly("tiers", &OwnedSnapshot::tiers)
      .def_property_readonly("jobs", &OwnedSnapshot::jobs)
      .def_property_readonly("running", &OwnedSnapshot::running)
      .def("__eq__",
           [](const OwnedSnapshot& a, const py::object& other) {
             if (!py::isinstance<OwnedSnapshot>(other)) return false;
             const auto& b = other.cast<const OwnedSnapshot&>();
             const auto x = a.jobs(), y = b.jobs();
             return a.now_s() == b.now_s() && a.tiers() == b.tiers() &&
                    a.running() == b.running() &&
                    std::equal(x.begin(), x.end(), y.begin(), y.end(), same_job);
           })
      .def("__repr__",
           [](const OwnedSnapshot& s) {
             const Snapshot view = s.view();
             return text("<Snapshot at ", view.now_s, " s: ", view.jobs.size(), " jobs, ",
                         view.running.size(), " of them running, on ", view.tiers.size(),
                         " tiers>");
           })
      .def(py::pickle(
          [](const OwnedSnapshot& s) {
            return py::make_tuple(s.tiers(), s.jobs(), s.running(), s.now_s());
          },
          [](const py::tuple& t) {
            return OwnedSnapshot(t[0].cast<std::vector<Tier>>(), t[1].cast<std::vector<OwnedJob>>(),
                                 t[2].cast<std::vector<Allocation>>(), t[3].cast<double>());
          }));
}

void bind_options(py::module_& module) {
  module.def(
      "options_of",
      [](const std::vector<Tier>& tiers, const std::vector<std::optional<Scaling>>& scaling,
         const Profile& alone, double batch, int most_gpus, double utilization,
         const std::string& sharing, const std::optional<Profile>& partner,
         const py::object& pairs) {
        std::vector<Scaling> fits;
        for (const auto& fit : scaling) fits.push_back(fit.value_or(Scaling{}));
        return options_of(tiers, fits,
                          {alone, batch, most_gpus, utilization, sharing_named(sharing), partner,
                           pairs_or_null(pairs)});
      },
      py::arg("tiers"), py::arg("scaling"), py::arg("alone"), py::arg("batch"),
      py::arg("most_gpus"), py::arg("utilization"), py::arg("sharing"), py::arg("partner"),
      py::arg("pairs"), "Options of a job.");
}

void bind_accelerator(py::module_& module) {
  module.def(
      "choose_accelerator",
      [](const OwnedJob& job, const std::vector<Tier>& tiers, double max_hours, double max_watts,
         double max_kwh, double max_cost, double confidence, const std::string& prefer) {
        Prefer by = Prefer::hours;
        if (prefer == "kwh") {
          by = Prefer::kwh;
        } else if (prefer == "cost") {
          by = Prefer::cost;
        } else if (prefer == "watts") {
          by = Prefer::watts;
        } else if (prefer != "hours") {
          throw InputError("choose_accelerator: prefer is '" + prefer +
                           "', known: hours, kwh, cost, watts");
        }
        py::list out;
        for (const AcceleratorChoice& c : choose_accelerator(
                 job.job, tiers, {max_hours, max_watts, max_kwh, max_cost, confidence}, by)) {
          out.append(py::make_tuple(c.option, tiers[static_cast<std::size_t>(c.option.tier)].name,
                                    c.probability, c.hours, c.hours_low, c.hours_high, c.watts,
                                    c.kwh, c.cost, c.good, c.pareto, c.reason));
        }
        return out;
      },
      py::arg("job"), py::arg("tiers"), py::arg("max_hours"), py::arg("max_watts"),
      py::arg("max_kwh"), py::arg("max_cost"), py::arg("confidence"), py::arg("prefer"),
      "Options of a job against a need, best first.");
}

py::tuple solve(const py::object& job, const py::object& tier, const py::object& gpus,
                const py::object& value, const py::object& capacity, double gap,
                const py::object& prices, int threads, const py::object& watts, double power_cap_w,
                const py::object& user, const py::object& user_quota, const py::object& group,
                const py::object& group_quota, const py::object& node_gpus) {
  const auto column = [](const py::object& object, const char* name) {
    return object.is_none() ? Int64Array(0) : borrow_int64(object, name);
  };
  const Int64Array users = column(user, "user"), user_quotas = column(user_quota, "user_quota"),
                   groups = column(group, "group"),
                   group_quotas = column(group_quota, "group_quota"),
                   nodes = column(node_gpus, "node_gpus");
  const DoubleArray draws = borrow_or_empty(watts, "watts");
  const Int64Array jobs = borrow_int64(job, "job"), tiers = borrow_int64(tier, "tier"),
                   gangs = borrow_int64(gpus, "gpus"), room = borrow_int64(capacity, "capacity");
  const DoubleArray values = borrow(value, "value"), warm = borrow_or_empty(prices, "prices");
  RoundPlan plan;
  {
    const py::gil_scoped_release release;
    plan = solve_round({.job = view(jobs),
                        .tier = view(tiers),
                        .gpus = view(gangs),
                        .value = view(values),
                        .capacity = view(room),
                        .watts = view(draws),
                        .power_cap_w = power_cap_w,
                        .user = view(users),
                        .group = view(groups),
                        .user_quota = view(user_quotas),
                        .group_quota = view(group_quotas),
                        .node_gpus = view(nodes)},
                       {.gap = gap, .prices = view(warm), .threads = threads});
  }
  return py::make_tuple(adopt(std::move(plan.chosen)), plan.value, plan.bound, plan.gap,
                        adopt(std::move(plan.prices)));
}

std::vector<Quota> quotas(const py::dict& given, const char* what) {
  std::vector<Quota> out;
  for (const auto& [name, gpus] : given) {
    if (!py::isinstance<py::str>(name) || !PyIndex_Check(gpus.ptr())) {
      throw py::type_error(text(what, ": expected names and whole numbers of GPUs, got ",
                                std::string(py::repr(name)), ": ", std::string(py::repr(gpus))));
    }
    out.push_back({name.cast<std::string>(), gpus.cast<std::int64_t>()});
  }
  return out;
}

/// Limits that a plan keeps to and `violations` checks.
PlanOptions limits(const py::dict& user_quota, const py::dict& group_quota,
                   const std::string& sharing, bool in_nodes, double power_cap_w,
                   double min_run_s) {
  PlanOptions options;
  options.user_quota = quotas(user_quota, "user_quota");
  options.group_quota = quotas(group_quota, "group_quota");
  options.sharing = sharing_named(sharing);
  options.in_nodes = in_nodes;
  options.power_cap_w = power_cap_w;
  options.min_run_s = min_run_s;
  return options;
}

py::tuple plan_columns(const OwnedSnapshot& snapshot,
                       const std::vector<std::pair<std::string, double>>& goals, bool in_order,
                       const py::object& prices, const py::dict& user_quota,
                       const py::dict& group_quota, const std::string& sharing, bool in_nodes,
                       const py::object& pairs, bool reasons, const py::dict& numbers) {
  const DoubleArray warm = borrow_or_empty(prices, "prices");
  const auto number = [&](const char* name) { return numbers[name].cast<double>(); };
  PlanOptions options = limits(user_quota, group_quota, sharing, in_nodes, number("power_cap_w"),
                               number("min_run_s"));
  options.goals.clear();
  for (const auto& [name, weight] : goals) options.goals.push_back({objective_named(name), weight});
  options.in_order = in_order;
  options.slack = number("slack");
  options.prices = view(warm);
  options.reasons = reasons;
  options.pairs = pairs_or_null(pairs);
  options.round_s = number("round_s");
  options.gap = number("gap");
  options.stop_probability = number("stop_probability");
  options.outrun_probability = number("outrun_probability");
  options.joule_value = number("joule_value");
  options.hysteresis = number("hysteresis");
  options.ageing_s = number("ageing_s");
  options.max_wait_s = number("max_wait_s");
  Plan plan;
  {
    const py::gil_scoped_release release;
    plan = glidepath::plan(snapshot.view(), options);
  }
  py::dict lines;
  for (const Reason& reason : plan.reasons) lines[py::int_(reason.job)] = reason.text;
  return py::make_tuple(std::move(plan.allocations), std::move(plan.stop), plan.value, plan.bound,
                        plan.gap, adopt(std::move(plan.prices)), lines);
}

}  // namespace
}  // namespace glidepath::python

void bind_plan(pybind11::module_& module) {
  using namespace glidepath::python;
  namespace py = pybind11;
  bind_option(module);
  bind_allocation(module);
  bind_job(module);
  bind_snapshot(module);
  bind_options(module);
  bind_accelerator(module);
  module.def("solve_round", &solve, py::arg("job"), py::arg("tier"), py::arg("gpus"),
             py::arg("value"), py::arg("capacity"), py::arg("gap"), py::arg("prices"),
             py::arg("threads"), py::arg("watts"), py::arg("power_cap_w"), py::arg("user"),
             py::arg("user_quota"), py::arg("group"), py::arg("group_quota"), py::arg("node_gpus"),
             "(chosen, value, bound, gap, prices)");
  module.def("plan", &plan_columns, py::arg("snapshot"), py::arg("goals"), py::arg("in_order"),
             py::arg("prices"), py::arg("user_quota"), py::arg("group_quota"), py::arg("sharing"),
             py::arg("in_nodes"), py::arg("pairs"), py::arg("reasons"), py::arg("numbers"),
             "(allocations, stop, value, bound, gap, prices, reasons)");
  module.def(
      "violations",
      [](const OwnedSnapshot& snapshot, const py::object& plan, const py::dict& user_quota,
         const py::dict& group_quota, const std::string& sharing, bool in_nodes, double power_cap_w,
         double min_run_s) {
        return glidepath::violations(
            snapshot.view(), plan_from_python(plan),
            limits(user_quota, group_quota, sharing, in_nodes, power_cap_w, min_run_s));
      },
      py::arg("snapshot"), py::arg("plan"), py::arg("user_quota"), py::arg("group_quota"),
      py::arg("sharing"), py::arg("in_nodes"), py::arg("power_cap_w"), py::arg("min_run_s"),
      "What is wrong with a plan, one sentence each.");
  module.def(
      "gittins_index",
      [](const py::object& samples) {
        const DoubleArray array = borrow(samples, "samples");
        return glidepath::gittins_index(view(array));
      },
      py::arg("samples"), "Gittins index of equally likely samples.");
}
