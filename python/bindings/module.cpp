// SPDX-License-Identifier: Apache-2.0
// glidepath._core: the C++ stages as Python sees them. Names and documentation that users meet live
// in python/glidepath/_<stage>.py; this module is private.
#include "glidepath/error.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/version.hpp"

#include <optional>
#include <utility>

#include <pybind11/pybind11.h>

#include "long_call.hpp"
#include "record.hpp"

namespace py = pybind11;

#define GLIDEPATH_STAGE(stage) void bind_##stage(py::module_& module);
#include "stages.inc"
#undef GLIDEPATH_STAGE

namespace {

using glidepath::python::Anything;

/// An error of C++ that Python knows as glidepath.<name>.
template <class Error>
void add_error(py::module_& module, const char* name, const char* doc, PyObject* base) {
  py::object error = py::register_exception<Error>(py::module_::import("glidepath"), name, base);
  error.attr("__doc__") = doc;
  module.attr(name) = error;
}

/// An Interruptible of the thread that enters it, whose `poll` is Python's.
class Guarded {
 public:
  using Poll = py::typing::Callable<Anything()>;
  explicit Guarded(Poll poll) : poll_(std::move(poll)) {}
  void enter() {
    interruptible_.emplace([this] {
      const glidepath::python::Hold hold;
      glidepath::python::called(poll_);
    });
  }
  void exit(const Anything& /*type*/, const Anything& /*error*/, const Anything& /*trace*/) {
    interruptible_.reset();
  }

 private:
  Poll poll_;
  std::optional<glidepath::Interruptible> interruptible_;
};

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ library behind glidepath; private.";
  module.attr("__version__") = GLIDEPATH_VERSION;

  add_error<glidepath::InputError>(
      module, "InputError", "The caller broke a documented precondition; nothing was computed.",
      PyExc_ValueError);
  add_error<glidepath::IoError>(
      module, "IoError", "A file could not be read, parsed or written; the message names it.",
      PyExc_OSError);

  py::class_<Guarded>(module, "Interruptible",
                      "Asks `poll` every 50 ms in calls of the thread that enters it, unless it is "
                      "the main one; what it raises leaves the call.")
      .def(py::init<Guarded::Poll>(), py::arg("poll"))
      .def("__enter__", &Guarded::enter)
      .def("__exit__", &Guarded::exit);
  module.def("best_isa", &glidepath::best_isa, "Instruction set that the batch kernels use here.");
  module.def("available_threads", &glidepath::available_threads,
             "Number of threads that threads=0 means here.");

#define GLIDEPATH_STAGE(stage) bind_##stage(module);
#include "stages.inc"
#undef GLIDEPATH_STAGE
  glidepath::python::refuse_uninitialized(module);
}
