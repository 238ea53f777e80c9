"""How does pydantic-ai's FallbackModel answer `make bench-faults`?

Run by it, in pydantic-ai's own environment. The retries are those of the SDKs beneath it.
"""

# pyright: reportMissingImports=false
from anthropic import AsyncAnthropic
from faults_answering import Ask, answer_orders
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

PROMPT = "Say something of some length."


def fresh(address: str) -> Ask:
    openai = AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=2, timeout=5)
    anthropic = AsyncAnthropic(base_url=f"{address}/anthropic", api_key="k", max_retries=2, timeout=5)
    agent = Agent(
        FallbackModel(
            OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=openai)),
            AnthropicModel("claude-haiku-4-5", provider=AnthropicProvider(anthropic_client=anthropic)),
        )
    )

    async def ask(streamed: bool) -> str:  # noqa: FBT001
        if not streamed:
            return (await agent.run(PROMPT)).output
        async with agent.run_stream(PROMPT) as run:
            return await run.get_output()

    return ask


if __name__ == "__main__":
    answer_orders(fresh)
