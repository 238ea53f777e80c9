from dataclasses import replace

import pytest

from ullage.delegate import Case, Evaluation, RecordedOutcome, evaluate

pytestmark = pytest.mark.requirement("S4:route")


def case(prompt: str, **outcomes: tuple[float, float | None]) -> Case:
    recorded = {name: RecordedOutcome(score=score, cost=cost) for name, (score, cost) in outcomes.items()}
    return Case(prompt=prompt, outcomes=recorded)


MIXED = [
    case("easy", small=(1, 0.1), large=(1, 1.0)),
    case("easy", small=(1, 0.1), large=(1, 1.0)),
    case("hard", small=(0, 0.1), large=(1, 1.0)),
    case("trick", small=(1, 0.1), large=(0, 1.0)),
]


def by_prompt(one: Case) -> list[str]:
    return ["large"] if one.prompt == "hard" else ["small"]


def judged(cases: list[Case], choose: object = by_prompt) -> Evaluation:
    found = evaluate(cases, choose)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.requirement("S4:route")
def test_a_policy_is_compared_with_the_best_single_model_chance_and_an_oracle():
    found = judged(MIXED)
    assert (found.policy.score, found.policy.cost) == (1.0, pytest.approx(0.325))
    assert (found.best.name, found.best.score) == ("small", 0.75)
    assert (found.chance.score, found.chance.cost) == (0.75, pytest.approx(0.55))
    assert (found.oracle.score, found.oracle.cost) == (1.0, pytest.approx(0.325))
    assert found.chosen == {"small": 3, "large": 1}


def test_one_model_that_is_best_and_cheapest_is_said_to_be():
    found = judged([case("x", small=(1, 0.1), large=(0.5, 1.0)), case("y", small=(1, 0.1), large=(1, 1.0))])
    assert found.dominant == "small"
    assert found.verdict == "`small` is the best and the cheapest: routing gains nothing here, and an oracle 0.000"


def test_a_policy_that_is_worse_and_not_cheaper_is_reported():
    found = judged([case("x", small=(1, 0.1), large=(0.5, 1.0), tiny=(0.6, 0.01))], lambda _: ["large"])
    assert found.verdict == "`small` alone is better and costs no more than this policy"


def test_a_policy_better_than_every_single_model_has_its_gain_reported():
    assert judged(MIXED).verdict == "0.250 above `small` alone, 225% dearer"


@pytest.mark.parametrize(
    ("choose", "said"),
    [
        (lambda _: ["small"], "0.500 below `large` alone, 90% cheaper"),
        (lambda _: ["large"], "as good as `large` alone at the same cost"),
    ],
)
def test_what_is_lost_and_saved_is_said(choose: object, said: str):
    cases = [case("x", small=(0, 0.1), large=(1, 1.0)), case("y", small=(1, 0.1), large=(1, 1.0))]
    assert judged(cases, choose).verdict == said


def test_costs_that_were_not_recorded_are_not_known():
    found = judged([case("x", small=(1, None), large=(0, 1.0)), case("y", small=(0, 0.1), large=(0, 1.0))])
    assert found.policy.cost is None
    assert found.dominant is None
    assert found.verdict == "as good as `small` alone"


def test_cases_without_an_outcome_to_judge_by_are_left_out_and_counted():
    cases = [*MIXED, case("gap", small=(1, 0.1)), case("rare", small=(1, 0.1), large=(1, 1.0), odd=(1, 1.0))]
    assert (judged(cases).cases, judged(cases).left_out) == (5, 1)
    assert evaluate(cases, lambda _: ["unheard-of"]) is None
    assert evaluate([], lambda _: []) is None


def results(*each: tuple[float, float | None], name: str = "small") -> list[Case]:
    return [Case(prompt=str(n), outcomes={name: RecordedOutcome(score=s, cost=c)}) for n, (s, c) in enumerate(each)]


@pytest.mark.parametrize(
    ("small", "large", "dominant"),
    [
        ((1, 0.1), (0.5, 0.2), "small"),
        ((1, 0.1), (1, 0.1), "small"),
        ((1, 0.2), (1, 0.1), "large"),
        ((1, 0.2), (0.5, 0.1), None),
        ((1, 0.1), (0.5, None), None),
        ((1, 0.0), (0.5, 0.1), "small"),
    ],
)
def test_a_dominant_model_is_best_and_cheapest(
    small: tuple[float, float | None], large: tuple[float, float | None], dominant: str | None
):
    assert judged([case("x", small=small, large=large)]).dominant == dominant


def test_one_model_alone_dominates_nothing():
    assert judged(results((1, 0.1)), lambda _: ["small"]).dominant is None


@pytest.mark.parametrize(
    ("policy_cost", "best_cost", "said"),
    [
        (0.5, 1.0, "50% cheaper"),
        (1.5, 1.0, "50% dearer"),
        (1.004, 1.0, "at the same cost"),
        (1.006, 1.0, "1% dearer"),
        (0.994, 1.0, "1% cheaper"),
    ],
)
def test_costs_are_compared_in_hundredths(policy_cost: float, best_cost: float, said: str):
    cases = [case("a", one=(1, policy_cost), two=(0, best_cost)), case("b", one=(0, policy_cost), two=(1, best_cost))]
    found = judged([*cases, case("c", one=(1, 9.0), two=(1, best_cost))], lambda one: ["two"])
    assert found.policy.name == "policy"
    better = judged(cases, lambda one: ["one"] if one.prompt == "a" else ["two"])
    assert better.policy.score == 1.0
    alone = Evaluation(
        policy=replace(better.policy, score=0.9, cost=policy_cost),
        singles=(replace(better.policy, name="best", score=0.9, cost=best_cost),),
        chance=better.chance, oracle=better.oracle, cases=1, left_out=0, dominant=None, chosen={},
    )  # fmt: skip
    expected = f" {said}" if said.startswith("at") else f", {said}"
    assert alone.verdict == f"as good as `best` alone{expected}"
    unknown = replace(alone, policy=replace(alone.policy, cost=None))
    assert unknown.verdict == "as good as `best` alone"
    free = replace(alone, singles=(replace(alone.best, cost=0.0),))
    assert free.verdict == "as good as `best` alone"


def test_the_best_single_model_is_the_cheaper_of_equals_and_unknown_costs_come_last():
    cases = [case("x", dear=(1, 2.0), unknown=(1, None), cheap=(1, 1.0), poor=(0, 0.1))]
    found = judged(cases, lambda _: ["poor"])
    assert [one.name for one in found.singles] == ["cheap", "dear", "unknown", "poor"]
    assert (found.oracle.score, found.oracle.cost) == (1, 1.0)
    assert found.chosen == {"dear": 0, "unknown": 0, "cheap": 0, "poor": 1}
    assert found.chance.cost is None


def test_models_with_outcomes_in_more_than_half_of_the_cases_are_compared():
    cases = [case("a", one=(1, 1), two=(1, 1)), case("b", one=(1, 1))]
    found = judged(cases, lambda _: ["two", "one"])
    assert [one.name for one in found.singles] == ["one"]
    assert (found.cases, found.left_out) == (2, 0)
    three = judged([*cases, case("c", one=(1, 1), two=(0, 1))], lambda _: ["none", "two"])
    assert sorted(one.name for one in three.singles) == ["one", "two"]
    assert (three.cases, three.left_out, three.policy.score) == (2, 1, 0.5)
    assert evaluate(cases, lambda _: ["none"]) is None
    assert evaluate([], lambda _: ["one"]) is None
