"""Tool output that arrives in the user's role, in protocols that were made up here."""

from json import loads

import pytest

from context.talks import assistant, call, result, tool, user
from ullage.context.text_protocol import read_as_tools, text_results
from ullage.messages import Message, Text, ToolCall, ToolResult

pytestmark = pytest.mark.requirement("S2:task")

TASK = user("Find the leak in the pump controller and mend it. Do not touch the firmware.")
LISTING = "pump.c 1204\nvalve.c 88\nMakefile 12\ntests/\n"


def protocol(*pairs: tuple[str, str]) -> list[Message]:
    told = [TASK]
    for said, answered in pairs:
        told += [assistant(said), user(answered)]
    return told


def found(messages: list[Message]) -> list[int]:
    return [one.place for one in text_results(messages)]


LABELLED = protocol(
    ("I list the folder.\nAction 1: list[src]", "Observation 1: pump.c, valve.c"),
    ("I read it.\nAction 2: read[src/pump.c]", "Observation 2: int main(void) {"),
    ("Nothing.\nAction 3: read[src/valve.c]", "Observation 3: No such page. Try again."),
)
TAGGED = protocol(
    ("<run>ls src</run>", "<exit>0</exit>\n<said>\npump.c\n</said>"),
    ("<run>cat src/pump.c</run>", "<exit>0</exit>\n<said>\nint main(void) {\n</said>"),
    ("<run>make</run>", "<exit>2</exit>\n<said>\nmake: *** [all] Error 1\n</said>"),
)
PROMPTED = protocol(
    ("We look first.\n```\nls src\n```", "pump.c\nvalve.c\n(cwd: /home/a)\nsh-5$ "),
    ("Now the file.\n```\ncat src/pump.c\n```", "int main(void) {\n(cwd: /home/a)\nsh-5$ "),
    ("And build.\n```\nmake\n```", "Your edit has broken the build. Please try again.\n(cwd: /home/b)\nsh-5$ "),
)
OBJECTS = protocol(
    ('{"thought": "look", "tool": "ls", "args": {"path": "src"}}', "RESPONSE FROM TOOL ls\npump.c"),
    ('{"thought": "read", "tool": "cat", "args": {"path": "a"}}', "RESPONSE FROM TOOL cat\nint main"),
    ('{"thought": "make", "tool": "make", "args": {}}', "RESPONSE FROM TOOL make\nError 1"),
)
CALLS = protocol(
    ('Let me see.\n<tool_call>{"name": "ls", "arguments": {"p": 1}}</tool_call>', "[ls] Result:\npump.c"),
    ("<function=cat>\n<parameter=path>src/a.c</parameter>\n</function>", "[cat] Result:\nint main(void)"),
)
UNFRAMED = protocol(
    ("```sh\nls -s src\n```", LISTING),
    ("```sh\nwc -l src/*.c\n```", " 1204 src/pump.c\n   88 src/valve.c\n 1292 total\n"),
    ("```sh\ncat config.json\n```", '{"pumps": [1, 2], "valves": 3}'),
    ("```sh\nnm pump.o\n```", "0000 T main\n0010 T leak\n0020 U free\n"),
)


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize("messages", [LABELLED, TAGGED, PROMPTED, OBJECTS, CALLS, UNFRAMED])
def test_output_in_the_users_role_is_recognised_by_its_shape(messages: list[Message]):
    assert found(messages) == list(range(2, len(messages), 2))


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize("messages", [LABELLED, TAGGED, PROMPTED, OBJECTS, UNFRAMED])
@pytest.mark.parametrize(
    "words",
    [
        "Wait. Leave the valve alone, and use the staging pump only.",
        "Stop! Do not run make again before I have looked at it.\nIt breaks the other build.\nGo on with the tests.",
        "Please:\n- keep the public header as it is\n- write a test first\n- tell me before you delete anything",
        "não mexa no firmware, por favor",
    ],
)
def test_what_a_person_says_between_two_results_is_the_users(messages: list[Message], words: str):
    spoken = [*messages[:4], user(words), *messages[3:]]
    assert found(spoken) == [2, *range(6, len(spoken), 2)]


