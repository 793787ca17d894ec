// Which instruction sets this processor has; the build asks, too.
#pragma once

namespace rigstep::index3 {

#if defined(__x86_64__)
inline bool processor_runs_x86_64() { return true; }

inline bool processor_runs_x86_64_v3() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

inline bool processor_runs_x86_64_v4() {
  return processor_runs_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#else
inline bool processor_runs_native() { return true; }
#endif

}  // namespace rigstep::index3
