#!/usr/bin/env python3
"""Balances the pole on the cart. Start `rigstep serve rig.textproto` first. Exit code 0: balanced, 1: not."""
import argparse, json, sys

import rigstep

# Force per position, speed, angle and angle rate [N/m, N s/m, N/rad, N s/rad]; good for poles from 0.2 to 4 kg.
GAINS = {"position": 10.0, "speed": 18.0, "angle": 100.0, "angle_rate": 22.0}
LARGEST_ANGLE = 0.02  # in the last second, for a pole that counts as balanced [rad]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--key", help="key file of `rigstep keygen`, where the server asks for one")
parser.add_argument("--seconds", type=float, default=10.0)
parser.add_argument("--json", action="store_true", help="print the result as JSON")
args = parser.parse_args()
history = []  # time [s], distance from the upright [rad]


def controller(state):
    """Called with the newest outputs, 500 times a second; returns the inputs."""
    history.append((state.time, abs(state["angle"])))
    if abs(state["angle"]) > 1.0:  # the pole has fallen: brake the cart
        return {"force": -20.0 * state["speed"]}
    return {"force": sum(gain * state[output] for output, gain in GAINS.items())}


try:
    with rigstep.connect(args.host, args.port, key=args.key, name="cart_pole controller") as rig:
        summary = rig.run(controller, rate=500, duration=args.seconds)
except rigstep.RigstepError as error:  # no server, refused, or the server has gone
    sys.exit(str(error))

angle = max(angle for time, angle in history if time > history[-1][0] - 1.0)
reached = angle < LARGEST_ANGLE and not summary.faulted
result = {"reached": reached, "states": summary.states, "lost": summary.lost,
          "faulted": summary.faulted, "largest_angle": angle}
if args.json:
    print(json.dumps(result))
else:
    print(f"The pole is {'' if reached else 'NOT '}balanced: at most {angle:.2g} rad off in the last second.")
    print(f"{summary.states} states came, {summary.lost} were lost.{' There was a fault.' if summary.faulted else ''}")
sys.exit(0 if reached else 1)
