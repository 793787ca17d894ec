/* Loads an unpacked unit for co-simulation and makes steps of it: with the C library alone.
 * Usage: fmu_host 2|3 FOLDER MODEL_IDENTIFIER TOKEN STEPS STEP_SIZE VALUE_REFERENCE   2, 3: of FMI
 * prints the value after the last step */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "fmi2.h"
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
#define FUNCTION(name) __typeof__(name) *const name##_ = function(#name)

static void log_2(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                  fmi2String text, ...) {
  (void)environment, (void)name, (void)status;
  fprintf(stderr, "[%s] %s\n", category, text);
}

static void log_3(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String text) {
  (void)environment, (void)status;
  fprintf(stderr, "[%s] %s\n", category, text);
}

/* status: of either standard, which number them alike */
static void check(int status, const char *what) {
  if (status == 0) return;
  fprintf(stderr, "%s returned %d\n", what, status);
  exit(1);
}

static double run_2(const char *token, const char *resources, long steps, double size, unsigned reference) {
  FUNCTION(fmi2Instantiate);
  FUNCTION(fmi2SetupExperiment);
  FUNCTION(fmi2EnterInitializationMode);
  FUNCTION(fmi2ExitInitializationMode);
  FUNCTION(fmi2DoStep);
  FUNCTION(fmi2GetReal);
  FUNCTION(fmi2Terminate);
  FUNCTION(fmi2FreeInstance);
  const fmi2CallbackFunctions callbacks = {log_2, calloc, free, NULL, NULL};
  char location[4200];
  double value = 0.0;
  snprintf(location, sizeof location, "file://%s", resources);
  fmi2Component unit = fmi2Instantiate_("unit", fmi2CoSimulation, token, location, &callbacks, fmi2False, fmi2True);
  if (unit == NULL) exit(1);
  check(fmi2SetupExperiment_(unit, fmi2False, 0.0, 0.0, fmi2False, 0.0), "fmi2SetupExperiment");
  check(fmi2EnterInitializationMode_(unit), "fmi2EnterInitializationMode");
  check(fmi2ExitInitializationMode_(unit), "fmi2ExitInitializationMode");
  for (long k = 0; k < steps; ++k) check(fmi2DoStep_(unit, (double)k * size, size, fmi2True), "fmi2DoStep");
  check(fmi2GetReal_(unit, &reference, 1, &value), "fmi2GetReal");
  check(fmi2Terminate_(unit), "fmi2Terminate");
  fmi2FreeInstance_(unit);
  return value;
}

static double run_3(const char *token, const char *resources, long steps, double size, unsigned reference) {
  FUNCTION(fmi3InstantiateCoSimulation);
  FUNCTION(fmi3EnterInitializationMode);
  FUNCTION(fmi3ExitInitializationMode);
  FUNCTION(fmi3DoStep);
  FUNCTION(fmi3GetFloat64);
  FUNCTION(fmi3Terminate);
  FUNCTION(fmi3FreeInstance);
  fmi3Instance unit = fmi3InstantiateCoSimulation_("unit", token, resources, false, true, false, false, NULL, 0, NULL,
                                                   log_3, NULL);
  bool event, ends, early;
  double last = 0.0, value = 0.0;
  if (unit == NULL) exit(1);
  check(fmi3EnterInitializationMode_(unit, false, 0.0, 0.0, false, 0.0), "fmi3EnterInitializationMode");
  check(fmi3ExitInitializationMode_(unit), "fmi3ExitInitializationMode");
  for (long k = 0; k < steps; ++k)
    check(fmi3DoStep_(unit, (double)k * size, size, true, &event, &ends, &early, &last), "fmi3DoStep");
  check(fmi3GetFloat64_(unit, &reference, 1, &value, 1), "fmi3GetFloat64");
  check(fmi3Terminate_(unit), "fmi3Terminate");
  fmi3FreeInstance_(unit);
  return value;
}

int main(int count, char **arguments) {
  char path[4096], resources[4096];
  if (count != 8) return 2;
  const int is_2 = arguments[1][0] == '2';
  snprintf(path, sizeof path, "%s/binaries/%s/%s.so", arguments[2], is_2 ? "linux64" : PLATFORM, arguments[3]);
  snprintf(resources, sizeof resources, "%s/resources/", arguments[2]);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  const double value = (is_2 ? run_2 : run_3)(arguments[4], resources, atol(arguments[5]), atof(arguments[6]),
                                              (unsigned)atol(arguments[7]));
  dlclose(library);
  printf("%.17g\n", value);
  return 0;
}
