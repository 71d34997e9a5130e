// SPDX-License-Identifier: Apache-2.0
#include "glidepath/fit.hpp"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/require.hpp"
#include "numpy_view.hpp"

namespace py = pybind11;

namespace glidepath::python {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a

constexpr std::size_t kShort = 512;  // points: microseconds, at worst some hundred

Execution threads_of(int threads) {
  if (threads < 0) glidepath::detail::refuse("threads is ", threads, ", must not be negative");
  return {.threads = threads};
}

FitOptions options_of(const std::string& family, const std::string& loss, double floor,
                      const std::string& engine, int starts) {
  FitOptions options{.lowest_floor = floor, .starts = starts};
  if (family != "auto") options.family = family_named(family);
  if (loss == "huber") {
    options.loss = Loss::huber;
  } else if (loss == "cauchy") {
    options.loss = Loss::cauchy;
  } else if (loss != "squares") {
    glidepath::detail::refuse("fit: robust is '", loss, "', expected huber or cauchy");
  }
  if (engine == "ceres") {
    options.engine = Engine::ceres;
  } else if (engine != "closed_form") {
    glidepath::detail::refuse("fit: engine is '", engine, "', expected closed_form or ceres");
  }
  return options;
}

template <typename Values>
py::tuple first(const Values& values, const Curve& curve) {
  const std::size_t count = parameter_names(curve.family).size();
  py::tuple tuple(count);
  for (std::size_t k = 0; k < count; ++k) tuple[k] = py::cast(values[k]);
  return tuple;
}

Rows covariance_of(const Fit& fit) {
  const auto count = static_cast<Eigen::Index>(parameter_names(fit.curve.family).size());
  return Eigen::Map<const Rows>(fit.covariance.data(), kMaxParameters, kMaxParameters)
      .topLeftCorner(count, count);
}

py::object array_of(const Rows& matrix) {
  DoubleArray array({matrix.rows(), matrix.cols()});
  mutable_rows(array) = matrix;
  return array;
}

py::list scores_of(const Fit& fit) {
  py::list scores;
  for (const FamilyScore& score : fit.scores) {
    scores.append(py::make_tuple(std::string(name(score.family)), score.aicc,
                                 std::string(name(score.status))));
  }
  return scores;
}

/// Everything, in plain objects; what pickle keeps.
py::tuple state_of(const Fit& fit) {
  py::list scores;
  for (const FamilyScore& score : fit.scores) {
    scores.append(
        py::make_tuple(static_cast<int>(score.family), score.aicc, static_cast<int>(score.status)));
  }
  return py::make_tuple(static_cast<int>(fit.curve.family), fit.curve.parameters,
                        static_cast<int>(fit.status), fit.standard_error, fit.covariance,
                        fit.at_bound, fit.sigma, fit.rss, fit.aicc, fit.bic, fit.last_step,
                        fit.points, scores);
}

Fit fit_of(const py::tuple& state) {
  const auto family = [](const py::handle& code) { return static_cast<Family>(code.cast<int>()); };
  const auto status = [](const py::handle& code) {
    return static_cast<FitStatus>(code.cast<int>());
  };
  Fit fit;
  fit.curve = {family(state[0]), state[1].cast<std::array<double, kMaxParameters>>()};
  fit.status = status(state[2]);
  fit.standard_error = state[3].cast<decltype(fit.standard_error)>();
  fit.covariance = state[4].cast<decltype(fit.covariance)>();
  fit.at_bound = state[5].cast<decltype(fit.at_bound)>();
  fit.sigma = state[6].cast<double>();
  fit.rss = state[7].cast<double>();
  fit.aicc = state[8].cast<double>();
  fit.bic = state[9].cast<double>();
  fit.last_step = state[10].cast<double>();
  fit.points = state[11].cast<int>();
  for (const py::handle item : state[12].cast<py::list>()) {
    const auto score = item.cast<py::tuple>();
    fit.scores.push_back({family(score[0]), score[1].cast<double>(), status(score[2])});
  }
  return fit;
}

Fit fit_trace(const py::object& step, const py::object& loss, const py::object& weight,
              const std::string& family, const std::string& robust, double floor,
              const std::string& engine, int starts) {
  const DoubleArray t = borrow(step, "step"), y = borrow(loss, "loss");
  const DoubleArray w = weight.is_none() ? t : borrow(weight, "weight");
  const FitOptions options = options_of(family, robust, floor, engine, starts);
  TraceView trace{view(t), view(y), {}};
  if (!weight.is_none()) trace.weight = view(w);
  // A short fit is over before another thread could have used the lock.
  std::optional<py::gil_scoped_release> release;
  if (trace.step.size() > kShort || options.loss != Loss::squares ||
      options.engine == Engine::ceres) {
    release.emplace();
  }
  return fit(trace, options);
}

py::list fit_traces(const py::list& steps, const py::list& losses, const std::string& family,
                    const std::string& robust, double floor, int threads) {
  std::vector<DoubleArray> columns;
  std::vector<TraceView> traces;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    columns.push_back(borrow(steps[i], "step"));
    columns.push_back(borrow(losses[i], "loss"));
    traces.push_back({view(columns[2 * i]), view(columns[2 * i + 1]), {}});
  }
  const FitOptions options = options_of(family, robust, floor, "closed_form", 4);
  const Execution execution = threads_of(threads);
  std::vector<Fit> fits;
  {
    const py::gil_scoped_release release;
    fits = fit_batch(traces, options, execution);
  }
  py::list list;
  for (Fit& fit : fits) list.append(std::move(fit));
  return list;
}