def test_a_talk_about_code_has_no_tool_output():
    """A person answers a code block as a person does, however often."""
    talk = protocol(
        ("Try this:\n```python\nprint(1)\n```", "That works, thanks. Now make it print two numbers."),
        ("Here:\n```python\nprint(1, 2)\n```", "Fine. Can you explain why it needs a comma?"),
        ("It separates arguments.", "I see: so it is a tuple? And please keep the first line."),
        ("Not here.\n```python\nprint((1, 2))\n```", "Result: it prints brackets, I do not want those."),
        ("Then:\n```python\nprint(1, 2)\n```", "Good. Here is the whole error that I get:\nTraceback\nValueError: x"),
    )
    assert found(talk) == []


def test_native_results_are_left_to_their_own_protocol():
    talk = [TASK, assistant(call("1")), tool(result("1")), assistant("Done."), user("Result: fine, now the next one.")]
    assert found(talk) == []
    assert read_as_tools(talk) == tuple(talk)


def test_actions_are_read_as_calls_and_their_answers_as_results():
    read = read_as_tools(LABELLED)
    assert [message.role for message in read] == ["user", *["assistant", "tool"] * 3]
    assert read[0] is TASK
    said, made = read[1].parts
    assert said == Text("I list the folder.")
    assert isinstance(made, ToolCall)
    assert (made.name, made.arguments) == ("list", '{"input": "src"}')
    (given,) = read[2].parts
    assert isinstance(given, ToolResult)
    assert given.call_id == made.id
    names = [part.name for message in read_as_tools(CALLS) for part in message.parts if isinstance(part, ToolCall)]
    assert names == ["ls", "cat"]


def test_a_masked_result_is_still_a_result():
    masked = [
        *LABELLED[:2],
        user("[list(input=src) gave 900 tokens, let go to make room; call it again]"),
        *LABELLED[3:],
    ]
    assert found(masked) == [2, 4, 6]


def test_the_first_message_is_never_output():
    assert found([user("Observation: the pump leaks"), assistant("Action: look[it]")]) == []
    assert found([]) == []


@pytest.mark.parametrize(
    ("said", "name", "arguments"),
    [
        ('{"tool": "ls", "args": {"path": "src"}}', "ls", {"path": "src"}),
        ('{"thought": "x", "action": "ls"}', "ls", {"thought": "x", "action": "ls"}),
        ('{"function": {"name": "ls", "arguments": {"p": 1}}}', "ls", {"name": "ls", "arguments": {"p": 1}}),
        ('{"action": {"tool_name": "ls", "p": 1}}', "ls", {"tool_name": "ls", "p": 1}),
        ('{"action": {"p": 1}}', "call", {"p": 1}),
        ('I look.\n```json\n{"cmd": "ls"}\n```\n', "ls", {"cmd": "ls"}),
        ("<list>\n<path>src</path>\n<depth> 2 </depth>\n</list>", "list", {"path": "src", "depth": "2"}),
        ('<call name="x">{"p": 1}</call>', "call", {"p": 1}),
        ("<run>ls src</run>", "run", {"command": "ls src"}),
    ],
)
def test_an_action_is_read_with_its_name_and_arguments(said: str, name: str, arguments: dict[str, object]):
    read = read_as_tools(protocol((said, "Output: a.c"), (said, "Output: b.c")))
    made = [part for message in read for part in message.parts if isinstance(part, ToolCall)]
    assert [(one.name, loads(one.arguments)) for one in made] == [(name, arguments)] * 2


@pytest.mark.parametrize(
    ("said", "name", "arguments"),
    [
        ("I look.\nAction: list[src]", "list", {"input": "src"}),
        ("Action: `list src`", "list", {"command": "list src"}),
        ("Action: list\nAction Input: src", "list", {"input": "src"}),
        ('Action: list\nAction Input: {"path": "src"}', "list", {"path": "src"}),
    ],
)
def test_a_labelled_action_is_read_with_its_input(said: str, name: str, arguments: dict[str, object]):
    read = read_as_tools(protocol((said, "Observation: a.c"), (said, "Observation: b.c")))
    made = [part for message in read for part in message.parts if isinstance(part, ToolCall)]
    assert [(one.name, loads(one.arguments)) for one in made] == [(name, arguments)] * 2


