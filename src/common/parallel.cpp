// SPDX-License-Identifier: Apache-2.0
// OpenMP runs the blocks. It leaves three things to do here: its threads are lost in the child of a
// fork, which would wait for them for ever; it ends the process where the system refuses a thread;
// and at the end of a loop the caller could not ask whether to go on.
#include "common/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <omp.h>
#include <pthread.h>

#include "common/interrupt.hpp"
#include "common/names.hpp"
#include "common/require.hpp"

#ifdef __linux__
#include <sched.h>
#endif

namespace glidepath {
namespace detail {
namespace {

constexpr int kThreadsPerCore = 4;
constexpr Names<2> kIsas{"best", "baseline"};

/// The first number of OMP_NUM_THREADS, by which clusters and containers say how many; 0 without.
int threads_of_environment() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view digits(text);
  int threads = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), threads);
  return std::max(threads, 0);
}

/// The stack that OMP_STACKSIZE gives each thread of OpenMP, in bytes; 0 where it says none.
double stack_of_environment() {
  const char* text = std::getenv("OMP_STACKSIZE");
  if (text == nullptr) text = std::getenv("GOMP_STACKSIZE");
  if (text == nullptr) return 0;
  char* unit = nullptr;
  const double size = std::strtod(text, &unit);
  while (*unit == ' ') ++unit;
  const int shift = *unit == 'b' || *unit == 'B'   ? 0
                    : *unit == 'm' || *unit == 'M' ? 20
                    : *unit == 'g' || *unit == 'G' ? 30
                                                   : 10;
  return std::isfinite(size) ? std::ldexp(std::max(size, 0.0), shift) : 0;
}

/// Read when OpenMP reads it. Later another thread may change the environment.
const double kOpenmpStack = stack_of_environment();

