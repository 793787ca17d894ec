# The headers that are installed, by component: what a program outside the repository may include. Each compiles alone
# and shows none of the stepper's insides; the test `package` holds them to that.
file(GLOB elements CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/core/mechanism/elements/*.h)
set(RIGSTEP_CORE_HEADERS
  ${elements}  # of every force element: its description
  core/mechanism/assembly.h
  core/mechanism/builder.h
  core/mechanism/characteristic.h
  core/mechanism/freedom.h
  core/mechanism/mechanism.h
  core/mechanism/number.h
  core/mechanism/orientation.h
  core/mechanism/parameter.h
  core/mechanism/shapes.h
  core/mechanism/signals.h
  core/mechanism/time_function.h
  core/mechanism/types.h
  core/index3/settings.h
  core/index3/state.h
  core/index3/stepper.h)
set(RIGSTEP_CONFIG_HEADERS
  proto/config_text.h
  proto/limits.h
  proto/load_mechanism.h
  proto/load_rig.h
  proto/load_shapes.h)
set(RIGSTEP_RT_HEADERS
  rt/clock.h
  rt/cycle.h
  rt/deadline_loop.h
  rt/histogram.h
  rt/input_guard.h
  rt/lifecycle.h
  rt/mailbox.h
  rt/miss_guard.h
  rt/parameter_ramps.h
  rt/pose_mailbox.h
  rt/record_slots.h
  rt/ring.h
  rt/saved_run.h
  rt/thread_setup.h)
set(RIGSTEP_RIG_HEADERS
  proto/frame.h
  server/rig/rig_client.h)
