// SPDX-License-Identifier: Apache-2.0
// Which reader a log is for, by its content.
#include "glidepath/error.hpp"
#include "glidepath/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <tuple>

#include "common/csv.hpp"
#include "common/names.hpp"
#include "trace/readers/formats.hpp"
#include "trace/readers/log_file.hpp"
#include "trace/readers/text.hpp"

namespace glidepath {
namespace detail {
namespace {

constexpr std::size_t kShownColumns = 8;
constexpr std::size_t kShownLetters = 30;
// How files begin that other programs than gzip have packed.
constexpr std::pair<std::string_view, std::string_view> kPacked[] = {{"\xFD\x37\x7A\x58\x5A", "xz"},
                                                                     {"BZh", "bzip2"},
                                                                     {"PK\x03\x04", "zip"},
                                                                     {"\x28\xB5\x2F\xFD", "zstd"}};

/// A format: whether a file is its own, and what it reads of one.
struct Format {
  std::string_view name{};
  bool (*recognises)(const std::filesystem::path& file, std::string_view head) = nullptr;
  std::vector<LoggedRun> (*read)(const std::filesystem::path& file, const Metric& metric) = nullptr;
};

/// A reader of files with one run as one of files with several.
template <auto read>
std::vector<LoggedRun> alone(const std::filesystem::path& file, const Metric& metric) {
  return {read(file, metric)};
}

// In the order in which they get to judge whether a file is theirs. The long form, which has
// several runs in a file, has a reader of its own.
constexpr std::array kFormats{
    Format{"csv", is_long, nullptr},
    Format{"trainer_state", is_trainer_state, alone<read_trainer_state>},
    Format{"jsonl", is_json_lines, read_json_lines},
    Format{"table", is_table, read_table},
    Format{"text", is_console, read_console},
};

std::string format_names() {
  return listed(kFormats, [](const Format& format) { return format.name; });
}

/// Whether a file begins as those of trackers and databases do, in which words and numbers stand
/// by chance: event files of TensorBoard, W&B's log, SQLite, Parquet.
bool is_foreign(std::string_view head) {
  return contains(head.substr(0, 64), "brain.Event:") || head.starts_with(":W&B") ||
         head.starts_with("SQLite format 3") || head.starts_with("PAR1");
}

const Format* format_of(const std::filesystem::path& file, std::string_view head) {
  if (is_foreign(head)) return nullptr;
  for (const Format& format : kFormats) {
    try {
      if (format.recognises(file, head)) return &format;
    } catch (const IoError&) {  // of a damaged file a reader may not know what to make
    }
  }
  return nullptr;
}

const Format* format_named(const Metric& name) {
  if (!name) return nullptr;
  const auto found =
      std::ranges::find_if(kFormats, [&](const Format& format) { return format.name == *name; });
  if (found != kFormats.end()) return &*found;
  refuse("read_traces: format is ", repr(*name), ", expected one of ", format_names());
}

std::vector<Trace> read_as(const Format& format, const std::filesystem::path& file,
                           const std::string& name, const Metric& metric) {
  if (format.read == nullptr) return read_long_csv(file, metric.value_or("value"));
  std::vector<Trace> traces;
  for (const LoggedRun& run : format.read(file, metric)) {
    traces.push_back(to_trace(run, metric, shown_path(file), run.name.empty() ? name : run.name));
  }
  return traces;
}

std::vector<Trace> read_one(const std::filesystem::path& file, const Format* format,
                            const Metric& metric) {
  (void)LogFile(file);  // a pipe may never end
  if (format == nullptr) {
    const std::string head = head_of(file);
    format = format_of(file, head);
    if (is_foreign(head)) {
      refuse_file(shown_path(file), ": a log of a tracker, which Python's read_traces reads");
    }
    if (format == nullptr) format = format_named(unknown_format(file, head, format_names()));
  }
  return read_as(*format, file, shown_path(file.filename()), metric);
}

/// Whether an entry of a folder is a link to a file that is in it anyway.
bool leads_into(const std::filesystem::directory_entry& entry,
                const std::filesystem::path& folder) {
  if (!entry.is_symlink()) return false;
  const std::filesystem::path to = std::filesystem::canonical(entry.path());
  const std::filesystem::path in = std::filesystem::canonical(folder);
  return std::mismatch(in.begin(), in.end(), to.begin(), to.end()).first == in.end();
}

/// A trace of a folder, and what it was read from.
struct FoundTrace {
  Trace trace{};
  std::filesystem::path folder{};
  std::string_view format{};

