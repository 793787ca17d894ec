#!/usr/bin/env python3
"""Drives an input of a live server: with a sine, or so that an output comes to rest at a target (a PD law).

balance.py --sine 2,0.5                                     sine of 2 units and 0.5 Hz on the first input
balance.py --pd phi phi_rate --gains 40,10 --target -1.57   towards phi = -1.57, damped by phi_rate
"""
import argparse
import json
import math
import sys
from collections.abc import Callable

import rigstep

Controller = Callable[[rigstep.State], dict[str, float]]


def sine(channel: str, amplitude: float, frequency: float) -> Controller:
    """amplitude: in the unit of the channel; frequency [Hz], over simulated time."""
    return lambda state: {channel: amplitude * math.sin(2.0 * math.pi * frequency * state.time)}


def pd(channel: str, output: str, rate: str, target: float, gains: tuple[float, float]) -> Controller:
    """output, and another one that is its rate; target: in its unit; gains: units of the input per unit of each output."""
    return lambda state: {channel: gains[0] * (target - state[output]) - gains[1] * state[rate]}


def two_numbers(text: str) -> tuple[float, float]:
    first, second = map(float, text.split(","))
    return first, second


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=47001)
    parser.add_argument("--key", help="the participant's key file of `rigstep keygen`")
    parser.add_argument("--input", help="the input to drive; the first one if not given")
    parser.add_argument("--sine", type=two_numbers, default=(1.0, 0.5), metavar="AMPLITUDE,HZ")
    parser.add_argument("--pd", nargs=2, metavar=("OUTPUT", "ITS_RATE"))
    parser.add_argument("--gains", type=two_numbers, default=(10.0, 1.0), metavar="P,D")
    parser.add_argument("--target", type=float, default=0.0)
    parser.add_argument("--rate", type=float, help="[Hz], that of the server if not given")
    parser.add_argument("--duration", type=float, default=5.0, help="[s]")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    args = parser.parse_args()
    try:
        with rigstep.connect(args.host, args.port, key=args.key, name="balance.py") as rig:
            channel = args.input or next((each.name for each in rig.inputs), "")
            drive = pd(channel, args.pd[0], args.pd[1], args.target, args.gains) if args.pd else sine(channel, *args.sine)
            summary = rig.run(drive, args.rate, args.duration)
    except rigstep.RigstepError as error:
        sys.exit(f"balance.py: {error}")
    print(json.dumps(summary.as_dict()) if args.json else summary)
    return 1 if summary.faulted else 0


if __name__ == "__main__":
    sys.exit(main())
