// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include "forecast_records.hpp"

namespace glidepath::python {
namespace {

DoubleArray rates_at(const Schedule& schedule, const DoubleArray& steps) {
  DoubleArray rates(steps.size());
  for (py::ssize_t i = 0; i < steps.size(); ++i) {
    rates.mutable_data()[i] = schedule.at(steps.data()[i]);
  }
  return rates;
}

}  // namespace
}  // namespace glidepath::python

void bind_schedule(pybind11::module_& module) {
  using namespace glidepath;           // NOLINT(google-build-using-namespace)
  using namespace glidepath::python;   // NOLINT(google-build-using-namespace)
  using namespace pybind11::literals;  // NOLINT(google-build-using-namespace): "name"_a

  Record<Schedule>(module, "ScheduleRecord")
      .shown("step", &Schedule::step)
      .shown("lr", &Schedule::lr)
      .init(&Schedule::validate)
      .cls()
      .def_static("constant", &Schedule::constant, "lr"_a)
      .def_static(
          "cosine",
          [](double peak, double steps, double warmup, double final) {
            return Schedule::cosine(peak, steps, {.warmup = warmup, .final = final});
          },
          "peak"_a, "steps"_a, py::kw_only(), "warmup"_a, "final"_a)
      .def_static(
          "linear",
          [](double peak, double steps, double warmup, double final) {
            return Schedule::linear(peak, steps, {.warmup = warmup, .final = final});
          },
          "peak"_a, "steps"_a, py::kw_only(), "warmup"_a, "final"_a)
      .def_static(
          "wsd",
          [](double peak, double steps, double warmup, double decay, double final) {
            return Schedule::wsd(peak, steps, {.warmup = warmup, .decay = decay, .final = final});
          },
          "peak"_a, "steps"_a, py::kw_only(), "warmup"_a, "decay"_a, "final"_a)
      .def_static(
          "logged", [](const AnyTrace& run) { return Schedule::logged(trace_of(run)); }, "run"_a)
      .def("at", &rates_at, "steps"_a);
}
