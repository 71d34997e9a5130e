// SPDX-License-Identifier: Apache-2.0
#include "glidepath/fit.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/require.hpp"
#include "forecast_records.hpp"
#include "long_call.hpp"

namespace py = pybind11;

namespace glidepath::python {
namespace {

using namespace py::literals;  // NOLINT(google-build-using-namespace): "name"_a

constexpr std::size_t kShortTrace = 512;  // points: microseconds, at worst some hundred

std::optional<Family> family_or_auto(const std::string& text) {
  if (text == "auto") return std::nullopt;
  const auto name_of = [](Family family) { return name(family); };
  const auto found = std::ranges::find(kFamilies, text, name_of);
  if (found != kFamilies.end()) return *found;
  glidepath::detail::refuse("fit: family is '", text, "', expected one of auto, ",
                            listed(kFamilies, name_of));
}

Rows covariance_of(const Fit& fit) {
  const std::ptrdiff_t count = std::ssize(parameter_names(fit.curve.family));
  return Rows(RowsView(fit.covariance.data(), count, count, kMaxParameters));
}

Fit fit_trace(const ArrayLike& step, const ArrayLike& loss, const std::optional<ArrayLike>& weight,
              const std::string& family, const std::string& robust, double lowest_floor,
              const std::string& solver, std::optional<int> starts, double from_step) {
  const DoubleArray t = borrow(step, "step"), y = borrow(loss, "loss");
  const DoubleArray w = weight ? borrow(*weight, "weight") : t;
  const FitOptions options{.family = family_or_auto(family),
                           .robust = robust_named(robust),
                           .lowest_floor = lowest_floor,
                           .solver = solver_named(solver),
                           .starts = starts,
                           .from_step = from_step};
  TraceView trace{.step = view(t), .loss = view(y)};
  if (weight) trace.weight = view(w);
  // A short fit is over before another thread could have used the lock.
  std::optional<LongCall> call;
  if (trace.step.size() > kShortTrace || options.robust != Robust::none ||
      options.solver == Solver::ceres) {
    call.emplace();
  }
  return fit(trace, options);
}

std::vector<Fit> fit_traces(const std::vector<ArrayLike>& steps,
                            const std::vector<ArrayLike>& losses,
                            const std::vector<ArrayLike>& weights, const std::string& family,
                            const std::string& robust, double lowest_floor,
                            const std::string& solver, std::optional<int> starts, double from_step,
                            int threads) {
  std::vector<DoubleArray> columns;
  std::vector<TraceView> traces;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    columns.push_back(borrow(steps[i], "step"));
    columns.push_back(borrow(losses[i], "loss"));
    traces.push_back({.step = view(columns.end()[-2]), .loss = view(columns.back())});
    if (weights.empty()) continue;
    columns.push_back(borrow(weights[i], "weight"));
    traces.back().weight = view(columns.back());
  }
  const FitOptions options{.family = family_or_auto(family),
                           .robust = robust_named(robust),
                           .lowest_floor = lowest_floor,
                           .solver = solver_named(solver),
                           .starts = starts,
                           .from_step = from_step};
  const Execution execution = execution_of(threads);
  const LongCall call;
  return fit_batch(traces, options, execution);
}

FitBatch fit_rows(const ArrayLike& step, const ArrayLike& loss, const std::string& family,
                  double lowest_floor, double from_step, int threads) {
  const DoubleArray t = borrow(step, "step"), y = borrow(loss, "loss", 2);
  if (family == "auto") {
    glidepath::detail::refuse("fit: a batch on shared steps needs a family, not 'auto'");
  }
  const FitOptions options{
      .family = family_named(family), .lowest_floor = lowest_floor, .from_step = from_step};
  const Execution execution = execution_of(threads);
  const LongCall call;
  return fit_batch(view(t), rows(y), options, execution);
}

/// A column of a batch as an array that keeps the batch alive.
template <class T>
py::array_t<T> column_of(const std::vector<T>& column, const py::object& batch) {
  return py::array_t<T>(static_cast<py::ssize_t>(column.size()), column.data(), batch);
}

ArraysByName parameters_of(const py::object& self) {
  const auto& batch = self.cast<const FitBatch&>();
  const auto names = parameter_names(batch.family);
  ArraysByName parameters;
  for (std::size_t k = 0; k < names.size(); ++k) {
    parameters[py::str(std::string(names[k]))] = column_of(batch.parameters[k], self);
  }
  return parameters;
}

/// Places of the statuses in FIT_STATUSES.
py::array_t<std::uint8_t> codes_of(const FitBatch& batch) {
  py::array_t<std::uint8_t> codes(static_cast<py::ssize_t>(batch.status.size()));
  std::ranges::transform(batch.status, codes.mutable_data(),
                         [](FitStatus status) { return static_cast<std::uint8_t>(status); });
  return codes;
}

DoubleArray evaluate_columns(const std::string& family, const std::vector<ArrayLike>& parameters,
                             const ArrayLike& steps, int threads, const MaybeArray& out) {
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
  const Execution execution = execution_of(threads);
  {
    const LongCall call;
    evaluate_batch(curves, view(t), matrix, execution);
  }
  return result;
}

DoubleArray predict_fit(const Fit& fit, const ArrayLike& steps) {
  const DoubleArray t = borrow(steps, "steps");
  DoubleArray result(t.size());
  CurvesView curves{.family = fit.curve.family};
  for (std::size_t k = 0; k < parameter_names(curves.family).size(); ++k) {
    curves.parameters[k] = {&fit.curve.parameters[k], 1};
  }
  evaluate_batch(curves, view(t), {result.mutable_data(), 1, t.size()}, {.threads = 1});
  return result;
}

ScheduleLaw fit_law(const std::vector<Trace>& traces, const std::string& kind) {
  const ScheduleLawKind which = schedule_law_named(kind);
  const LongCall call;
  return fit_schedule_law(traces, which);
}

py::array_t<double> predict_law(const ScheduleLaw& law, const ArrayLike& step,
                                const ArrayLike& lr) {
  const DoubleArray t = borrow(step, "step"), rate = borrow(lr, "lr");
  return adopt(predict(law, view(t), view(rate)));
}

}  // namespace

