#include <cstring>

#include "core/index3/kernels/sweeps.h"
#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

#if defined(__x86_64__)
namespace x86_64 {
extern const Kernels kKernels;
}
namespace x86_64_v3 {
extern const Kernels kKernels;
}
namespace x86_64_v4 {
extern const Kernels kKernels;
}
#else
namespace native {
extern const Kernels kKernels;
}
#endif

namespace {

struct Choice {
  const Kernels* kernels;
  bool runs;
};

}  // namespace

const Kernels& kernels_for_this_processor(const char* requested) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  const Choice choices[] = {{&x86_64_v4::kKernels, v4}, {&x86_64_v3::kKernels, v3}, {&x86_64::kKernels, true}};
#else
  const Choice choices[] = {{&native::kKernels, true}};
#endif
  for (const Choice& choice : choices)
    if (choice.runs && (requested == nullptr || std::strcmp(requested, choice.kernels->name) == 0))
      return *choice.kernels;
  throw MechanismError("instruction set", std::string("this processor or build does not have \"") + requested + "\"",
                       "leave the choice to the program");
}

}  // namespace rigstep::index3
