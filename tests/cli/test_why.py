import json
import re
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from ullage.cli import main
from ullage.cli.find import find_explanation, why_json, why_lines
from ullage.gateway import Explained
from ullage.search import Document, Field, Hit, Named, Reason, Why
from upstreams import scripted, tool, write_toml

pytestmark = pytest.mark.requirement("S1:hybrid")

ISSUES = tool("list_issues", "List the issues of a repository.")
FORECAST = tool("get_forecast", "Weather forecast for a city.")
OWN = '[own]\nhidden = ["*"]\n'


def _reason(term: str, score: float, field: Field = Field.NAME, *, asked: bool = True) -> Reason:
    return Reason(term=term, field=field, score=score, asked=asked)


def _found(why: Why, named: Named = Named.NO) -> Explained:
    document = Document(id="hub__list_issues", name="list_issues", description="Lists the issues of a repository")
    hit = Hit(document=document, score=why.words + why.meaning + why.use, named=named, explain=lambda: why)
    return Explained(listed="hub__list_issues", hit=hit)


def test_each_tool_is_shown_with_why_it_is_there(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", OWN, hub=scripted(ISSUES), sky=scripted(FORECAST))
    assert main(["find", "will it rain in my repository", "--why"]) == 0
    # The figures are the weights' affair.
    assert re.sub(r"\d\.\d\d", "#", capsys.readouterr().out) == snapshot("""\
sky__get_forecast(text?: string) [write]
  Weather forecast for a city.
    score    #
    words    #  no rare word in common
    meaning  #  nearness #, which counts for at most # here
    closer   #  second pass, word by word against the best rivals

hub__list_issues(text?: string) — List the issues of a repository [write]
    score    #
    words    #  repository: description #
    meaning  #  nearness #, which counts for at most # here
    closer   #  second pass, word by word against the best rivals
""")


def test_json_has_why_beside_the_reply_and_the_parts_sum_to_the_score(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(
        work / "ullage.toml", OWN, hub=scripted(ISSUES, tool("merge", "Merge a request")), sky=scripted(FORECAST)
    )
    words = ["find", "list issues", "--json"]
    assert main(words) == 0
    reply = json.loads(capsys.readouterr().out)
    assert main([*words, "--why"]) == 0
    found = json.loads(capsys.readouterr().out)
    why = found.pop("why")
    assert found == reply
    assert next(iter(why)) == "hub__list_issues"
    assert set(why) == {*(one["name"] for one in reply["tools"]), *(one.partition("(")[0] for one in reply["more"])}
    for one in why.values():
        assert one["words"] + one["meaning"] + one["closer"] + one["use"] == pytest.approx(one["score"], abs=0.001)
        assert sum(term["score"] for term in one["terms"]) == pytest.approx(one["words"], abs=0.001)
    assert why["hub__list_issues"]["named"] == "wholly"


def test_where_words_alone_are_searched_nothing_is_said_of_meaning(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", f'{OWN}[search]\nindex = "words"\n', hub=scripted(ISSUES))
    assert main(["find", "issues of a repository", "--why"]) == 0
    out = capsys.readouterr().out
    assert "meaning" not in out
    assert "    words    1.00  " in out


def test_a_tool_of_the_server_that_was_asked_for_says_so(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", OWN, hub=scripted(ISSUES))
    assert main(["find", "hub", "--why"]) == 0
    assert "    a tool of the server that was named\n" in capsys.readouterr().out
    assert why_json([Explained(listed="x", hit=None)]) == {"x": None}


def test_lines_are_aligned_and_no_wider_than_a_page_and_no_figure_is_parted_from_what_it_is_of():
    width = 80
    many = tuple(_reason(term, 0.1, field) for term in ("list", "issu", "repositori") for field in Field)
    rest = tuple(_reason(f"term{number}", 0.02, asked=False) for number in range(6))
    why = Why(words=1.92, reasons=(*many, *rest), meaning=0.4, nearness=0.51, share=0.6, use=0.1)
    lines = why_lines(_found(why, Named.IN_PART), width)
    assert max(map(len, lines)) <= width
    assert "\n".join(lines) == snapshot("""\
    score    2.42  the query is part of its name
    words    1.92  list: server 0.10, name 0.10, title 0.10, description 0.10,
                   parameter names 0.10, parameter descriptions 0.10;
                   issues: server 0.10, name 0.10, title 0.10, description 0.10,
                   parameter names 0.10, parameter descriptions 0.10;
                   repository: server 0.10, name 0.10, title 0.10,
                   description 0.10, parameter names 0.10,
                   parameter descriptions 0.10; term0 (similar): name 0.02;
                   term1 (similar): name 0.02; term2 (similar): name 0.02; 3
                   more
    meaning  0.40  nearness 0.51, which counts for at most 0.60 here
    use      0.10  called after a search like this one\
""")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (Named.NO, "    score    0.50"),
        (Named.AMONG_OTHERS, "    score    0.50  the query says its name among other words"),
        (Named.WHOLLY, "    score    0.50  the query is its name"),
        (Named.EXACTLY, "    score    0.50  the query is its name, to the letter"),
    ],
)
def test_the_name_used_is_reported(named: Named, said: str):
    assert why_lines(_found(Why(words=0.5, reasons=(_reason("issu", 0.5),)), named), 100)[0] == said


def test_words_are_told_as_they_stand_in_the_tool_and_those_that_give_nothing_are_not_told():
    why = Why(words=0.3, reasons=(_reason("issu", 0.3), _reason("a", 0.001)))
    assert why_lines(_found(why), 100)[1] == "    words    0.30  issues: name 0.30"
    assert why_lines(_found(Why(words=0.001, reasons=(_reason("a", 0.001),))), 100)[1].endswith(
        "no rare word in common"
    )


def test_a_line_of_a_reply_is_known_by_the_longest_name_it_begins_with():
    found = {name: Explained(listed=name, hit=None) for name in ("hub__list", "hub__list_issues")}
    assert find_explanation("hub__list_issues(owner: string) — Lists", found) is found["hub__list_issues"]
    assert find_explanation("hub__list — Lists", found) is found["hub__list"]
    assert find_explanation("other", found) is None
