// Exit codes of the command line, the same for every command.
#pragma once

namespace rigstep::server {

enum ExitCode : int {
  kExitOk = 0,
  kExitVerdict = 1,      // done, and the verdict is no: not bit-exact, out of tolerance; a fault is latched
  kExitUsage = 2,        // arguments or rig file
  kExitMechanism = 3,    // mechanism file
  kExitEnvironment = 4,  // permission, real-time set-up under `enforce`, output file, standard output; lost records
  kExitNetwork = 5,      // address, port, protocol, nobody there
  kExitNumerical = 6,    // a step failed
  kExitRecording = 7,    // recording damaged; the whole part was used
  kExitIncomplete = 8,   // verify: steps or time too long or short, some solvers gave up, were stopped or astray
  kExitInterrupted = 130,
};

inline constexpr const char* kExitCodeHelp =
    "Exit codes: 0 ok, 1 verdict is no, 2 usage or rig file, 3 mechanism file, 4 environment, 5 network,\n"
    "            6 a step failed, 7 recording damaged, 8 verify: too little was compared, 130 interrupted";

}  // namespace rigstep::server
