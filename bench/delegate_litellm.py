"""How does litellm call the server of `make bench-delegate`?

Run by it, in litellm's own environment.
"""

from collections.abc import AsyncIterable, Mapping
from typing import Any

import litellm  # pyright: ignore[reportMissingImports]
from delegate_timing import Call, take_orders

litellm.suppress_debug_info = True
MESSAGES = [{"role": "user", "content": "What is the answer?"}]


def clients(address: str) -> Mapping[str, Call]:
    settings = {"model": "openai/gpt-4o-mini", "api_base": f"{address}/v1", "api_key": "k"}
    router = litellm.Router(model_list=[{"model_name": "one", "litellm_params": settings}])
    options = {"include_usage": True}

    async def plain() -> str:
        return await _text(
            await litellm.acompletion(**settings, messages=MESSAGES, stream=True, stream_options=options)
        )

    async def routed() -> str:
        return await _text(
            await router.acompletion(model="one", messages=MESSAGES, stream=True, stream_options=options)
        )

    return {"litellm, chat": plain, "litellm Router, chat": routed}


async def _text(stream: AsyncIterable[Any]) -> str:
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


if __name__ == "__main__":
    take_orders(clients)
