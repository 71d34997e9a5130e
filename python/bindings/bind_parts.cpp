// SPDX-License-Identifier: Apache-2.0
// Pods on parts of GPUs, mixes of jobs on one, and its slices.
#include "glidepath/parts.hpp"

#include <optional>
#include <string>
#include <vector>

#include "long_call.hpp"
#include "numpy_view.hpp"
#include "record.hpp"

namespace glidepath::python {
namespace {

void bind_pods(py::module_& module) {
  Record<Pod>(module, "Pod", R"(What a pod asks of one node.

Parameters
----------
name : str
cpu_milli : int
    Thousandths of a CPU.
memory_mib : int
    Main memory, MiB.
gpus : int
gpu_milli : int
    Thousandths of each GPU, 1 to 1000; below 1000 only with one GPU.
gpu_models : sequence of str
    Allowed models of GPU; empty = any.
)")
      .optional("name", &Pod::name)
      .keyword("cpu_milli", &Pod::cpu_milli)
      .keyword("memory_mib", &Pod::memory_mib)
      .keyword("gpus", &Pod::gpus)
      .keyword("gpu_milli", &Pod::gpu_milli)
      .keyword("gpu_models", &Pod::gpu_models)
      .init();
  Record<FreeNode>(module, "FreeNode", R"(What is free on a node.

Parameters
----------
name : str
cpu_milli : int
    Thousandths of a CPU.
memory_mib : int
    Main memory, MiB.
gpu_milli : sequence of int
    Free thousandths of each GPU, 0 to 1000.
gpu_model : str
gpu_pods : sequence of int
    Pods that each GPU has already; empty = none on any.
)")
      .optional("name", &FreeNode::name)
      .keyword("cpu_milli", &FreeNode::cpu_milli)
      .keyword("memory_mib", &FreeNode::memory_mib)
      .keyword("gpu_milli", &FreeNode::gpu_milli)
      .keyword("gpu_model", &FreeNode::gpu_model)
      .keyword("gpu_pods", &FreeNode::gpu_pods)
      .init();
  Record<PodPlace>(module, "PodPlace", R"(Where a pod runs.

Parameters
----------
node : int
    Index of the node; -1 = it fits nowhere.
gpus : sequence of int
    Indices of its GPUs on that node.
)")
      .optional("node", &PodPlace::node)
      .optional("gpus", &PodPlace::gpus)
      .init();
  Record<PodPolicyInfo>(module, "PodPolicyInfo", R"(A policy that places pods.

Attributes
----------
name, rule : str
reads_expected : bool
    Needs the pods that are expected.
)")
      .keyword("name", &PodPolicyInfo::name)
      .keyword("rule", &PodPolicyInfo::rule)
      .keyword("reads_expected", &PodPolicyInfo::reads_expected);
}

void bind_placing(py::module_& module) {
  module.def("pod_policies", &pod_policies, R"(List the policies of `place_pods`.

Returns
-------
list of PodPolicyInfo
)");
  module.def(
      "place_pods",
      [](const std::vector<FreeNode>& nodes, const std::vector<Pod>& pods,
         const std::string& policy, const std::vector<Pod>& expected, std::uint64_t seed,
         int pods_per_gpu) {
        const LongCall call;
        return place_pods(
            nodes, pods,
            {.policy = policy, .seed = seed, .expected = expected, .pods_per_gpu = pods_per_gpu});
      },
      py::arg("nodes"), py::arg("pods"), py::kw_only(), py::arg("policy") = PodOptions{}.policy,
      py::arg("expected") = py::list(), py::arg("seed") = PodOptions{}.seed,
      py::arg("pods_per_gpu") = PodOptions{}.pods_per_gpu,
      R"(Place pods one after the other, each once and for good.

Parameters
----------
nodes : list of FreeNode
pods : list of Pod
    In the order in which they arrive. One that fits nowhere takes nothing.
policy : str
    One of `pod_policies`.
expected : list of Pod
    Pods like those to come, for the policies that read them: those of last month, say.
seed : int
    Nodes that tie are tried in the order of this seed.
pods_per_gpu : int
    At most so many on one GPU; 0 = as many as it has shares for.

Returns
-------
list of PodPlace
    One for each pod.

Raises
------
InputError
    Naming the node, pod or policy: amounts below 0 or above 10^12, a share above 1000 or of
    several GPUs, `gpu_pods` that do not match the GPUs, `expected` for a policy that does not read
    it or none for one that does.
)");
  module.def(
      "pod_violations",
      [](const std::vector<FreeNode>& nodes, const std::vector<Pod>& pods,
         const std::vector<PodPlace>& places,
         int pods_per_gpu) { return pod_violations(nodes, pods, places, pods_per_gpu); },
      py::arg("nodes"), py::arg("pods"), py::arg("places"), py::kw_only(),
      py::arg("pods_per_gpu") = 0,
      R"(Say what is wrong with places of pods.

Parameters
----------
nodes : list of FreeNode
pods : list of Pod
places : list of PodPlace
    One for each pod.
pods_per_gpu : int
    At most so many on one GPU; 0 = any number.

Returns
-------
list of str
    A sentence for each node over its CPU or memory, GPU over its share or its number of pods, or
    GPU that the pod does not allow; empty where the places hold.

Raises
------
InputError
    Another number of places than pods.
)");
}

void bind_mixes(py::module_& module) {
  module.def(
      "mix_speeds",
      [](const std::vector<Profile>& jobs, const std::string& sharing, const Tier& tier,
         const std::optional<Pairs>& pairs) {
        return adopt(mix_speeds(jobs, sharing_named(sharing), tier, pairs ? &*pairs : nullptr));
      },
      py::arg("jobs"), py::arg("sharing"), py::arg("tier"), py::kw_only(),
      py::arg("pairs") = py::none(), R"(Speeds of up to four jobs on one GPU.

Parameters
----------
jobs : list of Profile
    Each job alone; one to four.
sharing : str
    ``naive`` (time slices) or ``mps``.
tier : Tier
    The GPU and its memory.
pairs : Pairs, optional
    Measured and learned pairs, as in `shared_speeds`.

Returns
-------
ndarray, shape (jobs,)
    A share of each job's speed alone: the product of its `shared_speeds` with each of the others,
    above 1 where that was measured. All 0 when together they need more than the card's memory.

Raises
------
InputError
    No job or more than four, another way of sharing, activities out of range.
)");
}

void bind_slices(py::module_& module) {
  Record<Slice>(module, "Slice", R"(A MIG instance of a card.

Attributes
----------
name : str
    ``1g`` to ``7g``.
compute, memory : int
    It has compute / 7 of the multiprocessors and memory / 8 of the memory.
)")
      .keyword("name", &Slice::name)
      .keyword("compute", &Slice::compute)
      .keyword("memory", &Slice::memory);
  Record<Partition>(module, "Partition", R"(A card in slices and who runs on which.

Attributes
----------
slices : list of str
    As they lie on the card.
jobs : list of int
    Index of the job on each slice; -1 = nobody.
throughput : float
    Sum of the speeds, each a share of that on the whole card.
)")
      .keyword("slices", &Partition::slices)
      .keyword("jobs", &Partition::jobs)
      .keyword("throughput", &Partition::throughput);
  module.def("slices", &slices, R"(List the slices: 7g, 4g, 3g, 2g, 1g.

Returns
-------
list of Slice
)");
  module.def("partitions", &partitions, R"(List the 19 ways to cut a card, nobody on them.

Returns
-------
list of Partition
)");
}

void bind_partition(py::module_& module) {
  module.def(
      "slice_speeds",
      [](const std::vector<Profile>& jobs, const Tier& tier) {
        return Convert<Rows>::out(slice_speeds(jobs, tier));
      },
      py::arg("jobs"), py::arg("tier"), R"(Predict the speeds of jobs on the slices of a card.

Parameters
----------
jobs : list of Profile
    Each job alone on the whole card: `mean_watts` decides where it is known, else the activities.
tier : Tier
    The card: its memory, idle and busy power.

Returns
-------
ndarray, shape (jobs, slices)
    Share of the speed on the whole card, by the columns of `slices`; 0 where the slice has too
    little memory. A step takes `step_seconds` over it.

Raises
------
InputError
    Power below the idle or above the busy one of the tier, activities out of range.
)");
  module.def(
      "best_partition",
      [](const ArrayLike& speeds) {
        const DoubleArray table = borrow(speeds, "speeds", 2);
        return best_partition(rows(table));
      },
      py::arg("speeds"), R"(Cut a card for jobs and say who runs on which slice.

Parameters
----------
speeds : array_like, shape (jobs, slices)
    Those of up to 7 jobs, as `slice_speeds` gives them, or measured; 0 = does not run there.

Returns
-------
Partition
    The greatest sum of speeds among the partitions that run the most jobs; exact.

Raises
------
InputError
    More than 7 jobs, a speed below 0 or not finite, or another number of columns than slices.
)");
}

}  // namespace
}  // namespace glidepath::python

void bind_parts(pybind11::module_& module) {
  using namespace glidepath::python;
  bind_pods(module);
  bind_placing(module);
  bind_mixes(module);
  bind_slices(module);
  bind_partition(module);
}
