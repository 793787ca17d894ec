#!/usr/bin/env python3
"""Turns the crank at a set speed against a load. Start `rigstep serve rig.textproto` first. Exit code 0: it has this
speed, 1: not."""
import argparse, json, math, sys

import rigstep

TARGET = 4.0 * math.pi  # speed of the crank [rad/s]: two turns each second
LOAD = 80.0  # largest force on the slider, which acts against its motion in both directions [N]
P, I = 6.0, 20.0  # gains of the controller [N m s/rad, N m/rad]
LARGEST_ERROR = 0.03  # of the mean speed of the last second, as a share of the target

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--key", help="key file of `rigstep keygen`, where the server asks for one")
parser.add_argument("--seconds", type=float, default=10.0)
parser.add_argument("--json", action="store_true", help="print the result as JSON")
args = parser.parse_args()
history = []  # time [s], speed [rad/s]
integral = 0.0  # torque that keeps the speed [N m]


def controller(state):
    """Called with the newest outputs, 500 times a second; returns the inputs."""
    global integral
    start, before = (history[0][0], history[-1][0]) if history else (state.time, state.time)
    target = TARGET * min(1.0, (state.time - start) / 2.0)  # the first two seconds: speed up
    error = target - state["crank_rate"]
    integral = max(-20.0, min(20.0, integral + I * error * (state.time - before)))
    history.append((state.time, state["crank_rate"]))
    # the slider moves towards the shaft while the sine of the crank's angle is positive: the load pushes it out then
    return {"torque": P * error + integral, "load_force": LOAD * math.sin(state["crank_angle"])}


try:
    with rigstep.connect(args.host, args.port, key=args.key, name="slider_crank controller") as rig:
        summary = rig.run(controller, rate=500, duration=args.seconds)
except rigstep.RigstepError as error:  # no server, refused, or the server has gone
    sys.exit(str(error))

last_second = [speed for time, speed in history if time > history[-1][0] - 1.0]
mean, least, largest = sum(last_second) / len(last_second), min(last_second), max(last_second)
reached = abs(mean / TARGET - 1.0) < LARGEST_ERROR and not summary.faulted
result = {"reached": reached, "states": summary.states, "lost": summary.lost,
          "faulted": summary.faulted, "mean_speed": mean, "least_speed": least, "largest_speed": largest}
if args.json:
    print(json.dumps(result))
else:
    print(f"The crank {'turns' if reached else 'does NOT turn'} at {TARGET:.3f} rad/s against the load.")
    print(f"In the last second its speed was {mean:.3f} rad/s on average, {least:.3f} to {largest:.3f}.")
    print(f"{summary.states} states came, {summary.lost} were lost.{' There was a fault.' if summary.faulted else ''}")
sys.exit(0 if reached else 1)
