import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.delegate.consensus import agreement, groups

pytestmark = pytest.mark.requirement("S4:more")

AGREE = [
    ("A", "The answer is A."),
    ("A) because of the cache", "A, because of the cache."),
    ("A is the root.", "The root is A."),
    ("A list is returned.", "The list is returned."),
    ("A cache and a queue", "A queue and a cache"),
    ("Paris is the capital of France.", "The capital of France is Paris."),
    ("The answer is 42.", "42"),
    ("It's Paris.", "Paris"),
    ("France's capital is Paris.", "Paris is the capital of France"),
    ("The total is 1,000 dollars.", "The total is 1000 dollars"),
    ("There are three planets.", "There are 3 planets."),
    ("It isn't safe.", "It is not safe."),
    ("A capital da França é Paris.", "Paris é a capital da França."),
    ("Die Hauptstadt von Frankreich ist Paris.", "Paris ist die Hauptstadt von Frankreich."),
    ("Washington is the capital of the US.", "Washington is the capital of the United States."),
    ("Use a hash map.", "You should use a hash map."),
    ("Bob was paid by Alice.", "Alice paid Bob."),
    ("It was written by Tolstoy in 1869.", "Tolstoy wrote it in 1869."),
    ("Yes.", "Yes, that is correct."),
    ("In 2008 Obama beat McCain.", "Obama beat McCain in 2008."),
    ("法国的首都是巴黎。", "巴黎是法国的首都。"),
    ("No.", "No, it doesn't."),
    ("Turn on the flag.", "Turn the flag on."),
    ("x < -3", "The answer is x < -3."),
    ("The distance is 5 km.", "The distance is 5 kilometres."),
    ("The price is $25.", "The price is 25 dollars."),
    ("It takes 10ms.", "It takes 10 milliseconds."),
    ("50%", "50 percent"),
    ("The function returns None.", "It returns `None`."),
    ("The value is 0.5.", "The value is 0.50."),
    ("well-known covid-19 data", "Well known COVID 19 data"),
    ("use https", "Use HTTPS."),
    ("He lives in Rome", "He lives in Rome."),
    ("2024-03-05", "5 March 2024"),
    ("March 3rd, 2024", "3 March 2024"),
    ("10:00 AM", "10 am"),
    ("A dozen eggs", "12 eggs"),
    ("The colour is grey.", "The color is gray."),
    ("Organise the theatre.", "Organize the theater."),
    ("5 apples and 3 pears", "3 pears and 5 apples"),
    ("founded in 1990, closed in 2000, sold in 2010", "closed in 2000, founded in 1990, sold in 2010"),
    ("J. R. R. Tolkien wrote it.", "It was written by J.R.R. Tolkien."),
    ("It's Paris, but I am not sure.", "I'm not sure, but it's Paris."),
    ("It takes about 5 hours.", "About five hours."),
    ("Use a binary search.", "A binary search should be used."),
    ("Python, Rust and Go", "Go, Python and Rust"),
    ("The meeting starts at 9:30 am.", "It starts at 9:30 AM."),
    ("Im Jahr 1989 fiel die Mauer.", "Die Mauer fiel im Jahr 1989."),
    ("She was born on 4 July 1990.", "She was born on July 4, 1990."),
    ("In Denver Obama beat McCain in 2008.", "Obama beat McCain in 2008 in Denver."),
    ("Henry VIII had six wives.", "Henry VIII had 6 wives."),
]
DISAGREE = [
    ("The price is $25.", "The price is €25."),
    ("The distance is 5 km.", "The distance is 5 mi."),
    ("The function returns None.", "The function never returns None."),
    ("The meeting is at 3 pm.", "The meeting is at 3 am."),
    ("n + 1", "n - 1"),
    ("2*x", "2^x"),
    ("The answer is n + 1.", "The answer is n * 1."),
    ("Use version 2.10.", "Use version 2.1."),
    ("v3.20 is needed", "v3.2 is needed"),
    ("Use HTTP.", "Use HTTPS."),
    ("The odds are 3/4.", "The odds are 4/3."),
    ("a/b", "b/a"),
    ("Only Ana passed.", "Everyone but Ana passed."),
    ("The train leaves at 10:30.", "The train leaves at 10:50."),
    ("Paris is north of Lyon.", "Lyon is north of Paris."),
    ("Leah is the mother of Dinah.", "Dinah is the mother of Leah."),
    ("A implies B", "B implies A"),
    ("The item is in stock.", "The item is out of stock."),
    ("The user must log in.", "The user must log out."),
    ("Choose A", "Choose B"),
    ("Option A", "Option E"),
    ("Answer: A", "Answer: D"),
    ("A is greater than B.", "B is greater than A."),
    ("x is smaller than y", "y is smaller than x"),
    ("Option B is better than option A.", "Option A is better than option B."),
    ("Paris is the capital of France.", "Lyon is the capital of France."),
    ("The war ended in 1945.", "The war ended in 1946."),
    ("It is safe to use.", "It is not safe to use."),
    ("It is safe to use.", "It isn't safe to use."),
    ("Yes", "No"),
    ("Yes, it works.", "No, it works."),
    ("True", "False"),
    ("There are three planets.", "There are four planets."),
    ("The total is 10.5 dollars.", "The total is 105 dollars."),
    ("Alice paid Bob.", "Bob paid Alice."),
    ("Mars is larger than Venus.", "Venus is larger than Mars."),
    ("The dog bit the man.", "The man bit the dog."),
    ("É seguro.", "Não é seguro."),
    ("Das ist möglich.", "Das ist nicht möglich."),
    ("Use Python for this task.", "Use Rust for this task."),
    ("Nobody knows.", "Everybody knows."),
    ("the capital of australia is canberra", "the capital of australia is sydney"),
    ("The temperature will increase.", "The temperature will decrease."),
    ("5 million", "5 billion"),
    ("The river flows from north to south.", "The river flows from south to north."),
    ("フランスの首都はパリです。", "フランスの首都はリヨンです。"),
    ("The answer is 42.", "Hello there"),
    ("-5", "5"),
    ("The temperature is −3 degrees.", "The temperature is 3 degrees."),
    ("x > 5", "x < 5"),
    ("Turn the flag on.", "Turn the flag off."),
    ("The deadline is in May.", "The deadline is in June."),
    ("There is hardly any risk.", "There is a risk."),
    (
        "It is stable and runs in linear time on sorted input.",
        "It is unstable and runs in linear time on sorted input.",
    ),
    ("The sun revolves around the earth.", "The earth revolves around the sun."),
    ("C#", "C++"),
    ("1. red 2. green", "1. green 2. red"),
    ("5 apples and 3 pears", "3 apples and 5 pears"),
    ("Ann scored 7 and Ben scored 9.", "Ann scored 9 and Ben scored 7."),
    ("12 GB for Ann, 8 GB for Ben", "8 GB for Ann, 12 GB for Ben"),
    ("founded in 1990, closed in 2000", "closed in 1990, founded in 2000"),
    ("3 of 5 pass", "5 of 3 pass"),
    ("O Paulo é maior que a Maria.", "A Maria é maior que o Paulo."),
    ("Choose the MIT license.", "Choose the GPL license."),
    ("Turn left, then right.", "Turn right, then left."),
    ("World War I", "World War II"),
    ("Это не возможно.", "Это возможно."),
    ("Mais de 10", "Menos de 10"),
    ("Use tabs, not spaces.", "Use spaces, not tabs."),
    ("GET is idempotent, POST is not.", "POST is idempotent, GET is not."),
    ("The cat is on the mat.", "The mat is on the cat."),
    ("true && false", "true || false"),
    ("!ok", "ok"),
    ("minus 5", "5"),
    ("2024-03-05", "2024-05-03"),
    ("George W. Bush", "George H. W. Bush"),
    ("I think it's Paris, but it could be Lyon.", "I think it's Lyon, but it could be Paris."),
    ("Prefer Rust, though Go is fine.", "Prefer Go, though Rust is fine."),
    ("这是对的。", "这不是对的。"),
    ("没有问题。", "有问题。"),
    ("これは正しい。", "これは正しくない。"),
    ("행복합니다.", "행복하지 않습니다."),
]


