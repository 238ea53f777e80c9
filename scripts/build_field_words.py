"""Writes the words of which the keys of JSON objects usually consist, for the shapes of tools' replies.

    python scripts/build_field_words.py ../shared/data

The words come from the names of parameters and of tools in `catalogues/` and `search/`: a word that the parameters of
three servers have, or the tools of four. Words that are also names of people, places, dates or brands are left out,
because they may be data where they are keys. The result is `src/ullage/gateway/results/field_words.py`.
"""

import json
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_OF_PARAMETERS, _OF_TOOLS = 3, 4
"""Least number of servers that use a word."""
_SHORTEST = 2
_RESPONSES = """
actor amount arrival author avatar away blob branch browser byte cabin changed clone comment commit committer count
created day deleted departure description diff dob downloads duration economy elapsed est etag event expires extension
files flight followers fork gravatar hash head health history home host hostname href html icon inserted issue iso
item job kind label last latency license likes login logs merged message messages milestone mime modified ms node note
object open operator org origin owner page passenger patch payload pending permalink price private progress province
pull raw reaction reason record ref release removed repo reservation response result results retries reviewer role row
sample score seat sha site size sort stargazers starred stars started state stats status steps stock subtotal success
summary tags text thumbnail ticket timestamp title topics total tree unit updated uri url user utc version views
visibility watchers weather width
"""
"""Words of replies that few parameters have."""
_DATA = """
aaron adam admin adrian alan albert alex alexander alice allen amanda amber amy andrea andrew angel ann anna anthony
april archer arthur art ash ashley august austin autumn bailey baker barbara ben benjamin beth bill bob brad brandon
brian brook brooks brown bruce bryan carl carol carter catherine chad charity charles charlie chase chen chloe chris
christian christine clara clark clay cliff cole cook cooper craig crystal cynthia daisy dale dan daniel danny dave
david dawn dean deborah dennis derek diana donald donna dorothy doug drew duke dylan earl ed edward elena eli
elizabeth ella emily emma eric erin ethan eva evan eve faith felix fisher florence ford forest fox frances francis
frank fred gabriel gary gene george gerald gina ginger glen gloria gordon grace grant greg guy hannah harper harry
hazel heath heather helen henry holly hope howard hunter ian irene iris isaac isabel ivan ivy jack jackie jacob jade
jake james jamie jan jane janet jason jasmine jay jean jeff jennifer jeremy jerry jesse jessica jessie jill jim jimmy
joan joe joel john jon jonathan jordan jose joseph josh joshua joy juan judith judy julia julian julie june justin
karen kate katherine kathy keith kelly ken kenneth kevin kim kumar kyle lane larry laura lauren lee leo leon leslie li
lily linda lisa liu logan louis lucas lucy luis luke lynn madison marcus margaret maria marie mario marion mark martha
martin mary mason matt matthew max maya megan melissa mia michael michelle miguel mike miles miller molly monica
morgan nancy natalie nathan neil nguyen nicholas nick nicole noah nora oliver olive olivia oscar owen page_ pam pamela
parker pat patel patience patricia patrick paul pearl pedro penny peter phil philip piper rachel ralph randy ray
raymond rebecca reed rex rich richard rick rob robert robin rod roger ron ronald rosa rose roy ruby russell ruth ryan
sage sally sam samantha samuel sandra sandy sara sarah scott sean sergio seth shane shannon sharon shawn sierra simon
singh skip smith sofia sophia sophie stacy stanley stella stephanie stephen steve steven stuart sue summer_ susan
suzanne sydney tanner tara taylor ted teresa terry theo theodore theresa thomas tiffany tim timothy tina todd tom
tommy tony tracy travis trevor tyler valerie vanessa vera vernon vic vicky victor victoria vince vincent violet
virginia vivian wade walter wang wayne wendy wesley white_ will william willow wilson wood xavier yan yang young
yvonne zach zachary zoe monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun january
february march may_ july september october november december jan feb mar apr may jun jul aug sep sept oct nov dec
africa african america american arabic argentina asia australia austria beijing belgium berlin boston brazil british
california canada chicago china chinese denmark dutch egypt england english europe european finland france french
german germany greece greek hindi hong india indian indonesia ireland israel italian italy japan japanese kenya korea
korean london mexico moscow netherlands norway paris poland polish portugal portuguese russia russian seoul shanghai
singapore spain spanish sweden swedish swiss switzerland taiwan texas tokyo toronto turkey turkish ukraine usa vietnam
york zealand zurich root hunter dragon monkey shadow sunshine princess letmein welcome password1 qwerty adobe airbnb
airtable alibaba amazon android anthropic apache apple asana atlassian aws azure bing bitcoin brave browserbase chrome
chroma claude cloudflare confluence copilot databricks docker douyin dropbox ethereum exa facebook feishu figma
firecrawl firefox gemini github gitlab google hubspot instagram intel jira kubernetes linear linkedin linux meta_
microsoft mongodb mysql neo netflix notion nvidia openai oracle paypal pinterest postgres reddit redis salesforce
samsung shopify slack snowflake solana spotify stripe supabase telegram tesla tiktok twilio twitter ubuntu uniswap
vercel walmart wechat weibo whatsapp wikipedia windows wordpress yahoo youtube zendesk zoom java javascript kotlin perl
php python ruby rust swift typescript
"""
"""Names of people, places, dates, brands and programming languages, and common passwords. Those that end in `_` are
fields more often."""


