"""How does litellm's Router answer `make bench-faults`?

Run by it, in litellm's own environment.
"""

import litellm  # pyright: ignore[reportMissingImports]
from faults_answering import Ask, answer_orders

litellm.suppress_debug_info = True
MESSAGES = [{"role": "user", "content": "Say something of some length."}]


def fresh(address: str) -> Ask:
    primary = {"model": "openai/gpt-4o-mini", "api_base": f"{address}/v1", "api_key": "k"}
    backup = {"model": "anthropic/claude-haiku-4-5", "api_base": f"{address}/anthropic", "api_key": "k"}
    router = litellm.Router(
        model_list=[
            {"model_name": "primary", "litellm_params": primary},
            {"model_name": "backup", "litellm_params": backup},
        ],
        fallbacks=[{"primary": ["backup"]}],
        num_retries=2,
        timeout=5,
    )

    async def ask(streamed: bool) -> str:  # noqa: FBT001
        reply = await router.acompletion(model="primary", messages=MESSAGES, stream=streamed)
        if not streamed:
            return reply.choices[0].message.content
        return "".join([chunk.choices[0].delta.content or "" async for chunk in reply if chunk.choices])

    return ask


if __name__ == "__main__":
    answer_orders(fresh)
