// SPDX-License-Identifier: Apache-2.0
// Tiers and the catalogue, scaling, and pairs of jobs on the same GPUs.
#include "glidepath/hardware.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "long_call.hpp"
#include "numpy_view.hpp"
#include "path.hpp"
#include "plan_types.hpp"

namespace glidepath::python {

/// An argument of a method that is refused in a sentence where it has another type than T.
template <class T>
class Argument : public py::object {
 public:
  PYBIND11_OBJECT_DEFAULT(Argument, py::object, anything)
  [[nodiscard]] T of(std::string_view method, std::string_view name) const {
    return Convert<T>::in(*this, Where{method, name});
  }

 private:
  static bool anything(PyObject* object) { return object != nullptr; }
};

}  // namespace glidepath::python

template <>
struct pybind11::detail::handle_type_name<glidepath::python::Argument<double>> {
  static constexpr auto name = const_name("typing.SupportsFloat | typing.SupportsIndex");
};
template <>
struct pybind11::detail::handle_type_name<glidepath::python::Argument<int>> {
  static constexpr auto name = const_name("typing.SupportsInt | typing.SupportsIndex");
};
template <>
struct pybind11::detail::handle_type_name<glidepath::python::Argument<std::string>> {
  static constexpr auto name = const_name("str");
};