  [[nodiscard]] auto worth() const {
    return std::tuple(trace.step.size(), !trace.settings.empty());
  }
};

/// Whether a trace has all points of another one.
bool holds(const Trace& trace, const Trace& other) {
  if (other.step.size() < 2 || normal(trace.metric) != normal(other.metric)) return false;
  for (std::size_t i = 0; i < other.step.size(); ++i) {
    const auto at = std::ranges::lower_bound(trace.step, other.step[i]);
    if (at == trace.step.end() || *at != other.step[i]) return false;
    const double there = trace.loss[static_cast<std::size_t>(at - trace.step.begin())];
    if (there != other.loss[i] && !(std::isnan(there) && std::isnan(other.loss[i]))) return false;
  }
  return true;
}

/// The traces without those whose points another one of the same folder has in another format, as
/// tools write a run twice: the longer one stays, or the one with settings, or the first.
std::vector<Trace> without_copies(const std::vector<FoundTrace>& found) {
  std::vector<Trace> kept;
  std::map<std::filesystem::path, std::vector<const FoundTrace*>> of_folder;
  for (const FoundTrace& each : found) of_folder[each.folder].push_back(&each);
  for (const FoundTrace& each : found) {
    const std::vector<const FoundTrace*>& beside = of_folder[each.folder];
    const bool copy = std::ranges::any_of(beside, [&](const FoundTrace* other) {
      const bool better =
          other->worth() > each.worth() || (other->worth() == each.worth() && other < &each);
      return better && other->format != each.format && holds(other->trace, each.trace);
    });
    if (!copy) kept.push_back(each.trace);
  }
  return kept;
}

std::vector<Trace> read_folder(const std::filesystem::path& folder, const Format* format,
                               const Metric& metric) {
  std::vector<std::filesystem::path> files;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, options)) {
    if (entry.is_regular_file() && !leads_into(entry, folder)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<FoundTrace> found;
  std::vector<Trace> values;  // what is no curve of a loss or a score
  std::set<std::filesystem::path> done;
  std::string passed;
  for (const std::filesystem::path& each : files) {
    const std::string head = head_of(each);
    const Format* const own = format_of(each, head);
    if (own == nullptr || (format != nullptr && own != format)) continue;
    // Of a run of the Trainer that others hold the beginning of, the whole.
    const std::filesystem::path whole = own->name == "trainer_state" ? whole_state(each) : each;
    const std::filesystem::path& file =
        std::binary_search(files.begin(), files.end(), whole) ? whole : each;
    if (!done.insert(file).second) continue;
    try {
      if (own->read == nullptr) require_column(file, head, metric);
      const std::string name = shown_path(file.lexically_relative(folder));
      for (Trace& trace : read_as(*own, file, name, metric)) {
        const bool value =
            file.extension() == ".json" && own->name == "jsonl" && trace.step.size() == 1;
        const bool other = !metric && own->read != nullptr && !is_metric(trace.metric);
        if (value || other) {
          values.push_back(std::move(trace));
        } else {
          found.push_back({std::move(trace), file.parent_path(), own->name});
        }
      }
    } catch (const AbsentError& error) {
      if (passed.empty()) passed = error.what();
    } catch (const RefusedError& error) {
      if (passed.empty()) passed = error.what();
    }
  }
  std::vector<Trace> traces = without_copies(found);
  const auto is_curve = [](const Trace& trace) { return trace.step.size() > 1; };
  if (std::ranges::none_of(traces, is_curve)) {
    std::move(values.begin(), values.end(), std::back_inserter(traces));
  }
  if (!traces.empty()) return traces;
  refuse_file(shown_path(folder), ": no traces in this folder",
              metric ? " with a metric " + repr(*metric) : "",
              " (formats: ", format != nullptr ? std::string(format->name) : format_names(), ")",
              passed.empty() ? "" : "; " + passed);
}

/// Whether a text begins as JSON does, and not as a line of a log: "[12] loss", "[INFO] …".
bool begins_json(std::string_view text) {
  if (!text.starts_with('[')) return text.starts_with('{');
  text.remove_prefix(1);
  const std::string_view in = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::size_t end = std::min(in.find_first_not_of("0123456789.eE+-"), in.size());
  if (end == 0) return in.empty() || contains("{[\"]", in.substr(0, 1));
  return end == in.size() || in[end] == ',' || stripped(in.substr(end)) == "]";
}

/// What a document lacks in which no history was found.
std::string json_advice(std::string_view text) {
  if (!begins_json(text)) return {};
  return "; a document of JSON needs lists of numbers, or of objects, with the name of a loss";
}

}  // namespace

std::vector<std::string> header_of(std::string_view head) {
  std::string text = repaired(head.substr(0, head.find('\n')));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  std::vector<std::string> names;
  for (const std::string_view part : split_at(stripped(text), ',')) {
    std::string_view name = stripped(part);
    while (name.starts_with('"')) name.remove_prefix(1);
    while (name.ends_with('"')) name.remove_suffix(1);
    names.emplace_back(name);
  }
  return names;
}

bool is_long(const std::filesystem::path& /*file*/, std::string_view head) {
  const std::vector<std::string> names = header_of(head);
  return among(names, "curve") && among(names, "step");
}

void require_column(const std::filesystem::path& file, std::string_view head,
                    const Metric& metric) {
  const std::string wanted = metric.value_or("value");
  if (among(header_of(head), wanted) || (metric && metric_beside(file) == wanted)) return;
  throw AbsentError(shown_path(file) + ":1: no column " + repr(wanted));
}

std::string unknown_format(const std::filesystem::path& file, std::string_view head,
                           const std::string& formats) {
  for (const auto& [magic, name] : kPacked) {
    if (!head.starts_with(magic)) continue;
    refuse_file(shown_path(file), ": packed by ", name, ", of which only gzip is read: unpack it");
  }
  const std::vector<std::string> names = header_of(head);
  const std::string_view text = head.starts_with(kByteOrderMark) ? head.substr(3) : head;
  if (is_page(file) && !stripped(text).empty() && !has_numbers_at_steps(file, head)) {
    refuse_file(shown_path(file),
                ": a page of Markdown, expected a table in it with a column of steps or epochs");
  }
  if (stripped(text).empty() || among(names, "curve")) return "csv";
  const std::string name = file.filename().string();
  const bool csv = name.ends_with(".csv") || contains(name, ".csv.");
  if (csv && names.size() == 1 && is_metric(names[0])) {
    refuse_file(shown_path(file), ":1: ", repr(names[0]),
                " alone needs three numbers or more below it, and nothing else");
  }
  if (csv && std::ranges::all_of(names, is_printable)) {
    std::string columns;
    for (std::size_t i = 0; i < std::min(names.size(), kShownColumns); ++i) {
      columns += (i > 0 ? ", " : "") + std::string(first_characters(names[i], kShownLetters));
    }
    if (names.size() > kShownColumns) columns += " …";
    if (std::all_of(names.begin(), names.end(), number_in)) {
      refuse_file(shown_path(file), ":1: the first line is the number",
                  names.size() > 1 ? "s " : " ", columns,
                  ", expected the names of its columns above it, such as step,loss");
    }
    refuse_file(shown_path(file),
                ":1: a table needs a column of steps (step, epoch, iteration …) or a loss, the "
                "long form curve, step and value: found only ",
                columns);
  }
  if (has_numbers_at_steps(file, head)) return "text";
  const bool console = !contains(head, std::string_view("\0", 1)) && !begins_json(stripped(text));
  refuse_file(shown_path(file), ": a log of no known format (formats: ", formats, ")",
              console ? "; of a console log say " + std::string(kPatternAdvice)
                      : json_advice(stripped(text)));
}

}  // namespace detail

std::vector<Trace> read_traces(const std::filesystem::path& path, const ReadOptions& options) {
  if (path.empty()) detail::refuse("read_traces: the path is empty");
  const detail::Format* const format = detail::format_named(options.format);
  try {
    const bool folder = std::filesystem::is_directory(path);
    return folder ? detail::read_folder(path, format, options.metric)
                  : detail::read_one(path, format, options.metric);
  } catch (const std::filesystem::filesystem_error& error) {
    detail::refuse_file(detail::shown_path(error.path1()), ": ", error.code().message());
  }
}

}  // namespace glidepath
