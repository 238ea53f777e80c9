"""How do the providers' own SDKs call the server of `make bench-delegate`?

Run by it, in their own environment.
"""

# pyright: reportMissingImports=false
from collections.abc import Mapping

from anthropic import AsyncAnthropic
from delegate_timing import Call, take_orders
from openai import AsyncOpenAI

MESSAGES = [{"role": "user", "content": "What is the answer?"}]


def clients(address: str) -> Mapping[str, Call]:
    openai = AsyncOpenAI(base_url=f"{address}/v1", api_key="k")
    anthropic = AsyncAnthropic(base_url=address, api_key="k")

    async def chat() -> str:
        options = {"include_usage": True}
        stream = await openai.chat.completions.create(
            model="gpt-4o-mini", messages=MESSAGES, stream=True, stream_options=options
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    async def responses() -> str:
        stream = await openai.responses.create(model="gpt-4o-mini", input=MESSAGES, stream=True)
        return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])

    async def messages() -> str:
        async with anthropic.messages.stream(model="claude-haiku-4-5", max_tokens=100, messages=MESSAGES) as stream:
            return await stream.get_final_text()

    return {"openai SDK, chat": chat, "openai SDK, responses": responses, "anthropic SDK, anthropic": messages}


if __name__ == "__main__":
    take_orders(clients)
