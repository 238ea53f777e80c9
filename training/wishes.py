"""What would somebody say who needs this tool?

`wishes.tsv` was written for this project, one line or more a tool: its id, and two texts, what an agent would type to
find it and what a user would say who wants it done. Neither repeats what the tool says of itself. Some are in
Portuguese, Spanish, German, Korean or Chinese, which the encoder does not know: there it reads the other of the two, or
else the tool's own words.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pairs import Pair
from tools import Described

__all__ = ["is_foreign", "wished"]

_OTHER_LETTERS = re.compile("[\u1100-\u11ff\u3040-\uffff]")
_WORD = re.compile(r"[^\W\d_]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = _words(
    "the a an and or of to in for from with on at by is are was be it its my our your this that i we you me us can "
    "could please what which how who where when do does did have has need want get all any not as so up out"
)
_FOREIGN = _words(
    "o os um uma de da das dos e em na no nas nos para por com que não se meu minha meus minhas nosso nossa você eu "
    "qual quais quero preciso como mas mais já foi ser ao à às pelo pela está "
    "el la los las un una y del al es en lo le mi mis nuestro nuestra con sin sobre qué cuál cuáles cómo quiero "
    "necesito pero más ya fue están hay tengo puedes "
    "der die das den dem des ein eine einen einem einer und oder ist sind war im am zu zum zur von vom mit für auf aus "
    "bei ich wir mir mich uns mein meine meinen unser unsere bitte wie was welche welcher nicht noch nach kannst soll"
)


def wished(tools: Sequence[Described]) -> Iterator[Pair]:
    """The pairs of those tools that are learnt from."""
    places = {tool.id: place for place, tool in enumerate(tools)}
    for line in Path(__file__).with_name("wishes.tsv").read_text(encoding="utf-8").splitlines():
        id_, *said = line.split("\t")
        if id_ in places:
            tool = tools[places[id_]]
            english = next((text for text in said if not is_foreign(text)), f"{tool.fields[1]} {tool.head}")
            for text in said:
                yield Pair(text, places[id_], english=english if is_foreign(text) else None, written=True)


def is_foreign(text: str) -> bool:
    """Whether a text is in another language than English, as its letters or its commonest words tell."""
    if len(_OTHER_LETTERS.findall(text)) > 2:
        return True
    words = [word.lower() for word in _WORD.findall(text)]
    others = sum(word in _FOREIGN for word in words)
    return others > 1 and others > sum(word in _ENGLISH for word in words)
