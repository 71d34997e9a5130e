// SPDX-License-Identifier: Apache-2.0
#include "glidepath/hardware.hpp"

#include <charconv>
#include <stdexcept>

#include "common/require.hpp"

namespace glidepath {
namespace {

constexpr std::string_view kCsv =
#include "gpus.inc"
    ;

/// Fields of the line at `from`; a field may be quoted. Moves `from` past the line's end.
std::vector<std::string> fields_of_line(std::string_view csv, std::size_t& from) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; from < csv.size(); ++from) {
    const char c = csv[from];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c == '\n' && !quoted) {
      break;
    } else {
      fields.back() += c;
    }
  }
  ++from;
  return fields;
}

double number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<Gpu> parse() {
  std::size_t from = 0;
  const std::vector<std::string> header = fields_of_line(kCsv, from);
  const auto column = [&](std::string_view name) {
    for (std::size_t c = 0; c < header.size(); ++c) {
      if (header[c] == name) return c;
    }
    throw std::logic_error("data/gpus.csv: no column " + std::string(name));
  };
  std::vector<Gpu> gpus;
  while (from < kCsv.size()) {
    const std::vector<std::string> row = fields_of_line(kCsv, from);
    if (row.size() != header.size()) throw std::logic_error("data/gpus.csv: a row is cut short");
    gpus.push_back({.name = row[column("gpu")],
                    .vendor = row[column("vendor")],
                    .architecture = row[column("architecture")],
                    .year = static_cast<int>(number(row[column("year")])),
                    .memory_gb = number(row[column("memory_gb")]),
                    .bandwidth_gb_s = number(row[column("bandwidth_gb_s")]),
                    .busy_watts = number(row[column("busy_watts")]),
                    .idle_watts = number(row[column("idle_watts")]),
                    .fp32_tflops = number(row[column("fp32_tflops")]),
                    .fp16_tflops = number(row[column("fp16_tflops")]),
                    .relative_speed = number(row[column("relative_speed")]),
                    .source = row[column("source")]});
  }
  return gpus;
}

}  // namespace

std::span<const Gpu> catalogue() {
  static const std::vector<Gpu> gpus = parse();
  return gpus;
}

const Gpu& gpu_named(std::string_view name) {
  std::string known;
  for (const Gpu& gpu : catalogue()) {
    if (gpu.name == name) return gpu;
    known += (known.empty() ? "" : ", ") + gpu.name;
  }
  detail::refuse("unknown GPU '", name, "', known: ", known);
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