int cores() {
  // OpenMP bound this thread to one of the cores, and will bind its own to the others.
  if (omp_get_proc_bind() != omp_proc_bind_false) return std::max(1, omp_get_num_procs());
#ifdef __linux__
  cpu_set_t allowed;  // taskset, Slurm and containers give some of the cores
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// The blocks of one call, and who works on them.
struct Batch {
  std::ptrdiff_t blocks;
  const std::function<void(std::ptrdiff_t)>& body;
  int helpers = 0;  ///< threads that have not left, but for the caller; by `mutex`
  std::atomic<std::ptrdiff_t> next{0};
  std::atomic<bool> over{false};  ///< the caller was interrupted
  std::mutex mutex{};
  std::condition_variable last_left{};
  std::exception_ptr error{}, interruption{};  ///< by `mutex`
  std::ptrdiff_t error_block = 0;

  /// Blocks are begun in order, so that each below the first to fail is run whatever the threads.
  void work() {
    for (std::ptrdiff_t b = next++; b < blocks; b = next++) {
      try {
        check_interrupt();
        body(b);
      } catch (const Interrupted&) {
        return;
      } catch (...) {
        fail(b);
      }
    }
  }

  void fail(std::ptrdiff_t b) {
    next = blocks;
    const std::lock_guard lock(mutex);
    if (asker.interrupt != nullptr && asker.interrupt->threw) {
      over = true;
      interruption = std::current_exception();
    } else if (!error || b < error_block) {
      error_block = b;
      error = std::current_exception();
    }
  }
};

/// How many threads the system gave at once to this one: OpenMP keeps others for each that calls.
thread_local int had = 1;

/// This process is the child of a fork, whose OpenMP waits for the threads of its parent: those of
/// batches, of which it is known (`orphaned`), or those of another library's loops.
std::atomic<bool> ran{false}, forked{false}, orphaned{false};

/// From the beginning, as others may use OpenMP before this library does.
[[maybe_unused]] const int kForkHandler = pthread_atfork(nullptr, nullptr, [] {
  forked = true;
  orphaned = orphaned || ran;
  had = 1;
});

/// Threads that start and wait. Each takes a heap, of 64 MiB of the addresses that there are, as
/// those of OpenMP do, and a little more stack than OpenMP gives its own, which then fit where
/// these were: the C library keeps both for later threads.
class Rehearsal {
 public:
  explicit Rehearsal(int threads) {
    constexpr std::size_t kMoreStack = std::size_t{64} << 10;
    threads_.reserve(static_cast<std::size_t>(threads));
    pthread_attr_t like;
    std::size_t stack = 0;
    pthread_attr_init(&like);
    pthread_attr_getstacksize(&like, &stack);
    stack = std::max(stack, static_cast<std::size_t>(std::min(kOpenmpStack, 0x1p62)));
    const bool fits = pthread_attr_setstacksize(&like, stack + kMoreStack) == 0;
    pthread_t thread;
    while (fits && started() < threads && pthread_create(&thread, &like, wait, this) == 0) {
      threads_.push_back(thread);
    }
    pthread_attr_destroy(&like);
  }
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;
  ~Rehearsal() {
    over_ = true;
    over_.notify_all();
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  }
  [[nodiscard]] int started() const { return static_cast<int>(threads_.size()); }

 private:
  static void* wait(void* rehearsal) {
    void* volatile block = std::malloc(1);
    std::free(block);
    static_cast<Rehearsal*>(rehearsal)->over_.wait(false);
    return nullptr;
  }
  std::vector<pthread_t> threads_;
  std::atomic<bool> over_{false};
};

/// How many of `wanted` threads the system gives, tried where it never gave this thread so many.
int given(int wanted) {
  constexpr double kLeastStack = 0x1p16;
  if (kOpenmpStack > 0 && kOpenmpStack < kLeastStack) return 1;
  if (wanted <= had) return wanted;
  const int own = forked ? 0 : 1;  // whether the caller is one of them
  had = std::max(had, Rehearsal(wanted - own).started() + own);
  return had;
}

/// What the caller does when no block is left to begin.
void wait_for_helpers(Batch& batch) {
  std::unique_lock lock(batch.mutex);
  while (!batch.last_left.wait_for(lock, kPollEvery, [&] { return batch.helpers == 0; })) {
    if (batch.over) continue;
    lock.unlock();
    try {
      check_interrupt();
    } catch (...) {
      batch.fail(batch.blocks);
    }
    lock.lock();
  }
}

void help(Batch& batch) {
  asker.over = &batch.over;
  batch.work();
  asker.over = nullptr;
  const std::lock_guard lock(batch.mutex);
  if (--batch.helpers == 0) batch.last_left.notify_one();
}

/// Works on the blocks with the threads that OpenMP keeps for this one.
void run_here(Batch& batch, int team) {
#pragma omp parallel num_threads(team)
  {
#pragma omp single
    batch.helpers = omp_get_num_threads() - 1;
    if (omp_get_thread_num() != 0) {
      help(batch);
    } else {
      batch.work();
      wait_for_helpers(batch);
    }
  }
}

/// Waits for a new thread, for which OpenMP makes others; false where the system gives none.
bool run_beside(Batch& batch, int team) {
  const auto run = [&batch, team] {
#pragma omp parallel num_threads(team)
    {
#pragma omp single
      {
        const std::lock_guard lock(batch.mutex);
        batch.helpers = omp_get_num_threads();
      }
      help(batch);
    }
  };
  batch.helpers = 1;  // of which more are known soon
  try {
    std::thread beside(run);
    wait_for_helpers(batch);
    beside.join();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

/// Set in whatever runs blocks on several threads: blocks within blocks run one after the other.
thread_local bool inside = false;

}  // namespace

void check(const Execution& execution) {
  if (execution.threads < 0) {
    refuse("threads is ", execution.threads, ", expected 0 or more");
  }
  refuse_unnamed(kIsas, execution.isa, "isa");
}

void run_blocks(std::ptrdiff_t blocks, int threads,
                const std::function<void(std::ptrdiff_t)>& body) {
  const int wished =
      threads > 0 ? std::min(threads, kThreadsPerCore * cores()) : available_threads();
  const auto wanted = static_cast<int>(std::min<std::ptrdiff_t>(wished, blocks));
  const bool alone = wanted <= 1 || inside || asker.over != nullptr || orphaned;
  const int team = alone ? 1 : given(wanted);
  if (team <= 1) {
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      check_interrupt();
      body(b);
    }
    return;
  }
  Batch batch{.blocks = blocks, .body = body};
  if (asker.interrupt != nullptr) asker.interrupt->threw = false;  // by an earlier call
  inside = true;
  if (!forked) {
    ran = true;
    run_here(batch, team);
  } else if (!run_beside(batch, team)) {
    batch.work();
  }
  inside = false;
  if (batch.interruption) std::rethrow_exception(batch.interruption);
  if (batch.error) std::rethrow_exception(batch.error);
}

}  // namespace detail

int available_threads() noexcept {
  static const int said = detail::threads_of_environment();
  return said > 0 ? std::min(said, detail::kThreadsPerCore * detail::cores()) : detail::cores();
}

}  // namespace glidepath