@pytest.mark.requirement("S4:more")
@pytest.mark.parametrize(("one", "other"), AGREE)
def test_answers_that_mean_the_same_agree(one: str, other: str):
    assert (agreement([one, other]) or 0) >= 0.75
    assert agreement([one, other]) == agreement([other, one])
    assert groups([one, other]) == [[0, 1]]


@pytest.mark.requirement("S4:more")
@pytest.mark.parametrize(("one", "other"), DISAGREE)
def test_answers_that_differ_in_a_number_a_name_or_a_negation_disagree(one: str, other: str):
    assert agreement([one, other]) == 0.0
    assert agreement([other, one]) == 0.0
    assert groups([one, other]) == [[0], [1]]


def test_a_single_answer_has_no_agreement():
    assert agreement([]) is None
    assert agreement(["Paris"]) is None


def test_the_largest_group_comes_first():
    said = ["Lyon is the capital.", "Paris is the capital.", "The capital is Paris."]
    assert groups(said) == [[1, 2], [0]]
    assert agreement(said) == pytest.approx(1 / 3)


@given(st.text(), st.text())
def test_agreement_is_symmetrical_and_between_nothing_and_one(one: str, other: str):
    found = agreement([one, other])
    assert found is not None
    assert 0 <= found <= 1
    assert found == agreement([other, one])
    assert agreement([one, one]) == 1.0
