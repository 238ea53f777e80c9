"""Would Google take these contents?

Its rules, as it names them when it refuses a request. Neighbours of one role are one turn to it. A call has an id only
in newer clients, so a turn of calls and the turn of responses behind it are told by their names and how many they are.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from json import dumps

from .lenient import text_of
from .valid_turns import Item, Turn, objects_of, turns_of

__all__ = ["altered", "refused", "speaker"]

_NOTHING = Turn("", ())


def speaker(content: Item) -> str:
    """Whoever is not the model is the user: functions answer in the user's turn, and a role may be missing."""
    return "assistant" if content.get("role") == "model" else "user"


def refused(contents: Sequence[Item]) -> Iterator[str]:
    if any(not objects_of(content.get("parts")) for content in contents):
        yield "a content has no parts"
    turns = turns_of(contents, speaker, _parts)
    for before, turn in pairwise((_NOTHING, *turns, _NOTHING)):
        yield from _unpaired(before, turn)
    if turns and turns[0].speaker == "assistant" and _calls(turns[0]):
        yield "the first turn is one of calls"


def altered(contents: Sequence[Item], original: Sequence[Item]) -> Iterator[str]:
    """The first call of a turn of calls carries the seal of the model's thinking, where it did."""
    seals = defaultdict[str, set[str]](set)
    for turn in turns_of(original, speaker, _parts):
        for call in _calls(turn):
            seals[_fingerprint(call)].add(_seal(_calls(turn)[0]))
    for turn in turns_of(contents, speaker, _parts):
        for call in _calls(turn)[:1]:
            if _seal(call) not in seals.get(_fingerprint(call), {_seal(call)}):
                yield f"the call of `{_name(call, 'functionCall')}` has not the signature it had"


def _parts(content: Item) -> list[Item]:
    return objects_of(content.get("parts"))


def _unpaired(before: Turn, turn: Turn) -> Iterator[str]:
    """A turn of calls is followed by as many responses of the same names, and no response stands elsewhere."""
    calls = Counter(_name(part, "functionCall") for part in _calls(before))
    responses = Counter(_name(part, "functionResponse") for part in turn.parts if _under(part, "functionResponse"))
    yield from (f"a call of `{name}` has no response in the next turn" for name in (calls - responses).elements())
    yield from (f"a response of `{name}` has no call in the turn before" for name in (responses - calls).elements())


def _calls(turn: Turn) -> list[Item]:
    return [part for part in turn.parts if _under(part, "functionCall")]


def _under(part: Item, key: str) -> Item:
    """What stands under a key in either spelling: `functionCall`, `function_call`."""
    value = part.get(key, part.get(_SNAKE[key]))
    return value if isinstance(value, dict) else {}


def _name(part: Item, key: str) -> str:
    return text_of(_under(part, key).get("name"))


def _seal(part: Item) -> str:
    return text_of(part.get("thoughtSignature", part.get("thought_signature")))


def _fingerprint(part: Item) -> str:
    return dumps(_under(part, "functionCall"), sort_keys=True)


_SNAKE = {"functionCall": "function_call", "functionResponse": "function_response"}