/// Values of the parameters of a curve, by their names: a dict in Python.
template <class M>
struct ByParameter {
  std::vector<std::pair<std::string, M>> values{};

  ByParameter() = default;
  ByParameter(Family family, const std::array<M, kMaxParameters>& all) {
    for (const std::string_view name : parameter_names(family)) {
      values.emplace_back(std::string(name), all[values.size()]);
    }
  }
  /// In the order of the family; refuses other names than its own.
  [[nodiscard]] std::array<M, kMaxParameters> of(Family family, const char* field) const {
    std::array<M, kMaxParameters> out{};
    const auto names = parameter_names(family);
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto found = std::ranges::find(values, names[k], &std::pair<std::string, M>::first);
      if (found == values.end() || values.size() != names.size()) {
        throw InputError(std::string(field) + " has not the parameters of " +
                         std::string(name(family)) + ": " + listed(names, std::identity()));
      }
      out[k] = found->second;
    }
    return out;
  }
  friend bool operator==(const ByParameter& a, const ByParameter& b) {
    return std::ranges::equal(a.values, b.values, [](const auto& x, const auto& y) {
      return x.first == y.first && detail::same(x.second, y.second);
    });
  }
};

template <class M>
struct Convert<ByParameter<M>> {
  static std::string type() { return "collections.abc.Mapping[str, " + Convert<M>::type() + "]"; }
  static py::object hint() { return dict_hint("str", std::is_same_v<M, bool> ? "bool" : "float"); }
  static ByParameter<M> in(py::handle value, const Where& where) {
    if (!py::isinstance<py::dict>(value)) where.refuse(value, "a dict of parameters");
    ByParameter<M> out;
    for (const auto& [name, number] : py::reinterpret_borrow<py::dict>(value)) {
      out.values.emplace_back(Convert<std::string>::in(name, where), Convert<M>::in(number, where));
    }
    return out;
  }
  static py::typing::Dict<py::str, M> out(const ByParameter<M>& given) {
    py::typing::Dict<py::str, M> out;
    for (const auto& [name, value] : given.values) out[py::str(name)] = value;
    return out;
  }
};

template <>
struct Names<Family> {
  static Family parse(const std::string& text) { return family_named(text); }
};
template <>
struct Names<FitStatus> {
  static FitStatus parse(const std::string& text) {
    return named(kFitStatuses, text, "fit: status is");
  }
};
template <>
struct Names<ScheduleLawKind> {
  static ScheduleLawKind parse(const std::string& text) { return schedule_law_named(text); }
};

