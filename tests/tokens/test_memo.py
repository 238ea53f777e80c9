import sys
import threading

from ullage.tokens.meter import Memo


def test_what_was_put_is_got_by_an_equal_text():
    memo = Memo[int]()
    memo.put("o200k_base", "hello " * 3, 7)
    assert memo.get("o200k_base", "".join(["hello "] * 3)) == 7
    assert memo.get("cl100k_base", "hello " * 3) is None
    assert memo.get("o200k_base", "other") is None


def test_a_count_of_nothing_is_remembered():
    memo = Memo[int]()
    memo.put("o200k_base", "", 0)
    assert memo.get("o200k_base", "") == 0


def held(memo: Memo[int]) -> list[object]:
    return [text for section in memo._sections.values() for table in (section.young, section.old) for text in table]


def test_what_it_holds_is_bounded_in_bytes():
    memo = Memo[int](capacity=100_000)
    texts = [f"{number:0>1000}" for number in range(1000)]
    for text in texts:
        memo.put("v", text, 1)
    assert sum(map(sys.getsizeof, held(memo))) < 100_000
    assert [memo.get("v", text) for text in texts[-30:]] == [1] * 30
    assert memo.get("v", texts[0]) is None


def test_what_is_used_stays_and_what_is_not_goes():
    memo = Memo[int](capacity=100_000)
    memo.put("v", "often", 1)
    memo.put("v", "once", 2)
    for number in range(1000):
        memo.put("v", f"{number:0>1000}", 3)
        assert memo.get("v", "often") == 1
    assert memo.get("v", "once") is None


def test_a_long_text_is_remembered_without_being_held():
    memo = Memo[int](capacity=64_000)
    long = "abc " * 100_000
    memo.put("v", long, 5)
    assert memo.get("v", "abc " * 100_000) == 5
    assert memo.get("v", "abd " * 100_000) is None
    assert not any(isinstance(text, str) for text in held(memo))


def test_threads_may_share_it():
    memo = Memo[int](capacity=20_000)
    wrong: list[int] = []

    def work() -> None:
        for number in range(3000):
            memo.put("v", str(number % 300), number % 300)
            found = memo.get("v", str(number % 300))
            if found not in (None, number % 300):
                wrong.append(number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
