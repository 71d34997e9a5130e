// SPDX-License-Identifier: Apache-2.0
// `trainer_state.json` of Hugging Face's Trainer: training and evaluation rows in one list.
#include <algorithm>
#include <cmath>
#include <system_error>
#include <tuple>
#include <unordered_map>

#include "common/csv.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/run_settings.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

using Kind = Json::Kind;

// The Trainer rounds to four digits: from above this, no honest loss falls to 0 from row to row.
constexpr double kFallsToZero = 0.05;
// What the state itself says of how the run was started.
constexpr std::string_view kOwnSettings[] = {"train_batch_size", "num_train_epochs", "max_steps"};

Json parsed(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  try {
    return parse_json(text);
  } catch (const JsonError& error) {
    const std::string why = error.what();
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.at, text.size()));
    const auto line = 1 + std::count(text.begin(), end, '\n');
    const bool cut = why.starts_with("Unterminated") ||
                     stripped(std::string_view(text).substr(end - text.begin())).empty();
    refuse_file(shown_path(file), ":", line, ": ",
                cut ? "the file ends too early, as if it was cut" : why);
  }
}

bool same(const Json& a, const Json& b) {
  const bool numbers = a.number == b.number || (std::isnan(a.number) && std::isnan(b.number));
  return a.kind == b.kind && a.truth == b.truth && numbers && a.text == b.text &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first && same(one.second, other.second);
                    });
}

/// The rows of a state; none where it cannot be read, which its reader will say.
std::vector<Json> rows_of(const std::filesystem::path& file) {
  try {
    const Json state = parsed(file);
    const Json* const rows = state.find("log_history");
    if (rows != nullptr) return rows->items;
  } catch (const IoError&) {
    return {};
  }
  return {};
}

/// The rows of the Trainer as they come.
class History {
 public:
  void add(const Json& row, double step, const Metric& metric) {
    // The last row sums the run up: its train_loss is a mean over all steps, not a point.
    const bool summary = row.find("train_runtime") != nullptr;
    for (const auto& [name, value] : row.members) {
      std::optional<double> number;
      if (value.is(Kind::number)) number = value.number;
      if (name == "loss") number = loss_of(value, row.find("grad_norm"));
      if (!number || name == "step" || name == "epoch" || (summary && metric != name)) continue;
      Series& column = series(name);
      column.step.push_back(step);
      column.value.push_back(*number);
    }
  }

  LoggedRun run() && {
    const auto note = [&](std::size_t rows, const std::string& where) {
      if (rows == 0) return;
      run_.notes.push_back("loss 0 " + where + " in " + counted(rows, "row") + ": read as NaN");
    };
    note(beside_nan_, "beside a NaN grad_norm");
    note(after_others_, "after " + general(before_));
    return std::move(run_);
  }

 private:
  /// The loss 0 that the Trainer writes for NaN is NaN again.
  std::optional<double> loss_of(const Json& loss, const Json* norm) {
    constexpr double kLostLoss = std::numeric_limits<double>::quiet_NaN();
    if (loss.is(Kind::null)) return kLostLoss;
    if (!loss.is(Kind::number)) return {};
    const bool without = norm == nullptr || norm->is(Kind::null);
    const bool broken =
        without ? before_ > kFallsToZero : norm->is(Kind::number) && std::isnan(norm->number);
    if (loss.number == 0 && broken) {
      ++(without ? after_others_ : beside_nan_);
      return kLostLoss;
    }
    before_ = loss.number;
    return loss.number;
  }

  Series& series(const std::string& name) {
    const auto [entry, fresh] = place_.try_emplace(name, run_.series.size());
    if (fresh) run_.series.emplace_back(name, std::make_shared<Series>());
    return *run_.series[entry->second].second;
  }

  LoggedRun run_{};
  std::unordered_map<std::string, std::size_t> place_{};
  std::size_t beside_nan_ = 0, after_others_ = 0;
  double before_ = 0;  ///< the loss of the row before
};

/// Whether a folder is called as those of checkpoints are: "checkpoint-300", and
/// "tmp-checkpoint-300" while they are written.
bool is_checkpoint(const std::filesystem::path& folder) {
  std::string name = folder.filename().string();
  if (name.starts_with("tmp-")) name.erase(0, 4);
  return name.starts_with("checkpoint-") || name.starts_with("checkpoint_");
}

}  // namespace

bool is_trainer_state(const std::filesystem::path& /*file*/, std::string_view head) {
  return stripped(head).starts_with('{') && contains(head, "\"log_history\"");
}

std::filesystem::path whole_state(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  const bool saved = is_checkpoint(folder);
  const std::filesystem::path output = saved ? folder.parent_path() : folder;
  std::vector<std::pair<std::uintmax_t, std::filesystem::path>> states;
  const auto add = [&](const std::filesystem::path& state) {
    std::error_code none;
    const auto size = std::filesystem::file_size(state, none);
    if (!none && std::filesystem::is_regular_file(state, none)) states.emplace_back(size, state);
  };
  add(output / file.filename());
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(output, none)) {
    if (is_checkpoint(entry.path())) add(entry.path() / file.filename());
  }
  if (states.size() < 2) return file;
  // The largest first; of equal ones that of the output folder, whose path is the shortest.
  std::ranges::sort(states, [](const auto& a, const auto& b) {
    return std::tuple(b.first, a.second.native().size(), a.second) <
           std::tuple(a.first, b.second.native().size(), b.second);
  });
  const std::vector<Json> rows = rows_of(file);
  if (rows.empty()) return file;
  for (const auto& [size, state] : states) {
    if (state == file) break;
    const std::vector<Json> longer = rows_of(state);
    const bool begins =
        longer.size() >= rows.size() && std::equal(rows.begin(), rows.end(), longer.begin(), same);
    if (begins) return state;
  }
  return file;
}

LoggedRun read_trainer_state(const std::filesystem::path& file, const Metric& metric) {
  const std::string name = shown_path(file);
  const Json state = parsed(file);
  const Json* const rows = state.find("log_history");
  if (rows == nullptr || rows->is(Kind::null)) refuse_file(name, ": no 'log_history'");
  if (!rows->is(Kind::list)) refuse_file(name, ": 'log_history' is not a list");
  History history;
  for (std::size_t i = 0; i < rows->items.size(); ++i) {
    const Json& row = rows->items[i];
    if (!row.is(Kind::object)) refuse_file(name, ": log_history[", i, "] is not an object");
    const Json* const step = row.find("step");
    const bool none = step == nullptr || step->is(Kind::null);
    // What predict() logs belongs to no step.
    if (none && row.find("loss") == nullptr && row.find("eval_loss") == nullptr) continue;
    if (none || !step->is(Kind::number) || !std::isfinite(step->number)) {
      refuse_file(name, ": log_history[", i, "] has no step");
    }
    history.add(row, step->number, metric);
  }
  LoggedRun run = std::move(history).run();
  const Json* const planned = state.find("max_steps");
  if (planned != nullptr && planned->is(Kind::number)) run.planned = planned->number;
  Json own{.kind = Kind::object};
  for (const auto& [key, value] : state.members) {
    if (among(kOwnSettings, key)) own.members.emplace_back(key, value);
  }
  put_settings(run.settings, own);
  for (const char* const beside : {"training_args.json", "config.json"}) {
    put_settings_of_file(file.parent_path() / beside, run);
  }
  return run;
}

}  // namespace glidepath::detail