@pytest.mark.parametrize(
    ("said", "name", "arguments", "rest"),
    [
        ("I look.\n<run>ls</run> and then we see.", "run", {"command": "ls"}, "I look."),
        ("<run>ls</run> a b c d e f g h", "run", {"command": "ls"}, ""),
        ("<run>a</run>\nNo.\n<run>b</run>", "run", {"command": "b"}, "<run>a</run>\nNo."),
        ('<tool_call>{"name": "ls", "p": 1}</tool_call>', "ls", {"name": "ls", "p": 1}, ""),
        ("<invoke name='ls'><p>1</p></invoke>", "ls", {"p": "1"}, ""),
        ("<function=ls>\n<parameter=p>1</parameter>\n</function>", "ls", {"p": "1"}, ""),
        ("<run mode=x>ls</run>", "run", {"command": "ls"}, ""),
        ("Look.\nTool call 2: `read`(a.c)", "read", {"input": "a.c"}, "Look."),
        ("**Command:** ls src", "ls", {"command": "ls src"}, ""),
        ("> Next action: list{a}", "list", {"input": "a"}, ""),
        ("Action: list[src", "list", {"input": "src"}, ""),
        ("Action: a[1]\nAction: b[2]", "b", {"input": "2"}, "Action: a[1]"),
        ("Action: list\nParameters: 'src'", "list", {"input": "src"}, ""),
        ("Action: list\nArgs: [1]", "list", {"input": "[1]"}, ""),
        ("So.\n```bash\nls\n```", "bash", {"command": "ls"}, "So."),
        ("So.\n```\nls -l\n```\nDone, I think.", "ls", {"command": "ls -l"}, "So."),
        ("```text\nls -l\n```", "ls", {"command": "ls -l"}, ""),
        ("~~~~sh\nls\n~~~~", "sh", {"command": "ls"}, ""),
        ("```a\n1\n```\n```b\n2\n```", "b", {"command": "2"}, "```a\n1\n```"),
        ('x {"tool": "ls", "args": {"p": 1}, "more": {"q": 2}}', "ls", {"p": 1}, "x"),
        ("x" * 30_000 + "\n<run>ls</run>", "run", {"command": "ls"}, "x" * 30_000),
    ],
)
def test_the_last_action_is_taken_out_of_the_text(said: str, name: str, arguments: dict[str, object], rest: str):
    read = read_as_tools(protocol((said, "Output: a.c"), (said, "Output: b.c")))
    for place in (1, 3):
        texts = [part.text for part in read[place].parts if isinstance(part, Text)]
        (made,) = [part for part in read[place].parts if isinstance(part, ToolCall)]
        assert (texts, made.name, loads(made.arguments)) == ([rest] if rest else [], name, arguments)
    assert [part.id for place in (1, 3) for part in read[place].parts if isinstance(part, ToolCall)] == [
        *("text-0", "text-1"),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "<run>ls</run> one two three four five six seven eight nine",
        "<thinking>ls</thinking>",
        "<B>ls</B>",
        "ls</run>",
        "```\nls\n```\none two three four five six seven eight nine",
        "```\n\n```",
        '{"thought": "ls"}',
        '{"tool": 3}',
        '["tool"]',
        '{"tool": "ls"} and so on',
        "Actions speak: louder",
        "Take action",
        "plain words",
    ],
)
def test_words_without_an_action_are_answered_by_the_user(said: str):
    assert found(protocol((said, "Output: a.c"), (said, "Output: b.c"))) == []


