#include "inference/kernels/processor.hpp"

namespace parley::inference::cpu {

#if defined(__x86_64__)

bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return has;
}

bool has_vnni() {
  static const bool has = has_avx512() && __builtin_cpu_supports("avx512vnni");
  return has;
}

bool multiplies_bfloat16() {
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has;
}

#else

bool has_avx512() {
  return false;
}

bool has_vnni() {
  return false;
}

bool multiplies_bfloat16() {
  return false;
}

#endif

} // namespace parley::inference::cpu
