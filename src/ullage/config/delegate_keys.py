"""Which keys may the tables of delegating and retrieving have?

Those of a provider, of budgets, of a policy and of folders to be searched. What stands inside a policy's tables is read
by `delegate`, under the names that its two JSON files have.
"""

from typing import get_args

from .delegating import Scope
from .key import Key
from .kinds import ADDRESS, BUDGET, FLAG, KEY_VARIABLE, MONEY, NAMES, PAIRS, SECONDS, SHARES, TABLE, TEXT, WHOLE, WIRE

__all__ = ["CEILING", "DELEGATE", "POLICY", "PROVIDER", "RETRIEVE", "SCOPES", "SPENDING", "TIMING"]

_TIMING = (
    Key(
        name="connect_timeout",
        kind=SECONDS,
        means="Seconds in which it must be reached.",
        default="3",
        field="connect",
    ),
    Key(
        name="first_byte_timeout",
        kind=SECONDS,
        means="Seconds until its answer must have begun; where not set, five times as many for models that reason.",
        default="60",
        field="first_byte",
    ),
    Key(
        name="idle_timeout",
        kind=SECONDS,
        means="Seconds between two pieces of an answer; where not set, five times as many for models that reason.",
        default="30",
        field="idle",
    ),
)
TIMING = tuple(key.target for key in _TIMING)
"""Of these keys, those that are fields of `Timing`."""
PROVIDER = (
    Key(
        name="kind",
        kind=WIRE,
        means="How it is spoken to; `compatible` for whatever speaks as OpenAI's chat does (Ollama, vLLM, OpenRouter).",
        default="its name's, where that is `openai`, `anthropic` or `google`; else `compatible`",
    ),
    Key(
        name="base_url",
        kind=ADDRESS,
        means="Its address, with the version where its paths have one before them.",
        default="the maker's own; none for `compatible`",
    ),
    Key(
        name="key_env",
        kind=KEY_VARIABLE,
        means="The variable that holds its key. Not set: the provider is off.",
        default="`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GOOGLE_API_KEY` for the three; else no key is sent",
    ),
    Key(name="headers", kind=PAIRS, means="HTTP headers sent with every request."),
    *_TIMING,
    Key(
        name="host",
        kind=TEXT,
        means="Who bills, as price tables call them, such as `openrouter`.",
        default="whoever made the model",
    ),
)
POLICY = (
    Key(name="aliases", kind=TABLE, means='Names for models: `chat-default = "openai:gpt-4o-mini"`.'),
    Key(
        name="models",
        kind=TABLE,
        means="By id: `provider`, `model`, `max_output_tokens`, `temperature`, `cap`, `pricing`, `window`.",
    ),
    Key(
        name="routing",
        kind=TABLE,
        means="`defaultAlias`, `languageHeuristics`, `tokenBuckets`, `fallbacks`.",
    ),
    Key(name="caps", kind=TABLE, means="Tokens of an answer: `default`, and `tiers` by name."),
    Key(name="temperatures", kind=TABLE, means="By domain: `default`, `code`, `creative`."),
    Key(name="prompts", kind=TABLE, means="System prompts by task: `run`, `diff`, `tests`, `judge`."),
)
DELEGATE = (
    Key(
        name="conf",
        kind=TEXT,
        means="The folder of `models.json` and `policies.json`, from this file's folder, `~` allowed.",
        default="`conf` beside a project's file, or in the working directory, where both files are there",
    ),
    *POLICY,
    Key(
        name="cut",
        kind=FLAG,
        means="Cut a prompt that no window holds in its middle, and say so, rather than refuse it.",
        default="false",
    ),
    Key(name="budgets", kind=TABLE, means="See below."),
    Key(
        name="file_roots",
        kind=NAMES,
        means="Folders whose files a call may name by path, to be sent to a model: only in your own file.",
        default="none",
    ),
    Key(
        name="project_keys",
        kind=NAMES,
        means="Variables that a project's providers may send: only in your own file.",
    ),
)
SCOPES: tuple[Scope, ...] = get_args(Scope)
SPENDING = (
    *(Key(name=scope, kind=TABLE, means=f"What one {scope} may spend.", default="no limit") for scope in SCOPES),
    Key(
        name="alerts",
        kind=SHARES,
        means="Parts of a budget at which a line on the log tells you, once each.",
        default="[0.5, 0.8, 1]",
    ),
)
CEILING = (
    Key(name="dollars", kind=MONEY, means="At most so much money; refused before it is spent.", default="no limit"),
    Key(name="tokens", kind=BUDGET, means="At most so many tokens, in and out together.", default="no limit"),
)
RETRIEVE = (
    Key(
        name="folders",
        kind=NAMES,
        means="Folders to be searched with all that lies in them; from this file's folder, `~` allowed.",
    ),
    Key(name="files", kind=NAMES, means="Single files to be searched, whatever the patterns say."),
    Key(
        name="include",
        kind=NAMES,
        means="Patterns as in `.gitignore`: only what fits is searched.",
        default="every text",
    ),
    Key(
        name="exclude",
        kind=NAMES,
        means="Patterns of what is not searched, besides secrets and machinery; `!name` has it searched all the same.",
    ),
    Key(
        name="gitignore", kind=FLAG, means="Whether what a folder's own `.gitignore` names is left out.", default="true"
    ),
    Key(
        name="max_file_bytes",
        kind=WHOLE,
        means="Bytes of a file at most; larger ones are left out, and said to be.",
        default="1000000",
    ),
)