@pytest.mark.parametrize(
    ("answers", "places"),
    [
        # Output with a frame of its own: three alike, or six tenths of all.
        (["a.c\n(cwd: /a)", "b.c\n(cwd: /b)", "c.c\n(cwd: /c)"], [2, 4, 6]),
        (["[one] a.c", "[two] b.c", "[six] c.c"], [2, 4, 6]),
        # Labels that mark output.
        (["Observation: a", "Observation: b"], [2, 4]),
        (["stdout:\na", "exit code: 1"], [2, 4]),
        (["a\n$", "b\n$"], [2, 4]),
        (["Looks fine, go on.", "Yes, please do that now."], []),
        ([f"Result {n}: x" for n in range(3)] + ["And now the next one."], [2, 4, 6]),
        (["Result: x", "Now the other one.", "And then the third one.", "And stop after it."], []),
    ],
)
def test_answers_are_output_where_most_have_a_frame(answers: list[str], places: list[int]):
    assert found(protocol(*(("<run>x</run>", answer) for answer in answers))) == places


def test_data_without_a_frame_is_output_where_nearly_every_turn_acts():
    acting = [("<run>x</run>", f"{n}\t{n}\n2\t3\n4\t5\n") for n in range(4)]
    assert found(protocol(*acting)) == [2, 4, 6, 8]
    assert found(protocol(*acting[:2])) == [], "of two it cannot be told"
    talking = [("words", "more words")] * 3
    assert found(protocol(*acting, *talking)) == []


def test_answers_of_other_kinds_are_none_to_an_action():
    mixed = [
        TASK, assistant("<run>x</run>", call("1")), user("Output: a"), assistant("<run>x</run>"), tool(result("1")),
        user("Output: b"), assistant("<run>x</run>"), user("Output: c", result("2")), assistant("<run>x</run>"),
        user(" \n "),
    ]  # fmt: skip
    assert found(mixed) == []


def test_a_second_answer_to_one_action_has_its_id():
    twice = [*protocol(("<run>a</run>", "Output: 1")), user("Output: 2"), assistant("<run>b</run>"), user("Output: 3")]
    read = read_as_tools(twice)
    results = [part for message in read for part in message.parts if isinstance(part, ToolResult)]
    assert [(one.call_id, one.name) for one in results] == [("text-0", "run"), ("text-0", "run"), ("text-2", "run")]


def repeated(act: str, answer: str) -> list[Message]:
    """A conversation in which the user speaks once between six steps of a program."""
    lines = "pump.c:12: leak at 0x7f31, 4 of 19 valves open\nvalve.c:3: closed"
    names = ("pump", "valve", "main", "relay", "probe", "timer")
    steps = [(act.format(f"src/{name}.c"), answer.format(f"{lines}\n{name}.o: ok")) for name in names]
    return [
        *protocol(*steps[:3]),
        assistant("It is mended. Anything else?"),
        user("Yes, leave valve.c alone."),
        *(message for said, answered in steps[3:] for message in (assistant(said), user(answered))),
    ]


@pytest.mark.parametrize(
    ("act", "answer"),
    [
        ("[tool call] read {}", "[tool result]\n{}"),
        ('<|tool_call|>{{"name": "read", "arguments": {{"p": "{}"}}}}<|/tool_call|>', "<|tool_response|>{}<|end|>"),
        ("I look.\n$ cat {}", "{}\nroot@box:/app#"),
        ('{{"analysis": "look", "commands": [{{"keys": "cat {}"}}]}}', "New Terminal Output:\n\n{}\nroot@box:/app#"),
        ("Gedanke: nachsehen\nAktion: lies[{}]", "Beobachtung: {}"),
        ("思考：查看\n行动：读取\n行动输入：{}", "观察：{}"),
        ("### Action\nread {}", "### Result\n{}"),
        ("{}\n```c\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```", "Fix any errors below, if possible.\n\n{}"),
        ("((read {}))", "OUTPUT>> {}"),
    ],
)
def test_output_is_recognised_in_protocols_of_many_kinds(act: str, answer: str) -> None:
    messages = repeated(act, answer)
    assert found(messages) == [
        place for place, one in enumerate(messages) if one.role == "user" and place not in (0, 8)
    ]


def test_a_person_who_often_begins_alike_is_no_program() -> None:
    asked = ("the pump", "the valve", "the relay", "the probe", "the timer", "the log")
    told = [TASK]
    for what in asked:
        told += [assistant("Done."), user(f"Please look at {what} next.\nIt must not change its pins.")]
    assert found(told) == []
