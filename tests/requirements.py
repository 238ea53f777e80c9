"""What must Ullage do?

The contracts as data: id to sentence. Every id is either claimed by a test (`@pytest.mark.requirement("…")`) or listed in
`NOT_YET_BUILT`; `test_requirements.py` holds both ways. An id leaves the second list in the commit that claims it.
"""

REQUIREMENTS = {
    # Everywhere
    "U:one-meter": "Every token number comes from one meter and one model table.",
    "U:reference": "Counts and window are those of the model named for the client, else o200k_base and 200,000, and say so.",
    "U:own": "count-tokens, query, schema and delegate.run are listed where they apply; every tool can be called by name.",
    "U:errors": "A failed result has one shape: error_code, message, suggestion, available_options, with isError.",
    "U:access": "What a client excluded or had to ask for stays excluded or asked for.",
    "U:ledger": "Definitions, searches, results, history and model calls are written to one ledger with what was saved.",
    "U:budget": "Any result can be held to a token budget with nothing lost and nothing run twice.",
    "U:scan": "One command says what existing MCP configurations cost and what Ullage would save; one installs, one undoes.",
    "U:pin": "A tool definition that changes after it was accepted is held until someone looks.",
    # S3: counting
    "S3:count": "count-tokens replies with token_count and model as JSON text; gpt-4 and 'Hello, world!' give 4.",
    "S3:default-model": "Without a model, gpt-4 is counted for.",
    "S3:models": "gpt-4, gpt-4-turbo, gpt-3.5-turbo, gpt-4o, claude and claude-* count, and every card of the table by any name.",
    "S3:empty": "The empty text is 0 tokens.",
    "S3:echo-model": "model is what was asked for, resolved the card it stands for.",
    "S3:unsupported": "An unknown model gives UNSUPPORTED_MODEL with the default and the nearest names, at most 20 options.",
    "S3:method": "Every count says how it was found: exact, anchored, calibrated or estimated.",
    "S3:overheads": "Messages, tool definitions, tool calls and images count as the provider counts them.",
    "S3:offline": "Counting needs no network and no download from the first run on.",
    "S3:light": "Vocabularies load one at a time when needed; without the fast engine a fallback counts the same.",
    "S3:nonblocking": "A large text never holds the event loop for more than 20 ms; small texts are counted at once.",
    # S0: results and SQL
    "S0:meta": "Every tools/call result carries dev.ullage/meta.",
    "S0:meta:tokens": "tokens has estimated and approximationMethod, and a warning only where the count is not exact.",
    "S0:meta:performance": "performance has the milliseconds around the call and whether a cache answered.",
    "S0:meta:data": "data describes tabular replies and is absent elsewhere.",
    "S0:meta:error": "A failed call carries tokens and performance too.",
    "S0:recipes": "The documented recipes for cost, slowness and truncation run in the tests.",
    "S0:sql:query": "query runs one read-only statement and answers in a token-cheap encoding.",
    "S0:sql:limit": "max_rows up to the server's limit; truncated exactly when more rows existed.",
    "S0:sql:schema": "schema and table describe tables, keys, indexes, constraints, views, triggers and procedures.",
    "S0:sql:read-only": "Several locks, each tested alone: no write, no second statement, no side effect ever runs.",
    "S0:sql:engines": "SQLite and DuckDB embedded, PostgreSQL and MySQL/MariaDB over the network, others by URL.",
    "S0:sql:cache": "An identical read within its time-to-live may come from a cache, and says so.",
    # S1: finding
    "S1:aggregate": "Any number of upstream servers from existing mcpServers JSON; one dead server harms no other.",
    "S1:find": "find_tool gives definitions, one-liners and token_metrics; asked by name it gives that tool.",
    "S1:metrics": "baseline, returned and saved tokens and the percentage agree, or cannot be constructed.",
    "S1:call": "call_tool passes through whole; read-only and the rest go through separate doors.",
    "S1:catalog": "Each tool is stored with id, definition, embedding, token_count and times, changed in one transaction.",
    "S1:hybrid": "Lexical and semantic search are fused and need no download.",
    "S1:surface": "The listed tools cost at most 400 tokens and the instructions 300; small catalogues are shown directly.",
    "S1:budget": "Names, signatures and definitions are fitted into the caller's budget and never exceed it.",
    "S1:heal": "Nested, stringified and misplaced arguments are understood; misfits are refused with what matters.",
    "S1:net": "A net saving beside the gross ones, with our own surface and replies charged; it may be negative.",
    "S1:live": "The catalogue follows list_changed, restarts and changed configuration.",
    # S2: context
    "S2:formats": "Four message formats as dicts or SDK objects, a ready loop, and a command for session files.",
    "S2:count": "Any non-empty text counts more than 0; estimates lie within their contract on every family of rows.",
    "S2:usage": "ContextUsage adds up and speaks camelCase in JSON.",
    "S2:options": "context_window, compact_threshold and disable_compaction with their defaults, camelCase accepted.",
    "S2:window": "A window by model, an override, 128,000 for unknown models, flagged; never an error.",
    "S2:compact:when": "Before every model call when used reaches the threshold; 15 % stays free for output.",
    "S2:compact:how": "The head becomes one summary message, the tail of 30 % stays untouched.",
    "S2:compact:after": "Usage falls under half.",
    "S2:compact:valid": "What remains is always a sequence the provider accepts.",
    "S2:compact:persist": "The summary replaces the originals, which stay recoverable; a crash loses nothing.",
    "S2:compact:fail": "When summarising fails, work goes on with a warning and backs off.",
    "S2:status": "A context_status event before every model call.",
    "S2:render": "The bar and breakdown to the letter.",
    "S2:long": "A session of hundreds of messages never dies of overflow.",
    # S4: delegating
    "S4:schema": "delegate.run takes prompt, forceModel, metadata, caps and context, and refuses anything else.",
    "S4:config": "models.json and policies.json are read as they are, and the same from ullage.toml.",
    "S4:route": "Forced model, language, domain, tier, bucket and caps decide, each with a line of rationale.",
    "S4:examples": "The two worked examples route as stated.",
    "S4:lint": "A policy is checked when loaded, each warning naming its line.",
    "S4:env": "The documented environment variables and their defaults.",
    "S4:providers": "Four wires; a missing key disables its provider with a clear word.",
    "S4:stream": "A cut, stalled, malformed or truncated stream is never handed on as an answer.",
    "S4:fallback": "The next of the chain on error, every try in meta.attempts.",
    "S4:retry": "Back-off with jitter, Retry-After honoured, one deadline, 400 and 422 never retried.",
    "S4:usage": "Estimated and actual tokens, normalised over the providers' conventions.",
    "S4:cost": "Pricing times tokens; an unknown price is null.",
    "S4:reply": "Text for the model; decision, usage, cost and attempts under dev.ullage/delegate.",
    "S4:telemetry": "Structured lines on stderr, the cost alert, the CSV export.",
    "S4:budgets": "Hard ceilings in money and tokens, refused before they are spent.",
    "S4:risks": "An input no window holds is refused, or cut when asked; a session's language sticks.",
    "S4:more": "delegate.diff, delegate.tests, delegate.consensus, retrieve.search and system prompts per task.",
}

NOT_YET_BUILT = frozenset(
    {
        *("U:ledger", "U:scan", "U:pin", "S1:hybrid"),
        *(one for one in REQUIREMENTS if one.startswith("S2:") and one not in {"S2:count", "S2:window"}),
    }
)