namespace {

void bind_one_fit(py::module_& module) {
  Record<FitScore>(module, "FitScore", "How one family did in the choice by AICc.")
      .required("family", &FitScore::family)
      .required("aicc", &FitScore::aicc)
      .required("status", &FitScore::status)
      .init();
  Record<Fit>(module, "FitRecord")
      .keyword("family", &Fit::curve, &Curve::family)
      .keyword(
          "params",
          [](const Fit& fit) { return ByParameter(fit.curve.family, fit.curve.parameters); },
          [](Fit& fit, const ByParameter<double>& given) {
            fit.curve.parameters = given.of(fit.curve.family, "params");
          })
      .keyword("status", &Fit::status)
      .keyword(
          "stderr",
          [](const Fit& fit) { return ByParameter(fit.curve.family, fit.standard_error); },
          [](Fit& fit, const ByParameter<double>& given) {
            fit.standard_error = given.of(fit.curve.family, "stderr");
          })
      .keyword("covariance", &Fit::covariance)
      .keyword(
          "at_bound", [](const Fit& fit) { return ByParameter(fit.curve.family, fit.at_bound); },
          [](Fit& fit, const ByParameter<bool>& given) {
            fit.at_bound = given.of(fit.curve.family, "at_bound");
          })
      .keyword("sigma", &Fit::sigma)
      .keyword("rss", &Fit::rss)
      .keyword("aicc", &Fit::aicc)
      .keyword("bic", &Fit::bic)
      .keyword("last_step", &Fit::last_step)
      .keyword("points", &Fit::points)
      .keyword("scores", &Fit::scores)
      .cls()
      .def_property_readonly("covariance",
                             [](const Fit& fit) { return Convert<Rows>::out(covariance_of(fit)); })
      .def("predict", &predict_fit, "steps"_a);
  py::dict families;
  for (const Family family : kFamilies) {
    py::list names;
    for (const std::string_view each : parameter_names(family)) names.append(std::string(each));
    families[py::str(std::string(name(family)))] = py::tuple(names);
  }
  module.attr("FAMILIES") = families;
  module.attr("FIT_STATUSES") = names_of(kFitStatuses);
}

void bind_fits(py::module_& module) {
  py::class_<FitBatch>(module, "FitBatchRecord")
      .def_property_readonly("family",
                             [](const FitBatch& batch) { return std::string(name(batch.family)); })
      .def_property_readonly("params", &parameters_of)
      .def_property_readonly("sigma",
                             [](const py::object& self) {
                               return column_of(self.cast<const FitBatch&>().sigma, self);
                             })
      .def_property_readonly("status", &codes_of);
  Record<ScheduleLaw>(module, "ScheduleLawRecord", "The law as the library has it.")
      .keyword("kind", &ScheduleLaw::kind)
      .keyword("status", &ScheduleLaw::status)
      .keyword("floor", &ScheduleLaw::floor)
      .keyword("scale", &ScheduleLaw::scale)
      .keyword("rate", &ScheduleLaw::rate)
      .keyword("drop", &ScheduleLaw::drop)
      .keyword("memory", &ScheduleLaw::memory)
      .keyword("speed", &ScheduleLaw::speed)
      .keyword("shape", &ScheduleLaw::shape)
      .keyword("power", &ScheduleLaw::power)
      .keyword("warmup", &ScheduleLaw::warmup)
      .keyword("sigma", &ScheduleLaw::sigma)
      .keyword("rss", &ScheduleLaw::rss)
      .keyword("points", &ScheduleLaw::points)
      .init()
      .cls()
      .def("predict", &predict_law, "step"_a, "lr"_a);
}

}  // namespace
}  // namespace glidepath::python

void bind_fit(py::module_& module) {
  using namespace glidepath;          // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;  // NOLINT(google-build-using-namespace)

  bind_one_fit(module);
  bind_fits(module);
  module.def("fit", &fit_trace, "step"_a, "loss"_a, "weight"_a, "family"_a, "robust"_a,
             "lowest_floor"_a, "solver"_a, "starts"_a.noconvert(), "from_step"_a);
  module.def("fit_batch", &fit_traces, "steps"_a, "losses"_a, "weights"_a, "family"_a, "robust"_a,
             "lowest_floor"_a, "solver"_a, "starts"_a.noconvert(), "from_step"_a,
             "threads"_a.noconvert());
  module.def("fit_rows", &fit_rows, "step"_a, "loss"_a, "family"_a, "lowest_floor"_a, "from_step"_a,
             "threads"_a.noconvert());
  module.def("fit_schedule_law", &fit_law, "traces"_a, "kind"_a);
  module.def("evaluate_columns", &evaluate_columns, "family"_a, "params"_a, "steps"_a,
             "threads"_a.noconvert(), "out"_a);
  module.def(
      "usable", [](const std::string& status) { return usable(Names<FitStatus>::parse(status)); },
      "status"_a);
}
