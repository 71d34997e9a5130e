// SPDX-License-Identifier: Apache-2.0
#include "trace/readers/run_settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/text.hpp"

namespace glidepath::detail {
namespace {

using Kind = Json::Kind;

constexpr int kSettingsDepth = 8;
constexpr std::size_t kLongestCode = 19;  // letters and digits in a row, of which some are digits

// Parts of a name: what is called so is a secret, a place, or who or which one.
constexpr std::string_view kSecretParts[] = {"token", "key",   "keys",   "auth", "pwd",
                                             "pass",  "login", "cookie", "salt"};
constexpr std::string_view kSecretTexts[] = {"password", "passwd",     "passphrase",
                                             "secret",   "credential", "apikey"};
constexpr std::string_view kPlaces[] = {"path",     "paths", "dir",  "directory", "file",
                                        "folder",   "root",  "url",  "uri",       "host",
                                        "hostname", "port",  "user", "email",     "username"};
constexpr std::string_view kNamesOfRuns[] = {"name",   "run_name", "exp_name",
                                             "run_id", "id",       "uuid"};

/// The parts of a name in small letters: "hub", "api", "key" of "hub.apiKey".
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  char before = '\0';
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (!is_letter(c) && !is_digit(c)) {
      parts.emplace_back();
    } else {
      if (capital && before >= 'a' && before <= 'z') parts.emplace_back();
      parts.back() += lower_letter(c);
    }
    before = c;
  }
  return parts;
}

/// Whether a setting may be called so.
bool is_setting_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestSettingName || !is_printable(name)) return false;
  if (name[0] == '_' || is_digit(name[0]) || contains(name, "._") || among(kNamesOfRuns, name)) {
    return false;
  }
  std::string small;
  for (const std::string& part : parts_of(name)) {
    if (among(kSecretParts, part)) return false;
    small += part;
  }
  const std::string last = parts_of(name).back();
  return !among(kPlaces, last) &&
         std::ranges::none_of(kSecretTexts, [&](auto text) { return contains(small, text); });
}

/// Whether a text is a short word, and neither a path nor a code such as a key.
bool is_short_word(std::string_view text) {
  if (text.empty() || text.size() > kLongestWord || !is_letter(text[0])) return false;
  if (text == "None") return false;  // Python's null as text
  std::size_t row = 0, digits = 0;
  for (const char c : text) {
    if (is_letter(c) || is_digit(c)) {
      digits += is_digit(c) ? 1 : 0;
      if (++row > kLongestCode && digits > 0) return false;
    } else if (c == '_' || c == '.' || c == '+' || c == '-') {
      row = digits = 0;
    } else {
      return false;
    }
  }
  return true;
}

void put_setting(Settings& settings, const std::string& name, const Json& value, int depth) {
  if (value.is(Kind::object)) {
    if (depth == 0) return;
    for (const auto& [key, inner] : value.members) {
      if (key.empty() || is_digit(key[0])) continue;  // a table by number, such as of labels
      std::string whole = name;
      if (!name.empty()) whole += '.';
      put_setting(settings, whole.append(key), inner, depth - 1);
    }
    return;
  }
  if (settings.size() >= kMostSettings || !is_setting_name(name)) return;
  if (value.is(Kind::number) && std::isfinite(value.number)) {
    settings.try_emplace(name, value.number);
  } else if (value.is(Kind::boolean)) {
    settings.try_emplace(name, std::string(value.truth ? "True" : "False"));
  } else if (value.is(Kind::text) && is_short_word(value.text)) {
    settings.try_emplace(name, value.text);
  }
}