def words_of(name: str) -> set[str]:
    """Return the lower-case words of a name."""
    return {word.lower() for word in _WORD.findall(name)}


def singular(word: str) -> str:
    """Return a word without the ending of its plural, by the rule that `return_shape` applies."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def tools_in(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every tool with the name of its server."""
    for path in sorted((data / "catalogues").glob("*.json")):
        for tool in json.loads(path.read_text(encoding="utf-8")).get("tools", []):
            yield path.stem, tool
    for path in sorted((data / "search").glob("*/*/tools.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            tool = json.loads(line)
            yield f"{path.parent.name}:{tool.get('server')}", tool


def parameters_in(value: object) -> Iterator[str]:
    """Yield the names of all properties in a schema."""
    if isinstance(value, dict):
        schema = cast("dict[str, object]", value)
        properties = schema.get("properties")
        yield from cast("dict[str, object]", properties) if isinstance(properties, dict) else ()
        for inner in schema.values():
            yield from parameters_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from parameters_in(inner)


def main() -> None:
    """Write the module."""
    of_parameters, of_tools = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for server, tool in tools_in(Path(sys.argv[1])):
        for name in parameters_in([tool.get("inputSchema"), tool.get("outputSchema")]):
            for word in words_of(name):
                of_parameters[word].add(server)
        for word in words_of(tool["name"]):
            of_tools[word].add(server)
    common = {word for word, servers in of_parameters.items() if len(servers) >= _OF_PARAMETERS}
    common |= {word for word, servers in of_tools.items() if len(servers) >= _OF_TOOLS and len(word) > _SHORTEST}
    left_out = {singular(word) for word in _DATA.split()} | set(_DATA.split())
    words = {singular(word) for word in (common - left_out) | set(_RESPONSES.split()) if len(word) >= _SHORTEST}
    text = textwrap.fill(" ".join(sorted(words - left_out | {"x", "y", "z"})), 118, break_on_hyphens=False)
    Path("src/ullage/gateway/results/field_words.py").write_text(
        '"""Words of which the keys of JSON objects usually consist, in the singular. Written by\n'
        '`scripts/build_field_words.py`; not to be changed by hand."""\n\n'
        f'__all__ = ["FIELD_WORDS"]\n\n_WORDS = """\n{text}\n"""\n\nFIELD_WORDS = frozenset(_WORDS.split())\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
