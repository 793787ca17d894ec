"""Is a flood felt by the rig beside it? The same run with and without the flood, from its recording: each turn of the flood
is compared with the pause before it. The median of several turns, since whatever else the machine does falls on both.

usage: flood_felt.py NAME       rig.json, serve.out, flood.json and run.mcap lie here; exit status 1: it is felt, 77: the flood
was too slow to say anything. Needs recording_pb2 of `protoc --python_out`.
"""
import json, statistics, struct, sys

from proto import recording_pb2

CHANNEL, MESSAGE, CHUNK = 0x04, 0x05, 0x06
PAUSE_NS = 400_000_000
LEAST_RATE = 40000  # 50 000 are asked for
# Steps between the two medians of six turns, at least as many as the pauses differ among each other. Of one run without a
# flood they are at most 1.5 apart, also beside ten compilers; where flood and inputs share a queue, from 2.5 to 10.
LEAST_DIFFERENCE = 2


def records(data):
    at = 0
    while at + 9 <= len(data):
        kind, length = struct.unpack_from("<BQ", data, at)
        yield kind, data[at + 9 : at + 9 + length]
        at += 9 + length


def steps(file):
    """Wall time and record of each step."""
    topic = {}
    for kind, chunk in records(file[8:]):
        if kind != CHUNK:
            continue
        for kind, body in records(chunk[40:]):
            number = struct.unpack_from("<H", body)[0] if kind in (CHANNEL, MESSAGE) else None
            if kind == CHANNEL:
                topic[number] = body[8 : 8 + struct.unpack_from("<I", body, 4)[0]]
            elif kind == MESSAGE and topic[number] == b"/steps":
                yield struct.unpack_from("<Q", body, 6)[0], recording_pb2.RecordedStep.FromString(body[22:])


def within(run, begin, end):
    return [step for time, step in run if begin <= time < end]


def are_older(before, beside):
    low, _, high = statistics.quantiles(before, n=4)
    return statistics.median(beside) > statistics.median(before) + max(LEAST_DIFFERENCE, high - low)


def p99_of_age(window):
    ages = sorted(step.input_age_steps for step in window)
    return ages[int(0.99 * len(ages))]


def main(name):
    rig, server, flood = (json.load(open(file)) for file in ("rig.json", "serve.out", "flood.json"))
    link, failures = server["link"], []
    strangers = link["received"] - min(link["accepted"], rig["inputs_sent"])
    run = list(steps(open("run.mcap", "rb").read()))
    quiet = [within(run, begin - PAUSE_NS, begin) for begin, _ in flood["turns"]]
    flooded = [within(run, begin, end) for begin, end in flood["turns"]]
    print(f"{name}: flood of {flood['rate']:.0f} a second; {rig['inputs_sent']} inputs sent, {link['accepted']} datagrams",
          f"accepted; of the flood {strangers} read, {link['queue_overflows']} left to the kernel")
    if strangers > 10500 * (flood["seconds"] + 0.5):  # 10 000 a second
        failures.append("strangers take more than their share")
    if link["accepted"] < rig["inputs_sent"] - 5:  # at the end some are in the air
        failures.append("inputs were lost")
    if server["lockstep"]:
        before, beside = (statistics.median(len(each) for each in windows) for windows in (quiet, flooded))
        print(f"    steps in 0.4 s: {before:.0f} without the flood, {beside:.0f} beside it")
        if beside < before / 2:
            failures.append("lockstep is slower beside the flood")
    else:
        before, beside = ([p99_of_age(each) for each in windows if each] for windows in (quiet, flooded))
        print(f"    p99 of the age of inputs, steps: without the flood {before}, beside it {beside}")
        if are_older(before, beside):
            failures.append("inputs are older beside the flood")
    if rig["end"] != "stopped" or rig["reconnects"] != 0:
        failures.append(f"control was lost: {rig['end']}, {rig['reconnects']} times connected again")
    for failure in failures:
        print(f"    {failure}")
    if flood["rate"] < LEAST_RATE:
        print(f"    skipped: this machine is too busy for a flood of {LEAST_RATE} a second")
        return 77  # whoever keeps the flood from the machine keeps the rig from it
    return 1 if failures else 0


sys.exit(main(sys.argv[1]))
