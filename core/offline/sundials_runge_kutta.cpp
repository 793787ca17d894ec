// The pair of Dormand and Prince with the step control of SUNDIALS' ARKODE: what the reference solvers integrate with.
#include <arkode/arkode_arkstep.h>

#include <exception>
#include <utility>

#include "core/offline/integration.h"
#include "core/offline/sundials_handles.h"

namespace rigstep::offline {

namespace {

constexpr double kShortestStep = 1e-14;  // relative to the time span of the run

class SundialsRungeKutta final : public Integration {
 public:
  explicit SundialsRungeKutta(const Beginning& from)
      : f_(&from.f),
        context_(sundials::make_context()),
        y_(sundials::view(from.y, context_)),
        memory_(
            ARKStepCreate(right_hand_side, nullptr, from.start, y_.get(), context_.get()),
            +[](void* memory) { ARKStepFree(&memory); }),
        time_(from.start) {
    if (!memory_) throw std::bad_alloc();
    ARKStepSetErrHandlerFn(memory_.get(), keep_complaint, this);
    require(ARKStepSetTableNum(memory_.get(), ARKODE_DIRK_NONE, ARKODE_DORMAND_PRINCE_7_4_5));
    require(ARKStepSStolerances(memory_.get(), from.options.relative_tolerance, from.options.absolute_tolerance));
    require(ARKStepSetUserData(memory_.get(), this));
    require(ARKStepSetMinStep(memory_.get(), (from.end - from.start) * kShortestStep));
    require(ARKStepSetMaxHnilWarns(memory_.get(), -1));
  }

  double time() const override { return time_; }

  void advance(double stop) override {
    require(ARKStepSetStopTime(memory_.get(), stop));
    require(ARKStepEvolve(memory_.get(), stop, y_.get(), &time_, ARK_ONE_STEP));
    f_->count_step();
  }

  void dense(double t, std::span<double> y) override {
    const sundials::Vector v = sundials::view(y, context_);
    require(ARKStepGetDky(memory_.get(), t, 0, v.get()));
  }

  void start_afresh() override { require(ARKStepReset(memory_.get(), time_, y_.get())); }

 private:
  static int right_hand_side(double t, N_Vector y, N_Vector yd, void* user) {
    SundialsRungeKutta& self = *static_cast<SundialsRungeKutta*>(user);
    const std::size_t n = self.f_->size();
    try {
      return (*self.f_)(t, {N_VGetArrayPointer(y), n}, {N_VGetArrayPointer(yd), n}) ? 0 : sundials::kTryShorter;
    } catch (...) {
      self.thrown_ = std::current_exception();
      return sundials::kUnrecoverable;
    }
  }

  static void keep_complaint(int, const char*, const char* function, char* message, void* user) {
    static_cast<SundialsRungeKutta*>(user)->complaint_ = std::string(function) + ": " + message;
  }

  void require(int status) {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    if (status < 0) throw gave_up(time_, complaint_);
  }

  RightHandSide* f_;
  std::exception_ptr thrown_;  // inside the right-hand side
  std::string complaint_;      // the last one of SUNDIALS
  sundials::Context context_;
  sundials::Vector y_;
  sundials::Memory memory_;
  double time_;
};

}  // namespace

std::unique_ptr<Integration> sundials_runge_kutta(const Beginning& from) {
  return std::make_unique<SundialsRungeKutta>(from);
}

}  // namespace rigstep::offline
