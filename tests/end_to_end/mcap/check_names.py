#!/usr/bin/env python3
"""Decode the last outputs and bodies of a recording by the schemas in the file and compare them with a table.

usage: check_names.py LAST.json TABLE.csv    LAST.json: what read_recording.mjs --last prints, of the same run
Exit status: 0 equal, 1 not.
"""

import base64
import csv
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def decode(topic):
    """The message of a topic, by the schema beside it."""
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(topic["schema"]))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    kind = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(topic["name"]))
    return kind.FromString(base64.b64decode(topic["message"]))


def main(recording, table):
    with open(recording) as file:
        last = json.load(file)["last"]
    with open(table) as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    row = rows[-1]
    outputs, bodies = decode(last["/outputs"]), decode(last["/bodies"])
    compared = 0
    for field in outputs.DESCRIPTOR.fields:
        channel = field.json_name.split(" [")[0]
        if channel in row:
            assert getattr(outputs, field.name) == float(row[channel]), (field.name, row[channel])
            compared += 1
    assert compared > 0 and outputs.step == len(rows) - 1 and outputs.sim_time_ns == round(1e9 * float(row["t"]))
    for field in bodies.DESCRIPTOR.fields[2:]:
        body = getattr(bodies, field.name)
        assert body.position.x == float(row[f"{field.name}.x"]), field.name
        assert body.velocity.y == float(row[f"{field.name}.vy"]), field.name
        compared += 1
    print(f"{compared} names and values agree")


main(sys.argv[1], sys.argv[2])
