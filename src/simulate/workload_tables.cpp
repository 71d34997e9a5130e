// SPDX-License-Identifier: Apache-2.0
#include "simulate/workload_tables.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/names.hpp"
#include "common/require.hpp"

namespace glidepath::detail {

double number_at_least(const CsvReader& csv, int column, std::string_view what, double least) {
  const double value = csv.finite_number(column);
  if (value < least) csv.fail(what, " is ", value, ", expected at least ", least);
  return value;
}

double number_above_zero(const CsvReader& csv, int column, std::string_view what) {
  const double value = csv.finite_number(column);
  if (value <= 0) csv.fail(what, " is ", value, ", expected more than 0");
  return value;
}

int whole_at_least(const CsvReader& csv, int column, std::string_view what, std::int64_t least) {
  const std::int64_t value = csv.integer(column);
  if (value < least) csv.fail(what, " is ", value, ", expected at least ", least);
  if (value > std::numeric_limits<int>::max()) {
    csv.fail(what, " is ", value, ", expected at most ", std::numeric_limits<int>::max());
  }
  return static_cast<int>(value);
}

void note_unread(const CsvReader& csv, const std::filesystem::path& file,
                 std::vector<std::string>& notes) {
  const std::vector<std::string> unread = csv.unread();
  if (unread.empty()) return;
  const std::string names = listed(unread, [](const std::string& each) { return shown(each); });
  notes.push_back(sentence(shown(file.filename().string()), ": ",
                           unread.size() == 1 ? "the column " : "the columns ", shown(names, 200),
                           unread.size() == 1 ? " is not read" : " are not read"));
}

std::vector<Tier> read_tiers(const std::filesystem::path& file, std::vector<std::string>& notes) {
  CsvReader csv(file);
  const int name = csv.column("name");
  const int nodes = csv.column("nodes");
  const int per_node = csv.find("gpus_per_node");
  const int gpu = csv.find("gpu");
  const int memory = csv.find("memory_gb");
  const int host = csv.find("host_memory_gb");
  const int idle = csv.find("idle_watts");
  const int busy = csv.find("busy_watts");
  const int price = csv.find("price_per_gpu_hour");
  (void)csv.find("note");  // for people
  const auto optional = [&](int column, std::string_view what) {
    return column < 0 ? 0.0 : number_at_least(csv, column, what, 0);
  };
  std::vector<Tier> tiers;
  while (csv.next()) {
    tiers.push_back(
        {.name = std::string(csv.text(name)),
         .gpu = gpu < 0 ? "" : std::string(csv.text(gpu)),
         .nodes = whole_at_least(csv, nodes, "nodes", 1),
         .gpus_per_node = per_node < 0 ? 1 : whole_at_least(csv, per_node, "gpus_per_node", 1),
         .memory_gb = optional(memory, "memory_gb"),
         .host_memory_gb = optional(host, "host_memory_gb"),
         .idle_watts = optional(idle, "idle_watts"),
         .busy_watts = optional(busy, "busy_watts"),
         .price_per_gpu_hour = optional(price, "price_per_gpu_hour")});
  }
  if (tiers.empty()) {
    refuse_file(shown_path(file), ": no tiers below the header");
  }
  note_unread(csv, file, notes);
  return tiers;
}

std::vector<int> rate_columns(const CsvReader& csv, const std::vector<Tier>& tiers) {
  std::vector<int> columns;
  for (const Tier& tier : tiers) columns.push_back(csv.find("steps_per_s_" + tier.name));
  return columns;
}

std::vector<double> read_rates(const CsvReader& csv, const std::vector<int>& columns) {
  if (std::all_of(columns.begin(), columns.end(), [](int column) { return column < 0; })) return {};
  std::vector<double> out;
  for (const int column : columns) {
    out.push_back(column < 0 ? 0.0 : number_at_least(csv, column, "steps_per_s", 0));
  }
  return out;
}

std::vector<Trace> read_truth(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path truth = folder / "truth";
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(truth, absent)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".csv") || name.ends_with(".csv.gz")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Trace> curves;
  for (const auto& file : files) {
    for (Trace& curve : read_long_csv(file)) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace glidepath::detail
