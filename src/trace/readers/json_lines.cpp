// SPDX-License-Identifier: Apache-2.0
// JSON lines, one object a row: LLaMA-Factory, detectron2, mmdet, RLlib, W&B, MLPerf, others.
#include <algorithm>
#include <cmath>

#include "common/csv.hpp"
#include "trace/readers/column_names.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/run_settings.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

using Kind = Json::Kind;

constexpr std::string_view kMlperf = ":::MLLOG ";  // what MLPerf writes before each of its rows
constexpr std::string_view kLogger = "DLLL ";      // and NVIDIA's DLLogger
// Of rows with a mode those of training: OpenMMLab's and MACE's.
constexpr std::string_view kTraining[] = {"train", "opt"};
// The twelve numbers of COCO's tools, which DETR and its heirs write as a list.
constexpr std::string_view kCoco = "coco_eval";
constexpr std::string_view kOfCoco[] = {
    "AP",       "AP50",      "AP75",       "AP small",     "AP medium",     "AP large",
    "recall@1", "recall@10", "recall@100", "recall small", "recall medium", "recall large"};
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
    const auto there = std::ranges::find_if(
        spread.members, [&](const auto& member) { return member.first == name; });
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
    if (!counts_steps(key) && !is_time(key) && !names_run(name)) name.insert(0, first);
  }
}

/// Takes "step": [3, 20] for an epoch and an iteration, as DLLogger has them.
void count_in_list(Cells& cells) {
  const auto list = std::ranges::find_if(cells, [](const auto& cell) {
    const std::vector<Json>& items = cell.second->items;
    return cell.first == "step" && !items.empty() && items.size() <= 2 &&
           std::ranges::all_of(items, [](const Json& item) { return item.is(Kind::number); });
  });
  if (list == cells.end()) return;
  const std::vector<Json>& items = list->second->items;
  *list = {"epoch", &items.front()};
  if (items.size() == 2) cells.emplace_back("iteration", &items.back());
}

/// Takes "test_coco_eval_bbox": [0.42, 0.62, …] for as many metrics; one of -1 was not computed.
void spread_coco(Cells& cells) {
  for (std::size_t i = 0, size = cells.size(); i < size; ++i) {
    const std::string name = cells[i].first;
    const std::vector<Json>& items = cells[i].second->items;
    if (!contains(name, kCoco) || items.size() != std::size(kOfCoco)) continue;
    for (std::size_t k = 0; k < items.size(); ++k) {
      if (items[k].is(Kind::number) && items[k].number >= 0) {
        cells.emplace_back(name + " " + std::string(kOfCoco[k]), &items[k]);
      }
    }
  }
}

/// Gives a value the name that stands beside it: "loss" in {"name": "loss", "value": 2.3}.
void name_values(Cells& cells) {
  const auto named = std::ranges::find_if(cells, [](const auto& cell) {
    return cell.second->is(Kind::text) && names_value(cell.first, cell.second->text);
  });
  const auto value = std::ranges::find_if(
      cells, [](const auto& cell) { return is_value(cell.first) && number_of(*cell.second); });
  if (named == cells.end() || value == cells.end()) return;
  value->first = named->second->text;
}

/// The cells of a line; `row` owns them. Throws JsonError.
Cells cells_of(std::string_view line, Json& row) {
  const std::size_t mark = line.find(kMlperf);
  const bool mlperf = mark != line.npos;
  if (line.starts_with(kLogger)) line.remove_prefix(kLogger.size());
  row = parse_json(mlperf ? line.substr(mark + kMlperf.size()) : line);
  if (!row.is(Kind::object)) throw JsonError("not a JSON object", 0);
  if (mlperf) spread_event(row);
  Cells cells = flat(row);
  count_in_list(cells);
  spread_coco(cells);
  name_values(cells);
  for (const auto& [name, value] : Cells(cells)) {
    if (name == "mode" || !is_split(name)) continue;
    const std::string text = value->is(Kind::boolean) ? (value->truth ? "true" : "false")
                             : value->is(Kind::text)  ? value->text
                                                      : general(value->number);
    const std::string first = split_before(name, text);
    if (!first.empty()) name_after(first, cells);
  }
  // OpenMMLab's rows of training and of validation differ by their mode alone.
  const auto mode = std::find_if(cells.rbegin(), cells.rend(),
                                 [](const auto& cell) { return cell.first == "mode"; });
  if (mode == cells.rend() ||
      (mode->second->is(Kind::text) && among(kTraining, mode->second->text))) {
    return cells;
  }
  name_after(mode_of(*mode->second) + "_", cells);
  return cells;
}

/// Adds what the first row says of how the run was started: its members that are configurations,
/// or the row as a whole where it is one, without a step or a metric. Tells whether it is.
bool put_settings_of_row(const Json& row, const Cells& cells, Settings& settings) {
  for (const std::string_view name : kSettingsKeys) {
    if (const Json* const found = row.find(name)) put_settings(settings, *found);
  }
  const bool logged = std::ranges::any_of(cells, [](const auto& cell) {
    const std::string key = normal(cell.first);
    return number_of(*cell.second) && (counts_steps(key) || counts_in_part(cell.first) ||
                                       is_clock(key) || is_metric(cell.first));
  });
  if (settings.empty() && !logged) put_settings(settings, row);
  return !logged;
}

