"""What does it cost to go through Ullage, beside going there directly and through other gateways?

Run by `make bench-gateway`. `PEERS=no` leaves the peers out. Three questions in one run: what a gateway adds to one
call of one server (`gateway_one`), what finding and calling cost with five servers of fifty tools (`gateway_many`), and
when the tools are there if the servers are slow (`gateway_slow`). Prints a table for each and one line of figures;
fails where a floor is missed.
"""

import json
import os
import sys
from collections.abc import Mapping

import gateway_many
import gateway_one
import gateway_slow
from gateway_client import MODERN, Era
from gateway_fronts import DIRECT, FASTMCP_FOUND, OURS, OURS_FOUND, RELAY, peers

ERAS: tuple[Era, ...] = ("2025-11-25", MODERN)
MOST_ADDED = {OURS.name: 0.35, OURS_FOUND.name: 0.5}
"""Milliseconds of processor that Ullage may add to a call: by its listed name, and through `call_tool`."""
MOST_TIMES_RELAY = {OURS.name: 3.0, OURS_FOUND.name: 4.5}
"""Times what a minimal relay adds, which parses a message and writes it again."""
LEAST_AHEAD = 2.0
"""Times less than fastmcp's, both with search."""
MOST_TIMES_DIRECT = {"call_tool": 1.5, "find_tool": 2.5}
"""Times the wall time of a direct call, with five servers of fifty tools."""
LISTINGS = 1
"""How often a server may be asked for its tools, in all."""


def print_one(era: Era, costs: Mapping[str, gateway_one.Cost]) -> None:
    direct, relay = costs[DIRECT.name].wall, costs[RELAY.name].added
    print(f"\none echo server, raw client, {era}: {gateway_one.ROUNDS * gateway_one.CALLS} calls each")
    print(f"{'':26}{'p50 ms':>9}{'× direct':>10}{'added CPU ms':>14}{'× relay':>10}")
    for name, cost in costs.items():
        added = "" if name == DIRECT.name else f"{cost.added:14.3f}{cost.added / relay:10.1f}"
        print(f"{name:26}{cost.wall:9.3f}{cost.wall / direct:10.1f}{added}")


def one_missed(era: Era, costs: Mapping[str, gateway_one.Cost]) -> list[str]:
    missed, relay = list[str](), costs[RELAY.name].added
    for name, most in MOST_ADDED.items():
        added, most_times = costs[name].added, MOST_TIMES_RELAY[name]
        if added > most:
            missed.append(f"{era}: {name} adds {added:.2f} ms of CPU to a call, over {most}")
        if added > most_times * relay:
            missed.append(f"{era}: {name} adds {added / relay:.1f} times what a minimal relay adds, over {most_times}")
    if FASTMCP_FOUND.name in costs:
        ahead = costs[FASTMCP_FOUND.name].added / costs[OURS_FOUND.name].added
        if ahead < LEAST_AHEAD:
            missed.append(f"{era}: fastmcp adds {ahead:.1f} times ours to a call, under {LEAST_AHEAD}")
    return missed


def print_many(era: Era, times: Mapping[str, gateway_many.Times]) -> None:
    direct = times[DIRECT.name].call
    print(f"\n{len(gateway_many.NAMES)} servers × {gateway_many.TOOLS} tools, the SDK at both ends, {era}")
    print(f"{'':26}{'call ms':>9}{'× direct':>10}{'find ms':>10}{'× direct':>10}{'tools/list':>12}")
    for name, one in times.items():
        found = f"{one.find:10.2f}{one.find / direct:10.1f}" if one.find is not None else f"{'':20}"
        print(f"{name:26}{one.call:9.2f}{one.call / direct:10.2f}{found}{_listings(one):>12}")


def _listings(times: gateway_many.Times) -> str:
    least, most = min(times.listings.values(), default=0), max(times.listings.values(), default=0)
    return f"{most}" if least == most else f"{least}–{most}"


def many_missed(era: Era, times: Mapping[str, gateway_many.Times]) -> list[str]:
    direct, ours = times[DIRECT.name].call, times[OURS_FOUND.name]
    ratios = {"call_tool": ours.call / direct, "find_tool": (ours.find or 0) / direct}
    missed = [
        f"{era}: {name} takes {ratio:.2f} times a direct call, over {MOST_TIMES_DIRECT[name]}"
        for name, ratio in ratios.items()
        if ratio > MOST_TIMES_DIRECT[name]
    ]
    often = {name: ours.listings[name] for name in gateway_many.NAMES if ours.listings[name] != LISTINGS}
    return [*missed, *(f"{era}: {name} was asked {count} times for its tools" for name, count in often.items())]


def print_slow(cold: gateway_slow.Started, warm: gateway_slow.Started) -> None:
    print(f"\n{gateway_slow.SERVERS} servers that take {gateway_slow.SECONDS:.0f} s each to start, first tools/list")
    for name, started in (("nothing known of them", cold), ("catalogue on disk", warm)):
        print(f"{name:26}{started.seconds:7.2f} s, {started.tools} tools, {started.up} servers up")


def slow_missed(warm: gateway_slow.Started) -> list[str]:
    if warm.up == 0 and warm.tools == gateway_slow.SERVERS:
        return []
    return [f"with a catalogue the first list had {warm.tools} tools when {warm.up} servers were up"]


def main() -> int:
    others = peers(wanted=os.environ.get("PEERS") != "no")
    missed, figures = list[str](), dict[str, float]()
    for era in ERAS:
        costs = gateway_one.measure([DIRECT, RELAY, OURS, OURS_FOUND, *others], era)
        print_one(era, costs)
        missed += one_missed(era, costs)
        figures |= {f"{era}, added ms, {name}": cost.added for name, cost in costs.items() if name != DIRECT.name}
    for era in ERAS:
        # Those that list every tool as it is have nothing to find with.
        times = gateway_many.measure([DIRECT, OURS_FOUND, *(one for one in others if "proxy" not in one.name)], era)
        print_many(era, times)
        missed += many_missed(era, times)
        direct = times[DIRECT.name].call
        figures |= {f"{era}, call × direct, {name}": one.call / direct for name, one in times.items()}
        figures |= {f"{era}, find × direct, {name}": one.find / direct for name, one in times.items() if one.find}
    cold, warm = gateway_slow.measure()
    print_slow(cold, warm)
    missed += slow_missed(warm)
    figures |= {"first list, cold, s": cold.seconds, "first list, warm, s": warm.seconds}
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    rounded = {name: round(value, 2) for name, value in figures.items()}
    print(json.dumps(rounded | {"missed": len(missed)}, ensure_ascii=False))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
