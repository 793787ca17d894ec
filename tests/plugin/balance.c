/* Balances the pole on the cart in a loop of its own at 1 kHz, and never allocates in it.
 * Usage: balance MECHANISM.textproto INPUTS.csv   writes the force that it applied at each step, prints the state's hash */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rigstep.h"

enum { STEPS = 3000 };

/* the trap: what allocates while it is set ends the program */
static int trapped = 0;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
static void check(void) { if (trapped) abort(); }
void *malloc(size_t size) { check(); return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { check(); return __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { check(); return __libc_realloc(memory, size); }
void *aligned_alloc(size_t alignment, size_t size) { check(); return __libc_memalign(alignment, size); }

static void wait_until(const struct timespec *begin, long ns) {
  struct timespec at = *begin;
  at.tv_nsec += ns;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {}
}

int main(int count, char **arguments) {
  static double applied[STEPS];
  char message[512];
  if (count != 3 || rigstep_abi() != RIGSTEP_ABI) return 2;
  rigstep_stepper *stepper = rigstep_create_from_file(arguments[1], NULL, message, sizeof message);
  if (stepper == NULL) return fprintf(stderr, "%s\n", message), 2;
  double *force = rigstep_inputs(stepper) + rigstep_find(stepper, RIGSTEP_INPUT, "force");
  const double *outputs = rigstep_outputs(stepper);
  const double *angle = outputs + rigstep_find(stepper, RIGSTEP_OUTPUT, "angle");
  const double *angle_rate = outputs + rigstep_find(stepper, RIGSTEP_OUTPUT, "angle_rate");
  const double *position = outputs + rigstep_find(stepper, RIGSTEP_OUTPUT, "position");
  const double *speed = outputs + rigstep_find(stepper, RIGSTEP_OUTPUT, "speed");
  const size_t size = rigstep_state_size(stepper);
  void *saved = malloc(size);
  rigstep_report report = {.size = sizeof report};
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  trapped = 1;
  for (long k = 0; k < STEPS; ++k) {
    wait_until(&begin, k * rigstep_period_ns(stepper));
    *force = applied[k] = 10.0 * *position + 18.0 * *speed + 100.0 * *angle + 22.0 * *angle_rate;
    if (RIGSTEP_FAILED(rigstep_step(stepper, 1))) return fprintf(stderr, "%s\n", rigstep_last_error(stepper)), 1;
    rigstep_get_report(stepper, &report);
  }
  if (rigstep_save_state(stepper, saved, size) != RIGSTEP_OK) return 1;
  rigstep_step(stepper, 100);
  if (rigstep_step(stepper, 0) != RIGSTEP_OK || rigstep_restore_state(stepper, saved, size) != RIGSTEP_OK) return 1;
  *force = NAN; /* a step that fails allocates nothing either */
  if (rigstep_step(stepper, 1) != RIGSTEP_NOT_FINITE) return 1;
  rigstep_set_parameter(stepper, 1000, 1.0);
  trapped = 0;
  const uint64_t hash = report.state_hash;
  rigstep_get_report(stepper, &report);
  if (report.state_hash != hash) return fprintf(stderr, "restored another state\n"), 1;
  FILE *table = fopen(arguments[2], "w");
  if (table == NULL) return 2;
  fprintf(table, "t,force\n");
  for (int k = 0; k < STEPS; ++k) fprintf(table, "%.17g,%.17g\n", (k + 1) / 1000.0, applied[k]);
  fclose(table);
  printf("angle %.6f rad after %llu steps, state %016llx\n", *angle, (unsigned long long)report.step,
         (unsigned long long)report.state_hash);
  const int balanced = fabs(*angle) < 0.02;
  rigstep_destroy(stepper);
  free(saved);
  return balanced ? 0 : 1;
}
