// SPDX-License-Identifier: Apache-2.0
// JSON lines, one object a row: LLaMA-Factory, detectron2, mmdet, RLlib, W&B, MLPerf, others.
#include <algorithm>
#include <cmath>

#include "common/csv.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

using Kind = Json::Kind;

constexpr std::string_view kMlperf = ":::MLLOG ";  // what MLPerf writes before each of its rows
constexpr std::size_t kFirstLines = 1000;  // in which rows begin: before may be a configuration

/// A row of MLPerf as others write theirs: its event by its name, and what is said of it.
void spread_event(Json& row) {
  const Json none;
  const auto of = [&](const char* name) {
    const Json* const found = row.find(name);
    return found == nullptr ? none : *found;
  };
  const Json key = of("key");
  Json spread{.kind = Kind::object};
  const auto put = [&](const std::string& name, const Json& value) {
    const auto there = std::find_if(spread.members.begin(), spread.members.end(),
                                    [&](const auto& member) { return member.first == name; });
    if (there != spread.members.end()) {
      there->second = value;
    } else {
      spread.members.emplace_back(name, value);
    }
  };
  put(key.is(Kind::text) ? key.text : "None", of("value"));
  put("time_ms", of("time_ms"));
  const Json about = of("metadata");
  for (const auto& [name, value] : about.members) put(name, value);
  if (about.is(Kind::object)) put("lineno", none);
  row = std::move(spread);
}

/// How the value of `mode` stands before the names of its row.
std::string mode_of(const Json& mode) {
  if (mode.is(Kind::text)) return mode.text;
  if (mode.is(Kind::boolean)) return mode.truth ? "True" : "False";
  if (!mode.is(Kind::number)) return "None";
  const bool whole = mode.number == std::floor(mode.number) && std::abs(mode.number) < 1e15;
  return whole ? std::to_string(static_cast<long long>(mode.number)) + ".0"
               : general(mode.number, 17);
}

/// Puts the part of the data before the names of a row, but for what counts.
void name_after(const std::string& first, Cells& cells) {
  for (auto& [name, value] : cells) {
    const std::string key = normal(name);
    if (!counts_steps(key) && !is_clock(key)) name.insert(0, first);
  }
}

/// The process that wrote a row, where it says so.
std::optional<double> rank_of(const Cells& cells) {
  for (const auto& [name, value] : cells) {
    const bool known = name == "rank" || name == "global_rank" || name == "process_index";
    if (known && value->is(Kind::number)) return value->number;
  }
  return {};
}

/// The cells of a line; `row` owns them. Throws JsonError.
Cells cells_of(std::string_view line, Json& row) {
  const std::size_t mark = line.find(kMlperf);
  const bool mlperf = mark != line.npos;
  row = parse_json(mlperf ? line.substr(mark + kMlperf.size()) : line);
  if (!row.is(Kind::object)) throw JsonError("not a JSON object", 0);
  if (mlperf) spread_event(row);
  Cells cells = flat(row);
  for (const auto& [name, value] : Cells(cells)) {
    const std::string first = value->is(Kind::text) ? split_before(name, value->text) : "";
    if (!first.empty()) name_after(first, cells);
  }
  // OpenMMLab's rows of training and of validation differ by their mode alone.
  const auto mode = std::find_if(cells.rbegin(), cells.rend(),
                                 [](const auto& cell) { return cell.first == "mode"; });
  if (mode == cells.rend() || (mode->second->is(Kind::text) && mode->second->text == "train")) {
    return cells;
  }
  name_after(mode_of(*mode->second) + "_", cells);
  return cells;
}

bool is_mlperf(const std::filesystem::path& file) {
  LineReader lines(file);
  while (lines.number() < kFirstLines && lines.next()) {
    if (contains(lines.line(), kMlperf)) return true;
  }
  return false;
}

/// The lowest rank of the processes that wrote a file: their rows are of one run.
std::optional<double> first_rank(const std::filesystem::path& file) {
  std::optional<double> lowest;
  LineReader lines(file);
  while (lines.number() < kFirstLines && lines.next()) {
    if (!contains(lines.line(), "\"rank\"") && !contains(lines.line(), "_rank\"") &&
        !contains(lines.line(), "\"process_index\"")) {
      continue;
    }
    try {
      Json row;
      const std::optional<double> rank = rank_of(cells_of(lines.line(), row));
      if (rank && (!lowest || *rank < *lowest)) lowest = rank;
    } catch (const JsonError&) {  // which the reader will say
    }
  }
  return lowest;
}

}  // namespace

bool is_json_lines(const std::filesystem::path& file, std::string_view head) {
  if (!stripped(head).starts_with('{') && !contains(head, kMlperf)) return false;
  LineReader lines(file);
  while (lines.number() < kFirstLines && lines.next()) {
    const bool row = contains(lines.line(), kMlperf) || stripped(lines.line()).starts_with('{');
    if (!row) continue;
    Json object;
    std::vector<std::string> names;
    try {
      for (const auto& [name, value] : cells_of(lines.line(), object)) {
        // Names that begin with a number are the epochs of one whole document.
        const bool epoch = !name.empty() && name[0] >= '0' && name[0] <= '9';
        if (!epoch && number_of(*value)) names.push_back(name);
      }
    } catch (const JsonError&) {
      return false;
    }
    if (tells(names)) return true;
  }
  return false;
}

Run read_json_lines(const std::filesystem::path& file, const Metric& /*metric*/) {
  Run run;
  LogRows rows;
  std::string broken;  // what is wrong with the line before
  const bool mlperf = is_mlperf(file);
  const std::optional<double> first = first_rank(file);
  LineReader lines(file);
  while (lines.next()) {
    const std::string_view line = lines.line();
    if (stripped(line).empty() || (mlperf && !contains(line, kMlperf))) continue;
    if (!broken.empty()) throw IoError(broken);
    try {
      Json row;
      const Cells cells = cells_of(line, row);
      if (rank_of(cells).value_or(first.value_or(0)) == first.value_or(0)) rows.add(cells);
    } catch (const JsonError& error) {
      broken = sentence(shown_path(file), ":", lines.number(), ": ", error.what());
    }
  }
  if (!broken.empty()) {
    if (rows.count() == 0 || !is_cut(file)) throw IoError(broken);
    run.notes.emplace_back("the last line is cut: left out");
  }
  run.series = rows.series();
  return run;
}

}  // namespace glidepath::detail
