/* Loads an unpacked unit for co-simulation of FMI 3.0 and makes steps of it: with the C library alone.
 * Usage: fmu_host FOLDER MODEL_IDENTIFIER TOKEN STEPS STEP_SIZE VALUE_REFERENCE   prints the value after the last step */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "fmi3.h"

#ifdef __aarch64__
#define PLATFORM "aarch64-linux"
#else
#define PLATFORM "x86_64-linux"
#endif

static void *library;

/* a function of the unit, or the end of the program */
static void *function(const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

static void log_message(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String text) {
  (void)environment, (void)status;
  fprintf(stderr, "[%s] %s\n", category, text);
}

static void check(fmi3Status status, const char *what) {
  if (status == fmi3OK) return;
  fprintf(stderr, "%s returned %d\n", what, (int)status);
  exit(1);
}

int main(int count, char **arguments) {
  char path[4096], resources[4096];
  if (count != 7) return 2;
  snprintf(path, sizeof path, "%s/binaries/" PLATFORM "/%s.so", arguments[1], arguments[2]);
  snprintf(resources, sizeof resources, "%s/resources/", arguments[1]);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  __typeof__(fmi3InstantiateCoSimulation) *instantiate = function("fmi3InstantiateCoSimulation");
  __typeof__(fmi3EnterInitializationMode) *enter = function("fmi3EnterInitializationMode");
  __typeof__(fmi3ExitInitializationMode) *leave = function("fmi3ExitInitializationMode");
  __typeof__(fmi3DoStep) *step = function("fmi3DoStep");
  __typeof__(fmi3GetFloat64) *get = function("fmi3GetFloat64");
  __typeof__(fmi3Terminate) *terminate = function("fmi3Terminate");
  __typeof__(fmi3FreeInstance) *free_instance = function("fmi3FreeInstance");
  fmi3Instance unit = instantiate("unit", arguments[3], resources, false, true, false, false, NULL, 0, NULL, log_message, NULL);
  if (unit == NULL) return 1;
  check(enter(unit, false, 0.0, 0.0, false, 0.0), "fmi3EnterInitializationMode");
  check(leave(unit), "fmi3ExitInitializationMode");
  const double size = atof(arguments[5]);
  bool event, ends, early;
  double last = 0.0, value = 0.0;
  for (long k = 0; k < atol(arguments[4]); ++k)
    check(step(unit, (double)k * size, size, true, &event, &ends, &early, &last), "fmi3DoStep");
  const fmi3ValueReference reference = (fmi3ValueReference)atol(arguments[6]);
  check(get(unit, &reference, 1, &value, 1), "fmi3GetFloat64");
  check(terminate(unit), "fmi3Terminate");
  free_instance(unit);
  dlclose(library);
  printf("%.17g\n", value);
  return 0;
}
