// SPDX-License-Identifier: Apache-2.0
#include "glidepath/forecast.hpp"
#include "glidepath/watch.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forecast/constants.hpp"
#include "forecast/law.hpp"
#include "forecast/predict.hpp"
#include "forecast/prepare.hpp"
#include "numpy_view.hpp"

namespace {

using namespace glidepath;
using python::adopt;
using python::borrow;
using python::borrow_or_empty;
using python::DoubleArray;
using python::view;
namespace py = pybind11;

/// Everything that ForecastOptions borrows, alive for the length of a call.
struct Options {
  DoubleArray lr, lr_ahead, lr_step, levels;
  std::vector<Trace> past;
  ForecastOptions value;
};

using Constants = std::shared_ptr<ForecastConstants>;

std::vector<double> copied(py::handle object, const char* name) {
  const DoubleArray array = borrow(object, name);
  const auto values = view(array);
  return {values.begin(), values.end()};
}

std::vector<Trace> runs(const py::list& list) {
  std::vector<Trace> traces;
  for (const py::handle item : list) {
    const auto pair = py::cast<py::tuple>(item);
    Trace trace;
    trace.step = copied(pair[0], "past: step");
    trace.loss = copied(pair[1], "past: loss");
    if (pair.size() > 2 && !pair[2].is_none()) trace.lr = copied(pair[2], "past: lr");
    traces.push_back(std::move(trace));
  }
  return traces;
}

/// A Calibration as the fields of the Python class, in their order.
py::tuple fields(const Calibration& c) {
  return py::make_tuple(c.horizon, c.factor, c.runs, c.scheduled_factor, c.scheduled_runs,
                        c.schedule_helps);
}
Calibration calibration_of(const py::tuple& fields) {
  return {copied(fields[0], "calibration: horizon"),
          copied(fields[1], "calibration: factor"),
          py::cast<int>(fields[2]),
          copied(fields[3], "calibration: scheduled factor"),
          py::cast<int>(fields[4]),
          py::cast<bool>(fields[5])};
}

std::unique_ptr<Options> options(const py::dict& given) {
  auto o = std::make_unique<Options>();
  const auto get = [&](const char* key) -> py::object {
    return given.contains(key) ? py::object(given[key]) : py::object(py::none());
  };
  o->lr = borrow_or_empty(get("lr"), "lr");
  o->lr_ahead = borrow_or_empty(get("lr_ahead"), "lr_ahead");
  o->lr_step = borrow_or_empty(get("lr_step"), "lr_step");
  o->levels = borrow_or_empty(get("levels"), "levels");
  if (const py::object past = get("past"); !past.is_none()) o->past = runs(past);
  o->value.learning_rate = {view(o->lr), view(o->lr_ahead), view(o->lr_step)};
  o->value.levels = view(o->levels);
  o->value.past = o->past;
  if (const py::object direction = get("direction"); !direction.is_none()) {
    o->value.direction = direction_named(py::cast<std::string>(direction));
  }
  if (const py::object c = get("calibration"); !c.is_none()) {
    o->value.calibration = calibration_of(py::cast<py::tuple>(c));
  }
  if (const py::object c = get("constants"); !c.is_none()) {
    o->value.constants = py::cast<Constants>(c);
  }
  return o;
}

py::dict law_dict(const Forecast& f) {
  py::dict d;
  d["packed"] = adopt(glidepath::detail::pack_law(*f.law));
  return d;
}

Forecast from_law(py::handle steps, const py::dict& d) {
  Forecast f;
  f.at = copied(steps, "steps");
  f.law = std::make_shared<const glidepath::detail::Law>(
      glidepath::detail::unpack_law(copied(d["packed"], "law")));
  return f;
}

std::vector<std::string> names(const std::vector<ForecastStatus>& status) {
  std::vector<std::string> out;
  for (const ForecastStatus s : status) out.emplace_back(name(s));
  return out;
}

py::dict state_dict(const WatchState& s) {
  py::dict d;
  d["step"] = s.step;
  d["loss"] = s.loss;
  d["weight"] = s.weight;
  d["lr"] = s.lr;
  d["newest"] = s.newest;
  d["last_step"] = s.last_step;
  d["first_loss"] = s.first_loss;
  d["best_loss"] = s.best_loss;
  d["reached_step"] = s.reached_step;
  d["points"] = s.points;
  d["nonfinite"] = s.nonfinite;
  d["trailing_nonfinite"] = s.trailing_nonfinite;
  d["restarts"] = s.restarts;
  return d;
}

WatchState state_from(const py::dict& d) {
  WatchState s;
  s.step = py::cast<std::vector<double>>(d["step"]);
  s.loss = py::cast<std::vector<double>>(d["loss"]);
  s.weight = py::cast<std::vector<double>>(d["weight"]);
  s.lr = py::cast<std::vector<double>>(d["lr"]);
  s.newest = py::cast<std::vector<double>>(d["newest"]);
  s.last_step = py::cast<double>(d["last_step"]);
  s.first_loss = py::cast<double>(d["first_loss"]);
  s.best_loss = py::cast<double>(d["best_loss"]);
  s.reached_step = py::cast<double>(d["reached_step"]);
  s.points = py::cast<std::int64_t>(d["points"]);
  s.nonfinite = py::cast<std::int64_t>(d["nonfinite"]);
  s.trailing_nonfinite = py::cast<std::int64_t>(d["trailing_nonfinite"]);
  s.restarts = py::cast<std::int64_t>(d["restarts"]);
  return s;
}

}  // namespace