/// A number as `1e-3` or `-.5`; none of `010`, which some take for 8.
std::optional<double> decimal(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string_view bare = text.starts_with('-') ? text.substr(1) : text;
  const bool octal = bare.size() > 1 && bare[0] == '0' && is_digit(bare[1]);
  const bool begins = !bare.empty() && (is_digit(bare[0]) || bare[0] == '.');
  if (octal || !begins) return {};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

std::string_view without_comment(std::string_view text) {
  return text.starts_with('#') ? std::string_view{} : stripped(text.substr(0, text.find(" #")));
}

/// The text in quotes at the front, without escapes, and what stands behind.
std::optional<std::pair<std::string_view, std::string_view>> quoted(std::string_view text) {
  const std::size_t end = text.find(text[0], 1);
  if (end == text.npos) return {};
  const std::string_view inner = text.substr(1, end - 1), rest = text.substr(end + 1);
  const bool escaped = contains(inner, "\\") || rest.starts_with(text[0]);
  if (escaped) return {};
  return std::pair{inner, rest};
}

/// A value on one line; none of what is more than a scalar.
std::optional<Json> scalar_in(std::string_view text) {
  if (text[0] == '\'' || text[0] == '"') {
    const auto found = quoted(text);
    if (!found || !without_comment(stripped(found->second)).empty()) return {};
    return Json{.kind = Kind::text, .text = std::string(found->first)};
  }
  const bool marked = std::string_view("[]{},&*!|>@%`?").find(text[0]) != std::string_view::npos;
  text = without_comment(text);
  if (marked || contains(text, ": ") || text.starts_with("- ")) return {};
  return plain_scalar(text);
}

class PlainYaml {
 public:
  explicit PlainYaml(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const std::string_view bare = stripped(line);
      if (bare.empty() || bare[0] == '#') continue;
      lines_.push_back({number, std::min(line.find_first_not_of(' '), line.size()), bare,
                        line[line.find_first_not_of(' ')] == '\t'});
    }
  }

  Json document() {
    if (!lines_.empty() && lines_[0].text == "---") ++at_;
    Json found{.kind = Kind::object};
    if (at_ == lines_.size()) return found;
    if (at_ + 1 == lines_.size() && lines_[at_].text == "{}") return found;
    found = mapping(lines_[at_].indent, kSettingsDepth);
    if (at_ < lines_.size()) refuse();
    return found;
  }

 private:
  struct Line {
    std::size_t number = 0, indent = 0;
    std::string_view text{};
    bool tab = false;
  };

  [[noreturn]] void refuse() const {
    throw JsonError("line " + std::to_string(lines_[at_].number) + " is not 'key: value'", 0);
  }
  bool deeper(std::size_t indent) const {
    return at_ < lines_.size() && lines_[at_].indent > indent;
  }
  bool is_item() const {
    return at_ < lines_.size() && (lines_[at_].text == "-" || lines_[at_].text.starts_with("- "));
  }
  void skip_deeper(std::size_t indent) {
    while (deeper(indent)) ++at_;
  }
  /// Passes over a list, whose items may stand as far left as its key.
  void skip_items(std::size_t indent) {
    while (deeper(indent) || (is_item() && lines_[at_].indent == indent)) ++at_;
  }

  /// The key of the line, and what stands behind its colon.
  std::pair<std::string, std::string_view> entry() const {
    const std::string_view text = lines_[at_].text;
    if (text[0] == '\'' || text[0] == '"') {
      const auto found = quoted(text);
      const std::string_view rest = found ? found->second : "";
      if (!rest.starts_with(':') || (rest.size() > 1 && rest[1] != ' ')) refuse();
      return {std::string(found->first), stripped(rest.substr(1))};
    }
    if (lines_[at_].tab || std::string_view("-?[]{},&*!|>@%`").find(text[0]) != text.npos) refuse();
    const std::size_t colon = text.find(": ");
    if (colon != text.npos)
      return {std::string(text.substr(0, colon)), stripped(text.substr(colon + 1))};
    if (!text.ends_with(':')) refuse();
    return {std::string(text.substr(0, text.size() - 1)), {}};
  }

  Json mapping(std::size_t indent, int depth) {
    Json found{.kind = Kind::object};
    std::unordered_set<std::string> keys;
    while (at_ < lines_.size() && lines_[at_].indent >= indent) {
      if (lines_[at_].indent > indent) refuse();
      auto [key, text] = entry();
      if (!keys.insert(key).second) refuse();  // which of the two counts is not told
      ++at_;
      if (!text.empty() && text[0] != '#') {
        std::optional<Json> value = scalar_in(text);
        if (value && !deeper(indent)) found.members.emplace_back(std::move(key), *std::move(value));
        skip_deeper(indent);  // text of several lines, or what a mark has below it
      } else if (is_item()) {
        skip_items(indent);
      } else if (deeper(indent) && depth > 0) {
        found.members.emplace_back(std::move(key), mapping(lines_[at_].indent, depth - 1));
      } else {
        skip_deeper(indent);
      }
    }
    return found;
  }

  std::vector<Line> lines_{};
  std::size_t at_ = 0;
};

/// A small file to its end. Throws IoError.
std::string small_text(const std::filesystem::path& file) {
  LogFile log(file);
  std::string text(kLargestSettingsFile + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const std::size_t got = log.read(text.data() + filled, text.size() - filled);
    if (got == 0) break;
    filled += got;
  }
  if (!log.damage().empty()) throw IoError(log.damage());
  if (filled > kLargestSettingsFile) throw IoError("more than 1 MiB");
  text.resize(filled);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (!is_utf8(text)) throw IoError("not UTF-8");
  return text;
}

}  // namespace

Json plain_scalar(std::string_view text) {
  for (const std::string_view none : {"", "~", "null", "Null", "NULL"}) {
    if (text == none) return {};
  }
  for (const std::string_view word : {"true", "True", "TRUE", "false", "False", "FALSE"}) {
    if (text == word) {
      return {.kind = Kind::boolean, .truth = lower_letter(word[0]) == 't'};
    }
  }
  if (const auto number = decimal(text)) return {.kind = Kind::number, .number = *number};
  return {.kind = Kind::text, .text = std::string(text)};
}

Json parse_plain_yaml(std::string_view text) { return PlainYaml(text).document(); }

void put_settings(Settings& settings, const Json& object) {
  if (object.is(Kind::object)) put_setting(settings, "", object, kSettingsDepth);
}

Json without_descriptions(const Json& config) {
  Json found{.kind = Kind::object};
  for (const auto& [name, entry] : config.members) {
    const Json* const value = entry.find("value");
    if (value != nullptr) found.members.emplace_back(name, *value);
  }
  return found;
}

void put_settings_of_file(const std::filesystem::path& file, LoggedRun& run) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return;
  std::string why;
  try {
    const std::string text = small_text(file);
    const Json found = file.extension() == ".json" ? parse_json(text) : parse_plain_yaml(text);
    if (!found.is(Kind::object)) throw IoError("not an object");
    put_settings(run.settings,
                 file.filename() == "config.yaml" ? without_descriptions(found) : found);
    return;
  } catch (const IoError& error) {
    why = error.what();
  } catch (const JsonError& error) {
    why = error.what();
  }
  const std::string name = shown_path(file.filename());
  const std::string whole = shown_path(file) + ": ";
  if (why.starts_with(whole)) why.erase(0, whole.size());
  run.notes.push_back("no settings were read of " + name + ": " + why);
}

}  // namespace glidepath::detail
