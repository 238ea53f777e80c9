"""How may a model's name be written, and what is left when the host is taken off it?

Pure rules on spelling: which prefixes name a host, which suffixes name a release. Which models exist is not known here
(see `table`).
"""

import re
from collections.abc import Iterator

__all__ = ["HOSTS", "fold", "forms", "prefixes", "soften", "undated"]

HOSTS = {
    "amazon": "bedrock",
    "anthropic": "anthropic",
    "aws": "bedrock",
    "azure": "azure",
    "azure-ai": "azure",
    "azure-openai": "azure",
    "baseten": "baseten",
    "bedrock": "bedrock",
    "bedrock-converse": "bedrock",
    "bedrock-mantle": "bedrock",
    "cerebras": "cerebras",
    "chatgpt": "openai",
    "cloudflare": "cloudflare",
    "cohere": "cohere",
    "cohere-chat": "cohere",
    "dashscope": "dashscope",
    "dashscope-us": "dashscope-us",
    "alibaba": "dashscope",
    "databricks": "databricks",
    "deepinfra": "deepinfra",
    "deepseek": "deepseek",
    "doubleword": "doubleword",
    "fireworks": "fireworks",
    "fireworks-ai": "fireworks",
    "ft": "openai",
    "gateway": "gateway",
    "gemini": "google",
    "github": "github",
    "github-copilot": "github-copilot",
    "google": "google",
    "google-gla": "google",
    "google-vertex": "google-vertex",
    "groq": "groq",
    "heroku": "heroku",
    "huggingface": "huggingface",
    "hyperbolic": "hyperbolic",
    "litellm-proxy": "litellm",
    "llama-cpp": "llamacpp",
    "llamacpp": "llamacpp",
    "lm-studio": "lmstudio",
    "lmstudio": "lmstudio",
    "minimax": "minimax",
    "mistral": "mistral",
    "mistralrs": "mistralrs",
    "models": "google",
    "moonshot": "moonshot",
    "moonshotai": "moonshot",
    "nebius": "nebius",
    "novita": "novita",
    "nvidia": "nvidia",
    "nvidia-nim": "nvidia",
    "ollama": "ollama",
    "ollama-chat": "ollama",
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "opencode": "opencode",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "replicate": "replicate",
    "sambanova": "sambanova",
    "snowflake": "snowflake",
    "together": "together",
    "together-ai": "together",
    "togetherai": "together",
    "venice": "venice",
    "vercel": "vercel",
    "vercel-ai-gateway": "vercel",
    "vertex-ai": "google-vertex",
    "vertexai": "google-vertex",
    "watsonx": "watsonx",
    "xai": "xai",
    "zai": "zai",
    "zenmux": "zenmux",
}
"""Prefix, as `fold` writes it, to the host it names. Publishers' names (`meta-llama/…`) are not hosts."""

_TO_DASH = str.maketrans(dict.fromkeys(":@_ ", "-"))
_ALL_TO_DASH = str.maketrans(dict.fromkeys(".:@_ ", "-"))
_SEPARATOR = re.compile(r"[/:]")
_REGION = re.compile(r"(?:us|eu|apac|au|ca|jp|sa|us-gov|global|regional)\.(?=[a-z0-9]+\.)", re.IGNORECASE)
_VENDOR = re.compile(
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer|zai)"
    r"\.(?=[a-z])",
    re.IGNORECASE,
)
_JOINED = re.compile(r"databricks-|anthropic-(?=claude)|openai-(?=gpt|o\d)", re.IGNORECASE)
_RELEASE = re.compile(
    r"-(?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d|[01]\d-[0-3]\d|\d{3,4}"
    r"|latest|preview|exp|experimental|beta|default|v\d+(?:-\d+)*)$"
)
_VARIANT = re.compile(r":(?:free|batch|thinking|extended|online|nitro|floor|exacto|latest|beta)$")


def soften(name: str) -> str:
    """Lower case, one separator, but the dots of versions kept: `Llama3.1:8B` is `llama3.1-8b`."""
    return name.strip().lower().translate(_TO_DASH)


def fold(name: str) -> str:
    """The form in which names are compared: `Claude-3.5_Sonnet` and `claude-3-5-sonnet` are one."""
    return name.strip().lower().translate(_ALL_TO_DASH)


def forms(name: str) -> Iterator[tuple[str | None, str]]:
    """The name, then the name with one prefix after another taken off, each with the outermost host so far.

    A publisher and a slash can be part of a name (`openai/gpt-oss-20b`), a host and a colon cannot.
    """
    host = None
    rest = _VARIANT.sub("", name.strip().removeprefix("~"))
    while True:
        rest = _REGION.sub("", rest, count=1)
        if vendor := _VENDOR.match(rest):
            host = host or "bedrock"
        cut = _next_prefix(rest)
        if cut is None or rest[cut] == "/":
            yield host, rest
        if joined := vendor or _JOINED.match(rest):
            yield host or _host(joined[0][:-1]), rest[joined.end() :]
        if cut is None:
            return
        host = host or _host(rest[:cut])
        rest = rest[cut + 1 :]


def _host(prefix: str) -> str | None:
    return "bedrock" if prefix.startswith("arn:aws:bedrock") else HOSTS.get(fold(prefix))


def _next_prefix(name: str) -> int | None:
    """Where the next prefix ends: at any slash, but at a colon only after a host, since `qwen3:4b` is a whole name."""
    found = _SEPARATOR.search(name)
    if found is None:
        return None
    if found[0] == "/" or fold(name[: found.start()]) in HOSTS:
        return found.start()
    slash = name.find("/")
    return slash if slash >= 0 else None


def undated(folded: str) -> Iterator[str]:
    """A folded name with one mark of a release after another taken off its end: a date, a build, `-latest`."""
    while found := _RELEASE.search(folded):
        folded = folded[: found.start()]
        if not folded:
            return
        yield folded


def prefixes(softened: str) -> Iterator[str]:
    """The longer first, each way to cut a softened name at a separator so that a variant of a family is cut off.

    A bare number after the cut is another version, not a variant (`gpt-5-7` is no kind of `gpt-5`), and a single word
    without a digit is a maker, not a family (`mistral`).
    """
    words = softened.split("-")
    for size in range(len(words) - 1, 0, -1):
        family = "-".join(words[:size])
        if re.fullmatch(r"\d{1,2}(?:\.\d+)*", words[size]) or not re.search(r"[-\d]", family):
            continue
        yield family
