#!/usr/bin/env python3
"""Has the leg squat. Start `rigstep serve rig.textproto` first. Exit code 0: the hip follows the height, 1: not."""
import argparse, json, sys
from math import cos, pi, sin

import rigstep

HEIGHT, STROKE, PERIOD = 0.40, 0.05, 2.0  # of the hip above the ground, of the squats [m], their period [s]
LINK = 0.25  # length of thigh and of shank [m]
P, I, D = 1200.0, 2000.0, 160.0  # push of the foot per height, its integral and its rate [N/m, N/(m s), N s/m]
LARGEST_ERROR = 0.02  # of the height in the last second [m]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--key", help="key file of `rigstep keygen`, where the server asks for one")
parser.add_argument("--seconds", type=float, default=10.0)
parser.add_argument("--json", action="store_true", help="print the result as JSON")
args = parser.parse_args()
history = []  # time [s], error [m]
start = None  # time [s] and height [m] of the first state
push = 94.0  # force that carries the leg: at first its weight [N]


def controller(state):
    """Called with the newest outputs, 500 times a second; returns the inputs."""
    global push, start
    start = start or (state.time, state["height"])
    since = state.time - start[0]
    share = min(1.0, since)  # in the first second it goes from the height at the start to the squats
    phase = 2.0 * pi * since / PERIOD
    height = (1.0 - share) * start[1] + share * (HEIGHT + STROKE * sin(phase))
    speed = share * STROKE * cos(phase) * 2.0 * pi / PERIOD  # of this height [m/s]
    error = height - state["height"]
    push = max(50.0, min(200.0, push + I * error * (state.time - history[-1][0] if history else 0.0)))
    history.append((state.time, error))
    down = max(0.0, push + P * error + D * (speed - state["vertical_speed"]))  # force of the foot on the ground [N]
    thigh, shank = state["hip_angle"], state["hip_angle"] - state["knee_angle"]  # against the vertical [rad]
    x = LINK * (sin(thigh) + sin(shank))  # of the foot before the hip [m]
    x_hip, x_knee = LINK * (cos(thigh) + cos(shank)), -LINK * cos(shank)  # its change with the angles [m/rad]
    ahead = -100.0 * x - 8.0 * (x_hip * state["hip_rate"] + x_knee * state["knee_rate"])  # keeps it below the hip [N]
    return {"hip_torque": x_hip * ahead - x * down, "knee_torque": x_knee * ahead + LINK * sin(shank) * down}


try:
    with rigstep.connect(args.host, args.port, key=args.key, name="leg controller") as rig:
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
    print(f"The hip is {'' if reached else 'NOT '}at its height: at most {error:.2g} m off in the last second.")
    print(f"{summary.states} states came, {summary.lost} were lost.{' There was a fault.' if summary.faulted else ''}")
sys.exit(0 if reached else 1)
