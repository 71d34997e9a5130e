// SPDX-License-Identifier: Apache-2.0
#include "glidepath/execution.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/csv.hpp"
#include "common/interrupt.hpp"
#include "common/parallel.hpp"
#include "common/rng.hpp"
#include "refusal.hpp"
#include "temporary_files.hpp"

namespace glidepath::detail {
namespace {

TEST(ParallelTest, VisitsEachItemOnceWhateverTheThreads) {
  for (const int threads : {0, 1, 2, 7}) {
    std::vector<int> visits(1003, 0);
    for_each_block(1003, 10, {.threads = threads}, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      EXPECT_LE(end - begin, 10);
      for (std::ptrdiff_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    EXPECT_EQ(visits, std::vector<int>(1003, 1)) << threads << " threads";
  }
}

TEST(ParallelTest, ThrowsTheErrorOfTheLowestBlock) {
  for (const int threads : {1, 2, 7}) {
    const auto run = [&] {
      for_each_block(100, 1, {.threads = threads}, [](std::ptrdiff_t begin, std::ptrdiff_t) {
        if (begin % 30 == 17) throw std::out_of_range(std::to_string(begin));
      });
    };
    EXPECT_EQ(message_of<std::out_of_range>(run), "17") << threads << " threads";
  }
}

TEST(ParallelTest, ThreadsBelowNoneAndUnknownInstructionSetsAreRefused) {
  const auto refused = [](const Execution& execution) {
    return refusal([&] { for_each_block(1, 1, execution, [](std::ptrdiff_t, std::ptrdiff_t) {}); });
  };
  EXPECT_EQ(refused({.threads = -3}), "threads is -3, expected 0 or more");
  EXPECT_EQ(refused({.isa = static_cast<Isa>(9)}),
            "isa is value 9, expected one of best, baseline");
  EXPECT_EQ(refused({}), "");
}

TEST(ParallelTest, DoesNothingForNoItems) {
  for_each_block(0, 8, {}, [](std::ptrdiff_t, std::ptrdiff_t) { FAIL(); });
}

TEST(ParallelTest, BlocksWithinBlocksRunInTheThreadOfTheOuterOne) {
  std::atomic<int> elsewhere = 0, visits = 0;
  for_each_block(8, 1, {.threads = 4}, [&](std::ptrdiff_t, std::ptrdiff_t) {
    const auto outer = std::this_thread::get_id();
    for_each_block(8, 1, {.threads = 4}, [&](std::ptrdiff_t, std::ptrdiff_t) {
      ++visits;
      if (std::this_thread::get_id() != outer) ++elsewhere;
    });
  });
  EXPECT_EQ(visits, 64);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ParallelTest, RunsNoMoreThanFourThreadsForEachCore) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for_each_block(4000, 1, {.threads = 1'000'000}, [&](std::ptrdiff_t, std::ptrdiff_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_LE(seen.size(), 4 * std::thread::hardware_concurrency());
}

/// Whether `run` ends well in a child of this process, within ten seconds.
template <class Run>
bool ends_in_a_child(Run&& run) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    run();
    _exit(0);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

std::vector<int> visits_of_blocks(int threads) {
  std::vector<int> visits(64, 0);
  for_each_block(64, 1, {.threads = threads}, [&](std::ptrdiff_t i, std::ptrdiff_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    ++visits[static_cast<std::size_t>(i)];
  });
  return visits;
}

TEST(ParallelTest, AChildOfAForkDoesWithoutTheThreadsOfItsParent) {
  const std::vector<int> once(64, 1);
  ASSERT_EQ(visits_of_blocks(4), once);
  EXPECT_TRUE(ends_in_a_child([&] {
    if (visits_of_blocks(4) != once) _exit(1);
    if (!ends_in_a_child([&] { visits_of_blocks(4); })) _exit(1);  // nor does a grandchild hang
  }));
  EXPECT_EQ(visits_of_blocks(4), once);
}

#ifndef GLIDEPATH_SANITIZED  // whose shadow memory is beyond any limit
TEST(ParallelTest, DoesWithTheThreadsThatTheSystemGives) {
  EXPECT_TRUE(ends_in_a_child([] {
    const rlimit none{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};  // no room for a stack
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(1);
    if (visits_of_blocks(8) != std::vector<int>(64, 1)) _exit(1);
  }));
}
#endif

struct Stopped {};

TEST(InterruptTest, WhatThePollThrowsLeavesTheCallFromAnyNumberOfThreads) {
  for (const int threads : {1, 4}) {
    std::atomic<int> blocks = 0;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(
        {
          const Interruptible scope([] { throw Stopped(); });
          for_each_block(100'000, 1, {.threads = threads}, [&](std::ptrdiff_t, std::ptrdiff_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ++blocks;
          });
        },
        Stopped);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_GE(took.count(), 0.04);
    EXPECT_LT(took.count(), 1.0);
    const int seen = blocks;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(blocks, seen) << "a helper went on";
  }
}

TEST(InterruptTest, ALongBlockOfAHelperEndsWhereItAsks) {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> asks_in_vain = false;
  const Interruptible scope([] { throw Stopped(); });
  const auto run = [&] {
    for_each_block(2, 1, {.threads = 2}, [&](std::ptrdiff_t, std::ptrdiff_t) {
      for (int i = 0; i < 3000; ++i) {
        if (std::this_thread::get_id() != caller) check_interrupt();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (std::this_thread::get_id() == caller && i > 20) return;  // waits for the helper
      }
      asks_in_vain = true;
    });
  };
  EXPECT_THROW(run(), Stopped);
  EXPECT_FALSE(asks_in_vain);
}

TEST(InterruptTest, TheInnerScopeIsAskedAndThenTheOuterAgain) {
  int outer = 0, inner = 0;
  const auto wait = [] {
    for (int i = 0; i < 80; ++i) {
      check_interrupt();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const Interruptible first([&] { ++outer; });
  {
    const Interruptible second([&] { ++inner; });
    wait();
  }
  EXPECT_GE(inner, 1);
  EXPECT_EQ(outer, 0);
  wait();
  EXPECT_GE(outer, 1);
}

TEST(InterruptTest, APollThatCallsTheLibraryIsNotAskedByThatCall) {
  int asked = 0, inside = 0, most = 0;
  const auto work = [] {
    const auto until = std::chrono::steady_clock::now() + 2 * detail::kPollEvery;
    while (std::chrono::steady_clock::now() < until) detail::check_interrupt();
  };
  const Interruptible scope([&] {
    ++asked;
    most = std::max(most, ++inside);
    if (inside < 5) work();
    --inside;
  });
  work();
  work();
  EXPECT_GE(asked, 2);  // again once it has answered
  EXPECT_EQ(most, 1);
}

TEST(InterruptTest, AScopeWithoutAPollIsRefusedAndTheOuterOneStays) {
  int asked = 0;
  const Interruptible outer([&] { ++asked; });
  EXPECT_EQ(refusal([] { const Interruptible empty(nullptr); }), "interruptible: poll is empty");
  const auto until = std::chrono::steady_clock::now() + 2 * detail::kPollEvery;
  while (std::chrono::steady_clock::now() < until) detail::check_interrupt();
  EXPECT_GE(asked, 1);
}

TEST(InterruptTest, AnErrorAfterAnInterruptionIsStillThatOfTheLowestBlock) {
  const Interruptible scope([thrown = false]() mutable {
    if (!std::exchange(thrown, true)) throw Stopped();
  });
  const auto idle = [](std::ptrdiff_t, std::ptrdiff_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_THROW(for_each_block(10'000, 1, {.threads = 2}, idle), Stopped);
  const auto run = [&] {
    for_each_block(100, 1, {.threads = 2}, [](std::ptrdiff_t begin, std::ptrdiff_t) {
      if (begin % 30 == 17) throw std::out_of_range(std::to_string(begin));
    });
  };
  EXPECT_EQ(message_of<std::out_of_range>(run), "17");
}

TEST(RngTest, IsAFunctionOfItsKeys) {
  const Rng rng{42};
  EXPECT_EQ(rng.bits(3, 5), Rng{42}.bits(3, 5));
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t id = 0; id < 10; ++id) {
      for (std::uint64_t draw = 0; draw < 10; ++draw) seen.insert(Rng{seed}.bits(id, draw));
    }
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(RngTest, DrawsHaveTheMomentsOfTheirLaws) {
  const Rng rng{1};
  constexpr int kDraws = 40000;
  double uniform = 0, uniform2 = 0, normal = 0, normal2 = 0, product = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const double u = rng.uniform(7, draw);
    const double z = rng.normal(7, draw);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u;
    uniform2 += u * u;
    normal += z;
    normal2 += z * z;
    product += z * rng.normal(8, draw);
  }
  // Five standard errors.
  EXPECT_NEAR(uniform / kDraws, 1.0 / 2, 5 * 0.289 / 200);
  EXPECT_NEAR(uniform2 / kDraws, 1.0 / 3, 5 * 0.298 / 200);
  EXPECT_NEAR(normal / kDraws, 0.0, 5 * 1.0 / 200);
  EXPECT_NEAR(normal2 / kDraws, 1.0, 5 * 1.414 / 200);
  EXPECT_NEAR(product / kDraws, 0.0, 5 * 1.0 / 200);
}

TEST(ExecutionTest, NamesThisMachine) {
  EXPECT_GE(available_threads(), 1);
  EXPECT_FALSE(best_isa().empty());
}

TEST(ParseNumberTest, ReadsWhatPrintfWrites) {
  const auto parsed = [](const char* text) {
    double number = -12345;
    EXPECT_TRUE(parse_number(text, number)) << text;
    return number;
  };
  EXPECT_EQ(parsed("1.5"), 1.5);
  EXPECT_EQ(parsed(" +2e-3\t"), 2e-3);
  EXPECT_EQ(parsed("-0.1"), -0.1);
  EXPECT_EQ(parsed("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed("-1e999"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed("1e-999"), 0.0);
  EXPECT_EQ(parsed("Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parsed("NaN")));
}

TEST(ParseNumberTest, RefusesATextThatIsNoNumberFromEndToEnd) {
  double number = 0;
  for (const char* text :
       {"", " ", "+", "+-1", "1,5", "1.5x", "0x10", "1 2", "1_000", "--1", "none"}) {
    EXPECT_FALSE(parse_number(text, number)) << text;
  }
}

TEST(ShownTest, IsAlwaysPrintableUtf8) {
  EXPECT_EQ(shown("plain"), "plain");
  EXPECT_EQ(shown("gr\xC3\xB6\xC3\x9F"
                  "er"),
            "gr\xC3\xB6\xC3\x9F"
            "er");
  EXPECT_EQ(shown("gr\xF6\xDF"
                  "er\n"),
            "gr\\xf6\\xdfer\\x0a");
  EXPECT_EQ(shown("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(shown("\xE2\x82"), "\\xe2\\x82");           // cut short
  EXPECT_EQ(shown(std::string(500, 'a')).size(), 80U);  // 77 and three dots
}

using CsvTest = TemporaryFiles;

TEST_F(CsvTest, ReadsQuotesCommasLineEndsAndTheLineNumbersBehindThem) {
  CsvReader csv(write("a.csv",
                      "\xEF\xBB\xBF"
                      "id,n\r\n\"a,\"\"b\"\"\nc\",1\r\n\r\nplain,2"));
  EXPECT_EQ(csv.columns(), (std::vector<std::string>{"id", "n"}));
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.text(0), "a,\"b\"\nc");
  EXPECT_EQ(csv.integer(1), 1);
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.text(0), "plain");
  EXPECT_EQ(csv.integer(1), 2);
  EXPECT_EQ(message_of<IoError>([&] { csv.fail("here"); }), path("a.csv").string() + ":5: here");
  EXPECT_FALSE(csv.next());
}

TEST_F(CsvTest, NamesFileLineAndFieldOfWhatItRefuses) {
  const auto read = [&](std::string_view bytes) {
    return message_of<IoError>([&] {
             CsvReader csv(write("a.csv", bytes));
             const int x = csv.column("x");
             while (csv.next()) (void)csv.integer(x);
           })
        .substr(path("a.csv").string().size());
  };
  EXPECT_EQ(read(""), ": the file is empty");
  EXPECT_EQ(read("\n\n"), ": the file is empty");
  EXPECT_EQ(read("y,z\n1,2\n"), ":1: no column 'x', only y, z");
  EXPECT_EQ(read("x,y,x\n"), ":1: two columns are named 'x'");
  EXPECT_EQ(read("x,y\n1,2\n3\n"), ":3: 1 field where the header has 2");
  EXPECT_EQ(read("x,y\n1,2\n3,4,5\n"), ":3: 3 fields where the header has 2");
  EXPECT_EQ(read("x,y\n1,2\n1.5,2\n"), ":3: x '1.5' is not a whole number");
  EXPECT_EQ(read("x,y\n,2\n"), ":2: x is empty");
  EXPECT_EQ(read("x,y\n1,\"2\n"), ":2: a quote is never closed");
  EXPECT_EQ(read("x,y\n\"1\"2,3\n"), ":2: text after the closing quote of field 1");
}

TEST_F(CsvTest, RefusesFoldersMissingFilesAndBrokenGzip) {
  const auto message = [](const std::filesystem::path& file) {
    return message_of<IoError>([&] { (void)read_file(file); });
  };
  EXPECT_EQ(message(path("none.csv")), path("none.csv").string() + ": No such file or directory");
  EXPECT_EQ(message(path("")), path("").string() + ": is a folder, not a file");
  EXPECT_EQ(refusal([] { (void)read_file(""); }), "the path of the file to read is empty");

  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  const auto packed = write_gzip("whole.gz", text);
  EXPECT_EQ(read_file(packed), text);
  std::ifstream stream(packed, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  for (const std::size_t kept : {std::size_t{5}, bytes.size() / 2, bytes.size() - 4}) {
    const auto cut = write("cut.gz", bytes.substr(0, kept));
    EXPECT_EQ(message(cut), cut.string() + ": the gzip stream ends too early") << kept;
  }
  std::string flipped = bytes;
  flipped[flipped.size() / 2] = static_cast<char>(~flipped[flipped.size() / 2]);
  EXPECT_NE(message(write("flipped.gz", flipped)).find("gzip"), std::string::npos);
}

}  // namespace
}  // namespace glidepath::detail
