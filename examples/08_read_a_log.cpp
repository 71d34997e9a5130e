// SPDX-License-Identifier: Apache-2.0
// What a training loop wrote, whatever its format: every run of a log or a folder, and what had to
// be repaired. Usage: 08_read_a_log [LOG] [METRIC]
#include <cstdio>

#include <glidepath/glidepath.hpp>

namespace gp = glidepath;

int main(int argc, char** argv) {
  const char* log = argc > 1 ? argv[1] : "data/curves/docs-transformer.csv.gz";
  gp::ReadOptions options;
  if (argc > 2) options.metric = argv[2];
  try {
    for (const gp::Trace& run : gp::read_traces(log, options)) {
      std::printf("%s: %zu points of %s\n", run.name.c_str(), run.step.size(), run.metric.c_str());
      for (const std::string& note : run.notes) std::printf("  %s\n", note.c_str());
    }
  } catch (const gp::IoError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