/// Whether rows stand behind a mark, among other lines.
bool is_marked(std::string_view line) {
  return contains(line, kMlperf) || line.starts_with(kLogger);
}

bool has_marks(const std::filesystem::path& file) {
  LineReader lines(file);
  while (lines.number() < kFirstLines && lines.next()) {
    if (is_marked(lines.line())) return true;
  }
  return false;
}

/// Whether an object is a row: it counts its own step and has a metric of it. "epochs" and the like
/// are how many there are to be, and a document may say in which one it ended.
bool is_row(const Json& object) {
  const auto has = [&](const auto& is) {
    return std::ranges::any_of(object.members, [&](const auto& member) {
      return member.second.is(Kind::number) && is(member.first);
    });
  };
  return has([](const std::string& name) {
           return counts_steps(normal(name)) && !name.ends_with('s');
         }) &&
         has([](const std::string& name) { return is_metric(name); });
}

/// Whether a list, called as it is in the parts of a row, is a history: of a metric, or of rows
/// with one.
bool is_history(const std::string& name, const Json& list) {
  if (list.items.size() < 2) return false;
  const Json& first = list.items.front();
  if (first.is(Kind::number)) return is_metric(name);
  return std::ranges::any_of(first.members,
                             [](const auto& member) { return is_metric(member.first); });
}

/// Whether a name is that of a number in a row with a key that counts, such as "epoch_1/loss".
bool is_in_counted_row(std::string_view name) {
  const std::string_view key = name.substr(0, name.find('/'));
  const std::size_t digits =
      key.size() - std::min(key.find_last_not_of("0123456789") + 1, key.size());
  std::string_view word = key.substr(0, key.size() - digits);
  if (word.ends_with('_') || word.ends_with('-') || word.ends_with(' ')) word.remove_suffix(1);
  return digits > 0 && key.size() < name.size() && counts_steps(normal(word)) &&
         is_metric(name.substr(key.size() + 1));
}

/// Whether a file is one document on one line, with a list of numbers by the name of a metric, with
/// columns by the number of their row, or with a history in one of its parts.
bool is_document(const Json& object, const Cells& cells, LineReader& lines) {
  const bool row = is_row(object);
  const bool columns = std::ranges::any_of(cells, [&](const auto& cell) {
    const auto& [name, value] = cell;
    const std::size_t last = name.rfind('/');
    const bool by_row = last != name.npos && all_digits(std::string_view(name).substr(last + 1));
    if ((by_row && is_metric(name.substr(0, last))) || is_in_counted_row(name)) return true;
    const bool numbers = value->items.size() > 1 && value->items[0].is(Kind::number);
    if (numbers && is_metric(name.substr(0, last))) return true;
    return !row && is_history(name, *value);
  });
  return columns && !lines.next();
}

}  // namespace

bool is_json_lines(const std::filesystem::path& file, std::string_view head) {
  if (!stripped(head).starts_with('{') && !contains(head, kMlperf) && !contains(head, kLogger)) {
    return false;
  }
  LineReader lines(file);
  while (lines.number() < kFirstLines && lines.next()) {
    const bool row = is_marked(lines.line()) || stripped(lines.line()).starts_with('{');
    if (!row) continue;
    Json object;
    std::vector<std::string> names;
    try {
      const Cells cells = cells_of(lines.line(), object);
      if (lines.number() == 1 && is_document(object, cells, lines)) return false;
      for (const auto& [name, value] : cells) {
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

std::vector<LoggedRun> read_json_lines(const std::filesystem::path& file,
                                       const Metric& /*metric*/) {
  Settings settings;
  std::vector<std::string> notes;
  LogRows rows;
  std::string broken;  // what is wrong with the line before
  bool started = false;
  const bool marked = has_marks(file);
  LineReader lines(file);
  while (lines.next()) {
    const std::string_view line = lines.line();
    if (stripped(line).empty() || (marked && !is_marked(line))) continue;
    if (!broken.empty()) throw IoError(broken);
    try {
      Json row;
      const Cells cells = cells_of(line, row);
      const bool first = rows.count() == 0 && !marked;
      if (first) started = put_settings_of_row(row, cells, settings);
      rows.add(cells);
    } catch (const JsonError& error) {
      broken = sentence(shown_path(file), ":", lines.number(), ": ", error.what());
    }
  }
  if (!broken.empty()) {
    if (rows.count() == 0 || !is_cut(file)) throw IoError(broken);
    notes.emplace_back("the last line is cut: left out");
  }
  if (started) rows.forget_first_row();
  std::vector<LoggedRun> runs = runs_of(std::move(rows), notes);
  if (runs.size() > 1) return runs;
  settings.merge(runs[0].settings);
  runs[0].settings = std::move(settings);
  if (file.filename().string().starts_with("wandb-history.jsonl")) {
    put_settings_of_file(file.parent_path() / "config.yaml", runs[0]);
  }
  return runs;
}

}  // namespace glidepath::detail
