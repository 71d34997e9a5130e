# SPDX-License-Identifier: Apache-2.0
"""Why 16 GPUs lose a quarter of each step: five profiles of one benchmark, batch per GPU fixed.

The figures are those of a talk on training Polish language models on LUMI: microseconds of an
average step by category as the summary of PyTorch's profiler prints them, data parallel. With
profiles of your own, `gp.read_profile("trace.json.gz")` makes what is written by hand here.
"""

import sys

import glidepath as gp


def step(device: str, gpus: int, nodes: int, *microseconds: int) -> gp.StepProfile:
    """A step by its kernels, copies, clearing, communication, work on the CPU, and the rest."""
    parts = [part * 1e-6 for part in microseconds]
    names = ("kernel_s", "memcpy_s", "memset_s", "communication_s", "cpu_s", "other_s")
    more = dict(zip(names, parts, strict=True))
    return gp.StepProfile(sum(parts), **more, gpus=gpus, nodes=nodes, device=device)


one = step("MI250X", 1, 1, 448876, 0, 0, 0, 45121, 8884)
four = step("MI250X", 4, 1, 468972, 0, 0, 1046, 85340, 9412)
sixteen = step("MI250X", 16, 2, 452455, 0, 0, 978, 56189, 186940)
a40 = step("A40", 1, 1, 723056, 415, 205, 0, 10749, 13136)
four_a40 = step("A40", 4, 1, 733888, 436, 201, 365, 11786, 12840)

for profile in (four, sixteen):
    lost = 1 - one.step_seconds / profile.step_seconds
    part, seconds = next(iter(profile.more_than(one).items()))
    print(f"{profile.gpus:2} GPUs lose {lost:.0%} of each step, most to {part} (+{seconds:.3f} s)")

scaling = gp.StepProfile.scaling([one, four, sixteen])
for gpus, nodes in ((4, 1), (8, 1), (8, 2), (16, 2), (32, 4)):
    print(f"{gpus:2} GPUs on {nodes} nodes: {scaling.step_seconds(gpus, nodes):.3f} s a step")

for profile in (one, sixteen, a40):
    twice = profile.step_seconds / profile.at_speed(2)
    print(f"{profile.device}, {profile.gpus} GPUs: with kernels twice as fast {twice:.2f} times")

if sys.argv[1:]:  # a file for the picture
    one.plot(four, sixteen, a40, four_a40).figure.savefig(sys.argv[1], dpi=90)
