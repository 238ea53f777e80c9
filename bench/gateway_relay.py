"""A minimal relay: what a hop between a client and one server costs when nothing is done there.

`gateway_relay.py COMMAND …` starts the server and passes messages on in both directions, each parsed and written again.
"""

import json
import os
import select
import subprocess
import sys

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert server.stdin is not None
assert server.stdout is not None
routes = {0: server.stdin.fileno(), server.stdout.fileno(): 1}
unfinished = dict.fromkeys(routes, b"")
while True:
    for source in select.select(list(routes), [], [])[0]:
        read = os.read(source, 65536)
        if not read:
            sys.exit()
        *lines, unfinished[source] = (unfinished[source] + read).split(b"\n")
        for line in lines:
            os.write(routes[source], json.dumps(json.loads(line)).encode() + b"\n")
