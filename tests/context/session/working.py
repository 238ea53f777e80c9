"""A process of its own that works on a session.

`working.py write PATH NAME NUMBER` appends messages, and says the number of each, its writer and its place when it is
acknowledged. `working.py compact PATH STOP` lets go of what there is until a file of that name is there.
"""

import sys
import time
from pathlib import Path

from ullage.context.session import Draft, Session


def write(path: str, name: str, number: str) -> None:
    session = Session.open(path)
    for place in range(int(number)):
        text = f"{name} {place} " + "x" * (place * 37 % 5_000)
        (record,) = session.append([{"role": "user", "content": text}], durable=place % 20 == 0)
        sys.stdout.write(f"{record.seq} {name} {place}\n")
        time.sleep(0.001)


def compact(path: str, stop: str) -> None:
    session = Session.open(path)
    while not Path(stop).exists():
        records = session.refresh()
        if len(records) > 6:
            summary = Draft(message={"role": "user", "content": "<context_summary>"}, kind="summary")
            session.replace(0, len(records) - 2, [summary, records[1]], snapshot=records)
        time.sleep(0.005)


if __name__ == "__main__":
    {"write": write, "compact": compact}[sys.argv[1]](*sys.argv[2:])
