// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/csv.hpp"
#include "common/numbers.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/json.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/names.hpp"

namespace glidepath {
namespace {

using detail::refuse_file;

constexpr double kNotRecorded = std::numeric_limits<double>::quiet_NaN();

/// a.csv and a.csv.gz -> a.json
std::filesystem::path sidecar(std::filesystem::path file) {
  if (file.extension() == ".gz") file.replace_extension();
  return file.replace_extension(".json");
}

/// The JSON beside a long CSV. One that is there and cannot be read is refused: what it says of the
/// curves may be anything.
detail::Json json_in(const std::filesystem::path& file) {
  const std::string bytes = detail::read_file(file);
  std::string_view text = bytes;
  if (text.starts_with(detail::kByteOrderMark)) text.remove_prefix(detail::kByteOrderMark.size());
  try {
    return detail::parse_json(text);
  } catch (const detail::JsonError& error) {
    refuse_file(detail::shown_path(file), ": not JSON: ", error.what(), " at byte ", error.at);
  }
}

/// The text of a member of an object, or nothing.
std::string text_of(const detail::Json& document, std::string_view key) {
  const detail::Json* found = document.find(key);
  return found != nullptr && found->is(detail::Json::Kind::text) ? found->text : std::string();
}

/// What the file beside a long CSV says of its column `value` and of its curves.
struct Description {
  std::optional<Direction> direction{};
  std::string metric = "value";
  std::map<std::string, Settings, std::less<>> settings{};  ///< by curve
};

/// The settings of each curve, where the JSON has some.
std::map<std::string, Settings, std::less<>> settings_in(const std::filesystem::path& json,
                                                         const detail::Json& document) {
  using detail::Json;
  std::map<std::string, Settings, std::less<>> found;
  const Json* all = document.find("settings");
  if (all == nullptr) return found;
  if (!all->is(Json::Kind::object)) {
    refuse_file(detail::shown_path(json), ": settings is no object with a member for each curve");
  }
  for (const auto& [curve, settings] : all->members) {
    if (!settings.is(Json::Kind::object)) {
      refuse_file(detail::shown_path(json), ": the settings of '", detail::shown(curve),
                  "' are no object");
    }
    Settings& own = found[curve];
    for (const auto& [name, value] : settings.members) {
      if (value.is(Json::Kind::number) && std::isfinite(value.number)) {
        own[name] = value.number;
      } else if (value.is(Json::Kind::text)) {
        own[name] = value.text;
      } else if (value.is(Json::Kind::boolean)) {
        own[name] = std::string(value.truth ? "True" : "False");
      } else if (!value.is(Json::Kind::null)) {
        refuse_file(detail::shown_path(json), ": setting '", detail::shown(name), "' of '",
                    detail::shown(curve), "' is neither a number nor a word");
      }
    }
  }
  return found;
}

Description description_beside(const std::filesystem::path& file) {
  Description found;
  const std::filesystem::path json = sidecar(file);
  std::error_code none;
  if (json == file || !std::filesystem::is_regular_file(json, none)) return found;
  const detail::Json document = json_in(json);
  const std::string direction = text_of(document, "direction");
  if (direction == "max") {
    found.direction = Direction::max;
  } else if (direction == "min") {
    found.direction = Direction::min;
  } else if (!direction.empty()) {
    refuse_file(detail::shown_path(json), ": direction is '", detail::shown(direction),
                "', expected min or max");
  }
  std::string metric = text_of(document, "metric");
  metric.erase(std::min(metric.find_first_of("(,;"), metric.size()));
  while (!metric.empty() && metric.back() == ' ') metric.pop_back();
  if (!metric.empty()) found.metric = metric;
  found.settings = settings_in(json, document);
  return found;
}

/// Which way is better: what is said of the column `value` holds for it, of another its own name.
Direction direction_of(const Description& about, bool of_value) {
  if (of_value && about.direction) return *about.direction;
  const std::optional<Direction> by_name = detail::direction_by_name(about.metric);
  return by_name ? *by_name : about.direction.value_or(Direction::min);
}

/// An optional column: empty as a whole where no row of the curve has a value.
void drop_if_unknown(std::vector<double>& column) {
  if (std::ranges::all_of(column, [](double x) { return std::isnan(x); })) {
    column.clear();
  }
}

}  // namespace

std::string detail::metric_beside(const std::filesystem::path& file) {
  return description_beside(file).metric;
}

std::vector<Trace> read_long_csv(const std::filesystem::path& file, const std::string& metric) {
  std::error_code none;
  if (std::filesystem::exists(file, none) && !std::filesystem::is_directory(file, none) &&
      !std::filesystem::is_regular_file(file, none)) {
    refuse_file(detail::shown_path(file), ": not a regular file");  // a device may never end
  }
  std::string text = detail::read_file(file);
  detail::drop_zeros(text);
  detail::unite_ends(text);
  detail::CsvReader csv(detail::shown_path(file), std::move(text));
  const int curve_column = csv.column("curve");
  const int step_column = csv.column("step");
  Description about = description_beside(file);
  const bool described = metric == about.metric && csv.find(metric) < 0;
  const int value_column = csv.column(described ? "value" : metric);
  const int lr_column = csv.find("lr");
  const int wall_column = csv.find("wall_seconds");
  if (metric != "value") about.metric = metric;
  const Direction direction = direction_of(about, described || metric == "value");
  const auto optional = [&](int column) {
    if (column < 0 || csv.text(column).empty()) return kNotRecorded;
    return csv.number(column);
  };

  std::vector<Trace> traces;
  // The names lie in the reader's bytes, which outlive this map.
  std::unordered_map<std::string_view, std::size_t> index_of;
  std::size_t index = 0;
  std::string_view name;  // of the row before, as most rows repeat it
  bool cut = false;
  csv.leave_out_cut_row();
  while (csv.next()) {
    if (csv.text(value_column).empty()) continue;
    if (traces.empty() || csv.text(curve_column) != name) {
      name = csv.text(curve_column);
      const auto [entry, added] = index_of.try_emplace(name, traces.size());
      index = entry->second;
      if (added) {
        traces.push_back(
            {.name = std::string(name), .metric = about.metric, .direction = direction});
        const auto settings = about.settings.find(name);
        if (settings != about.settings.end()) traces.back().settings = settings->second;
      }
    }
    Trace& trace = traces[index];
    const double step = csv.finite_number(step_column);
    cut = csv.unfinished() && !trace.step.empty() && step <= trace.step.back();
    if (cut) break;  // half of a number is no step that goes back
    if (!detail::is_step(step)) csv.fail("step is ", step, ", expected ", detail::kStepRange);
    if (!trace.step.empty() && step <= trace.step.back()) {
      csv.fail("step ", step, " of curve '", detail::shown(name), "' is not above the ",
               trace.step.back(), " before it");
    }
    trace.step.push_back(step);
    trace.loss.push_back(csv.number(value_column));
    if (lr_column >= 0) trace.lr.push_back(optional(lr_column));
    if (wall_column >= 0) trace.wall_seconds.push_back(optional(wall_column));
  }
  if (traces.empty())
    refuse_file(detail::shown_path(file), ": no row has a ", detail::shown(metric));
  if (cut || csv.cut()) traces[index].notes.emplace_back("the last row is cut: left out");
  for (Trace& trace : traces) {
    drop_if_unknown(trace.lr);
    drop_if_unknown(trace.wall_seconds);
  }
  return traces;
}

}  // namespace glidepath
