#pragma once

#include <cstdint>
#include <type_traits>

namespace parley::inference::cpu {

/// work(context, begin, end) for parts of [begin, end) that cover it, at least `grain` long except for the last, on the
/// threads that LibTorch uses for its own operators. Rethrows the first exception of the parts, all of which are done by
/// then. Within another parallel loop, and if the OpenMP runtime that LibTorch brings cannot be found, it is one part.
void run_in_parts(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  void (*work)(void*, std::int64_t, std::int64_t), void* context);

/// The same for a callable work(begin, end). In place of at::parallel_for, whose header makes one part of everything
/// unless its user is compiled with OpenMP, which would bring a second runtime.
template<class Work>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, Work&& work) {
  using plain = std::remove_reference_t<Work>;
  run_in_parts(
      begin, end, grain, [](void* of, std::int64_t from, std::int64_t to) { (*static_cast<plain*>(of))(from, to); },
      const_cast<std::remove_const_t<plain>*>(&work));
}

} // namespace parley::inference::cpu
