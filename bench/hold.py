"""How long hostile input holds up everything else.

Run by `make bench-hold`; `ONLY=counting` or `ONLY=gateway` runs one part. The first part counts ten ordinary megabytes
and a megabyte of each hostile kind in steps, for models of several vocabularies. The second runs a gateway with a quiet
and a hostile server and measures how much longer calls of the quiet one take. Prints a table for each, then what fell
short of a floor, then one line of figures; fails where a floor is missed: a step of 20 ms of CPU, a second of CPU a
megabyte, a delay of 50 ms.
"""

import gc
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "tokens"))

from hold_gateway import MOST_DELAY, delays
from texts import hostile

from ullage.models import shipped
from ullage.tokens import Meter, Steps, default_engine

MODELS = ("gpt-4", "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "qwen3-32b", "deepseek-chat")
MOST_MILLISECONDS, MOST_SECONDS = 20.0, 1.0
ORDINARY = (
    "The committee met on Tuesday to go through 14 proposals; none was turned down outright.\n"
    '{"tool": "search", "arguments": {"query": "ferries to Gotland", "limit": 25, "exact": false}}\n'
    "    for row in rows:\n        total += row.price * row.count  # rounding is done at the end\n"
    "今天的会议改到下午三点。 회의는 세 시에 시작합니다. A reunião começa às três da tarde.\n"
)


def run(steps: Steps[object]) -> tuple[float, float]:
    """CPU seconds in all, and of the longest step."""
    longest, begin = 0.0, time.thread_time()
    while True:
        step = time.thread_time()
        try:
            next(steps)
        except StopIteration:
            return time.thread_time() - begin, max(longest, time.thread_time() - step)
        longest = max(longest, time.thread_time() - step)


def measure(text: str, model: str) -> tuple[float, float]:
    """Seconds a megabyte, and the longest step in milliseconds, with the vocabulary loaded and the text unseen."""
    meter = Meter(shipped(), engine=default_engine(begins_short=False))
    meter.count("xqzptlk", model)
    gc.collect()
    spent, longest = run(meter.steps(text, model))
    return spent / (len(text.encode("utf-8", "surrogatepass")) / 1e6), longest * 1000


def count_hostile() -> tuple[dict[str, float], list[str]]:
    """The figures of counting, and which texts and models missed a floor."""
    texts = {"ten ordinary megabytes": ORDINARY * (10_000_000 // len(ORDINARY.encode())), **hostile(1_000_000)}
    print(f"{'seconds a MB / longest step in ms':36}" + "".join(f"{name:>20}" for name in MODELS))
    worst, missed = (0.0, 0.0), list[str]()
    for kind, text in texts.items():
        row = {model: measure(text, model) for model in MODELS}
        print(f"{kind:36}" + "".join(f"{spent:12.3f} / {longest:5.1f}" for spent, longest in row.values()))
        worst = max(worst[0], *(spent for spent, _ in row.values())), max(worst[1], *(step for _, step in row.values()))
        missed += [
            f"{kind}, {model}"
            for model, (spent, step) in row.items()
            if spent > MOST_SECONDS or step > MOST_MILLISECONDS
        ]
    return {"seconds a MB, most": round(worst[0], 3), "step in ms, most": round(worst[1], 1)}, missed


def delay_others() -> tuple[dict[str, float], list[str]]:
    """The figures of a gateway under attack, and which attacks delayed another server's call for too long."""
    print(f"\n{'delay of another server, in ms':40}{'delay':>8}{'by':>24}{'baseline':>10}")
    worst, missed = 0.0, list[str]()
    for case, delay in delays():
        print(f"{case:40}{delay.milliseconds:8.1f}{delay.request:>24}{delay.baseline:10.1f}", flush=True)
        worst = max(worst, delay.milliseconds)
        if delay.milliseconds > MOST_DELAY:
            missed.append(f"{case}: {delay.milliseconds:.0f} ms at {delay.request}")
    return {"delay in ms, most": round(worst, 1)}, missed


def main() -> int:
    parts = {"counting": count_hostile, "gateway": delay_others}
    only = os.environ.get("ONLY")
    figures, missed = dict[str, float](), list[str]()
    for part in [parts[only]] if only else parts.values():
        found, short = part()
        figures |= found
        missed += short
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    print(json.dumps({**figures, "missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
