#!/usr/bin/env python3
"""Holds the pendulum at a set angle. Start `rigstep serve rig.textproto` first. Exit code 0: it is there, 1: not."""
import argparse, json, sys

import rigstep

TARGET = 1.0  # angle to hold [rad]; 0 hangs straight down
P, I, D = 20.0, 20.0, 5.0  # gains of the controller [N m/rad, N m/(rad s), N m s/rad]
LARGEST_ERROR = 0.02  # in the last second, for an arm that counts as there [rad]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--key", help="key file of `rigstep keygen`, where the server asks for one")
parser.add_argument("--seconds", type=float, default=10.0)
parser.add_argument("--json", action="store_true", help="print the result as JSON")
args = parser.parse_args()
history = []  # time [s], error [rad]
integral = 0.0  # torque that carries the arm [N m]


def controller(state):
    """Called with the newest outputs, 500 times a second; returns the inputs."""
    global integral
    error = TARGET - state["angle"]
    elapsed = state.time - history[-1][0] if history else 0.0
    integral = max(-10.0, min(10.0, integral + I * error * elapsed))
    history.append((state.time, error))
    return {"torque": P * error + integral - D * state["angle_rate"]}


try:
    with rigstep.connect(args.host, args.port, key=args.key, name="pendulum controller") as rig:
        summary = rig.run(controller, rate=500, duration=args.seconds)
except rigstep.RigstepError as error:  # no server, refused, or the server has gone
    sys.exit(str(error))

error = max(abs(error) for time, error in history if time > history[-1][0] - 1.0)
reached = error < LARGEST_ERROR and not summary.faulted
result = {"reached": reached, "states": summary.states, "lost": summary.lost,
          "faulted": summary.faulted, "largest_error": error}
if args.json:
    print(json.dumps(result))
else:
    print(f"The arm is {'' if reached else 'NOT '}at {TARGET} rad: at most {error:.2g} rad off in the last second.")
    print(f"{summary.states} states came, {summary.lost} were lost.{' There was a fault.' if summary.faulted else ''}")
sys.exit(0 if reached else 1)
