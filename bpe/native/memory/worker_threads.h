// Runs one piece of work on several threads and waits; what any of them throws is thrown again.
#pragma once

#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace beam_bpe {

// Calls work(0) on this thread, and work(1) to work(workers - 1) on threads of their own.
template <class Work>
void run_workers(size_t workers, const Work& work) {
  std::vector<std::exception_ptr> failures(workers);
  const auto guarded = [&](size_t worker) {
    try {
      work(worker);
    } catch (...) {
      failures[worker] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(workers);
  try {
    for (size_t worker = 1; worker < workers; ++worker) threads.emplace_back(guarded, worker);
  } catch (const std::system_error&) {
    // No more threads to be had: the ones that run share the work.
  }
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace beam_bpe
