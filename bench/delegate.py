"""What does delegating cost the one who delegates, and is what providers report read rightly?

Run by `make bench-delegate`. Three questions in one run: what a call costs over the bare bytes of its wire, beside
litellm, pydantic-ai and the bare SDKs (`delegate_calls`); what importing costs over the MCP SDK (`delegate_import`);
what we make of the usage of recorded answers (`delegate_usage`, in the folder `DATA`). `PEERS=no` leaves the peers out.
Prints tables, then what fell short of a floor, then one line of figures; fails where a floor is missed: 1.5 ms of CPU
a call, 0.1 s of an import, a usage for every recorded answer that agrees with the provider's total.
"""

import json
import os
import sys
from collections.abc import Mapping

import delegate_calls
import delegate_import
import delegate_usage
from delegate_peers import present
from rows import data_folder

MOST_ADDED = 1.5
"""Milliseconds of processor over the wire itself."""
MOST_IMPORT = 0.1
"""Seconds of processor over the MCP SDK's import."""


def added(costs: Mapping[str, delegate_calls.Cost]) -> dict[str, delegate_calls.Cost]:
    """Over the bytes of the same wire."""
    bare = {name.partition(", ")[2]: cost for name, cost in costs.items() if name.startswith("bytes")}
    return {
        name: delegate_calls.Cost(
            short=cost.short - bare[name.partition(", ")[2]].short, long=cost.long - bare[name.partition(", ")[2]].long
        )
        for name, cost in costs.items()
    }


def print_calls(costs: Mapping[str, delegate_calls.Cost], over: Mapping[str, delegate_calls.Cost]) -> None:
    print(f"\nCPU ms a call{'':17}{delegate_calls.SHORT:>5} pieces{'over bytes':>12}", end="")
    print(f"{delegate_calls.LONG:>8} pieces{'over bytes':>12}")
    for name, cost in sorted(costs.items(), key=lambda pair: pair[1].short):
        print(f"{name:30}{cost.short:12.2f}{over[name].short:12.2f}{cost.long:15.2f}{over[name].long:12.2f}")


def calls_missed(over: Mapping[str, delegate_calls.Cost]) -> list[str]:
    return [
        f"{name} adds {cost.short:.2f} ms of CPU to a call, over {MOST_ADDED}"
        for name, cost in over.items()
        if name.startswith("ullage") and cost.short > MOST_ADDED
    ]


def print_imports(seconds: Mapping[str, float]) -> None:
    print("\nCPU seconds of an import; ours over the MCP SDK's")
    for name, spent in seconds.items():
        print(f"{name:38}{spent:8.3f}")


def imports_missed(seconds: Mapping[str, float]) -> list[str]:
    ours = seconds[delegate_import.OURS]
    return [f"importing adds {ours:.3f} s of CPU, over {MOST_IMPORT}"] if ours > MOST_IMPORT else []


def print_usage(found: Mapping[str, delegate_usage.Read]) -> None:
    print(f"\n{'usage of recorded answers':30}{'rows':>8}{'unknown':>10}{'not the total':>15}{'other input':>13}")
    for wire, read in found.items():
        print(f"{wire:30}{read.rows:8}{read.unknown:10}{read.untotalled.total():15}{read.beside.total():13}", end="")
        print("  " + "; ".join(f"{count} {why}" for why, count in read.beside.items()))


def usage_missed(found: Mapping[str, delegate_usage.Read]) -> list[str]:
    missed = list[str]()
    for wire, read in found.items():
        counts = {
            "no rows": not read.rows,
            "usages unknown": read.unknown,
            "unlike the total": read.untotalled.total(),
            "inputs unexplained": read.beside["unexplained"],
        }
        missed += [f"{wire}: {count} {what}" for what, count in counts.items() if count]
    return missed


def main() -> int:
    folder = data_folder()
    if not folder.is_dir():
        print(f"no data: `{folder}` is not a folder; name one with DATA=path", file=sys.stderr)
        return 2
    peers = present(("litellm", "pydantic-ai", "sdks"), wanted=os.environ.get("PEERS") != "no")
    usage = delegate_usage.measure(folder)
    print_usage(usage)
    costs = delegate_calls.measure(peers)
    over = added(costs)
    print_calls(costs, over)
    seconds = delegate_import.measure(peers)
    print_imports(seconds)
    missed = [*usage_missed(usage), *calls_missed(over), *imports_missed(seconds)]
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    figures = {
        "ms over bytes": {name: round(cost.short, 2) for name, cost in over.items()},
        "import s": {name: round(spent, 3) for name, spent in seconds.items()},
        "usages": {wire: read.rows for wire, read in usage.items()},
    }
    print(json.dumps(figures | {"missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
