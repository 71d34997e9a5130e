// SPDX-License-Identifier: Apache-2.0
// Tiers and the catalogue, scaling, and pairs of jobs on the same GPUs.
#include "glidepath/hardware.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>

#include <pybind11/stl/filesystem.h>

#include "numpy_view.hpp"
#include "plan_types.hpp"

namespace glidepath::python {
namespace {

void bind_tier(py::module_& module) {
  py::class_<Tier>(module, "Tier", R"(A pool of equal GPUs; memory and power are per GPU.

Parameters
----------
name : str
nodes : int
gpus_per_node : int
gpu : str
    Model, for the reader.
memory_gb, host_memory_gb : float
    Of one GPU and of one node; 0 = not known, so that no job is refused for memory.
idle_watts, busy_watts : float
price_per_gpu_hour : float
    In any currency; 0 = not priced.
)")
      .def(py::init([](std::string name, int nodes, int gpus_per_node, std::string gpu,
                       double memory_gb, double host_memory_gb, double idle_watts,
                       double busy_watts, double price_per_gpu_hour) {
             Tier tier{std::move(name), std::move(gpu), nodes,      gpus_per_node,     memory_gb,
                       host_memory_gb,  idle_watts,     busy_watts, price_per_gpu_hour};
             validate(tier);
             return tier;
           }),
           py::arg("name"), py::arg("nodes"), py::arg("gpus_per_node") = 1, py::kw_only(),
           py::arg("gpu") = "", py::arg("memory_gb") = 0.0, py::arg("host_memory_gb") = 0.0,
           py::arg("idle_watts") = 0.0, py::arg("busy_watts") = 0.0,
           py::arg("price_per_gpu_hour") = 0.0)
      .def_static("of", &make_tier, py::arg("name"), py::arg("gpu"), py::arg("nodes"),
                  py::arg("gpus_per_node") = 1,
                  "Tier of a GPU of the catalogue, with its memory and power.")
      .def_readonly("name", &Tier::name)
      .def_readonly("gpu", &Tier::gpu)
      .def_readonly("nodes", &Tier::nodes)
      .def_readonly("gpus_per_node", &Tier::gpus_per_node)
      .def_readonly("memory_gb", &Tier::memory_gb)
      .def_readonly("host_memory_gb", &Tier::host_memory_gb)
      .def_readonly("idle_watts", &Tier::idle_watts)
      .def_readonly("busy_watts", &Tier::busy_watts)
      .def_readonly("price_per_gpu_hour", &Tier::price_per_gpu_hour)
      .def_property_readonly("gpus", &Tier::gpus)
      .def("watts", &watts, py::arg("utilization"), "Power of one GPU at a utilization in [0, 1].")
      .def("__eq__",
           [](const Tier& a, const py::object& b) {
             return py::isinstance<Tier>(b) && a == b.cast<const Tier&>();
           })
      .def("__repr__",
           [](const Tier& t) {
             return text("<Tier ", t.name, ": ", t.nodes, " x ", t.gpus_per_node, " ",
                         t.gpu.empty() ? "GPU" : t.gpu, ">");
           })
      .def(py::pickle(
          [](const Tier& t) {
            return py::make_tuple(t.name, t.gpu, t.nodes, t.gpus_per_node, t.memory_gb,
                                  t.host_memory_gb, t.idle_watts, t.busy_watts,
                                  t.price_per_gpu_hour);
          },
          [](const py::tuple& t) {
            return Tier{t[0].cast<std::string>(), t[1].cast<std::string>(), t[2].cast<int>(),
                        t[3].cast<int>(),         t[4].cast<double>(),      t[5].cast<double>(),
                        t[6].cast<double>(),      t[7].cast<double>(),      t[8].cast<double>()};
          }));
  module.def(
      "catalogue",
      [] {
        py::list rows;
        for (const Gpu& g : catalogue()) {
          rows.append(py::dict(
              py::arg("name") = g.name, py::arg("vendor") = g.vendor,
              py::arg("architecture") = g.architecture, py::arg("year") = g.year,
              py::arg("memory_gb") = g.memory_gb, py::arg("bandwidth_gb_s") = g.bandwidth_gb_s,
              py::arg("busy_watts") = g.busy_watts, py::arg("idle_watts") = g.idle_watts,
              py::arg("fp32_tflops") = g.fp32_tflops, py::arg("fp16_tflops") = g.fp16_tflops,
              py::arg("relative_speed") = g.relative_speed, py::arg("source") = g.source));
        }
        return rows;
      },
      "Every GPU of the catalogue as a dict.");
}

void bind_scaling(py::module_& module) {
  py::class_<Scaling>(module, "Scaling", R"(Step time of a gang as a function of GPUs and nodes.

Made by `fit_scaling`. A sum of non-negative terms (compute, communication inside a node and between
nodes, other) times a correction that follows the measurements nearby.
)")
      .def(
          "seconds",
          [](const Scaling& s, int gpus, int nodes, double batch_per_gpu) {
            return step_seconds(s, gpus, nodes, batch_per_gpu);
          },
          py::arg("gpus"), py::arg("nodes") = 1, py::arg("batch_per_gpu") = 1.0,
          "Seconds per step.")
      .def_readonly("typical_error", &Scaling::typical_error,
                    "Median relative error on the measurements that were fitted.")
      .def_property_readonly("terms",
                             [](const Scaling& s) {
                               py::dict terms;
                               for (int i = 0; i < Scaling::kTerms; ++i) {
                                 terms[py::str(std::string(scaling_term(i)))] =
                                     s.seconds[static_cast<std::size_t>(i)];
                               }
                               return terms;
                             })
      .def("__repr__",
           [](const Scaling& s) {
             return text("<Scaling: ", s.measured.size(), " measurements, typical error ",
                         100 * s.typical_error, " %>");
           })
      .def(py::pickle(
          [](const Scaling& s) {
            std::vector<std::tuple<int, int, double, double>> measured;
            for (const StepTime& m : s.measured) {
              measured.emplace_back(m.gpus, m.nodes, m.batch_per_gpu, m.seconds);
            }
            return py::make_tuple(measured);
          },
          [](const py::tuple& t) {
            std::vector<StepTime> measured;
            for (const auto& [k, n, b, s] :
                 t[0].cast<std::vector<std::tuple<int, int, double, double>>>()) {
              measured.push_back({k, n, b, s});
            }
            return fit_scaling(measured);
          }));
  module.def(
      "fit_scaling",
      [](const py::object& gpus, const py::object& seconds, const py::object& nodes,
         const py::object& batch_per_gpu) {
        const Int64Array k = borrow_int64(gpus, "gpus");
        const DoubleArray s = borrow(seconds, "seconds");
        const Int64Array n = nodes.is_none() ? Int64Array(0) : borrow_int64(nodes, "nodes");
        const DoubleArray b = borrow_or_empty(batch_per_gpu, "batch_per_gpu");
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
        const py::gil_scoped_release release;
        return fit_scaling(measured);
      },
      py::arg("gpus"), py::arg("seconds"), py::kw_only(), py::arg("nodes") = py::none(),
      py::arg("batch_per_gpu") = py::none(), R"(Fit how step time falls with GPUs and nodes.

Least squares in relative error by Ceres, every term at least 0.

Parameters
----------
gpus : array_like of int, shape (n,)
    Of each measured gang.
seconds : array_like of float, shape (n,)
    Its time per step.
nodes : array_like of int, optional
    1 where it is not given.
batch_per_gpu : array_like of float, optional
    Global batch / gpus where that changes; 1 where it is not given.

Returns
-------
Scaling

Raises
------
InputError
    Naming the measurement: a count below 1, a time not above 0, more nodes than GPUs.
)");
}

void bind_pairs(py::module_& module) {
  py::class_<Profile>(module, "Profile", R"(What is known of a job that runs alone.

Parameters
----------
sm_activity : float
    Share of the multiprocessors busy, averaged over time, in [0, 1].
memory_gb : float
    Per GPU.
kind : str
    As measured pairs name it; empty = of no measured kind.
)")
      .def(py::init([](double sm_activity, double memory_gb, std::string kind) {
             return Profile{sm_activity, memory_gb, std::move(kind)};
           }),
           py::arg("sm_activity") = 1.0, py::arg("memory_gb") = 0.0, py::arg("kind") = "")
      .def_readonly("sm_activity", &Profile::sm_activity)
      .def_readonly("memory_gb", &Profile::memory_gb)
      .def_readonly("kind", &Profile::kind)
      .def("__eq__",
           [](const Profile& a, const py::object& b) {
             return py::isinstance<Profile>(b) && a == b.cast<const Profile&>();
           })
      .def("__repr__",
           [](const Profile& p) {
             return text("<Profile ", p.kind.empty() ? "of a job" : p.kind, ": activity ",
                         p.sm_activity, ", ", p.memory_gb, " GB>");
           })
      .def(py::pickle(
          [](const Profile& p) { return py::make_tuple(p.sm_activity, p.memory_gb, p.kind); },
          [](const py::tuple& t) {
            return Profile{t[0].cast<double>(), t[1].cast<double>(), t[2].cast<std::string>()};
          }));

  py::class_<KindPair>(module, "KindPair", R"(Two kinds of job together on a kind of GPU.

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
)")
      .def(py::init([](std::string gpu, std::string first, std::string second,
                       double first_slowdown, double second_slowdown, const std::string& sharing) {
             return KindPair{std::move(gpu),    sharing_named(sharing), std::move(first),
                             std::move(second), first_slowdown,         second_slowdown};
           }),
           py::arg("gpu"), py::arg("first"), py::arg("second"), py::arg("first_slowdown"),
           py::arg("second_slowdown"), py::kw_only(), py::arg("sharing") = "naive")
      .def_readonly("gpu", &KindPair::gpu)
      .def_readonly("first", &KindPair::first)
      .def_readonly("second", &KindPair::second)
      .def_readonly("first_slowdown", &KindPair::first_slowdown)
      .def_readonly("second_slowdown", &KindPair::second_slowdown)
      .def_property_readonly("sharing",
                             [](const KindPair& p) { return std::string(name(p.sharing)); })
      .def_readonly("predicted", &KindPair::predicted, "Not measured.")
      .def("__eq__",
           [](const KindPair& a, const py::object& b) {
             return py::isinstance<KindPair>(b) && a == b.cast<const KindPair&>();
           })
      .def("__repr__",
           [](const KindPair& p) {
             return text("<KindPair on ", p.gpu, " (", std::string(name(p.sharing)), "): ", p.first,
                         " slower by ", p.first_slowdown, ", ", p.second, " by ", p.second_slowdown,
                         p.predicted ? ", predicted>" : ">");
           })
      .def(py::pickle(
          [](const KindPair& p) {
            return py::make_tuple(p.gpu, std::string(name(p.sharing)), p.first, p.second,
                                  p.first_slowdown, p.second_slowdown, p.predicted);
          },
          [](const py::tuple& t) {
            return KindPair{t[0].cast<std::string>(), sharing_named(t[1].cast<std::string>()),
                            t[2].cast<std::string>(), t[3].cast<std::string>(),
                            t[4].cast<double>(),      t[5].cast<double>(),
                            t[6].cast<bool>()};
          }));

  py::class_<JobKind>(module, "JobKind", R"(What tells a kind of job from others, measured alone.

Parameters
----------
kind, gpu : str
model : str
    What kinds have in common that differ in batch size only.
features : array_like, shape (features,)
    Finite and dimensionless, the same for all kinds on this GPU: logarithms of the batch size,
    of the time of a step, and so on.
)")
      .def(py::init([](std::string kind, std::string gpu, std::string model,
                       const py::object& features) {
             const DoubleArray array = borrow_or_empty(features, "features");
             return JobKind{std::move(kind),
                            std::move(gpu),
                            std::move(model),
                            {array.data(), array.data() + array.size()}};
           }),
           py::arg("kind"), py::arg("gpu"), py::arg("model") = "", py::arg("features") = py::none())
      .def_readonly("kind", &JobKind::kind)
      .def_readonly("gpu", &JobKind::gpu)
      .def_readonly("model", &JobKind::model)
      .def_readonly("features", &JobKind::features)
      .def("__repr__", [](const JobKind& k) {
        return text("<JobKind ", k.kind, " on ", k.gpu, ": ", k.features.size(), " features>");
      });

  py::class_<Pairs>(module, "Pairs",
                    "Measured pairs and those learned from them. Made by `learn_pairs`.")
      .def_readonly("rows", &Pairs::rows, "Each pair, both ways round.")
      .def("__len__", [](const Pairs& p) { return p.rows.size(); })
      .def("__repr__",
           [](const Pairs& p) {
             const auto predicted = std::count_if(
                 p.rows.begin(), p.rows.end(), [](const KindPair& row) { return row.predicted; });
             return text("<Pairs: ", p.rows.size() - static_cast<std::size_t>(predicted),
                         " measured, ", predicted, " predicted>");
           })
      .def("__eq__",
           [](const Pairs& a, const py::object& b) {
             return py::isinstance<Pairs>(b) && a.rows == b.cast<const Pairs&>().rows;
           })
      .def(
          py::pickle([](const Pairs& p) { return py::make_tuple(p.rows); },
                     [](const py::tuple& t) { return Pairs{t[0].cast<std::vector<KindPair>>()}; }));

  module.def(
      "read_pairs", [](const std::filesystem::path& file) { return read_pairs(file); },
      py::arg("file"), R"(Read measured pairs of jobs on the same GPUs.

Parameters
----------
file : path
    CSV ``gpu,job_a,job_b,slowdown_a,slowdown_b``, plain or gzip, perhaps with ``sharing``.

Returns
-------
list of KindPair

Raises
------
IoError
    Naming file and line.
)");
  module.def(
      "learn_pairs",
      [](const std::vector<KindPair>& measured, const std::vector<JobKind>& alone) {
        const py::gil_scoped_release release;
        return learn_pairs(measured, alone);
      },
      py::arg("measured"), py::arg("alone") = py::list(), R"(Complete a table of measured pairs.

For each GPU and way of sharing with measured pairs, the other pairs of the kinds in `alone` are
predicted from kinds of the same model or with features alike, by a Gaussian process.

Parameters
----------
measured : list of KindPair
alone : list of JobKind
    Every kind that may be predicted, measured or not.

Returns
-------
Pairs

Raises
------
InputError
    A slowdown not above 0, one pair with two results, features that do not match.
)");
  module.def(
      "shared_speeds",
      [](const Profile& first, const Profile& second, const std::string& sharing,
         const std::string& gpu, double gpu_memory_gb, const py::object& pairs) {
        const Tier tier{.gpu = gpu, .memory_gb = gpu_memory_gb};
        const SharedSpeeds speeds =
            shared_speeds(first, second, sharing_named(sharing), tier, pairs_or_null(pairs));
        return py::make_tuple(speeds.first, speeds.second);
      },
      py::arg("first"), py::arg("second"), py::arg("sharing"), py::arg("gpu"), py::arg("gpu_gb"),
      py::arg("pairs"), "Speeds of a pair.");
}

}  // namespace
}  // namespace glidepath::python

void bind_hardware(pybind11::module_& module) {
  using namespace glidepath::python;
  bind_tier(module);
  bind_scaling(module);
  bind_pairs(module);
}
