"""How do the features of a text weigh for Claude's tokenizers, and how sure is that?

    python scripts/fit_claude.py USAGE_FOLDER [--trace SESSION.jsonl] [--claude-2 TOKENIZER.json] [--folds FOLDS.json]

Reads recorded requests with the provider's own counts (`anthropic.jsonl`, `bedrock.jsonl`) and, if given, a coding
session whose every answer carries its usage. Prints the weights for `tokens/estimate.py`, the error on repositories
left out of the fit, and how many of those rows lie within the band. With the published vocabulary of Claude 2 (and the
package `tokenizers`) it fits that one too. `--folds` writes the weights that were fitted without each repository, by
which `bench/accuracy.py` judges that repository's rows. Needs numpy and scipy.
"""
# numpy and scipy are no dependencies of the package.
# pyright: reportMissingImports=false

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls
from splintr import Tokenizer

from ullage.tokens.estimate import CALIBRATIONS, VOCABULARIES, Features, measure

OLD = ("cl100k", "modernbert", "numbers", "humps", "indents")
NEW = ("fives", "capitals")
NEWER = ("opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "fable")
PLAIN_KEYS = frozenset(
    {
        *("model", "messages", "max_tokens", "stream", "system", "temperature", "thinking", "cache_control"),
        *("stop_sequences", "top_p", "top_k", "inferenceConfig", "metadata", "anthropic_version"),
    }
)
QUIET_FLAGS = frozenset({"cache_control", "count_tokens", "thinking_cfg"})
Folds = dict[str, dict[str, float]]
"""Repository to the weights that were fitted without it."""
ENGINES = {name: Tokenizer.from_pretrained(name) for name in VOCABULARIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Texts that were counted together, and the constants that were counted with them."""

    kind: str
    repository: str
    tokenizer: str
    texts: tuple[str, ...]
    features: Features
    constants: Mapping[str, float]
    tokens: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("usage", type=Path)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--claude-2", type=Path)
    parser.add_argument("--folds", type=Path)
    options = parser.parse_args()
    samples = _without_repeats([*_recorded(options.usage), *(_session(options.trace) if options.trace else ())])
    older = [sample for sample in samples if sample.tokenizer == "claude_3"]
    newer = [sample for sample in samples if sample.tokenizer == "claude_4_7"]
    weights, older_folds = _fit_and_report("claude_3", older, OLD, {})
    _, newer_folds = _fit_and_report("claude_4_7", newer, NEW, weights)
    if options.folds:
        _write_folds(options.folds, {"claude_3": older_folds, "claude_4_7": newer_folds})
    if options.claude_2:
        _fit_claude_2(options.claude_2, samples)


def _recorded(folder: Path) -> Iterator[Sample]:
    for name in ("anthropic", "bedrock"):
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "claude" in (row["model"] or "") and "claude-v2" not in row["model"] and "claude-2" not in row["model"]:
                yield from _prompt(row)
                yield from _answer(row)


def _prompt(row: Mapping[str, Any]) -> Iterator[Sample]:
    """The whole prompt, where it is text and nothing else."""
    request, thinking = row["request"], (row["request"].get("thinking") or {}).get("type")
    system = _texts(request.get("system"))
    contents = [_texts(message["content"]) for message in request.get("messages", ())]
    plain = request.keys() <= PLAIN_KEYS and set(row["flags"]) <= QUIET_FLAGS and "messages" in request
    adaptive = thinking == "adaptive" and not _newer(row)  # costs 0 or 18 tokens, by model
    if (
        not plain
        or adaptive
        or None in contents
        or system is None
        or row["input_tokens"] > 3 * len(json.dumps(request)) + 60
    ):
        return
    blocks = sum(len(content or ()) - 1 for content in contents) + max(0, len(system) - 1)
    constants = {"prompt": 1, "messages": len(contents) - 1, "blocks": blocks, **_only_4_7(row, "prompt")}
    if thinking == "enabled":
        constants["thinking"] = 1
    yield _sample(
        row,
        "prompt",
        [*system, *(text for content in contents for text in content or ())],
        constants,
        row["input_tokens"],
    )


def _answer(row: Mapping[str, Any]) -> Iterator[Sample]:
    """The answer, where it is one text, ended by itself and hides no thinking."""
    answer, request, usage = row["output_text"], row["request"], row["usage"]
    if isinstance(answer, dict):
        answer = answer["message"]["content"] if "message" in answer else answer.get("blocks")
    blocks = [{"text": answer}] if isinstance(answer, str) else answer or []
    thought = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
    texts = [block["text"] for block in blocks if block.get("text") and not block.get("citations")]
    others = [block for block in blocks if "text" not in block and block.get("type") != "thinking"]
    thinks = "thinking_cfg" in row["flags"] or len(blocks) > len(texts)
    limit = request.get("max_tokens") or (request.get("inferenceConfig") or {}).get("maxTokens")
    strange = set(row["flags"]) & {"server_tool_used", "server_tool_turns"} or '"citations"' in json.dumps(request)
    if len(texts) != 1 or others or strange or (thinks and thought is None) or row["output_tokens"] == limit:
        return
    constants = {"answer": 1, **_only_4_7(row, "answer")}
    yield _sample(row, "answer", texts, constants, row["output_tokens"] - (thought or 0))


def _session(path: Path) -> Iterator[Sample]:
    """Tool results of a session: what a prompt is longer than the one before it and the answer to that."""
    before, results = None, []
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        message = entry.get("message") or {}
        if entry["type"] == "compaction":
            before = None
        if message.get("role") != "assistant":
            results.append(message)
            continue
        usage = message["usage"]
        prompt = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
        if before and prompt and results and all(result.get("role") == "toolResult" for result in results):
            texts = [block.get("text") for result in results for block in result["content"]]
            constants = {"result": 1, "more results": len(results) - 1}
            tokens = prompt - before
            if None not in texts and tokens > 0:
                yield Sample(
                    kind="result",
                    repository=path.stem,
                    tokenizer="claude_3",
                    texts=tuple(texts),
                    features=_measure(texts),
                    constants=constants,
                    tokens=tokens,
                )
        before = prompt + usage["output"] if prompt and message["stopReason"] not in ("aborted", "error") else None
        results = []


def _sample(
    row: Mapping[str, Any], kind: str, texts: Sequence[str], constants: Mapping[str, float], tokens: int
) -> Sample:
    return Sample(
        kind=kind,
        repository=row["source"].split("@")[0],
        tokenizer="claude_4_7" if _newer(row) else "claude_3",
        texts=tuple(texts),
        features=_measure(texts),
        constants=constants,
        tokens=tokens,
    )


def _newer(row: Mapping[str, Any]) -> bool:
    return any(name in row["model"] for name in NEWER)


def _only_4_7(row: Mapping[str, Any], kind: str) -> dict[str, float]:
    return {f"{kind} of Opus 4.7": 1} if "opus-4-7" in row["model"] else {}


def _texts(content: str | list[dict[str, Any]] | None) -> list[str] | None:
    """The texts of a content, or None where there is anything else in it."""
    items = [{"text": content}] if isinstance(content, str) else content or []
    blocks = [block for block in items if "cachePoint" not in block and block.get("text") != ""]
    return [block["text"] for block in blocks] if all("text" in block for block in blocks) else None


def _measure(texts: Sequence[str]) -> Features:
    return sum((measure(text, _count) for text in texts), start=Features())


def _count(vocabulary: str, text: str) -> int:
    return len(ENGINES[vocabulary].encode_ordinary(text))


def _without_repeats(samples: Sequence[Sample]) -> list[Sample]:
    """One of each: the same texts with the same count, and one of a long prompt that varies by a few words."""
    seen: dict[tuple[object, ...], Sample] = {}
    for sample in samples:
        near = sample.features if sample.tokens < 3000 else sample.features.cl100k // 20
        seen.setdefault((sample.repository, sample.kind, near, sample.tokens, *sample.constants.items()), sample)
    return list(seen.values())


def _fit(
    samples: Sequence[Sample],
    names: Sequence[str],
    fixed: Mapping[str, float],
    constants: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Non-negative weights of the least relative error (L1, by re-weighting); a repository with many rows is tamed."""
    free = sorted({name for sample in samples for name in sample.constants}) if constants is None else []
    rows = np.array(
        [[getattr(s.features, n) for n in names] + [s.constants.get(n, 0) for n in free] for s in samples], float
    )
    known = np.array([_weigh(s.features, fixed) + (_constant(s, constants) if constants else 0) for s in samples])
    tokens = np.array([s.tokens for s in samples], float)
    size = Counter(s.repository for s in samples)
    scale = np.array([size[s.repository] ** -0.35 for s in samples]) / np.maximum(tokens, 25)
    robust = np.ones(len(samples))
    found = np.zeros(rows.shape[1])
    for _ in range(25):
        pull = scale * robust
        found, _rest = nnls(rows * pull[:, None], (tokens - known) * pull)
        error = np.abs(rows @ found + known - tokens) / np.maximum(tokens, 25)
        robust = 1 / np.sqrt(np.maximum(error, 0.015))
    return dict(zip([*names, *free], map(float, found), strict=True))


def _weigh(features: Features, weights: Mapping[str, float]) -> float:
    known = {field.name for field in fields(Features)}
    return sum(weight * getattr(features, name) for name, weight in weights.items() if name in known)


def _constant(sample: Sample, weights: Mapping[str, float]) -> float:
    return sum(weights.get(name, 0.0) * value for name, value in sample.constants.items())


def _fit_and_report(
    tokenizer: str, samples: list[Sample], names: Sequence[str], base: Mapping[str, float]
) -> tuple[dict[str, float], Folds]:
    found = _fit(samples, names, base)
    weights = {**base, **{name: found[name] for name in names}}
    print(f"\n{tokenizer}: {len(samples)} samples of {len({s.repository for s in samples})} repositories")
    print("  weights  ", {name: round(weight, 3) for name, weight in weights.items()})
    print("  constants", {name: round(weight, 2) for name, weight in found.items() if name not in names})
    folds = _left_out(samples, names, base, found)
    held = [_weigh(sample.features, folds[sample.repository]) for sample in samples]
    _report("in sample", samples, [_weigh(s.features, weights) for s in samples], found, tokenizer)
    _report("left out", samples, held, found, tokenizer)
    return weights, folds


def _left_out(
    samples: Sequence[Sample], names: Sequence[str], base: Mapping[str, float], constants: Mapping[str, float]
) -> Folds:
    """Weights fitted without each repository; the framing constants are taken as known."""
    held: Folds = {}
    for repository in {sample.repository for sample in samples}:
        rest = [sample for sample in samples if sample.repository != repository]
        found = _fit(rest, names, base, constants)
        held[repository] = {**base, **{name: found[name] for name in names}}
    return held


def _write_folds(path: Path, folds: Mapping[str, Folds]) -> None:
    rounded = {
        tokenizer: {
            repository: {name: round(weight, 3) for name, weight in weights.items()}
            for repository, weights in sorted(held.items())
        }
        for tokenizer, held in folds.items()
    }
    path.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def _report(
    title: str, samples: Sequence[Sample], texts: Sequence[float], constants: Mapping[str, float], tokenizer: str
) -> None:
    for label, kinds, low, high in (
        ("50+ tokens", {"prompt", "answer"}, 50, 1e9),
        ("prompts 50+", {"prompt"}, 50, 1e9),
        ("answers 50+", {"answer"}, 50, 1e9),
        ("under 50", {"prompt", "answer"}, 0, 50),
        ("results 100+", {"result"}, 100, 1e9),
    ):
        chosen = [(s, t) for s, t in zip(samples, texts, strict=True) if s.kind in kinds and low <= s.tokens < high]
        if chosen:
            errors = np.array([abs(t + _constant(s, constants) - s.tokens) / s.tokens for s, t in chosen])
            inside = np.mean([_inside(s, t, constants, tokenizer) for s, t in chosen])
            middle, tail = np.percentile(errors, (50, 95))
            print(
                f"  {title:10} {label:13} {len(chosen):4} rows  mean {errors.mean():6.2%}  median {middle:6.2%}"
                f"  p95 {tail:6.2%}  in band {inside:6.1%}"
            )


def _inside(sample: Sample, text: float, constants: Mapping[str, float], tokenizer: str) -> bool:
    """Whether the true count of the text lies in the band around a count of `text` tokens; a token for rounding."""
    truth = sample.tokens - _constant(sample, constants)
    return abs(truth - text) <= CALIBRATIONS[tokenizer].reach(text, sample.features) + 1


def _fit_claude_2(vocabulary: Path, samples: Sequence[Sample]) -> None:
    """The same features against the published vocabulary of Claude 2, over all the texts at hand."""
    from tokenizers import Tokenizer as Published  # pyright: ignore[reportMissingImports]

    published = Published.from_file(str(vocabulary))
    counted = [
        replace(
            sample, kind="answer", constants={}, tokens=sum(len(published.encode(text).ids) for text in sample.texts)
        )
        for sample in samples
    ]
    _fit_and_report("claude_2", [sample for sample in counted if sample.tokens], OLD, {})


if __name__ == "__main__":
    main()
