"""How does pydantic-ai call the server of `make bench-delegate`?

Run by it, in pydantic-ai's own environment.
"""

# pyright: reportMissingImports=false
from collections.abc import Mapping

from anthropic import AsyncAnthropic
from delegate_timing import Call, take_orders
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def clients(address: str) -> Mapping[str, Call]:
    openai = OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{address}/v1", api_key="k"))
    anthropic = AnthropicProvider(anthropic_client=AsyncAnthropic(base_url=address, api_key="k"))
    return {
        "pydantic-ai, chat": _asking(Agent(OpenAIChatModel("gpt-4o-mini", provider=openai))),
        "pydantic-ai, anthropic": _asking(Agent(AnthropicModel("claude-haiku-4-5", provider=anthropic))),
    }


def _asking(agent: Agent) -> Call:
    async def call() -> str:
        async with agent.run_stream("What is the answer?") as run:
            return await run.get_output()

    return call


if __name__ == "__main__":
    take_orders(clients)
