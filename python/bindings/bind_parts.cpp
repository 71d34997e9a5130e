// SPDX-License-Identifier: Apache-2.0
// Pods on parts of GPUs, mixes of jobs on one, and its slices.
#include "glidepath/parts.hpp"

#include <optional>
#include <string>
#include <vector>

#include "long_call.hpp"
#include "numpy_view.hpp"
#include "parts/pod_policies.hpp"
#include "record.hpp"

namespace glidepath::python {
namespace {

struct OwnedPodOptions : PodOptions {
  std::vector<Pod> like{};  ///< what `expected` shows

  [[nodiscard]] PodOptions view() const {
    PodOptions out = *this;
    out.expected = like;
    return out;
  }
};

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
by_default : bool
    Taken where none is named: the one that reads ``expected`` where it is given, else the other.
)")
      .keyword("name", &PodPolicyInfo::name)
      .keyword("rule", &PodPolicyInfo::rule)
      .keyword("reads_expected", &PodPolicyInfo::reads_expected)
      .keyword("by_default", &PodPolicyInfo::by_default);
}

void bind_placing(py::module_& module) {
  module.def("pod_policies", &pod_policies, "List the policies of `place_pods`.");
  Record<OwnedPodOptions>(module, "PodOptions", "Options of `place_pods`.")
      .keyword("policy", &OwnedPodOptions::policy)
      .keyword("expected", &OwnedPodOptions::like)
      .keyword("seed", &OwnedPodOptions::seed)
      .keyword("pods_per_gpu", &OwnedPodOptions::pods_per_gpu)
      .init();
  module.def(
      "place_pods",
      [](const std::vector<FreeNode>& nodes, const std::vector<Pod>& pods,
         const OwnedPodOptions& options) {
        const LongCall call;
        return place_pods(nodes, pods, options.view());
      },
      py::arg("nodes"), py::arg("pods"), py::arg("options"),
      "Place pods one after the other, each once and for good.");
  module.def(
      "pod_policy_of",
      [](const OwnedPodOptions& options) {
        return glidepath::detail::pod_policy_of(options.view()).name;
      },
      py::arg("options"), "The policy that the options name, or the one by default.");
  module.def(
      "pod_violations",
      [](const std::vector<FreeNode>& nodes, const std::vector<Pod>& pods,
         const std::vector<PodPlace>& places,
         int pods_per_gpu) { return pod_violations(nodes, pods, places, pods_per_gpu); },
      py::arg("nodes"), py::arg("pods"), py::arg("places"), py::arg("pods_per_gpu").noconvert(),
      "Say what is wrong with places of pods.");
}

void bind_mixes(py::module_& module) {
  module.def(
      "mix_speeds",
      [](const std::vector<Profile>& jobs, const std::string& sharing, const Tier& tier,
         const std::optional<Pairs>& pairs) {
        return adopt(mix_speeds(jobs, sharing_named(sharing), tier, pairs ? &*pairs : nullptr));
      },
      py::arg("jobs"), py::arg("sharing"), py::arg("tier"), py::kw_only(),
      py::arg("pairs") = py::none(), "Speeds of up to four jobs on one GPU.");
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
  module.def("slices", &slices, "List the slices.");
  module.def("partitions", &partitions, "List the ways to cut a card.");
}

void bind_partition(py::module_& module) {
  module.def(
      "slice_speeds",
      [](const std::vector<Profile>& jobs, const Tier& tier) {
        return Convert<Rows>::out(slice_speeds(jobs, tier));
      },
      py::arg("jobs"), py::arg("tier"), "Predict the speeds of jobs on the slices of a card.");
  module.def(
      "best_partition",
      [](const ArrayLike& speeds) {
        const DoubleArray table = borrow(speeds, "speeds", 2);
        return best_partition(rows(table));
      },
      py::arg("speeds"), "Cut a card for jobs and say who runs on which slice.");
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
