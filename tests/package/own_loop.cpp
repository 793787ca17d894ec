// Steps the four-bar in a loop of its own, which never allocates. Usage: own_loop FOUR_BAR.textproto
#include <cstdio>
#include <cstdlib>

#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"
using namespace rigstep;

static bool stepping = false;  // the trap: what allocates meanwhile ends the program
void* operator new(std::size_t size) { return stepping ? (std::abort(), nullptr) : std::malloc(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main(int, char** arguments) try {
  const Mechanism four_bar = config::load_mechanism(arguments[1]).mechanism;
  index3::Stepper stepper(four_bar, {.dt_ns = 1'000'000});
  const int drive = four_bar.input_channel("drive"), phi = four_bar.output_channel("phi");
  Inputs inputs{.count = 1};
  Outputs outputs;
  const auto swing = [&] {
    stepper.read_outputs({}, outputs);  // of the state as it is
    stepping = true;
    for (int i = 0; i < 500; ++i) {
      inputs.value[drive] = -2.0 * outputs.value[phi];  // a spring [N m], held over each step
      if (failed(stepper.step(inputs, outputs).status)) std::abort();
    }
    stepping = false;
    return outputs.value[phi];
  };
  std::vector<double> saved(stepper.state().flat_size());
  stepper.state().flatten(saved);
  const double first = swing();
  stepper.restore(saved, 0);  // the flat state and its step
  const double again = swing();
  std::printf("phi after 0.5 s: %.9f rad, restored and stepped again: %.9f rad\n", first, again);
  return first == again ? 0 : 1;
} catch (const Error& error) {  // ConfigError or MechanismError: where, what, and what to do
  return std::fprintf(stderr, "%s\n", error.what()), 2;
}
