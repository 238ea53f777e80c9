"""How large is a window, by what its provider said when it was full?

The figure in a provider's own error text is the window of the model that really answered, whatever any table says. That
a text *is* such an error, whoever calls the provider knows; here only the figure is looked for.
"""

import re

__all__ = ["learnt_window"]

_FIGURE = r"(\d[\d,_]*\d)"
_SAYINGS = (
    rf"context limit: [\d,_ +]*> ?{_FIGURE}",
    rf"maximum (?:context|prompt|model|input|allowed input) (?:length|size|window)(?: is| of|:)? ?\(?{_FIGURE}",
    rf"context (?:length|size|window)(?: is| of|:)?(?: only)? ?\(?{_FIGURE}",
    rf"tokens? > {_FIGURE} (?:maximum|limit)",
    rf"maximum number of (?:input )?tokens(?: allowed)?(?: is|:)? ?\(?{_FIGURE}",
    rf"token count.{{1,40}}supports up to {_FIGURE}",
    rf"token count.{{1,40}}exceeds the limit of {_FIGURE}",
    rf"with {_FIGURE} maximum context length",
    rf"model token limit: {_FIGURE}",
    rf"input length should be \[\d+, ?{_FIGURE}\]",
    rf"tokens in the prompt cannot exceed {_FIGURE}",
    rf"`inputs` tokens \+ `max_new_tokens` must be <= {_FIGURE}",
    rf"`inputs` must have less than {_FIGURE} tokens",
    rf"current length is \d+ while limit is {_FIGURE}",
    rf"max_(?:seq|model)_len(?:gth)?(?: is| of|:|=)? ?\(?{_FIGURE}",
    rf"[\"']?\bn_ctx\b[\"']?(?: is|:|=| =)? ?\(?{_FIGURE}",
)
"""As OpenAI and all who copied it, llama.cpp, LM Studio, SGLang, Anthropic, Gemini on both its hosts, GitHub, Mistral,
Moonshot, DashScope, Cohere, TGI, Cerebras and vLLM put it. What limits the answer alone reads otherwise."""
_WINDOW = re.compile("|".join(_SAYINGS), re.IGNORECASE)
_PACE = re.compile(r"per (?:minute|day)|rate.?limit|throttl|quota|\b[RT]P[MD]\b", re.IGNORECASE)
"""A limit on how much may be asked in a while says nothing of the window."""
_SMALLEST, _LARGEST = 256, 100_000_000
_LONGEST = 20_000
"""Characters of a message that are looked at: some echo the whole prompt behind what they say."""


def learnt_window(message: str) -> int | None:
    """The tokens that the window holds, or None where the message names none."""
    said = " ".join(message[:_LONGEST].split())
    found = None if _PACE.search(said) else _WINDOW.search(said)
    if found is None:
        return None
    figure = int(re.sub(r"[,_]", "", next(filter(None, found.groups()))))
    return figure if _SMALLEST <= figure <= _LARGEST else None
