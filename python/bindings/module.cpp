// SPDX-License-Identifier: Apache-2.0
// glidepath._core: the C++ stages as Python sees them. Names and documentation that users meet live
// in python/glidepath/_<stage>.py; this module is private.
#include "glidepath/error.hpp"
#include "glidepath/execution.hpp"
#include "glidepath/version.hpp"

#include <exception>

#include <pybind11/pybind11.h>

#include "record.hpp"

namespace py = pybind11;

#define GLIDEPATH_STAGE(stage) void bind_##stage(py::module_& module);
#include "stages.inc"
#undef GLIDEPATH_STAGE

namespace {

// Live as long as the interpreter: the translator below cannot capture.
PyObject* input_error = nullptr;
PyObject* io_error = nullptr;

PyObject* add_error(py::module_& module, const char* name, const char* doc, PyObject* base) {
  const std::string full_name = std::string("glidepath.") + name;
  PyObject* error = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, base, nullptr);
  if (error == nullptr) throw py::error_already_set();
  module.attr(name) = py::handle(error);
  return error;
}

void translate(std::exception_ptr pending) {
  if (!pending) return;
  try {
    std::rethrow_exception(pending);
  } catch (const glidepath::InputError& error) {
    PyErr_SetString(input_error, error.what());
  } catch (const glidepath::IoError& error) {
    PyErr_SetString(io_error, error.what());
  }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ library behind glidepath; private.";
  module.attr("__version__") = GLIDEPATH_VERSION;

  input_error = add_error(module, "InputError",
                          "The caller broke a documented precondition; nothing was computed.",
                          PyExc_ValueError);
  io_error = add_error(module, "IoError",
                       "A file could not be read, parsed or written; the message names it.",
                       PyExc_OSError);
  py::register_exception_translator(&translate);

  module.def("best_isa", &glidepath::best_isa, "Instruction set that the batch kernels use here.");
  module.def("available_threads", &glidepath::available_threads,
             "Number of threads that threads=0 means here.");

#define GLIDEPATH_STAGE(stage) bind_##stage(module);
#include "stages.inc"
#undef GLIDEPATH_STAGE
  glidepath::python::refuse_uninitialized(module);
}
