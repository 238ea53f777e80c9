import pytest

from ullage.delegate.policy import Case, Evaluation, Recorded, evaluate

pytestmark = pytest.mark.requirement("S4:route")


def case(prompt: str, **outcomes: tuple[float, float | None]) -> Case:
    recorded = {name: Recorded(score=score, cost=cost) for name, (score, cost) in outcomes.items()}
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
def test_a_policy_stands_beside_the_best_single_chance_and_an_oracle():
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


def test_a_policy_that_is_worse_and_no_cheaper_is_told_so():
    found = judged([case("x", small=(1, 0.1), large=(0.5, 1.0), tiny=(0.6, 0.01))], lambda _: ["large"])
    assert found.verdict == "`small` alone is better and costs no more than this policy"


def test_a_policy_that_is_better_than_any_one_model_is_told_by_how_much():
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
