/* Rigstep in another program's loop: load a mechanism, set inputs, step, read outputs. C11.
 *
 *   char message[512];
 *   rigstep_stepper *stepper = rigstep_create_from_file("four_bar.textproto", NULL, message, sizeof message);
 *   if (stepper == NULL) { fprintf(stderr, "%s\n", message); return 1; }
 *   double *inputs = rigstep_inputs(stepper);
 *   const double *outputs = rigstep_outputs(stepper);
 *   inputs[rigstep_find(stepper, RIGSTEP_INPUT, "drive")] = 2.0;
 *   if (RIGSTEP_FAILED(rigstep_step(stepper, 1))) fprintf(stderr, "%s\n", rigstep_last_error(stepper));
 *   rigstep_destroy(stepper);
 *
 * Steps give the bits of `rigstep serve`, `simulate` and `replay`, whatever the floating-point mode of the host, which
 * each function leaves as it was.
 *
 * Threads: the library has no global state. A program may have any number of steppers; one of them is used by one
 * thread at a time. A stepper makes its steps on the thread that calls.
 *
 * Memory: the functions of the group "load time" may allocate, all others never do, nor do they take a lock, make a
 * system call or throw. Pointers that a function returns stay valid until rigstep_destroy().
 *
 * Structures that the caller hands over begin with their size in bytes: set it to sizeof before the call. */
#ifndef RIGSTEP_H
#define RIGSTEP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIGSTEP_API __attribute__((visibility("default")))

/* Number of this interface; it changes when a program has to be changed or compiled anew. */
#define RIGSTEP_ABI 1

typedef struct rigstep_stepper rigstep_stepper;

/* What a function returns: one of these. */
typedef int32_t rigstep_status;
enum {
  RIGSTEP_OK = 0,
  RIGSTEP_NOT_CONVERGED = 1,     /* the step is made; it is less exact than it should be */
  RIGSTEP_DIVERGED = 2,          /* from here on the step is not made: the last good state stands */
  RIGSTEP_SINGULAR = 3,          /* a joint, coupling, driver, body or force element could not be eliminated */
  RIGSTEP_NOT_FINITE = 4,        /* a result would be infinite or no number */
  RIGSTEP_OUTPUT_NOT_FINITE = 5, /* an output channel would be */
  RIGSTEP_BAD_ARGUMENT = 16,     /* nothing has changed, here and below */
  RIGSTEP_BAD_STATE = 17         /* the bytes are no saved state of this mechanism, with these settings */
};
#define RIGSTEP_FAILED(status) ((status) >= RIGSTEP_DIVERGED)

/* --- versions ------------------------------------------------------------------------------------------------- */

RIGSTEP_API const char* rigstep_version(void); /* of the library: "0.1.0" */
RIGSTEP_API uint32_t rigstep_abi(void);        /* RIGSTEP_ABI of the library: it must equal the one compiled with */

/* --- load time ------------------------------------------------------------------------------------------------ */

/* A parameter of the mechanism by its name. */
typedef struct rigstep_parameter {
  const char* name;
  double value; /* [unit of the parameter] */
} rigstep_parameter;

/* Zero in a field: its default. */
typedef struct rigstep_settings {
  size_t size;                         /* sizeof(rigstep_settings) */
  int64_t period_ns;                   /* of a step [ns]; default 1000000 */
  int32_t iterations;                  /* Newton iterations of a step; default 3 */
  int32_t projection_passes;           /* default: 2 with closed loops, 1 without */
  double relative_compliance;          /* of the constraints [-]; default: 1e-7 with closed loops, 1e-10 without */
  const rigstep_parameter* parameters; /* that have other values than in the file, of both kinds; may be NULL */
  size_t parameter_count;
  int32_t order; /* of accuracy, 2 or 4; default 2 */
} rigstep_settings;

/* A stepper at the start of the mechanism in a file (proto/mechanism.proto, as text), or in a text of `length` bytes.
 * settings: NULL for the defaults. NULL: it cannot be stepped as described, and `message`, if it is not NULL, says
 * where, what and what to do, cut to message_size with its closing 0. */
RIGSTEP_API rigstep_stepper* rigstep_create_from_file(const char* path, const rigstep_settings* settings, char* message,
                                                      size_t message_size);
RIGSTEP_API rigstep_stepper* rigstep_create_from_text(const char* text, size_t length, const rigstep_settings* settings,
                                                      char* message, size_t message_size);
/* Goes on from a file of `rigstep snapshot`: with its mechanism, period, settings and parameters, its state, and the
 * inputs as they were applied last. A ramp of a parameter ends where it is. rigstep_reset() leads back there. */
RIGSTEP_API rigstep_stepper* rigstep_create_from_snapshot(const char* path, char* message, size_t message_size);
/* NULL is ignored. */
RIGSTEP_API void rigstep_destroy(rigstep_stepper* stepper);

/* --- what the mechanism has ----------------------------------------------------------------------------------- */

typedef int32_t rigstep_kind;
enum {
  RIGSTEP_INPUT = 0,     /* channels that the host sets */
  RIGSTEP_OUTPUT = 1,    /* channels that it reads */
  RIGSTEP_PARAMETER = 2, /* numbers of the mechanism that have a name */
  RIGSTEP_BODY = 3
};

