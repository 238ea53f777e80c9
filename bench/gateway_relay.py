"""A minimal relay: what a hop between a client and one server costs when nothing is done there.

`gateway_relay.py COMMAND …` starts the server and passes messages on in both directions, each parsed and written again,
with ids of its own.
"""

import itertools
import json
import subprocess
import sys
import threading
from typing import IO, Any

numbers, waiting = itertools.count(), dict[int, Any]()


def write(message: dict[str, Any], sink: IO[bytes]) -> None:
    sink.write(json.dumps(message).encode() + b"\n")
    sink.flush()


def pass_answers(source: IO[bytes]) -> None:
    for line in source:
        message = json.loads(line)
        if "method" not in message:
            message["id"] = waiting.pop(message["id"])
        write(message, sys.stdout.buffer)


server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert server.stdin is not None
assert server.stdout is not None
threading.Thread(target=pass_answers, args=[server.stdout], daemon=True).start()
for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        number = next(numbers)
        waiting[number], message["id"] = message["id"], number
    write(message, server.stdin)
server.stdin.close()
