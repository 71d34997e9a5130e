// SPDX-License-Identifier: Apache-2.0
// Every reader of the library on arbitrary files: an answer that its own checks accept, or an
// IoError or InputError.
#include "glidepath/hardware.hpp"
#include "glidepath/simulate.hpp"
#include "glidepath/trace.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "case.hpp"

namespace {

using namespace glidepath;

/// A folder in memory, where there is one.
const std::filesystem::path& folder() {
  static const std::filesystem::path made = [] {
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    name += "/glidepath-fuzz-XXXXXX";
    GLIDEPATH_HOLDS(mkdtemp(name.data()) != nullptr);
    std::filesystem::create_directory(std::filesystem::path(name) / "truth");
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return std::filesystem::path(name);
  }();
  return made;
}

std::filesystem::path write(const std::string& name, std::string_view bytes) {
  const std::filesystem::path file = folder() / name;
  std::ofstream(file, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  return file;
}

/// Up to the next NUL.
std::string_view part(std::string_view& bytes) {
  const std::size_t end = bytes.find('\0');
  const std::string_view first = bytes.substr(0, end);
  bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
  return first;
}

void read_curves(std::string_view bytes) {
  write("curves.json", part(bytes));
  for (const Trace& trace : read_long_csv(write("curves.csv", bytes))) validate(trace.view());
}

/// A log of a training loop, of a format or whatever it looks like.
void read_log(std::string_view bytes, const char* format) {
  const std::filesystem::path file = write("log", bytes);
  ReadOptions options;
  if (format != nullptr) options.format = format;
  for (const Trace& trace : read_traces(file, options)) {
    validate(trace.view());
    options.metric = trace.metric;
    GLIDEPATH_HOLDS(read_traces(file, options).front().step.size() == trace.step.size());
  }
}

/// What a folder of jobs says comes back from what is written of it.
void read_folder(std::string_view bytes) {
  const auto tiers = part(bytes), jobs = part(bytes), curves = part(bytes), gangs = part(bytes);
  const std::string_view phases = bytes;
  write("tiers.csv", tiers);
  write("jobs.csv", jobs);
  write("truth/curves.csv", curves);
  for (const auto& [name, text] : {std::pair{"gangs.csv", gangs}, {"phases.csv", phases}}) {
    std::filesystem::remove(folder() / name);
    if (!text.empty()) write(name, text);
  }
  const Workload workload = read_workload(folder());
  validate(workload);
  write_jobs(workload, folder() / "jobs.csv");
  const Workload again = read_workload(folder());
  GLIDEPATH_HOLDS(again.jobs.size() == workload.jobs.size());
  for (std::size_t i = 0; i < again.jobs.size(); ++i) {
    const WorkloadJob &a = again.jobs[i], &b = workload.jobs[i];
    GLIDEPATH_HOLDS(a.id == b.id && a.user == b.user && a.submit_s == b.submit_s);
    GLIDEPATH_HOLDS(a.duration_s == b.duration_s && a.budget_steps == b.budget_steps);
    GLIDEPATH_HOLDS(a.truth == b.truth && a.target_loss == b.target_loss);
    GLIDEPATH_HOLDS(a.steps_per_s == b.steps_per_s && a.restart_s == b.restart_s);
    GLIDEPATH_HOLDS(a.gangs == b.gangs && a.phases == b.phases);
  }
}

void draw_users(std::string_view bytes) {
  write("tiers.csv", part(bytes));
  write("classes.csv", part(bytes));
  write("habits.csv", part(bytes));
  write("truth/curves.csv", bytes);
  validate(generate_workload(folder(), 3));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Case given(data, size);
  const int reader = given.byte() % 10;
  const std::string_view bytes = given.rest();
  fuzz::allow_refusal([&] {
    if (reader == 0) read_curves(bytes);
    if (reader == 1) (void)learn_pairs(read_pairs(write("pairs.csv", bytes)), {});
    if (reader == 2) validate(workload_from_trace(write("trace.csv", bytes), 8));
    if (reader == 3) read_folder(bytes);
    if (reader == 4) draw_users(bytes);
    constexpr const char* kFormats[] = {nullptr, "trainer_state", "jsonl", "table", "text"};
    if (reader >= 5) read_log(bytes, kFormats[reader - 5]);
  });
  return 0;
}