void bind_forecast(py::module_& module) {
  py::class_<ForecastConstants, Constants>(module, "ForecastConstants");
  module.def("read_constants", [](const std::string& text) {
    return std::const_pointer_cast<ForecastConstants>(read_constants(text));
  });
  module.def("learned_table", [] { return std::string(glidepath::detail::learned_table()); });
  module.def(
      "forecast", [](py::handle step, py::handle loss, py::handle steps, const py::dict& given) {
        const DoubleArray s = borrow(step, "step"), l = borrow(loss, "loss"),
                          h = borrow(steps, "steps");
        const auto o = options(given);
        Forecast f;
        {
          const py::gil_scoped_release release;
          f = forecast({view(s), view(l), {}}, view(h), o->value);
        }
        const auto levels = static_cast<py::ssize_t>(f.levels.size());
        const auto count = static_cast<py::ssize_t>(f.at.size());
        py::dict law = law_dict(f);
        return py::make_tuple(
            adopt(std::move(f.at)), adopt(std::move(f.levels)), adopt(std::move(f.median)),
            adopt(std::move(f.quantiles), {levels, count}),
            adopt(std::move(f.curve_quantiles), {levels, count}), std::string(name(f.status)), law);
      });
  module.def("forecast_quantile",
             [](py::handle steps, const py::dict& law, double level, bool raw) {
               const Forecast f = from_law(steps, law);
               return adopt(raw ? quantile(f, level) : curve_quantile(f, level));
             });
  module.def("forecast_prob_below", [](py::handle steps, const py::dict& law, double target) {
    return adopt(prob_below(from_law(steps, law), target));
  });
  module.def("forecast_batch", [](py::handle step, py::handle loss, py::handle steps, int threads,
                                  const py::dict& given) {
    const DoubleArray s = borrow(step, "step"), l = borrow(loss, "loss", 2),
                      h = borrow(steps, "steps");
    const auto o = options(given);
    ForecastBatch f;
    {
      const py::gil_scoped_release release;
      f = forecast_batch(view(s), python::rows(l), view(h), o->value, {.threads = threads});
    }
    const auto levels = static_cast<py::ssize_t>(f.levels.size());
    const auto count = static_cast<py::ssize_t>(f.at.size());
    const auto m = l.shape(0);
    return py::make_tuple(adopt(std::move(f.at)), adopt(std::move(f.levels)),
                          adopt(std::move(f.median), {m, count}),
                          adopt(std::move(f.quantiles), {levels, m, count}), names(f.status));
  });
  // For bench/accuracy/learn_prior.py: every node before priors and tempering.
  module.def(
      "forecast_nodes",
      [](py::handle step, py::handle loss, py::handle steps, const py::dict& given) -> py::object {
        const DoubleArray s = borrow(step, "step"), l = borrow(loss, "loss"),
                          h = borrow(steps, "steps");
        const auto o = options(given);
        const ForecastConstants& c = glidepath::detail::constants_of(o->value);
        const auto p = glidepath::detail::prepare({view(s), view(l), {}}, o->value.direction, c);
        if (!p.modelled) return py::none();
        std::vector<double> queries;
        for (const double q : view(h)) queries.push_back(q + p.step_shift);
        auto t = glidepath::detail::node_table(p, queries, c);
        const auto nodes = static_cast<py::ssize_t>(t.structures * t.shapes);
        const auto count = static_cast<py::ssize_t>(t.queries);
        py::dict d;
        d["features"] = std::vector<double>(t.features.begin(), t.features.end());
        d["late"] = t.late;
        d["freedom"] = t.freedom;
        d["noise"] = p.noise;
        d["lowest"] = p.lowest;
        d["highest"] = p.highest;
        d["logarithmic"] = p.coordinate.logarithmic;
        d["unit"] = p.coordinate.unit;
        d["log_evidence"] = adopt(std::move(t.log_evidence));
        d["rss"] = adopt(std::move(t.rss));
        d["amplitude"] = adopt(std::move(t.amplitude));
        d["last"] = adopt(std::move(t.last));
        d["location"] = adopt(std::move(t.location), {nodes, count});
        d["kriging"] = adopt(std::move(t.kriging), {nodes, count});
        d["log_distance"] = adopt(std::move(t.log_distance));
        return d;
      });
  module.def("reach", [](py::handle step, py::handle loss, double target, double budget,
                         const py::dict& given) {
    const DoubleArray s = borrow(step, "step"), l = borrow(loss, "loss");
    const auto o = options(given);
    Reach r;
    {
      const py::gil_scoped_release release;
      r = reach({view(s), view(l), {}}, target, budget, o->value);
    }
    return py::make_tuple(adopt(std::move(r.step)), adopt(std::move(r.cdf)), r.prob_never,
                          std::string(name(r.status)));
  });

  module.def("calibrate", [](const py::list& finished, const std::string& direction,
                             const py::dict& given, int threads) {
    std::vector<Trace> traces = runs(finished);
    for (Trace& trace : traces) trace.direction = direction_named(direction);
    const auto o = options(given);
    Calibration c;
    {
      const py::gil_scoped_release release;
      c = calibrate(traces, o->value, {.threads = threads});
    }
    return fields(c);
  });
  module.def("calibrate_online", [](const py::tuple& before, const py::list& finished,
                                    const std::string& direction, const py::dict& given) {
    Trace run = runs(finished).front();
    run.direction = direction_named(direction);
    const auto o = options(given);
    Calibration c = calibration_of(before);
    {
      const py::gil_scoped_release release;
      c = calibrate_online(std::move(c), run, o->value);
    }
    return fields(c);
  });
  py::class_<Watch>(module, "Watch")
      .def(py::init([](std::optional<double> target, std::optional<double> budget,
                       const std::string& direction, const py::object& past, double alpha,
                       std::vector<double> plan_step, std::vector<double> plan_lr) {
        WatchOptions o;
        o.target = target;
        o.budget = budget;
        o.direction = direction_named(direction);
        if (!past.is_none()) o.past = runs(past);
        o.alpha = alpha;
        o.plan_step = std::move(plan_step);
        o.plan_lr = std::move(plan_lr);
        return std::make_unique<Watch>(std::move(o));
      }))
      .def("add", &Watch::add)
      .def("decision",
           [](const Watch& watch) {
             Decision d;
             {
               const py::gil_scoped_release release;
               d = watch.decision();
             }
             return py::make_tuple(
                 std::string(name(d.verdict)), d.probability,
                 py::make_tuple(d.steps_to_target[0], d.steps_to_target[1], d.steps_to_target[2]),
                 d.reason);
           })
      .def("state", [](const Watch& watch) { return state_dict(watch.state()); })
      .def("restore", [](Watch& watch, const py::dict& d) { watch.restore(state_from(d)); });
}
