#!/usr/bin/env python3
"""Moves the road in a sweep of sines. Start `rigstep serve rig.textproto` first. Exit code 0: the sweep was played,
the tyre stayed on the road and the strut within its travel, 1: not."""
import argparse, json, math, sys

import rigstep

AMPLITUDE = 0.01  # of the road [m]
LOWEST, HIGHEST = 0.5, 5.0  # frequencies of the sweep [Hz]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--key", help="key file of `rigstep keygen`, where the server asks for one")
parser.add_argument("--seconds", type=float, default=10.0)
parser.add_argument("--json", action="store_true", help="print the result as JSON")
args = parser.parse_args()
history = []  # time since the start [s], body height [m], tyre force [N], force of the travel stops [N]
start = []  # time of the first state [s]


def controller(state):
    """Called with the newest outputs, 500 times a second; returns the inputs."""
    start[:] = start or [state.time]
    time = state.time - start[0]
    history.append((time, state["body_height"], state["tyre.fz"], abs(state["travel_stops.effort"])))
    growth = math.log(HIGHEST / LOWEST) / args.seconds  # of the frequency, which rises exponentially [1/s]
    frequency = LOWEST * math.exp(growth * time)  # [Hz]
    phase = 2.0 * math.pi * (frequency - LOWEST) / growth  # [rad], whose rate is 2 pi frequency
    return {"road_height": AMPLITUDE * math.sin(phase),
            "road_rate": AMPLITUDE * math.cos(phase) * 2.0 * math.pi * frequency,
            "steering.position": 0.0}  # [m]


try:
    with rigstep.connect(args.host, args.port, key=args.key, name="vehicle_corner controller") as rig:
        summary = rig.run(controller, rate=500, duration=args.seconds)
except rigstep.RigstepError as error:  # no server, refused, or the server has gone
    sys.exit(str(error))

played = history[-1][0] > 0.9 * args.seconds
least_force = min(force for _, _, force, _ in history)
largest_height = max(abs(height) for _, height, _, _ in history)
stops_hit = any(force for _, _, _, force in history)
reached = played and least_force > 0.0 and not stops_hit and not summary.faulted
result = {"reached": reached, "states": summary.states, "lost": summary.lost,
          "faulted": summary.faulted, "played": played, "least_tyre_force": least_force,
          "largest_body_height": largest_height, "travel_stops_hit": stops_hit}
if args.json:
    print(json.dumps(result))
else:
    print(f"The sweep was {'played' if played else 'NOT played to its end'}, stops of the strut hit: {stops_hit}.")
    print(f"The body moved by {largest_height:.2g} m at most; the least tyre force was {least_force:.0f} N.")
    print(f"{summary.states} states came, {summary.lost} were lost.{' There was a fault.' if summary.faulted else ''}")
sys.exit(0 if reached else 1)
