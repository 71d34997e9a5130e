// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"

#include <algorithm>

#include "common/csv.hpp"
#include "common/names.hpp"

namespace glidepath {
namespace {

constexpr std::string_view kCsv =
#include "gpus.inc"
    ;

std::vector<Gpu> parse() {
  detail::CsvReader csv("data/gpus.csv", std::string(kCsv));
  const auto text = [&](std::string_view column) {
    return std::string(csv.text(csv.column(column)));
  };
  const auto number = [&](std::string_view column) {
    const int index = csv.column(column);
    return csv.text(index).empty() ? 0.0 : csv.number(index);
  };
  std::vector<Gpu> gpus;
  while (csv.next()) {
    gpus.push_back({.name = text("gpu"),
                    .vendor = text("vendor"),
                    .architecture = text("architecture"),
                    .year = static_cast<int>(number("year")),
                    .memory_gb = number("memory_gb"),
                    .bandwidth_gb_s = number("bandwidth_gb_s"),
                    .busy_watts = number("busy_watts"),
                    .idle_watts = number("idle_watts"),
                    .fp32_tflops = number("fp32_tflops"),
                    .fp16_tflops = number("fp16_tflops"),
                    .relative_speed = number("relative_speed"),
                    .source = text("source")});
  }
  return gpus;
}

}  // namespace

std::span<const Gpu> catalogue() {
  static const std::vector<Gpu> gpus = parse();
  return gpus;
}

const Gpu& gpu_named(std::string_view name) {
  const auto found = std::ranges::find(catalogue(), name, &Gpu::name);
  if (found != catalogue().end()) return *found;
  detail::refuse("gpu is '", name, "', expected one of ",
                 detail::listed(catalogue(), [](const Gpu& gpu) { return gpu.name; }));
}

Tier make_tier(std::string name, std::string_view gpu, int nodes, int gpus_per_node) {
  const Gpu& card = gpu_named(gpu);
  Tier tier{.name = std::move(name),
            .gpu = card.name,
            .nodes = nodes,
            .gpus_per_node = gpus_per_node,
            .memory_gb = card.memory_gb,
            .idle_watts = card.idle_watts,
            .busy_watts = card.busy_watts};
  validate(tier);
  return tier;
}

}  // namespace glidepath
