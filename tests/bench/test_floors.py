"""The floors of benchmarks fail where they must: below a figure, and where there is none."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ullage.messages import Format
from ullage.tokens import Count, Method

BENCH = Path(__file__).parents[2] / "bench"


def load(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return import_module(name)


def test_the_floor_of_relations_is_missed_where_nothing_was_needed(monkeypatch: pytest.MonkeyPatch):
    bench = load(monkeypatch, "context_relations")
    assert bench.Tally().share is None
    whole = {(bench.OURS, family): bench.Tally(needed=50, there=50, right=50) for family in bench.SERVICE}
    assert bench.Figures(found=whole).missed() == []
    for family in bench.SERVICE:
        without = {key: tally for key, tally in whole.items() if family not in key}
        for found in (without, without | {(bench.OURS, family): bench.Tally()}):
            (missed,) = bench.Figures(found=found, cuts={family: 3}).missed()
            assert missed.startswith(f"{family}: the calls after the cuts need 0 arguments")
        (missed,) = bench.Figures(found=whole | {(bench.OURS, family): bench.Tally(needed=50, right=40)}).missed()
        assert missed.startswith(f"{family}: 80.0%")


def test_relations_have_a_floor_in_any_family_with_enough_arguments(monkeypatch: pytest.MonkeyPatch):
    bench = load(monkeypatch, "context_relations")
    whole = {(bench.OURS, family): bench.Tally(needed=50, there=50, right=50) for family in bench.SERVICE}
    for needed, missed in ((50, 1), (5, 0)):
        found = whole | {(bench.OURS, "another"): bench.Tally(needed=needed, right=needed // 2)}
        assert len(bench.Figures(found=found, cuts={"another": 3}).missed()) == missed


def test_half_of_the_window_is_a_floor_of_each_family_and_of_each_of_its_windows(monkeypatch: pytest.MonkeyPatch):
    bench = load(monkeypatch, "context_seen")

    def seen(family: str, window: int, after: float) -> object:
        return bench.Seen(
            family=family, name="", format=Format.OPENAI_CHAT, window=window, summarizer="", before=0.7, after=after,
            tiers=("digest",), warning="", faults=(), keeps_last=True, keeps_task=True, keeps_pinned=True, stuck=0.0,
        )  # fmt: skip

    many = [seen("one", 64_000, 0.4) for _ in range(2_000)]
    assert bench.Figures(1, many).missed() == []
    missed = bench.Figures(1, [*many, *(seen("one", 16_000, 0.6) for _ in range(30))]).missed()
    assert [line.partition(" of compactions ")[2] for line in missed] == [
        "of one in windows of 16,000 with a summary or digest use at most half"
    ]
    assert any(" of two " in line for line in bench.Figures(1, [*many, *(seen("two", 32_000, 0.6),) * 30]).missed())
    assert bench.Figures(1, [*many, *(seen("two", 8_000, 0.6),) * 30]).missed() == []


def test_relations_without_a_figure_are_shown_as_such(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    bench = load(monkeypatch, "context_relations")
    bench.report(bench.Figures(found={(bench.OURS, "any_agent"): bench.Tally()}, cuts={"any_agent": 3}))
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("any_agent"))
    assert line.split()[-5:] == ["0", "-", "0", "-", "-"]


def test_money_without_a_recording_says_so_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    bench, alone = load(monkeypatch, "context_money"), load(monkeypatch, "context_alone")
    monkeypatch.setenv("DATA", str(tmp_path))
    assert alone.run_alone(bench.run, bench.report) == 1
    assert "BELOW THE FLOOR  no recording of `pi`" in capsys.readouterr().out


@pytest.mark.parametrize(("kept", "missed"), [(0.96, 0), (0.94, 1), (None, 1)])
def test_money_has_a_floor_for_identifiers_that_no_figure_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, kept: float | None, missed: int
):
    bench = load(monkeypatch, "context_money")
    recording = bench.Recording(name="one", messages=(), calls=(), fixed=0, bill=0.0)
    priced = bench.Priced(costs=(50.0,), compactions=1.0, identifiers=kept)
    policies = {("one", policy): priced for policy in bench.POLICIES}
    figures = bench.Figures(recordings={"one": recording}, own={"one": 100.0}, nine={"one": 100.0}, policies=policies)
    assert len(figures.missed()) == missed
    assert figures.to_json()["one"][bench.DEFAULT]["identifiers"] == kept


@pytest.mark.parametrize("name", ["azure-openai tools", "llamacpp tools"])
@pytest.mark.parametrize(
    ("tokens", "around", "wanted"),
    [(100, 5, []), (100, 40, ["width"]), (112, 13, ["width", "mean"]), (102, 4, ["mean"])],
)
def test_an_exception_exempts_a_band_from_its_width_and_from_nothing_else(
    monkeypatch: pytest.MonkeyPatch, name: str, tokens: int, around: int, wanted: list[str]
):
    bench = load(monkeypatch, "accuracy_bands")
    group = bench.Group(name, hidden=False)
    count = Count(tokens=tokens, method=Method.ESTIMATED, low=tokens - around, high=tokens + around)
    for judged in (group.shipped, group.left_out):
        judged.counts, judged.reported, judged.redacted = [count] * 30, [100] * 30, [False] * 30
    exempt = {"width"} if name == "azure-openai tools" else set[str]()
    found = [line.split()[0] for line in group.misses({"width": 0.1, "mean": 0.01, "exact": 0.0})]
    assert found == [one for one in wanted if one not in exempt]


def test_a_missed_floor_names_the_floor(monkeypatch: pytest.MonkeyPatch):
    bench = load(monkeypatch, "accuracy_bands")
    monkeypatch.setattr(bench, "COVERED", 0.91)
    monkeypatch.setattr(bench, "RIGHT", 0.93)
    group = bench.Group("openai tools", hidden=False)
    for judged in (group.shipped, group.left_out):
        judged.counts, judged.reported, judged.redacted = [Count.exact(9)] * 30, [10] * 30, [False] * 30
    assert group.misses(None) == ["in band 0.0% < 91%", "exact right 0.0% < 93%"]


@pytest.mark.parametrize(("only", "status"), [("unseen", 1), ("", 0)])
def test_search_on_what_was_not_learnt_from_fails_without_its_tables_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], only: str, status: int
):
    bench, unseen = load(monkeypatch, "search"), load(monkeypatch, "search_unseen")
    monkeypatch.setenv("FOLDS", str(tmp_path))
    monkeypatch.setenv("ONLY", only)
    monkeypatch.setattr(bench, "PARTS", {"unseen": unseen.measure})
    monkeypatch.setattr(bench, "read_sets", lambda _: [None])
    assert bench.main() == status
    assert "NOT MEASURED  unseen: 0 of 4 tables" in capsys.readouterr().out


@pytest.mark.parametrize(("stand_in", "floor"), [(True, "_STAND_IN_FLOOR"), (False, "_FLOOR")])
def test_stand_in_tables_have_a_floor_of_their_own(monkeypatch: pytest.MonkeyPatch, *, stand_in: bool, floor: str):
    bench, intervals = load(monkeypatch, "search_unseen"), load(monkeypatch, "search_intervals")
    for above, missed in ((0.5, 0), (-0.5, 1)):
        values = [np.full((3, 3, 5), getattr(bench, floor) + above)]
        figures = bench.Unseen(
            kinds=["one"], values=values, tools=[1.0], everyday={}, draws=intervals.draw(values), stand_in=stand_in
        )
        assert len(figures.missed()) == missed
