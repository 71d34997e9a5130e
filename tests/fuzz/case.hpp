// SPDX-License-Identifier: Apache-2.0
// The bytes of a fuzzer as the numbers of a case. Each program of this folder is one
// LLVMFuzzerTestOneInput, which libFuzzer feeds where it is linked in its place; in the tests
// `replay.cpp` gives it the stored corpus.
#pragma once

#include "glidepath/error.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Ends the program where an invariant does not hold, as the fuzzer expects.
#define GLIDEPATH_HOLDS(condition)                                                 \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

namespace glidepath::fuzz {

/// Zeros past the end.
class Case {
 public:
  Case(const std::uint8_t* data, std::size_t size)
      : bytes_(reinterpret_cast<const char*>(data), size) {}

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return first;
  }
  /// In [least, most], both within a byte.
  int between(int least, int most) { return least + byte() % (most - least + 1); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  /// Small numbers, those at the limits of a double, and any bits.
  double number() {
    constexpr double kLimits[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  0x1p-1074,
                                  2.2250738585072014e-308,
                                  1.7976931348623157e308,
                                  -1.7976931348623157e308,
                                  1e300,
                                  -1e300,
                                  1e-300,
                                  1e16,
                                  std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN(),
                                  1e154};
    const int kind = byte();
    if (kind < 160) return (byte() + byte() / 256.0) / 16 - (kind % 2 == 0 ? 0.0 : 8.0);
    if (kind < 208) return kLimits[kind % 16];
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    return number;
  }
  std::vector<double> numbers(int count) {
    std::vector<double> numbers;
    for (int i = 0; i < count; ++i) numbers.push_back(number());
    return numbers;
  }
  /// Mostly increasing: arbitrary numbers would hardly ever pass as steps.
  std::vector<double> steps(int count) {
    std::vector<double> steps;
    double at = byte() % 8 == 0 ? number() : 0;
    for (int i = 0; i < count; ++i) {
      const int gap = byte();
      at = gap < 240 ? at + 1 + gap % 16 : gap < 248 ? at * 2 : number();
      steps.push_back(at);
    }
    return steps;
  }
  std::string_view rest() { return std::exchange(bytes_, {}); }

 private:
  std::string_view bytes_;
};

inline bool finite(std::span<const double> numbers) {
  for (const double number : numbers) {
    if (!std::isfinite(number)) return false;
  }
  return true;
}

/// Runs a case that may be refused, in a sentence.
template <class Run>
void allow_refusal(Run&& run) {
  try {
    run();
  } catch (const InputError& error) {
    GLIDEPATH_HOLDS(error.what()[0] != '\0');
  } catch (const IoError& error) {
    GLIDEPATH_HOLDS(error.what()[0] != '\0');
  }
}

}  // namespace glidepath::fuzz
