// SPDX-License-Identifier: Apache-2.0
#include "glidepath/trace.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/csv.hpp"
#include "common/numbers.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/json.hpp"

namespace glidepath {
namespace {

using detail::refuse_file;

constexpr double kNotRecorded = std::numeric_limits<double>::quiet_NaN();

/// a.csv and a.csv.gz -> a.json
std::filesystem::path sidecar(std::filesystem::path file) {
  if (file.extension() == ".gz") file.replace_extension();
  return file.replace_extension(".json");
}

/// The text of member `key` of the outermost object, or nothing: all that is wanted of the JSON, so
/// it is looked up without a library. What is not JSON has no such member.
std::string json_string_member(std::string_view json, std::string_view key) {
  int depth = 0;
  std::string_view last_string;
  bool is_value = false;  // a ':' stood after last_string
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      const std::size_t start = i + 1;
      for (++i; i < json.size() && json[i] != '"'; ++i) i += json[i] == '\\';
      if (i >= json.size()) return {};
      const std::string_view text = json.substr(start, i - start);
      if (depth == 1 && is_value && last_string == key) return std::string(text);
      last_string = text;
      is_value = false;
    } else if (c == '{' || c == '[') {
      ++depth;
      is_value = false;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ':') {
      is_value = true;
    } else if (c == ',') {
      is_value = false;
    }
  }
  return {};
}

/// What the file beside a long CSV says of its column `value` and of its curves.
struct Description {
  Direction direction = Direction::min;
  std::string metric = "value";
  std::map<std::string, Settings, std::less<>> settings{};  ///< by curve
};

/// The settings of each curve, where the JSON has some.
std::map<std::string, Settings, std::less<>> settings_in(const std::filesystem::path& json,
                                                         std::string_view text) {
  using detail::Json;
  std::map<std::string, Settings, std::less<>> found;
  if (text.find("\"settings\"") == std::string_view::npos) return found;
  Json document;
  try {
    document = detail::parse_json(text);
  } catch (const detail::JsonError& error) {
    refuse_file(detail::shown_path(json), ": ", error.what());
  }
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
  const std::string text = detail::read_file(json);
  const std::string direction = json_string_member(text, "direction");
  if (direction == "max") {
    found.direction = Direction::max;
  } else if (!direction.empty() && direction != "min") {
    refuse_file(detail::shown_path(json), ": direction '", detail::shown(direction),
                "' is neither min nor max");
  }
  std::string metric = json_string_member(text, "metric");
  metric.erase(std::min(metric.find_first_of("(,;"), metric.size()));
  while (!metric.empty() && metric.back() == ' ') metric.pop_back();
  // A name with an escape would have to be read as JSON is.
  if (!metric.empty() && metric.find('\\') == std::string::npos) found.metric = metric;
  found.settings = settings_in(json, text);
  return found;
}

/// An optional column: empty as a whole where no row of the curve has a value.
void drop_if_unknown(std::vector<double>& column) {
  if (std::all_of(column.begin(), column.end(), [](double x) { return std::isnan(x); })) {
    column.clear();
  }
}

}  // namespace

std::string detail::metric_beside(const std::filesystem::path& file) {
  return description_beside(file).metric;
}

std::vector<Trace> read_long_csv(const std::filesystem::path& file, const std::string& metric) {
  detail::CsvReader csv(file);
  const int curve_column = csv.column("curve");
  const int step_column = csv.column("step");
  Description about = description_beside(file);
  const bool described = metric == about.metric && csv.find(metric) < 0;
  const int value_column = csv.column(described ? "value" : metric);
  const int lr_column = csv.find("lr");
  const int wall_column = csv.find("wall_seconds");
  if (metric != "value") about.metric = metric;
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
            {.name = std::string(name), .metric = about.metric, .direction = about.direction});
        const auto settings = about.settings.find(name);
        if (settings != about.settings.end()) traces.back().settings = settings->second;
      }
    }
    Trace& trace = traces[index];
    const double step = csv.finite_number(step_column);
    cut = csv.unfinished() && !trace.step.empty() && step <= trace.step.back();
    if (cut) break;  // half of a number is no step that goes back
    if (!detail::is_step(step)) csv.fail("step ", step, " is not ", detail::kStepRange);
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
