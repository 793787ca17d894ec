// What the integrators of SUNDIALS share: owners of its objects, and the answers it takes. Offline only.
#pragma once

#include <nvector/nvector_serial.h>
#include <sundials/sundials_context.h>

#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace rigstep::offline::sundials {

inline constexpr int kUnrecoverable = -1;  // answers of a right-hand side
inline constexpr int kTryShorter = 1;

struct ContextDeleter {
  void operator()(SUNContext context) const { SUNContext_Free(&context); }
};
struct VectorDeleter {
  void operator()(N_Vector v) const { N_VDestroy(v); }
};
using Context = std::unique_ptr<std::remove_pointer_t<SUNContext>, ContextDeleter>;
using Vector = std::unique_ptr<std::remove_pointer_t<N_Vector>, VectorDeleter>;
using Memory = std::unique_ptr<void, void (*)(void*)>;  // of an integrator

inline Context make_context() {
  SUNContext context = nullptr;
  if (SUNContext_Create(nullptr, &context) != 0) throw std::bad_alloc();
  return Context(context);
}

// Of values that somebody else owns.
inline Vector view(std::span<double> values, const Context& context) {
  return Vector(N_VMake_Serial(static_cast<sunindextype>(values.size()), values.data(), context.get()));
}

}  // namespace rigstep::offline::sundials