typedef struct rigstep_info {
  size_t size;      /* sizeof(rigstep_info) */
  const char* name; /* as in the mechanism file and in the service */
  const char* unit; /* "N m"; "-": none; of a body: "" */
  double start;     /* value at the start; of a body: its mass [kg] */
  double minimum;   /* of a parameter, else minus infinity */
  double maximum;   /* of a parameter, else infinity */
  int32_t tunable;  /* of a parameter: 1 if it may change between two steps, 0 if rigstep_settings alone sets it */
} rigstep_info;

RIGSTEP_API size_t rigstep_count(const rigstep_stepper* stepper, rigstep_kind kind);
/* Index of the thing with this name among its kind, or -1. */
RIGSTEP_API int32_t rigstep_find(const rigstep_stepper* stepper, rigstep_kind kind, const char* name);
RIGSTEP_API rigstep_status rigstep_describe(rigstep_stepper* stepper, rigstep_kind kind, size_t index,
                                            rigstep_info* info);
RIGSTEP_API int64_t rigstep_period_ns(const rigstep_stepper* stepper);

/* --- inputs, outputs, parameters ------------------------------------------------------------------------------ */

/* (count of inputs) zero at first [unit of the channel]. The next step holds what stands here when it begins. */
RIGSTEP_API double* rigstep_inputs(rigstep_stepper* stepper);
/* (count of outputs) of the state as it is [unit of the channel]. */
RIGSTEP_API const double* rigstep_outputs(const rigstep_stepper* stepper);

/* The same by value. RIGSTEP_BAD_ARGUMENT: count is not that of the channels, or a value is not finite. */
RIGSTEP_API rigstep_status rigstep_set_inputs(rigstep_stepper* stepper, const double* values, size_t count);
RIGSTEP_API rigstep_status rigstep_get_outputs(rigstep_stepper* stepper, double* values, size_t count);

/* Acts from the next step on. RIGSTEP_BAD_ARGUMENT: no such parameter, one that is fixed, or a value out of range. */
RIGSTEP_API rigstep_status rigstep_set_parameter(rigstep_stepper* stepper, size_t index, double value);
RIGSTEP_API rigstep_status rigstep_get_parameter(rigstep_stepper* stepper, size_t index, double* value);

/* Per body seven numbers: mass centre x y z [m], Euler parameters e0 e1 e2 e3 from body to world [-]. count: 7 times
 * that of the bodies. */
RIGSTEP_API rigstep_status rigstep_get_poses(rigstep_stepper* stepper, double* values, size_t count);

/* --- steps ---------------------------------------------------------------------------------------------------- */

/* So many steps with the inputs held. It ends at a step that fails; the state is the one before it. The status is the
 * worst of them. */
RIGSTEP_API rigstep_status rigstep_step(rigstep_stepper* stepper, uint64_t steps);

/* A trajectory: before step k row k of `inputs` (steps x count of inputs) is set, and the outputs after it become row k
 * of `outputs` (steps x count of outputs). Either may be NULL: inputs are held, outputs are not kept. */
RIGSTEP_API rigstep_status rigstep_run(rigstep_stepper* stepper, uint64_t steps, const double* inputs, double* outputs);

typedef struct rigstep_report {
  size_t size;                  /* sizeof(rigstep_report) */
  uint64_t step;                /* of the state: steps since the start */
  int64_t time_ns;              /* of the state [ns] */
  uint64_t state_hash;          /* equal for equal states: that of recordings */
  rigstep_status status;        /* of the last step */
  int32_t body;                 /* where a failed step began: index or -1 */
  int32_t joint;                /* likewise; couplings, then drivers count on after the joints */
  int32_t output;               /* output channel that was not finite, or -1 */
  double last_increment;        /* largest of the last iteration [m] or [rad], of the last step */
  double position_residual;     /* largest of a constraint [m] or [-] */
  double velocity_residual;     /* [m/s] or [1/s] */
  double acceleration_residual; /* [m/s^2] or [1/s^2] */
  int64_t step_ns;              /* time that the last step took, outputs included [ns] */
  double position_error;        /* of order 4: estimate of the error that the step has added [m]; order 2: -1 */
  double orientation_error;     /* likewise [rad] */
  int32_t error_body;           /* the body that errs most: index or -1 */
} rigstep_report;

RIGSTEP_API rigstep_status rigstep_get_report(rigstep_stepper* stepper, rigstep_report* report);

/* --- state ---------------------------------------------------------------------------------------------------- */

/* Back to the state and the parameters of its creation; inputs become zero, or those of the snapshot. */
RIGSTEP_API void rigstep_reset(rigstep_stepper* stepper);

/* The state with multipliers, inputs, outputs and parameters as bytes. They may be kept in files, and restored in any
 * stepper of the same mechanism, settings, fixed parameters and library version; who goes on from them gets the bits of
 * who never stopped. size: rigstep_state_size(). */
RIGSTEP_API size_t rigstep_state_size(const rigstep_stepper* stepper);
RIGSTEP_API rigstep_status rigstep_save_state(rigstep_stepper* stepper, void* bytes, size_t size);
RIGSTEP_API rigstep_status rigstep_restore_state(rigstep_stepper* stepper, const void* bytes, size_t size);

/* --- errors --------------------------------------------------------------------------------------------------- */

/* What was wrong with the last call that returned more than RIGSTEP_NOT_CONVERGED: what, where, what to do. "" before
 * the first one. */
RIGSTEP_API const char* rigstep_last_error(const rigstep_stepper* stepper);

#ifdef __cplusplus
}
#endif

#endif
