#include "inference/kernels/parallel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <exception>

namespace parley::inference::cpu {

namespace {

/// What GCC calls for a parallel region (libgomp's ABI, since GOMP_4.0).
struct open_mp {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
  int (*thread)();
  int (*threads)();

  bool found() const { return parallel != nullptr && thread != nullptr && threads != nullptr; }
};

template<class Function>
Function loaded(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

/// The runtime that is in the process because LibTorch needs it.
const open_mp& runtime() {
  static const open_mp found{loaded<decltype(open_mp::parallel)>("GOMP_parallel"),
                             loaded<decltype(open_mp::thread)>("omp_get_thread_num"),
                             loaded<decltype(open_mp::threads)>("omp_get_num_threads")};
  return found;
}

/// A thread sanitizer does not see how libgomp's threads wait for each other.
#ifdef __SANITIZE_THREAD__
constexpr bool serial = true;
#else
constexpr bool serial = false;
#endif

struct region {
  std::int64_t begin, end;
  void (*work)(void*, std::int64_t, std::int64_t);
  void* context;
  std::atomic<bool> failed{false};
  std::exception_ptr problem{};

  void run() {
    const auto& by = runtime();
    const std::int64_t parts = by.threads(), part = (end - begin + parts - 1) / parts;
    const auto from = begin + by.thread() * part, to = std::min(end, from + part);
    if (from >= to) return;
    try {
      work(context, from, to);
    } catch (...) {
      if (!failed.exchange(true)) problem = std::current_exception();
    }
  }
};

} // namespace

void run_in_parts(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  void (*work)(void*, std::int64_t, std::int64_t), void* context) {
  if (begin >= end) return;
  const auto least = std::max<std::int64_t>(grain, 1);
  const auto threads = std::min<std::int64_t>(at::get_num_threads(), (end - begin + least - 1) / least);
  if (serial || threads <= 1 || at::in_parallel_region() || !runtime().found()) return work(context, begin, end);
  region all{begin, end, work, context};
  runtime().parallel([](void* of) { static_cast<region*>(of)->run(); }, &all, static_cast<unsigned>(threads), 0);
  if (all.problem) std::rethrow_exception(all.problem);
}

} // namespace parley::inference::cpu