namespace glidepath::python {

/// Coefficients of a scaling: a dict by term in Python.
template <>
struct Convert<decltype(Scaling::terms)> {
  static std::string type() { return "collections.abc.Mapping[str, float]"; }
  static py::object hint() { return dict_hint("str", "float"); }
  static decltype(Scaling::terms) in(py::handle value, const Where& where) {
    decltype(Scaling::terms) terms{};
    for (int i = 0; i < Scaling::kTerms; ++i) {
      const py::object term = value[py::cast(scaling_term(i))];
      terms[static_cast<std::size_t>(i)] = Convert<double>::in(term, where);
    }
    return terms;
  }
  static NumbersByName out(const decltype(Scaling::terms)& terms) {
    NumbersByName by_name;
    for (int i = 0; i < Scaling::kTerms; ++i) {
      by_name[py::cast(scaling_term(i))] = terms[static_cast<std::size_t>(i)];
    }
    return by_name;
  }
};

namespace {

using Real = Argument<double>;
using Whole = Argument<int>;
using Word = Argument<std::string>;

Tier tier_of(const Word& name, const Word& gpu, const Whole& nodes, const Whole& gpus_per_node) {
  constexpr std::string_view kMethod = "Tier.of";
  return make_tier(name.of(kMethod, "name"), gpu.of(kMethod, "gpu"), nodes.of(kMethod, "nodes"),
                   gpus_per_node.of(kMethod, "gpus_per_node"));
}

double watts_at(const Tier& tier, const Real& utilization) {
  const double share = utilization.of("Tier.watts", "utilization");
  if (!(share >= 0 && share <= 1)) {
    throw InputError(text("Tier.watts: utilization is ", share, ", expected 0 to 1"));
  }
  return watts(tier, share);
}

double utilization_at(const Tier& tier, const Real& watts) {
  return utilization(tier, watts.of("Tier.utilization", "watts"));
}

double efficiency_at(const BatchLimits& limits, const Real& batch) {
  const double examples = batch.of("BatchLimits.statistical_efficiency", "batch");
  if (!(examples > 0 && std::isfinite(examples))) {
    throw InputError(text("BatchLimits.statistical_efficiency: batch is ", examples,
                          ", expected more than 0 examples"));
  }
  return statistical_efficiency(limits, examples);
}

double step_seconds_of(const Scaling& scaling, const Whole& gpus, const Whole& nodes,
                       const Real& batch_per_gpu) {
  constexpr std::string_view kMethod = "Scaling.step_seconds";
  return step_seconds(scaling, gpus.of(kMethod, "gpus"), nodes.of(kMethod, "nodes"),
                      batch_per_gpu.of(kMethod, "batch_per_gpu"));
}

void bind_tier(py::module_& module) {
  Record<Tier>(module, "Tier", R"(A pool of equal GPUs; memory and power are per GPU.

Parameters
----------
name : str
nodes : int
gpus_per_node : int
gpu : str
    Model, as `KindPair.gpu` names it.
memory_gb, host_memory_gb : float
    Memory of one GPU and of one node; 0 = not known, so that no job is refused for memory.
idle_watts, busy_watts : float
    Power of one GPU that does nothing and of one at full utilization, in W.
price_per_gpu_hour : float
    In any currency; 0 = not priced.
)")
      .required("name", &Tier::name)
      .required("nodes", &Tier::nodes)
      .optional("gpus_per_node", &Tier::gpus_per_node)
      .keyword("gpu", &Tier::gpu)
      .keyword("memory_gb", &Tier::memory_gb)
      .keyword("host_memory_gb", &Tier::host_memory_gb)
      .keyword("idle_watts", &Tier::idle_watts)
      .keyword("busy_watts", &Tier::busy_watts)
      .keyword("price_per_gpu_hour", &Tier::price_per_gpu_hour)
      .init([](const Tier& tier) { validate(tier); })
      .cls()
      .def_static("of", &tier_of, py::arg("name"), py::arg("gpu"), py::arg("nodes"),
                  py::arg("gpus_per_node") = 1,
                  R"(Tier of a GPU of the catalogue, with its memory and power.

Raises
------
InputError
    Naming the GPU that is not in the catalogue.
)")
      .def_property_readonly("gpus", &Tier::gpus)
      .def("watts", &watts_at, py::arg("utilization"),
           R"(Power of one GPU at a utilization in [0, 1].

Raises
------
InputError
    Where the utilization is outside.
)")
      .def("utilization", &utilization_at, py::arg("watts"),
           R"(Utilization at which one GPU draws this power.

The inverse of `watts`, for power that was measured: ``tier.utilization(profile.mean_watts)`` is the
utilization that `Option`, `options_of` and workloads take.

Raises
------
InputError
    Where the power is not between the idle and the busy one of the tier.
)");
  Record<Gpu>(module, "Gpu", R"(A GPU of the catalogue as its vendor describes it.

0 where a figure is not published; `relative_speed` is measured training speed, V100 SXM2 = 1.
)")
      .keyword("name", &Gpu::name)
      .keyword("vendor", &Gpu::vendor)
      .keyword("architecture", &Gpu::architecture)
      .keyword("year", &Gpu::year)
      .keyword("memory_gb", &Gpu::memory_gb)
      .keyword("bandwidth_gb_s", &Gpu::bandwidth_gb_s)
      .keyword("busy_watts", &Gpu::busy_watts)
      .keyword("idle_watts", &Gpu::idle_watts)
      .keyword("fp32_tflops", &Gpu::fp32_tflops)
      .keyword("fp16_tflops", &Gpu::fp16_tflops)
      .keyword("relative_speed", &Gpu::relative_speed)
      .keyword("source", &Gpu::source);
  module.def(
      "catalogue", [] { return std::vector<Gpu>(catalogue().begin(), catalogue().end()); },
      "Every GPU of the catalogue, in its order.");
}

void bind_scaling(py::module_& module) {
  Record<StepTime>(module, "StepTime", R"(One measured step of a gang.

Parameters
----------
gpus : int
seconds : float
nodes : int
batch_per_gpu : float
    Global batch / gpus, or 1 where it does not change.
)")
      .required("gpus", &StepTime::gpus)
      .required("seconds", &StepTime::seconds)
      .keyword("nodes", &StepTime::nodes)
      .keyword("batch_per_gpu", &StepTime::batch_per_gpu)
      .init();
  Record<Scaling>(module, "Scaling", R"(Step time of a gang as a function of GPUs and nodes.

Made by `fit_scaling`. A sum of non-negative terms (compute, communication inside a node and between
nodes, other) times a correction that follows the measurements nearby.

Attributes
----------
terms : dict of str to float
    Coefficient of each term, in seconds per unit of the term.
measured : list of StepTime
correction : ndarray, shape (measured,)
    Weight of each measurement in the logarithm of the correction, a pure number.
typical_error : float
    Median relative error on the measurements that were fitted.
)")
      .keyword("terms", &Scaling::terms)
      .keyword("measured", &Scaling::measured)
      .keyword("correction", &Scaling::correction)
      .keyword("typical_error", &Scaling::typical_error)
      .repr([](const Scaling& s) {
        return text("<Scaling: ", s.measured.size(), " measurements, typical error ",
                    100 * s.typical_error, " %>");
      })
      .cls()
      .def("step_seconds", &step_seconds_of, py::arg("gpus"), py::arg("nodes") = 1,
           py::arg("batch_per_gpu") = 1.0, R"(Seconds per step of a gang.

Raises
------
InputError
    GPUs or nodes below 1, more nodes than GPUs, a batch that is not above 0.
)");
}

void bind_goodput(py::module_& module) {
  Record<BatchLimits>(module, "BatchLimits", R"(The batches that a job may take.

Parameters
----------
reference : float
    The batch that its user chose, in examples of all GPUs together; none is smaller.
largest : float
    The largest batch, in examples of all GPUs together.
largest_per_gpu : float
    Examples that the memory holds in one pass; larger batches take several passes.
noise_scale : float
    Summed variance of the gradient of one example over the square of its mean, a number of
    examples (McCandlish et al. 2018): how much is learned of a large batch.
)")
      .required("reference", &BatchLimits::reference)
      .required("largest", &BatchLimits::largest)
      .keyword("largest_per_gpu", &BatchLimits::largest_per_gpu)
      .keyword("noise_scale", &BatchLimits::noise_scale)
      .init()
      .cls()
      .def("statistical_efficiency", &efficiency_at, py::arg("batch"),
           R"(Progress by an example of a batch over that by one of the reference batch.

``(noise_scale + reference) / (noise_scale + batch)``: Pollux, Qiao et al., OSDI 2021.

Raises
------
InputError
    Where the batch is not above 0 or not finite.
)");
  Record<BatchChoice>(module, "BatchChoice", R"(A batch of a gang and what it brings.

Attributes
----------
batch : float
    Examples of all GPUs together: passes x gpus x per_gpu.
per_gpu : float
    Examples of a GPU in one pass.
passes : int
    The number of passes in a step: gradients are added up before GPUs exchange them.
step_s : float
    Time of a step.
efficiency : float
    `BatchLimits.statistical_efficiency` of the batch, a share of 1.
steps_per_s : float
    Goodput: steps of the reference batch that would learn as much.
)")
      .keyword("batch", &BatchChoice::batch)
      .keyword("per_gpu", &BatchChoice::per_gpu)
      .keyword("passes", &BatchChoice::passes)
      .keyword("step_s", &BatchChoice::step_s)
      .keyword("efficiency", &BatchChoice::efficiency)
      .keyword("steps_per_s", &BatchChoice::steps_per_s);
  module.def(
      "best_batch",
      [](const Scaling& scaling, const BatchLimits& limits, int gpus, int nodes) {
        return best_batch(scaling, gpus, nodes, limits);
      },
      py::arg("scaling"), py::arg("limits"), py::kw_only(), py::arg("gpus").noconvert() = 1,
      py::arg("nodes").noconvert() = 1, "Choose the batch of a gang.");
}

void bind_fit_scaling(py::module_& module) {
  module.def(
      "fit_scaling",
      [](const ArrayLike& gpus, const ArrayLike& seconds, const std::optional<ArrayLike>& nodes,
         const std::optional<ArrayLike>& batch_per_gpu) {
        const Int64Array k = borrow_int64(gpus, "gpus");
        const DoubleArray s = borrow(seconds, "seconds");
        const Int64Array n = nodes ? borrow_int64(*nodes, "nodes") : Int64Array(0);
        const DoubleArray b =
            batch_per_gpu ? borrow(*batch_per_gpu, "batch_per_gpu") : DoubleArray(0);
        const auto fits = [&](py::ssize_t size) { return size == 0 || size == k.size(); };
        if (s.size() != k.size() || !fits(n.size()) || !fits(b.size())) {
          throw InputError("fit_scaling: columns of different length");
        }
        std::vector<StepTime> measured;
        for (py::ssize_t i = 0; i < k.size(); ++i) {
          const auto count = [](std::int64_t x) {
            return static_cast<int>(std::clamp<std::int64_t>(x, -1, 1 << 30));
          };
          measured.push_back(
              {count(k.at(i)), n.size() ? count(n.at(i)) : 1, b.size() ? b.at(i) : 1.0, s.at(i)});
        }
        const LongCall call;
        return fit_scaling(measured);
      },
      py::arg("gpus"), py::arg("seconds"), py::kw_only(), py::arg("nodes") = py::none(),
      py::arg("batch_per_gpu") = py::none(), "Fit how step time falls with GPUs and nodes.");
}

void bind_kinds(py::module_& module) {
  Record<Profile>(module, "Profile", R"(What is known of a job that runs alone.

Parameters
----------
sm_activity : float
    Share of the multiprocessors busy, averaged over time, in [0, 1].
memory_gb : float
    Per GPU.
kind : str
    As measured pairs name it; empty = of no measured kind.
memory_activity : float
    Share of the time in which the card's memory is read or written, in [0, 1]; negative = not
    known.
step_seconds : float
    Time of a step; 0 = not known, here and below.
mean_watts, peak_watts : float
    Power of one GPU.
step_joules : float
    Energy of one step, of all GPUs together.
)")
      .optional("sm_activity", &Profile::sm_activity)
      .optional("memory_gb", &Profile::memory_gb)
      .optional("kind", &Profile::kind)
      .keyword("memory_activity", &Profile::memory_activity)
      .keyword("step_seconds", &Profile::step_seconds)
      .keyword("mean_watts", &Profile::mean_watts)
      .keyword("peak_watts", &Profile::peak_watts)
      .keyword("step_joules", &Profile::step_joules)
      .init();
  Record<KindPair>(module, "KindPair", R"(Two kinds of job together on a kind of GPU.

Parameters
----------
gpu : str
    As in `Tier.gpu`.
first, second : str
    Kinds, as in `Job.kind`.
first_slowdown, second_slowdown : float
    Time of a step together over that alone: 1 = as fast as alone, inf = they did not run.
sharing : str
    ``naive`` (time slices), ``mps`` or ``mig``.
predicted : bool
    Learned, not measured.
)")
      .required("gpu", &KindPair::gpu)
      .required("first", &KindPair::first)
      .required("second", &KindPair::second)
      .required("first_slowdown", &KindPair::first_slowdown)
      .required("second_slowdown", &KindPair::second_slowdown)
      .keyword("sharing", &KindPair::sharing)
      .keyword("predicted", &KindPair::predicted)
      .init();
}

void bind_pairs(py::module_& module) {
  Record<JobKind>(module, "JobKind", R"(What tells a kind of job from others, measured alone.

Parameters
----------
kind, gpu : str
model : str
    What kinds have in common that differ in batch size only.
features : array_like, shape (features,)
    Finite and dimensionless, the same for all kinds on this GPU: logarithms of the batch size,
    of the time of a step, and so on.
)")
      .required("kind", &JobKind::kind)
      .required("gpu", &JobKind::gpu)
      .optional("model", &JobKind::model)
      .optional("features", &JobKind::features)
      .init();
  Record<Pairs>(module, "Pairs", R"(Measured pairs and those learned from them.

Made by `learn_pairs`; `rows` has each pair both ways round.
)")
      .keyword("rows", &Pairs::rows)
      .repr([](const Pairs& p) {
        const auto predicted = std::count_if(p.rows.begin(), p.rows.end(),
                                             [](const KindPair& row) { return row.predicted; });
        return text("<Pairs: ", p.rows.size() - static_cast<std::size_t>(predicted), " measured, ",
                    predicted, " predicted>");
      })
      .cls()
      .def("__len__", [](const Pairs& p) { return p.rows.size(); });
}

void bind_learning(py::module_& module) {
  module.def("read_pairs", &read_pairs, py::arg("file"), py::call_guard<LongCall>(),
             "Read measured pairs of jobs on the same GPUs.");
  module.def(
      "learn_pairs",
      [](const std::vector<KindPair>& measured, const std::vector<JobKind>& alone) {
        const LongCall call;
        return learn_pairs(measured, alone);
      },
      py::arg("measured"), py::arg("alone") = py::list(), "Complete a table of measured pairs.");
}

void bind_shared_speeds(py::module_& module) {
  Record<SharedSpeeds>(module, "SharedSpeedsRecord", "Speeds of two jobs on the same GPUs.")
      .keyword("first", &SharedSpeeds::first)
      .keyword("second", &SharedSpeeds::second);
  module.def(
      "shared_speeds",
      [](const Profile& first, const Profile& second, const std::string& sharing,
         const std::string& gpu, double gpu_memory_gb, const std::optional<Pairs>& pairs) {
        const Tier tier{.gpu = gpu, .memory_gb = gpu_memory_gb};
        return shared_speeds(first, second, sharing_named(sharing), tier,
                             pairs ? &*pairs : nullptr);
      },
      py::arg("first"), py::arg("second"), py::arg("sharing"), py::arg("gpu"),
      py::arg("gpu_memory_gb"), py::arg("pairs"), "Speeds of a pair.");
}

}  // namespace
}  // namespace glidepath::python

void bind_hardware(pybind11::module_& module) {
  using namespace glidepath::python;
  bind_tier(module);
  bind_scaling(module);
  bind_fit_scaling(module);
  bind_goodput(module);
  bind_kinds(module);
  bind_pairs(module);
  bind_learning(module);
  bind_shared_speeds(module);
}
