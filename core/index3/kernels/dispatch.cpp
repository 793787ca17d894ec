#include <cstring>

#include "core/index3/kernels/processor.h"
#include "core/index3/kernels/sweeps.h"
#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

// RIGSTEP_KERNELS: KERNELS(SET) for each instruction set that the build has, the fastest first (core/CMakeLists.txt).
#define KERNELS(set)             \
  namespace set {                \
  extern const Kernels kKernels; \
  }
RIGSTEP_KERNELS
#undef KERNELS

namespace {

struct Choice {
  const Kernels* kernels;
  bool runs;
};

}  // namespace

const Kernels& kernels_for_this_processor(const char* requested) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
#define KERNELS(set) {&set::kKernels, processor_runs_##set()},
  const Choice choices[] = {RIGSTEP_KERNELS};
#undef KERNELS
  for (const Choice& choice : choices)
    if (choice.runs && (requested == nullptr || std::strcmp(requested, choice.kernels->name) == 0))
      return *choice.kernels;
  if (requested == nullptr)
    throw MechanismError("instruction set", "this build is for newer processors than this one",
                         "build Rigstep here, or with RIGSTEP_INSTRUCTION_SETS=ALL");
  throw MechanismError("instruction set", std::string("this processor or build does not have \"") + requested + "\"",
                       "leave the choice to the program");
}

}  // namespace rigstep::index3