/// (columns, sigma, status codes)
py::tuple fit_columns(const py::object& step, const py::object& loss, const std::string& family,
                      double floor, int threads) {
  const DoubleArray t = borrow(step, "step"), y = borrow(loss, "loss", 2);
  const FitOptions options = options_of(family, "squares", floor, "closed_form", 4);
  if (!options.family) {
    glidepath::detail::refuse("fit: a batch on shared steps needs a family, not 'auto'");
  }
  const Execution execution = threads_of(threads);
  FitBatch columns;
  {
    const py::gil_scoped_release release;
    columns = fit_batch(view(t), rows(y), options, execution);
  }
  py::list parameters;
  for (std::size_t k = 0; k < parameter_names(columns.family).size(); ++k) {
    parameters.append(adopt(std::move(columns.parameters[k])));
  }
  std::vector<std::uint8_t> status;
  status.reserve(columns.status.size());
  for (const FitStatus each : columns.status) status.push_back(static_cast<std::uint8_t>(each));
  return py::make_tuple(parameters, adopt(std::move(columns.sigma)), adopt(std::move(status)));
}

py::object evaluate_columns(const std::string& family, const py::list& parameters,
                            const py::object& steps, int threads, const py::object& out) {
  CurvesView curves{.family = family_named(family)};
  std::vector<DoubleArray> columns;
  for (std::size_t k = 0; k < parameters.size() && k < curves.parameters.size(); ++k) {
    columns.push_back(borrow(parameters[k], parameter_names(curves.family)[k].data()));
    curves.parameters[k] = view(columns[k]);
  }
  const DoubleArray t = borrow(steps, "steps");
  DoubleArray result =
      output(out, {static_cast<py::ssize_t>(curves.parameters[0].size()), t.size()});
  auto matrix = mutable_rows(result);
  const Execution execution = threads_of(threads);
  {
    const py::gil_scoped_release release;
    evaluate_batch(curves, view(t), matrix, execution);
  }
  return out.is_none() ? py::object(result) : out;
}

py::object predict_fit(const Fit& fit, const py::object& steps) {
  const DoubleArray t = borrow(steps, "steps");
  DoubleArray result(t.size());
  CurvesView curves{.family = fit.curve.family};
  for (std::size_t k = 0; k < parameter_names(curves.family).size(); ++k) {
    curves.parameters[k] = {&fit.curve.parameters[k], 1};
  }
  Eigen::Map<Rows> matrix(result.mutable_data(), 1, t.size());
  evaluate_batch(curves, view(t), matrix, {.threads = 1});
  return result;
}

ScheduleLawKind law_named(const std::string& text) {
  if (text == "annealing") return ScheduleLawKind::annealing;
  if (text == "multi_power") return ScheduleLawKind::multi_power;
  glidepath::detail::refuse("schedule law: law is '", text, "', expected annealing or multi_power");
}

