// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/column_names.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "trace/readers/names.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

// Columns that name the part of the data that a row is of: whatever they call it, and only where
// they call it by a word for training or for what is held out.
constexpr std::string_view kPartColumns[] = {"split", "set", "subset", "partition"};
constexpr std::string_view kSplitColumns[] = {"phase", "stage", "mode", "type", "dataset"};

// Columns that say by true or false which part of the data a row is of: training or what is held
// out. Without "is" before them they may be metrics, whose 0 and 1 are numbers. A row that "is
// valid" may be one that is sound.
struct Flag {
  std::string_view column, data, others;
};
constexpr std::string_view kIs = "is_";
constexpr Flag kFlags[] = {{"train", "train/", "val/"}, {"training", "train/", "val/"},
                           {"eval", "val/", "train/"},  {"evaluation", "val/", "train/"},
                           {"val", "val/", "train/"},   {"validation", "val/", "train/"},
                           {"test", "test/", "train/"}};

// Columns that hold the name of a number, the number itself, and the run that a row is of.
constexpr std::string_view kNameColumns[] = {"metric", "metric_name", "tag", "key", "variable"};
constexpr std::string_view kValueColumns[] = {"value", "metric_value", "scalar_value",
                                              "simple_value"};
constexpr std::string_view kRunColumns[] = {"run",   "run_id",     "run_name", "run_uuid",
                                            "model", "experiment", "seed",     "fold",
                                            "trial", "trial_id"};
// Columns that hold the name of the optimizer, which may tell runs apart, too.
constexpr std::string_view kOptimizers[] = {"optimizer", "optimiser", "optim", "optimizer_name"};

/// The flag that a column is; none of others.
const Flag* flag_of(std::string_view key) {
  if (key.starts_with(kIs)) key.remove_prefix(kIs.size());
  const auto* const found =
      std::ranges::find_if(kFlags, [&](const Flag& flag) { return flag.column == key; });
  return found == std::end(kFlags) ? nullptr : found;
}

}  // namespace

std::string_view part_of(std::string_view name) { return name.substr(0, name.rfind('/') + 1); }

std::vector<std::string> counters(std::span<const std::string> names) {
  std::unordered_map<std::string, const std::string*> spelled;
  for (const std::string& name : names) {
    std::string key = normal(name);
    if (counts_steps(key)) spelled.try_emplace(std::move(key), &name);
  }
  std::vector<std::string> found;
  if (spelled.empty()) return found;
  for (const std::string_view key : step_names()) {
    const auto entry = spelled.find(std::string(key));
    if (entry != spelled.end()) found.push_back(*entry->second);
  }
  return found;
}

bool counts_in_part(std::string_view name) {
  const std::string_view last = name.substr(part_of(name).size());
  const std::string key = normal(last);
  // "steps" in a part are how many there were, such as those of an episode.
  return last.size() < name.size() && counts_steps(key) && !is_within(key) && key != "steps";
}

bool tells(std::span<const std::string> names) {
  return std::ranges::any_of(names, [](const std::string& name) {
    const std::string key = normal(name);
    return (counts_steps(key) && !is_within(key)) || counts_in_part(name) || is_metric(name);
  });
}

bool is_value(std::string_view column) { return among(kValueColumns, normal(column)); }

bool names_value(std::string_view column, std::string_view text) {
  const std::string key = normal(column);
  if (key == "name") return is_metric(text) || is_rate(text);  // else it may be that of the run
  return among(kNameColumns, key) && !text.empty() && !number_in(text);
}

bool names_run(std::string_view column) {
  const std::string key = normal(column);
  return among(kRunColumns, key) || among(kOptimizers, key);
}

bool names_optimizer(std::string_view column) { return among(kOptimizers, normal(column)); }

bool names_parts(std::string_view column) { return among(kPartColumns, normal(column)); }

bool is_split(std::string_view name) {
  const std::string key = normal(name);
  return names_parts(name) || among(kSplitColumns, key) || flag_of(key) != nullptr;
}

std::string split_before(std::string_view name, std::string_view text) {
  const std::string key = normal(name);
  if (const Flag* const flag = flag_of(key)) {
    const std::string truth = lower(text);
    const bool digits = key.starts_with(kIs);
    if (truth == "true" || (digits && truth == "1")) return std::string(flag->data);
    return std::string(truth == "false" || (digits && truth == "0") ? flag->others : "");
  }
  if (!is_split(name) || !(has_train(text) || is_held_out(text))) return {};
  return std::string(text) + "/";
}

std::optional<double> in_thousands(std::string_view text) {
  constexpr std::pair<char, std::string_view> kUnits[] = {
      {'k', "e3"}, {'K', "e3"}, {'M', "e6"}, {'G', "e9"}, {'B', "e9"}};
  for (const auto& [unit, exponent] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::string_view number = stripped(text.substr(0, text.size() - 1));
    std::size_t end = digits_at(number, 0);
    if (end > 0 && number.substr(end, 1) == ".") end += 1 + digits_at(number, end + 1);
    if (end == 0 || end < number.size()) return {};
    return number_in(std::string(number).append(exponent));
  }
  return {};
}

std::optional<Count> count_in(std::string_view name, std::string_view text) {
  if (!counts_steps(normal(name))) name = name.substr(0, name.find('/'));
  if (!counts_steps(normal(name))) return {};
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() == 2 && counts_steps(normal(words[0]))) text = words[1];
  const std::size_t of = text.find('/');
  const auto whole = [](std::string_view part) -> std::optional<double> {
    part = stripped(part);
    return all_digits(part) ? number_in(part) : in_thousands(part);
  };
  const std::optional<double> at = whole(text.substr(0, of));
  if (!at || of == text.npos) return at ? std::optional(Count{name, *at, {}}) : std::nullopt;
  const std::optional<double> end = whole(text.substr(of + 1));
  return end ? std::optional(Count{name, *at, end}) : std::nullopt;
}

}  // namespace glidepath::detail
