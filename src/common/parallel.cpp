// SPDX-License-Identifier: Apache-2.0
// The threads that help with batches. They wait for the next batch between calls, as a thread takes
// longer to start than a small batch to run. A runtime such as OpenMP would do, but for three
// things: its threads are lost in the child of a fork, which then waits for them for ever; it ends
// the process where the system refuses a thread; and the caller cannot ask, while it waits for the
// others, whether to go on.
#include "common/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include <pthread.h>

#include "common/interrupt.hpp"

#ifdef __linux__
#include <sched.h>
#endif

namespace glidepath {
namespace detail {
namespace {

constexpr int kThreadsPerCore = 4;

/// The first number of OMP_NUM_THREADS, by which clusters and containers say how many; 0 without.
int threads_of_environment() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view digits(text);
  int threads = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), threads);
  return std::max(threads, 0);
}

int cores() {
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
  int wanted;       ///< threads that may still join; by the lock of the pool
  int working = 0;  ///< threads that joined and have not left; by the lock of the pool
  std::atomic<std::ptrdiff_t> next{0};
  std::atomic<bool> over{false};  ///< the caller was interrupted
  std::mutex mutex{};
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

/// Lives as long as the process: threads may still wait in it when the process ends.
class Pool {
 public:
  void run(Batch& batch) {
    const int helpers = batch.wanted;
    {
      const std::lock_guard lock(mutex_);
      grow(helpers);
      waiting_.push_back(&batch);
    }
    for (int helper = 0; helper < helpers; ++helper) begins_.notify_one();
    batch.work();
    std::unique_lock lock(mutex_);
    std::erase(waiting_, &batch);
    while (!ends_.wait_for(lock, kPollEvery, [&] { return batch.working == 0; })) {
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

 private:
  /// Where the system gives no more threads, those that there are have to do.
  void grow(int threads) {
    for (; threads_ < threads; ++threads_) {
      try {
        std::thread([this] { help(); }).detach();
      } catch (const std::system_error&) {
        return;
      }
    }
  }

  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      begins_.wait(lock, [&] { return !waiting_.empty(); });
      Batch& batch = *waiting_.front();
      ++batch.working;
      if (--batch.wanted == 0) waiting_.pop_front();
      lock.unlock();
      asker.over = &batch.over;
      batch.work();
      lock.lock();
      if (--batch.working == 0) ends_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable begins_, ends_;
  std::deque<Batch*> waiting_;
  int threads_ = 0;
};

Pool*& pool() {
  static Pool* pool = [] {
    // The child has none of the threads, and a lock that one of them may have held.
    pthread_atfork(nullptr, nullptr, [] { detail::pool() = new Pool; });
    return new Pool;
  }();
  return pool;
}

/// Set in whatever runs blocks on several threads: blocks within blocks run one after the other.
thread_local bool inside = false;

}  // namespace

void run_blocks(std::ptrdiff_t blocks, int threads,
                const std::function<void(std::ptrdiff_t)>& body) {
  const int wished =
      threads > 0 ? std::min(threads, kThreadsPerCore * cores()) : available_threads();
  const auto wanted = static_cast<int>(std::min<std::ptrdiff_t>(wished, blocks));
  if (wanted <= 1 || inside || asker.over != nullptr) {
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      check_interrupt();
      body(b);
    }
    return;
  }
  Batch batch{.blocks = blocks, .body = body, .wanted = wanted - 1};
  if (asker.interrupt != nullptr) asker.interrupt->threw = false;  // by an earlier call
  inside = true;
  pool()->run(batch);
  inside = false;
  if (batch.interruption) std::rethrow_exception(batch.interruption);
  if (batch.error) std::rethrow_exception(batch.error);
}

}  // namespace detail

int available_threads() noexcept {
  static const int said = detail::threads_of_environment();
  return said > 0 ? said : detail::cores();
}

}  // namespace glidepath