/// (status, sigma, rss, points, parameters in the order of the struct)
py::tuple fit_law(const py::list& steps, const py::list& losses, const py::list& rates,
                  const std::string& law) {
  const ScheduleLawKind kind = law_named(law);
  std::vector<Trace> traces;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto owned = [](const DoubleArray& array) {
      return std::vector<double>(array.data(), array.data() + array.size());
    };
    Trace trace{.name = std::to_string(i)};
    trace.step = owned(borrow(steps[i], "step"));
    trace.loss = owned(borrow(losses[i], "loss"));
    trace.lr = owned(borrow_or_empty(rates[i], "lr"));
    traces.push_back(std::move(trace));
  }
  ScheduleLaw found;
  {
    const py::gil_scoped_release release;
    found = fit_schedule_law(traces, kind);
  }
  return py::make_tuple(
      std::string(name(found.status)), found.sigma, found.rss, found.points,
      py::make_tuple(found.floor, found.scale, found.rate, found.drop, found.memory, found.speed,
                     found.shape, found.power, found.warmup));
}

py::object predict_law(const std::string& law, const py::object& parameters, const py::object& step,
                       const py::object& lr) {
  const DoubleArray p = borrow(parameters, "parameters"), t = borrow(step, "step"),
                    rate = borrow(lr, "lr");
  const double* v = p.data();
  ScheduleLaw found{.kind = law_named(law)};
  found.floor = v[0], found.scale = v[1], found.rate = v[2], found.drop = v[3];
  found.memory = v[4], found.speed = v[5], found.shape = v[6], found.power = v[7];
  found.warmup = v[8];
  return adopt(predict(found, view(t), view(rate)));
}

}  // namespace
}  // namespace glidepath::python

void bind_fit(py::module_& module) {
  using namespace glidepath;          // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)

  py::class_<Fit>(module, "FitRecord")
      .def_property_readonly("family",
                             [](const Fit& fit) { return std::string(name(fit.curve.family)); })
      .def_property_readonly("status", [](const Fit& fit) { return std::string(name(fit.status)); })
      .def_property_readonly("params",
                             [](const Fit& fit) { return first(fit.curve.parameters, fit.curve); })
      .def_property_readonly("stderr",
                             [](const Fit& fit) { return first(fit.standard_error, fit.curve); })
      .def_property_readonly("at_bound",
                             [](const Fit& fit) { return first(fit.at_bound, fit.curve); })
      .def_property_readonly("covariance",
                             [](const Fit& fit) { return array_of(covariance_of(fit)); })
      .def_property_readonly("scores", &scores_of)
      .def_readonly("sigma", &Fit::sigma)
      .def_readonly("rss", &Fit::rss)
      .def_readonly("aicc", &Fit::aicc)
      .def_readonly("bic", &Fit::bic)
      .def_readonly("last_step", &Fit::last_step)
      .def_readonly("points", &Fit::points)
      .def("predict", &predict_fit, "steps"_a)
      .def("state", &state_of)
      .def(py::pickle(&state_of, &fit_of));

  py::dict families;
  for (const Family family : kFamilies) {
    py::list names;
    for (const std::string_view each : parameter_names(family)) names.append(std::string(each));
    families[py::str(std::string(name(family)))] = py::tuple(names);
  }
  module.attr("FAMILIES") = families;
  py::list statuses;
  for (int code = 0; code <= static_cast<int>(FitStatus::not_finite); ++code) {
    statuses.append(std::string(name(static_cast<FitStatus>(code))));
  }
  module.attr("FIT_STATUSES") = py::tuple(statuses);

  module.def("fit", &fit_trace, "step"_a, "loss"_a, "weight"_a, "family"_a, "robust"_a, "floor"_a,
             "engine"_a, "starts"_a);
  module.def("fit_batch", &fit_traces, "steps"_a, "losses"_a, "family"_a, "robust"_a, "floor"_a,
             "threads"_a);
  module.def("fit_columns", &fit_columns, "step"_a, "loss"_a, "family"_a, "floor"_a, "threads"_a);
  module.def("fit_law", &fit_law, "steps"_a, "losses"_a, "rates"_a, "law"_a);
  module.def("predict_law", &predict_law, "law"_a, "parameters"_a, "step"_a, "lr"_a);
  module.def("evaluate_columns", &evaluate_columns, "family"_a, "params"_a, "steps"_a, "threads"_a,
             "out"_a);
}
